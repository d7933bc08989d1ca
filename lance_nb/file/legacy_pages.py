"""Leaves of a 0.1 data file, batch by batch: lists are read before their items.

A batch is a run of rows that was written together; every field has one page in each batch, except
structs, which have none. Items of a list page are those of the child's page in the same batch.

Not supported: the encoding ``RLE`` (4). The enum declares it, but no bytes were ever laid down for
it: in Lance's history ``rust/src/encodings/rle.rs`` is a licence without code, the C++ folder of
encodings has no such file, and issue 352 of lance-format/lance ("Support RLE encoding", December
2022) was open until 2.1 files had an encoding of that name. Such a page is refused by name.
Source: verified against pylance 14.0.2; enum ``Encoding`` of file.proto.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.base import DataBlock, FixedWidth, Ints, Rows, corrupt
from lance_nb.encodings.repdef import Level
from lance_nb.encodings.slicing import merged, split_at
from lance_nb.encodings.steps import Region, Steps, together
from lance_nb.encodings.v2_0.base import ItemRanges, Values, check_free
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.array_reader import structs_without_fields
from lance_nb.file.columns import Leaf, LeafPart
from lance_nb.file.legacy_metadata import LegacyPage, PageTable
from lance_nb.file.legacy_values import decode_items, decode_values
from lance_nb.file.source import FileSource
from lance_nb.file.stepping import located, run
from lance_nb.format.schema import Schema

_RLE = 4  # Field.encoding: a name without a layout


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
            found = yield from keys
            return to_arrow(_plain(found), type_, found.validity)
        found, items = yield from together(
            [keys, self._dictionary(leaf.field_id, type_.value_type)]
        )
        return _looked_up(found, items, type_)

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
    found = block.data.view(f"<u{block.bits_per_value // 8}")
    if found.size and int(found.max()) >= values.num_values:
        raise corrupt(f"dictionary keys below {values.num_values}", str(int(found.max())))
    return pa.DictionaryArray.from_arrays(
        to_arrow(block, type_.index_type),
        to_arrow(values, type_.value_type, items.validity),
        ordered=type_.ordered,
        safe=False,
    )
