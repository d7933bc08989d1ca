"""The stable row ids of a fragment, in row order.

Layout: message ``RowIdSequence``, segments one after the other (u64_segment.py). A sequence covers
the *physical* rows of its fragment: deleted ones too.

Worked example: {5, 7, 1001} is two segments, bitmap [5, 8) ``05`` and range [1001, 1002).

Limits: pylance parses this message strictly and refuses unknown fields, so none may be added.
Source: lance-table ``rowids``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_nb._pb import rowids as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.u64_segment import (
    Segment,
    U64s,
    choose_segment,
    segment_from_pb,
    segment_to_pb,
)
from lance_nb.format.wire import parse


@dataclass(frozen=True, slots=True)
class RowIdSequence:
    """Row ids in row order."""

    segments: tuple[Segment, ...]

    @property
    def num_rows(self) -> int:
        """Number of row ids, without expanding them (``len`` cannot say more than 2**63)."""
        return sum(len(one) for one in self.segments)

    def to_numpy(self) -> U64s:
        """Return all row ids; compare ``num_rows`` with the fragment's rows first."""
        if not self.segments:
            return np.empty(0, np.uint64)
        return np.concatenate([one.to_numpy() for one in self.segments])

    @classmethod
    def from_numpy(cls, row_ids: U64s) -> RowIdSequence:
        """Build one segment, the smallest that holds the ids."""
        return cls((choose_segment(np.asarray(row_ids, np.uint64)),))

    @classmethod
    def from_bytes(
        cls, data: bytes, path: str = "", *, physical_rows: int | None = None
    ) -> RowIdSequence:
        """Parse. Raises CorruptFileError, also when there are not ``physical_rows`` ids."""
        message = parse(pb.RowIdSequence, data, path)
        found = cls(tuple(segment_from_pb(one, path) for one in message.segments))
        if physical_rows is not None and found.num_rows != physical_rows:
            raise CorruptFileError(path, None, f"{physical_rows} row ids", f"{found.num_rows}")
        return found

    def to_bytes(self) -> bytes:
        """Serialize."""
        message = pb.RowIdSequence(segments=[segment_to_pb(one) for one in self.segments])
        return message.SerializeToString()
