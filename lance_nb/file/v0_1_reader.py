"""Read a 0.1 data file ("legacy"): open it once, then any rows of any leaf.

A batch is a run of rows that was written together; every field has one page in each batch, except
structs, which have none. Pages are found by field id in the page table (``v0_1_metadata``). The ids
are those that the fields had when the file was written; ``own_ids`` maps the ids that a manifest
gives them now to these, which differ where pylance has repaired ids given out twice.

Layout of a page, by type:

* fixed width (and fixed-size binary): the values back to back; booleans as a bitmap, least
  significant bit first; fixed-size lists: their items;
* strings and bytes: the page is ``num_values + 1`` i64 positions in the file, value ``i`` lies
  between positions ``i`` and ``i + 1``. An empty value of a nullable field *is* a null;
* dictionary: the keys; the values stand once per file and read like a page of their own;
* list: ``num_values`` i32 (large list: i64) offsets into the items of the same batch, one more than
  there are lists;
* null: nothing.

Statistics are a small table in the file's own format: one row per batch, one column per field of
data, named by the field's id, a struct of ``null_count`` (int64), ``min_value`` and ``max_value``.

Limits: there is no validity: nulls of fixed-width types, lists and structs read as what was stored
in their place. Bounds of statistics may be wider than the values (text may be cut) and need not
occur in the data; an empty text as a bound means the same as none. Statistics of any other shape
are left out.
Not supported: maps, fixed-size lists of anything but fixed-width values, and the encoding ``RLE``
(4). The enum declares it, but no bytes were ever laid down for it: in Lance's history
``rust/src/encodings/rle.rs`` is a licence without code, the C++ folder of encodings has no such
file, and issue 352 of lance-format/lance ("Support RLE encoding", December 2022) was open until 2.1
files had an encoding of that name. Such a page is refused by name.
Source: enum ``Encoding`` of file.proto, spec page "statistics"; verified against pylance 14.0.2,
which reads and writes the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.base import (
    VALUES_MAX,
    AllNull,
    DataBlock,
    FixedSizeList,
    FixedWidth,
    Ints,
    Rows,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.repdef import Level
from lance_nb.encodings.slicing import expand_ranges, merged, places_in, split_at
from lance_nb.encodings.steps import Region, Steps, aligned, read_bits, read_ranges, together
from lance_nb.encodings.v2_0.base import ItemRanges, Values, check_free, scaled
from lance_nb.errors import CorruptFileError, NotSupportedError, describe_order
from lance_nb.file.columns import Leaf, LeafPart, assemble, leaves_of
from lance_nb.file.metadata import PageListing
from lance_nb.file.source import FileSource
from lance_nb.file.v0_1_metadata import LegacyMetadata, LegacyPage, PageTable, read_legacy_metadata
from lance_nb.file.v2_0_reader import located, run, structs_without_fields
from lance_nb.format.field import Field
from lance_nb.format.logical_types import is_nested, leaf_to_arrow
from lance_nb.format.schema import Schema
from lance_nb.value_classes import dataclass

_ENCODINGS = {1: "plain", 2: "var_binary", 3: "dictionary", 4: "rle"}
_RLE = 4  # Field.encoding: a name without a layout
_NONE = np.zeros(0, np.int64)


class LegacyReader:
    """An open 0.1 data file. Safe to share between threads for reading."""

    file_version = (0, 1)

    def __init__(self, source: FileSource) -> None:
        """Read the messages at the end. Raises CorruptFileError."""
        self.path = source.path
        self._source = source
        self._metadata = read_legacy_metadata(source)
        self._pages = LegacyPages(source, self._metadata.schema, self._metadata.pages)

    @property
    def size_bytes(self) -> int:
        """Size of the file."""
        return self._source.size_bytes

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the metadata that is held in memory: the ends of batches."""
        return int(self._metadata.pages.batch_ends.nbytes)

    @property
    def num_rows(self) -> int:
        """Rows of all batches."""
        ends = self._metadata.pages.batch_ends
        return int(ends[-1]) if ends.size else 0

    @property
    def schema(self) -> Schema:
        """The fields of the file, with the places of dictionaries."""
        return self._metadata.schema

    def read_leaves(
        self,
        leaves: Sequence[Leaf],
        owners: Mapping[int, int],
        rows: Rows,
        num_rows: int | None = None,
    ) -> dict[int, list[LeafPart]]:
        """Decode ``rows`` of each leaf; see ``FileReader.read_leaves``.

        ``owners`` are ids of this file by field id (``own_ids``).
        """
        last = int(rows.stops[-1]) if rows.stops.size else 0
        if last > self.num_rows or num_rows not in {None, self.num_rows}:
            expected = f"{last if num_rows is None else num_rows} rows"
            raise CorruptFileError(self.path, None, expected, f"{self.num_rows} rows")
        own = [_renamed(leaf, owners) for leaf in leaves]
        parts = self._pages.read_leaves(own, rows)
        return {
            leaf.field_id: parts[leaf_of_file.field_id]
            for leaf, leaf_of_file in zip(leaves, own, strict=True)
        }

    def own_ids(self, fields: Sequence[int]) -> dict[int, int]:
        """Map the field ids that a manifest lists for this file to those in the file.

        An id that the file does not know stands where the field does in the file's schema.
        """
        ids = [field.id for field in self.schema.walk()]
        own = {field_id: field_id for field_id in fields}
        if not own.keys() <= set(ids) and len(fields) == len(ids):
            pairs = zip(fields, sorted(ids), strict=True)
            own.update((field_id, mine) for field_id, mine in pairs if field_id not in ids)
        return own

    def batch_sizes(self) -> Ints:
        """Return the rows of each batch: every field has one page per batch."""
        return np.diff(self._metadata.pages.batch_ends, prepend=np.int64(0))

    def statistics(self) -> pa.Table | None:
        """Null count, smallest and largest value by field id, one row per batch (None: none)."""
        return read_statistics(self._source, self._metadata)

    def list_pages(self) -> Iterator[PageListing]:
        """List the pages of every field; their statistics are read as well."""
        statistics = self.statistics()
        table = self._metadata.pages
        for field in self.schema.walk():
            if field.logical_type == "struct":
                continue
            for batch in range(table.batch_ends.size):
                page = table.page(self._source, field.id, batch)
                row = _statistics_of(statistics, field.id, batch)
                yield PageListing(
                    column=field.id,
                    page=batch,
                    num_rows=page.num_values,
                    size_bytes=_size_bytes(field, page.num_values),
                    offset_bytes=page.position,
                    encoding=_ENCODINGS.get(field.encoding, "none"),
                    null_count=row.get("null_count"),
                    min_value=_text(row.get("min_value")),
                    max_value=_text(row.get("max_value")),
                )


