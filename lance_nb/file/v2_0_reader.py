"""Leaves of a 2.0 data file: every field has a column, lists are read before their items.

Layout: a list column tells which items of the next column its rows have; items are counted from 0
on each page of the list column, so a page's items begin where those of the pages before it end.
Columns of structs hold nothing. Pages of one column are cut anywhere, whatever others do.
Writers up to 0.12 stored strings as lists, too: their bytes are the next column.

How: lists are opened from the outside in, one round of reads for all leaves; then the pages of all
leaves are decoded side by side (``encodings.steps``).

Not supported: maps, which 2.0 files cannot hold.
Source: messages ArrayEncoding and ColumnEncoding of lance.encodings; checked with pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.arrow_parts import concatenated
from lance_nb.encodings.base import (
    VALUES_MAX,
    DataBlock,
    FixedSizeList,
    FixedWidth,
    Ints,
    PackedStruct,
    Rows,
    VariableWidth,
)
from lance_nb.encodings.repdef import Level
from lance_nb.encodings.slicing import merged
from lance_nb.encodings.steps import Region, Steps, together
from lance_nb.encodings.v2_0.array_encodings import array_codecs
from lance_nb.encodings.v2_0.base import ItemRanges, Page, Values
from lance_nb.encodings.v2_0.blobs import holds_blobs, read_payloads
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.columns import Leaf, LeafPart
from lance_nb.file.page_reader import Column, PageRows, split_rows
from lance_nb.file.source import FileSource
from lance_nb.value_classes import dataclass

T = TypeVar("T")


class ArrayReader:
    """The pages of an open 2.0 file. ``column`` returns a column by its number and a name."""

    def __init__(
        self,
        source: FileSource,
        column: Callable[[int, str], Column],
        file_buffers: Sequence[tuple[int, int]],
    ) -> None:
        self._source = source
        self._column = column
        self._file_buffers = self._regions(file_buffers)

    def read_leaves(
        self,
        leaves: Sequence[Leaf],
        owners: Mapping[int, int],
        rows: Rows,
        num_rows: int | None = None,
    ) -> dict[int, list[LeafPart]]:
        """Decode ``rows`` of each leaf; see ``FileReader.read_leaves``."""
        if num_rows is not None:
            self._check_lengths(leaves, owners, num_rows)
        lists = self._open_lists(leaves, owners, rows)
        parts_by_leaf = {}
        parts = {}
        for leaf in leaves:
            number = owners[leaf.field_id]
            column = self._column(number, leaf.name)
            below = rows_below(leaf, lists, rows)
            if _spelled_out(leaf, column):
                parts_by_leaf[leaf.field_id] = [self._byte_lists(leaf, number, below)]
            else:
                parts[leaf.field_id] = self._split(column, below)
        decoders = [
            self._values(leaf, part) for leaf in leaves for part in parts.get(leaf.field_id, ())
        ]
        arrays = iter(run(self._source, decoders))
        for field_id, mine in parts.items():
            parts_by_leaf[field_id] = [next(arrays) for _ in mine]
        return {
            leaf.field_id: leaf_parts(leaf, parts_by_leaf[leaf.field_id], lists, rows)
            for leaf in leaves
        }

    def _check_lengths(
        self, leaves: Sequence[Leaf], owners: Mapping[int, int], num_rows: int
    ) -> None:
        """Hold the columns of top-level rows against the number of rows that the manifest says."""
        for leaf in leaves:
            top = next(
                (ancestor for ancestor, type_ in leaf.ancestors if is_list(type_, leaf.name)), None
            )
            number = owners.get(leaf.field_id if top is None else top, -1)
            num_rows_stored = self._column(number, leaf.name).metadata.num_rows
            if num_rows_stored != num_rows:
                expected = f"{num_rows} rows, as the manifest says"
                place = f"column {leaf.name!r}"
                raise CorruptFileError(
                    self._source.path, None, expected, f"{num_rows_stored} rows", place
                )

    # --- lists ----------------------------------------------------------------------------------

    def _open_lists(
        self, leaves: Sequence[Leaf], owners: Mapping[int, int], rows: Rows
    ) -> dict[int, ListLevel]:
        """Decode the list fields above the leaves, from the outside in."""
        lists: dict[int, ListLevel] = {}
        depth = 0
        while any(depth < len(leaf.ancestors) for leaf in leaves):
            rows_by_list = {}
            for leaf in leaves:
                if depth < len(leaf.ancestors) and is_list(leaf.ancestors[depth][1], leaf.name):
                    above = rows_below(leaf, lists, rows, depth)
                    rows_by_list[leaf.ancestors[depth][0]] = (leaf.name, above)
            decoders = []
            counts = []
            for field_id, (name, above) in rows_by_list.items():
                if field_id not in owners or owners[field_id] < 0:
                    place = f"column {name!r}"
                    raise CorruptFileError(self._source.path, None, "a list column", "none", place)
                mine = self._list_pages(self._column(owners[field_id], name), above)
                decoders += mine
                counts.append(len(mine))
            pages = iter(run(self._source, decoders))
            for field_id, count in zip(rows_by_list, counts, strict=True):
                lists[field_id] = joined_pages([next(pages) for _ in range(count)])
            depth += 1
        return lists

    def _list_pages(self, column: Column, rows: Rows) -> list[Steps[Values]]:
        parts = self._split(column, rows)
        if not parts:
            return []
        ends: Ints = np.zeros(parts[-1].page + 2, np.int64)
        counts = []
        for number in range(parts[-1].page + 1):
            encoding = column.metadata.pages[number].array_encoding()
            counts.append(min(encoding.list.num_items, VALUES_MAX))
        np.cumsum(counts, out=ends[1:])
        if int(ends.max()) > VALUES_MAX:
            place = f"column {column.name!r}"
            expected = f"at most {VALUES_MAX} items"
            raise CorruptFileError(self._source.path, None, expected, str(int(ends.max())), place)
        return [self._located(part, self._items(part, int(ends[part.page]))) for part in parts]

    def _items(self, part: PageRows, first_item: int) -> Steps[Values]:
        """Decode which items the rows have, counted from the first item of the child column."""
        page = self._page(part, keeps_dictionary=False)
        decoded = yield from array_codecs.decode(part.metadata.array_encoding(), part.rows, page)
        if not isinstance(decoded.block, ItemRanges):
            raise CorruptFileError("", None, "a list encoding", type(decoded.block).__name__)
        items = ItemRanges(decoded.block.starts + first_item, decoded.block.stops + first_item)
        return Values(items, decoded.validity)

    # --- leaves ---------------------------------------------------------------------------------

    def _split(self, column: Column, rows: Rows) -> list[PageRows]:
        last = int(rows.stops[-1]) if rows.stops.size else 0
        if column.metadata.num_rows < last:
            raise CorruptFileError(
                self._source.path,
                None,
                f"{last} rows",
                f"{column.metadata.num_rows} rows",
                f"column {column.name!r}",
            )
        return split_rows(column, rows)

    def _values(self, leaf: Leaf, part: PageRows) -> Steps[pa.Array]:
        return self._located(part, self._array(leaf, part))

    def _array(self, leaf: Leaf, part: PageRows) -> Steps[pa.Array]:
        type_ = leaf.type
        page = self._page(part, keeps_dictionary=pa.types.is_dictionary(type_))
        blobs = holds_blobs(part.column.metadata.encoding)
        decoded = yield from array_codecs.decode(part.metadata.array_encoding(), part.rows, page)
        if blobs and not pa.types.is_struct(type_):
            whole = Region(0, self._source.size_bytes, self._source.is_mapped)
            decoded = yield from read_payloads(decoded, whole)
        block = decoded.block
        if isinstance(block, ItemRanges):
            raise CorruptFileError("", None, f"values of type {type_}", "lists")
        is_empty = isinstance(block, PackedStruct) and not block.children
        if is_empty and pa.types.is_struct(type_):
            return structs_without_fields(type_, block.num_values)
        return to_arrow(_fitting(block, type_), type_, decoded.validity)

    def _byte_lists(self, leaf: Leaf, number: int, rows: Rows) -> pa.Array:
        """Decode strings that are lists of the single bytes in the next column."""
        strings = joined_pages(
            run(self._source, self._list_pages(self._column(number, leaf.name), rows))
        )
        bytes_leaf = Leaf(leaf.field_id, leaf.name, pa.uint8(), 1)
        parts = self._split(self._column(number + 1, leaf.name), strings.items)
        content = run(self._source, [self._values(bytes_leaf, part) for part in parts])
        data = pa.concat_arrays(content) if content else pa.array([], pa.uint8())
        level = strings.level
        offsets = np.zeros(1, np.int64) if level.offsets is None else level.offsets
        if len(data) != int(offsets[-1]):
            raise CorruptFileError(
                self._source.path,
                None,
                f"{int(offsets[-1])} bytes of strings",
                f"{len(data)}",
                f"column {leaf.name!r}",
            )
        block = VariableWidth(level.length, offsets, data.to_numpy())
        return to_arrow(block, leaf.type, level.validity)

    def _page(self, part: PageRows, *, keeps_dictionary: bool) -> Page:
        offsets, sizes = part.metadata.buffer_offsets, part.metadata.buffer_sizes
        mine = [(start, start + size) for start, size in zip(offsets, sizes, strict=True)]
        column = self._regions(part.column.metadata.buffers)
        return Page(self._regions(mine), column, self._file_buffers, keeps_dictionary)

    def _regions(self, ranges: Sequence[tuple[int, int]]) -> tuple[Region, ...]:
        return tuple(Region(start, stop, self._source.is_mapped) for start, stop in ranges)

    def _located(self, part: PageRows, steps: Steps[Values]) -> Steps[Values]:
        first = next(iter(part.metadata.buffer_offsets), None)
        return located(steps, self._source.path, first, part.place)


def _spelled_out(leaf: Leaf, column: Column) -> bool:
    """Tell whether a column of strings is stored as lists of bytes."""
    type_, kinds = leaf.type, pa.types
    text = kinds.is_string(type_) or kinds.is_large_string(type_)
    if not (text or kinds.is_binary(type_) or kinds.is_large_binary(type_)):
        return False
    pages = column.metadata.pages
    return bool(pages) and pages[0].array_encoding().WhichOneof("array_encoding") == "list"


def _fitting(block: DataBlock, type_: pa.DataType) -> DataBlock:
    """Read lists of single bytes as fixed-size binary where that is the type (writers of 2024)."""
    if not pa.types.is_fixed_size_binary(type_) or not isinstance(block, FixedSizeList):
        return block
    items = block.items
    if not isinstance(items, FixedWidth) or items.bits_per_value != 8 or block.validity is not None:
        return block
    return FixedWidth(8 * block.dimension, block.num_values, items.data)


def structs_without_fields(type_: pa.DataType, num_rows: int) -> pa.Array:
    """Build structs whose fields are all missing from the file."""
    fields = [pa.nulls(num_rows, type_.field(i).type) for i in range(type_.num_fields)]
    return pa.Array.from_buffers(type_, num_rows, [None], children=fields)


@dataclass(frozen=True, slots=True)
class ListLevel:
    """Rows of one list field: their level, and the items they have in the child columns."""

    level: Level
    items: Rows


def is_list(type_: pa.DataType, name: str) -> bool:
    """Tell a list from a struct. Raises NotSupportedError for any other nesting."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return True
    if pa.types.is_struct(type_):
        return False
    raise NotSupportedError(f"column {name!r}: file version 2.0 cannot hold {type_} fields")


