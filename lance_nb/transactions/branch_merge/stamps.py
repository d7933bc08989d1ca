"""Row ids and row versions of merged fragments (datasets with stable row ids).

To the target, what the source did happens in the merge: rows that the source created or updated
since the base count as created or updated in the version that the merge makes. Row ids that both
sides gave to different rows are given anew to those of the source.

Limits: fragments that do not say when their rows were updated stay silent.
Source: row_lineage.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment, InlineSequence, RowDatasetVersionMeta, RowIdMeta
from lance_nb.format.row_id_sequence import RowIdSequence
from lance_nb.format.row_versions import RowVersionSequence
from lance_nb.transactions.branch_merge.ends import Ends
from lance_nb.transactions.branch_merge.matching import RowIds
from lance_nb.transactions.row_lineage import CREATED_UNKNOWN, all_row_ids, versions_of

U64s = npt.NDArray[np.uint64]


def merged_stamps(ends: Ends, base: Fragment, s: Fragment, t: Fragment, revived: Ints) -> Fragment:
    """Return ``t`` with the rows stamped anew that the source has updated, or that live again."""
    if not isinstance(t.last_updated_at_versions, InlineSequence):
        return t
    if s.last_updated_at_versions == base.last_updated_at_versions and not revived.size:
        return t
    before = _updated(base)
    after = _updated(s)
    fresh = after != before if before.size == after.size else np.ones(after.size, np.bool_)
    mine = _updated(t)
    fresh = fresh.copy()
    fresh[revived] = True
    if mine.size != after.size or not fresh.any():
        return t
    mine = np.where(fresh, np.uint64(ends.target.version + 1), mine)
    return replace(t, last_updated_at_version_meta=_recorded(mine))


def _updated(fragment: Fragment) -> U64s:
    found = fragment.last_updated_at_versions
    if not isinstance(found, InlineSequence):
        return np.full(fragment.physical_rows, CREATED_UNKNOWN, np.uint64)
    return versions_of(found, fragment.physical_rows)


def _recorded(versions: U64s) -> RowDatasetVersionMeta:
    return RowDatasetVersionMeta.inline(RowVersionSequence.from_numpy(versions).to_bytes())


@dataclass(frozen=True, slots=True)
class NewIds:
    """Row ids of the source -> those of the outcome. ``next_row_id`` is free afterwards."""

    known: RowIds
    fresh: RowIds
    next_row_id: int

    @property
    def keeps_ids(self) -> bool:
        """Whether every row has the id that it has on the source."""
        same_known = bool((self.known.before == self.known.after).all())
        return same_known and bool((self.fresh.before == self.fresh.after).all())

    def of(self, ids: U64s) -> U64s:
        """Return the ids in the outcome."""
        found, is_known = self.known.of(ids)
        fresh, _ = self.fresh.of(ids)
        return np.where(is_known, found, fresh).astype(np.uint64)


def new_ids(ends: Ends, known: RowIds, added: Sequence[Fragment]) -> NewIds:
    """Choose ids for the rows of the source's new fragments."""
    nothing = RowIds(np.empty(0, np.uint64), np.empty(0, np.uint64))
    shared, first = ends.source_target.row_id, ends.target.manifest.next_row_id
    every = [all_row_ids(one) for one in added if one.row_ids is not None]
    ids = np.unique(np.concatenate([np.empty(0, np.uint64), *every]))
    beyond = int(ids.max()) + 1 if ids.size else 0
    if shared is None:
        return NewIds(known, nothing, max(first, beyond))
    _, is_known = known.of(ids)
    own = ids[~is_known & (ids >= np.uint64(shared))]
    if not own.size or int(own.min()) >= first:
        return NewIds(known, nothing, max(first, beyond if own.size else 0))
    given = np.arange(first, first + own.size, dtype=np.uint64)
    return NewIds(known, RowIds(own, given), first + int(own.size))


class RowHistory:
    """When the target's rows were created and updated, by row id."""

    def __init__(self, fragments: Iterable[Fragment]) -> None:
        ids, created, updated = [], [], []
        for one in fragments:
            if one.row_ids is None:
                continue
            ids.append(all_row_ids(one))
            made = one.created_at_versions
            known = isinstance(made, InlineSequence)
            created.append(
                versions_of(made, one.physical_rows)  # type: ignore[arg-type]
                if known
                else np.full(one.physical_rows, CREATED_UNKNOWN, np.uint64)
            )
            updated.append(_updated(one))
        empty = np.empty(0, np.uint64)
        joined = np.concatenate([empty, *ids])
        order = np.argsort(joined, kind="stable")
        self._ids = joined[order]
        self._created = np.concatenate([empty, *created])[order]
        self._updated = np.concatenate([empty, *updated])[order]

    def stamped(self, one: Fragment, ids: U64s, base_version: int, version: int) -> Fragment:
        """Stamp a fragment of the source; ``ids`` are its row ids in the outcome.

        Rows that the target knows keep when they were created; those that the source has not
        updated since the base also when they were updated.
        """
        at = np.searchsorted(self._ids, ids, side="right") - 1  # the newest place of a row
        is_known = self._ids[at] == ids if self._ids.size else np.zeros(ids.size, np.bool_)
        created = np.full(ids.size, version, np.uint64)
        updated = np.full(ids.size, version, np.uint64)
        if self._ids.size:
            created = np.where(is_known, self._created[at], created)
            untouched = is_known & (_updated(one) <= np.uint64(base_version))
            updated = np.where(untouched, self._updated[at], updated)
        return replace(
            one,
            row_id_meta=RowIdMeta.inline(RowIdSequence.from_numpy(ids).to_bytes()),
            created_at_version_meta=_recorded(created.astype(np.uint64)),
            last_updated_at_version_meta=_recorded(updated.astype(np.uint64)),
        )
