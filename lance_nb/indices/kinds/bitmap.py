"""Bitmap: the rows of each different value.

``bitmap_page_lookup.lance`` has a row per value: ``keys`` and ``bitmaps``, sets of rows; the null
key has the rows without a value. Any condition on the column alone is computed for the keys.

Limits: ``KEYS_MAX`` different values are searched.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt
from pyroaring import BitMap

from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.index_file import BYTES_MAX, IndexFile
from lance_nb.indices.leaf import Leaf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import U64s, rows_of_bitmaps, tree_map_bitmaps

if TYPE_CHECKING:
    from lance_nb.indices.building import Parameters, SegmentDetails, SegmentFiles, SegmentRows

FILES = ("bitmap_page_lookup.lance",)
DETAILS_URL = "/lance.table.BitmapIndexDetails"
KEYS_MAX = 1 << 22
Mask = npt.NDArray[np.bool_]


def statistics(file: IndexFile) -> dict[str, Any]:
    """Return pylance's statistics of a segment."""
    return {"num_bitmaps": file.num_rows}


class Bitmap:
    """One segment of a bitmap index."""

    def __init__(self, file: IndexFile) -> None:
        file.check_rows(KEYS_MAX)
        self._file = file
        (self.keys,) = file.read_all("keys")
        kind = file.type_of("bitmaps")
        if str(kind) not in ("binary", "large_binary"):
            raise CorruptFileError(file.path, None, "bitmaps in bytes", str(kind))

    def understands(self, leaf: Leaf) -> bool:
        """Every condition on the column."""
        return bool(leaf.column.type == self.keys.type)

    def estimate(self, leaf: Leaf) -> int:
        """Estimate what the sets cost, given equal ones: much less than as many rows."""
        true, _ = leaf.test(self.keys)
        share = int(true.sum()) / max(len(self.keys), 1)
        return int(share * self._file.reader.size_bytes) // 8

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Unite the sets of the keys that pass."""
        true, null = leaf.test(self.keys)
        return Found(self._rows(true), self._rows(null) if with_nulls else None)

    def _rows(self, chosen: Mask) -> U64s:
        return rows_of_bitmaps(self.sets(chosen))

    def sets(self, chosen: Mask) -> list[dict[int, BitMap]]:
        """Read the sets of some keys, in the order of the keys."""
        rows: Ints = np.flatnonzero(chosen).astype(np.int64)
        if not rows.size:
            return []
        if self._file.reader.size_bytes > BYTES_MAX:
            raise NotSupportedError(f"{self._file.path}: more than {BYTES_MAX:,} bytes")
        (sets,) = self._file.read_rows(["bitmaps"], rows)
        if sets.null_count:
            raise CorruptFileError(self._file.path, None, "a set of rows for each key", "null")
        return [tree_map_bitmaps(one.as_buffer(), self._file.path) for one in sets]


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
            file.write(pa.RecordBatch.from_arrays([_positive_zero(keys), sets], schema=schema))
            count += len(keys)
        file.add_schema_metadata({"lance:index_stats": f'{{"num_bitmaps":{count}}}'.encode()})
    return SegmentDetails()


def _positive_zero(keys: pa.Array) -> pa.Array:
    """Return the keys with 0.0 in the place of -0.0, which no reader would look up."""
    if not (pt.is_float32(keys.type) or pt.is_float64(keys.type)):
        return keys
    import pyarrow.compute as pc

    return pc.add(keys, pa.scalar(0.0, keys.type))
