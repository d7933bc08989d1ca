"""Bitmap: the rows of each different value.

``bitmap_page_lookup.lance`` has a row per value: ``keys`` and ``bitmaps``, sets of rows; the null
key has the rows without a value. Any condition on the column alone is computed for the keys.

Limits: ``KEYS_MAX`` different values.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.indices.index_file import BYTES_MAX, IndexFile
from lance_nb.indices.leaf import Leaf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import NO_ROWS, U64s, joined, tree_map_rows

FILES = ("bitmap_page_lookup.lance",)
KEYS_MAX = 1 << 22
Mask = npt.NDArray[np.bool_]


class Bitmap:
    """One segment of a bitmap index."""

    def __init__(self, file: IndexFile) -> None:
        file.check_rows(KEYS_MAX)
        self._file = file
        (self._keys,) = file.read_all("keys")
        kind = file.type_of("bitmaps")
        if str(kind) not in ("binary", "large_binary"):
            raise CorruptFileError(file.path, None, "bitmaps in bytes", str(kind))

    def understands(self, leaf: Leaf) -> bool:
        """Every condition on the column."""
        return bool(leaf.column.type == self._keys.type)

    def estimate(self, leaf: Leaf) -> int:
        """Estimate what the sets cost, given equal ones: much less than as many rows."""
        true, _ = leaf.test(self._keys)
        share = int(true.sum()) / max(len(self._keys), 1)
        return int(share * self._file.reader.size_bytes) // 8

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Unite the sets of the keys that pass."""
        true, null = leaf.test(self._keys)
        return Found(self._rows(true), self._rows(null) if with_nulls else None)

    def _rows(self, chosen: Mask) -> U64s:
        rows: Ints = np.flatnonzero(chosen).astype(np.int64)
        if not rows.size:
            return NO_ROWS
        if self._file.reader.size_bytes > BYTES_MAX:
            raise NotSupportedError(f"{self._file.path}: more than {BYTES_MAX:,} bytes")
        (sets,) = self._file.read_rows(["bitmaps"], rows)
        if sets.null_count:
            raise CorruptFileError(self._file.path, None, "a set of rows for each key", "null")
        return joined(tree_map_rows(one.as_buffer(), self._file.path) for one in sets)
