"""Merge indices: the target's, and those of the source that are still right in the outcome.

An index of the source is added when every fragment it covers has the same number and the same data
in the outcome; else it would point at other rows, and is left out: the rows are there, not indexed.
An index that the source dropped is dropped if the target did not change it.

Fragments whose indexed values changed leave the coverage. So do fragments with rows that live
again, unless the index was built while these rows lived.

Limits: coverage that the source's writers extended is followed only where numbers stay the same.
Source: message IndexMetadata of lance.table; index_upkeep.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lance_nb.format import layout
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.transactions.branch_merge.conflicts import Findings
from lance_nb.transactions.branch_merge.file_locations import FileLocations
from lance_nb.transactions.branch_merge.merge_base import Ends

Indices = tuple[IndexMetadata, ...]


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What happened to fragments and fields.

    ``fragments``: fragments of the source that stand in the outcome with the data that the source
    has, and their ids there. ``fields``: ids of the source -> ids of the outcome. ``rewritten``:
    fields that changed in place, by fragment of the outcome. ``revived``: fragments of the outcome
    with rows that live again. ``keeps_row_ids``: no row of the source got another id.
    """

    fragments: Mapping[int, int]
    fields: Mapping[int, int]
    rewritten: Mapping[int, set[int]]
    revived: frozenset[int]
    keeps_row_ids: bool


def merge_indices(
    ends: Ends, facts: IndexFacts, places: FileLocations, findings: Findings
) -> Indices:
    """Return the indices of the outcome."""
    base = {one.uuid for one in ends.base.indices}
    here = {one.uuid for one in ends.target.indices}
    there = {one.uuid: one for one in ends.source.indices}
    added = _added(ends, facts, places, findings, (base, here))
    replaced = {one.name for one in added}
    dropped = {one.name for one in ends.base.indices} - {one.name for one in ends.source.indices}
    kept = []
    for one in ends.target.indices:
        is_old = one.uuid in base
        if is_old and one.uuid not in there and one.name in dropped | replaced:
            continue
        kept.append(_pruned(one, there.get(one.uuid), facts))
    return (*kept, *added)


def _added(
    ends: Ends,
    facts: IndexFacts,
    places: FileLocations,
    findings: Findings,
    known: tuple[set[str], set[str]],
) -> list[IndexMetadata]:
    base, here = known
    live = BitMap(ends.source.fragments)
    taken = {one.name for one in ends.target.indices if one.uuid not in base}
    new = [one for one in ends.source.indices if one.uuid not in base | here]
    names = dict.fromkeys(one.name for one in new)
    added = []
    for name in names:
        parts = [one for one in new if one.name == name]
        if name in taken:
            findings.note(f"index {name!r} was built on both sides: the one here stays")
        elif all(_is_right(one, live, facts) for one in parts):
            added += [_moved(one, facts, places) for one in parts]
        else:
            findings.note(
                f"index {name!r} of the source is left out: fragments that it covers have other "
                "numbers or other data here; build it again"
            )
    return added


def _is_right(one: IndexMetadata, live: BitMap, facts: IndexFacts) -> bool:
    covered = one.fragment_ids()
    fields = (*one.fields, *one.covering_fields)
    if covered is None or one.is_system or not facts.keeps_row_ids:
        return False
    if any(facts.fields.get(field) != field for field in fields):
        return False
    return all(facts.fragments.get(number) == number for number in covered & live)


def _moved(one: IndexMetadata, facts: IndexFacts, places: FileLocations) -> IndexMetadata:
    base_id = places.folder(layout.index_folder(one.uuid), one.base_id)
    return _without(replace(one, base_id=base_id), _stale(one, facts))


def _pruned(one: IndexMetadata, there: IndexMetadata | None, facts: IndexFacts) -> IndexMetadata:
    gone = _stale(one, facts)
    was_covered = BitMap() if there is None else there.fragment_ids() or BitMap()
    gone |= BitMap(facts.revived) - was_covered
    return _without(one, gone)


def _stale(one: IndexMetadata, facts: IndexFacts) -> BitMap:
    """Return the fragments in which values of the index's fields have changed."""
    fields = {*one.fields, *one.covering_fields}
    return BitMap(number for number, changed in facts.rewritten.items() if changed & fields)


def _without(one: IndexMetadata, gone: Iterable[int]) -> IndexMetadata:
    covered = one.fragment_ids()
    left = None if covered is None else covered - BitMap(gone)
    if left is None or left == covered:
        return one
    return replace(one, fragment_bitmap=left.serialize())
