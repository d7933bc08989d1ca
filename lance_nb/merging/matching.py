"""Match fragments, fields and rows of one version with those of another.

Where two versions share their numbers, a number identifies. Elsewhere a fragment is known by its
data files: their names are unique, also after they were copied. A field is known by the column of a
file that holds it, and if no file does, by its path. A row is known by its place in the fragment.

For datasets with stable row ids, merged fragments get row ids and row versions as the target sees
the merge: rows that the source created or updated since the base count as created or updated in the
version that the merge makes. Row ids that both sides gave to different rows are given anew to those
of the source.

Limits: names shorter than ``UNIQUE_NAME`` are not unique: then the folder has to be the same too.
Fragments without update versions get none.
Source: messages DataFragment and DataFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.errors import NotFoundError
from lance_nb.format.fragment import (
    DataFile,
    Fragment,
    InlineSequence,
    RowDatasetVersionMeta,
    RowIdMeta,
)
from lance_nb.format.merge_record import LEFT_OUT, REVERT
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.format.schema import Schema
from lance_nb.merging.merge_base import (
    Ends,
    History,
    Renumbered,
    Shared,
    Side,
    Step,
)
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.row_lineage import CREATED_UNKNOWN, all_row_ids, versions_of
from lance_nb.value_classes import dataclass

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
    fresh[revived] = True
    if mine.size != after.size or not fresh.any():
        return t
    mine = np.where(fresh, np.uint64(ends.target.version + 1), mine)
    return replace(t, last_updated_at_version_meta=_recorded(mine))


def _updated(fragment: Fragment) -> U64s:
    updated_versions = fragment.last_updated_at_versions
    if not isinstance(updated_versions, InlineSequence):
        return np.full(fragment.physical_rows, CREATED_UNKNOWN, np.uint64)
    return versions_of(updated_versions, fragment.physical_rows)


def _recorded(versions: U64s) -> RowDatasetVersionMeta:
    return RowDatasetVersionMeta.inline(RowVersionSequence.from_numpy(versions).to_bytes())


@dataclass(frozen=True, slots=True)
class NewIds:
    """Row ids of the source -> those of the outcome. ``next_row_id`` is free afterwards."""

    matched: RowIds
    fresh: RowIds
    next_row_id: int

    @property
    def keeps_ids(self) -> bool:
        """Whether every row has the id that it has on the source."""
        same_known = bool((self.matched.before == self.matched.after).all())
        return same_known and bool((self.fresh.before == self.fresh.after).all())

    def of(self, ids: U64s) -> U64s:
        """Return the ids in the outcome."""
        matched_ids, is_known = self.matched.of(ids)
        fresh, _ = self.fresh.of(ids)
        return np.where(is_known, matched_ids, fresh).astype(np.uint64)


def new_ids(ends: Ends, known_ids: RowIds, added: Sequence[Fragment]) -> NewIds:
    """Choose ids for the rows of the source's new fragments."""
    nothing = RowIds(np.empty(0, np.uint64), np.empty(0, np.uint64))
    shared, first = ends.source_target.row_id, ends.target.manifest.next_row_id
    every = [all_row_ids(fragment) for fragment in added if fragment.row_ids is not None]
    ids = np.unique(np.concatenate([np.empty(0, np.uint64), *every]))
    beyond = int(ids.max()) + 1 if ids.size else 0
    if shared is None:
        return NewIds(known_ids, nothing, max(first, beyond))
    _, is_known = known_ids.of(ids)
    own = ids[~is_known & (ids >= np.uint64(shared))]
    if not own.size or int(own.min()) >= first:
        return NewIds(known_ids, nothing, max(first, beyond if own.size else 0))
    assigned = np.arange(first, first + own.size, dtype=np.uint64)
    return NewIds(known_ids, RowIds(own, assigned), first + int(own.size))


