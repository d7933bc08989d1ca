"""The fragments and data files that came, went or changed, in windows: few of many are decoded.

Layout of a table of fragments: ``change``, ``fragment_id``, then rows, deleted rows, files and
bytes before and after, and what differs. Of files: ``change``, ``fragment_id``, ``path``,
``size_bytes``, ``file_version``, ``columns``. Both ascend by fragment.

Limits: deletions are counted as the manifest counts them.
Source: message DataFragment of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.table.diff.ends import Ends
from lance_nb.table.diff.fragments import FileKey, FragmentMatch, Places
from lance_nb.table.snapshot import Snapshot

ADDED, CHANGED, REMOVED = "added", "changed", "removed"
CHANGES = (ADDED, CHANGED, REMOVED)
FRAGMENTS = pa.schema([
    ("change", pa.string()), ("fragment_id", pa.uint64()), ("rows_before", pa.uint64()),
    ("rows_after", pa.uint64()), ("deleted_before", pa.uint64()), ("deleted_after", pa.uint64()),
    ("files_before", pa.uint32()), ("files_after", pa.uint32()), ("bytes_before", pa.uint64()),
    ("bytes_after", pa.uint64()), ("files_differ", pa.bool_()), ("deletions_differ", pa.bool_()),
])  # fmt: skip
FILES = pa.schema([
    ("change", pa.string()), ("fragment_id", pa.uint64()), ("path", pa.string()),
    ("size_bytes", pa.uint64()), ("file_version", pa.string()), ("columns", pa.list_(pa.string())),
])  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FragmentChanges:
    """The fragments that differ, ascending by id; nothing of them is decoded yet.

    ``kinds`` are positions in ``CHANGES``; ``places`` are those in the list of ``b``, of the pairs
    that changed, or in the list of ``a``.
    """

    ends: Ends
    match: FragmentMatch
    kinds: Ints
    places: Ints

    @property
    def num_fragments(self) -> int:
        """How many."""
        return int(self.kinds.size)

    def rows(self, start: int, stop: int | None) -> Iterator[Row]:
        """Yield some of them as rows of a table, up to the last where ``stop`` is None."""
        for kind, before, after in self._fragments(start, stop):
            row: Row = {"change": kind, "fragment_id": (before or after).id}  # type: ignore[union-attr]
            row |= _side("before", before) | _side("after", after)
            yield row

    def table(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Return some of them, all by default."""
        rows = list(self.rows(start, stop))
        for row, kind, place in zip(
            rows, self.kinds[start:stop].tolist(), self.places[start:stop].tolist(), strict=True
        ):
            if CHANGES[kind] == CHANGED:
                pair = self.match.changed[place]
                row["files_differ"] = pair.files_differ
                row["deletions_differ"] = pair.deletions_differ
        return pa.Table.from_pylist(rows, schema=FRAGMENTS)

    def files(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Return the data files that came or went with some of them."""
        before: dict[FileKey, Row] = {}
        after: dict[FileKey, Row] = {}
        for _, one, other in self._fragments(start, stop):
            before |= _file_rows(REMOVED, self.ends.a, one)
            after |= _file_rows(ADDED, self.ends.b, other)
        rows = [row for key, row in after.items() if key not in before]
        rows += [row for key, row in before.items() if key not in after]
        rows.sort(key=lambda row: (row["fragment_id"], row["change"]))
        return pa.Table.from_pylist(rows, schema=FILES)

    def _fragments(
        self, start: int, stop: int | None
    ) -> Iterator[tuple[str, Fragment | None, Fragment | None]]:
        """Decode some of them: the kind of change, as it was, as it is."""
        a, b = self.ends.a.manifest.fragments, self.ends.b.manifest.fragments
        for kind, place in zip(
            self.kinds[start:stop].tolist(), self.places[start:stop].tolist(), strict=True
        ):
            if CHANGES[kind] == ADDED:
                yield ADDED, None, b[place]
            elif CHANGES[kind] == REMOVED:
                yield REMOVED, a[place], None
            else:
                yield CHANGED, self.match.changed[place].a, self.match.changed[place].b


def fragment_changes(
    ends: Ends, match: FragmentMatch, kinds: Sequence[str] = CHANGES
) -> FragmentChanges:
    """List the fragments that differ; of some kinds only."""
    ids_a, ids_b = (one.manifest.fragments.counts().ids for one in (ends.a, ends.b))
    pairs = np.array([pair.b.id for pair in match.changed], np.int64)
    found = (
        (ids_b[match.only_b], match.only_b),
        (pairs, np.arange(pairs.size)),
        (ids_a[match.only_a], match.only_a),
    )
    parts = [
        (part_ids.astype(np.int64), np.full(part_ids.size, at, np.int64), places.astype(np.int64))
        for at, (part_ids, places) in enumerate(found)
        if CHANGES[at] in kinds
    ]
    none = np.zeros(0, np.int64)
    ids, codes, places = (np.concatenate([none, *column]) for column in zip(*parts, strict=True))
    order = np.lexsort((codes, ids))
    return FragmentChanges(ends, match, codes[order], places[order])


def _side(when: str, fragment: Fragment | None) -> Row:
    if fragment is None:
        return {}
    return {
        f"rows_{when}": max(fragment.num_rows, 0),
        f"deleted_{when}": fragment.num_deleted_rows,
        f"files_{when}": len(fragment.files),
        f"bytes_{when}": sum(file.size_bytes for file in fragment.files),
    }


def _file_rows(change: str, snapshot: Snapshot, fragment: Fragment | None) -> dict[FileKey, Row]:
    if fragment is None:
        return {}
    schema, places = snapshot.manifest.schema, Places(snapshot.locations)
    found = {}
    for file in fragment.files:
        names = [schema.path_of(field_id) for field_id in file.fields]
        found[places.of_file(file)] = {
            "change": change,
            "fragment_id": fragment.id,
            "path": file.path,
            "size_bytes": file.size_bytes or None,
            "file_version": f"{file.file_version[0]}.{file.file_version[1]}",
            "columns": [name for name in names if name is not None],
        }
    return found
