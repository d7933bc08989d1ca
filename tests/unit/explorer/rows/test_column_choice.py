from __future__ import annotations

import time

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.rows import column_choice
from lance_nb.explorer.rows.column_choice import (
    STORED,
    USUAL_COLUMNS,
    ColumnChoice,
    column_choice_of,
    column_groups,
    listed_columns,
)


def test_pinned_columns_come_first_and_hidden_ones_not_at_all() -> None:
    known = ["a", "b", "c", "d"]
    schema = pa.schema([(name, pa.int8()) for name in known])

    def names(choice: ColumnChoice, *more: str) -> list[str]:
        return choice.names([*known, *more], schema)

    assert names(ColumnChoice(("c", "gone", "a"), None, frozenset("b"))) == ["c", "a", "d"]
    assert names(ColumnChoice(("c",), frozenset(("d", "gone")))) == ["c", "d"]
    assert names(ColumnChoice(hidden=frozenset("c")), "new") == ["a", "b", "d", "new"]
    assert names(ColumnChoice(shown=frozenset("c")), "new") == ["c"]


VECTOR = pa.list_(pa.float32(), 8)
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
MIXED = pa.schema([
    ("created", pa.timestamp("us")),
    ("embedding", VECTOR),
    ("meta", pa.struct([("a", pa.int8())])),
    ("score", pa.float64()),
    ("bestLabel", pa.dictionary(pa.int32(), pa.string())),
    ("raw", pa.binary()),
    ("caption", pa.string()),
    ("image_path", pa.string()),
    ("caption_length", pa.int32()),
    ("sample_id", pa.int64()),
    ("id", pa.int64()),
    ("thumbPNG", pa.large_binary()),
    ("text_embedding", VECTOR),
    pa.field("clip", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
])  # fmt: skip


def test_columns_stand_as_a_person_looks_for_them() -> None:
    usual = ColumnChoice()
    assert usual.pinned_of(MIXED.names, MIXED) == ["id"]
    assert usual.names(MIXED.names, MIXED) == [
        "id", "thumbPNG", "clip", "caption", "bestLabel", "score", "embedding", "text_embedding",
        "created", "raw", "image_path", "caption_length", "sample_id", "meta",
    ]  # fmt: skip
    assert ColumnChoice((), order=STORED).names(MIXED.names, MIXED) == MIXED.names
    own = ColumnChoice((), order=("meta", "gone", "score"))
    assert own.names(["id", "score", "meta", "_rowid"], MIXED) == ["meta", "score", "id", "_rowid"]
    hidden = ColumnChoice(hidden=frozenset(("id",)))
    assert (hidden.pinned_of(MIXED.names, MIXED), "id" in hidden.names(MIXED.names, MIXED)) == (
        [],
        False,
    )


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ([("photoId", pa.int64()), ("x", pa.int8())], ["photoId"]),
        ([("x", pa.int8()), ("photo_id", pa.int64())], []),  # no first column, no key by itself
        ([("id", pa.float64()), ("uuid", pa.binary(16))], ["uuid"]),
        ([("valid", pa.int8())], []),
        ([pa.field("a", pa.int8(), metadata=PRIMARY_KEY), ("id", pa.int8())], ["a"]),
        ([("id", pa.int8()), ("key", pa.int8())], ["id"]),
    ],
)
def test_the_key_is_told_by_the_schema_or_a_name(fields: list[pa.Field], keys: list[str]) -> None:
    schema = pa.schema(fields)
    assert ColumnChoice().pinned_of(schema.names, schema) == keys


def test_two_thousand_columns_are_ordered_at_once() -> None:
    names = [f"feature_{number}" for number in range(2_000)] + ["image"]
    schema = pa.schema([(name, pa.binary()) for name in names])
    started = time.process_time()
    assert ColumnChoice().names(names, schema)[:2] == ["image", "feature_0"]
    assert time.process_time() - started < 1


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
    assert column_choice_of({}) == USUAL_COLUMNS == column_choice_of({"choice": {}})
    own = column_choice_of({"choice": {"order": ["b", "a", "b"], "pinned": []}})
    assert own == ColumnChoice((), order=("b", "a"))
    with pytest.raises(InvalidInputError, match="order must be"):
        column_choice_of({"choice": {"order": "odd"}})
    with pytest.raises(InvalidInputError, match="may name at most"):
        column_choice_of({"choice": {"order": ["x"] * 20_001}})
    with pytest.raises(InvalidInputError, match="may name at most"):
        column_choice_of({"choice": {"hidden": ["x" * 150_001]}})
    with pytest.raises(InvalidInputError, match="may name at most"):
        column_choice_of({"choice": {"hidden": ["x"] * 20_001}})
    with pytest.raises(InvalidInputError, match="list of names"):
        column_choice_of({"choice": {"hidden": "x"}})
