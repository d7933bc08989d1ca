"""Decode block-compressed repetition and definition levels, in one byte each where they fit.

Layout: levels are 16-bit values in any encoding that blocks may have. Nearly all pages pack them
out of line to 1, 2, 4 or 8 bits; those have a kernel of their own (``kernels.level_bits``).
Limits: the number of levels is checked against the bytes of every block.
Source: fields ``rep_compression`` and ``def_compression`` of the page layouts of lance.encodings21.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AnyLevels,
    ChunkBuffer,
    Chunks,
    Codecs,
    FixedWidth,
    Ints,
    Wanted,
    corrupt,
)
from lance_nb.encodings.kernels import bitpack, level_bits, memory, ranges
from lance_nb.encodings.packed_blocks import PackedBlocks, plan_blocks


def decode_levels(
    encoding: encodings21.CompressiveEncoding, blocks: Chunks, codecs: Codecs
) -> AnyLevels:
    """Decode the levels of all blocks, one after the other. Raises CorruptFileError."""
    if encoding.WhichOneof("compression") == "out_of_line_bitpacking":
        narrow = _narrow_levels(encoding.out_of_line_bitpacking, blocks)
        if narrow is not None:
            return narrow
    total = int(blocks.num_values.sum())
    block = codecs.decode_blocks(encoding, blocks)
    if not isinstance(block, FixedWidth) or block.bits_per_value != 16:
        raise corrupt("16-bit levels", type(block).__name__)
    if block.num_values != total:
        raise corrupt(f"{total} levels", str(block.num_values))
    return block.data.view("<u2")


def pick_levels(
    encoding: encodings21.CompressiveEncoding,
    blocks: Chunks,
    wanted: Wanted,
    owners: Ints,
    codecs: Codecs,
) -> AnyLevels:
    """Decode the levels of every chunk once and pick the wanted ones; ``owners`` are ascending."""
    is_new = np.ones(owners.size, np.bool_)
    is_new[1:] = owners[1:] != owners[:-1]
    once = wanted.chunk[is_new]
    buffer, counts = blocks.buffers[0], blocks.num_values[once]
    each = ChunkBuffer(buffer.data, buffer.starts[once], buffer.sizes[once])
    levels = decode_levels(encoding, Chunks((each,), counts), codecs)
    begins = (np.cumsum(counts) - counts)[np.cumsum(is_new) - 1]
    found: AnyLevels = levels[begins + wanted.position]
    return found


def _narrow_levels(encoding: encodings21.OutOfLineBitpacking, blocks: Chunks) -> AnyLevels | None:
    """Unpack levels of a width that the kernel knows, None when they have another one."""
    plan = plan_blocks(encoding, blocks)
    if plan.word_bits != 16 or plan.width not in level_bits.WIDTHS:
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
        level_bits.unpack_levels(data, plan.packed_at, plan.width, grid)
    else:
        found = np.empty((plan.packed_rows.size, bitpack.VALUES), np.uint8)
        level_bits.unpack_levels(data, plan.packed_at, plan.width, found)
        grid[plan.packed_rows] = found
    return bitpack.trim(grid, plan.counts)


def _raw_tails(buffer: ChunkBuffer, plan: PackedBlocks) -> AnyLevels:
    sizes = plan.raw_stops - plan.raw_starts
    return ranges.concatenate(buffer.data, plan.raw_starts, sizes).view("<u2")
