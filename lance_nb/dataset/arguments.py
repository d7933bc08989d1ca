"""Small values that methods of a dataset take, constants, and tables of vectors, as in pylance.

Source: ``lance.dataset``, ``lance.fragment``, ``lance.util``, ``lance.vector`` of pylance 14.0.2.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.errors import ArgumentError, InvalidInputError, NotSupportedError
from lance_nb.format.transaction_summary import MESSAGE_PROPERTY
from lance_nb.session.session import CacheSession

DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3
LANCE_COMMIT_MESSAGE_KEY = MESSAGE_PROPERTY
Session = CacheSession  # its public name


class AlterColumn(TypedDict, total=False):
    """What ``LanceDataset.alter_columns`` takes for a column; all but ``path`` may be left out.

    >>> from lance_nb import AlterColumn
    >>> AlterColumn(path="a", name="b")
    {'path': 'a', 'name': 'b'}
    """

    path: str
    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None


class AutoCleanupConfig(TypedDict, total=False):
    """``auto_cleanup_options`` of ``write_dataset``: every how many versions old ones are deleted.

    ``older_than_seconds``: how old a version must be to go.

    >>> from lance_nb import AutoCleanupConfig
    >>> AutoCleanupConfig(interval=20, older_than_seconds=3600)
    {'interval': 20, 'older_than_seconds': 3600}
    """

    interval: int
    older_than_seconds: int


def sanitize_ts(ts: Any) -> datetime:
    """Return a moment as a datetime.

    Args:
        ts: a datetime, a pandas Timestamp or text (ISO 8601).

    Raises InvalidInputError for other text, ArgumentError for other values.

    Examples:
        >>> lance_nb.sanitize_ts("2024-01-02 03:04:05")
        datetime.datetime(2024, 1, 2, 3, 4, 5)
    """
    if isinstance(ts, str):
        try:
            return datetime.fromisoformat(ts)
        except ValueError as error:
            raise InvalidInputError(
                f"{ts!r:.60} is not a timestamp; write it as 2024-01-02 03:04:05"
            ) from error
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(ts, pandas.Timestamp):
        return ts.to_pydatetime()  # type: ignore[no-any-return]
    if not isinstance(ts, datetime):
        raise ArgumentError(f"the timestamp must be a datetime or text, not {type(ts).__name__}")
    return ts


def td_to_micros(td: timedelta) -> int:
    """Return a time span in microseconds.

    Args:
        td: the time span.

    Examples:
        >>> from datetime import timedelta
        >>> lance_nb.td_to_micros(timedelta(seconds=1.5))
        1500000
    """
    return round(td / timedelta(microseconds=1))


def serialize_row_addrs(addrs: Iterable[int]) -> bytes:
    """Return row addresses as the bytes of a Roaring treemap, as pylance passes them around.

    Layout: the number of fragments, then for each its id, the number of bytes and the Roaring
    bitmap of row offsets; numbers are little-endian uint32.

    Args:
        addrs: row addresses (``fragment id << 32 | offset``).

    Raises ArgumentError for what is no number of 64 bits.

    Examples:
        >>> len(lance_nb.serialize_row_addrs([0, 1 << 32]))
        56
    """
    try:
        addresses = np.array(list(addrs), np.uint64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"row addresses must be unsigned 64-bit integers: {error}") from error
    addresses = np.unique(addresses)
    fragments, starts = np.unique(addresses >> np.uint64(32), return_index=True)
    parts = [struct.pack("<I", len(fragments))]
    stops = [*starts[1:], len(addresses)] if len(addresses) else []
    for fragment, start, stop in zip(fragments, starts, stops, strict=True):
        offsets = BitMap(addresses[start:stop].astype(np.uint32)).serialize()
        parts += [struct.pack("<II", int(fragment), len(offsets)), offsets]
    return b"".join(parts)


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
        column_names = ["id", "vector"] if names is None else names
        if isinstance(column_names, str) or len(column_names) != 2:
            raise InvalidInputError(
                "a mapping becomes two columns, so names must have two names, not "
                f"{column_names!r:.80}"
            )
        columns = [pa.array(data.keys()), _vectors(list(data.values()), ndim, check_ndim)]
        return pa.table(columns, names=list(column_names))
    if not isinstance(data, list | np.ndarray):
        raise NotSupportedError(
            f"vectors must be a dict, a list or a NumPy array, not {type(data).__name__}"
        )
    column_names = ["vector"] if names is None else [names] if isinstance(names, str) else names
    if len(column_names) != 1:
        raise InvalidInputError(
            f"vectors become one column, so names must have one name, not {len(column_names)}"
        )
    return pa.table([_vectors(data, ndim, check_ndim)], names=list(column_names))


def _vectors(
    values: Sequence[Any] | np.ndarray, ndim: int | None, check_ndim: bool
) -> pa.FixedSizeListArray:
    if not len(values):
        raise InvalidInputError("no vectors were given, so the vector length is not known")
    try:
        lengths = [len(value) for value in values]
        size = lengths[0] if ndim is None else ndim
        wrong = next((position for position, length in enumerate(lengths) if length != size), None)
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