def rows_below(
    leaf: Leaf, lists: Mapping[int, ListLevel], rows: Rows, depth: int | None = None
) -> Rows:
    """Return the rows wanted of a field below ``ancestors[:depth]`` (all of them for None)."""
    for field_id, _ in reversed(leaf.ancestors[:depth]):
        if field_id in lists:
            return lists[field_id].items
    return rows


def joined_pages(pages: Sequence[Values]) -> ListLevel:
    """Join the pages of one list field."""
    none = np.zeros(0, np.int64)
    blocks = [page.block for page in pages if isinstance(page.block, ItemRanges)]
    starts = np.concatenate([none, *(block.starts for block in blocks)])
    stops = np.concatenate([none, *(block.stops for block in blocks)])
    offsets: Ints = np.zeros(starts.size + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    validity = None
    if any(page.validity is not None for page in pages):
        validity = np.concatenate(
            [
                np.ones(block.starts.size, bool) if page.validity is None else page.validity
                for page, block in zip(pages, blocks, strict=True)
            ]
        )
    return ListLevel(Level(int(starts.size), validity, offsets), merged(starts, stops))


def leaf_parts(
    leaf: Leaf, arrays: Sequence[pa.Array], lists: Mapping[int, ListLevel], rows: Rows
) -> list[LeafPart]:
    """Put levels over the arrays: one part per page, or one for all below a list."""
    if not any(field_id in lists for field_id, _ in leaf.ancestors):
        return [LeafPart((Level(len(array), None),) * leaf.depth, array) for array in arrays]
    values = concatenated(arrays) if arrays else pa.nulls(0, leaf.type)
    levels = []
    length = rows.num_rows
    for field_id, _ in leaf.ancestors:
        level = lists[field_id].level if field_id in lists else Level(length, None)
        levels.append(level)
        length = level.length if level.offsets is None else int(level.offsets[-1])
    return [LeafPart((*levels, Level(len(values), None)), values)]


def run(source: FileSource, decoders: Sequence[Steps[T]]) -> list[T]:
    """Run decoders side by side: each round of reading serves all of them."""
    steps = together(decoders)
    try:
        request = next(steps)
        while True:
            request = steps.send(source.arrays(request))
    except StopIteration as end:
        results: list[T] = end.value
        return results


def located(steps: Steps[T], path: str, offset_bytes: int | None, place: str) -> Steps[T]:
    """Run a decoder and add to its errors where in the file it was reading."""
    try:
        result = yield from steps
    except CorruptFileError as exc:
        raise exc.located(path, offset_bytes, place) from exc
    except NotSupportedError as exc:
        exc.add_note(f"{path}, {place}")
        raise
    return result
