"""Tables of vectors from Python values.

Source: ``lance.vector.vec_to_table`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError, NotSupportedError


def vec_to_table(
    data: Mapping[Any, Any] | Sequence[Any] | np.ndarray,
    names: str | Sequence[str] | None = None,
    ndim: int | None = None,
    check_ndim: bool = True,
) -> pa.Table:
    """Return vectors as a table with a column of fixed-size lists of float32.

    Args:
        data: a mapping of id to vector, which gives a column of ids too; or a list or a
            two-dimensional array of vectors.
        names: of the columns: two for a mapping ("id" and "vector"), else one ("vector").
        ndim: numbers of a vector; that of the first one if left out.
        check_ndim: whether every vector must have that many. Without it, only all numbers
            together must come out even.

    Raises InvalidInputError for vectors of different lengths or names that do not fit,
    NotSupportedError for other data.

    >>> from lance_nb import vec_to_table
    >>> vec_to_table({"a": [1, 2], "b": [3, 4]}).to_pylist()[1]
    {'id': 'b', 'vector': [3.0, 4.0]}
    """
    if isinstance(data, Mapping):
        wanted = ["id", "vector"] if names is None else names
        if isinstance(wanted, str) or len(wanted) != 2:
            raise InvalidInputError(
                f"a mapping becomes two columns, so names must have two names, not {wanted!r:.80}"
            )
        columns = [pa.array(data.keys()), _vectors(list(data.values()), ndim, check_ndim)]
        return pa.table(columns, names=list(wanted))
    if not isinstance(data, list | np.ndarray):
        raise NotSupportedError(
            f"vectors must be a dict, a list or a NumPy array, not {type(data).__name__}"
        )
    wanted = ["vector"] if names is None else [names] if isinstance(names, str) else names
    if len(wanted) != 1:
        raise InvalidInputError(
            f"vectors become one column, so names must have one name, not {len(wanted)}"
        )
    return pa.table([_vectors(data, ndim, check_ndim)], names=list(wanted))


def _vectors(
    values: Sequence[Any] | np.ndarray, ndim: int | None, check_ndim: bool
) -> pa.FixedSizeListArray:
    if not len(values):
        raise InvalidInputError("no vectors were given, so the vector length is not known")
    try:
        lengths = [len(one) for one in values]
        size = lengths[0] if ndim is None else ndim
        wrong = next((at for at, one in enumerate(lengths) if one != size), None)
        if check_ndim and wrong is not None:
            raise InvalidInputError(
                f"expected {size} values in each vector, found {lengths[wrong]} in vector {wrong}"
            )
        numbers = np.asarray(values, np.float32).ravel()
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"vectors must be lists of numbers: {error}") from error
    if size < 1 or numbers.size % size:
        raise InvalidInputError(
            f"{numbers.size} values cannot be split into vectors of length {size}"
        )
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers), size)
