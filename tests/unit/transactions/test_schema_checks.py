"""Schemas of operations that a caller put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import LanceOperation, LanceSchema
from lance_nb.errors import InvalidInputError
from lance_nb.format.field import Field
from lance_nb.format.schema import Schema

ROWS = pa.table({"a": pa.array([0, None], pa.int64()), "b": ["x", "y"], "s": [{"x": 1}, {"x": 2}]})
A, B, S = Schema.from_arrow(ROWS.schema).fields
NEW = Field(50, -1, "n", "int32")


@pytest.fixture
def dataset(tmp_path: Path) -> lance_nb.LanceDataset:
    return lance_nb.write_dataset(ROWS, tmp_path / "t.lance")


def project(dataset: lance_nb.LanceDataset, *fields: Field) -> lance_nb.LanceDataset:
    change = LanceOperation.Project(LanceSchema(Schema(fields)))
    return lance_nb.LanceDataset.commit(dataset.uri, change, read_version=1)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ((A, replace(B, id=0), S), "2 fields of the schema have the id 0"),
        ((A, replace(B, name="a"), S), "2 fields beside each other are named 'a'"),
        ((replace(A, id=-1), B, S), "field 'a' has the id -1"),
        ((A, B, replace(S, children=()), replace(S.children[0])), "names 2 as its parent, not -1"),
        ((replace(A, logical_type="nothing"), B, S), "logical type 'nothing' is not known"),
        ((replace(A, logical_type="int32"), B, S), r"field 0 \('a'\) changes from int64 to int32"),
        ((A, B, replace(S.children[0], parent_id=-1)), r"field 3 \('x'\) moves from 2 to -1"),
        ((replace(A, name="_rowid"), B, S), "reserved"),
        ((replace(A, nullable=False), B, S), "column 'a' has nulls"),
        ((A, B, S, replace(NEW, nullable=False)), "column 'n' has nulls"),
    ],
)
def test_schemas_by_which_rows_could_not_be_read_are_refused(
    dataset: lance_nb.LanceDataset, fields: tuple[Field, ...], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        project(dataset, *fields)
    assert lance_nb.dataset(dataset.uri).to_table() == ROWS


@pytest.mark.parametrize(
    "fields",
    [
        (S, B),
        (replace(A, name="b"), replace(B, name="a"), S),
        (A, replace(B, nullable=False), S),
        (A, B, S, NEW),
        (A, replace(B, logical_type="binary"), S),
    ],
)
def test_schemas_by_which_they_can_are_committed(
    dataset: lance_nb.LanceDataset, fields: tuple[Field, ...]
) -> None:
    project(dataset, *fields).validate()


def test_lists_of_values_and_of_structs_are_named_alike(tmp_path: Path) -> None:
    rows = pa.table({"l": [[1], [2, 3]]})
    dataset = lance_nb.write_dataset(rows, tmp_path / "l.lance")
    (field,) = dataset.lance_schema.tree.fields
    assert field.logical_type == "list"
    project(dataset, replace(field, logical_type="list.struct")).validate()
    assert lance_nb.dataset(dataset.uri).to_table() == rows


def test_the_description_of_a_blob_needs_no_ids(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), lance_nb.blob_field("b")])
    rows = pa.table([pa.array([1]), lance_nb.blob_array([b"x"])], schema=schema)
    dataset = lance_nb.write_dataset(rows, tmp_path / "b.lance")
    a, blob = dataset.lance_schema.tree.fields
    children = tuple(replace(child, id=-1, parent_id=-1) for child in blob.children)
    project(dataset, replace(blob, children=children), a)
