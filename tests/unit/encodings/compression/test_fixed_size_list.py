"""Fixed-size lists, nested and with null items."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import AllNull, FixedSizeList, FixedWidth, VariableWidth
from lance_nb.encodings.page_encoder import compressors
from lance_nb.encodings.registry import codec_of, codecs
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
from tests.support.compressing import V2_2, by_value, in_chunks, measured
from tests.support.leaf_values import make


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


KINDS = [
    "list of 4 float32",
    "list of 64 float32",
    "list of 3 bool",
    "list of lists",
    "list of 3 int16, null items",
    "list of 90 int32, null items",
]
LISTS = codec_of("fixed_size_list")


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if "null" not in kind and "of lists" not in kind]
)
def test_lists_come_back(kind: str) -> None:
    _, counts = in_chunks("fixed_size_list", measured(make(kind, 3000)))
    assert all(count % 8 == 0 for count in counts[:-1])
    if "bool" not in kind:
        by_value("fixed_size_list", measured(make(kind, 300)))


def test_null_items_are_a_bitmap_per_layer() -> None:
    encoding, _ = in_chunks_of_nulls()
    assert encoding.fixed_size_list.has_validity


def in_chunks_of_nulls() -> tuple[object, object]:
    block = measured(make("list of 3 int16, null items", 500))
    compressed = LISTS.compress_chunks(block, V2_2, compressors)
    assert len(compressed.buffers) == 2
    return compressed.encoding, compressed.num_values


def test_lists_of_odd_bits_have_no_single_values() -> None:
    assert not LISTS.nominate_values(measured([[True] * 3], pa.list_(pa.bool_(), 3)), V2_2)
    assert LISTS.nominate_values(measured([[True] * 8], pa.list_(pa.bool_(), 8)), V2_2)
    assert not LISTS.nominate_chunks(measured(np.arange(3)), V2_2)


@pytest.mark.parametrize(
    ("kind", "width"),
    [("list of 3 int16, null items", 3), ("list of 90 int32, null items", 90)],
)
@pytest.mark.parametrize("count", [1, 7, 300])
def test_single_values_have_their_bitmap_in_front(kind: str, width: int, count: int) -> None:
    block = measured(make(kind, count))
    found = LISTS.compress_values(block, V2_2, compressors)
    assert found.values.bits_per_value == 8 * (
        -(-width // 8) + block.block.items.data.size // count
    )
    decoded = codecs.decode_values(found.encoding, found.values)
    assert decoded.items.data.tobytes() == block.block.items.data.tobytes()
    assert bits_of(decoded.validity, count * width) == bits_of(block.block.validity, count * width)


def test_single_lists_of_lists_have_a_bitmap_of_each_layer() -> None:
    inner = pa.array([[1, None], None, [5, 6], [7, 8], [9, 10], None], pa.list_(pa.uint8(), 2))
    block = measured(pa.FixedSizeListArray.from_arrays(inner, 3))
    found = LISTS.compress_values(block, V2_2, compressors)
    assert found.values.bits_per_value == 8 * (1 + 1 + 6)
    rows = found.values.data.reshape(2, 8)
    assert rows[0, :4].tolist() == [0b101, 0b110001, 1, rows[0, 3]]
    assert rows[1, :4].tolist() == [0b011, 0b001111, 7, 8]


def bits_of(bitmap: np.ndarray, count: int) -> list[int]:
    return np.unpackbits(bitmap, count=count, bitorder="little").tolist()


@pytest.mark.parametrize("width", [8, 16])
def test_bits_and_their_bitmap_take_as_many_bytes(width: int) -> None:
    flags = pa.array([None if k % 3 == 0 else k % 2 == 0 for k in range(5 * width)])
    block = measured(pa.FixedSizeListArray.from_arrays(flags, width))
    found = LISTS.compress_values(block, V2_2, compressors)
    assert found.values.bits_per_value == 2 * width
    decoded = codecs.decode_values(found.encoding, found.values)
    assert decoded.items.data.tobytes() == block.block.items.data.tobytes()
    assert bits_of(decoded.validity, 5 * width) == [k % 3 != 0 for k in range(5 * width)]
