"""Schemas of data against the dataset's: what pylance accepts and refuses."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import SchemaMismatchError
from lance_nb.format.schema import Schema
from lance_nb.transactions.input_schema import writable_part

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
