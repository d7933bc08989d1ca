"""The public RowIdSequence: stable row ids to give to a fragment, or read from one.

Limits: ids fit 64 bits and are unique. A ``range`` with step 1 is kept without its values.
Source: ``lance.fragment.RowIdSequence`` of pylance 14.0.2; bytes: row_sequences.py.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import (
    ArgumentError,
    CorruptFileError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.format.fragment import InlineSequence, RowIdMeta
from lance_nb.format.row_sequences import Range, RowIdSegments, U64s

_U64 = 1 << 64
_ROWS_MAX = (1 << 32) - 1  # rows of a fragment
_SHOWN = 10


class RowIdSequence:
    """The stable row ids of a fragment's rows, in their order.

    For fragments that are committed by hand: rows that were rewritten keep their identity when the
    new fragment carries their ids. There may be fewer ids than rows; the rows behind them are new,
    and get their ids when they are committed. Give only ids of rows that the same transaction
    removes elsewhere; ids of new rows are never made up.

    Args:
        row_ids: a range, an Arrow array without nulls, or integers.

    Raises InvalidInputError for an id twice and for nulls, ArgumentError (a TypeError and an
    OverflowError) for what is no integer or does not fit 64 bits.

    Examples:
        >>> ids = lance_nb.RowIdSequence([7, 12])
        >>> ids.to_pyarrow().to_pylist()
        [7, 12]
        >>> lance_nb.RowIdSequence.from_inline_metadata(ids.to_inline_metadata()) == ids
        True
    """

    __slots__ = ("_sequence",)

    def __init__(self, row_ids: range | pa.Array | pa.ChunkedArray | Iterable[int]) -> None:
        if isinstance(row_ids, range) and row_ids.step == 1 and row_ids.start >= 0:
            if row_ids.stop > _U64:
                raise ArgumentError(f"a row id fits 64 bits, not {row_ids.stop - 1}")
            run = Range(row_ids.start, max(row_ids.start, row_ids.stop))
            self._sequence = RowIdSegments((run,))
        else:
            self._sequence = RowIdSegments.from_numpy(_distinct(_values(row_ids)))

    @staticmethod
    def from_inline_metadata(metadata: RowIdMeta) -> RowIdSequence:
        """Read the ids that ``FragmentMetadata.row_id_meta`` holds.

        Args:
            metadata: the location, which must be inline.

        Raises NotSupportedError when they lie in a data file, CorruptFileError for other bytes.
        """
        if not isinstance(metadata.sequence, InlineSequence):
            raise NotSupportedError("these row ids are in a file, not in the manifest")
        segments = RowIdSegments.from_bytes(metadata.sequence.data)
        if segments.num_rows > _ROWS_MAX:
            count = f"{segments.num_rows}"
            raise CorruptFileError("row_id_meta", None, f"at most {_ROWS_MAX} row ids", count)
        sequence = RowIdSequence.__new__(RowIdSequence)
        sequence._sequence = segments  # noqa: SLF001
        return sequence

    def to_inline_metadata(self) -> RowIdMeta:
        """Return the ids as ``row_id_meta`` of a FragmentMetadata."""
        return RowIdMeta.inline(self._sequence.to_bytes())

    def to_pyarrow(self) -> pa.UInt64Array:
        """Return the ids as a uint64 array."""
        return pa.array(self._sequence.to_numpy(), pa.uint64())

    def __len__(self) -> int:
        return self._sequence.num_rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._sequence.to_numpy().tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowIdSequence):
            return NotImplemented
        if len(self) != len(other):
            return False
        return np.array_equal(self._sequence.to_numpy(), other._sequence.to_numpy())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if len(self) <= _SHOWN:
            return f"RowIdSequence({list(self)})"
        return f"RowIdSequence(<{len(self)} row ids>)"

    def __reduce__(self) -> tuple[Any, tuple[RowIdMeta]]:
        return RowIdSequence.from_inline_metadata, (self.to_inline_metadata(),)


def _values(row_ids: Any) -> U64s:
    if isinstance(row_ids, pa.Array | pa.ChunkedArray):
        if not pa.types.is_integer(row_ids.type):
            raise ArgumentError(f"row ids are integers, not {row_ids.type}")
        if row_ids.null_count:
            raise InvalidInputError(f"row ids must not be null; {row_ids.null_count} are")
        try:
            return row_ids.cast(pa.uint64()).to_numpy()  # type: ignore[no-any-return]
        except pa.ArrowInvalid as error:
            raise ArgumentError(f"row ids are not negative: {error}") from error
    try:
        listed = list(map(operator.index, row_ids))
        return np.array(listed, np.uint64)
    except (TypeError, OverflowError) as error:
        raise ArgumentError(
            f"row ids are integers from 0 to 2**64 - 1 or an Arrow array of them: {error}"
        ) from error


def _distinct(row_ids: U64s) -> U64s:
    ordered = np.sort(row_ids)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        raise InvalidInputError(f"each row id stands once; {twice[0]} stands more often")
    return row_ids
