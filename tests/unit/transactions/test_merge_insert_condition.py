"""The condition of an upsert: which pairs pass, over windows, sides and nested columns."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import PredicateError
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions import merge_insert_search
from lance_nb.transactions.merge_insert_join import Matches
from lance_nb.transactions.merge_insert_search import MatchCondition
from lance_nb.transactions.merge_insert_source import SourceRows

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
    lonely = np.array([0, 2, 4], np.int64)
    matches = Matches(snapshot.manifest.fragments[0], physical, rows, lonely)
    with SourceRows(SOURCE.to_reader(3)) as source:
        kept = MatchCondition.of(text, snapshot, source).kept(matches)
    assert kept.lonely.tolist() == lonely.tolist()
    return list(zip(kept.physical.tolist(), kept.source.tolist(), strict=True))


CASES = [
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
@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_pairs_pass_by_the_values_of_both_sides(
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    expected: list[tuple[int, int]],
    window: int,
) -> None:
    monkeypatch.setattr(merge_insert_search, "_WINDOW_ROWS", window)
    assert passing(snapshot, text) == expected


def test_without_pairs_nothing_is_read(snapshot: Snapshot) -> None:
    none = np.zeros(0, np.int64)
    matches = Matches(snapshot.manifest.fragments[0], none, none, none)
    with SourceRows(SOURCE.to_reader()) as source:
        condition = MatchCondition.of("source.v > 1", snapshot, source)
        assert condition.kept(matches) is matches


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
