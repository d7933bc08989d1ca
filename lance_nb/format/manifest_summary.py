"""A manifest read only as far as a list of versions needs: no schema, no fragment decoded.

Row and file totals are counted when asked for. A ``TotalsMemo`` carries the counts from one version
to the next: versions share most of their fragments, byte for byte.

Source: the keys of ``FragmentTotals.to_metadata`` are those of pylance's ``versions()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment_counting import (
    BYTES,
    DELETED,
    DELETIONS,
    FILES,
    NUM_COLUMNS,
    ROWS,
    Ints,
    count_all,
)
from lance_nb.format.manifest import message_of, section_offsets, timestamp_ns_of
from lance_nb.format.manifest_framing import Section, section

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FragmentTotals:
    """What the fragments of one version add up to."""

    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    physical_rows: int
    num_deleted_rows: int
    size_bytes: int

    @property
    def num_rows(self) -> int:
        """Live rows."""
        return self.physical_rows - self.num_deleted_rows

    def to_metadata(self) -> dict[str, str]:
        """Return the ``metadata`` of an entry of ``versions()``."""
        return {
            "total_data_file_rows": str(self.physical_rows),
            "total_data_files": str(self.num_data_files),
            "total_deletion_file_rows": str(self.num_deleted_rows),
            "total_deletion_files": str(self.num_deletion_files),
            "total_files_size": str(self.size_bytes),
            "total_fragments": str(self.num_fragments),
            "total_rows": str(self.num_rows),
        }


class TotalsMemo:
    """The fragments counted last, so that a version much like it costs little."""

    def __init__(self) -> None:
        self._raw: list[bytes] = []
        self._counts: Ints = np.zeros((NUM_COLUMNS, 0), np.int64)

    def count(self, raw: list[bytes], path: str) -> Ints:
        """Return the counts of ``raw`` (see ``count_all``)."""
        shared = min(len(raw), len(self._raw))
        if raw[:shared] != self._raw[:shared]:
            shared = next(at for at in range(shared) if raw[at] != self._raw[at])
        counts = self._counts[:, :shared]
        if shared < len(raw):
            counts = np.concatenate((counts, count_all(raw[shared:], path)), axis=1)
        if len(raw) >= len(self._raw) or shared < len(raw):
            self._raw, self._counts = raw, counts
        return counts


@dataclass(frozen=True, slots=True)
class ManifestSummary:
    """The parts of a manifest that a list of versions shows."""

    version: int
    timestamp_ns: int | None
    branch: str | None
    transaction_file: str
    transaction: Section | None
    fragments: Sequence[bytes] = field(repr=False)
    size_bytes: int
    path: str

    @property
    def timestamp(self) -> datetime | None:
        """Commit time as an aware UTC datetime."""
        if self.timestamp_ns is None:
            return None
        return _EPOCH + timedelta(microseconds=self.timestamp_ns // 1000)

    def totals(self, memo: TotalsMemo | None = None) -> FragmentTotals:
        """Add up the fragments. Raises CorruptFileError."""
        raw = list(self.fragments)
        counts = count_all(raw, self.path) if memo is None else memo.count(raw, self.path)
        if (counts.sum(axis=1, dtype=np.float64) >= 2**62).any():
            raise CorruptFileError(self.path, None, "sums below 2**62", "a larger one")
        too_many = (counts[DELETED] > counts[ROWS]) & (counts[ROWS] > 0)
        if too_many.any():
            rows, deleted = counts[:, int(np.argmax(too_many))][[ROWS, DELETED]]
            expected = f"at most {rows} deleted rows in a fragment"
            raise CorruptFileError(self.path, None, expected, f"{deleted} deleted rows")
        sums = counts.sum(axis=1)
        return FragmentTotals(
            len(raw),
            int(sums[FILES]),
            int(sums[DELETIONS]),
            int(sums[ROWS]),
            int(sums[DELETED]),
            int(sums[BYTES]),
        )


def parse_summary(data: bytes | memoryview, path: str) -> ManifestSummary:
    """Parse a whole manifest file. Raises CorruptFileError."""
    found = parse_summary_tail(data, len(data), path)
    if isinstance(found, int):
        raise CorruptFileError(path, None, f"{found} bytes", f"{len(data)} bytes")
    return found


def parse_summary_tail(
    tail: bytes | memoryview, file_size: int, path: str
) -> ManifestSummary | int:
    """Parse from the end of a file; returns the bytes needed if ``tail`` is too short."""
    found = message_of(tail, file_size, path)
    if isinstance(found, int):
        return found
    message, _, position = found
    _, transaction_at = section_offsets(message)
    return ManifestSummary(
        message.version,
        timestamp_ns_of(message, path),
        message.branch if message.HasField("branch") else None,
        message.transaction_file,
        section(memoryview(tail), file_size, transaction_at, position, path),
        message.fragments,
        file_size,
        path,
    )
