from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, PredicateError
from lance_nb.format.schema import Schema
from lance_nb.table.computed_columns import shape_of

POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])
SCHEMA = Schema.from_arrow(
    pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string()), ("p", POINT)])
)
SCORE = pa.field("_distance", pa.float32())


def test_names_and_none_are_stored_columns():
    assert shape_of(SCHEMA, None).names == ("id", "s", "p")
    assert shape_of(SCHEMA, ["s", "p.x"], ["_rowid"]).names == ("s", "p.x", "_rowid")
    assert shape_of(SCHEMA, ["s"]).computed is None


def test_expressions_read_what_they_need_and_no_more():
    shape = shape_of(SCHEMA, {"a": "p.x + 1", "b": "upper(s)"}, ["_rowid"])

    assert shape.names == ("a", "b", "_rowid")
    assert [column.field.name for column in shape.source.columns] == ["p", "s"]
    assert shape.schema.types == [pa.int32(), pa.string(), pa.uint64()]
    assert not shape_of(SCHEMA, {"a": "id"}).schema.field("a").nullable


def test_a_result_is_computed_from_what_was_read():
    shape = shape_of(SCHEMA, {"a": "p.x + 1", "s": "s || s", "one": "1"})
    read = pa.table({"`p`.`x`": pa.array([1, None], pa.int32()), "s": ["u", None]})

    found = shape.table(read.select(shape.source.schema.names))

    assert found.to_pylist() == [{"a": 2, "s": "uu", "one": 1}, {"a": None, "s": None, "one": 1}]


def test_scores_come_last_unless_they_are_named_or_not_wanted():
    assert shape_of(SCHEMA, ["s"], ["_rowid"], [SCORE]).names == ("s", "_distance", "_rowid")
    assert shape_of(SCHEMA, ["_distance", "s"], (), [SCORE]).names == ("_distance", "s")
    assert shape_of(SCHEMA, ["s"], (), [SCORE], add_extras=False).names == ("s",)
    assert shape_of(SCHEMA, {"d": "_distance * 2"}, (), [SCORE]).names == ("d", "_distance")


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["nope"], ColumnNotFoundError),
        ({"a": "nope"}, PredicateError),
        ({"a": "id +"}, PredicateError),
        ({"a": 1}, InvalidInputError),
        ({1: "id"}, InvalidInputError),
        (["s", "s"], InvalidInputError),
    ],
)
def test_bad_columns_are_refused(columns, error):
    with pytest.raises(error):
        shape_of(SCHEMA, columns)


def test_an_error_of_a_row_names_the_column():
    shape = shape_of(SCHEMA, {"a": "id / 0"})

    with pytest.raises(PredicateError, match=r"column 'a' = 'id / 0': divide by zero"):
        shape.table(pa.table({"id": [1]}))