class RowHistory:
    """When the target's rows were created and updated, by row id."""

    def __init__(self, fragments: Iterable[Fragment]) -> None:
        ids, created, updated = [], [], []
        for fragment in fragments:
            if fragment.row_ids is None:
                continue
            ids.append(all_row_ids(fragment))
            created_versions = fragment.created_at_versions
            is_inline = isinstance(created_versions, InlineSequence)
            created.append(
                versions_of(created_versions, fragment.physical_rows)  # type: ignore[arg-type]
                if is_inline
                else np.full(fragment.physical_rows, CREATED_UNKNOWN, np.uint64)
            )
            updated.append(_updated(fragment))
        empty = np.empty(0, np.uint64)
        joined = np.concatenate([empty, *ids])
        order = np.argsort(joined, kind="stable")
        self._ids = joined[order]
        self._created = np.concatenate([empty, *created])[order]
        self._updated = np.concatenate([empty, *updated])[order]

    def stamped(self, fragment: Fragment, ids: U64s, base_version: int, version: int) -> Fragment:
        """Stamp a fragment of the source; ``ids`` are its row ids in the outcome.

        Rows that the target knows keep when they were created; those that the source has not
        updated since the base also when they were updated.
        """
        positions = np.searchsorted(self._ids, ids, side="right") - 1  # the newest place of a row
        is_known = self._ids[positions] == ids if self._ids.size else np.zeros(ids.size, np.bool_)
        created = np.full(ids.size, version, np.uint64)
        updated = np.full(ids.size, version, np.uint64)
        if self._ids.size:
            created = np.where(is_known, self._created[positions], created)
            untouched = is_known & (_updated(fragment) <= np.uint64(base_version))
            updated = np.where(untouched, self._updated[positions], updated)
        return replace(
            fragment,
            row_id_meta=RowIdMeta.inline(RowIdSegments.from_numpy(ids).to_bytes()),
            created_at_version_meta=_recorded(created.astype(np.uint64)),
            last_updated_at_version_meta=_recorded(updated.astype(np.uint64)),
        )


UNIQUE_NAME = 32


def file_name(side: Side, file: DataFile) -> str:
    """Return what a data file is known by."""
    if len(file.path) >= UNIQUE_NAME:
        return file.path
    return "\n".join(side.places.of_file(file))


@dataclass(frozen=True, slots=True)
class Match:
    """Ids of one version -> ids of another, for what is in both."""

    fragments: Mapping[int, int]
    fields: Mapping[int, int]


def match(
    side: Side,
    other: Side,
    shared: Shared,
    *,
    by_path: bool = False,
    renumbered: Renumbered | None = None,
) -> Match:
    """Match the fragments and fields of ``side`` with those of ``other``.

    ``by_path``: fields that no file shows are matched by their path and type. ``renumbered``: the
    merge that brought ``side`` to ``other``, which says what became of its fields.
    """
    fragments = _match_fragments(side, other, shared)
    if renumbered is not None:
        return Match(fragments, _match_renumbered(side, other, shared, renumbered))
    return Match(fragments, _match_fields(side, other, shared, fragments, by_path=by_path))


def _match_renumbered(
    side: Side, other: Side, shared: Shared, renumbered: Renumbered
) -> dict[int, int]:
    """Match fields by the record of a merge, or by the id from before the branches parted.

    A restore of a version before the merge brings a field back under that id.
    """
    ids = {field.id for field in other.manifest.schema.walk()}
    fields = {}
    for field in side.manifest.schema.walk():
        place = renumbered.after(field.id)
        if place in ids:
            fields[field.id] = place
    taken = set(fields.values())
    for field in side.manifest.schema.walk():
        is_free = field.id in ids and field.id not in taken
        if field.id not in fields and is_free and shared.has_field(field.id):
            fields[field.id] = field.id
    return fields


def _match_fragments(side: Side, other: Side, shared: Shared) -> dict[int, int]:
    matched = {
        number: number
        for number in side.fragments
        if shared.has_fragment(number) and number in other.fragments
    }
    unmatched = [number for number in side.fragments if not shared.has_fragment(number)]
    if not unmatched:
        return matched
    names = {
        file_name(other, file): fragment.id
        for fragment in other.fragments.values()
        for file in fragment.files
    }
    for number in unmatched:
        hits = (names.get(file_name(side, file)) for file in side.fragments[number].files)
        place = next((hit for hit in hits if hit is not None), None)
        if place is not None:
            matched[number] = place
    return matched


