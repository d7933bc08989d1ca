"""The deletion vector of a fragment: the set of deleted row offsets, and its two file formats.

Layout: ``.arrow`` is an Arrow IPC file with one batch of the single column ``row_id: uint32 not
null``, in no order, usually compressed; ``.bin`` is a portable 32-bit Roaring bitmap::

    u32 cookie 12346 | u32 containers | per container u16 key, u16 cardinality - 1
    | per container u32 offset | arrays (sorted u16) or bitmaps (8192 bytes, LSB first)

Worked example: offsets 0, 20, ... 99980 are 10,024 bytes that begin ``3a300000 02000000 0000cc0c``.

Limits: every offset is below the rows of the fragment and the manifest's count must be exact; both
are checked. The manifest says which format a file has.
Source: lance-table ``deletion``; Roaring format specification.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import DeletionFileType
from lance_nb.format.roaring import (
    bitmap_from_bits,
    bitmap_from_mask,
    check_portable,
    mask_from_bitmap,
)

ARROW_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
BITMAP_THRESHOLD = 5000  # pylance writes Arrow below, Roaring from here on
_MASK_SHARE = 100  # above one row in this many, the mask is faster than pyroaring
# Arrow decompresses in other threads otherwise: three times as long for a file of some 100 bytes.
_READ_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False)

Mask = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.uint32]


class DeletionVector:
    """An immutable set of deleted row offsets.

    It is held as a bitmap, as ascending offsets, or as both: each is made of the other when it is
    needed, because scans of many small fragments need no bitmap.
    """

    __slots__ = ("_bitmap", "_offsets")

    def __init__(self, bitmap: BitMap | None = None, offsets: Offsets | None = None) -> None:
        self._bitmap = bitmap
        self._offsets = offsets

    @classmethod
    def of(cls, offsets: Iterable[int] | npt.NDArray[np.integer]) -> DeletionVector:
        """Build from offsets in any order."""
        if not isinstance(offsets, np.ndarray):
            offsets = np.fromiter(offsets, np.uint32)
        ascending = np.sort(offsets.astype(np.uint32))  # np.unique imports numpy.ma: 10 ms
        return cls(None, ascending[np.diff(ascending, prepend=ascending[:1] + 1) != 0])

    @classmethod
    def from_mask(cls, mask: Mask) -> DeletionVector:
        """Build from a mask, True where the row is deleted."""
        return cls(BitMap.deserialize(bitmap_from_mask(mask)))

    @classmethod
    def from_bits(cls, bits: npt.NDArray[np.uint8]) -> DeletionVector:
        """Build from a bitmap, lowest bit first, set where the row is deleted."""
        return cls(BitMap.deserialize(bitmap_from_bits(bits)))

    @property
    def size_bytes(self) -> int:
        """Bytes in memory: of the offsets, and of the bitmap as it is serialized."""
        offsets_bytes = 0 if self._offsets is None else self._offsets.nbytes
        return offsets_bytes + (0 if self._bitmap is None else len(self._bitmap.serialize()))

    @property
    def bitmap(self) -> BitMap:
        """The deleted offsets as a bitmap."""
        if self._bitmap is None:
            offsets = self.offsets()
            num_rows = int(offsets[-1]) + 1 if offsets.size else 0
            if offsets.size * _MASK_SHARE < num_rows:  # a mask of 2**32 rows would take 4 GiB
                self._bitmap = BitMap(offsets)
            else:
                mask = np.zeros(num_rows, np.bool_)
                mask[offsets] = True
                self._bitmap = BitMap.deserialize(bitmap_from_mask(mask))
        return self._bitmap

    def __len__(self) -> int:
        return self._offsets.size if self._offsets is not None else len(self.bitmap)

    def __contains__(self, offset: int) -> bool:
        return offset in self.bitmap

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeletionVector) and bool(self.bitmap == other.bitmap)

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: DeletionVector) -> DeletionVector:
        if self._offsets is None or other._offsets is None:
            return DeletionVector(self.bitmap | other.bitmap)
        return DeletionVector.of(np.concatenate((self._offsets, other._offsets)))

    def __repr__(self) -> str:
        return f"DeletionVector({len(self)} rows)"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.to_bytes(DeletionFileType.BITMAP),)

    def contains(self, offsets: npt.NDArray[np.integer]) -> Mask:
        """Return for each offset whether it is deleted."""
        ours = self.offsets()
        if not len(ours):
            return np.zeros(len(offsets), np.bool_)
        positions = np.searchsorted(ours, offsets)
        positions[positions == len(ours)] = 0
        return np.asarray(ours[positions] == offsets)

    def offsets(self) -> Offsets:
        """Return the deleted offsets in ascending order (uint32, read-only)."""
        if self._offsets is None:
            array = np.frombuffer(self.bitmap.to_array(), np.uint32) if self.bitmap else None
            self._offsets = np.empty(0, np.uint32) if array is None else array
        return self._offsets

    def to_mask(self, num_rows: int) -> Mask:
        """Return ``num_rows`` booleans, True where the row is deleted.

        Offsets of ``num_rows`` and above are left out.
        """
        if self._offsets is None:
            return mask_from_bitmap(self.bitmap.serialize(), num_rows)
        mask = np.zeros(num_rows, np.bool_)
        mask[self._offsets[: np.searchsorted(self._offsets, num_rows)]] = True
        return mask

    # --- bytes ----------------------------------------------------------------------------------

    @classmethod
    def from_bytes(
        cls,
        data: bytes | memoryview,
        file_type: DeletionFileType,
        *,
        physical_rows: int,
        num_deleted_rows: int | None = None,
        path: str = "",
        ignore_beyond: bool = False,
    ) -> DeletionVector:
        """Read a deletion file.

        ``ignore_beyond`` leaves out offsets of ``physical_rows`` and more. Raises CorruptFileError
        when it is no such file, holds such an offset all the same, or does not hold exactly
        ``num_deleted_rows`` offsets (those left out are counted).
        """
        if file_type is DeletionFileType.ARROW:
            vector, beyond = cls._from_arrow(data, physical_rows, path)
        else:
            vector = cls._from_roaring(data, path)
            beyond = vector.offsets()[np.searchsorted(vector.offsets(), physical_rows) :]
            if beyond.size and ignore_beyond:
                vector = cls(None, vector.offsets()[: -beyond.size])
        if beyond.size and not ignore_beyond:
            limit = f"row offsets below {physical_rows}"
            raise CorruptFileError(path, None, limit, f"offset {int(beyond.max())}")
        if num_deleted_rows is not None and len(vector) + beyond.size != num_deleted_rows:
            expected = f"{num_deleted_rows} deleted rows, as the manifest says"
            raise CorruptFileError(path, None, expected, f"{len(vector) + beyond.size}")
        return vector

    @classmethod
    def _from_arrow(
        cls, data: bytes | memoryview, physical_rows: int, path: str
    ) -> tuple[DeletionVector, Offsets]:
        """Return the offsets below ``physical_rows`` as a vector, and the others."""
        offsets = np.sort(_read_arrow(data, physical_rows, path))
        num_repeated = int(np.count_nonzero(offsets[1:] == offsets[:-1]))
        if num_repeated:
            repeated = f"{num_repeated} repeated ones"
            raise CorruptFileError(path, None, "row offsets that differ", repeated)
        num_inside = int(offsets.searchsorted(physical_rows))
        return cls(None, offsets[:num_inside]), offsets[num_inside:]

    @classmethod
    def _from_roaring(cls, data: bytes | memoryview, path: str) -> DeletionVector:
        check_portable(data, path)
        try:
            return cls(BitMap.deserialize(bytes(data)))
        except ValueError as error:
            raise CorruptFileError(path, None, "a Roaring bitmap", str(error)) from error

    def to_bytes(self, file_type: DeletionFileType | None = None) -> bytes:
        """Serialize; without ``file_type`` in the format that pylance would choose."""
        if file_type is None:
            few = len(self) < BITMAP_THRESHOLD
            file_type = DeletionFileType.ARROW if few else DeletionFileType.BITMAP
        if file_type is DeletionFileType.BITMAP:
            return bytes(self.bitmap.serialize())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, ARROW_SCHEMA) as writer:
            # Not pa.array(): it imports pandas where that is installed, which takes 0.4 s.
            data = pa.py_buffer(self.offsets())
            column = pa.Array.from_buffers(pa.uint32(), len(self), [None, data])
            writer.write_batch(pa.RecordBatch.from_arrays([column], schema=ARROW_SCHEMA))
        return bytes(sink.getvalue())


def _restore(data: bytes) -> DeletionVector:
    return DeletionVector(BitMap.deserialize(data))


def _read_arrow(data: bytes | memoryview, physical_rows: int, path: str) -> Offsets:
    """Return the offsets of an Arrow deletion file, in the order stored."""
    try:
        reader = pa.ipc.open_file(pa.py_buffer(data), options=_READ_OPTIONS)
        if not reader.schema.equals(ARROW_SCHEMA):
            schema_text = reader.schema.to_string(show_field_metadata=False)[:200]
            raise CorruptFileError(path, None, "one column 'row_id: uint32 not null'", schema_text)
        if reader.num_record_batches != 1:
            batches = f"{reader.num_record_batches} batches"
            raise CorruptFileError(path, None, "one record batch", batches)
        batch = reader.get_batch(0)
        batch.validate()  # that its buffers are as long as it is; any number is an offset
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if isinstance(error, CorruptFileError):
            raise
        raise CorruptFileError(path, None, "an Arrow deletion file", str(error)[:200]) from error
    column = batch.column(0)
    if column.null_count or len(column) > physical_rows:
        limit = f"at most {physical_rows} row offsets and no nulls"
        raise CorruptFileError(path, None, limit, f"{len(column)}, {column.null_count} nulls")
    if not len(column):
        return np.empty(0, np.uint32)
    # Not column.to_numpy(): it imports pandas where that is installed.
    offsets: Offsets = np.frombuffer(column.buffers()[1], np.uint32, len(column))
    return offsets
