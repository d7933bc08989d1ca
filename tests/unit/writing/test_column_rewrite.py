"""Columns of fragments that are written anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import DataStorageFormat, Manifest
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from lance_nb.storage.registry import open_store
from lance_nb.transactions.schema_change import extend_schema, next_field_id
from lance_nb.writing.fragment_writer import WriteOptions
from lance_nb.writing.rewriting import Touched, rewrite_columns, with_file, write_columns
from lance_nb.writing.staged import ColumnRewrite

URI = "memory://column-rewrite.lance"


@pytest.fixture
def opened() -> lance_nb.LanceDataset:
    table = pa.table({"id": range(10), "v": [[n] for n in range(10)]})
    return lance_nb.write_dataset(table, URI, mode="overwrite", max_rows_per_file=6)


def rewritten(made: lance_nb.LanceDataset, rows: dict[int, list[int]], fails: int) -> ColumnRewrite:
    _, snapshot = made.opened
    part = Schema((snapshot.manifest.schema.field("v"),), {})
    fragments = list(snapshot.manifest.fragments)
    touched: list[Touched] = [
        (fragments[place], np.array(offsets, np.int64)) for place, offsets in rows.items()
    ]

    def values(fragment: Fragment, first: int, last: int) -> pa.Table:
        if fragment.id == fragments[fails].id if fails >= 0 else False:
            raise KeyboardInterrupt
        return pa.table({"v": pa.array([[-1]] * (last - first), pa.list_(pa.int64()))})

    return rewrite_columns(snapshot, part, touched, values, WriteOptions())


def test_new_values_lie_in_their_places(opened: lance_nb.LanceDataset) -> None:
    made = rewritten(opened, {0: [1, 5], 1: [0, 1, 2, 3]}, -1)
    assert (made.num_rows, len(made.files), made.offsets) == (6, 2, {})
    assert made.fields == (1, 2)
    after = lance_nb.LanceDataset.commit(opened, made.operation(), read_version=opened.version)
    expected = [[0], [-1], [2], [3], [4], [-1], [-1], [-1], [-1], [-1]]
    assert after.to_table(["v"]).to_pydict()["v"] == expected


def test_an_interrupt_removes_what_was_written(opened: lance_nb.LanceDataset) -> None:
    store = open_store(URI, None)
    before = {one.name for one in store.list_recursive("")}
    with pytest.raises(KeyboardInterrupt):
        rewritten(opened, {0: [0], 1: [1]}, 1)
    assert {one.name for one in store.list_recursive("")} == before


def test_an_interrupt_leaves_the_other_files_of_a_fragment(opened: lance_nb.LanceDataset) -> None:
    opened.add_columns({"w": "id + 1", "x": "id + 2"})
    opened.add_columns({"y": "id + 3"})
    store = open_store(URI, None)
    before = {one.name for one in store.list_recursive("")}
    with pytest.raises(KeyboardInterrupt):
        rewritten(opened, {0: [0], 1: [1]}, 1)
    assert {one.name for one in store.list_recursive("")} == before


SCHEMA = Schema.from_arrow(
    pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int64())]))], {"k": "v"})
)
FILE = DataFile("old.lance", (0, 2), (0, 1), 2, 2, 100)
FRAGMENT = Fragment(4, (FILE,), 3)


def manifest(schema: Schema = SCHEMA, version: str = "2.2", **more: object) -> Manifest:
    return Manifest(1, schema, data_format=DataStorageFormat("lance", version), **more)


@pytest.fixture
def store() -> MemoryStore:
    clear("column-files")
    return MemoryStore("column-files")


def test_ids_follow_the_highest_that_anybody_has_had() -> None:
    assert next_field_id(Manifest(1, Schema((), {}))) == 0
    assert next_field_id(manifest()) == 3
    assert next_field_id(manifest(max_allocated_field_id=7)) == 8
    assert next_field_id(manifest(max_allocated_field_id=0)) == 3
    wide = replace(FRAGMENT, files=(FILE, replace(FILE, fields=(-2, 11)), replace(FILE, fields=())))
    assert next_field_id(manifest(fragments=FragmentList.of([FRAGMENT, wide]))) == 12


def test_new_columns_are_at_the_end() -> None:
    after, part = extend_schema(manifest(), pa.schema([("b", pa.int8())], {"other": "x"}))
    assert [(one.name, one.id) for one in after] == [("a", 0), ("s", 1), ("b", 3)]
    assert [(one.name, one.id) for one in part] == [("b", 3)]
    assert after.metadata == {**SCHEMA.metadata, "other": b"x"}


@pytest.mark.parametrize(("version", "grows"), [("2.2", True), ("2.1", False), ("2.0", False)])
def test_structs_grow_in_files_of_version_2_2(version: str, grows: bool) -> None:
    added = pa.schema([("s", pa.struct([("y", pa.int8())]))])
    if not grows:
        with pytest.raises(SchemaMismatchError, match=f"'s' is a struct.*{version}"):
            extend_schema(manifest(version=version), added)
        return
    after, part = extend_schema(manifest(version=version), added)
    assert [one.name for one in after.field("s").children] == ["x", "y"]
    assert [one.id for one in part.walk()] == [1, 3]
    extend_schema(manifest(version=version), pa.schema([("t", pa.int8())]))


@pytest.mark.parametrize("name", ["a", "s"])
def test_columns_that_are_there_are_refused(name: str) -> None:
    with pytest.raises(SchemaMismatchError, match="already exists"):
        extend_schema(manifest(), pa.schema([(name, pa.int8())]))


def test_metadata_that_is_no_text_is_refused() -> None:
    field = pa.field("b", pa.int8(), metadata={b"k": b"\xff"})
    with pytest.raises(InvalidInputError, match="not UTF-8"):
        extend_schema(manifest(), pa.schema([field]))


def batches(*sizes: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"a": pa.array(range(size), pa.int64())}) for size in sizes]


PART = Schema(SCHEMA.fields[:1], {})


@pytest.mark.parametrize("sizes", [(3,), (1, 2), (2, 0, 1)])
def test_a_file_holds_the_columns_of_all_rows(store: MemoryStore, sizes: tuple[int, ...]) -> None:
    options = WriteOptions(max_rows_per_file=1)  # a fragment has one file of a column all the same
    made = write_columns(store, FRAGMENT, PART, batches(*sizes), options)
    assert (made.id, made.physical_rows) == (4, 3)
    old, new = made.files
    assert (old.path, old.fields) == ("old.lance", (-2, 2))
    assert new.fields == (0,)
    assert [one.name for one in store.list_recursive("data")] == [new.path]


@pytest.mark.parametrize(
    ("sizes", "said"), [((2,), "have 2"), ((), "have 0"), ((2, 2), "have more"), ((4,), "more")]
)
def test_another_number_of_rows_is_refused(
    store: MemoryStore, sizes: tuple[int, ...], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"fragment 4 has 3 physical rows.*{said}"):
        write_columns(store, FRAGMENT, PART, batches(*sizes), WriteOptions())
    assert store.list_recursive("") == []


def test_a_fragment_without_rows_needs_no_file(store: MemoryStore) -> None:
    empty = replace(FRAGMENT, physical_rows=0)
    assert write_columns(store, empty, PART, [], WriteOptions()) == empty
    assert store.list_recursive("") == []


def test_files_whose_fields_all_moved_go() -> None:
    new = replace(FILE, path="new.lance", fields=(0,))
    assert with_file(FRAGMENT, None, PART.fields) is FRAGMENT
    moved = with_file(FRAGMENT, new, SCHEMA.fields)
    assert [one.path for one in moved.files] == ["new.lance"]
    one = with_file(FRAGMENT, new, SCHEMA.fields[1:])
    assert [(file.path, file.fields) for file in one.files] == [
        ("old.lance", (0, -2)), ("new.lance", (0,)),
    ]  # fmt: skip
