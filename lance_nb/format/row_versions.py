"""In which dataset version each row of a fragment was created, or last updated.

Layout: message ``RowDatasetVersionSequence``: runs of (span, version). Only the number of values in
a span counts; after a compaction spans look like the row ids they came from.

Limits: a sequence covers the physical rows of its fragment.
Source: lance-table ``rowids::version``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_nb._pb import rowids as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.u64_segment import Range, U64s, segment_from_pb, segment_to_pb
from lance_nb.format.wire import parse


@dataclass(frozen=True, slots=True)
class RowVersionSequence:
    """Runs of (number of rows, version), in row order."""

    runs: tuple[tuple[int, int], ...]

    @property
    def num_rows(self) -> int:
        """Number of rows covered."""
        return sum(count for count, _ in self.runs)

    def to_numpy(self) -> U64s:
        """Return one version per row; compare ``num_rows`` with the fragment's rows first."""
        counts = np.array([count for count, _ in self.runs], np.int64)
        return np.repeat(np.array([version for _, version in self.runs], np.uint64), counts)

    @classmethod
    def from_numpy(cls, versions: U64s) -> RowVersionSequence:
        """Build from one version per row."""
        versions = np.asarray(versions, np.uint64)
        if not len(versions):
            return cls(())
        starts = np.concatenate(([0], np.flatnonzero(versions[1:] != versions[:-1]) + 1))
        counts = np.diff(np.concatenate((starts, [len(versions)])))
        pairs = zip(counts.tolist(), versions[starts].tolist(), strict=True)
        return cls(tuple(pairs))

    @classmethod
    def from_bytes(
        cls, data: bytes, path: str = "", *, physical_rows: int | None = None
    ) -> RowVersionSequence:
        """Parse. Raises CorruptFileError, also when it does not cover ``physical_rows`` rows."""
        message = parse(pb.RowDatasetVersionSequence, data, path)
        runs = tuple((len(segment_from_pb(one.span, path)), one.version) for one in message.runs)
        found = cls(runs)
        if physical_rows is not None and found.num_rows != physical_rows:
            raise CorruptFileError(path, None, f"{physical_rows} versions", f"{found.num_rows}")
        return found

    def to_bytes(self) -> bytes:
        """Serialize; spans are the ranges of row offsets."""
        message = pb.RowDatasetVersionSequence()
        start = 0
        for count, version in self.runs:
            run = message.runs.add()
            run.version = version
            run.span.CopyFrom(segment_to_pb(Range(start, start + count)))
            start += count
        return message.SerializeToString()
