"""The fragment-reuse index: what compactions it records, and which entries can be removed.

Files of indices name rows by address where row ids are not stable. If the moves of a rewrite are
recorded, readers go on using those files; if not, the rows leave the coverage of indices. Each
group of fragments is recorded, or not, as a whole.

An entry is needed as long as the files of an index may name rows by the addresses they had before
it. They do not when the index was built on a version that had the entry already, or when it covers
nothing that came out of the entry's fragments.

Limits: a group with deleted rows that an HNSW index covers is not recorded: its graph would name
vectors that no longer exist, and pylance 14.0.2 cannot read such an index any more. With stable row
ids nothing can be recorded (a feature flag that pylance 14.0.2 refuses). ``dataset_version`` of an
index says which version it was built on; pylance's ``optimize_indices`` keeps the old number, so
that entries stay until an index is built anew. If that version was cleaned up, the entry stays.
Source: ``defer_index_remap`` of pylance 14.0.2, measured with every kind of index.
``cleanup_frag_reuse_index`` of the Rust library, which pylance does not offer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from pyroaring import BitMap

from lance_nb.errors import NotSupportedError, RetryableCommitConflictError
from lance_nb.format.fragment_reuse import (
    DETAILS_URL,
    REUSE_INDEX,
    MovedGroup,
    entries,
    inline_details,
    moves_of,
    new_fragment_ids,
    with_entry,
)
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.transactions.index_upkeep import coverage
from lance_nb.writing.compaction_plan import Rewritten, is_graph

LoadIndices = Callable[[int], Sequence[IndexMetadata] | None]


def unneeded_entries(indices: Sequence[IndexMetadata], load: LoadIndices) -> set[int]:
    """Return the positions of the entries that can go.

    ``indices`` cover what they cover now; ``load`` returns the indices of a version, None when it
    is not there any more. Raises NotSupportedError.
    """
    reuse = next((index for index in indices if index.name == REUSE_INDEX), None)
    if reuse is None:
        return set()
    known_entries = entries(inline_details(reuse))
    built_on: dict[int, AbstractSet[bytes]] = {}
    on_columns = [index for index in indices if not index.is_system]
    for version in {index.dataset_version for index in on_columns}:
        indices_then = load(version) or ()
        reuse_index = next((index for index in indices_then if index.name == REUSE_INDEX), None)
        built_on[version] = (
            set() if reuse_index is None else set(entries(inline_details(reuse_index)))
        )
    unneeded = set()
    for position, entry in enumerate(known_entries):
        reached = _reached(known_entries, position)
        if not any(_needs(index, entry, reached, built_on) for index in on_columns):
            unneeded.add(position)
    return unneeded


def _reached(known_entries: Sequence[bytes], position: int) -> set[int]:
    """Return the fragments of an entry, and those that came out of them later."""
    reached: set[int] = set()
    for old, new in moves_of(known_entries[position]):
        reached |= old | new
    changed = True
    while changed:
        changed = False
        for entry in known_entries:
            for old, new in moves_of(entry):
                if old & reached and not new <= reached:
                    reached |= new
                    changed = True
    return reached


def _needs(
    index: IndexMetadata,
    entry: bytes,
    reached: AbstractSet[int],
    built_on: dict[int, AbstractSet[bytes]],
) -> bool:
    if entry in built_on[index.dataset_version]:
        return False
    covered = index.fragment_ids()
    return covered is None or any(fragment_id in covered for fragment_id in reached)


def recorded_groups(
    indices: Sequence[IndexMetadata],
    groups: Sequence[Rewritten],
    *,
    defer: bool | None,
    has_row_ids: bool,
) -> list[int]:
    """Return the positions of the groups to record, none if no index would profit.

    ``indices`` cover what they cover now. Raises NotSupportedError when recording is asked for and
    rows have stable ids, RetryableCommitConflictError when an index covers a part of a group.
    """
    if has_row_ids and defer:
        raise NotSupportedError(
            "defer_index_remap=True: rows of this dataset have stable ids, so that indices on them "
            "need no remapping; leave the argument out"
        )
    if has_row_ids or defer is False:
        return []
    on_columns = [index for index in indices if not index.is_system]
    covered = [_covering(on_columns, group) for group in groups]
    positions = [
        number
        for number, group in enumerate(groups)
        if group.row_addrs is not None
        and not (group.num_deleted_rows and any(map(is_graph, covered[number])))
    ]
    return positions if any(covered[position] for position in positions) else []


def with_record(
    indices: Sequence[IndexMetadata],
    version: int,
    moved: Sequence[MovedGroup],
    *,
    uuid: str,
    created_at_ms: int,
) -> IndexMetadata:
    """Return the fragment-reuse index (the one in ``indices``, or a new one) with one more entry.

    ``version`` is the one that the rewrite is committed on. Raises NotSupportedError.
    """
    old = next((index for index in indices if index.name == REUSE_INDEX), None)
    details = with_entry(b"" if old is None else inline_details(old), version, moved)
    return IndexMetadata(
        uuid,
        REUSE_INDEX,
        (),
        version,
        coverage(new_fragment_ids(details)),
        DETAILS_URL,
        details,
        0,
        created_at_ms,
    )


def _covering(indices: Sequence[IndexMetadata], group: Rewritten) -> list[IndexMetadata]:
    ids = BitMap(old_fragment.id for old_fragment in group.old_fragments)
    covering = []
    for index in indices:
        covered = index.fragment_ids()
        if covered is None:
            continue
        inside = len(covered & ids)
        if 0 < inside < len(ids):
            raise RetryableCommitConflictError(
                f"fragments {list(ids)} were compacted together, but index {index.name!r} covers "
                f"only {list(covered & ids)} of them by now: plan the compaction again"
            )
        if inside:
            covering.append(index)
    return covering
