"""Write byte strings with their offsets; the strings themselves are not copied.

Layout: see ``compression.variable``. Chunks aim at 8 KiB: all have the size that fits on average,
and where one is too large it is halved.
Limits: offsets have the width of the Arrow type.
Source: message ``Variable`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Bytes,
    ChunkBuffer,
    Ints,
    VariableWidth,
)
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
    Parts,
    power_of_two_below,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import memory, ranges
from lance_nb.encodings.statistics import LAST_RESORT, Measured
from lance_nb.errors import InternalError

_CHUNK_VALUES = 4096
_PADDING = np.zeros(8, np.uint8)
_HOLDS = 2  # times the bytes aimed at, that no chunk passes while it can be halved


class VariableCompressor:
    """Compress; see the module."""

    def nominate_chunks(self, measured: Measured, _options: EncodingOptions) -> int:
        """Take all values of variable width, as the last resort."""
        return LAST_RESORT * isinstance(measured.block, VariableWidth)

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, _compressors: Compressors
    ) -> CompressedChunks:
        """Cut into chunks of about the bytes aimed at; offsets and bytes stay apart as parts."""
        block = _strings(measured)
        word = block.offsets.dtype.itemsize
        counts = _chunk_counts(block.offsets, options.chunk_bytes)
        firsts = np.cumsum(counts) - counts
        bounds = block.offsets[np.append(firsts, block.num_values)].astype(np.int64)
        offsets, offset_starts = _chunk_offsets(block.offsets, counts, bounds)
        sizes = np.diff(bounds)
        parts = Parts(
            (
                ChunkBuffer(offsets, offset_starts, (counts + 1) * word),
                ChunkBuffer(block.data, bounds[:-1], sizes),
                ChunkBuffer(_PADDING, np.zeros_like(sizes), -sizes % word),
            )
        )
        return CompressedChunks(_message(word * 8), (parts,), counts)

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, _options: EncodingOptions
    ) -> int:
        """Take one block (a dictionary) of values of variable width."""
        return LAST_RESORT * (isinstance(measured.block, VariableWidth) and num_values.size == 1)

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        _options: EncodingOptions,
        _compressors: Compressors,
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

    def nominate_values(self, measured: Measured, _options: EncodingOptions) -> int:
        """Take all values of variable width, as the last resort."""
        return LAST_RESORT * isinstance(measured.block, VariableWidth)

    def compress_values(
        self, measured: Measured, _options: EncodingOptions, _compressors: Compressors
    ) -> CompressedValues:
        """Leave the values as they are."""
        block = _strings(measured)
        return CompressedValues(_message(8 * block.offsets.dtype.itemsize), block)


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
    most = min(_CHUNK_VALUES, power_of_two_below(int(aim / max(mean, 1))))
    starts = np.arange(0, max(1, num_values), most)
    counts = np.full(starts.size, most)
    while True:
        stops = np.minimum(starts + counts, num_values)
        sizes = offsets[stops].astype(np.int64) - offsets[starts] + word * counts
        wide = (sizes > _HOLDS * aim) & (counts > 2) & (stops - starts > counts // 2)
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