def _renamed(leaf: Leaf, owners: Mapping[int, int]) -> Leaf:
    """Return the leaf with the field ids of the file."""
    if owners.get(leaf.field_id, leaf.field_id) == leaf.field_id and not leaf.ancestors:
        return leaf
    ancestors = tuple((owners.get(field, field), type_) for field, type_ in leaf.ancestors)
    return replace(leaf, field_id=owners.get(leaf.field_id, leaf.field_id), ancestors=ancestors)


def _statistics_of(statistics: pa.Table | None, field_id: int, batch: int) -> dict[str, Any]:
    if statistics is None or str(field_id) not in statistics.column_names:
        return {}
    recorded: dict[str, Any] = statistics.column(str(field_id))[batch].as_py() or {}
    return recorded


def _text(bound: object) -> str | None:
    return None if bound is None else str(bound)


def _size_bytes(field: Field, num_values: int) -> int | None:
    """Return the bytes of a page of fixed-width values; None where only the page could tell."""
    if is_nested(field.logical_type):
        return num_values * (8 if field.logical_type.startswith("large") else 4)
    type_ = leaf_to_arrow(field.logical_type)
    if pa.types.is_dictionary(type_):
        type_ = type_.index_type
    while pa.types.is_fixed_size_list(type_):
        num_values *= type_.list_size
        type_ = type_.value_type
    try:
        return (num_values * int(type_.bit_width) + 7) // 8
    except ValueError:
        return 0 if pa.types.is_null(type_) else None


