"""The sets of rows of keys: a file with a row for each key, ``keys`` and ``bitmaps``.

Sets that were read are kept for the next question, as the files of a segment never change: a few of
them, and at most ``_KEPT_BYTES`` as they are stored.

Limits: ``KEYS_MAX`` keys; a file above ``BYTES_MAX`` bytes is not read.
Source: files of Bitmap and LabelList indices that pylance 14.0.2 writes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt
from pyroaring import BitMap

from lance_nb import arrow_compute as pc
from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, NotSupportedError, describe_order, describe_repeated
from lance_nb.indices.index_file import BYTES_MAX, IndexFile
from lance_nb.indices.row_sets import tree_map_bitmaps

KEYS_MAX = 1 << 22
_KEPT_SETS = 1024
_CHECKED_KEYS, _CHECKED_BYTES = 256, 1 << 18  # of all sets, to compare them with each other
_KEPT_BYTES = 1 << 25  # of a segment
Mask = npt.NDArray[np.bool_]
Sets = dict[int, BitMap]


def check_ascending(keys: pa.Array, path: str) -> None:
    """Refuse keys that do not ascend, but for nulls in front. Raises CorruptFileError.

    Fractions are left out, as NaN is at either end, and so is what Arrow does not order.
    """
    if pt.is_floating(keys.type) or pt.is_nested(keys.type) or len(keys) < 2:
        return
    compared = keys[1:] if keys.null_count and not keys[0].is_valid else keys
    is_ordered = (
        not compared.null_count
        and pc.all(pc.less(compared[:-1], compared[1:])).as_py() is not False
    )
    if not is_ordered:
        num_nulls = compared.null_count
        actual = (
            f"null in {num_nulls} of {len(compared)}" if num_nulls else describe_order(compared)
        )
        raise CorruptFileError(path, None, "different keys in order", actual)


def rows_apart(sets: list[Sets], path: str) -> None:
    """Refuse sets that share a row. Raises CorruptFileError."""
    by_key: dict[int, list[BitMap]] = {}
    for row_set in sets:
        for key, bitmap in row_set.items():
            by_key.setdefault(key, []).append(bitmap)
    for fragment, bitmaps in by_key.items():
        if sum(map(len, bitmaps)) != len(BitMap.union(*bitmaps)):
            offsets = np.concatenate([bitmap.to_array() for bitmap in bitmaps])
            actual = f"row {describe_repeated(offsets)} in fragment {fragment}"
            raise CorruptFileError(path, None, "each row in the set of one key", actual)


class KeySets:
    """The keys of one segment, in memory, and their sets of rows, read when they are needed."""

    def __init__(self, file: IndexFile) -> None:
        """Read the keys. Raises CorruptFileError, NotSupportedError."""
        file.check_rows(KEYS_MAX)
        self._file = file
        (keys,) = file.read_all("keys")
        self.keys: pa.Array = keys
        check_ascending(keys, file.path)
        kind = file.type_of("bitmaps")
        if not (pt.is_binary(kind) or pt.is_large_binary(kind)):
            raise CorruptFileError(file.path, None, "bitmaps in bytes", str(kind))
        self._sets: dict[int, Sets] = {}
        self._kept_bytes = 0

    def check_apart(self) -> None:
        """Refuse keys that share a row, where all sets are few and small; they are read for it.

        Raises CorruptFileError.
        """
        is_small = self._file.reader.size_bytes <= _CHECKED_BYTES
        if is_small and len(self.keys) <= _CHECKED_KEYS:
            rows_apart(self.read(np.ones(len(self.keys), np.bool_)), self._file.path)

    @property
    def path(self) -> str:
        """The file."""
        return self._file.path

    def cost(self, num_keys: int) -> int:
        """Return about what reading the sets of some keys costs, as a number of rows."""
        share = min(num_keys / max(len(self.keys), 1), 1)
        return int(share * self._file.reader.size_bytes) // 8

    def read(self, chosen: Mask) -> list[Sets]:
        """Return the sets of some keys, in the order of the keys; a bitmap for each fragment.

        They are shared, and are not to be changed. Raises CorruptFileError, NotSupportedError.
        """
        rows: Ints = np.flatnonzero(chosen).astype(np.int64)
        sets_kept = self._sets  # never changed: another thread has its own
        missing = np.array([row for row in rows.tolist() if row not in sets_kept], np.int64)
        if missing.size:
            sets_kept = sets_kept | dict(zip(missing.tolist(), self._read(missing), strict=True))
        return [sets_kept[row] for row in rows.tolist()]

    def _read(self, rows: Ints) -> list[Sets]:
        if self._file.reader.size_bytes > BYTES_MAX:
            raise NotSupportedError(f"{self._file.path}: more than {BYTES_MAX:,} bytes")
        (stored,) = self._file.read_rows(["bitmaps"], rows)
        if stored.null_count:
            raise CorruptFileError(self._file.path, None, "a set of rows for each key", "null")
        sets = [tree_map_bitmaps(set_data.as_buffer(), self._file.path) for set_data in stored]
        size = sum(len(set_data.as_buffer()) for set_data in stored)
        if self._kept_bytes + size > _KEPT_BYTES or len(self._sets) + rows.size > _KEPT_SETS:
            self._sets, self._kept_bytes = {}, 0
        if size <= _KEPT_BYTES and rows.size <= _KEPT_SETS:
            self._sets = self._sets | dict(zip(rows.tolist(), sets, strict=True))
            self._kept_bytes += size
        return sets