def _match_fields(
    side: Side, other: Side, shared: Shared, fragments: Mapping[int, int], *, by_path: bool
) -> dict[int, int]:
    mine, theirs = side.manifest.schema, other.manifest.schema
    every = [field.id for field in mine.walk()]
    matched = {
        number: number
        for number in every
        if shared.has_field(number) and theirs.field_by_id(number) is not None
    }
    unmatched = {number for number in every if not shared.has_field(number)}
    for left, right in fragments.items():
        if not unmatched:
            break
        for number, place in _shared_columns(
            side, side.fragments[left], other, other.fragments[right]
        ):
            if number in unmatched and theirs.field_by_id(place) is not None:
                matched[number] = place
                unmatched.discard(number)
    if by_path:
        matched.update(_by_path(mine, theirs, unmatched, shared))
    _add_parents(mine, theirs, matched, unmatched)
    return matched


def _shared_columns(
    side: Side, left: Fragment, other: Side, right: Fragment
) -> Iterator[tuple[int, int]]:
    columns = {
        (file_name(other, file), column): field
        for file in right.files
        for field, column in zip(file.fields, file.column_indices, strict=False)
        if field >= 0
    }
    for file in left.files:
        name = file_name(side, file)
        for field, column in zip(file.fields, file.column_indices, strict=False):
            if field >= 0 and (name, column) in columns:
                yield field, columns[name, column]


def _by_path(
    mine: Schema, theirs: Schema, unmatched: set[int], shared: Shared
) -> Iterator[tuple[int, int]]:
    paths = {
        (theirs.path_of(field.id), field.logical_type): field.id
        for field in theirs.walk()
        if not shared.has_field(field.id)
    }
    for number in sorted(unmatched):
        field = mine.field_by_id(number)
        if field is not None and (key := (mine.path_of(number), field.logical_type)) in paths:
            yield number, paths[key]


def _add_parents(mine: Schema, theirs: Schema, fields: dict[int, int], unmatched: set[int]) -> None:
    """Fields with children are in no file of their own: their children tell."""
    for number, place in list(fields.items()):
        my_field, their_field = mine.field_by_id(number), theirs.field_by_id(place)
        while my_field is not None and their_field is not None and my_field.parent_id in unmatched:
            fields.setdefault(my_field.parent_id, their_field.parent_id)
            my_field = mine.field_by_id(my_field.parent_id)
            their_field = theirs.field_by_id(their_field.parent_id)


@dataclass(frozen=True, slots=True)
class FieldFates:
    """Fields of a side that have the id of a field of the base.

    ``reborn``: the id was free and was given to another field. ``doubtful``: whether that happened
    is not recorded, and neither data nor name say so.
    """

    reborn: frozenset[int] = frozenset()
    doubtful: frozenset[int] = frozenset()


_Origins = dict[int, int | None]  # field id -> id in the base; None: added later


def field_fates(
    base: Side,
    side: Side,
    history: History,
    shared: Shared,
    matched: Match,
    *,
    renumbered: Renumbered | None = None,
) -> FieldFates:
    """Find out which fields of a side are not those of the base although they have their ids.

    A dropped field's id is free again once no file holds it, and after a restore to a version
    before it was given. A field that came back with its data is the one that it was. ``shared`` and
    ``matched``: what base and side number alike and share; ``renumbered``: the merge that brought
    the base to the side, whose record says what every field of it became.
    """
    origins: _Origins = {field.id: field.id for field in base.manifest.schema.walk()}
    origins = {number: place for number, place in origins.items() if shared.has_field(number)}
    states: dict[tuple[str | None, int], _Origins] = {(base.branch, base.version): origins}
    is_recorded = True
    for number, step in enumerate(history.steps):
        if renumbered is not None and number == renumbered.num_steps_before:
            origins = states[renumbered.merged_version] = _merged_origins(base, renumbered)
            is_recorded = True
        operation = None if step.transaction is None else step.transaction.operation
        if operation is None:
            is_recorded = False
        elif isinstance(operation, Restore):
            restored = states.get((step.branch, operation.version))
            if restored is None:
                restored = _restored_origins(base, history, step, operation.version)
            is_recorded = restored is not None
            origins = origins if restored is None else restored
        elif (ids := operation.footprint().field_ids) is not None:
            before = _reverted_origins(step, states)
            origins = {field_id: origins.get(field_id, before.get(field_id)) for field_id in ids}
        if is_recorded:
            states[step.branch, step.version] = origins
    if renumbered is not None and renumbered.num_steps_before == len(history.steps):
        origins, is_recorded = _merged_origins(base, renumbered), True
    names = {side_id: base_id for base_id, side_id in matched.fields.items()}
    reborn: set[int] = set()
    doubtful: set[int] = set()
    for field in side.manifest.schema.walk():
        base_id = names.get(field.id)
        if base_id is None or not (renumbered is not None or shared.has_field(field.id)):
            continue
        if origins.get(field.id) == base_id and (
            is_recorded or _path_and_type(base, base_id) == _path_and_type(side, field.id)
        ):
            continue
        if not _kept_data(base, side, matched, base_id=base_id, side_id=field.id):
            (reborn if is_recorded else doubtful).add(field.id)
    return FieldFates(frozenset(reborn), frozenset(doubtful))