@dataclass(frozen=True, slots=True)
class LegacyPages:
    """The pages of one page table, with the schema that their field ids belong to."""

    source: FileSource
    schema: Schema
    table: PageTable

    def read_leaves(self, leaves: Sequence[Leaf], rows: Rows) -> dict[int, list[LeafPart]]:
        """Decode ``rows`` of each leaf: one part for each batch that has some of them."""
        batches = split_at(rows, self.table.batch_ends)
        decoders = [
            self._located(leaf, batch, self._part(leaf, batch, mine))
            for leaf in leaves
            for batch, mine in batches
        ]
        parts = iter(run(self.source, decoders))
        return {leaf.field_id: [next(parts) for _ in batches] for leaf in leaves}

    def _part(self, leaf: Leaf, batch: int, rows: Rows) -> Steps[LeafPart]:
        """Walk down from the rows to the leaf's values."""
        levels = []
        for field_id, type_ in leaf.ancestors:
            level, rows = yield from self._level(field_id, type_, batch, rows)
            levels.append(level)
        array = yield from self._array(leaf, batch, rows)
        return LeafPart((*levels, Level(len(array), None)), array)

    def _level(
        self, field_id: int, type_: pa.DataType, batch: int, rows: Rows
    ) -> Steps[tuple[Level, Rows]]:
        if pa.types.is_struct(type_):
            yield from ()
            return Level(rows.num_rows, None), rows
        if not pa.types.is_list(type_) and not pa.types.is_large_list(type_):
            raise NotSupportedError(f"file version 0.1 cannot hold {type_} fields")
        page = self._page(field_id, batch)
        items = yield from decode_items(type_, page, rows, self._file())
        offsets: Ints = np.zeros(items.starts.size + 1, np.int64)
        np.cumsum(items.stops - items.starts, out=offsets[1:])
        return Level(rows.num_rows, None, offsets), merged(items.starts, items.stops)

    def _array(self, leaf: Leaf, batch: int, rows: Rows) -> Steps[pa.Array]:
        type_ = leaf.type
        if pa.types.is_struct(type_):
            self._check_struct(leaf.field_id)
            check_free(rows.num_rows)
            yield from ()
            return structs_without_fields(type_, rows.num_rows)
        page = self._page(leaf.field_id, batch)
        keys = decode_values(type_, page, rows, self._file(), nullable=leaf.nullable)
        if not pa.types.is_dictionary(type_):
            decoded = yield from keys
            return to_arrow(_plain(decoded), type_, decoded.validity)
        decoded, items = yield from together(
            [keys, self._dictionary(leaf.field_id, type_.value_type)]
        )
        return _looked_up(decoded, items, type_)

    def _check_struct(self, field_id: int) -> None:
        """Refuse bytes where descriptions of blobs are wanted: 0.1 files know no blobs."""
        field = self.schema.field_by_id(field_id)
        if field is not None and field.logical_type != "struct":
            raise NotSupportedError(
                f"{field.logical_type} column {field.name!r} of a 0.1 file cannot be read as blobs"
            )

    def _dictionary(self, field_id: int, type_: pa.DataType) -> Steps[Values]:
        """Decode all values of a dictionary column."""
        field = self.schema.field_by_id(field_id)
        if field is None or field.dictionary is None:
            raise corrupt("the place of the dictionary's values", "none")
        position, count = field.dictionary
        if not 0 <= position <= self.source.size_bytes or count < 0:
            raise corrupt("a dictionary inside the file", f"{count} values at {position}")
        page = LegacyPage(position, count)
        zero: Ints = np.zeros(min(count, 1), np.int64)
        return (yield from decode_values(type_, page, Rows(zero, zero + count), self._file()))

    def _page(self, field_id: int, batch: int) -> LegacyPage:
        field = self.schema.field_by_id(field_id)
        if field is None:
            raise corrupt(f"a field with id {field_id} in the file's schema", "none")
        if field.encoding == _RLE:
            raise NotSupportedError(
                f"{self.source.path}: column {field.name!r} says that its page of batch {batch} is "
                "run-length encoded (RLE); file version 0.1 never defined the bytes of such a page"
            )
        return self.table.page(self.source, field_id, batch)

    def _file(self) -> Region:
        return Region(0, self.source.size_bytes, self.source.is_mapped)

    def _located(self, leaf: Leaf, batch: int, steps: Steps[LeafPart]) -> Steps[LeafPart]:
        place = f"column {leaf.name!r}, batch {batch}"
        return located(steps, self.source.path, None, place)


