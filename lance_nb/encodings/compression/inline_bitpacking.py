"""Inline bit packing: blocks of 1024 integers, each block with its own width in front.

Layout: one word of T bits holds the width W (0 <= W <= T), then ``1024 * W / T`` words of T bits in
FastLanes order (``kernels.bitpack``). A short last chunk is filled with zeros up to 1024 values.
Limits: T is 8, 16, 32 or 64; at most 1024 values per chunk or block. It is written when it saves a
tenth of all bits; blocks of one width are packed together.
Not supported: buffer compression inside the message, which no known release writes.
Source: message ``InlineBitpacking`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import itertools
from contextlib import suppress

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    Chunks,
    Codecs,
    FixedWidth,
    Ints,
    ValuePlaces,
    corrupt,
)
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import (
    PACKING_SAVING_MIN,
    CompressedBlocks,
    CompressedChunks,
    Compressors,
    Parts,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import bitpack, memory, ranges
from lance_nb.encodings.statistics import Measured, Words, saving
from lance_nb.errors import CorruptFileError, InternalError, NotSupportedError

_WORDS = {bits: np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)}
_HEADER_BYTES = 8  # of a mini-block chunk without levels
_MANY_WIDTHS = 64  # changes of width, from which on equal ones are gathered


class InlineBitpacking(Codec):
    """Integers in chunks that carry their own bit width, each block of 1024 its own."""

    def decode_chunks(
        self, encoding: encodings21.InlineBitpacking, chunks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Unpack all chunks, those of equal width together."""
        word_bits = _checked_word_bits(encoding)
        values = chunks.buffers[0]
        _check_counts(chunks.num_values)
        if chunks.num_values.size == 1 and chunks.num_values[0]:
            return _unpacked(values, int(chunks.num_values[0]), word_bits)
        filled = np.flatnonzero(chunks.num_values)
        if filled.size != chunks.num_values.size:
            values = ChunkBuffer(values.data, values.starts[filled], values.sizes[filled])
        widths = _checked_widths(values, word_bits)
        size = filled.size * bitpack.VALUES * (word_bits // 8)
        out = memory.allocate(size).view(f"u{word_bits // 8}").reshape(-1, bitpack.VALUES)
        first = values.starts + word_bits // 8
        for width in sorted(set(widths.tolist())):  # np.unique would import numpy.ma: 10 ms
            group = np.flatnonzero(widths == width)
            if int(group[-1]) - int(group[0]) + 1 == group.size:
                target = out[group[0] : group[-1] + 1]
                bitpack.unpack(values.data, first[group], width, target)
            else:
                target = np.empty((group.size, bitpack.VALUES), out.dtype)
                bitpack.unpack(values.data, first[group], width, target)
                out[group] = target
        data = bitpack.trim(out, chunks.num_values[filled])
        return FixedWidth(word_bits, int(chunks.num_values.sum()), data)

    def can_gather(self, encoding: encodings21.InlineBitpacking, codecs: Codecs) -> bool:
        """Return True: a value lies in at most two words."""
        return True

    def gather(
        self,
        encoding: encodings21.InlineBitpacking,
        chunks: Chunks,
        request: ValuePlaces,
        codecs: Codecs,
    ) -> FixedWidth:
        """Fetch one or two words per wanted value."""
        word_bits = _checked_word_bits(encoding)
        values = chunks.buffers[0]
        widths = _widths_of(chunks, request.chunk, word_bits)
        kind = _WORDS[word_bits]
        begin = values.starts.take(request.chunk)
        begin += kind.itemsize
        if isinstance(widths, int):
            values_taken = bitpack.gather_alike(
                values.data, begin, widths, positions=request.position, kind=kind
            )
        else:
            values_taken = bitpack.gather(
                values.data, begin, widths, positions=request.position, kind=kind
            )
        return FixedWidth(word_bits, values_taken.size, values_taken.view(np.uint8))

    def decode_blocks(
        self, encoding: encodings21.InlineBitpacking, blocks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Unpack all blocks."""
        return self.decode_chunks(encoding, blocks, codecs)

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take integers that leave a tenth of their bits unused."""
        if options.compression == "none" or measured.words is None or measured.is_wide:
            return 0
        widths = measured.block_widths
        if widths is None:
            return 0
        word = _word_bytes(measured)
        packed = int(widths.sum()) * (bitpack.VALUES // 8) + widths.size * word
        saved = saving(measured.num_values * word, packed)
        return saved if saved > PACKING_SAVING_MIN else 0

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """Pack 1024 values per chunk."""
        return self.cut(measured, uniform_counts(measured.num_values, bitpack.VALUES))

    def cut(self, measured: Measured, num_values: Ints) -> CompressedChunks:
        """Pack 1024 values per chunk, of which ``num_values`` count."""
        packed = _packed(measured, _HEADER_BYTES)
        return CompressedChunks(_message(measured), (packed,), num_values)

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take one block of up to 1024 integers."""
        if num_values.size != 1 or not 0 < int(num_values[0]) <= bitpack.VALUES:
            return 0
        return self.nominate_chunks(measured, options)

    def compress_blocks(
        self,
        measured: Measured,
        _num_values: Ints,
        options: EncodingOptions,
        compressors: Compressors,
    ) -> CompressedBlocks:
        """Pack the block."""
        return CompressedBlocks(_message(measured), _packed(measured))


def _unpacked(values: ChunkBuffer, num_values: int, word_bits: int) -> FixedWidth:
    """Unpack a single chunk: all that a small read decodes of a page."""
    word, start, size = word_bits // 8, int(values.starts[0]), int(values.sizes[0])
    if size < word:
        raise corrupt(f"a bit-packed chunk of at least {word} bytes", f"{size} bytes")
    width = int.from_bytes(values.data[start : start + word], "little")
    if width > word_bits:
        raise corrupt(f"a bit width of at most {word_bits}", f"width {width}")
    right = word + width * (bitpack.VALUES // 8)
    if size != right:
        raise corrupt(f"{right} bytes for 1024 values of {width} bits", f"{size} bytes")
    out = memory.allocate(word * bitpack.VALUES)
    block = out.view(f"u{word}").reshape(1, bitpack.VALUES)
    bitpack.unpack(values.data, np.array([start + word]), width, block)
    return FixedWidth(word_bits, num_values, out[: num_values * word])


def _checked_word_bits(encoding: encodings21.InlineBitpacking) -> int:
    if encoding.HasField("values") and encoding.values.scheme:
        raise NotSupportedError("buffer compression inside inline bit packing is not supported")
    bits = encoding.uncompressed_bits_per_value
    if bits not in _WORDS:
        raise corrupt("bit packing of 8, 16, 32 or 64 bit words", f"{bits} bits")
    return bits


def _check_counts(num_values: Ints) -> None:
    if num_values.size == 1:
        most = int(num_values[0])
    else:
        most = int(np.maximum.reduce(num_values)) if num_values.size else 0
    if most > bitpack.VALUES:
        raise corrupt("at most 1024 values in a bit-packed chunk", f"{most} values")


def _widths_of(chunks: Chunks, chunk_numbers: Ints, word_bits: int) -> Ints | int:
    """Return the width of each chunk that is wanted, or the one that all chunks have.

    Read from all chunks once, if all are sound; where some chunk is damaged only those that are
    wanted are looked at.
    """
    values = chunks.buffers[0]
    noted: Ints | int | None = values.noted.get("widths")
    if noted is None and "widths" not in values.noted:
        _check_counts(chunks.num_values)
        with suppress(CorruptFileError):
            noted = _alike(_checked_widths(values, word_bits))
        values.noted["widths"] = noted
    if isinstance(noted, int):
        return noted
    if noted is not None:
        return noted.take(chunk_numbers)
    each = ChunkBuffer(values.data, values.starts[chunk_numbers], values.sizes[chunk_numbers])
    return _checked_widths(each, word_bits)


def _alike(widths: Ints) -> Ints | int:
    """Return the width that all chunks have, or the widths as they are."""
    if not widths.size or bool((widths != widths[0]).any()):
        return widths
    return int(widths[0])


def _checked_widths(values: ChunkBuffer, word_bits: int) -> Ints:
    """Return the width of each chunk, checked against the word and the size of the chunk."""
    word = word_bits // 8
    if not values.sizes.size:
        return np.zeros(0, np.int64)
    least = int(np.minimum.reduce(values.sizes))
    if least < word:
        raise corrupt(f"a bit-packed chunk of at least {word} bytes", f"{least} bytes")
    widths = bitpack.words_at(values.data, values.starts, np.dtype(f"<u{word}"))
    most = int(np.maximum.reduce(widths))
    if most > word_bits:
        raise corrupt(f"a bit width of at most {word_bits}", f"width {most}")
    checked: Ints = widths.astype(np.int64)
    right = values.sizes == word + checked * (bitpack.VALUES // 8)
    if not np.logical_and.reduce(right):
        first = int(np.argmin(right))
        width = int(checked[first])
        raise corrupt(
            f"{word + width * 128} bytes for 1024 values of {width} bits",
            f"{int(values.sizes[first])} bytes",
        )
    return checked


def _word_bytes(measured: Measured) -> int:
    if measured.words is None:
        raise InternalError(f"bit packing of a {type(measured.block).__name__} block")
    return measured.words.dtype.itemsize


def _message(measured: Measured) -> encodings21.CompressiveEncoding:
    packing = encodings21.InlineBitpacking(uncompressed_bits_per_value=8 * _word_bytes(measured))
    return encodings21.CompressiveEncoding(inline_bitpacking=packing)


def _packed(measured: Measured, spare_bytes: int = 0) -> Parts:
    """Pack blocks of 1024 values behind their width, blocks of equal width together.

    ``spare_bytes`` (a multiple of 8) are left free before each block, which is then padded to 8.
    """
    words, widths = measured.words, measured.block_widths
    if words is None or widths is None:
        raise InternalError(f"bit packing of a {type(measured.block).__name__} block")
    word = words.dtype.itemsize
    sizes = word + widths * (bitpack.VALUES // 8)
    starts = ranges.starts_of(spare_bytes + (sizes + 7 & -8 if spare_bytes else sizes))
    out = memory.allocate(int(starts[-1])).view(words.dtype)
    full = words.size // bitpack.VALUES
    grid = words[: full * bitpack.VALUES].reshape(full, bitpack.VALUES)
    breaks = (widths[1:full] != widths[: max(full - 1, 0)]).nonzero()[0] + 1
    if breaks.size <= _MANY_WIDTHS:
        bounds = [0, *breaks.tolist(), full]
        for first, last in itertools.pairwise(bounds):
            rows = out[starts[first] // word : starts[last] // word]
            _pack_rows(grid[first:last], int(widths[first]), rows, spare_bytes)
    else:
        for width in np.unique(widths[:full]).tolist():
            group = np.flatnonzero(widths[:full] == width)
            rows = np.empty((group.size, int(np.diff(starts)[group[0]]) // word), words.dtype)
            _pack_rows(grid[group], width, rows, spare_bytes)
            ranges.write_rows(out.view(np.uint8), starts[group], rows.view(np.uint8))
    if full < widths.size:
        tail = np.zeros((1, bitpack.VALUES), words.dtype)
        tail[0, : words.size - full * bitpack.VALUES] = words[full * bitpack.VALUES :]
        _pack_rows(tail, int(widths[full]), out[starts[full] // word :], spare_bytes)
    part = ChunkBuffer(out.view(np.uint8), starts[:-1] + spare_bytes, sizes, spare_bytes)
    return Parts((part,))


def _pack_rows(grid: Words, width: int, out: Words, spare_bytes: int) -> None:
    """Pack neighbouring blocks of one width; each row of ``out`` is room, width, bits, padding."""
    if not len(grid):
        return
    rows = out.reshape(len(grid), -1)
    first = spare_bytes // grid.itemsize
    last = first + 1 + width * bitpack.VALUES // (8 * grid.itemsize)
    rows[:, first] = width
    rows[:, last:] = 0
    bitpack.pack(grid, width, rows[:, first + 1 : last])
