"""Packing integers, each block to its own width."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import ChunkBuffer
from lance_nb.encodings.choose import compressors
from lance_nb.encodings.chunk_assembly import assemble
from lance_nb.encodings.compress_base import Parts
from lance_nb.encodings.encoding_options import EncodingOptions
from tests.property.encodings.reference_encoders import inline_chunk
from tests.support.compressing import COMPRESSORS, V2_2, in_blocks, in_chunks, measured

PACKING = COMPRESSORS["inline_bitpacking"]


@pytest.mark.parametrize("kind", ["uint8", "int16", "int32", "uint64"])
@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_blocks_of_any_width_come_back(kind: str, count: int) -> None:
    values = (np.arange(count) % 100 >> (np.arange(count) // 1024 % 7)).astype(kind)
    encoding, counts = in_chunks("inline_bitpacking", measured(values))
    assert encoding.inline_bitpacking.uncompressed_bits_per_value == values.itemsize * 8
    assert counts[:-1] == [1024] * (len(counts) - 1)


def test_many_changes_of_width_come_back() -> None:
    rng = np.random.default_rng(1)
    widths = np.repeat(rng.integers(0, 40, 300), 1024)
    in_chunks("inline_bitpacking", measured(np.uint64(1) << widths.astype(np.uint64)))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("changes", [1, 100])  # few runs of a width, or many
@pytest.mark.parametrize("large", [False, True])
def test_chunks_are_packed_where_their_page_has_them(kind: str, changes: int, large: bool) -> None:
    rng = np.random.default_rng(changes)
    widths = np.repeat(rng.integers(0, 6, changes), 1024)
    values = (np.ones(1, kind) << widths.astype(kind))[: 1024 * changes - 5]
    found = PACKING.compress_chunks(measured(values), V2_2, compressors)
    part = found.buffers[0].parts[0]
    copied = [part.data[a : a + n] for a, n in zip(part.starts, part.sizes, strict=True)]
    starts = np.cumsum(part.sizes) - part.sizes
    plain = Parts((ChunkBuffer(np.concatenate(copied), starts, part.sizes),))
    wanted = assemble((), None, (plain,), large)
    built = assemble((), None, found.buffers, large)
    assert wanted is not None
    assert built is not None
    assert built[0] is part.data  # nothing was copied
    assert built[0].tobytes() == wanted[0].tobytes()
    assert built[1].tolist() == wanted[1].tolist()


def test_a_block_is_what_the_format_says() -> None:
    values = [5, 0, 7]
    _, blocks = in_blocks("inline_bitpacking", measured(np.array(values, np.uint32)), [3])
    assert blocks == [inline_chunk(values, 32, 3)]


def test_it_stays_away_where_little_is_saved() -> None:
    small, wide = np.arange(2000), np.full(2000, 2**63 - 1)
    assert PACKING.nominate_chunks(measured(small), V2_2) > 500
    assert not PACKING.nominate_chunks(measured(wide), V2_2)
    assert not PACKING.nominate_chunks(measured([5]), V2_2)
    plain = EncodingOptions(file_version=(2, 2), compression="none")
    assert not PACKING.nominate_chunks(measured(small), plain)
    assert not PACKING.nominate_blocks(measured(small), np.array([1000, 1000]), V2_2)


@pytest.mark.parametrize(("bits", "taken"), [(288, False), (287, True)])
def test_it_comes_where_more_than_99_thousandths_are_saved(bits: int, taken: bool) -> None:
    """Ten blocks of words of 32 bits: at 288 bits of 320, with the widths, 99 are saved."""
    widths = np.full(10, bits // 10) + (np.arange(10) < bits % 10)
    values = np.repeat((1 << widths) - 1, 1024).astype(np.uint32)
    assert bool(PACKING.nominate_chunks(measured(values), V2_2)) == taken
