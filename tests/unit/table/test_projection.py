from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.format.schema import Schema
from lance_nb.table.projection import (
    ROW_ADDRESS,
    ROW_ID,
    ROW_OFFSET,
    project,
    project_nested,
    remembered,
)
from lance_nb.table.scan import scan_table
from lance_nb.table.scan_tasks import plan_tasks
from lance_nb.table.take import take_rows
from tests.golden.copies import expected

POINT = pa.struct([("x", pa.float32()), ("tags", pa.list_(pa.string()))])
SCHEMA = Schema.from_arrow(
    pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("point", POINT),
            pa.field("steps", pa.list_(POINT)),
            pa.field("deep", pa.struct([("a", pa.struct([("b.c", pa.int8())]))])),
        ],
        metadata={"key": "value"},
    )
)


def names(columns, row_columns=()):
    return project(SCHEMA, columns, row_columns).schema.names


def rows_of(snapshot, columns):
    return scan_table(snapshot, project(snapshot.manifest.schema, columns), plan_tasks(snapshot))


def test_no_choice_means_every_stored_column_in_order():
    assert names(None) == ["id", "point", "steps", "deep"]
    assert project(SCHEMA, None).schema.metadata == {b"key": b"value"}


def test_columns_come_in_the_order_asked_for():
    assert names(["steps", "id"]) == ["steps", "id"]
    assert names([]) == []
    assert names("id") == ["id"]
    assert names(("id", "point")) == ["id", "point"]


def test_a_nested_field_becomes_a_column_of_its_dotted_name():
    found = project(SCHEMA, ["point.x", "id", "deep.a.`b.c`"]).schema
    assert found.names == ["point.x", "id", "deep.a.`b.c`"]
    assert [field.type for field in found] == [pa.float32(), pa.int32(), pa.int8()]
    assert found.field("point.x").nullable


def test_only_the_wanted_children_of_a_struct_are_read():
    wanted = project(SCHEMA, ["point.tags"])
    assert [child.name for child in wanted.columns[0].field.children] == ["tags"]


def test_a_struct_beside_a_part_of_it_is_read_once():
    wanted = project(SCHEMA, ["point", "point.x"])
    assert len(wanted.columns) == 1
    assert wanted.schema.names == ["point", "point.x"]


def test_nested_values_are_pulled_up_and_null_where_the_struct_is(at):
    points = expected("history", 2)["point"].to_pylist()
    found = rows_of(at(2), ["point.x", "id", "point.tags", "point"])
    assert found["point.x"].to_pylist() == [one and one["x"] for one in points]
    assert found["point.tags"].to_pylist() == [one and one["tags"] for one in points]
    assert found["point"].to_pylist() == points


def test_take_leaves_nested_values_inside_their_struct(at):
    snapshot = at(2)
    wanted = project_nested(snapshot.manifest.schema, ["id", "point.x"])
    found = take_rows(snapshot, wanted, [0, 2])
    assert found.to_pylist() == [{"id": 0, "point": {"x": 0.0}}, {"id": 2, "point": None}]


def test_a_nested_projection_keeps_the_order_of_its_tops():
    found = project_nested(
        SCHEMA, ["steps", "point.tags", "_rowid", "id", "point.x"], [ROW_ADDRESS]
    )
    assert found.schema.names == ["steps", "point", "_rowid", "id", "_rowaddr"]
    assert found.schema.field("point").type == POINT


@pytest.mark.parametrize(
    "name", ["nope", "point.nope", "nope.x", "id.x", "", "point.", "point..x", "`id", "id`"]
)
def test_an_unknown_column_is_refused_with_those_that_exist(name):
    for make in (project, project_nested):
        with pytest.raises((ColumnNotFoundError, InvalidInputError)) as caught:
            make(SCHEMA, ["id", name])
        if isinstance(caught.value, ColumnNotFoundError):
            assert caught.value.column == name
            assert str(caught.value).endswith("columns: 'id', 'point', 'steps', 'deep'")


def test_the_names_of_many_columns_are_cut_short():
    wide = Schema.from_arrow(pa.schema([(f"c{number}", pa.int8()) for number in range(300)]))
    with pytest.raises(ColumnNotFoundError, match="'c19' and 280 more"):
        project(wide, ["d"])


def test_a_column_that_is_asked_for_twice_is_refused():
    with pytest.raises(InvalidInputError, match="'id' is asked for twice"):
        project(SCHEMA, ["id", "point", "id"])


def test_fields_of_list_items_cannot_be_pulled_up():
    with pytest.raises(InvalidInputError):
        project(SCHEMA, ["steps.item.x"])


def test_expressions_and_other_things_are_refused():
    with pytest.raises(NotSupportedError, match="dict of SQL"):
        project(SCHEMA, {"a": "id + 1"})
    with pytest.raises(InvalidInputError, match="text, not int"):
        project(SCHEMA, [0])


def test_names_match_without_regard_to_case_when_only_one_fits():
    assert len(project(SCHEMA, ["POINT.X"]).columns) == 1
    assert project(SCHEMA, ["Id"]).columns[0].field.name == "id"


@pytest.mark.parametrize(
    ("columns", "row_columns", "found"),
    [
        (None, [ROW_ID], ["id", "point", "steps", "deep", "_rowid"]),
        (["_rowid", "id"], [], ["_rowid", "id"]),
        (["_rowid", "id"], [ROW_ID], ["id", "_rowid"]),
        (["_rowaddr", "_rowoffset"], [], ["_rowaddr", "_rowoffset"]),
        ([], [ROW_ID, ROW_ADDRESS], ["_rowid", "_rowaddr"]),
    ],
)
def test_row_columns_are_added_or_named(columns, row_columns, found):
    made = project(SCHEMA, columns, row_columns)
    assert made.schema.names == found
    assert made.row_columns == {name for name in found if name in (ROW_ID, ROW_ADDRESS, ROW_OFFSET)}


def test_what_was_made_for_the_same_columns_is_remembered():
    known, made = {}, []

    def make():
        made.append(1)
        return object()

    first = remembered(known, ["a"], (False,), make)
    assert remembered(known, ("a",), (False,), make) is first
    assert remembered(known, ["a"], (True,), make) is not first
    assert remembered(known, None, (False,), make) is remembered(known, None, (False,), make)
    for odd in ("a", [["a"]], [1]):
        assert remembered(known, odd, (False,), make) is not remembered(known, odd, (False,), make)
    assert remembered(known, ["a"], (False,), make) is first
    for number in range(200):
        found = remembered(known, [str(number)], (), make)
        assert remembered(known, [str(number // 64 * 64)], (), make) is not None
        assert remembered(known, [str(number)], (), make) is found
    assert len(known) <= 64
