"""Which entries of the fragment-reuse index no index needs any more.

An entry is needed as long as the files of an index may name rows by the addresses they had before
it. They do not when the index was built on a version that had the entry already, or when it covers
nothing that came out of the entry's fragments.

Limits: ``dataset_version`` of an index says which version it was built on; pylance's
``optimize_indices`` keeps the old number, so that entries stay until an index is built anew. A
version that is not there any more proves nothing: the entry stays.
Source: ``cleanup_frag_reuse_index`` of the Rust library, which pylance does not offer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from lance_nb.format.fragment_reuse import REUSE_INDEX, entries, inline_details, moves_of
from lance_nb.format.index_metadata import IndexMetadata

LoadIndices = Callable[[int], Sequence[IndexMetadata] | None]


def unneeded_entries(indices: Sequence[IndexMetadata], load: LoadIndices) -> set[int]:
    """Return the positions of the entries that can go.

    ``indices`` cover what they cover now; ``load`` returns the indices of a version, None when it
    is not there any more. Raises NotSupportedError.
    """
    reuse = next((one for one in indices if one.name == REUSE_INDEX), None)
    if reuse is None:
        return set()
    known = entries(inline_details(reuse))
    built_on: dict[int, AbstractSet[bytes]] = {}
    on_columns = [one for one in indices if not one.is_system]
    for version in {one.dataset_version for one in on_columns}:
        found = load(version) or ()
        there = next((one for one in found if one.name == REUSE_INDEX), None)
        built_on[version] = set() if there is None else set(entries(inline_details(there)))
    gone = set()
    for at, entry in enumerate(known):
        reached = _reached(known, at)
        if not any(_needs(one, entry, reached, built_on) for one in on_columns):
            gone.add(at)
    return gone


def _reached(known: Sequence[bytes], position: int) -> set[int]:
    """Return the fragments of an entry, and those that came out of them later."""
    reached: set[int] = set()
    for old, new in moves_of(known[position]):
        reached |= old | new
    changed = True
    while changed:
        changed = False
        for entry in known:
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
    return covered is None or any(one in covered for one in reached)
