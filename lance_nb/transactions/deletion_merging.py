"""Merge our deletions with those that others have committed in the same fragments.

Possible when the fragment is still there with the same data files, we know which rows we delete,
and nobody else deleted one of them. The union of both becomes a new deletion file; a fragment that
has no row left is removed.

Source: specification of transactions, "Rebase Mechanism"; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFile, Fragment
from lance_nb.format.manifest import Manifest
from lance_nb.transactions.conflict_rules import enumerate_ids
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.update import Update, UpdateMode


@dataclass(frozen=True, slots=True)
class DeletionMerge:
    """See ``RebaseContext``."""

    current: Manifest
    read_deletions: Callable[[Fragment], DeletionVector]
    write_deletions: Callable[[int, int, DeletionVector], DeletionFile]
    affected_rows: Mapping[int, DeletionVector] | None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the deletions of a fragment cannot be merged."""

    fragment_id: int
    text: str


def merge_deletions(
    ours: Delete | Update, fragment_ids: Iterable[int], merge: DeletionMerge
) -> tuple[Delete | Update, Problem | None]:
    """Return our operation with merged deletions in the given fragments, or the first problem.

    No file is written unless all of them can be merged.
    """
    wanted = sorted(fragment_ids)
    now = merge.current.fragments.with_ids(wanted)
    mine = {one.id: one for one in ours.updated_fragments}
    vectors = {}
    for fragment_id in wanted:
        found = _merged_vector(ours, mine[fragment_id], now.get(fragment_id), merge)
        if isinstance(found, str):
            return ours, Problem(fragment_id, f"fragment {fragment_id}: {found}")
        vectors[fragment_id] = found
    gone = [one for one in wanted if len(vectors[one]) == now[one].physical_rows]
    for fragment_id in wanted:
        if fragment_id not in gone:
            version = merge.current.version
            file = merge.write_deletions(fragment_id, version, vectors[fragment_id])
            mine[fragment_id] = replace(now[fragment_id], deletion_file=file)
    kept = tuple(one for key, one in mine.items() if key not in gone)
    if isinstance(ours, Delete):
        removed = (*ours.deleted_fragment_ids, *gone)
        return replace(ours, updated_fragments=kept, deleted_fragment_ids=removed), None
    removed = (*ours.removed_fragment_ids, *gone)
    return replace(ours, updated_fragments=kept, removed_fragment_ids=removed), None


def _merged_vector(
    ours: Delete | Update, mine: Fragment, now: Fragment | None, merge: DeletionMerge
) -> DeletionVector | str:
    """Return all deleted rows of the fragment, or why they cannot be merged."""
    if now is None:
        return "it no longer exists"
    if isinstance(ours, Update) and ours.update_mode is UpdateMode.REWRITE_COLUMNS:
        return "ours rewrites its columns, and rows in it were changed"
    if _files(mine) != _files(now):
        return "its data files have changed"
    rows = (merge.affected_rows or {}).get(mine.id)
    if rows is None:
        return "which of its rows ours changes is not known"
    deleted = merge.read_deletions(now)
    offsets = rows.offsets()
    both = offsets[deleted.contains(offsets)]
    if len(both):
        return f"both change {enumerate_ids('row', both.tolist())}"
    return deleted | rows


def _files(fragment: Fragment) -> list[tuple[object, ...]]:
    return [(one.path, one.fields, one.column_indices, one.base_id) for one in fragment.files]
