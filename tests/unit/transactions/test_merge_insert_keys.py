"""Keys of two sides as numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import NotSupportedError
from lance_nb.transactions.merge_insert_keys import KeyNumbers

NAN = float("nan")


def partners(source: pa.Table, target: pa.Table) -> list[tuple[int, int]]:
    """Return (target row, source row) of every match."""
    keys = KeyNumbers(source)
    places, rows = keys.pairs(keys.find(target))
    return list(zip(places.tolist(), rows.tolist(), strict=True))


CASES: dict[str, tuple[pa.Array, pa.Array, list[tuple[int, int]]]] = {
    "narrow integers": (pa.array([3, None, 5]), pa.array([5, None, 9, 3]), [(0, 2), (3, 0)]),
    "wide integers": (pa.array([2**60, -(2**60)]), pa.array([-(2**60), 1]), [(0, 1)]),
    "small integers": (
        pa.array([-128, 127], pa.int8()),
        pa.array([127, 0, -128], pa.int8()),
        [(0, 1), (2, 0)],
    ),
    "unsigned": (
        pa.array([2**64 - 1, 2**64 - 3], pa.uint64()),
        pa.array([0, 2**64 - 3], pa.uint64()),
        [(1, 1)],
    ),
    "floats": (pa.array([NAN, 0.0, None]), pa.array([-0.0, NAN, None]), [(1, 0)]),
    "half floats": (
        pa.array(np.array([1, 2], np.float16)),
        pa.array(np.array([2, 3], np.float16)),
        [(0, 1)],
    ),
    "texts": (pa.array(["a", None, "b"]), pa.array(["b", "c", None, "a"]), [(0, 2), (3, 0)]),
    "booleans": (pa.array([True]), pa.array([False, True]), [(1, 0)]),
    "decimals": (pa.array([Decimal("1.10")]), pa.array([Decimal("1.10")]), [(0, 0)]),
    "dictionaries": (
        pa.array(["x", "y"]).dictionary_encode(),
        pa.array(["y", "z", "x"]).dictionary_encode(),
        [(0, 1), (2, 0)],
    ),
    "structs": (
        pa.array([{"x": 1, "y": "a"}, {"x": 1, "y": "b"}, None]),
        pa.array([{"x": 1, "y": "b"}, None, {"x": 2, "y": "b"}]),
        [(0, 1)],
    ),
    "structs with nulls inside": (
        pa.array([{"x": 1, "y": None}, {"x": None, "y": "b"}, None]),
        pa.array([{"x": None, "y": "b"}, None, {"x": 1, "y": "b"}, {"x": 1, "y": None}]),
        [(0, 1), (3, 0)],
    ),
    "vectors": (
        pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        pa.array([[3.0, 4.0], [1.0, 4.0]], pa.list_(pa.float32(), 2)),
        [(0, 1)],
    ),
    "nulls": (pa.nulls(2), pa.nulls(3), []),
    "an empty source": (pa.array([], pa.int64()), pa.array([1]), []),
    "an empty target": (pa.array([1]), pa.array([], pa.int64()), []),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_keys_find_each_other(name: str) -> None:
    source, target, expected = CASES[name]
    assert partners(pa.table({"k": source}), pa.table({"k": target})) == expected


def test_a_repeated_key_has_all_its_partners() -> None:
    source = pa.table({"k": [7, 8, 7]})
    assert partners(source, pa.table({"k": [7, 9, 7]})) == [(0, 0), (0, 2), (2, 0), (2, 2)]


def test_every_column_of_a_key_counts() -> None:
    source = pa.table({"a": [1, 1, 2, None], "b": ["x", "y", "x", "x"], "c": [1.0, 1.0, NAN, 1.0]})
    target = pa.table({"a": [2, 1, 1, None], "b": ["x", "x", "y", "x"], "c": [NAN, 2.0, 1.0, 1.0]})
    assert partners(source, target) == [(0, 2), (2, 1)]


def test_random_keys_match_as_in_a_dictionary() -> None:
    random = np.random.default_rng(5)

    def side(count: int) -> dict[str, Any]:
        names = [f"n{one}" for one in random.integers(0, 9, count)]
        return {"a": random.integers(-4, 4, count), "b": names}

    ours, theirs = side(60), side(80)
    expected = [
        (row, other)
        for row, key in enumerate(zip(theirs["a"], theirs["b"], strict=True))
        for other, mine in enumerate(zip(ours["a"], ours["b"], strict=True))
        if key == mine
    ]
    assert partners(pa.table(ours), pa.table(theirs)) == expected


def test_lists_are_no_keys() -> None:
    with pytest.raises(NotSupportedError, match="'k' is a list"):
        KeyNumbers(pa.table({"k": [[1]]}))


@pytest.mark.parametrize("values", [[5, 3, None, 9], [2**60, 3, None, -(2**60)]])
def test_keys_are_numbered_from_0_without_gaps(values: list[int | None]):
    keys = pa.table({"k": pa.array(values, pa.int64())})
    assert sorted(KeyNumbers(keys).find(keys).tolist()) == [-1, 0, 1, 2]
