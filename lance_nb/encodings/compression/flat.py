"""Flat: values stored as they are.

Layout: mini-block and block: one buffer, ``num_values * bits_per_value`` bits, back to back. With
one bit per value it is a bitmap (least significant bit first) and every chunk begins on a byte.
Per value (full-zip): the bytes of each value. Written chunks aim at 8 KiB and hold at most 4096
values, a power of two; values are viewed, not copied.
Limits: ``bits_per_value`` is 1 or a multiple of 8 (per value: a multiple of 8); a buffer may be
longer than its values.
Not supported: buffer compression inside the message, which no known release writes.
Source: message ``Flat`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Bytes,
    ChunkBuffer,
    Chunks,
    Codecs,
    FixedWidth,
    Ints,
    ValuePlaces,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
    Parts,
    uniform_counts,
    values_per_chunk,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import ranges
from lance_nb.encodings.kernels.bitpack import words_at
from lance_nb.encodings.statistics import LAST_RESORT, Measured
from lance_nb.errors import InternalError, NotSupportedError

_WORD_BYTES = {size: np.dtype(f"<u{size}") for size in (2, 4, 8)}
_VIEWS = "flat"  # what is known of chunks: bits per value, values, and views if they lie evenly
_MOST_BITS = 1 << 36  # of one value: keeps every product of the checks below inside 64 bits


class Flat(Codec):
    """Values of fixed width, as they are."""

    def decode_chunks(
        self, encoding: encodings21.Flat, chunks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Copy the values of all chunks into one buffer."""
        if _VIEWS not in chunks.cache:
            chunks.cache[_VIEWS] = _checked_views(encoding, chunks)
        bits, total, even = chunks.cache[_VIEWS]
        if even is not None:
            return FixedWidth(bits, total, even.joined())
        values = chunks.buffers[0]
        num_bits = chunks.num_values * bits
        data: Bytes
        if bits % 8 == 0:
            data = ranges.concatenate(values.data, values.starts, num_bits // 8)
        else:
            data = ranges.concatenate_bits(values.data, values.starts, num_bits)
        return FixedWidth(bits, total, data)

    def can_gather(self, encoding: encodings21.Flat, codecs: Codecs) -> bool:
        """Return True: a value lies where its position says."""
        return True

    def gather(
        self, encoding: encodings21.Flat, chunks: Chunks, request: ValuePlaces, codecs: Codecs
    ) -> FixedWidth:
        """Copy the wanted values."""
        bits = _checked_bits(encoding)
        values = chunks.buffers[0]
        sizes = values.sizes[request.chunk]
        is_short = sizes < (_checked_num_bits(bits, request.position + 1) + 7) // 8
        if bool(is_short.any()):
            first = int(is_short.argmax())
            expected = f"a chunk that holds {int(request.position[first]) + 1} {bits}-bit values"
            raise corrupt(expected, f"{int(sizes[first])} bytes")
        starts = values.starts[request.chunk]
        if bits == 1:
            byte_values = values.data[starts + request.position // 8]
            data = np.packbits(
                byte_values >> (request.position % 8).astype(np.uint8) & 1, bitorder="little"
            )
        else:
            data = _values_at(values.data, starts + request.position * (bits // 8), bits // 8)
        return FixedWidth(bits, request.position.size, data)

    def decode_blocks(
        self, encoding: encodings21.Flat, blocks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Copy the values of all blocks into one buffer."""
        return self.decode_chunks(encoding, blocks, codecs)

    def decode_values(
        self, encoding: encodings21.Flat, values: FixedWidth | VariableWidth, codecs: Codecs
    ) -> FixedWidth:
        """Return the values themselves: nothing was done to them."""
        bits = _checked_bits(encoding)
        if not isinstance(values, FixedWidth) or values.bits_per_value != bits:
            raise corrupt(f"flat values of {bits} bits", _described(values))
        return values

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take all values of fixed width, as the last resort."""
        return LAST_RESORT * isinstance(measured.block, FixedWidth)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """View runs of values as chunks."""
        most = values_per_chunk(_fixed(measured).bits_per_value, options)
        return self.cut(measured, uniform_counts(measured.num_values, most))

    def cut(self, measured: Measured, num_values: Ints) -> CompressedChunks:
        """View runs of values as chunks."""
        block = _fixed(measured)
        encoding = _message(block.bits_per_value)
        return CompressedChunks(encoding, (_runs(block, num_values),), num_values)

    def nominate_blocks(
        self, measured: Measured, _num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take all values of fixed width, as the last resort."""
        return LAST_RESORT * isinstance(measured.block, FixedWidth)

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        options: EncodingOptions,
        compressors: Compressors,
    ) -> CompressedBlocks:
        """View runs of values as blocks."""
        block = _fixed(measured)
        return CompressedBlocks(_message(block.bits_per_value), _runs(block, num_values))

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Take all values of fixed width that have whole bytes."""
        block = measured.block
        return LAST_RESORT * (isinstance(block, FixedWidth) and block.bits_per_value % 8 == 0)

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Leave the values as they are."""
        block = _fixed(measured)
        return CompressedValues(_message(block.bits_per_value), block)


def _checked_views(
    encoding: encodings21.Flat, chunks: Chunks
) -> tuple[int, int, ranges.Even | None]:
    """Rule out chunks that are too short, and find out how the others are copied."""
    bits = _checked_bits(encoding)
    values = chunks.buffers[0]
    num_bits = _checked_num_bits(bits, chunks.num_values)
    sizes = (num_bits + 7) // 8
    if np.logical_or.reduce(sizes > values.sizes):
        actual = int(values.sizes[sizes > values.sizes][0])
        raise corrupt(f"flat chunks that hold all their {bits}-bit values", f"{actual} bytes")
    total = int(np.add.reduce(chunks.num_values))
    if bits % 8 and np.bitwise_or.reduce(num_bits[:-1]) & 7:
        return bits, total, None
    return bits, total, ranges.even_ranges(values.data, values.starts, sizes)


def _values_at(data: Bytes, positions: Ints, size: int) -> Bytes:
    if size in _WORD_BYTES:
        return words_at(data, positions, _WORD_BYTES[size]).view(np.uint8)
    return np.ascontiguousarray(ranges.rows(data, positions, size)).ravel()


def _checked_bits(encoding: encodings21.Flat) -> int:
    if encoding.HasField("data") and encoding.data.scheme:
        raise NotSupportedError("buffer compression inside a flat encoding is not supported")
    bits = encoding.bits_per_value
    if bits != 1 and (bits == 0 or bits % 8 or bits > _MOST_BITS):
        raise corrupt("a flat width of 1 bit or of whole bytes", f"{bits} bits per value")
    return bits


def _checked_num_bits(bits: int, num_values: Ints) -> Ints:
    """Return the bits of each chunk, after ruling out counts that overflow 64 bits."""
    most = int(np.maximum.reduce(num_values)) if num_values.size else 0
    if most * bits >= 1 << 60:
        raise corrupt("a flat chunk smaller than 2**57 bytes", f"{most} values of {bits} bits")
    return num_values * bits


def _described(values: FixedWidth | VariableWidth) -> str:
    if isinstance(values, FixedWidth):
        return f"values of {values.bits_per_value} bits"
    return "values of variable width"


def _fixed(measured: Measured) -> FixedWidth:
    if not isinstance(measured.block, FixedWidth):
        raise InternalError(f"flat was asked to store a {type(measured.block).__name__} block")
    return measured.block


def _message(bits: int) -> encodings21.CompressiveEncoding:
    return encodings21.CompressiveEncoding(flat=encodings21.Flat(bits_per_value=bits))


def _runs(block: FixedWidth, num_values: Ints) -> Parts:
    """View consecutive runs of values; all but the last must end on a byte."""
    ends = np.cumsum(num_values)
    starts = (ends - num_values) * block.bits_per_value // 8
    sizes = (num_values * block.bits_per_value + 7) // 8
    return Parts((ChunkBuffer(block.data, starts, sizes),))
