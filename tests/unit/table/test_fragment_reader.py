from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, NotSupportedError, ObjectNotFoundError
from lance_nb.table.fragment_reader import (
    confirmed_rows,
    num_physical_rows,
    open_file,
    read_rows,
)
from lance_nb.table.projection import project
from tests.golden.copies import copy_to_memory, expected
from tests.golden.opening import snapshot_of
from tests.support.reading import rows_of

LEGACY = Path(__file__).parents[2] / "golden" / "pylance_0_8_21" / "history_legacy.lance"


def read(snapshot, fragment, columns, *ranges):
    wanted = project(snapshot.manifest.schema, columns).columns
    found = read_rows(snapshot, fragment, wanted, rows_of(*ranges))
    return [column.to_pylist() for column in found]


def test_columns_of_several_files_are_joined(at):
    snapshot = at(6)
    fragment = snapshot.manifest.fragments[0]
    assert len(fragment.files) == 2
    assert read(snapshot, fragment, ["double", "id"], (5, 8), (39, 40)) == [
        [10, 12, 14, 78],
        [5, 6, 7, 39],
    ]


def test_deleted_rows_are_read_too(at):
    snapshot = at(3)
    assert read(snapshot, snapshot.manifest.fragments[0], ["id"], (4, 5)) == [[4]]


def test_a_field_that_no_file_holds_reads_as_null(at):
    snapshot = at(4)  # the third fragment was written with the column "id" alone
    fragment = snapshot.manifest.fragments[2]
    ids, words, points = read(snapshot, fragment, ["id", "word", "point"], (5000, 5003))
    assert (ids, words, points) == ([5000, 5001, 5002], [None] * 3, [None] * 3)
    assert read(snapshot, fragment, ["word"], (0, 2)) == [[None, None]]


def test_an_old_version_does_not_see_a_column_that_came_later(at):
    assert "double" not in at(5).manifest.schema.names
    assert expected("history", 5).column_names == ["id", "word", "value", "point"]


def test_a_renamed_column_is_found_by_its_id(at):
    snapshot = at(7)
    assert read(snapshot, snapshot.manifest.fragments[0], ["amount"], (1, 3)) == [[0.25, 0.5]]


def test_data_overlays_are_refused(at):
    snapshot = at(2)
    fragment = replace(snapshot.manifest.fragments[0], overlays=(b"x",))
    with pytest.raises(NotSupportedError, match="fragment 0 has data overlay files"):
        read(snapshot, fragment, ["id"], (0, 1))


def test_a_missing_data_file_is_named_with_fragment_and_version():
    store = copy_to_memory("history")
    snapshot = snapshot_of(store, 2)
    fragment = snapshot.manifest.fragments[1]
    store.delete(f"data/{fragment.files[0].path}")
    with pytest.raises(ObjectNotFoundError, match="needed by fragment 1 of version 2") as caught:
        open_file(snapshot, fragment, fragment.files[0])
    assert caught.value.path == f"{store.uri}/data/{fragment.files[0].path}"


def test_rows_that_old_writers_did_not_count_are_counted_by_the_file(at):
    snapshot = at(2)
    fragment = snapshot.manifest.fragments[0]
    uncounted = replace(fragment, physical_rows=0)
    assert num_physical_rows(snapshot, fragment) == num_physical_rows(snapshot, uncounted) == 40
    assert confirmed_rows(snapshot, uncounted) == 40
    assert num_physical_rows(snapshot, replace(uncounted, files=())) == 0
    assert read(snapshot, uncounted, ["id"], (38, 40)) == [[38, 39]]


@pytest.mark.parametrize("rows", [39, 41, 2**50])
def test_a_count_that_the_file_does_not_confirm_is_refused(at, rows):
    snapshot = at(2)
    fragment = replace(snapshot.manifest.fragments[0], physical_rows=rows)
    with pytest.raises(CorruptFileError, match=f"{rows} rows, as the manifest says"):
        confirmed_rows(snapshot, fragment)
    with pytest.raises(CorruptFileError, match=f"{rows} rows, as the manifest says"):
        read(snapshot, fragment, ["id"], (0, 1))


def test_a_fragment_without_files_is_refused(at):
    snapshot = at(2)
    fragment = replace(snapshot.manifest.fragments[0], files=())
    with pytest.raises(CorruptFileError, match="at least one data file"):
        read(snapshot, fragment, ["id"], (0, 1))


def test_a_field_of_a_0_1_file_with_another_id_is_found_by_its_position():
    """Field ids of a file that differ from those of its own schema."""
    snapshot = lance_nb.dataset(LEGACY, version=1).opened[1]
    fragment = snapshot.manifest.fragments[0]
    (expected,) = read(snapshot, fragment, ["value"], (0, 5))
    fields = tuple(
        replace(one, id=12) if one.name == "value" else one
        for one in snapshot.manifest.schema.fields
    )
    schema = replace(snapshot.manifest.schema, fields=fields)
    renumbered = replace(snapshot, manifest=replace(snapshot.manifest, schema=schema))
    file = replace(fragment.files[0], fields=(0, 1, 12))
    (found,) = read(renumbered, replace(fragment, files=(file,)), ["value"], (0, 5))
    assert found == expected


@pytest.mark.parametrize("column", [-1, -2])
def test_a_leaf_without_a_column_is_refused(at, column):
    snapshot = at(2)
    fragment = snapshot.manifest.fragments[0]
    (file,) = fragment.files
    columns = [column, *file.column_indices[1:]]
    fragment = replace(fragment, files=(replace(file, column_indices=columns),))
    with pytest.raises(CorruptFileError, match=f"expected a column number, found {column};"):
        read(snapshot, fragment, [snapshot.manifest.schema.names[0]], (0, 1))
