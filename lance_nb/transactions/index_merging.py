"""Make an index fit what happened while it was built, and merge the two singleton indices.

An index whose field was rewritten in place leaves the fragments concerned. The fragment-reuse index
and the index of write-ahead logs exist once: whoever commits second takes up what the other added.

Limits: a Rewrite's message does not hold its fragment-reuse index; that it changed it is seen in
the versions before and after.
Source: specification of transactions; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyroaring import BitMap

from lance_nb.format.fragment_reuse import (
    REUSE_INDEX,
    inline_details,
    new_fragment_ids,
    with_newest_entries,
    without_cleaned_entries,
)
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.merged_logs import WAL_INDEX, with_merged_logs
from lance_nb.transactions.operation import Operation, Snapshotted
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.operations.update_mem_wal_state import UpdateMemWalState

Theirs = Sequence[tuple[int, Operation]]


def rebase_index(
    ours: CreateIndex, theirs: Theirs, current: tuple[IndexMetadata, ...]
) -> CreateIndex:
    """Return our indices as they have to be after ``theirs``."""
    indices: list[IndexMetadata] = []
    for one in ours.added:
        index = one
        for _, other in theirs:
            if isinstance(other, Update):
                index = _without_updated(index, other)
            elif isinstance(other, UpdateMemWalState) and index.name == WAL_INDEX:
                details = with_merged_logs(index.details, other.compacted_sstables)
                index = replace(index, details=details)
            elif isinstance(other, Rewrite) and index.name == REUSE_INDEX:
                index = _with_their_rewrite(index, other)
        indices.append(index)
    removed = (*ours.removed, *_replaced_singletons(ours, current))
    return CreateIndex(indices, removed, ours.unknown)


def rebase_rewrite(ours: Rewrite, theirs: Theirs) -> Rewrite:
    """Return our rewrite with its fragment-reuse index as cleaned up by ``theirs``."""
    mine = ours.frag_reuse_index
    cleaned = [
        inline_details(one)
        for _, other in theirs
        if isinstance(other, CreateIndex)
        for one in other.added
        if one.name == REUSE_INDEX
    ]
    if mine is None or not cleaned:
        return ours
    details = without_cleaned_entries(inline_details(mine), cleaned)
    return replace(ours, frag_reuse_index=_with_details(mine, details))


def with_reuse_index(
    rewrite: Rewrite, version: int, load_version: Callable[[int], Snapshotted]
) -> Rewrite:
    """Return a rewrite committed as ``version`` with the fragment-reuse index that came with it."""
    if rewrite.frag_reuse_index is not None:
        return rewrite
    _, after = load_version(version)
    found = next((one for one in after if one.name == REUSE_INDEX), None)
    if found is None:
        return rewrite
    _, before = load_version(version - 1)
    known = any(one.uuid == found.uuid for one in before)
    return rewrite if known else replace(rewrite, frag_reuse_index=found)


def _without_updated(index: IndexMetadata, update: Update) -> IndexMetadata:
    covered = index.fragment_ids()
    depends = not set(update.fields_modified).isdisjoint((*index.fields, *index.covering_fields))
    if covered is None or not depends:
        return index
    left = covered - BitMap(one.id for one in update.updated_fragments)
    return replace(index, fragment_bitmap=left.serialize())


def _with_their_rewrite(index: IndexMetadata, rewrite: Rewrite) -> IndexMetadata:
    added = rewrite.frag_reuse_index
    if added is None:
        return index
    details = with_newest_entries(inline_details(index), [inline_details(added)])
    return _with_details(index, details)


def _with_details(index: IndexMetadata, details: bytes) -> IndexMetadata:
    bitmap = BitMap(new_fragment_ids(details)).serialize()
    return replace(index, details=details, content=b"", fragment_bitmap=bitmap)


def _replaced_singletons(
    ours: CreateIndex, current: tuple[IndexMetadata, ...]
) -> list[IndexMetadata]:
    """Return the singleton indices that are there now and that ours replaces without saying so."""
    names = {one.name for one in ours.added} & {REUSE_INDEX, WAL_INDEX}
    said = {one.uuid for one in (*ours.removed, *ours.added)}
    return [one for one in current if one.name in names and one.uuid not in said]
