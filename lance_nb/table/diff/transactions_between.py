"""The transactions between two versions, and how their deletions differ.

``transactions``: one row per version after the common ancestor, oldest first, side by side for
forks. A version that was cleaned up has no row.

Limits: as many manifests are read as there are versions between, and none twice.
Source: message Transaction of lance.table; table/history.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import VersionNotFoundError
from lance_nb.format.fragment import Fragment
from lance_nb.table.deletions import read_deletions
from lance_nb.table.diff.fragments import Pair
from lance_nb.table.diff.merge_base import Ends
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.snapshot import Snapshot

TRANSACTIONS = pa.schema([
    ("side", pa.string()), ("branch", pa.string()), ("version", pa.uint64()),
    ("timestamp", pa.timestamp("us", "UTC")), ("operation", pa.string()), ("message", pa.string()),
    ("description", pa.string()), ("read_version", pa.uint64()), ("uuid", pa.string()),
])  # fmt: skip
DELETIONS = pa.schema([
    ("fragment_id", pa.uint64()), ("physical_rows", pa.uint64()), ("deleted_before", pa.uint64()),
    ("deleted_after", pa.uint64()), ("rows_deleted", pa.uint64()), ("rows_undeleted", pa.uint64()),
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class VersionBetween:
    """A version after the common ancestor, on side "a" or "b"."""

    side: str
    branch: str | None
    version: int


def versions_between(ends: Ends) -> list[VersionBetween]:
    """List the versions between, oldest first; lists names only."""
    found = []
    for stretch in ends.between:
        numbers = ends.source.log(stretch.branch).numbers()
        first, stop = bisect_right(numbers, stretch.after), bisect_right(numbers, stretch.upto)
        found += [
            VersionBetween(stretch.side, stretch.branch, number) for number in numbers[first:stop]
        ]
    return found


def transactions_table(ends: Ends, versions: Sequence[VersionBetween]) -> pa.Table:
    """Describe the transactions of some versions. Raises CorruptFileError."""
    found = [row for one in versions if (row := _transaction(ends, one)) is not None]
    return pa.Table.from_pylist(found, schema=TRANSACTIONS)


def _transaction(ends: Ends, one: VersionBetween) -> dict[str, Any] | None:
    log = ends.source.log(one.branch)
    try:
        info, done = log.describe(one.version, {}), log.transaction(one.version)
    except VersionNotFoundError:
        return None  # cleaned up since it was listed
    return {
        "side": one.side,
        "branch": one.branch,
        "version": one.version,
        "timestamp": info.timestamp,
        "operation": info.operation,
        "message": info.message,
        "description": None if done is None else done.description,
        "read_version": None if done is None else done.read_version,
        "uuid": None if done is None else done.uuid,
    }


def deletions_table(ends: Ends, pairs: Sequence[Pair]) -> pa.Table:
    """One row per shared fragment; those of a diff whose deletions differ. Reads deletion files."""
    rows = []
    for pair in pairs:
        before, after = deleted_offsets(ends.a, pair.a), deleted_offsets(ends.b, pair.b)
        rows.append(
            {
                "fragment_id": pair.b.id,
                "physical_rows": pair.b.physical_rows or None,
                "deleted_before": before.size,
                "deleted_after": after.size,
                "rows_deleted": np.setdiff1d(after, before, assume_unique=True).size,
                "rows_undeleted": np.setdiff1d(before, after, assume_unique=True).size,
            }
        )
    return pa.Table.from_pylist(rows, schema=DELETIONS)


def deleted_offsets(snapshot: Snapshot, fragment: Fragment) -> np.ndarray:
    """Return the offsets of the deleted rows, ascending (int64)."""
    count = 0 if fragment.deletion_file is None else confirmed_rows(snapshot, fragment)
    vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, count)
    return np.zeros(0, np.int64) if vector is None else vector.offsets().astype(np.int64)
