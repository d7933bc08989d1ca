"""Bitmap: the rows of each different value.

``bitmap_page_lookup.lance`` has a row per value: ``keys`` and ``bitmaps``, sets of rows; the null
key has the rows without a value. Any condition on the column alone is computed for the keys.

Limits: those of ``key_sets``.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.index_file import IndexFile
from lance_nb.indices.key_sets import KeySets, rows_apart
from lance_nb.indices.leaf import Leaf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import rows_of_bitmaps

if TYPE_CHECKING:
    from lance_nb.indices.building import Parameters, SegmentDetails, SegmentFiles, SegmentRows

FILES = ("bitmap_page_lookup.lance",)
DETAILS_URL = "/lance.table.BitmapIndexDetails"


def statistics(file: IndexFile) -> dict[str, Any]:
    """Return pylance's statistics of a segment."""
    return {"num_bitmaps": file.num_rows}


class Bitmap:
    """One segment of a bitmap index."""

    def __init__(self, file: IndexFile) -> None:
        self.sets = KeySets(file)
        self.sets.check_apart()

    @property
    def keys(self) -> pa.Array:
        """The different values, null among them."""
        return self.sets.keys

    def understands(self, leaf: Leaf) -> bool:
        """Every condition on the column."""
        return bool(leaf.column.type == self.keys.type)

    def estimate(self, leaf: Leaf) -> int:
        """Estimate what the sets cost, given equal ones: much less than as many rows."""
        true, _ = leaf.test(self.keys)
        return self.sets.cost(int(true.sum()))

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Unite the sets of the keys that pass."""
        true, null = leaf.test(self.keys)
        sets = self.sets.read(true)
        rows_apart(sets, self.sets.path)
        nulls = rows_of_bitmaps(self.sets.read(null)) if with_nulls else None
        return Found(rows_of_bitmaps(sets), nulls)


# --- building -------------------------------------------------------------------------------------


def write(
    rows: SegmentRows,
    files: SegmentFiles,
    _parameters: Parameters,
    _existing: Sequence[IndexMetadata],
) -> SegmentDetails:
    """Write the different values with their rows."""
    from lance_nb.indices.building import SegmentDetails
    from lance_nb.indices.sorted_rows import grouped_rows, sorted_rows

    schema = pa.schema([pa.field("keys", rows.field.type), pa.field("bitmaps", pa.binary())])
    count = 0
    with files.create(FILES[0], schema) as file:
        for keys, sets in grouped_rows(sorted_rows(rows.batches(), rows.schema)):
            file.write(pa.RecordBatch.from_arrays([keys, sets], schema=schema))
            count += len(keys)
        file.add_schema_metadata({"lance:index_stats": f'{{"num_bitmaps":{count}}}'.encode()})
    return SegmentDetails()
