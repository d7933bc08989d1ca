"""Every kind of index that is searched or built.

A segment of a newer version, or of a kind that is not searched, is not used: what it covers is
scanned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lance_nb.errors import NotSupportedError
from lance_nb.format.index_metadata import IndexMetadata, index_type
from lance_nb.indices.kinds import bitmap, bloomfilter, btree, label_list, ngram, zonemap
from lance_nb.indices.reader import IndexReader
from lance_nb.table.projection import ROW_ADDRESS

if TYPE_CHECKING:
    from lance_nb.indices.building import IndexBuilder


class Kind(NamedTuple):
    """How segments of a kind are opened: their files, in the order in which ``open`` takes them.

    ``by_address_from``: from this version on rows are named by address even where row ids are
    stable; None for never.
    """

    files: tuple[str, ...]
    open: Callable[..., IndexReader]
    newest: int
    by_address_from: int | None = None


StatisticsOf = Callable[..., dict[str, Any]]
STATISTICS: dict[str, StatisticsOf] = {
    "Bitmap": bitmap.statistics,
    "BTree": btree.statistics,
    "LabelList": bitmap.statistics,
    "NGram": ngram.statistics,
    "BloomFilter": bloomfilter.statistics,
    "ZoneMap": zonemap.statistics,
}
"""What the files of a segment say of it, by kind; the functions take what ``open`` takes."""

KINDS: dict[str, Kind] = {
    "Bitmap": Kind(bitmap.FILES, bitmap.Bitmap, 0),
    "BTree": Kind(btree.FILES, btree.BTree, 1, 1),
    "LabelList": Kind(label_list.FILES, label_list.LabelList, 1),
    "NGram": Kind(ngram.FILES, ngram.NGram, 0),
    "BloomFilter": Kind(bloomfilter.FILES, bloomfilter.BloomFilter, 0, 0),
    "ZoneMap": Kind(zonemap.FILES, zonemap.ZoneMap, 0, 0),
}
"""Of indices on a column that cost the same the first kind is used."""


def opened(kind: str, files: list[Any]) -> IndexReader:
    """Open the files of a segment."""
    return KINDS[kind].open(*files)


def builders() -> dict[str, IndexBuilder]:
    """Return what builds the segments of each kind, by its name in ``create_index``.

    Only building needs what writes files, so it is imported here.
    """
    from lance_nb.indices.building import IndexBuilder, no_parameters
    from lance_nb.indices.sorted_rows import check_sorted
    from lance_nb.indices.texts import writer as texts
    from lance_nb.indices.vectors import writer as vectors

    def of_vectors(kind: str) -> IndexBuilder:
        return IndexBuilder(
            vectors.DETAILS_URL,
            partial(vectors.check, kind),
            vectors.parameters_of,
            partial(vectors.write, kind),
            train=partial(vectors.train_model, kind),
        )

    return {
        "BTREE": IndexBuilder(
            btree.DETAILS_URL,
            partial(check_sorted, "BTREE"),
            no_parameters,
            write=btree.write,
            row_column=ROW_ADDRESS,
        ),
        "BITMAP": IndexBuilder(
            bitmap.DETAILS_URL, partial(check_sorted, "BITMAP"), no_parameters, bitmap.write
        ),
        "LABEL_LIST": IndexBuilder(
            label_list.DETAILS_URL, label_list.check, no_parameters, label_list.write
        ),
        "ZONEMAP": IndexBuilder(
            zonemap.DETAILS_URL,
            zonemap.check,
            zonemap.parameters_of,
            write=zonemap.write,
            row_column=ROW_ADDRESS,
        ),
        "BLOOMFILTER": IndexBuilder(
            bloomfilter.DETAILS_URL,
            bloomfilter.check,
            bloomfilter.parameters_of,
            write=bloomfilter.write,
            row_column=ROW_ADDRESS,
        ),
        "NGRAM": IndexBuilder(ngram.DETAILS_URL, ngram.check, no_parameters, ngram.write),
        "INVERTED": IndexBuilder(texts.DETAILS_URL, texts.check, texts.stored, texts.write),
        **{kind: of_vectors(kind) for kind in (vectors.FLAT, vectors.PQ, vectors.SQ)},
    }


_ALIASES = {"FTS": "INVERTED"}


def builder_named(kind: str) -> tuple[str, IndexBuilder]:
    """Return the builder of a kind, and its usual name. Raises NotSupportedError."""
    name = _ALIASES.get(kind.upper(), kind.upper())
    builders_by_name = builders()
    if name not in builders_by_name:
        raise NotSupportedError(f"an index of type {kind!r} cannot be built")
    return name, builders_by_name[name]


def builder_of(index: IndexMetadata) -> tuple[str, IndexBuilder]:
    """Return what builds segments like one, and its name. Raises NotSupportedError."""
    kind = index_type(index)
    for name, builder in builders().items():
        if name.replace("_", "").upper() == kind.replace("_", "").upper():
            return name, builder
    raise NotSupportedError(
        f"index {index.name!r} is of type {kind or 'unknown'}, which cannot be built"
    )
