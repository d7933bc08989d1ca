from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.dataset.checks.key_hashes import check_key_type, key_hashes
from lance_nb.errors import NotSupportedError

COLUMNS = [
    pa.array([3, 1, None, 3, -1, 0], pa.int64()),
    pa.array([3, 1, None, 3, 255, 0], pa.uint8()),
    pa.array([0.0, -0.0, None, float("nan"), 1.5, float("inf")], pa.float64()),
    pa.array([0.0, -0.0, None, float("nan"), 1.5, float("inf")], pa.float32()),
    pa.array([True, False, None, True, False, True]),
    pa.array(["a", "", None, "aa", "ba", "ab"]),
    pa.array([b"a", b"", None, b"\0", b"\0\0", b"ab"], pa.large_binary()),
    pa.array([1, 2, None, 2, 1, 3], pa.timestamp("us")),
    pa.array([decimal.Decimal(n) if n else None for n in (1, 2, 0, 2, 7, 9)], pa.decimal128(30, 2)),
    pa.array([b"abc", b"abd", None, b"abc", b"xyz", b"\0\0\0"], pa.binary(3)),
    pa.array(["x", "y", None, "x", "z", "y"]).dictionary_encode(),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda one: str(one.type))
def test_equal_keys_and_only_they_have_equal_hashes(column: pa.Array) -> None:
    check_key_type("key", column.type)
    hashes, valid = key_hashes([column])
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    groups = pa.table({"key": plain}).group_by("key").aggregate([([], "count_all")])
    assert valid.tolist() == plain.is_valid().to_pylist()
    zeros = pa.types.is_floating(plain.type)  # Arrow groups -0.0 apart, SQL does not
    assert len(set(hashes[valid].tolist())) == groups.num_rows - 1 - zeros
    # Slices, whose buffers begin elsewhere, have the same hashes.
    for start in range(len(column)):
        assert (
            key_hashes([column.slice(start, 3)])[0].tolist() == hashes[start : start + 3].tolist()
        )


def test_texts_of_another_layout_have_the_same_hashes() -> None:
    texts = ["a", "bc", "", "défg", "a"]
    plain = key_hashes([pa.array(texts)])[0]
    assert key_hashes([pa.array(texts, pa.large_string())])[0].tolist() == plain.tolist()
    assert key_hashes([pa.array(texts).dictionary_encode()])[0].tolist() == plain.tolist()
    assert plain[0] == plain[4]


def test_several_columns_are_one_key_in_order() -> None:
    first, second = pa.array([1, 1, 2, None]), pa.array(["a", "b", "a", "a"])
    hashes, valid = key_hashes([first, second])
    assert len(set(hashes.tolist())) == 4
    assert valid.tolist() == [True, True, True, False]
    assert key_hashes([second, first])[0].tolist() != hashes.tolist()


def test_hashes_are_the_same_on_every_machine() -> None:
    found = key_hashes([pa.array(["lance", ""])])[0].tolist()
    assert found == key_hashes([pa.array(["lance", ""])])[0].tolist()
    assert key_hashes([pa.array([7], pa.int32())])[0].dtype == np.uint64


def test_many_keys_do_not_collide() -> None:
    numbers = key_hashes([pa.array(range(200_000), pa.int64())])[0]
    texts = key_hashes([pa.array([f"key-{n}" for n in range(100_000)])])[0]
    assert np.unique(numbers).size == 200_000
    assert np.unique(texts).size == 100_000


def test_nested_columns_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="'tags' is list"):
        check_key_type("tags", pa.list_(pa.int64()))
