"""Merge fragments changed on two sides: files, deletion vectors, row ids and row versions.

A fragment that only one side changed is as that side has it. Where both did, column data comes from
the side that wrote it, and deleted are the rows that either side deleted, without those that one
side made live again. What a side has newly written is added; what it removed is removed.

Limits: a fragment that one side rewrote (compacted) and the other changed is a conflict: where its
rows are now is recorded nowhere.
Source: message DataFragment of lance.table.
"""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import TOMBSTONE, Fragment
from lance_nb.merging.conflicts import COLUMNS, FRAGMENTS, THEIRS, Findings
from lance_nb.merging.file_locations import (
    FieldFiles,
    FileLocations,
    files_by_field,
    same_deletions,
)
from lance_nb.merging.matching import Match, file_name, merged_stamps
from lance_nb.merging.merge_base import Ends, Side
from lance_nb.merging.schemas import MergedSchema
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of each two of the three versions."""

    base_source: Match
    base_target: Match
    source_target: Match

    def source_to_target(self) -> dict[int, int]:
        """Return fragments of the source that are in the target too, through the base or not."""
        target_ids = self.base_target.fragments
        fragments = dict(self.source_target.fragments)
        for base, source in self.base_source.fragments.items():
            if base in target_ids:
                fragments[source] = target_ids[base]
        return fragments


@dataclass(frozen=True, slots=True)
class Changed:
    """A fragment of the target as it will be; ``deleted`` None: the deletion file stays."""

    fragment: Fragment
    deleted: Ints | None = None


@dataclass(frozen=True, slots=True)
class Lacking:
    """Rows that one side wrote anew while the other wrote columns of their old place."""

    base_id: int
    offsets: Ints
    by_source: bool
    fields: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MergedFragments:
    """What becomes of the target's fragments (by their id), and what comes from the source.

    ``both_gone``: rows of the base (by base fragment id) that both sides took from their place.
    ``revived``: fragments with rows that live again. ``rewritten``: fields whose values changed in
    place, by fragment. ``hidden``: rows of added fragments that are gone here, by their fragment.
    """

    changed: dict[int, Changed] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    added: list[Fragment] = field(default_factory=list)
    hidden: dict[int, Ints] = field(default_factory=dict)
    both_gone: dict[int, Ints] = field(default_factory=dict)
    revived: set[int] = field(default_factory=set)
    rewritten: dict[int, set[int]] = field(default_factory=dict)
    lacking: list[Lacking] = field(default_factory=list)


class FragmentMerge:
    """One merge of fragments."""

    def __init__(
        self,
        ends: Ends,
        matches: Matches,
        schema: MergedSchema,
        places: FileLocations,
        findings: Findings,
        *,
        rewritten: tuple[frozenset[str], frozenset[str]],
    ) -> None:
        self._ends, self._matches, self._places = ends, matches, places
        self._findings = findings
        self._schema = schema
        self._rewritten = rewritten
        ids = schema.fields
        inner = matches.base_source.fields
        self._base_fields = {base_id: ids[s] for base_id, s in inner.items() if s in ids}
        self._base_fields.update(matches.base_target.fields)
        self.out = MergedFragments()

    def run(self) -> MergedFragments:
        """Merge every fragment."""
        source, target = self._ends.source, self._ends.target
        of_base, to_target = (
            self._matches.base_source.fragments,
            self._matches.base_target.fragments,
        )
        for base in self._ends.base.fragments.values():
            s, t = of_base.get(base.id), to_target.get(base.id)
            self._merge(
                base,
                None if s is None else source.fragments[s],
                None if t is None else target.fragments[t],
            )
        paired = set(of_base.values())
        present = self._matches.source_target.fragments
        for fragment in source.fragments.values():
            if fragment.id in paired:
                continue
            if fragment.id in present:
                self._merge_shared(fragment, target.fragments[present[fragment.id]])
            else:
                self.out.added.append(fragment)
        return self.out

    def _merge(self, base: Fragment, s: Fragment | None, t: Fragment | None) -> None:
        if s is None:
            self._gone_on_source(base, t)
            return
        fields = self._written(base, s)
        moved = not same_deletions(self._ends.base, base, self._ends.source, s)
        if not fields and not moved:
            return
        if t is None:
            self._gone_on_target(base, s, fields)
        else:
            self._merge_changed_by_both(base, s, t, fields)

    # --- gone on one side -------------------------------------------------------------------------

    def _gone_on_source(self, base: Fragment, t: Fragment | None) -> None:
        was_rewritten = self._was_rewritten(base, 0)
        if t is None:
            if was_rewritten or self._was_rewritten(base, 1):
                self._report_rewritten(base, "rewritten on one side and gone on the other")
            else:
                self.out.both_gone[base.id] = self._ends.base.live(base)
            return
        live, target_deleted = self._ends.base.live(base), self._ends.target.deleted(t)
        removed = np.intersect1d(live, target_deleted, assume_unique=True)
        fields = self._written_on_target(base, t)
        revived = revived_rows(self._ends.base, base, self._ends.target, t)
        if was_rewritten and (removed.size or fields or revived.size):
            self._report_rewritten(base, "rewritten (compacted) on the source and changed here")
            return
        if removed.size:
            self.out.both_gone[base.id] = removed
        if fields and live.size > removed.size:
            remaining = np.setdiff1d(live, removed, assume_unique=True)
            self.out.lacking.append(Lacking(base.id, remaining, True, tuple(sorted(fields))))
        if revived.size:
            self.out.changed[t.id] = Changed(t, np.union1d(target_deleted, live))
        else:
            self.out.removed.add(t.id)

    def _gone_on_target(self, base: Fragment, s: Fragment, fields: set[int]) -> None:
        if self._was_rewritten(base, 1):
            self._report_rewritten(base, "changed on the source and rewritten (compacted) here")
            return
        live, source_deleted = self._ends.base.live(base), self._ends.source.deleted(s)
        removed = np.intersect1d(live, source_deleted, assume_unique=True)
        if removed.size:
            self.out.both_gone[base.id] = removed
        if fields:
            self.out.lacking.append(Lacking(base.id, live, False, tuple(sorted(fields))))
        if revived_rows(self._ends.base, base, self._ends.source, s).size:
            self.out.added.append(s)
            self.out.hidden[s.id] = live

    def _was_rewritten(self, base: Fragment, side: int) -> bool:
        names = self._rewritten[side]
        return any(file_name(self._ends.base, file) in names for file in base.files)

    def _report_rewritten(self, base: Fragment, change: str) -> None:
        self._findings.report(
            FRAGMENTS,
            f"fragment {base.id} was {change}",
            choices=(),
            remedy="Where its rows went is not recorded: merge the other changes first, with "
            "squash=False or cherry_pick, and compact afterwards",
            fragments=(base.id,),
        )

    # --- on both sides ----------------------------------------------------------------------------

    def _merge_changed_by_both(
        self, base: Fragment, s: Fragment, t: Fragment, fields: set[int]
    ) -> None:
        before = self._ends.base.deleted(base)
        theirs, mine = self._ends.source.deleted(s), self._ends.target.deleted(t)
        s_new = np.setdiff1d(theirs, before, assume_unique=True)
        t_new = np.setdiff1d(mine, before, assume_unique=True)
        deleted_by_both = np.intersect1d(s_new, t_new, assume_unique=True)
        if deleted_by_both.size:
            self.out.both_gone[base.id] = deleted_by_both
        revived = np.intersect1d(
            np.setdiff1d(before, theirs, assume_unique=True), mine, assume_unique=True
        )
        if revived.size:
            self.out.revived.add(t.id)
        deleted = np.setdiff1d(np.union1d(mine, s_new), revived, assume_unique=True)
        self._note_lacking(base, t, fields, s_new=s_new, t_new=t_new)
        taken = self._taken(base, s, t, fields)
        merged = self._with_files(s, t, taken) if taken else t
        is_new = bool(taken) or bool(revived.size)
        stamped = (
            merged_stamps(self._ends, base, s, t=merged, revived=revived) if is_new else merged
        )
        moved = not np.array_equal(deleted, mine)
        if stamped != t or moved:
            self.out.changed[t.id] = Changed(stamped, deleted if moved else None)

    def _merge_shared(self, s: Fragment, t: Fragment) -> None:
        """Merge a fragment that is newer than the base and on both sides: picked or merged."""
        theirs, mine = self._ends.source.deleted(s), self._ends.target.deleted(t)
        deleted = np.union1d(theirs, mine)
        source_files, target_files = self._homes(s), files_by_field(self._ends.target, t)
        fields = {
            field_id
            for field_id, name in source_files.items()
            if target_files.get(field_id) != name
        }
        taken = {
            field_id
            for field_id in fields
            if field_id not in target_files or field_id in self._schema.added
        }
        merged = self._with_files(s, t, taken) if taken else t
        moved = deleted.size > mine.size
        if merged != t or moved:
            self.out.changed[t.id] = Changed(merged, deleted if moved else None)

    def _note_lacking(
        self, base: Fragment, t: Fragment, fields: set[int], s_new: Ints, t_new: Ints
    ) -> None:
        theirs = self._written_on_target(base, t)
        if fields and t_new.size:
            self.out.lacking.append(Lacking(base.id, t_new, False, tuple(sorted(fields))))
        if theirs and s_new.size:
            self.out.lacking.append(Lacking(base.id, s_new, True, tuple(sorted(theirs))))

    def _taken(self, base: Fragment, s: Fragment, t: Fragment, fields: set[int]) -> set[int]:
        """Return the fields whose data the source has written, conflicts decided."""
        before, target_files = self._base_homes(base), files_by_field(self._ends.target, t)
        source_files = self._homes(s)
        taken = {
            field_id for field_id in fields if target_files.get(field_id) != source_files[field_id]
        }
        rivals = {
            field_id for field_id in taken if target_files.get(field_id) != before.get(field_id)
        }
        if rivals:
            names = ", ".join(
                repr(self._schema.schema.path_of(field_id)) for field_id in sorted(rivals)
            )
            text = f"values of column {names} of fragment {base.id} were written on both sides"
            decided = self._findings.report(COLUMNS, text, fragments=(base.id,), fields=rivals)
            if decided != THEIRS:
                taken -= rivals
        for field_id in taken & before.keys():
            self.out.rewritten.setdefault(t.id, set()).add(field_id)
        return taken

    def _with_files(self, s: Fragment, t: Fragment, taken: set[int]) -> Fragment:
        """Take columns from the source's files; the target's old ones become tombstones."""
        files = [
            replace(file, fields=tuple(TOMBSTONE if f in taken else f for f in file.fields))
            for file in t.files
        ]
        for file in s.files:
            fields = tuple(self._schema.fields.get(field_id, TOMBSTONE) for field_id in file.fields)
            if taken.isdisjoint(fields):
                continue
            chosen = tuple(field_id if field_id in taken else TOMBSTONE for field_id in fields)
            files.append(replace(self._places.translated(file), fields=chosen))
        left = (file for file in files if any(number != TOMBSTONE for number in file.fields))
        return replace(t, files=tuple(left))

    # --- where fields are -------------------------------------------------------------------------

    def _written(self, base: Fragment, s: Fragment) -> set[int]:
        before, source_files = self._base_homes(base), self._homes(s)
        field_by_id = self._schema.schema.field_by_id
        return {
            field_id
            for field_id, name in source_files.items()
            if before.get(field_id) != name and field_by_id(field_id) is not None
        }

    def _written_on_target(self, base: Fragment, t: Fragment) -> set[int]:
        before, target_files = self._base_homes(base), files_by_field(self._ends.target, t)
        field_by_id = self._schema.schema.field_by_id
        return {
            field_id
            for field_id, name in target_files.items()
            if before.get(field_id) != name and field_by_id(field_id) is not None
        }

    def _base_homes(self, base: Fragment) -> FieldFiles:
        return files_by_field(self._ends.base, base, self._base_fields)

    def _homes(self, s: Fragment) -> FieldFiles:
        return files_by_field(self._ends.source, s, self._schema.fields)


def revived_rows(base: Side, before: Fragment, side: Side, after: Fragment) -> Ints:
    """Return the offsets of rows that are deleted in the base and live on a side (a revert)."""
    if before.deletion_file is None or same_deletions(base, before, side, after):
        return np.empty(0, np.int64)
    return np.setdiff1d(base.deleted(before), side.deleted(after), assume_unique=True)