def _plain(values: Values) -> DataBlock:
    if isinstance(values.block, ItemRanges):
        raise CorruptFileError("", None, "plain values", "lists")
    return values.block


def _looked_up(keys: Values, items: Values, type_: pa.DataType) -> pa.Array:
    """Join keys and values of a dictionary; a null stays among the values, as pylance shows it."""
    block = _plain(keys)
    if not isinstance(block, FixedWidth):
        raise corrupt("dictionary keys of fixed width", type(block).__name__)
    values = _plain(items)
    codes = block.data.view(f"<u{block.bits_per_value // 8}")
    if codes.size and int(codes.max()) >= values.num_values:
        raise corrupt(f"dictionary keys below {values.num_values}", str(int(codes.max())))
    return pa.DictionaryArray.from_arrays(
        to_arrow(block, type_.index_type),
        to_arrow(values, type_.value_type, items.validity),
        ordered=type_.ordered,
        safe=False,
    )


def decode_values(
    type_: pa.DataType, page: LegacyPage, rows: Rows, file: Region, *, nullable: bool = True
) -> Steps[Values]:
    """Decode rows of a page; ``file`` is the whole file. Dictionary types give their keys."""
    kinds = pa.types
    if kinds.is_dictionary(type_):
        type_ = type_.index_type
    if rows.stops.size and int(rows.stops[-1]) > page.num_values:
        raise corrupt(f"a page of {int(rows.stops[-1])} values", f"{page.num_values} values")
    if kinds.is_null(type_):
        check_free(rows.num_rows)
        return Values(AllNull(rows.num_rows))
    if _is_variable(type_):
        return (yield from _strings(page, rows, file, nullable=nullable))
    return (yield from _fixed(type_, page, rows, file))


def decode_items(
    type_: pa.DataType, page: LegacyPage, rows: Rows, file: Region
) -> Steps[ItemRanges]:
    """Decode which items the rows of a list page have."""
    if not rows.starts.size:
        return ItemRanges(_NONE, _NONE)
    width = 8 if pa.types.is_large_list(type_) else 4
    starts, stops = yield from _bounds(page.num_values, width, rows, _from(file, page))
    return ItemRanges(starts, stops)


