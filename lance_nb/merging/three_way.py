"""Merge three versions: what the source changed since the base is changed in the target.

Nothing is written here: deletion vectors are pending, files to be copied are listed.

Limits: see the modules that merge schemas, fragments, rows and indices.
Source: none; Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.merge_record import LEFT_OUT, without_marks
from lance_nb.merging.choices import CellChoice
from lance_nb.merging.conflicts import FRAGMENTS, Findings, MergeConflict
from lance_nb.merging.file_locations import FileLocations, translated_files
from lance_nb.merging.fragments import (
    Changed,
    FragmentMerge,
    Matches,
    MergedFragments,
)
from lance_nb.merging.matching import (
    FieldFates,
    Match,
    NewIds,
    RowHistory,
    field_fates,
    match,
    match_rows,
    new_ids,
    without_fields,
)
from lance_nb.merging.merge_base import Ends, History, Renumbered, Shared, Side
from lance_nb.merging.outcome import (
    IndexFacts,
    Outcome,
    PendingRows,
    check_nulls,
    merge_indices,
)
from lance_nb.merging.row_merge import (
    NEW,
    NO_CONFLICTS,
    ConflictingRows,
    RowMerge,
    rewritten_files,
)
from lance_nb.merging.row_replay import (
    ConflictCells,
    NoIdentityError,
    Replayed,
    RowReplay,
)
from lance_nb.merging.schemas import MergedSchema, SchemaMerge, merge_maps
from lance_nb.transactions.conflict_rules import enumerate_ids
from lance_nb.transactions.deletion_files import PendingDeletions
from lance_nb.transactions.row_lineage import all_row_ids
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class MergeChoices:
    """How to merge. ``keys``: columns that identify a row. ``inherited``: see FileLocations.

    ``resolve``: choices for cells in conflict; None: whole rows are decided alike.
    ``has_moved``: an earlier merge wrote rows anew, and files do not say where they went.
    ``by_content``: whether source and target each restored a version, or did something unknown.
    """

    keys: tuple[str, ...] = ()
    copies_files: bool = False
    inherited: tuple[str, ...] = ()
    resolve: tuple[CellChoice, ...] | None = None
    has_moved: bool = False
    by_content: tuple[bool, ...] = (False, False)

    @property
    def by_value(self) -> bool:
        """Whether files do not say which row went where."""
        return self.has_moved or any(self.by_content)


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome, and the rows that both sides changed.

    ``cells``: the cells that both changed, where rows were merged by value (row_replay.py).
    ``renumbered``: see ``MergeRecord.fields``.
    """

    outcome: Outcome
    conflicting_rows: ConflictingRows = NO_CONFLICTS
    cells: ConflictCells | None = None
    renumbered: Mapping[int, int] = field(default_factory=dict)


