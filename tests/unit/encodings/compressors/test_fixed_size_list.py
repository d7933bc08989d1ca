"""Writing fixed-size lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.choose import compressors
from lance_nb.encodings.registry import codecs
from tests.support.compressing import COMPRESSORS, V2_2, by_value, in_chunks, measured
from tests.support.leaf_values import make

KINDS = [
    "list of 4 float32",
    "list of 64 float32",
    "list of 3 bool",
    "list of lists",
    "list of 3 int16, null items",
    "list of 90 int32, null items",
]
LISTS = COMPRESSORS["fixed_size_list"]


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
