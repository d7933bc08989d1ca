from __future__ import annotations

import time

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.rows import column_choice
from lance_nb.explorer.rows.column_choice import (
    ColumnChoice,
    column_choice_of,
    column_groups,
    listed_columns,
)


def test_pinned_columns_come_first_and_hidden_ones_not_at_all() -> None:
    known = ["a", "b", "c", "d"]
    assert ColumnChoice(("c", "gone", "a"), None, frozenset("b")).names(known) == ["c", "a", "d"]
    assert ColumnChoice(("c",), frozenset(("d", "gone"))).names(known) == ["c", "d"]
    assert ColumnChoice(hidden=frozenset("c")).names([*known, "new"]) == ["a", "b", "d", "new"]
    assert ColumnChoice(shown=frozenset("c")).names([*known, "new"]) == ["c"]


def test_columns_are_grouped_by_a_number_or_by_a_prefix() -> None:
    names = ["id", "s_1", "s_2", "s_30", "price_low", "price_high", "price_mid", "x1", "x2"]
    groups = column_groups(names)
    assert groups == [None, "s_", "s_", "s_", "price_", "price_", "price_", None, None]
    nested = ["user.name.first", "user.name.last", "user.id", "user.age"]
    assert column_groups(nested) == ["user."] * 4
    assert column_groups(["", "_", "__", "9"]) == [None] * 4


def test_two_thousand_columns_are_listed_at_once() -> None:
    names = [f"feature_{at}" for at in range(1_990)] + [f"f{at}_{at}" for at in range(10)]
    schema = pa.schema([(name, pa.int8()) for name in names])
    started = time.process_time()
    listed = listed_columns(schema, names)
    assert time.process_time() - started < 1
    assert listed["groups"] == ["feature_…"]
    assert [one["group"] for one in listed["columns"]].count(0) == 1_990
    assert listed["total"] == 2_000


def test_names_of_a_group_are_shown_without_hidden_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"a\u202e{at}" for at in range(3)]
    schema = pa.schema([(name, pa.int8()) for name in names])
    listed = listed_columns(schema, names)
    assert "\u202e" not in listed["groups"][0] + listed["columns"][0]["name"]
    assert listed["columns"][0]["raw"] == names[0]
    monkeypatch.setattr(column_choice, "MAX_LISTED", 2)
    listed = listed_columns(schema, names)
    assert (len(listed["columns"]), listed["total"]) == (2, 3)


def test_long_names_are_grouped_in_bounded_time() -> None:
    started = time.process_time()
    assert column_groups(["_" * 50_000 + "x"] * 3) == ["_" * 50_000] * 3
    assert column_groups(["1" * 50_000] * 3) == [None] * 3
    assert time.process_time() - started < 2


def test_a_choice_is_bounded() -> None:
    assert column_choice_of({}) is None
    with pytest.raises(InvalidInputError, match="may name at most"):
        column_choice_of({"choice": {"hidden": ["x" * 150_001]}})
    with pytest.raises(InvalidInputError, match="may name at most"):
        column_choice_of({"choice": {"hidden": ["x"] * 20_001}})
    with pytest.raises(InvalidInputError, match="list of names"):
        column_choice_of({"choice": {"hidden": "x"}})
