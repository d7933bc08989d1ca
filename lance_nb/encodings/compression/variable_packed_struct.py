"""Variable packed struct: the children of a struct stored row by row, some of variable width.

Layout: per value only (full-zip): a row is its children one after the other: a fixed child is
``bits_per_value / 8`` bytes, a variable one its length (``bits_per_length`` bits, 32 or 64) and
then that many bytes. Each child may be compressed value by value.
Limits: a row ends exactly where its last child does. A row of no bytes at all is a null struct:
its children become zeros and empty strings. Written children have whole bytes and no nulls.
Source: message ``VariablePackedStruct`` of lance.encodings21 (pylance 14.0.2, file version 2.2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Bytes,
    Codecs,
    DataBlock,
    FixedWidth,
    Ints,
    PackedStruct,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import CompressedValues, Compressors
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import memory, ranges
from lance_nb.encodings.kernels.ranges import join_rows
from lance_nb.encodings.statistics import STRUCTURAL, Measured, bits_per_value
from lance_nb.errors import InternalError

_INT32_MAX = (1 << 31) - 1
_WIDEST_UNSEEN = 4096  # bytes of a fixed child of which the rows hold (almost) no example
Field = encodings21.VariablePackedStruct.FieldEncoding


class VariablePackedStruct(Codec):
    """Children of any width, interleaved row by row; read those of all rows at once."""

    def decode_values(
        self,
        encoding: encodings21.VariablePackedStruct,
        values: FixedWidth | VariableWidth,
        codecs: Codecs,
    ) -> PackedStruct:
        """Take the rows apart, child by child."""
        if not isinstance(values, VariableWidth):
            raise corrupt("packed rows of variable width", "rows of fixed width")
        if not encoding.fields:
            raise corrupt("a packed struct with at least one child", "no child")
        rows = _Rows(values)
        children: list[DataBlock] = []
        for field in encoding.fields:
            child = rows.next_fixed(field) if _is_fixed(field) else rows.next_variable(field)
            children.append(codecs.decode_values(field.value, child))
        rows.check_finished()
        return PackedStruct(values.num_values, tuple(children))

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Take structs whose children have whole bytes, from file version 2.2 on."""
        block = measured.block
        if not isinstance(block, PackedStruct) or not options.has_large_chunks:
            return 0
        return STRUCTURAL * all(not (bits_per_value(child) or 0) % 8 for child in block.children)

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Join the children of every row, each string behind its length."""
        block = measured.block
        if not isinstance(block, PackedStruct):
            raise InternalError(f"packed rows of a {type(block).__name__} block")
        message = encodings21.VariablePackedStruct()
        columns: list[tuple[Ints, Bytes]] = []
        for child in block.children:
            compressed = compressors.compress_values(Measured(child), options)
            field = message.fields.add(value=compressed.encoding)
            columns += _columns(compressed.values, field)
        rows = join_rows(columns)
        ends = np.sum([offsets for offsets, _ in columns], axis=0)
        narrow = int(ends[-1]) <= _INT32_MAX
        values = VariableWidth(block.num_values, ends.astype(np.int32) if narrow else ends, rows)
        encoding = encodings21.CompressiveEncoding(variable_packed_struct=message)
        return CompressedValues(encoding, values)


def _is_fixed(field: Field) -> bool:
    arm = field.WhichOneof("layout")
    if arm is None:
        raise corrupt("a packed child with its width", "neither value nor length bits")
    return bool(arm == "bits_per_value")


class _Rows:
    """The rows, and how far each of them has been read."""

    def __init__(self, values: VariableWidth) -> None:
        offsets = values.offsets.astype(np.int64)
        self.num_rows = values.num_values
        self.data: Bytes = values.data
        self.filled = np.flatnonzero(np.diff(offsets))
        self.position: Ints = offsets[self.filled]
        self.ends: Ints = offsets[self.filled + 1]

    def next_fixed(self, field: Field) -> FixedWidth:
        """Read a child of fixed width from every row."""
        bits = field.bits_per_value
        if bits == 0 or bits % 8:
            raise corrupt("packed children of whole bytes", f"{bits} bits")
        size = bits // 8
        self._check_room(np.full(self.position.size, min(size, _INT32_MAX), np.int64))
        # Room is made for empty rows too: a child that no row holds must not be hugely wide.
        if size > _WIDEST_UNSEEN and self.filled.size * 1024 < self.num_rows:
            raise corrupt("packed rows that hold their children", f"{self.num_rows} empty rows")
        out = memory.zeros(self.num_rows * size).reshape(self.num_rows, size)
        out[self.filled] = ranges.rows(self.data, self.position, size)
        self.position = self.position + size
        return FixedWidth(bits, self.num_rows, out.ravel())

    def next_variable(self, field: Field) -> VariableWidth:
        """Read a child with its length from every row."""
        if field.bits_per_length not in {32, 64}:
            raise corrupt("lengths of 32 or 64 bits", f"{field.bits_per_length} bits")
        word = field.bits_per_length // 8
        self._check_room(np.full(self.position.size, word, np.int64))
        heads = np.ascontiguousarray(ranges.rows(self.data, self.position, word))
        lengths = heads.view(f"<u{word}").ravel()
        self.position = self.position + word
        sizes = self._check_room(lengths)
        all_sizes = np.zeros(self.num_rows, np.int64)
        all_sizes[self.filled] = sizes
        offsets = ranges.starts_of(all_sizes)
        data = ranges.concatenate(self.data, self.position, sizes)
        self.position = self.position + sizes
        if word == 4 and int(offsets[-1]) <= _INT32_MAX:
            return VariableWidth(self.num_rows, offsets.astype(np.int32), data)
        return VariableWidth(self.num_rows, offsets, data)

    def check_finished(self) -> None:
        """Refuse rows with bytes left."""
        left = np.flatnonzero(self.position != self.ends)
        if left.size:
            unread = int((self.ends - self.position)[left[0]])
            raise corrupt("a packed row that ends with its last child", f"{unread} bytes left")

    def _check_room(self, sizes: npt.NDArray[np.unsignedinteger] | Ints) -> Ints:
        room = self.ends - self.position
        short = np.flatnonzero(sizes.astype(np.uint64) > room.astype(np.uint64))
        if short.size:
            first = int(short[0])
            raise corrupt(
                f"{int(sizes[first])} bytes for a field of a packed row",
                f"{int(room[first])} bytes left in the row",
            )
        return sizes.astype(np.int64)


def _columns(values: FixedWidth | VariableWidth, field: Field) -> list[tuple[Ints, Bytes]]:
    """Return what a child adds to every row, and say its width in ``field``."""
    count = np.arange(values.num_values + 1, dtype=np.int64)
    if isinstance(values, FixedWidth):
        field.bits_per_value = values.bits_per_value
        return [(count * (values.bits_per_value // 8), values.data)]
    word = values.offsets.dtype.itemsize
    field.bits_per_length = 8 * word
    lengths = np.diff(values.offsets).view(np.uint8)
    return [(count * word, lengths), (values.offsets.astype(np.int64), values.data)]
