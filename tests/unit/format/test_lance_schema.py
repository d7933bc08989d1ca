"""Schemas with field ids, as users hold them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import ArgumentError, InvalidInputError
from lance_nb.format.field import Field, Keys
from lance_nb.format.lance_schema import LanceField, LanceSchema
from lance_nb.format.schema import Schema

ARROW = pa.schema(
    [pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.struct([("x", pa.string())]))],
    {"k": "v"},
)


def test_an_arrow_schema_gets_field_ids_and_comes_back() -> None:
    made = LanceSchema.from_pyarrow(ARROW)

    assert made.names == ["a", "s"]
    assert [one.id for one in made.tree.walk()] == [0, 1, 2]
    assert made.to_pyarrow().equals(ARROW, check_metadata=True)


def test_any_kind_of_schema_is_taken() -> None:
    made = LanceSchema.from_pyarrow(ARROW)

    assert LanceSchema.of(made) is made
    assert LanceSchema.of(Schema.from_arrow(ARROW)) == LanceSchema.of(ARROW) == made


@pytest.mark.parametrize("other", [None, "a", pa.field("a", pa.int8()), {"a": pa.int8()}], ids=repr)
def test_what_is_no_schema_is_refused(other: Any) -> None:
    for take in (LanceSchema.from_pyarrow, LanceSchema.of):
        with pytest.raises(ArgumentError, match=r"pyarrow\.Schema, not"):
            take(other)


KEYS = LanceSchema(
    Schema(
        (
            Field(3, -1, "a", "int64", nullable=False, keys=Keys(True, 2, True, 1)),
            Field(
                5, -1, "s", "struct",
                children=(
                    Field(7, 5, "x", "int8", keys=Keys(True, 1)),
                    Field(8, 5, "b.c", "int8", keys=Keys(clustering=True, clustering_position=2)),
                ),
                metadata={"unit": b"m\xff"},
            ),
            Field(9, -1, "l", "list", children=(Field(10, 9, "item", "string"),)),
        ),
        {"k": b"v"},
    )
)  # fmt: skip


def test_a_field_says_what_it_is() -> None:
    number, struct, lists = KEYS.fields()
    assert [(one.name(), one.id()) for one in (number, struct, lists)] == [
        ("a", 3), ("s", 5), ("l", 9),
    ]  # fmt: skip
    assert [(one.name(), one.id()) for one in struct.children()] == [("x", 7), ("b.c", 8)]
    assert number.children() == []
    assert struct.metadata == {"unit": "m\ufffd"}
    assert number.to_arrow() == pa.field("a", pa.int64(), nullable=False)
    assert lists.to_arrow().type.value_type == pa.string()


def test_keys_and_their_places() -> None:
    number, struct, _ = KEYS.fields()
    assert number.is_unenforced_primary_key()
    assert number.is_unenforced_clustering_key()
    assert number.unenforced_primary_key_position() == 2
    assert number.unenforced_clustering_key_position() == 1
    assert not struct.is_unenforced_primary_key()
    assert not struct.is_unenforced_clustering_key()
    assert struct.unenforced_primary_key_position() is None
    assert struct.unenforced_clustering_key_position() is None
    assert [one.name() for one in KEYS.unenforced_primary_key()] == ["x", "a"]
    assert [one.name() for one in KEYS.unenforced_clustering_key()] == ["a", "b.c"]


@pytest.mark.parametrize(
    ("path", "found"),
    [("a", 3), ("s.x", 7), ("s.`b.c`", 8), ("l.item", 10), ("A", None), ("s.b.c", None),
     ("x", None), ("a.x", None), ("s.x.y", None), ("", None), ("`a", None)],
)  # fmt: skip
def test_a_field_is_found_by_its_path(path: str, found: int | None) -> None:
    field = KEYS.field(path)
    assert (None if field is None else field.id()) == found


@pytest.mark.parametrize(
    ("path", "found"), [("a", 3), ("A", 3), ("S.X", 7), ("nope", None), ("`a", None), ("", None)]
)
def test_a_field_is_found_in_another_case(path: str, found: int | None) -> None:
    field = KEYS.field_case_insensitive(path)
    assert (None if field is None else field.id()) == found


def test_two_names_that_differ_in_case_only_are_ambiguous() -> None:
    schema = LanceSchema.from_pyarrow(pa.schema([("Ab", pa.int8()), ("aB", pa.int8())]))
    assert schema.field_case_insensitive("aB") == LanceField(schema.tree.fields[1])
    with pytest.raises(InvalidInputError):
        schema.field_case_insensitive("ab")


def test_what_is_shown_names_ids_and_types() -> None:
    shown = repr(KEYS)
    assert shown.startswith(
        "LanceSchema(fields=[LanceField(name='a', id=3, logical_type='int64', nullable=False), "
        "LanceField(name='s', id=5, logical_type='struct', children=["
    )
    assert shown.endswith("metadata={'k': b'v'})")
    plain = LanceSchema.from_pyarrow(pa.schema([("a", pa.int8())]))
    assert repr(plain) == ("LanceSchema(fields=[LanceField(name='a', id=0, logical_type='int8')])")


def test_metadata_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="not UTF-8 text"):
        LanceSchema.from_pyarrow(pa.schema([("a", pa.int8())], {"k": b"\xff"}))
