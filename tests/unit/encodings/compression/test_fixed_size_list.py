"""Fixed-size lists, nested and with null items."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import AllNull, FixedSizeList, FixedWidth, VariableWidth
from lance_nb.encodings.registry import codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    bitmap,
    booleans,
    chunks_of,
    constant,
    fixed_size_list,
    flat,
    integers,
    to_words,
)


def test_items_are_the_flattened_lists() -> None:
    encoding = fixed_size_list(3, flat(16))
    chunks = chunks_of([[to_words(range(6), 16)], [to_words(range(6, 9), 16)]], [2, 1])
    block = codecs.decode_chunks(encoding, chunks)
    assert isinstance(block, FixedSizeList)
    assert (block.dimension, block.num_values, block.validity) == (3, 3, None)
    assert integers(block.items) == list(range(9))


def test_lists_of_booleans_are_bits() -> None:
    encoding = fixed_size_list(4, flat(1))
    block = codecs.decode_chunks(encoding, chunks_of([[b"\x35"], [b"\x0a"]], [2, 1]))
    assert booleans(block.items.data, 12) == booleans(b"\x35\x0a", 12)


def test_each_chunk_has_its_own_validity_bitmap() -> None:
    encoding = fixed_size_list(3, flat(8), has_validity=True)
    bits = [[True, False, True], [False, True, True, True, True, False]]
    parts = [[bitmap(bits[0]), b"abc"], [bitmap(bits[1]), b"defghi"]]
    assert codecs.num_buffers(encoding) == 2
    block = codecs.decode_chunks(encoding, chunks_of(parts, [1, 2], seed=1))
    assert booleans(block.validity, 9) == bits[0] + bits[1]
    assert block.items.data.tobytes() == b"abcdefghi"


def test_nested_lists_have_one_bitmap_per_layer_from_the_outside_in() -> None:
    inner = fixed_size_list(2, flat(8), has_validity=True)
    encoding = fixed_size_list(3, inner, has_validity=True)
    outer_bits = [True, False, True]
    inner_bits = [True, True, False, False, True, False]
    parts = [[bitmap(outer_bits), bitmap(inner_bits), b"abcdef"]]
    block = codecs.decode_chunks(encoding, chunks_of(parts, [1]))
    assert (block.dimension, block.num_values) == (3, 1)
    assert booleans(block.validity, 3) == outer_bits
    assert (block.items.dimension, block.items.num_values) == (2, 3)
    assert booleans(block.items.validity, 6) == inner_bits
    assert block.items.items.data.tobytes() == b"abcdef"


def test_values_one_by_one_without_nulls_are_not_copied() -> None:
    data = np.arange(12, dtype=np.uint8)
    block = codecs.decode_values(fixed_size_list(3, flat(16)), FixedWidth(48, 2, data))
    assert (block.items.bits_per_value, block.items.num_values) == (16, 6)
    assert np.shares_memory(block.items.data, data)


def test_values_one_by_one_carry_their_bitmaps_in_front() -> None:
    inner = fixed_size_list(5, flat(8), has_validity=True)
    encoding = fixed_size_list(2, inner, has_validity=True)
    rows = [(b"\x01", b"\xf5\x03", b"abcdefghij"), (b"\x02", b"\x1e\x00", b"klmnopqrst")]
    data = np.frombuffer(b"".join(b"".join(row) for row in rows), np.uint8)
    block = codecs.decode_values(encoding, FixedWidth(13 * 8, 2, data))
    assert booleans(block.validity, 4) == [True, False, False, True]
    expected = booleans(b"\xf5\x03", 10) + booleans(b"\x1e\x00", 10)
    assert booleans(block.items.validity, 20) == expected
    assert block.items.items.data.tobytes() == b"abcdefghijklmnopqrst"


def test_a_constant_leaf_without_value_means_null_items() -> None:
    encoding = fixed_size_list(3, constant(None), has_validity=True)
    block = codecs.decode_values(encoding, FixedWidth(8, 2, np.zeros(2, np.uint8)))
    assert block.items == AllNull(6)
    chunked = codecs.decode_chunks(encoding, chunks_of([[b"\0"]], [2]))
    assert chunked.items == AllNull(6)


def test_a_block_is_its_items() -> None:
    encoding = fixed_size_list(2, flat(8))
    block = codecs.decode_blocks(encoding, chunks_of([[b"abcd"]], [2]))
    assert (block.num_values, block.items.data.tobytes()) == (2, b"abcd")
    with pytest.raises(NotSupportedError):
        codecs.decode_blocks(
            fixed_size_list(2, flat(8), has_validity=True), chunks_of([[b"abcd"]], [2])
        )


@pytest.mark.parametrize("dimension", [0, 2**41, 2**63])
def test_absurd_dimensions_are_refused(dimension: int) -> None:
    with pytest.raises(CorruptFileError, match="list items"):
        codecs.decode_chunks(fixed_size_list(dimension, flat(8)), chunks_of([[b"abcd"]], [1]))
    nested = fixed_size_list(2**30, fixed_size_list(2**30, flat(8)))
    with pytest.raises(CorruptFileError, match="list items"):
        codecs.decode_chunks(nested, chunks_of([[b"abcd"]], [1]))
    with pytest.raises(CorruptFileError):
        codecs.decode_chunks(fixed_size_list(2**30, flat(8)), chunks_of([[b"abcd"]], [2**40]))


def test_missing_validity_or_items_are_refused() -> None:
    encoding = fixed_size_list(9, flat(8), has_validity=True)
    for parts in ([b"\1", b"abcdefghi"], [b"\1\1", b"abcdefgh"]):
        with pytest.raises(CorruptFileError):
            codecs.decode_chunks(encoding, chunks_of([parts], [1]))
    with pytest.raises(CorruptFileError, match="2 value buffers"):
        codecs.decode_chunks(encoding, chunks_of([[b"abcdefghi"]], [1]))


def test_values_of_the_wrong_width_are_refused() -> None:
    encoding = fixed_size_list(3, flat(8), has_validity=True)
    for bits in (8, 24, 40):
        with pytest.raises(CorruptFileError):
            codecs.decode_values(encoding, FixedWidth(bits, 1, np.zeros(bits // 8, np.uint8)))
    offsets = np.zeros(2, np.int32)
    with pytest.raises(CorruptFileError):
        codecs.decode_values(encoding, VariableWidth(1, offsets, np.zeros(0, np.uint8)))


def test_a_list_holds_its_bitmaps_at_least() -> None:
    inner = fixed_size_list(9, constant(None), has_validity=True)
    encoding = fixed_size_list(2, inner, has_validity=True)  # a byte and 18 bits
    whole = codecs.decode_values(encoding, FixedWidth(32, 2, np.zeros(8, np.uint8)))
    assert whole.items.items == AllNull(36)
    for bits in (24, 31, 28):
        with pytest.raises(CorruptFileError):
            codecs.decode_values(encoding, FixedWidth(bits, 2, np.zeros(8, np.uint8)))


def test_only_an_outer_layer_may_have_a_bitmap_in_single_values() -> None:
    encoding = fixed_size_list(2, fixed_size_list(2, flat(8)), has_validity=True)
    data = np.frombuffer(b"\x01abcd\x02efgh", np.uint8)
    block = codecs.decode_values(encoding, FixedWidth(40, 2, data))
    assert booleans(block.validity, 4) == [True, False, False, True]
    assert block.items.validity is None
    assert block.items.items.data.tobytes() == b"abcdefgh"


@pytest.mark.parametrize(
    ("encoding", "can"),
    [
        (fixed_size_list(3, flat(8)), True),
        (fixed_size_list(8, flat(1)), True),
        (fixed_size_list(3, flat(1)), False),
        (fixed_size_list(4, fixed_size_list(2, flat(1))), True),
        (fixed_size_list(3, flat(8), has_validity=True), False),
        (fixed_size_list(2, fixed_size_list(3, flat(8), has_validity=True)), False),
        (fixed_size_list(3, constant(None)), False),
    ],
)
def test_lists_of_whole_bytes_are_fetched(encoding, can: bool) -> None:
    assert codecs.can_gather(encoding) is can