def merge_versions(ends: Ends, choices: MergeChoices, findings: Findings) -> Merged:
    """Merge; conflicts go to ``findings``. Raises NotSupportedError, CorruptFileError."""
    _check_alike(ends)
    matches, doubtful = _matches(ends)
    schema = SchemaMerge(ends, findings).run(
        matches.base_source, matches.base_target, matches.source_target.fields
    )
    places = FileLocations(ends.source, ends.target, choices.copies_files, choices.inherited)
    rewritten = (
        rewritten_files(ends.source, ends.source_history),
        rewritten_files(ends.target, ends.target_history),
    )
    replay = RowReplay(ends, matches, schema, keys=choices.keys, choices=choices.resolve)
    nothing = MergedFragments()
    if choices.resolve is not None:
        if choices.by_value:
            _check_names(doubtful)
        return _replayed(
            _Builder(ends, matches, schema, places=places, fragments=nothing), replay, findings
        )
    by_files = Findings(findings.on_conflict)
    fragments = FragmentMerge(
        ends, matches, schema, places=places, findings=by_files, rewritten=rewritten
    ).run()
    decided = RowMerge(ends, matches, choices.keys, by_files).run(fragments)
    moved = [conflict for conflict in by_files.conflicts if conflict.kind == FRAGMENTS]
    # By files, a row that was written anew counts as changed although its values are as they were,
    # and has no values in columns that the other side added.
    if moved or choices.by_value or any(conflict.num_rows for conflict in by_files.conflicts):
        try:
            if choices.by_value:
                _check_names(doubtful)
            replay.check()
            places = FileLocations(
                ends.source, ends.target, choices.copies_files, choices.inherited
            )
            return _replayed(
                _Builder(ends, matches, schema, places=places, fragments=nothing), replay, findings
            )
        except (InvalidInputError, NotSupportedError) as error:
            # What only one side took from its place is known by files, wherever it went.
            is_shared = bool(fragments.both_gone or fragments.lacking)
            is_lost = choices.has_moved or (
                is_shared and _lacks_fragments(ends, choices.by_content)
            )
            if moved or is_lost:
                other_conflicts = [
                    conflict for conflict in by_files.conflicts if conflict.kind != FRAGMENTS
                ]
                by_files.conflicts = other_conflicts
                _report_moved(moved, error, by_files, choices)
    findings.extend(by_files)
    builder = _Builder(ends, matches, schema, places=places, fragments=fragments)
    outcome = builder.outcome(decided.source, decided.target, findings)
    builder.check_nulls(outcome, findings)
    return Merged(outcome, decided.rows, None, builder.renumbered)


def _check_names(doubtful: Sequence[str]) -> None:
    """Refuse columns of the base of which it is not known what became of them.

    Raises InvalidInputError.
    """
    if doubtful:
        raise InvalidInputError(
            f"column {doubtful[0]!r} was renamed or dropped, and after an earlier merge that wrote "
            "rows anew, a restore or a clean-up nothing says what became of it: give it its "
            "old name on both branches, then merge"
        )


def _lacks_fragments(ends: Ends, by_content: Sequence[bool]) -> bool:
    """Return whether rows may have moved on a side whose files do not say where to.

    While it has every fragment of the base, a row is where the base has it, or deleted.
    """
    matched = zip((ends.source, ends.target), by_content, strict=True)
    return any(
        is_unknown and not ends.base.fragments.keys() <= side.fragments.keys()
        for side, is_unknown in matched
    )


def _report_moved(
    moved: Sequence[MergeConflict], error: LanceError, findings: Findings, choices: MergeChoices
) -> None:
    """Report once that compacted rows cannot be found again."""
    numbers = sorted({number for conflict in moved for number in conflict.fragments})
    text = "an earlier merge wrote rows anew, which cannot be found again"
    if not choices.has_moved:
        text = (
            "a version was restored, or transactions were removed by a clean-up, so where rows "
            "went is not recorded"
        )
    if numbers:
        text = (
            f"rows of {enumerate_ids('fragment', numbers)} were compacted on one side and changed "
            "on the other, and cannot be found again"
        )
    findings.report(
        FRAGMENTS,
        text,
        choices=(),
        remedy=str(error)[:1].upper() + str(error)[1:],
        fragments=numbers,
        needs_key=isinstance(error, NoIdentityError),
    )


def _replayed(builder: _Builder, replay: RowReplay, findings: Findings) -> Merged:
    """Merge values, and write the rows that change as one new fragment of the target."""
    rows = replay.run(findings)
    if builder.is_compacted:
        findings.note("a side was compacted: rows are merged by value, into a new fragment")
    outcome = builder.outcome({}, rows.dropped, findings)
    if rows.rows.num_rows:
        outcome = _with_rows(outcome, rows)
    builder.check_nulls(outcome, findings)
    return Merged(outcome, rows.conflicts, rows.cells, builder.renumbered)


