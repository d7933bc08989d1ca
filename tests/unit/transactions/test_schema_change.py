"""Schemas with fields dropped, renamed, retyped or added: from a schema to a schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, SchemaMismatchError
from lance_nb.format.field import Field
from lance_nb.format.schema import Schema
from lance_nb.transactions.schema_change import (
    Alteration,
    altered,
    can_become,
    extended,
    new_schema,
    preserves_nullability,
    without_fields,
    writable_part,
)

SCHEMA = Schema.from_arrow(
    pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False, metadata={"unit": "m"}),
            ("s", pa.struct([("x", pa.int64()), ("t", pa.struct([("y", pa.string())]))])),
            ("l", pa.list_(pa.struct([("z", pa.int8())]))),
        ],
        {"k": "v"},
    )
)  # ids: a 0, s 1, s.x 2, s.t 3, s.t.y 4, l 5, its item 6, z 7


def shape(fields: tuple[Field, ...]) -> list[Any]:
    """Return names and ids, nested."""
    return [(one.name, one.id, one.parent_id, shape(one.children)) for one in fields]


def ids(schema: Schema) -> dict[str, int]:
    return {one.name: one.id for one in schema.walk()}


def changed(*given: dict[str, Any], schema: Schema = SCHEMA) -> Schema:
    return altered(schema, [Alteration.of(one) for one in given], 20)


# --- dropping -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["a"], {"s", "x", "t", "y", "l", "item", "z"}),
        (["s.x"], {"a", "s", "t", "y", "l", "item", "z"}),
        (["s.t.y"], {"a", "s", "x", "l", "item", "z"}),
        (["s.t"], {"a", "s", "x", "l", "item", "z"}),
        (["s.t.y", "s.x"], {"a", "l", "item", "z"}),
        (["s", "l"], {"a"}),
        ([], {"a", "s", "x", "t", "y", "l", "item", "z"}),
    ],
)
def test_what_is_left_keeps_its_ids(paths: list[str], left: set[str]) -> None:
    made = without_fields(SCHEMA, paths)
    assert ids(made) == {name: number for name, number in ids(SCHEMA).items() if name in left}
    assert made.metadata == SCHEMA.metadata


def test_one_column_stays_and_unknown_ones_are_named() -> None:
    with pytest.raises(InvalidInputError, match="at least one"):
        without_fields(SCHEMA, ["a", "s", "l"])
    with pytest.raises(ColumnNotFoundError, match="nope"):
        without_fields(SCHEMA, ["nope"])


# --- adding ---------------------------------------------------------------------------------------


def test_new_columns_are_numbered_depth_first_behind_the_others() -> None:
    added = Schema.from_arrow(pa.schema([("n", pa.struct([("p", pa.int8())])), ("m", pa.int8())]))
    after, part = extended(SCHEMA, added, 20)
    expected = [("n", 20, -1, [("p", 21, 20, [])]), ("m", 22, -1, [])]
    assert shape(part.fields) == expected
    assert shape(after.fields) == shape(SCHEMA.fields) + expected
    assert after.metadata == part.metadata == SCHEMA.metadata


def test_structs_that_are_there_grow() -> None:
    wanted = pa.schema(
        [
            ("s", pa.struct([("q", pa.int8()), ("t", pa.struct([("_rowid", pa.int8())]))])),
            ("l", pa.list_(pa.struct([("w", pa.int8())]))),
        ]
    )
    after, part = extended(SCHEMA, Schema.from_arrow(wanted), 20)
    assert shape(part.fields) == [
        ("s", 1, -1, [("q", 20, 1, []), ("t", 3, 1, [("_rowid", 21, 3, [])])]),
        ("l", 5, -1, [("item", 6, 5, [("w", 22, 6, [])])]),
    ]
    assert shape(after.fields) == [
        ("a", 0, -1, []),
        ("s", 1, -1, [
            ("x", 2, 1, []), ("t", 3, 1, [("y", 4, 3, []), ("_rowid", 21, 3, [])]),
            ("q", 20, 1, []),
        ]),
        ("l", 5, -1, [("item", 6, 5, [("z", 7, 6, []), ("w", 22, 6, [])])]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "field",
    [
        pa.field("a", pa.int32()),
        pa.field("a", pa.struct([("x", pa.int8())])),
        pa.field("s", pa.int8()),
        pa.field("s", pa.struct([("x", pa.int8())])),
        pa.field("s", pa.list_(pa.struct([("x", pa.int8())]))),
    ],
    ids=str,
)
def test_a_field_that_is_there_is_not_added(field: pa.Field) -> None:
    with pytest.raises(SchemaMismatchError, match="already exists"):
        extended(SCHEMA, Schema.from_arrow(pa.schema([field])), 20)


@pytest.mark.parametrize("name", ["_rowid", "_rowaddr", "_row_created_at_version"])
def test_names_that_scans_compute_are_refused_at_the_top(name: str) -> None:
    added = Schema.from_arrow(pa.schema([(name, pa.int8())]))
    with pytest.raises(InvalidInputError, match="is reserved"):
        extended(SCHEMA, added, 20)
    with pytest.raises(InvalidInputError, match="is reserved"):
        changed({"path": "a", "name": name})
    assert ids(changed({"path": "s.x", "name": name}))[name] == 2


# --- altering -------------------------------------------------------------------------------------


def test_a_renamed_field_keeps_its_id_and_its_marks() -> None:
    made = changed({"path": "a", "name": "b"}, {"path": "s.t.y", "name": "w.v"})
    assert shape(made.fields)[0] == ("b", 0, -1, [])
    assert made.field("b").metadata == {"unit": b"m"}
    assert not made.field("b").nullable
    assert ids(made)["w.v"] == 4
    assert made.metadata == SCHEMA.metadata


def test_nullability_changes_alone() -> None:
    made = changed({"path": "a", "nullable": True}, {"path": "s.x", "nullable": False})
    assert [made.field(name).nullable for name in ("a", "s.x", "s")] == [True, False, True]
    assert ids(made) == ids(SCHEMA)


def test_another_type_makes_another_field() -> None:
    made = changed(
        {"path": "a", "data_type": pa.int64(), "name": "b"},
        {"path": "s.x", "data_type": pa.int8()},
        {"path": "l", "nullable": False},
    )
    assert ids(made) == {"b": 20, "s": 1, "x": 21, "t": 3, "y": 4, "l": 5, "item": 6, "z": 7}
    assert made.field("b").logical_type == "int64"
    assert (made.field("b").metadata, made.field("b").nullable) == ({"unit": b"m"}, False)
    assert (made.field("s.x").parent_id, made.field("s.x").logical_type) == (1, "int8")


def test_a_list_of_another_type_is_numbered_with_its_items() -> None:
    schema = Schema.from_arrow(pa.schema([("l", pa.list_(pa.int8())), ("n", pa.int8())]))
    made = changed(
        {"path": "l", "data_type": pa.large_list(pa.int16())},
        {"path": "n", "data_type": pa.int16()},
        schema=schema,
    )
    assert shape(made.fields) == [("l", 20, -1, [("item", 21, 20, [])]), ("n", 22, -1, [])]


def test_the_type_it_has_already_changes_nothing() -> None:
    assert changed({"path": "a", "data_type": pa.int32()}) == SCHEMA


def test_a_marked_binary_column_becomes_a_plain_one_of_the_same_type() -> None:
    marks = {"lance-encoding:blob": "true", "lance-encoding:blob-x": "1", "k": "v"}
    field = pa.field("b", pa.large_binary(), metadata=marks)
    made = changed(
        {"path": "b", "data_type": pa.large_binary()},
        schema=Schema.from_arrow(pa.schema([field])),
    )
    assert shape(made.fields) == [("b", 20, -1, [])]
    assert made.field("b").metadata == {"k": b"v"}


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"path": "nope", "name": "b"}, ColumnNotFoundError, "nope"),
        ({"path": "a", "name": "s"}, SchemaMismatchError, "named 's' already"),
        ({"path": "s.x", "name": "t"}, SchemaMismatchError, "named 't' already"),
        ({"path": "a", "name": "b.c"}, SchemaMismatchError, r"cannot contain '\.'"),
        ({"path": "a", "name": ""}, InvalidInputError, "is a text, not ''"),
        ({"path": "a", "name": 3}, InvalidInputError, "is a text, not 3"),
        ({"path": "a", "data_type": pa.string()}, SchemaMismatchError, "cannot become string"),
    ],
)
def test_alterations_that_cannot_be_are_refused(given: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        changed(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "an alteration is a dict"),
        ({"name": "b"}, "an alteration is a dict"),
        ({"path": "a", "type": pa.int8()}, "an alteration is a dict"),
        ({"path": "a"}, "At least one of"),
        ({"path": "a", "name": None, "nullable": None, "data_type": None}, "At least one of"),
    ],
)
def test_what_is_no_alteration_is_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        Alteration.of(given)


FAMILIES = [
    (pa.int8(), pa.uint64()), (pa.float16(), pa.float64()),
    (pa.decimal128(5, 2), pa.decimal256(9, 2)), (pa.timestamp("s"), pa.timestamp("ns", "UTC")),
    (pa.date32(), pa.date64()), (pa.time32("s"), pa.time64("ns")),
    (pa.duration("s"), pa.duration("ns")), (pa.string(), pa.large_string()),
    (pa.binary(), pa.large_binary()),
]  # fmt: skip
BETWEEN_FAMILIES = [
    (pa.date32(), pa.timestamp("s")), (pa.date64(), pa.timestamp("s")),
    (pa.timestamp("s"), pa.date32()), (pa.timestamp("ns", "UTC"), pa.date32()),
]  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda one: one, pa.list_, pa.large_list,
                                  lambda one: pa.list_(one, 3)])  # fmt: skip
def test_a_type_changes_within_its_family_only(wrap: Any) -> None:
    kinds = [(number, one) for number, pair in enumerate(FAMILIES) for one in pair]
    for mine, found in kinds:
        for other, wanted in kinds:
            expected = mine == other or (found, wanted) in BETWEEN_FAMILIES
            assert can_become(wrap(found), wrap(wanted)) is expected, (found, wanted)


def test_other_types_stay_as_they_are() -> None:
    words = pa.dictionary(pa.int8(), pa.string())
    assert can_become(words, pa.large_string())
    assert not can_become(words, pa.int8())
    assert can_become(pa.bool_(), pa.bool_())
    assert not can_become(pa.bool_(), pa.int8())
    assert can_become(pa.list_(pa.int8()), pa.large_list(pa.int64()))
    assert not can_become(pa.list_(pa.int8(), 2), pa.list_(pa.int8(), 3))
    assert not can_become(pa.list_(pa.int8(), 2), pa.list_(pa.int8()))
    assert not can_become(pa.list_(pa.int8()), pa.int8())
    assert not can_become(pa.int8(), pa.list_(pa.int8()))


def strict(*names: str) -> Schema:
    """Return the schema with some fields that may not be null."""
    return changed(
        {"path": "a", "nullable": "a" not in names},
        {"path": "s.x", "nullable": "x" not in names},
    )


def test_rows_stay_right_unless_a_field_becomes_stricter() -> None:
    assert preserves_nullability(strict("a"), strict())
    assert preserves_nullability(strict("a"), strict("a"))
    assert not preserves_nullability(strict(), strict("a"))
    assert not preserves_nullability(strict(), strict("x"))
    assert preserves_nullability(strict(), without_fields(strict("a"), ["a"]))


@pytest.mark.parametrize(("nullable", "expected"), [(True, True), (False, False)])
def test_a_new_column_may_have_to_be_null(nullable: bool, expected: bool) -> None:
    """Below a new struct that may be null nothing has to be."""
    inner = pa.struct([pa.field("p", pa.int8(), nullable=False)])
    added = Schema.from_arrow(pa.schema([pa.field("n", inner, nullable)]))
    after, _ = extended(SCHEMA, added, 20)
    assert preserves_nullability(SCHEMA, after) is expected


BASE = Schema.from_arrow(
    pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("s", pa.string()),
            pa.field("p", pa.struct([("x", pa.int8()), pa.field("y", pa.int8(), nullable=False)])),
            pa.field("l", pa.list_(pa.int8())),
        ]
    )
)
POINT = pa.struct([("y", pa.int8()), ("x", pa.int8())])


def test_order_nullability_and_views_do_not_matter():
    found = pa.schema(
        [
            ("l", pa.list_(pa.field("item", pa.int8(), nullable=False))),
            ("p", POINT),
            ("s", pa.string_view()),
            ("id", pa.int64()),
        ]
    )
    assert writable_part(found, BASE).names == ["id", "s", "p", "l"]


def test_the_same_schemas_are_compared_once():
    found = pa.schema([("id", pa.int64())])
    part = writable_part(found, BASE)
    assert writable_part(pa.schema([("id", pa.int64())]), BASE) is part
    assert writable_part(pa.schema([("id", pa.int64())], {b"k": b"v"}), BASE) is not part
    other = Schema(BASE.fields, {})
    assert writable_part(found, other) is not part


@pytest.mark.parametrize("count", [19, 20, 21, 25])
def test_the_first_twenty_differences_are_listed(count: int):
    found = pa.schema([("id", pa.int64()), *((f"new{n}", pa.int8()) for n in range(count))])
    with pytest.raises(SchemaMismatchError) as caught:
        writable_part(found, BASE)
    text = str(caught.value)
    assert text.count("is not in the dataset") == min(count, 20)
    assert text.endswith(f" (and {count - 20} more)") == (count > 20)


def test_columns_that_may_be_null_may_be_missing():
    part = writable_part(pa.schema([("id", pa.int64())]), BASE)
    assert part.names == ["id"]
    assert part.fields[0].id == 0


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"s": pa.string()}, "'id' is missing"),
        ({"id": pa.int32()}, "'id' must have type int64, not int32"),
        ({"id": pa.int64(), "s": pa.large_string()}, "must have type string, not large_string"),
        ({"id": pa.int64(), "S": pa.string()}, "'S' is not in the dataset"),
        ({"id": pa.int64(), "p": pa.struct([("x", pa.int8())])}, r"'p\.y' is missing"),
        ({"id": pa.int64(), "l": pa.list_(pa.int16())}, r"'l\.item' must have type int8"),
        ({"id": pa.int64(), "l": pa.large_list(pa.int8())}, "must have type list, not large_list"),
        ({"id": pa.int64(), "s": pa.null()}, "must have type string, not null"),
    ],
)
def test_everything_else_is_refused_by_name(found: dict[str, pa.DataType], message: str):
    with pytest.raises(SchemaMismatchError, match=message):
        writable_part(pa.schema(found.items()), BASE)


def test_every_difference_is_listed():
    found = pa.schema([("id", pa.int32()), ("new", pa.int8())])
    with pytest.raises(SchemaMismatchError, match=r"'id'.*; column 'new'"):
        writable_part(found, BASE)


def test_data_of_a_new_schema_fills_it_without_a_comparison(monkeypatch):
    arrow = pa.schema([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    schema = new_schema(arrow, (2, 2))
    monkeypatch.setattr(Schema, "from_arrow", None)
    assert writable_part(arrow, schema) is schema
