"""Packing and unpacking blocks of 1024 integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.kernels import bitpack
from lance_nb.errors import InternalError
from tests.property.encodings.reference_encoders import pack_block
from tests.support.compiled_forms import Form, forced

FORMS = pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])


def packed(bits: int, width: int, count: int, gap: int) -> tuple[np.ndarray, ...]:
    """Return data, starts and the values of ``count`` blocks, ``gap`` bytes apart."""
    rng = np.random.default_rng(bits + width)
    values = rng.integers(0, 2**width - 1, (count, 1024), np.uint64, endpoint=True)
    raw = b"".join(b"\xee" * gap + pack_block(row.tolist(), bits, width) for row in values)
    starts = np.arange(count, dtype=np.int64) * (gap + 128 * width) + gap
    return np.frombuffer(raw, np.uint8), starts, values.astype(f"u{bits // 8}")


@FORMS
@pytest.mark.parametrize(("bits", "width"), [(8, 3), (16, 16), (32, 11), (64, 1), (64, 63)])
@pytest.mark.parametrize("gap", [8, 3])
def test_blocks_are_unpacked_aligned_or_not(form: Form, bits: int, width: int, gap: int) -> None:
    data, starts, expected = packed(bits, width, 3, gap)
    out = np.empty_like(expected)
    with forced(form):
        bitpack.unpack(data, starts, width, out)
    assert np.array_equal(out, expected)


@FORMS
def test_more_blocks_than_fit_the_scratch_are_unpacked(form: Form) -> None:
    data, _, expected = packed(32, 5, 1, 8)
    starts = np.full(2 * bitpack.BLOCKS + 7, 8, np.int64)
    out = np.empty((starts.size, 1024), np.uint32)
    with forced(form):
        bitpack.unpack(data, starts, 5, out)
    assert (out == expected).all()


def test_blocks_of_zero_bits_are_zeros() -> None:
    out = np.ones((2, 1024), np.uint16)
    bitpack.unpack(np.zeros(0, np.uint8), np.zeros(2, np.int64), 0, out)
    assert not out.any()


def test_trim_keeps_the_first_values_of_each_block() -> None:
    blocks = np.arange(3 * 1024, dtype=np.uint16).reshape(3, 1024)
    kept = bitpack.trim(blocks, np.array([1024, 2, 1024])).view(np.uint16)
    assert kept.tolist() == [*range(1024), 1024, 1025, *range(2048, 3072)]
    kept = bitpack.trim(blocks, np.array([1024, 1024, 5])).view(np.uint16)
    assert kept.tolist() == list(range(2053))


def test_values_of_zero_bits_are_looked_for_in_front_of_their_chunk_at_most() -> None:
    """The first chunk has nothing but its width; the next is not aligned with it."""
    packs, _, values = packed(64, 13, 1, 3)
    data = np.concatenate([np.zeros(8, np.uint8), packs])
    starts, widths = np.array([8, 8 + 3]), np.array([0, 13])
    found = bitpack.gather(data, starts, widths, np.array([1023, 5]), np.dtype("u8"))
    assert found.tolist() == [0, values[0, 5]]


def test_single_values_are_fetched_from_blocks_of_different_widths() -> None:
    first, _, values = packed(64, 13, 1, 8)
    second, _, others = packed(64, 64, 1, 8)
    data = np.concatenate([first, second])
    starts = np.array([8, first.size + 8, 8, first.size + 8])
    widths = np.array([13, 64, 0, 64])
    found = bitpack.gather(data, starts, widths, np.array([1023, 77, 5, 0]), np.dtype("u8"))
    assert found.tolist() == [values[0, 1023], others[0, 77], 0, others[0, 0]]


@FORMS
@pytest.mark.parametrize("start", [-1, 1, 128 * 7, 1 << 62])
def test_blocks_outside_of_the_data_are_refused(form: Form, start: int) -> None:
    data = np.zeros(128 * 7, np.uint8)
    starts, out = np.array([0, start]), np.empty((2, 1024), np.uint16)
    with forced(form), pytest.raises(InternalError, match="blocks of 7 bits"):
        bitpack.unpack(data, starts, 7, out)


CASES = [
    (bits, width)
    for bits in (8, 16, 32, 64)
    for width in {1, 3, 7, bits // 8 + 1, bits // 4, bits // 4 + 1, bits // 2, bits - 1, bits}
]


def random_blocks(bits: int, width: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(bits + width)
    words = rng.integers(0, 2**64 - 1, (count, 1024), np.uint64, endpoint=True)
    return (words & np.uint64((1 << width) - 1)).astype(f"u{bits // 8}")


@pytest.mark.parametrize(("bits", "width"), CASES)
def test_blocks_are_packed_as_the_format_says(bits: int, width: int) -> None:
    blocks = random_blocks(bits, width, 2)
    out = np.empty((2, 1024 * width // bits), blocks.dtype)
    bitpack.pack(blocks, width, out)
    for block, packed in zip(blocks, out, strict=True):
        assert packed.tobytes() == pack_block(block.tolist(), bits, width)


@FORMS
@pytest.mark.parametrize(("bits", "width"), [(8, 5), (16, 1), (32, 31), (64, 10), (64, 64)])
def test_the_readers_kernel_undoes_it(bits: int, width: int, form: Form) -> None:
    blocks = random_blocks(bits, width, 700)
    size = 1024 * width // bits
    rows = np.empty((700, size + 1), blocks.dtype)  # a word in front of each block, as in chunks
    with forced(form):
        bitpack.pack(blocks, width, rows[:, 1:])
    found = np.empty_like(blocks)
    starts = (np.arange(700) * (size + 1) + 1) * blocks.itemsize
    bitpack.unpack(rows.reshape(-1).view(np.uint8), starts, width, found)
    assert np.array_equal(found, blocks)


def test_no_bits_are_no_words() -> None:
    bitpack.pack(np.zeros((2, 1024), np.uint32), 0, np.empty((2, 0), np.uint32))


@FORMS
def test_blocks_that_lie_apart_are_packed(form: Form) -> None:
    blocks = random_blocks(32, 7, 3)
    apart = np.zeros((3, 1030), np.uint32)
    apart[:, 6:] = blocks
    for source in (blocks, apart[:, 6:]):
        out = np.zeros((3, 230), np.uint32)
        with forced(form):
            bitpack.pack(source, 7, out[:, 6:])
        assert not out[:, :6].any()
        for block, row in zip(blocks, out, strict=True):
            assert row[6:].tobytes() == pack_block(block.tolist(), 32, 7)


def test_the_first_bits_of_a_block_by_hand() -> None:
    block = bytearray(128)
    block[0] = 0b11  # lane 0, rows 0 and 1: levels 0 and 128
    block[1] = 0b1  # lane 0, row 8: level 64
    block[2] = 0b1000_0000  # lane 1, row 7: level 1 + 7 * 128
    out = np.empty((1, 1024), np.uint8)
    bitpack.unpack_levels(np.frombuffer(block, np.uint8), np.zeros(1, np.int64), 1, out)
    assert np.flatnonzero(out[0]).tolist() == [0, 64, 128, 897]
    assert set(out[0].tolist()) == {0, 1}


@pytest.mark.parametrize("width", bitpack.LEVEL_WIDTHS)
def test_levels_come_back_as_a_plain_loop_packed_them(width: int) -> None:
    values = [(7 * i + i // 100) % (1 << width) for i in range(1024)]
    raw = b"head" + pack_block(values, 16, width)
    out = np.empty((1, 1024), np.uint8)
    bitpack.unpack_levels(np.frombuffer(raw, np.uint8), np.array([4]), width, out)
    assert out[0].tolist() == values


@given(
    st.sampled_from(bitpack.LEVEL_WIDTHS),
    st.integers(0, 1100),
    st.integers(0, 9),
    st.integers(0, 2**32 - 1),
)
def test_any_bytes_read_as_those_of_words_of_16_bits(
    width: int, count: int, gap: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    size = 128 * width + gap
    data = rng.integers(0, 256, count * size + 1, np.uint8)
    starts = np.arange(count, dtype=np.int64) * size
    if seed % 2:
        rng.shuffle(starts)
    wide = np.empty((count, 1024), np.uint16)
    bitpack.unpack(data, starts, width, wide)
    narrow = np.empty((count, 1024), np.uint8)
    bitpack.unpack_levels(data, starts, width, narrow)
    assert np.array_equal(wide, narrow)