def _with_rows(outcome: Outcome, rows: Replayed) -> Outcome:
    target = outcome.target
    number = target.max_fragment_id + 1
    fragment = Fragment(number, [], rows.rows.num_rows)
    next_row_id = outcome.next_row_id
    if rows.row_ids is not None:
        ids, fresh = rows.row_ids.copy(), rows.row_ids == NEW
        ids[fresh] = np.arange(next_row_id, next_row_id + int(fresh.sum()), dtype=np.uint64)
        next_row_id += int(fresh.sum())
        history = RowHistory(target.fragments.values())
        fragment = history.stamped(fragment, ids, 0, target.version + 1)
    return replace(
        outcome,
        added=(*outcome.added, fragment),
        next_row_id=next_row_id,
        new_rows=PendingRows(number, rows.rows),
    )


def _matches(ends: Ends) -> tuple[Matches, tuple[str, ...]]:
    """Match the three versions; a field whose id was dropped and given again is another field.

    Return also the columns of the base of which it is not known what became of them.
    """
    source = _Matched.of(
        ends.base,
        ends.source,
        ends.base_source,
        history=ends.source_history,
        merge=ends.source_renumbered,
    )
    target = _Matched.of(
        ends.base,
        ends.target,
        ends.base_target,
        history=ends.target_history,
        merge=ends.target_renumbered,
    )
    nothing: frozenset[int] = frozenset()
    between = match(ends.source, ends.target, ends.source_target)
    matches = Matches(
        without_fields(source.match, nothing, source.fates.reborn),
        without_fields(target.match, nothing, target.fates.reborn),
        without_fields(between, source.fates.reborn, target.fates.reborn),
    )
    return matches, (*source.doubtful, *target.doubtful)


@dataclass(frozen=True, slots=True)
class _Matched:
    """The match of the base with a side; ``doubtful`` are columns whose match is not known."""

    match: Match
    fates: FieldFates
    doubtful: tuple[str, ...]

    @classmethod
    def of(
        cls, base: Side, side: Side, shared: Shared, history: History, merge: Renumbered | None
    ) -> _Matched:
        matched = match(base, side, shared, by_path=True, renumbered=merge)
        fates = field_fates(base, side, history, shared=shared, matched=matched, renumbered=merge)
        bases = {side_id: base_id for base_id, side_id in matched.fields.items()}
        lost = {bases[field_id] for field_id in fates.doubtful}
        if merge is None:
            lost |= _known_by_name_alone(base, side, shared, matched)
        schema = base.manifest.schema
        return cls(
            matched, fates, tuple(schema.path_of(field_id) or "" for field_id in sorted(lost))
        )


def _known_by_name_alone(base: Side, side: Side, shared: Shared, matched: Match) -> set[int]:
    """Return fields of the base that a side may hold under another name.

    A merge by value gives a column of the source an id of the target's. Where the merge has not
    recorded it, the two are known to be one by their name alone.
    """
    matched_ids = set(matched.fields.values())
    types = {
        field.logical_type
        for field in side.manifest.schema.walk()
        if field.id not in matched_ids and not shared.has_field(field.id)
    }
    return {
        field.id
        for field in base.manifest.schema.walk()
        if field.id not in matched.fields
        and not shared.has_field(field.id)
        and field.logical_type in types
    }


def _check_alike(ends: Ends) -> None:
    if len({side.has_row_ids for side in (ends.base, ends.source, ends.target)}) > 1:
        raise NotSupportedError(
            "one side has stable row ids and the other has not: such branches cannot be merged"
        )


