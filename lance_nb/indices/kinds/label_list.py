"""Label list: the rows whose lists have an item, for each different item.

``bitmap_page_lookup.lance`` has ``keys`` and ``bitmaps``, sets of rows; the null key has the rows
with a null item. The rows whose list itself is null are a set in the global buffer that the setting
``lance:label_list_nulls`` names; older files have none, and then NOT is not answered.

Limits: those of ``key_sets``. To build a segment, the rows of null lists are in
memory.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.errors import InvalidInputError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.index_file import IndexFile
from lance_nb.indices.key_sets import KeySets, Mask
from lance_nb.indices.leaf import HasItems, IsNull, Leaf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import (
    NO_ROWS,
    U64s,
    ascending,
    common,
    rows_of_bitmaps,
    tree_map_rows,
    tree_maps,
)
from lance_nb.table.predicate.comparison import as_mask, is_member

if TYPE_CHECKING:
    from lance_nb.indices.building import Parameters, SegmentDetails, SegmentFiles, SegmentRows

FILES = ("bitmap_page_lookup.lance",)
DETAILS_URL = "/lance.table.LabelListIndexDetails"
_NULLS = "lance:label_list_nulls"


class LabelList:
    """One segment of a label-list index."""

    def __init__(self, file: IndexFile) -> None:
        self._sets = KeySets(file)
        self._keys = self._sets.keys
        nulls = file.buffer(_NULLS)
        self._nulls = None if nulls is None else tree_map_rows(nulls, file.path)

    def understands(self, leaf: Leaf) -> bool:
        """array_has, array_has_any, array_has_all, and IS NULL where null lists are known."""
        kind = leaf.column.type
        is_list = pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
        if not is_list or kind.value_type != self._keys.type:
            return False
        question = leaf.asks(HasItems, IsNull)
        if isinstance(question, HasItems):
            return question.members.type == self._keys.type and len(question.members) > 0
        return question is not None and self._nulls is not None

    def estimate(self, leaf: Leaf) -> int:
        """Estimate what the sets cost, given equal ones."""
        question = leaf.asks(HasItems)
        if not isinstance(question, HasItems):
            return 0
        return self._sets.cost(len(question.members))

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Unite the sets of the items, or take what they have in common."""
        nulls = self._nulls if with_nulls else None
        question = leaf.asks(HasItems)
        if not isinstance(question, HasItems):
            return Found(NO_ROWS if self._nulls is None else self._nulls, NO_ROWS)
        if not question.every:
            chosen = as_mask(is_member(self._keys, question.members), 0)
            if question.has_null:
                chosen = chosen | as_mask(pc.is_null(self._keys), len(self._keys))
            return self._answer(self._rows(chosen), nulls)
        parts = [
            self._of_items(question.members.slice(position, 1))
            for position in range(len(question.members))
        ]
        if question.has_null:
            parts.append(self._rows(as_mask(pc.is_null(self._keys), len(self._keys))))
        return self._answer(reduce(common, parts), nulls)

    def _answer(self, rows: U64s, nulls: U64s | None) -> Found:
        """Return rows, to be computed again if some of them have a null list.

        Files of version 2.0 keep what lies under null lists, and pylance 14.0.2 indexes it.
        """
        is_exact = self._nulls is None or not common(rows, self._nulls).size
        return Found(rows, nulls, is_exact=is_exact)

    def _of_items(self, members: pa.Array) -> U64s:
        return self._rows(as_mask(is_member(self._keys, members), 0))

    def _rows(self, chosen: Mask) -> U64s:
        return rows_of_bitmaps(self._sets.read(chosen))


# --- building -------------------------------------------------------------------------------------


def check(field: pa.Field, parameters: Parameters) -> Parameters:
    """Refuse a column that is no list of plain values, and parameters. Raises InvalidInputError."""
    kind = field.type
    is_list = pt.is_list(kind) or pt.is_large_list(kind)
    if not is_list or pt.is_nested(kind.value_type):
        raise InvalidInputError(
            f"a LABEL_LIST index holds lists of values that are not nested: column "
            f"{field.name!r} is {kind}"
        )
    if parameters:
        raise InvalidInputError(f"a LABEL_LIST index has no parameter {min(parameters)!r}")
    return {}


def write(
    rows: SegmentRows,
    files: SegmentFiles,
    _parameters: Parameters,
    _existing: Sequence[IndexMetadata],
) -> SegmentDetails:
    """Write the different items with the rows of the lists that have them, and the null lists."""
    from lance_nb.indices.building import SegmentDetails
    from lance_nb.indices.sorted_rows import grouped_rows, sorted_rows

    kind = rows.field.type.value_type
    items = pa.schema([pa.field("item", kind), pa.field("row", pa.uint64(), nullable=False)])
    schema = pa.schema([pa.field("keys", kind), pa.field("bitmaps", pa.binary())])
    null_lists: list[U64s] = []
    count = 0
    with files.create(FILES[0], schema) as file:
        ordered = sorted_rows(_items(rows.batches(), items, null_lists), items)
        for keys, sets in grouped_rows(ordered):
            file.write(pa.RecordBatch.from_arrays([keys, sets], schema=schema))
            count += len(keys)
        nulls = ascending(np.concatenate(null_lists)) if null_lists else NO_ROWS
        (data,) = tree_maps(np.zeros(nulls.size, np.int64), nulls, 1)
        number = file.add_global_buffer(data.as_py())
        settings = {_NULLS: str(number), "lance:index_stats": f'{{"num_bitmaps":{count}}}'}
        file.add_schema_metadata({name: text.encode() for name, text in settings.items()})
    return SegmentDetails(index_version=1)


def _items(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, null_lists: list[U64s]
) -> Iterator[pa.RecordBatch]:
    """Yield each item with the row of its list; keep the rows of null lists."""
    for batch in batches:
        lists, rows = batch.columns
        if lists.null_count:
            null_rows = pc.filter(rows, pc.is_null(lists))
            null_lists.append(np.frombuffer(null_rows.buffers()[1], np.uint64, len(null_rows)))
            lists, rows = pc.drop_null(lists), pc.filter(rows, pc.is_valid(lists))
        values = pc.list_flatten(lists)
        owners = rows.take(pc.list_parent_indices(lists))
        yield pa.RecordBatch.from_arrays([values, owners], schema=schema)
