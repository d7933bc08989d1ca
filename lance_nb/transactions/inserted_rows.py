"""Whether an update added rows that were not there before (an upsert).

A plain update writes as many rows anew as it deletes; what it writes beyond that is new. With
stable row ids, new rows are those that bring no id. Without, an upsert that also deletes rows is
known by the fields that it names: all of them, as upserts of pylance and ours do.

Limits: an update of every column may be taken for an upsert; that costs a retry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_nb.errors import VersionNotFoundError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.manifest import Manifest
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.row_lineage import row_ids_of

LoadVersion = Callable[[int], tuple[Manifest, Any]]


def inserts_rows(update: Update, before: Manifest) -> bool:
    """Tell whether ``update``, made for the version ``before``, may add rows."""
    written = sum(one.physical_rows for one in update.new_fragments)
    if not written or update.update_mode is UpdateMode.REWRITE_COLUMNS:
        return written > 0
    if before.reader_feature_flags & STABLE_ROW_IDS:
        return any(_has_new_rows(one) for one in update.new_fragments)
    if {one.id for one in before.schema.walk()} <= set(update.fields_for_preserving_frag_bitmap):
        return True
    known = before.fragments.with_ids(
        {*update.removed_fragment_ids, *(one.id for one in update.updated_fragments)}
    )
    moved = sum(known[one].num_rows for one in update.removed_fragment_ids if one in known)
    moved += sum(
        _num_deleted(one) - _num_deleted(known[one.id])
        for one in update.updated_fragments
        if one.id in known and one.id not in update.removed_fragment_ids
    )
    return written > moved


def _has_new_rows(fragment: Fragment) -> bool:
    if fragment.row_ids is None:
        return True
    if not isinstance(fragment.row_ids, InlineSequence):
        return False
    return row_ids_of(fragment).num_rows < fragment.physical_rows


def both_insert(
    ours: Operation, read_version: int, theirs: Operation, version: int, load: LoadVersion
) -> bool:
    """Tell whether both are upserts that added rows, ours without saying with which keys.

    Ours was made for ``read_version``, theirs became ``version``.
    """
    if not (isinstance(ours, Update) and isinstance(theirs, Update)):
        return False
    if ours.inserted_rows is not None or not (ours.new_fragments and theirs.new_fragments):
        return False
    try:
        before_ours, _ = load(read_version)
        before_theirs, _ = load(version - 1)
    except VersionNotFoundError:  # cleaned up meanwhile: nothing proves that they do not
        return True
    return inserts_rows(ours, before_ours) and inserts_rows(theirs, before_theirs)


def _num_deleted(fragment: Fragment) -> int:
    return 0 if fragment.deletion_file is None else fragment.deletion_file.num_deleted_rows