class _Builder:
    """Builds the outcome of a merge."""

    def __init__(
        self,
        ends: Ends,
        matches: Matches,
        schema: MergedSchema,
        places: FileLocations,
        fragments: MergedFragments,
    ) -> None:
        self._ends, self._matches, self._schema = ends, matches, schema
        self._places, self._fragments = places, fragments
        config = ends.target.snapshot.manifest.config
        self._pending = PendingDeletions(checksums=wants_checksums(config))
        self._removed = set(fragments.removed)
        self._numbers: dict[int, int] = {}

    def outcome(
        self,
        drop_source: Mapping[int, Ints],
        drop_target: Mapping[int, Ints],
        findings: Findings,
    ) -> Outcome:
        ends = self._ends
        rows = match_rows(ends.source, ends.target, self._matches.source_to_target())
        ids = new_ids(ends, rows, self._fragments.added)
        added = self._added(drop_source, ids)
        changed = self._changed(self._dropped(drop_source, drop_target))
        facts = IndexFacts(
            self._same_fragments(changed),
            self._schema.fields,
            self._fragments.rewritten,
            revived=frozenset(self._fragments.revived | self._brought_back()),
            keeps_row_ids=ids.keeps_ids,
        )
        now, base, source = (side.manifest for side in (ends.target, ends.base, ends.source))
        config = merge_maps(
            without_marks(base.config),
            without_marks(source.config),
            now.config,
            subject="config key",
            findings=findings,
        )
        metadata = merge_maps(
            base.table_metadata, source.table_metadata, now.table_metadata,
            subject="table metadata key", findings=findings,
        )  # fmt: skip
        indices = merge_indices(ends, facts, self._places, findings)
        return Outcome(
            target=ends.target,
            schema=self._schema.schema,
            config=config,
            table_metadata=metadata,
            bases=self._places.needed(),
            changed=changed,
            removed=frozenset(self._removed),
            added=added,
            indices=indices,
            next_row_id=ids.next_row_id,
            rewritten=self._fragments.rewritten,
            revived=facts.revived,
            pending=self._pending,
            copies=tuple(self._places.copies.values()),
            foreign_bases=self._places.foreign(),
        )

    @property
    def renumbered(self) -> dict[int, int]:
        """The fields of the source that have another id in the outcome, or are not in it."""
        ids = {field.id for field in self._schema.schema.walk()}
        places = {
            field.id: self._schema.fields.get(field.id, LEFT_OUT)
            for field in self._ends.source.manifest.schema.walk()
        }
        places = {
            field_id: place if place in ids else LEFT_OUT for field_id, place in places.items()
        }
        return {field_id: place for field_id, place in places.items() if place != field_id}

    @property
    def is_compacted(self) -> bool:
        """Whether a side was compacted since the base."""
        histories = (self._ends.source_history, self._ends.target_history)
        return any("rewrite" in history.arms() for history in histories)

    def check_nulls(self, outcome: Outcome, findings: Findings) -> None:
        """Report columns that must not be null and have no value in some row."""
        target_ids = self._matches.source_to_target().values()
        check_nulls(outcome, self._schema, target_ids, findings)

    # --- fragments --------------------------------------------------------------------------------

    def _dropped(
        self, drop_source: Mapping[int, Ints], drop_target: Mapping[int, Ints]
    ) -> dict[int, Ints]:
        """Return rows to delete by target fragment; the source's lie in fragments of both sides."""
        dropped = dict(drop_target)
        to_target = self._matches.source_to_target()
        for number, offsets in drop_source.items():
            if number in to_target:
                target_number = to_target[number]
                dropped[target_number] = np.union1d(dropped.get(target_number, offsets), offsets)
        return dropped

    def _changed(self, drop: Mapping[int, Ints]) -> dict[int, Fragment]:
        target = self._ends.target
        plans = dict(self._fragments.changed)
        for number, offsets in drop.items():
            change = plans.get(number, Changed(target.fragments[number]))
            before = target.deleted(target.fragments[number])
            deleted = before if change.deleted is None else change.deleted
            plans[number] = Changed(change.fragment, np.union1d(deleted, offsets))
        changed = {}
        for number, plan in plans.items():
            fragment = self._with_deletions(plan.fragment, plan.deleted)
            if fragment is None:
                self._removed.add(number)
            elif number not in self._removed:
                changed[number] = fragment
        return changed

    def _with_deletions(
        self, fragment: Fragment, deleted: Ints | None, num_rows: int | None = None
    ) -> Fragment | None:
        """Give a fragment a new deletion vector; None if no row is left."""
        if deleted is None:
            return fragment
        if not deleted.size:
            return replace(fragment, deletion_file=None)
        num_rows = self._ends.target.num_rows(fragment) if num_rows is None else num_rows
        if deleted.size == num_rows:
            return None
        mask = np.zeros(num_rows, np.bool_)
        mask[deleted] = True
        vector = DeletionVector.from_mask(mask)
        file = self._pending.add(fragment.id, self._ends.target.version, vector)
        return replace(fragment, deletion_file=file)

    def _added(self, drop: Mapping[int, Ints], ids: NewIds) -> tuple[Fragment, ...]:
        ends = self._ends
        history = RowHistory(ends.target.fragments.values()) if ends.source.has_row_ids else None
        remaining = self._left(drop)
        self._numbers = self._choose_ids([fragment for fragment, _ in remaining])
        fragments = []
        for fragment, deleted in remaining:
            files = translated_files(fragment, self._schema.fields, self._places)
            new = replace(fragment, id=self._numbers[fragment.id], files=files, deletion_file=None)
            if history is not None:
                new = history.stamped(
                    new,
                    ids.of(all_row_ids(fragment)),
                    ends.untouched_until,
                    ends.target.version + 1,
                )
            num_rows = ends.source.num_rows(fragment) if deleted.size else None
            finished = self._with_deletions(new, deleted, num_rows)
            if finished is not None:
                fragments.append(finished)
        return tuple(sorted(fragments, key=lambda fragment: fragment.id))

    def _left(self, drop: Mapping[int, Ints]) -> list[tuple[Fragment, Ints]]:
        """Return the source's new fragments that have rows left, with their deleted rows."""
        source, remaining = self._ends.source, []
        for fragment in self._fragments.added:
            deleted = source.deleted(fragment)
            for dropped in (drop.get(fragment.id), self._fragments.hidden.get(fragment.id)):
                if dropped is not None:
                    deleted = np.union1d(deleted, dropped)
            if not deleted.size or deleted.size < source.num_rows(fragment):
                remaining.append((fragment, deleted))
        return remaining

    def _choose_ids(self, added: Sequence[Fragment]) -> dict[int, int]:
        """Keep ids that are unused here (or that come back on one line), else give new ones."""
        numbers = [fragment.id for fragment in added]
        highest = self._ends.target.max_fragment_id
        if self._ends.source_target.fragment_id is None or min(numbers, default=0) > highest:
            return {number: number for number in numbers}
        return {number: highest + 1 + position for position, number in enumerate(sorted(numbers))}

    def _brought_back(self) -> set[int]:
        """Return fragments that come back under the id they had."""
        if self._ends.source_target.fragment_id is not None:
            return set()
        return set(self._numbers.values())

    def _same_fragments(self, changed: Mapping[int, Fragment]) -> dict[int, int]:
        """Return fragments of the source that are in the outcome with the source's data."""
        target, source = self._ends.target, self._ends.source
        numbers = dict(self._numbers)
        for source_number, target_number in self._matches.source_to_target().items():
            now = changed.get(target_number, target.fragments[target_number])
            mine = _columns(source.fragments[source_number].files, self._schema.fields)
            if target_number not in self._removed and mine <= _columns(now.files):
                numbers[source_number] = target_number
        return numbers


def _columns(
    files: Iterable[DataFile], fields: Mapping[int, int] | None = None
) -> set[tuple[str, int]]:
    """Return (file, field) for every column, by the ids of the outcome."""
    ids = ((file.path, field) for file in files for field in file.fields if field >= 0)
    if fields is None:
        return set(ids)
    return {(path, fields[field]) for path, field in ids if field in fields}
