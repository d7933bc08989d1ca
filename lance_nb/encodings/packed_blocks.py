"""Out-of-line bit-packed blocks, and the repetition and definition levels that are stored in them.

Layout: ``n // 1024`` packed pieces of ``1024 * W / T`` words of T bits, then the tail of
``n % 1024`` values: one more packed piece, or raw words of T bits. It is raw exactly when the
buffer has the size of the raw form. Levels are 16-bit values in any encoding that blocks may have.
Nearly all pages pack them out of line to 1, 2, 4 or 8 bits; ``kernels.bitpack`` unpacks those to
one byte each.
Limits: T is 8, 16, 32 or 64; 0 <= W <= T; with W = 0 the bytes do not bound the count, so it is
bounded here. All pieces are located and checked before anything is unpacked.
Source: message ``OutOfLineBitpacking``, fields ``rep_compression`` and ``def_compression`` of the
page layouts of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AnyLevels,
    ChunkBuffer,
    Chunks,
    Codecs,
    FixedWidth,
    Ints,
    ValuePlaces,
    corrupt,
)
from lance_nb.encodings.kernels import bitpack, memory, ranges
from lance_nb.errors import NotSupportedError
from lance_nb.value_classes import dataclass

_MOST_FREE_VALUES = 1 << 24  # that a width of 0 may claim in all blocks of a call


@dataclass(frozen=True, slots=True)
class PackedBlocks:
    """The pieces of many blocks, in order: each fills one row of 1024 of the result.

    Packed pieces begin at the bytes ``packed_at`` and belong to ``packed_rows``; raw tails lie at
    ``raw_starts`` to ``raw_stops`` and belong to ``raw_rows``. ``counts`` has the values of every
    row.
    """

    word_bits: int
    width: int
    counts: Ints
    packed_at: Ints
    packed_rows: Ints
    raw_starts: Ints
    raw_stops: Ints
    raw_rows: Ints


def plan_blocks(encoding: encodings21.OutOfLineBitpacking, blocks: Chunks) -> PackedBlocks:
    """Check blocks and list their pieces. Raises CorruptFileError, NotSupportedError."""
    word_bits, width = _checked_widths(encoding)
    buffer = blocks.buffers[0]
    raw_tail = _checked_tails(buffer, blocks.num_values, word_bits, width)
    tails = blocks.num_values % bitpack.VALUES
    packed = blocks.num_values // bitpack.VALUES + ((tails > 0) & ~raw_tail)
    ends = ranges.starts_of(packed + raw_tail)
    counts = np.full(int(ends[-1]), bitpack.VALUES, np.int64)
    with_tail = np.flatnonzero(tails)
    counts[ends[with_tail + 1] - 1] = tails[with_tail]
    size = bitpack.VALUES // 8 * width
    nth = ranges.ragged_indices(np.zeros(packed.size, np.int64), packed)
    raw = np.flatnonzero(raw_tail)
    return PackedBlocks(
        word_bits=word_bits,
        width=width,
        counts=counts,
        packed_at=np.repeat(buffer.starts, packed) + size * nth,
        packed_rows=np.repeat(ends[:-1], packed) + nth,
        raw_starts=buffer.starts[raw] + packed[raw] * size,
        raw_stops=buffer.starts[raw] + buffer.sizes[raw],
        raw_rows=ends[raw + 1] - 1,
    )


def _checked_widths(encoding: encodings21.OutOfLineBitpacking) -> tuple[int, int]:
    """Return T and W."""
    word_bits = encoding.uncompressed_bits_per_value
    if word_bits not in {8, 16, 32, 64}:
        raise corrupt("bit packing of 8, 16, 32 or 64 bit words", f"{word_bits} bits")
    arm = encoding.values.WhichOneof("compression")
    if arm != "flat":
        raise NotSupportedError(f"out-of-line bit packing over {arm!r} is not supported")
    width = encoding.values.flat.bits_per_value
    if width > word_bits:
        raise corrupt(f"a bit width of at most {word_bits}", f"width {width}")
    return word_bits, width


def _checked_tails(
    buffer: ChunkBuffer, num_values: Ints, word_bits: int, width: int
) -> npt.NDArray[np.bool_]:
    """Tell which blocks end in a raw tail; refuse those whose size fits neither form."""
    most = int(num_values.max()) if num_values.size else 0
    if most >= 1 << 50:
        raise corrupt("a number of bit-packed values within the limit", f"{most} values")
    if width == 0 and int(num_values.sum()) > _MOST_FREE_VALUES:
        raise corrupt(f"at most {_MOST_FREE_VALUES} values of zero bits", f"{most} values")
    full, tails = num_values // bitpack.VALUES, num_values % bitpack.VALUES
    block_bytes = bitpack.VALUES // 8 * width
    raw_size = full * block_bytes + tails * (word_bits // 8)
    packed_size = (full + (tails > 0)) * block_bytes
    raw: npt.NDArray[np.bool_] = buffer.sizes == raw_size
    wrong = np.flatnonzero(~raw & (buffer.sizes != packed_size))
    if wrong.size:
        first = int(wrong[0])
        raise corrupt(
            f"{int(packed_size[first])} or {int(raw_size[first])} bytes for "
            f"{int(num_values[first])} values packed to {width} bits",
            f"{int(buffer.sizes[first])} bytes",
        )
    raw &= tails > 0
    return raw


def decode_levels(
    encoding: encodings21.CompressiveEncoding, blocks: Chunks, codecs: Codecs
) -> AnyLevels:
    """Decode the levels of all blocks, one after the other. Raises CorruptFileError."""
    if encoding.WhichOneof("compression") == "out_of_line_bitpacking":
        narrow = _narrow_levels(encoding.out_of_line_bitpacking, blocks)
        if narrow is not None:
            return narrow
    total = blocks.total
    block = codecs.decode_blocks(encoding, blocks)
    if not isinstance(block, FixedWidth) or block.bits_per_value != 16:
        raise corrupt("16-bit levels", type(block).__name__)
    if block.num_values != total:
        raise corrupt(f"{total} levels", str(block.num_values))
    return block.data.view("<u2")


def pick_levels(
    encoding: encodings21.CompressiveEncoding,
    blocks: Chunks,
    request: ValuePlaces,
    owners: Ints,
    codecs: Codecs,
) -> AnyLevels:
    """Decode the levels of every chunk once and pick the wanted ones; ``owners`` are ascending."""
    is_new = np.ones(owners.size, np.bool_)
    is_new[1:] = owners[1:] != owners[:-1]
    once = request.chunk[is_new]
    buffer, counts = blocks.buffers[0], blocks.num_values[once]
    each = ChunkBuffer(buffer.data, buffer.starts[once], buffer.sizes[once])
    levels = decode_levels(encoding, Chunks((each,), counts), codecs)
    begins = (np.cumsum(counts) - counts)[np.cumsum(is_new) - 1]
    levels_taken: AnyLevels = levels[begins + request.position]
    return levels_taken


def _narrow_levels(encoding: encodings21.OutOfLineBitpacking, blocks: Chunks) -> AnyLevels | None:
    """Unpack levels of a width that the kernel knows, None when they have another one."""
    word_bits, width = _checked_widths(encoding)
    if word_bits == 16 and width in bitpack.LEVEL_WIDTHS:
        buffer, counts = blocks.buffers[0], blocks.num_values
        level_array = bitpack.unpack_level_chunks(
            buffer.data, buffer.starts, buffer.sizes, counts=counts, width=width
        )
        levels = _single_pieces(buffer, counts, width) if level_array is None else level_array
        if levels is not None:
            return levels
    plan = plan_blocks(encoding, blocks)
    if plan.word_bits != 16 or plan.width not in bitpack.LEVEL_WIDTHS:
        return None
    grid = memory.allocate(plan.counts.size * bitpack.VALUES).reshape(-1, bitpack.VALUES)
    if plan.raw_rows.size:
        raw = _raw_tails(blocks.buffers[0], plan)
        if int(raw.max()) > 255:
            return None
        sizes = (plan.raw_stops - plan.raw_starts) // 2
        grid.ravel()[ranges.ragged_indices(plan.raw_rows * bitpack.VALUES, sizes)] = raw
    data = blocks.buffers[0].data
    if plan.packed_rows.size == len(grid):
        bitpack.unpack_levels(data, plan.packed_at, plan.width, grid)
    else:
        level_array = np.empty((plan.packed_rows.size, bitpack.VALUES), np.uint8)
        bitpack.unpack_levels(data, plan.packed_at, plan.width, level_array)
        grid[plan.packed_rows] = level_array
    return bitpack.trim(grid, plan.counts)


def _single_pieces(buffer: ChunkBuffer, num_values: Ints, width: int) -> AnyLevels | None:
    """Unpack blocks that are one packed piece each, as the levels of chunks mostly are.

    None for other forms.
    """
    is_single = buffer.sizes == bitpack.VALUES // 8 * width
    is_single &= (num_values > 0) & (num_values <= bitpack.VALUES)
    is_single &= buffer.sizes != 2 * num_values  # a raw tail
    if not np.logical_and.reduce(is_single):
        return None
    grid = memory.allocate(num_values.size * bitpack.VALUES).reshape(-1, bitpack.VALUES)
    bitpack.unpack_levels(buffer.data, buffer.starts, width, grid)
    return bitpack.trim(grid, num_values)


def _raw_tails(buffer: ChunkBuffer, plan: PackedBlocks) -> AnyLevels:
    sizes = plan.raw_stops - plan.raw_starts
    return ranges.concatenate(buffer.data, plan.raw_starts, sizes).view("<u2")
