"""Commits with schemas that a caller put together: Project, Merge and Overwrite x odd schema.

pylance is the judge, as for odd fragments.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.schema import LanceSchema

import lance_nb
from lance_nb.format.field import Field
from lance_nb.format.schema import Schema
from tests.interop.hand_commits import judge, outcome

pytestmark = pytest.mark.interop

ROWS = pa.table(
    {
        "a": pa.array([0, 1, None, 3, 4, 5], pa.int64()),
        "b": [str(i) for i in range(6)],
        "s": pa.array([{"x": i, "y": float(i)} if i != 4 else None for i in range(6)]),
    }
)
A, B, S = Schema.from_arrow(ROWS.schema).fields
X, Y = S.children


def new(name: str, logical_type: str, field_id: int = 50, *children: Field, **of: Any) -> Field:
    return Field(field_id, of.pop("parent_id", -1), name, logical_type, children=children, **of)


def with_children(*children: Field) -> tuple[Field, ...]:
    return A, B, replace(S, children=children)


SCHEMAS: dict[str, tuple[Field, ...]] = {
    "as it is": (A, B, S),
    "reordered": (S, B, A),
    "dropped": (B, S),
    "field dropped": with_children(Y),
    "fields reordered": with_children(Y, X),
    "renamed": (replace(A, name="z"), B, S),
    "swapped names": (replace(A, name="b"), replace(B, name="a"), S),
    "int32": (replace(A, logical_type="int32"), B, S),
    "double": (replace(A, logical_type="double"), B, S),
    "string of int": (replace(A, logical_type="string"), B, S),
    "int of string": (A, replace(B, logical_type="int64"), S),
    "large_string": (A, replace(B, logical_type="large_string"), S),
    "binary": (A, replace(B, logical_type="binary"), S),
    "unknown type": (replace(A, logical_type="nothing"), B, S),
    "name twice": (A, replace(B, name="a"), S),
    "id twice": (A, replace(B, id=A.id), S),
    "field twice": (A, B, S, A),
    "name of a child twice": with_children(X, replace(Y, name="x")),
    "id of a child twice": with_children(replace(X, id=A.id), Y),
    **{f"id {number}": (replace(A, id=number), B, S) for number in (-1, -2, -5, 50)},
    "new": (A, B, S, new("n", "int32")),
    "new and required": (A, B, S, new("n", "int32", nullable=False)),
    "new struct": (A, B, S, new("n", "struct", 50, new("q", "int32", 51, parent_id=50))),
    "new list": (A, B, S, new("n", "list", 50, new("item", "int32", 51, parent_id=50))),
    "new child": with_children(X, Y, new("n", "int32", parent_id=S.id)),
    "new only": (new("n", "int32"),),
    "largest id": (A, B, S, new("n", "int32", 2**31 - 1)),
    "required and null": (replace(A, nullable=False), B, S),
    "required and never null": (A, replace(B, nullable=False), S),
    "child required": with_children(replace(X, nullable=False), Y),
    "no column": (),
    "no name": (replace(A, name=""), B, S),
    "name with a dot": (replace(A, name="a.b"), B, S),
    "name of a row column": (replace(A, name="_rowid"), B, S),
    "struct without children": with_children(),
    "leaf with a child": (
        replace(A, children=(replace(X, parent_id=A.id),)), B, replace(S, children=(Y,)),
    ),
    "list of a struct": (A, B, replace(S, logical_type="list.struct")),
    "child at the top": (A, B, replace(S, children=(Y,)), replace(X, parent_id=-1)),
}  # fmt: skip

WRONG_THERE = {
    "int32": "64-bit values are read as 32-bit values: 0, 0, 3 for 0, 1, 3",
    "double": "the bytes of an integer are read as a double",
    "child at the top": "right there; we do not read a column at another depth than it was written",
}


def schema_of(module: Any, fields: tuple[Field, ...]) -> Any:
    schema = Schema(fields)
    if module is lance_nb:
        return lance_nb.LanceSchema(schema)
    return LanceSchema._from_protos("{}", *[field.SerializeToString() for field in schema.to_pb()])


def commit(module: Any, name: str, uri: str, fields: tuple[Field, ...]) -> None:
    operations, schema = module.LanceOperation, schema_of(module, fields)
    fragments = [
        module.FragmentMetadata.from_json(json.dumps(fragment.metadata.to_json()))
        for fragment in lance.dataset(uri).get_fragments()
    ]
    change = {
        "project": lambda: operations.Project(schema),
        "merge": lambda: operations.Merge(fragments, schema),
        "overwrite": lambda: operations.Overwrite(schema, fragments),
    }[name]()
    module.LanceDataset.commit(uri, change, read_version=2)


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_odd_schemas_are_committed_as_by_pylance_or_refused(
    tmp_path: Path, stable_row_ids: bool
) -> None:
    source = tmp_path / "source"
    dataset = lance.write_dataset(
        ROWS, str(source), max_rows_per_file=3, enable_stable_row_ids=stable_row_ids
    )
    dataset.create_scalar_index("a", "BTREE")
    failures = []
    for name, oddity in product(("project", "merge", "overwrite"), SCHEMAS):
        outcomes = []
        for module in (lance_nb, lance):
            uri = str(tmp_path / f"{name} {oddity} {module.__name__}")
            shutil.copytree(source, uri)
            fields = SCHEMAS[oddity]
            outcomes.append(outcome(lambda: commit(module, name, uri, fields), uri))  # noqa: B023
        problem = judge(*outcomes, is_wrong_there=oddity in WRONG_THERE)
        if problem is not None:
            failures.append(f"{name} | {oddity}: {problem}")
    assert not failures, "\n".join(failures)
