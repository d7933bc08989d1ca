"""Whether an update added rows that were not there before (an upsert).

A plain update writes as many rows anew as it deletes; what it writes beyond that is new.

Limits: counts only. With stable row ids the row ids would tell as well; counts tell always.
"""

from __future__ import annotations

from lance_nb.format.fragment import Fragment
from lance_nb.format.manifest import Manifest
from lance_nb.transactions.operations.update import Update, UpdateMode


def inserts_rows(update: Update, before: Manifest) -> bool:
    """Tell whether ``update``, made for the version ``before``, adds rows."""
    written = sum(one.physical_rows for one in update.new_fragments)
    if update.update_mode is UpdateMode.REWRITE_COLUMNS:
        return written > 0
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


def _num_deleted(fragment: Fragment) -> int:
    return 0 if fragment.deletion_file is None else fragment.deletion_file.num_deleted_rows
