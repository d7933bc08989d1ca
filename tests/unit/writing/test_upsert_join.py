"""Keys that match, and conditions on matched pairs."""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError, PredicateError
from lance_nb.table.snapshot import Snapshot
from lance_nb.writing import upsert_join
from lance_nb.writing.upsert_join import KeyNumbers, MatchCondition, Matches
from lance_nb.writing.upsert_source import SourceRows

NAN = float("nan")


def partners(source: pa.Table, target: pa.Table) -> list[tuple[int, int]]:
    """Return (target row, source row) of every match."""
    keys = KeyNumbers(source)
    places, rows = keys.pairs(*keys.find(target))
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


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()])
@pytest.mark.parametrize("side", ["lowest", "highest"])
def test_integers_at_the_ends_of_their_type_are_looked_up(type_: pa.DataType, side: str) -> None:
    kind = np.iinfo(type_.to_pandas_dtype())
    lowest, highest = int(kind.min), int(kind.max)
    keys = [lowest, lowest + 2, lowest + 3] if side == "lowest" else [highest, highest - 2]
    every = [lowest, lowest + 1, lowest + 2, highest, highest - 1, highest - 2, None, 0]
    source, target = (pa.table({"k": pa.array(one, type_)}) for one in (keys, every))
    found = partners(source, target)
    assert found == [(at, keys.index(value)) for at, value in enumerate(every) if value in keys]


def test_integers_of_many_chunks_and_blocks_are_found_in_their_places() -> None:
    keys = pa.table({"k": np.arange(0, 90_000, 1000)})
    chunks = [np.arange(start, start + 30_000) for start in (0, 60_000, 30_000)]
    found = partners(keys, pa.table({"k": pa.chunked_array(chunks)}))
    every = np.concatenate(chunks).tolist()
    assert found == [(at, value // 1000) for at, value in enumerate(every) if value % 1000 == 0]


def test_lists_are_no_keys() -> None:
    with pytest.raises(NotSupportedError, match="'k' is a list"):
        KeyNumbers(pa.table({"k": [[1]]}))


@pytest.mark.parametrize("values", [[5, 3, None, 9], [2**60, 3, None, -(2**60)]])
def test_keys_are_numbered_from_0_without_gaps(values: list[int | None]):
    keys = pa.table({"k": pa.array(values, pa.int64())})
    places, numbers = KeyNumbers(keys).find(keys)
    assert (places.tolist(), sorted(numbers.tolist())) == ([0, 1, 3], [0, 1, 2])


_NUMBERS = count()
TARGET = pa.table(
    {
        "k": [0, 1, 2, 3, 4, 5],
        "v": [10, 11, 12, 13, 14, 15],
        "only": ["a", "b", None, "d", "e", "f"],
        "s": [{"x": 1, "t": {"y": n}} for n in range(6)],
    }
)
SOURCE = pa.table(
    {
        "k": [5, 1, 3, 3],
        "v": [1, 20, 3, 30],
        "s": [{"x": 5, "t": {"y": 50}}, None, {"x": 3, "t": None}, {"x": 30, "t": {"y": 3}}],
    }
)
PAIRS = [(1, 1), (3, 2), (3, 3), (5, 0)]  # offset in the target, row of the source


@pytest.fixture
def snapshot() -> Snapshot:
    made = lance_nb.write_dataset(TARGET, f"memory://condition/{next(_NUMBERS)}")
    return made._snapshot


def passing(snapshot: Snapshot, text: Any) -> list[tuple[int, int]]:
    """Return the pairs that pass."""
    physical, rows = (np.array(one, np.int64) for one in zip(*PAIRS, strict=True))
    unmatched = np.array([0, 2, 4], np.int64)
    matches = Matches(snapshot.manifest.fragments[0], physical, rows, unmatched)
    with SourceRows(SOURCE.to_reader(3)) as source:
        kept = MatchCondition.of(text, snapshot, source).passing(matches)
    assert kept.unmatched.tolist() == unmatched.tolist()
    return list(zip(kept.physical.tolist(), kept.source.tolist(), strict=True))


CONDITIONS = [
    ("source.v > target.v", [(1, 1), (3, 3)]),
    ("source.v < 20", [(3, 2), (5, 0)]),
    ("target.v = 13", [(3, 2), (3, 3)]),
    ("only = 'd' AND source.v = 30", [(3, 3)]),
    ("target.only in ('b', 'f')", [(1, 1), (5, 0)]),
    ("source.s.x > 3", [(3, 3), (5, 0)]),
    ("source.s.t.y >= 3", [(3, 3), (5, 0)]),
    ("source.s.t.y IS NULL", [(1, 1), (3, 2)]),
    ("target.s.t.y = source.s.t.y", [(3, 3)]),
    ("_rowid = 3", [(3, 2), (3, 3)]),
    ("target._rowaddr = 5", [(5, 0)]),
    ("true", PAIRS),
    ("false", []),
]


@pytest.mark.parametrize("window", [1, 3, 1 << 16])
@pytest.mark.parametrize(("text", "expected"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_pairs_pass_by_the_values_of_both_sides(
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    expected: list[tuple[int, int]],
    window: int,
) -> None:
    monkeypatch.setattr(upsert_join, "_WINDOW_ROWS", window)
    assert passing(snapshot, text) == expected


def test_without_pairs_nothing_is_read(snapshot: Snapshot) -> None:
    none = np.zeros(0, np.int64)
    matches = Matches(snapshot.manifest.fragments[0], none, none, none)
    with SourceRows(SOURCE.to_reader()) as source:
        condition = MatchCondition.of("source.v > 1", snapshot, source)
        assert condition.passing(matches) is matches


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v > 3", r"'k', 'v', 's'\): source\.column or target\.column"),
        ("nope = 1", "nope"),
        ("source.only = 'a'", "only"),
        ("source.v >", "source"),
        (3, "SQL text, not int"),
        (None, "SQL text, not NoneType"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(
    snapshot: Snapshot, text: Any, said: str
) -> None:
    with pytest.raises(PredicateError, match=said):
        passing(snapshot, text)
