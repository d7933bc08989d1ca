"""Carry indices through a change: what they cover afterwards, and which ones are kept.

An index covers the fragments in its bitmap. A fragment whose indexed field changed leaves it. With
stable row ids, a fragment of moved rows is added and a rewritten group is replaced by its
successors, if the index knows rows by id; without, only a remapped copy of the index covers those.
Ids of removed fragments stay in: readers intersect with the live ones.

Limits: an index without a bitmap is carried as it is. System indices are never dropped here.
Source: lance-table ``transaction``; pylance 14.0.2 measured version by version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pyroaring import BitMap

from lance_nb.errors import InvalidInputError
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.format.merged_logs import WAL_INDEX, MergedLog, with_merged_logs
from lance_nb.transactions.manifest_building import Draft

ROW_ID_KINDS = frozenset({"Bitmap", "LabelList", "Inverted", "NGram", "Vector"})
"""Indices that know rows by stable id where there is one. Others know them by address."""

Move = tuple[AbstractSet[int], AbstractSet[int]]
"""The ids of fragments that were rewritten together, before and after."""


def prune_fields(draft: Draft, fragment_ids: AbstractSet[int], fields: AbstractSet[int]) -> None:
    """Take fragments out of the coverage of indices on one of the ``fields``."""

    def prune(index: IndexMetadata, covered: BitMap) -> BitMap:
        return covered - BitMap(fragment_ids) if _depends_on(index, fields) else covered

    if fields and fragment_ids:
        _change_coverage(draft, prune)


def cover_moved(
    draft: Draft,
    new_ids: AbstractSet[int],
    source_ids: AbstractSet[int],
    changed_fields: AbstractSet[int],
) -> None:
    """Let indices cover fragments of moved rows, if they covered all sources and no value changed.

    Only right with stable row ids, and for indices that know rows by them.
    """

    def cover(index: IndexMetadata, covered: BitMap) -> BitMap:
        if index.kind not in ROW_ID_KINDS or _depends_on(index, changed_fields):
            return covered
        if not BitMap(source_ids) <= covered:
            return covered
        return covered | BitMap(new_ids)

    if new_ids:
        _change_coverage(draft, cover)


def cover_rewritten(draft: Draft, moves: Sequence[Move], remapped: AbstractSet[str]) -> None:
    """Let indices cover the successors of what they covered (datasets with stable row ids).

    An index that knows rows by address covers neither, unless its uuid is in ``remapped``. Raises
    InvalidInputError.
    """
    rewritten = BitMap(fragment for old, _ in moves for fragment in old)

    def cover(index: IndexMetadata, covered: BitMap) -> BitMap:
        if index.uuid in remapped or index.is_system:
            return covered
        return _moved(index, covered, moves) if index.kind in ROW_ID_KINDS else covered - rewritten

    _change_coverage(draft, cover)


def remap(
    draft: Draft, moves: Sequence[Move], old_id: str, new_id: str, files: tuple[IndexFile, ...]
) -> None:
    """Put the remapped copy of an index in its place; an index that is gone is passed over.

    Raises InvalidInputError if the index does not say what it covers.
    """
    for position, index in enumerate(draft.indices):
        if index.uuid != old_id:
            continue
        covered = index.fragment_ids()
        if covered is None:
            raise InvalidInputError(
                f"index {index.name!r} does not say what it covers: no remapping"
            )
        bitmap = _moved(index, covered, moves).serialize()
        draft.indices[position] = replace(index, uuid=new_id, files=files, fragment_bitmap=bitmap)


def retain_useful(draft: Draft) -> None:
    """Drop indices on fields that are gone, and those that cover nothing any more.

    Of several indices of one name, those that cover something stay; if none does, the oldest stays
    unless it is a vector index (which must not be empty).
    """
    schema = draft.manifest.schema
    indices = [
        index
        for index in draft.indices
        if index.is_system or all(schema.field_by_id(field) is not None for field in index.fields)
    ]
    if not indices:
        draft.indices = indices
        return
    live = BitMap(draft.manifest.fragments.counts().ids.tolist())
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in indices:
        by_name.setdefault(index.name, []).append(index)
    useful = {index.uuid for same in by_name.values() for index in _useful(same, live)}
    draft.indices = [index for index in indices if index.is_system or index.uuid in useful]


def record_merged_logs(draft: Draft, logs: Iterable[MergedLog]) -> None:
    """Record the logs. Raises InvalidInputError if the dataset keeps no state of logs."""
    for position, index in enumerate(draft.indices):
        if index.name == WAL_INDEX:
            details = with_merged_logs(index.details, logs)
            draft.indices[position] = replace(index, details=details, dataset_version=draft.version)
            return
    raise InvalidInputError(
        f"the dataset has no index {WAL_INDEX!r}: there is no state of write-ahead logs to change"
    )


def _useful(same_name: list[IndexMetadata], live: BitMap) -> list[IndexMetadata]:
    covering = [
        index for index in same_name if (covered := index.fragment_ids()) and covered & live
    ]
    if covering:
        return covering
    oldest = min(same_name, key=lambda index: index.dataset_version)
    return [] if oldest.kind == "Vector" else [oldest]


def _depends_on(index: IndexMetadata, fields: AbstractSet[int]) -> bool:
    return not fields.isdisjoint((*index.fields, *index.covering_fields))


def _moved(index: IndexMetadata, covered: BitMap, moves: Sequence[Move]) -> BitMap:
    after = BitMap(covered)
    for old, new in moves:
        inside = BitMap(old) & covered
        if not inside:
            continue
        if len(inside) < len(old):
            raise InvalidInputError(
                f"fragments {sorted(old)} were rewritten together, but index {index.name!r} covers "
                f"only {sorted(inside)} of them"
            )
        after = (after - BitMap(old)) | BitMap(new)
    return after


def _change_coverage(draft: Draft, change: Callable[[IndexMetadata, BitMap], BitMap]) -> None:
    changed = []
    for index in draft.indices:
        covered = index.fragment_ids()
        after = None if covered is None else change(index, covered)
        if after is None or after == covered:
            changed.append(index)
        else:
            changed.append(replace(index, fragment_bitmap=after.serialize()))
    draft.indices = changed


def coverage(fragment_ids: Iterable[int]) -> bytes:
    """Return the bitmap of an index that covers these fragments."""
    return bytes(BitMap(fragment_ids).serialize())