def _reverted_origins(step: Step, states: Mapping[tuple[str | None, int], _Origins]) -> _Origins:
    """Return where the fields came from before a change that a version reverts."""
    record = step.record
    if record is None or record.kind != REVERT:
        return {}
    return states.get((record.source_branch, record.source_version - 1), {})


def _restored_origins(base: Side, history: History, step: Step, version: int) -> _Origins | None:
    """Return where the fields of a version before the base come from, None if that is not known."""
    for number in (version, step.version):
        try:
            restored = history.load(step.branch, number)
            break
        except NotFoundError:
            continue
    else:
        return None
    base_ids = {field.id for field in base.manifest.schema.walk()}
    ids = [field.id for field in restored.manifest.schema.walk()]
    if any(
        _path_and_type(base, field_id) != _path_and_type(restored, field_id)
        for field_id in base_ids & {*ids}
    ):
        return None
    return {field_id: field_id if field_id in base_ids else None for field_id in ids}


def _merged_origins(base: Side, renumbered: Renumbered) -> _Origins:
    """Return where the fields come from in the version that a merge of the base made."""
    ids = (field.id for field in base.manifest.schema.walk())
    return {
        renumbered.after(field_id): field_id
        for field_id in ids
        if renumbered.after(field_id) != LEFT_OUT
    }


def _path_and_type(side: Side, number: int) -> tuple[str | None, str | None]:
    schema = side.manifest.schema
    field = schema.field_by_id(number)
    return schema.path_of(number), None if field is None else field.logical_type


def _kept_data(base: Side, side: Side, matched: Match, base_id: int | None, side_id: int) -> bool:
    """Return whether some fragment holds a field in the same file as in the base."""
    for left, right in matched.fragments.items():
        files = {file_name(base, f) for f in base.fragments[left].files if base_id in f.fields}
        if any(
            side_id in f.fields and file_name(side, f) in files for f in side.fragments[right].files
        ):
            return True
    return False


def without_fields(matched: Match, left: frozenset[int], right: frozenset[int]) -> Match:
    """Return a match without some fields of the one side and of the other."""
    fields = {a: b for a, b in matched.fields.items() if a not in left and b not in right}
    return Match(matched.fragments, fields)


@dataclass(frozen=True, slots=True)
class RowIds:
    """Stable row ids of one version -> those of another, where they differ; sorted."""

    before: U64s
    after: U64s

    def of(self, ids: U64s) -> tuple[U64s, npt.NDArray[np.bool_]]:
        """Return the ids in the other version, and which of them are known to differ."""
        if not self.before.size:
            return ids, np.zeros(ids.size, np.bool_)
        positions = np.searchsorted(self.before, ids)
        positions[positions == self.before.size] = 0
        is_matched = self.before[positions] == ids
        return np.where(is_matched, self.after[positions], ids), is_matched


def match_rows(side: Side, other: Side, fragments: Mapping[int, int]) -> RowIds:
    """Return the row ids of matched fragments that differ between the two versions."""
    before, after = [], []
    for left, right in fragments.items():
        mine, theirs = side.fragments[left], other.fragments[right]
        if mine.row_ids is None or mine.row_ids == theirs.row_ids:
            continue
        before.append(all_row_ids(mine))
        after.append(all_row_ids(theirs))
    if not before:
        return RowIds(np.empty(0, np.uint64), np.empty(0, np.uint64))
    joined, order = np.unique(np.concatenate(before), return_index=True)
    return RowIds(joined, np.concatenate(after)[order])
