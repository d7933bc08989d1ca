"""Variable: byte strings with their offsets in front.

Layout: mini-block: ``n + 1`` offsets of 32 or 64 bits, counted from the start of the chunk (so the
first one is the size of the offsets), then the bytes, then padding. Block: ``bits`` and
``data_start`` as two words of that width, ``n + 1`` offsets counted from ``data_start``, then the
bytes. Releases up to 0.38 wrote another header for blocks: ``bits`` in one byte, then the number of
values and ``data_start`` as two words. Per value (full-zip): the bytes of each value. Written
chunks aim at 8 KiB: all hold the number of values that fits on average, and a chunk that is too
large is halved. The strings themselves are not copied.
Limits: offsets never decrease and stay inside their chunk; they are written as wide as in Arrow.
Not supported: offsets that are themselves compressed, buffer compression inside the message.
Source: message ``Variable`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

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
    TEXT_CHUNK_HOLDS,
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
    Parts,
    strings_per_chunk,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import compiled, memory, ranges
from lance_nb.encodings.statistics import LAST_RESORT, Measured
from lance_nb.errors import CorruptFileError, InternalError, NotSupportedError, describe_order
from lance_nb.value_classes import dataclass

_INT32_MAX = (1 << 31) - 1
_PADDING = np.zeros(8, np.uint8)


@dataclass(frozen=True, slots=True)
class _Strings:
    """Where the strings of many chunks are: all positions count from the start of ``data``."""

    data: Bytes
    offsets_at: Ints
    origins: Ints  # what offset 0 means
    limits: Ints  # end of the chunk
    first: Ints  # what the first offset must be
    num_values: Ints


class Variable(Codec):
    """Byte strings with their offsets."""

    def decode_chunks(
        self, encoding: encodings21.Variable, chunks: Chunks, codecs: Codecs
    ) -> VariableWidth:
        """Join the strings of all chunks."""
        word = checked_offset_bits(encoding) // 8
        values = chunks.buffers[0]
        _check_room(values.sizes, chunks.num_values, word)
        ends = values.starts + values.sizes
        first = (chunks.num_values + 1) * word
        strings = _Strings(
            values.data,
            values.starts,
            values.starts,
            limits=ends,
            first=first,
            num_values=chunks.num_values,
        )
        return _join(strings, word)

    def can_gather(self, encoding: encodings21.Variable, codecs: Codecs) -> bool:
        """Return True: two offsets lead to a value."""
        return True

    def gather(
        self, encoding: encodings21.Variable, chunks: Chunks, request: ValuePlaces, codecs: Codecs
    ) -> VariableWidth:
        """Copy the wanted strings."""
        word = checked_offset_bits(encoding) // 8
        values = chunks.buffers[0]
        sizes, counts = values.sizes[request.chunk], chunks.num_values[request.chunk]
        _check_room(sizes, counts, word)
        starts = values.starts[request.chunk]
        pairs = ranges.rows(values.data, starts + request.position * word, 2 * word)
        bounds = np.ascontiguousarray(pairs).view(f"<u{word}")
        low, high = bounds[:, 0], bounds[:, 1]
        first = ((counts + 1) * word).astype(np.uint64)
        is_outside = (low < first) | (high < low) | (high > sizes.astype(np.uint64))
        if bool(is_outside.any()):
            wrong = int(is_outside.argmax())
            expected = f"a string within bytes {int(first[wrong])} to {int(sizes[wrong])}"
            raise corrupt(expected, f"one from {int(low[wrong])} to {int(high[wrong])}")
        lengths = (high - low).astype(np.int64)
        ends = ranges.starts_of(lengths)
        offsets = _offsets(lengths.size, int(ends[-1]), word)
        offsets[:] = ends
        data = ranges.concatenate(values.data, starts + low.astype(np.int64), lengths)
        return VariableWidth(lengths.size, offsets, data)

    def decode_blocks(
        self, encoding: encodings21.Variable, blocks: Chunks, codecs: Codecs
    ) -> VariableWidth:
        """Join the strings of all blocks."""
        word = checked_offset_bits(encoding) // 8
        buffer = blocks.buffers[0]
        _check_room(buffer.sizes - 2 * word, blocks.num_values, word)
        header = _header_bytes(buffer, blocks.num_values, word)
        strings = _Strings(
            buffer.data,
            buffer.starts + header,
            buffer.starts + header + (blocks.num_values + 1) * word,
            limits=buffer.starts + buffer.sizes,
            first=np.zeros_like(blocks.num_values),
            num_values=blocks.num_values,
        )
        return _join(strings, word)

    def decode_values(
        self, encoding: encodings21.Variable, values: FixedWidth | VariableWidth, codecs: Codecs
    ) -> VariableWidth:
        """Return the strings themselves: nothing was done to them."""
        checked_offset_bits(encoding)
        if not isinstance(values, VariableWidth):
            raise corrupt("values of variable width", f"values of {values.bits_per_value} bits")
        return values

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take all values of variable width, as the last resort."""
        return LAST_RESORT * isinstance(measured.block, VariableWidth)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """Cut into chunks of about the bytes aimed at."""
        return self.cut(measured, _chunk_counts(_strings(measured).offsets, options.chunk_bytes))

    def cut(self, measured: Measured, num_values: Ints) -> CompressedChunks:
        """Cut into runs of strings; offsets and bytes stay apart as parts."""
        block = _strings(measured)
        word = block.offsets.dtype.itemsize
        firsts = np.cumsum(num_values) - num_values
        bounds = block.offsets[np.append(firsts, block.num_values)].astype(np.int64)
        offsets, offset_starts = _chunk_offsets(block.offsets, num_values, bounds)
        sizes = np.diff(bounds)
        parts = Parts(
            (
                ChunkBuffer(offsets, offset_starts, (num_values + 1) * word),
                ChunkBuffer(block.data, bounds[:-1], sizes),
                ChunkBuffer(_PADDING, np.zeros_like(sizes), -sizes % word),
            )
        )
        return CompressedChunks(_message(word * 8), (parts,), num_values)

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take one block (a dictionary) of values of variable width."""
        return LAST_RESORT * (isinstance(measured.block, VariableWidth) and num_values.size == 1)

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        options: EncodingOptions,
        compressors: Compressors,
    ) -> CompressedBlocks:
        """Put the header before offsets and bytes."""
        block = _strings(measured)
        word = block.offsets.dtype.itemsize
        head = np.array([8 * word, (int(num_values[0]) + 3) * word], block.offsets.dtype)
        parts = (head.view(np.uint8), block.offsets.view(np.uint8), block.data)
        sizes = (head.nbytes, block.offsets.nbytes, int(block.offsets[-1]))
        buffers = tuple(
            ChunkBuffer(part, np.zeros(1, np.int64), np.array([size], np.int64))
            for part, size in zip(parts, sizes, strict=True)
        )
        return CompressedBlocks(_message(8 * word), Parts(buffers))

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Take all values of variable width, as the last resort."""
        return LAST_RESORT * isinstance(measured.block, VariableWidth)

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Leave the values as they are."""
        block = _strings(measured)
        return CompressedValues(_message(8 * block.offsets.dtype.itemsize), block)


def checked_offset_bits(encoding: encodings21.Variable) -> int:
    """Return the width of the offsets: 32 or 64."""
    if encoding.HasField("values") and encoding.values.scheme:
        raise NotSupportedError("buffer compression inside a variable encoding is not supported")
    arm = encoding.offsets.WhichOneof("compression")
    if arm != "flat":
        raise NotSupportedError(f"string offsets in encoding {arm!r} are not supported")
    bits = encoding.offsets.flat.bits_per_value
    if bits not in {32, 64}:
        raise corrupt("string offsets of 32 or 64 bits", f"{bits} bits")
    return bits


def _check_room(sizes: Ints, num_values: Ints, word: int) -> None:
    """Refuse chunks too short for their offsets, without overflowing on hostile counts."""
    short = np.flatnonzero(sizes // word - 1 < num_values)
    if short.size:
        first = int(short[0])
        raise corrupt(
            f"room for {int(num_values[first]) + 1} offsets of {word} bytes",
            f"{int(sizes[first])} bytes",
        )


def _header_bytes(buffer: ChunkBuffer, num_values: Ints, word: int) -> int:
    """Return the size of the headers of blocks, once all of them are of one of the two forms."""
    heads = np.ascontiguousarray(ranges.rows(buffer.data, buffer.starts, 2 * word))
    words = heads.view(f"<u{word}")
    if not bool((words != np.stack((np.full_like(num_values, 8 * word),
                                    (num_values + 3) * word), axis=1)).any()):  # fmt: skip
        return 2 * word
    size = 2 * word + 1
    if bool((heads[:, 0] == 8 * word).all()):
        _check_room(buffer.sizes - size, num_values, word)
        header = np.ascontiguousarray(ranges.rows(buffer.data, buffer.starts + 1, 2 * word))
        counts, starts = header.view(f"<u{word}").T
        if bool(((counts == num_values) & (starts == size + (num_values + 1) * word)).all()):
            return size
    raise corrupt(f"a block of strings with {word * 8}-bit offsets", f"header {words[0].tolist()}")


def _join(strings: _Strings, word: int) -> VariableWidth:
    """Check the offsets of all chunks and join offsets and bytes."""
    if strings.num_values.size == 1:
        return _single(strings, word)
    if compiled.loops is not None:
        joined = _join_by_loop(compiled.loops, strings, word)
        if joined is not None:
            return joined  # else the numpy form says what is wrong
    total = int(strings.num_values.sum())
    same = ranges.uniform_prefix(strings.num_values)
    count = int(strings.num_values[0]) if same else 0
    head = ranges.rows(strings.data, strings.offsets_at[:same], (count + 1) * word)
    grid = np.ascontiguousarray(head).view(f"<u{word}").reshape(same, count + 1)
    rest_counts = strings.num_values[same:] + 1
    rest_bytes = ranges.concatenate(strings.data, strings.offsets_at[same:], rest_counts * word)
    flat = rest_bytes.view(f"<u{word}")
    ends = ranges.starts_of(rest_counts)
    low = np.concatenate([grid[:, 0], flat[ends[:-1]]])
    high = np.concatenate([grid[:, -1], flat[ends[1:] - 1]])
    _check_bounds(strings, low, high)
    is_falling = (grid[:, 1:] < grid[:, :-1]).any(axis=1)
    if bool(is_falling.any()):
        raise _decreasing(grid[int(is_falling.argmax())])
    falls = _falls(flat, ends)
    if bool(falls.any()):
        raise _decreasing(flat[int(falls.argmax()) :][:2])
    low, high = low.astype(np.int64), high.astype(np.int64)
    sizes = high - low
    base = ranges.starts_of(sizes)
    offsets = _offsets(total, int(base[-1]), word)
    kind = offsets.dtype
    split = same * count
    shift = (base[:-1] - low).astype(kind)
    body = offsets[1 : split + 1].reshape(same, count)
    signed = grid.view(kind) if kind.itemsize == word else grid
    np.add(signed[:, 1:], shift[:same, None], out=body)
    if rest_counts.size:
        keep = np.ones(flat.size, np.bool_)
        keep[ends[:-1]] = False
        offsets[split + 1 :] = flat[keep].astype(kind) + np.repeat(shift[same:], rest_counts - 1)
    data = ranges.concatenate(strings.data, strings.origins + low, sizes)
    return VariableWidth(total, offsets, data)


def _join_by_loop(loops: ModuleType, strings: _Strings, word: int) -> VariableWidth | None:
    """Do the same by the compiled loop, None when something is wrong."""
    chunks = (strings.data, strings.offsets_at, strings.origins, strings.limits, strings.first,
              strings.num_values, word)  # fmt: skip
    size = loops.measure_strings(*chunks)
    if size < 0:
        return None
    total = int(np.add.reduce(strings.num_values))
    offsets, data = _offsets(total, size, word), memory.allocate(size)
    if not loops.join_strings(*chunks, offsets, data):
        return None
    return VariableWidth(total, offsets, data)


def _single(strings: _Strings, word: int) -> VariableWidth:
    """Do the same for one chunk, whose bytes need no copy: all that a small read decodes."""
    count, offsets_start = int(strings.num_values[0]), int(strings.offsets_at[0])
    head = np.ascontiguousarray(strings.data[offsets_start : offsets_start + (count + 1) * word])
    stored = head.view(f"<u{word}")
    _check_bounds(strings, stored[:1], stored[-1:])
    if bool((stored[1:] < stored[:-1]).any()):
        raise _decreasing(stored)
    low, high = int(stored[0]), int(stored[-1])
    offsets = _offsets(count, high - low, word)
    np.subtract(stored, low, out=offsets, casting="unsafe")
    origin = int(strings.origins[0])
    return VariableWidth(count, offsets, strings.data[origin + low : origin + high])


def _check_bounds(strings: _Strings, low: Ints, high: Ints) -> None:
    """Check the first offset exactly and the last one against the end of the chunk."""
    if bool((low != strings.first).any()):
        wrong = int(np.flatnonzero(low != strings.first)[0])
        raise corrupt(f"a first offset of {int(strings.first[wrong])}", f"{int(low[wrong])}")
    room = (strings.limits - strings.origins).astype(np.uint64)
    if bool((high > room).any()):
        wrong = int(np.flatnonzero(high > room)[0])
        raise corrupt(f"string offsets up to {int(room[wrong])}", f"{int(high[wrong])}")


def _falls(flat: npt.NDArray[np.uint64], ends: Ints) -> npt.NDArray[np.bool_]:
    """Mark the offsets that are greater than the next one of the same chunk."""
    falls = flat[1:] < flat[:-1]
    falls[ends[1:-1] - 1] = False
    return falls


def _decreasing(offsets: npt.NDArray[np.uint64]) -> CorruptFileError:
    return corrupt("string offsets that never decrease", describe_order(offsets, repeats=True))


def _offsets(total: int, num_bytes: int, word: int) -> npt.NDArray[np.int32] | Ints:
    """Return room for the joined offsets, the first one set to 0."""
    narrow = word == 4 and num_bytes <= _INT32_MAX
    room = memory.allocate((total + 1) * (4 if narrow else 8))
    offsets = room.view(np.int32) if narrow else room.view(np.int64)
    offsets[0] = 0
    return offsets


def _strings(measured: Measured) -> VariableWidth:
    if not isinstance(measured.block, VariableWidth):
        raise InternalError(f"variable was asked to store a {type(measured.block).__name__} block")
    return measured.block


def _message(bits: int) -> encodings21.CompressiveEncoding:
    offsets = encodings21.CompressiveEncoding(flat=encodings21.Flat(bits_per_value=bits))
    return encodings21.CompressiveEncoding(variable=encodings21.Variable(offsets=offsets))


def _chunk_counts(offsets: npt.NDArray[np.int32] | Ints, aim: int) -> Ints:
    """Cut values into aligned power-of-two chunks of about ``aim`` bytes each.

    Chunks all have the size that fits on average; where one is too large it is halved, together
    with as many halves as it takes.
    """
    word = offsets.dtype.itemsize
    num_values = offsets.size - 1
    mean = (int(offsets[-1]) + word * num_values) / max(1, num_values)
    most = int(strings_per_chunk(np.array([mean]), aim)[0])
    starts = np.arange(0, max(1, num_values), most)
    counts = np.full(starts.size, most)
    while True:
        stops = np.minimum(starts + counts, num_values)
        sizes = offsets[stops].astype(np.int64) - offsets[starts] + word * counts
        wide = (sizes > TEXT_CHUNK_HOLDS * aim) & (counts > 2) & (stops - starts > counts // 2)
        if not bool(wide.any()):
            break
        halves = np.where(wide, counts // 2, counts)
        split = np.repeat(np.arange(starts.size), 1 + wide)
        second = np.zeros(split.size, bool)
        second[1:] = split[1:] == split[:-1]
        counts = halves[split]
        starts = starts[split] + np.where(second, counts, 0)
    counts = counts.astype(np.int64)
    counts[-1] = num_values - int(starts[-1])
    return counts


def _chunk_offsets(
    offsets: npt.NDArray[np.int32] | Ints, counts: Ints, bounds: Ints
) -> tuple[Bytes, Ints]:
    """Return the offsets of all chunks, each counted from its chunk, and where they begin."""
    word, kind = offsets.dtype.itemsize, offsets.dtype
    firsts = np.cumsum(counts) - counts
    out = memory.allocate((offsets.size - 1 + counts.size) * word)
    starts = (firsts + np.arange(counts.size)) * word
    shift = ((counts + 1) * word - bounds[:-1]).astype(kind)
    target = out.view(kind)
    same = ranges.uniform_prefix(counts)
    count = int(counts[0])
    grid = target[: same * (count + 1)].reshape(same, count + 1)
    windows = as_strided(offsets, (same, count + 1), (count * word, word), writeable=False)
    np.add(windows, shift[:same, None], out=grid)
    if same < counts.size:
        sources = ranges.ragged_indices(firsts[same:], counts[same:] + 1)
        target[same * (count + 1) :] = offsets[sources] + np.repeat(shift[same:], counts[same:] + 1)
    return out, starts
