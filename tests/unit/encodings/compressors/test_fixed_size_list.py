"""Writing fixed-size lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

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
    from lance_nb.encodings.choose import compressors

    block = measured(make("list of 3 int16, null items", 500))
    compressed = LISTS.compress_chunks(block, V2_2, compressors)
    assert len(compressed.buffers) == 2
    return compressed.encoding, compressed.num_values


def test_lists_of_odd_bits_have_no_single_values() -> None:
    assert not LISTS.nominate_values(measured([[True] * 3], pa.list_(pa.bool_(), 3)), V2_2)
    assert LISTS.nominate_values(measured([[True] * 8], pa.list_(pa.bool_(), 8)), V2_2)
    assert not LISTS.nominate_chunks(measured(np.arange(3)), V2_2)
