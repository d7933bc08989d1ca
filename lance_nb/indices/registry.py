"""Every kind of index that is searched, and the newest version of each that is known.

A segment of a newer version, or of another kind, is not used: what it covers is scanned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lance_nb.indices.kinds import bitmap, bloomfilter, btree, label_list, ngram, zonemap
from lance_nb.indices.reader import IndexReader


class Kind(NamedTuple):
    """How segments of a kind are opened: their files, in the order in which ``open`` takes them.

    ``by_address_from``: from this version on rows are named by address even where row ids are
    stable; None for never.
    """

    files: tuple[str, ...]
    open: Callable[..., IndexReader]
    newest: int
    by_address_from: int | None = None


KINDS: dict[str, Kind] = {
    "Bitmap": Kind(bitmap.FILES, bitmap.Bitmap, 0),
    "BTree": Kind(btree.FILES, btree.BTree, 1, 1),
    "LabelList": Kind(label_list.FILES, label_list.LabelList, 1),
    "NGram": Kind(ngram.FILES, ngram.NGram, 0),
    "BloomFilter": Kind(bloomfilter.FILES, bloomfilter.BloomFilter, 0, 0),
    "ZoneMap": Kind(zonemap.FILES, zonemap.ZoneMap, 0, 0),
}
"""In the order in which they are tried, where a column has several."""


def opened(kind: str, files: list[Any]) -> IndexReader:
    """Open the files of a segment."""
    return KINDS[kind].open(*files)
