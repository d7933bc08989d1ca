"""Coverage of indices whose remapping was put off when fragments were rewritten.

The fragment-reuse index says where the rows went, and readers look them up through it. The bitmaps
of the other indices still name the old fragments; here they get the new ones, as pylance does with
the next commit. Otherwise an index would seem to cover nothing any more.

Limits: a group of which an index covers only a part is left as it is (but in the fragment-reuse
index itself, whose bitmap names every fragment a rewrite made).
Source: format/fragment_reuse.py; pylance 14.0.2 measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pyroaring import BitMap

from lance_nb.format.fragment_reuse import moves
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.transactions.index_rules import REUSE_INDEX


def follow_deferred(indices: Sequence[IndexMetadata]) -> list[IndexMetadata]:
    """Return the indices as covering the successors of fragments. Raises NotSupportedError."""
    reuse = next((one for one in indices if one.name == REUSE_INDEX), None)
    if reuse is None:
        return list(indices)
    steps = moves(reuse.details)
    return [_followed(one, steps) for one in indices]


def _followed(
    index: IndexMetadata, steps: Iterable[tuple[AbstractSet[int], AbstractSet[int]]]
) -> IndexMetadata:
    covered = index.fragment_ids()
    if covered is None:
        return index
    after = BitMap(covered)
    for old, new in steps:
        inside = len(after & BitMap(old))
        if inside == len(old) or (inside and index.name == REUSE_INDEX):
            after = (after - BitMap(old)) | BitMap(new)
    return index if after == covered else replace(index, fragment_bitmap=after.serialize())
