"""Find the column that names rows: the first whose values are all different in each version."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.table.diff import unique_column as module
from lance_nb.table.diff.unique_column import unique_column

TABLE = pa.table({
    "group": [1, 1, 2, 2],
    "part": [1, None, 2, 3],
    "share": [0.1, 0.2, 0.3, 0.4],
    "name": ["a", "b", "c", "d"],
    "code": pa.array([7, 8, 9, 10], pa.int16()),
})  # fmt: skip


def test_the_first_column_of_different_values_without_nulls_names_rows() -> None:
    ds = lance_nb.write_dataset(TABLE, "memory://unique/a.lance")
    first = ds.opened[1]
    assert unique_column((first,)) == "name"
    assert unique_column((first,), frozenset(["name"])) == "code"
    ds.insert(TABLE.slice(0, 1).set_column(4, "code", pa.array([11], pa.int16())))
    assert unique_column((ds.opened[1],)) == "code"
    assert unique_column((first, ds.opened[1])) == "code"
    ds.delete("true")
    assert unique_column((ds.opened[1],)) is None


def test_a_value_that_comes_twice_far_behind_is_seen() -> None:
    numbers = pa.table({"n": [*range(3000), 5]})
    ds = lance_nb.write_dataset(numbers, "memory://unique/far.lance", max_rows_per_file=700)
    assert unique_column((ds.opened[1],)) is None
    ds.delete("n = 5")
    assert unique_column((ds.opened[1],)) == "n"


def test_what_is_tried_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = lance_nb.write_dataset(TABLE, "memory://unique/bounded.lance")
    with monkeypatch.context() as patched:
        patched.setattr(module, "MAX_ROWS", 3)
        assert unique_column((ds.opened[1],)) is None
    monkeypatch.setattr(module, "MAX_TRIED", 2)
    assert unique_column((ds.opened[1],)) is None
