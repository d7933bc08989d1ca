"""How much differs between two versions, from their manifests alone.

Rows that came are those of fragments that only ``b`` has, and rows whose deletion was taken back;
rows that went are those of fragments that only ``a`` has, and rows newly deleted. An updated or
moved row does both, so the numbers are bounds unless rows only came or only went; the row level
(``Diff.summary``) is exact.

Limits: deletions are counted as the manifest counts them: where a version was restored in between
and other rows were deleted then, the bounds can be too low. Indices need the index section, which
lies in the manifest file.
Source: message Manifest of lance.table.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment_list import FragmentCounts
from lance_nb.table.diff.ends import Ends
from lance_nb.table.diff.fragments import FragmentMatch, Places
from lance_nb.table.indices import read_indices
from lance_nb.table.scan_plan import live_counts
from lance_nb.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class DiffCounts:
    """Numbers of a diff from ``a`` to ``b``.

    ``rows_in`` and ``rows_out`` are the most that can have been added and removed; with
    ``rows_exact`` they are exactly the rows added and removed. ``rows_deleted`` and
    ``rows_undeleted`` are those of fragments that both have. ``bytes_added`` and ``bytes_removed``
    add up the data files of known size. ``transactions`` counts versions on both sides of the
    common ancestor.
    """

    rows_before: int
    rows_after: int
    rows_in: int
    rows_out: int
    rows_exact: bool
    rows_deleted: int
    rows_undeleted: int
    fragments_added: int
    fragments_removed: int
    fragments_changed: int
    fragments_equal: int
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    fields_added: int
    fields_removed: int
    fields_changed: int
    indices_added: int
    indices_removed: int
    indices_changed: int
    config_added: int
    config_removed: int
    config_changed: int
    transactions: int

    @property
    def is_empty(self) -> bool:
        """Whether the two versions are the same but for their transactions."""
        return not any(
            getattr(self, name)
            for name in self.__slots__
            if name.endswith(("_added", "_removed", "_changed"))
        )


def count_differences(
    ends: Ends, match: FragmentMatch, fields: pa.Table, settings: pa.Table
) -> DiffCounts:
    """Count. ``fields`` and ``settings`` are tables with a column ``change``."""
    a, b = ends.a, ends.b
    counts_a, counts_b = a.manifest.fragments.counts(), b.manifest.fragments.counts()
    has_forked = len({one.side for one in ends.between}) == 2
    deleted, undeleted = _deletions(match, has_forked=has_forked)
    rows_in = int(counts_b.num_rows[match.only_b].sum()) + undeleted
    rows_out = int(counts_a.num_rows[match.only_a].sum()) + deleted
    files_added, bytes_added, files_removed, bytes_removed = _files(a, b, match)
    columns_changed = any(pair.files_differ for pair in match.changed)
    same_count = any(
        pair.deletions_differ and pair.a.num_deleted_rows == pair.b.num_deleted_rows
        for pair in match.changed
    )
    unknown = _unknown(counts_a, match.only_a) or _unknown(counts_b, match.only_b)
    exact = not (rows_in and rows_out) and not (columns_changed or same_count or unknown)
    return DiffCounts(
        int(live_counts(a).sum()), int(live_counts(b).sum()), rows_in, rows_out, exact,
        deleted, undeleted, int(match.only_b.size), int(match.only_a.size), len(match.changed),
        match.num_equal, files_added, files_removed, bytes_added, bytes_removed, *_kinds(fields),
        *_indices(a, b), *_kinds(settings), sum(one.num_versions for one in ends.between),
    )  # fmt: skip


def _kinds(differences: pa.Table) -> tuple[int, int, int]:
    """Count what was added, removed, and changed in any other way."""
    kinds = differences.column("change").to_pylist()
    added, removed = kinds.count("added"), kinds.count("removed")
    return added, removed, len(kinds) - added - removed


def _unknown(counts: FragmentCounts, positions: Ints) -> bool:
    """Tell whether a manifest leaves a count of these fragments to the files."""
    rows, deleted = counts.physical_rows[positions], counts.num_deleted_rows[positions]
    return bool(((rows == 0) | (counts.num_deletion_files[positions] > deleted)).any())


def _deletions(match: FragmentMatch, *, has_forked: bool) -> tuple[int, int]:
    """Count rows newly deleted, and rows that are back; after a fork, the most that can be."""
    deleted = undeleted = 0
    for pair in match.changed:
        before, after = pair.a.num_deleted_rows, pair.b.num_deleted_rows
        if has_forked and pair.deletions_differ:  # each side may have deleted rows of its own
            deleted, undeleted = deleted + after, undeleted + before
        else:
            deleted += max(after - before, 0)
            undeleted += max(before - after, 0)
    return deleted, undeleted


def _files(a: Snapshot, b: Snapshot, match: FragmentMatch) -> tuple[int, int, int, int]:
    """Count files and bytes that came, and those that went."""
    counts_a, counts_b = a.manifest.fragments.counts(), b.manifest.fragments.counts()
    added = int(counts_b.num_data_files[match.only_b].sum())
    removed = int(counts_a.num_data_files[match.only_a].sum())
    bytes_in = int(counts_b.size_bytes[match.only_b].sum())
    bytes_out = int(counts_a.size_bytes[match.only_a].sum())
    places_a, places_b = Places(a.locations), Places(b.locations)
    for pair in match.changed:
        if not pair.files_differ:
            continue
        before = {places_a.of_file(one): one.size_bytes for one in pair.a.files}
        after = {places_b.of_file(one): one.size_bytes for one in pair.b.files}
        added += len(after.keys() - before.keys())
        removed += len(before.keys() - after.keys())
        bytes_in += sum(after[key] for key in after.keys() - before.keys())
        bytes_out += sum(before[key] for key in before.keys() - after.keys())
    return added, bytes_in, removed, bytes_out


def _indices(a: Snapshot, b: Snapshot) -> tuple[int, int, int]:
    """Count indices that came, went, or changed."""
    before = {one.uuid: one for one in read_indices(a)}
    after = {one.uuid: one for one in read_indices(b)}
    changed = [key for key in before.keys() & after.keys() if before[key] != after[key]]
    return len(after.keys() - before.keys()), len(before.keys() - after.keys()), len(changed)