def _fixed(type_: pa.DataType, page: LegacyPage, rows: Rows, file: Region) -> Steps[Values]:
    if pa.types.is_fixed_size_list(type_):
        size = type_.list_size
        items_page = LegacyPage(page.position, min(page.num_values * size, VALUES_MAX))
        items = yield from _fixed(type_.value_type, items_page, scaled(rows, size), file)
        if isinstance(items.block, ItemRanges):
            raise corrupt("plain items", "lists")
        return Values(FixedSizeList(size, rows.num_rows, items.block, None))
    bits = _bits(type_)
    region = _from(file, page)
    if bits == 1:
        data = yield from read_bits(region, rows.starts, rows.stops)
        return Values(FixedWidth(1, rows.num_rows, data))
    byte_rows = scaled(rows, bits // 8)
    data = yield from read_ranges(region, byte_rows.starts, byte_rows.stops)
    return Values(FixedWidth(bits, rows.num_rows, aligned(data, bits // 8)))


def _strings(page: LegacyPage, rows: Rows, file: Region, *, nullable: bool) -> Steps[Values]:
    if not rows.starts.size:
        return Values(VariableWidth(0, np.zeros(1, np.int64), np.zeros(0, np.uint8)))
    num_positions = min(page.num_values + 1, VALUES_MAX)
    starts, stops = yield from _bounds(num_positions, 8, rows, _from(file, page))
    offsets: Ints = np.zeros(stops.size + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    byte_rows = merged(starts, stops)
    data = yield from read_ranges(file, byte_rows.starts, byte_rows.stops)
    valid = stops > starts
    validity = None if not nullable or bool(valid.all()) else valid
    return Values(VariableWidth(rows.num_rows, offsets, data), validity)


def _bounds(num_bounds: int, width: int, rows: Rows, region: Region) -> Steps[tuple[Ints, Ints]]:
    """Read where each row begins and ends: bound ``i`` and bound ``i + 1``."""
    if int(rows.stops[-1]) + 1 > num_bounds:
        raise corrupt(f"{int(rows.stops[-1]) + 1} offsets", f"{num_bounds} offsets")
    needed = merged(rows.starts, rows.stops + 1)
    raw = yield from read_ranges(region, needed.starts * width, needed.stops * width)
    bounds = raw.view(f"<i{width}").astype(np.int64)
    if rows.starts.size == 1:
        starts, stops = bounds[:-1], bounds[1:]
    else:
        places = places_in(needed, expand_ranges(rows.starts, rows.stops))
        starts, stops = bounds[places], bounds[places + 1]
    if int(starts[0]) < 0 or bool((starts > stops).any()) or int(stops[-1]) > VALUES_MAX:
        expected = f"offsets in ascending order from 0 to at most {VALUES_MAX}"
        raise corrupt(expected, describe_order(bounds, repeats=True))
    if bool((starts[1:] < stops[:-1]).any()):
        order = describe_order(np.stack((starts, stops), axis=1).ravel(), repeats=True)
        raise corrupt("offsets that never go down", order)
    return starts, stops


def _from(file: Region, page: LegacyPage) -> Region:
    return Region(page.position, file.stop, file.is_mapped)


def _is_variable(type_: pa.DataType) -> bool:
    kinds = pa.types
    text = kinds.is_string(type_) or kinds.is_large_string(type_)
    return bool(text or kinds.is_binary(type_) or kinds.is_large_binary(type_))


def _bits(type_: pa.DataType) -> int:
    try:
        bits = int(type_.bit_width)
    except ValueError:
        bits = 0
    if bits == 0 or pa.types.is_nested(type_):
        raise NotSupportedError(f"file version 0.1 cannot hold values of type {type_} here")
    return bits


def read_statistics(source: FileSource, metadata: LegacyMetadata) -> pa.Table | None:
    """Return one row per batch and one column per field id; None where there are none.

    Raises CorruptFileError.
    """
    if metadata.statistics is None or metadata.statistics_schema is None:
        return None
    schema, table = metadata.statistics_schema, metadata.statistics
    pages = LegacyPages(source, schema, table)
    owners = {field.id: field.id for field in schema.walk()}
    num_rows = int(table.batch_ends[-1])
    rows = Rows(np.zeros(min(num_rows, 1), np.int64), np.full(min(num_rows, 1), num_rows))
    arrays, fields = [], []
    for field, arrow in zip(schema, schema.to_arrow(), strict=True):
        if not field.name.isdigit() or not pa.types.is_struct(arrow.type):
            continue
        parts_by_leaf = pages.read_leaves(list(leaves_of(field, arrow.type, owners)), rows)
        column = assemble(field, arrow.type, parts_by_leaf, num_rows)
        if len(column) != num_rows:
            place = f"statistics of field {field.name}"
            raise CorruptFileError(
                source.path, None, f"{num_rows} rows", f"{len(column)} rows", place
            )
        arrays.append(column)
        fields.append(arrow)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
