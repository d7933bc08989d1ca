"""A commit of files that are not where the driver looks for them is refused, on every path."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_nb
from lance_nb import LanceOperation, LanceSchema, spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    LanceError,
    ObjectNotFoundError,
)
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.spark.engine import LocalEngine
from lance_nb.spark.plan import Plan
from lance_nb.storage.base import Listing
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions import file_presence
from lance_nb.transactions.file_presence import check_new_files

FOLDERS = ("data", "_deletions", "_indices")
Commit = Callable[[], LanceDataset]


def rows(start: int, stop: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(range(start, stop)), "name": [f"n{i}" for i in range(start, stop)]}
    )


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return lance_nb.write_dataset(rows(0, 100), tmp_path / "t.lance", max_rows_per_file=25)


def stored_files(dataset: LanceDataset) -> set[Path]:
    root = Path(dataset.uri)
    return {path for name in FOLDERS for path in (root / name).rglob("*") if path.is_file()}


def finished(plan: Plan) -> Commit:
    results = LocalEngine().run(plan.tasks, lambda _: None, lambda: False)
    return lambda: plan.commit(plan.finalized(results))


def by_hand(dataset: LanceDataset, operation: Any) -> Commit:
    return lambda: lance_nb.LanceDataset.commit(
        dataset.uri, operation, read_version=dataset.version
    )


def hand_append(dataset: LanceDataset) -> Commit:
    fragments = lance_nb.write_fragments(rows(100, 120), dataset.uri)
    return by_hand(dataset, LanceOperation.Append(fragments))


def hand_overwrite(dataset: LanceDataset) -> Commit:
    fragments = lance_nb.write_fragments(rows(100, 120), dataset.uri)
    return by_hand(dataset, LanceOperation.Overwrite(dataset.schema, fragments))


def hand_delete(dataset: LanceDataset) -> Commit:
    fragment = dataset.get_fragments()[1].delete("id = 30")
    return by_hand(dataset, LanceOperation.Delete([fragment], [], "id = 30"))


def hand_merge(dataset: LanceDataset) -> Commit:
    def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"twice": pc.multiply(batch["id"], 2)})

    pairs = [fragment.merge_columns(twice, ["id"]) for fragment in dataset.get_fragments()]
    return by_hand(dataset, LanceOperation.Merge([fragment for fragment, _ in pairs], pairs[0][1]))


def hand_compaction(dataset: LanceDataset) -> Commit:
    plan = lance_nb.Compaction.plan(dataset, {})
    rewrites = [task.execute(dataset) for task in plan.tasks]

    def commit() -> LanceDataset:
        lance_nb.Compaction.commit(dataset, rewrites)
        return dataset

    return commit


# The deletion files of a delete on Spark are written by the driver, just before its commit.
COMMITS: dict[str, Callable[[LanceDataset], Commit]] = {
    "hand append": hand_append,
    "hand overwrite": hand_overwrite,
    "hand delete": hand_delete,
    "hand merge": hand_merge,
    "hand compaction": hand_compaction,
    "spark append": lambda ds: finished(spark.plan_append(ds, ds)),
    "spark update": lambda ds: finished(spark.plan_update(ds, {"name": "'x'"}, "id = 30")),
    "spark compaction": lambda ds: finished(spark.plan_compaction(ds)),
    "spark index": lambda ds: finished(spark.plan_index(ds, "id")),
    "spark columns": lambda ds: finished(spark.plan_columns(ds, {"twice": "id * 2"})),
}


@pytest.mark.parametrize("name", COMMITS)
@pytest.mark.parametrize("fault", ["missing", "truncated"])
def test_files_that_are_not_as_written_are_refused(
    dataset: LanceDataset, name: str, fault: str
) -> None:
    before = stored_files(dataset)
    commit = COMMITS[name](dataset)
    new = stored_files(dataset) - before
    assert new
    for path in sorted(new):
        content = path.read_bytes()
        if fault == "missing":
            path.unlink()
        elif "_deletions" in path.parts:
            continue  # the manifest records no size of them
        else:
            path.write_bytes(content[:-1])
        expected = ObjectNotFoundError if fault == "missing" else CorruptFileError
        with pytest.raises(expected, match=re.escape(path.name)):
            commit()
        assert stored_files(dataset) <= before | new  # no deletion file of the driver either
        path.write_bytes(content)
        newest = lance_nb.dataset(dataset.uri)
        assert newest.to_table() == rows(0, 100)
    if name != "hand compaction":
        commit()
        lance_nb.dataset(dataset.uri).validate()


@pytest.mark.parametrize("name", COMMITS)
def test_a_clean_up_before_the_commit_leaves_a_dataset_that_can_be_read(
    dataset: LanceDataset, name: str
) -> None:
    commit = COMMITS[name](dataset)
    lance_nb.dataset(dataset.uri).cleanup_old_versions(retain_versions=1, delete_unverified=True)
    with pytest.raises(LanceError):
        commit()
    assert lance_nb.dataset(dataset.uri).to_table() == rows(0, 100)


@pytest.mark.parametrize("first", [7, 2])
def test_rows_of_a_caller_bring_row_ids_that_no_other_row_gets(tmp_path: Path, first: int) -> None:
    dataset = lance_nb.write_dataset(rows(0, 5), tmp_path / "t", enable_stable_row_ids=True)
    (fragment,) = lance_nb.write_fragments(rows(5, 8), dataset.uri)
    sequence = lance_nb.RowIdSequence(range(first, first + 3)).to_inline_metadata()
    append = LanceOperation.Append([replace(fragment, row_id_meta=sequence)])
    if first < 5:
        with pytest.raises(InvalidInputError, match="row id 2"):
            lance_nb.LanceDataset.commit(dataset.uri, append, read_version=1)
        return
    lance_nb.LanceDataset.commit(dataset.uri, append, read_version=1).insert(rows(8, 11))
    row_ids = lance_nb.dataset(dataset.uri).to_table(with_row_id=True)["_rowid"].to_pylist()
    assert row_ids == [0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12]
    assert lance_nb.dataset(dataset.uri).verify().findings == ()


class FarStore(MemoryStore):
    """A store that is far away, counts its requests and lists all but its last object."""

    is_far = True
    requests: ClassVar[list[str]] = []

    def size(self, path: str) -> int:
        self.requests.append("size")
        return super().size(path)

    def list(self, prefix: str) -> Listing:
        self.requests.append("list")
        return super().list(prefix)[:-1]


@pytest.mark.parametrize(("num_files", "requests"), [(10, 10), (500, 2)])
def test_many_files_in_a_far_store_are_listed(num_files: int, requests: int) -> None:
    store = FarStore(f"file-presence-{num_files}")
    files = [DataFile(f"{i}.lance", [0], [0], 2, 2, 3) for i in range(num_files)]
    for file in files:
        store.write(file.location(), b"abc")
    built = SimpleNamespace(
        fresh=[Fragment(i, [file], 1) for i, file in enumerate(files)], indices=()
    )
    store.requests.clear()
    check_new_files(store, built, None, ())  # type: ignore[arg-type]
    assert len(store.requests) == requests
    store.delete("data/3.lance")
    with pytest.raises(ObjectNotFoundError, match=f"1 of {num_files} new files are missing"):
        check_new_files(store, built, None, ())  # type: ignore[arg-type]


def test_a_deletion_file_may_leave_out_how_many_rows_it_names(dataset: LanceDataset) -> None:
    fragment = dataset.get_fragments()[1].delete("id = 30")
    recorded = fragment.deletion_file
    for count in (2, 0):
        changed = replace(fragment, deletion_file=replace(recorded, num_deleted_rows=count))
        commit = by_hand(dataset, LanceOperation.Delete([changed], [], "id = 30"))
        if count:
            with pytest.raises(InvalidInputError, match=r"expected 2 deleted rows.*, found 1"):
                commit()
        else:
            assert commit().count_rows() == 99


def test_values_are_read_only_where_a_file_may_hold_a_forbidden_null(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = []
    monkeypatch.setattr(
        file_presence, "check_values", lambda _snapshot, _fragment, name: columns.append(name)
    )
    required = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())]
    )
    for written, expected in ((required, []), (dataset.schema, ["id"])):
        fragments = lance_nb.write_fragments(
            rows(0, 5).cast(written), dataset.uri, mode="overwrite"
        )
        overwrite = LanceOperation.Overwrite(required, fragments)
        LanceDataset.commit(dataset.uri, overwrite)
        assert columns == expected


ROWS = pa.table({"a": pa.array([0, None], pa.int64()), "b": ["x", "y"], "s": [{"x": 1}, {"x": 2}]})
A, B, S = Schema.from_arrow(ROWS.schema).fields
NEW = Field(50, -1, "n", "int32")


@pytest.fixture
def plain_dataset(tmp_path: Path) -> lance_nb.LanceDataset:
    return lance_nb.write_dataset(ROWS, tmp_path / "t.lance")


def project(plain_dataset: lance_nb.LanceDataset, *fields: Field) -> lance_nb.LanceDataset:
    change = LanceOperation.Project(LanceSchema(Schema(fields)))
    return lance_nb.LanceDataset.commit(plain_dataset.uri, change, read_version=1)


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
    plain_dataset: lance_nb.LanceDataset, fields: tuple[Field, ...], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        project(plain_dataset, *fields)
    assert lance_nb.dataset(plain_dataset.uri).to_table() == ROWS


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
    plain_dataset: lance_nb.LanceDataset, fields: tuple[Field, ...]
) -> None:
    project(plain_dataset, *fields).validate()


def test_lists_of_values_and_of_structs_are_named_alike(tmp_path: Path) -> None:
    rows = pa.table({"l": [[1], [2, 3]]})
    plain_dataset = lance_nb.write_dataset(rows, tmp_path / "l.lance")
    (field,) = plain_dataset.lance_schema.tree.fields
    assert field.logical_type == "list"
    project(plain_dataset, replace(field, logical_type="list.struct")).validate()
    assert lance_nb.dataset(plain_dataset.uri).to_table() == rows


def test_the_description_of_a_blob_needs_no_ids(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), lance_nb.blob_field("b")])
    rows = pa.table([pa.array([1]), lance_nb.blob_array([b"x"])], schema=schema)
    plain_dataset = lance_nb.write_dataset(rows, tmp_path / "b.lance")
    a, blob = plain_dataset.lance_schema.tree.fields
    children = tuple(replace(child, id=-1, parent_id=-1) for child in blob.children)
    project(plain_dataset, replace(blob, children=children), a)
