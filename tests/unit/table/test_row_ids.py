from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.file.writer import FileWriter
from lance_nb.format.fragment import (
    ColumnSequence,
    DataFile,
    ExternalSequence,
    InlineSequence,
    RowIdMeta,
)
from lance_nb.format.schema import Schema
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, project
from lance_nb.table.row_ids import (
    created_at_versions,
    fragment_row_ids,
    last_updated_at_versions,
)
from lance_nb.table.scan import scan_table
from lance_nb.table.scan_tasks import plan_tasks
from tests.golden.copies import copy_to_memory, expected, expected_versions
from tests.golden.opening import snapshot_of


def test_a_dataset_without_stable_ids_has_none(at):
    snapshot = at(2)
    assert fragment_row_ids(snapshot, snapshot.manifest.fragments[0]) is None


@pytest.mark.parametrize("version", [version for _, version in expected_versions("stable_ids")])
def test_stable_ids_and_addresses_are_those_of_pylance(stores, version):
    snapshot = snapshot_of(stores["stable_ids"], version)
    wanted = project(snapshot.manifest.schema, ["id"], [ROW_ID, ROW_ADDRESS])
    found = scan_table(snapshot, wanted, plan_tasks(snapshot))
    said = expected("stable_ids", version)
    assert found[ROW_ID].to_pylist() == said[ROW_ID].to_pylist()
    assert found[ROW_ADDRESS].to_pylist() == said[ROW_ADDRESS].to_pylist()


def test_a_row_keeps_its_id_when_it_is_updated_and_compacted():
    def of(version):
        said = expected("stable_ids", version)
        return dict(zip(said["id"].to_pylist(), said[ROW_ID].to_pylist(), strict=True))

    first, last = of(2), of(6)
    assert {row: first[row] for row in last} == last


def test_there_is_an_id_for_every_physical_row(stores):
    snapshot = snapshot_of(stores["stable_ids"], 3)
    for fragment in snapshot.manifest.fragments:
        assert fragment_row_ids(snapshot, fragment).size == fragment.physical_rows


def test_another_number_of_ids_is_refused(stores):
    snapshot = snapshot_of(stores["stable_ids"], 2)
    first, second = snapshot.manifest.fragments
    shorter = replace(first, physical_rows=29)
    with pytest.raises(CorruptFileError, match="29 row"):
        fragment_row_ids(snapshot, shorter)
    with pytest.raises(CorruptFileError):
        fragment_row_ids(snapshot, replace(second, row_id_meta=RowIdMeta(InlineSequence(b"\xff"))))


def test_spilled_ids_are_read_from_a_file_or_from_a_hidden_column():
    store = copy_to_memory("stable_ids")
    snapshot = snapshot_of(store, 2)
    first = snapshot.manifest.fragments[0]
    ids = fragment_row_ids(snapshot, first)
    store.write("ids.bin", b"before" + first.row_ids.data)
    place = ExternalSequence("ids.bin", 6, len(first.row_ids.data))
    elsewhere = replace(first, row_id_meta=RowIdMeta(place))
    assert fragment_row_ids(snapshot, elsewhere).tolist() == ids.tolist()

    schema = pa.schema([pa.field("_rowid", pa.uint64(), nullable=False)])
    with FileWriter(store, "data/hidden.lance", Schema.from_arrow(schema)) as writer:
        writer.write(pa.record_batch([pa.array(ids)], schema=schema))
        writer.finish()
    file = DataFile("hidden.lance", (-3,), (0,), 2, 2)
    hidden = replace(first, row_id_meta=RowIdMeta(ColumnSequence(-3)), files=(*first.files, file))
    assert fragment_row_ids(snapshot, hidden).tolist() == ids.tolist()


def test_a_hidden_column_with_nulls_is_refused_whatever_other_files_hold():
    store = copy_to_memory("stable_ids")
    snapshot = snapshot_of(store, 2)
    first = snapshot.manifest.fragments[0]
    ids = pa.array(fragment_row_ids(snapshot, first))
    holed = pa.array([None, *ids.to_pylist()[1:]], pa.uint64())
    schema = pa.schema([pa.field("_rowid", pa.uint64())])
    for name, values in (("holed", holed), ("whole", ids)):
        with FileWriter(store, f"data/{name}.lance", Schema.from_arrow(schema)) as writer:
            writer.write(pa.record_batch([values], schema=schema))
            writer.finish()
    files = [DataFile(f"{name}.lance", (-3,), (0,), 2, 2) for name in ("holed", "whole")]
    hidden = replace(first, row_id_meta=RowIdMeta(ColumnSequence(-3)), files=tuple(files))
    with pytest.raises(CorruptFileError, match="without nulls"):
        fragment_row_ids(snapshot, hidden)


@pytest.mark.parametrize(
    "kept",
    [ExternalSequence("x", 0, 1), ExternalSequence("../x", 0, 1), ColumnSequence(-3)],
    ids=["a missing file", "a file outside", "a missing column"],
)
def test_ids_that_are_not_where_they_should_be_are_refused(stores, kept):
    snapshot = snapshot_of(stores["stable_ids"], 2)
    fragment = replace(snapshot.manifest.fragments[0], row_id_meta=RowIdMeta(kept))
    with pytest.raises(LanceError):
        fragment_row_ids(snapshot, fragment)


def test_rows_without_recorded_versions_are_of_the_first(at):
    snapshot = at(2)
    for fragment in snapshot.manifest.fragments:
        ones = [1] * fragment.physical_rows
        assert created_at_versions(snapshot, fragment).tolist() == ones
        assert last_updated_at_versions(snapshot, fragment).tolist() == ones


def test_recorded_versions_of_rows_are_those_that_made_and_changed_them():
    table = pa.table({"id": range(4)})
    ds = lance_nb.write_dataset(table, "memory://row-versions/d.lance", enable_stable_row_ids=True)
    lance_nb.write_dataset(table, ds, mode="append")
    lance_nb.dataset(ds.uri).update({"id": "9"}, where="id = 1")
    snapshot = lance_nb.dataset(ds.uri).opened[1]
    told = [
        (
            created_at_versions(snapshot, one).tolist(),
            last_updated_at_versions(snapshot, one).tolist(),
        )
        for one in snapshot.manifest.fragments
    ]

    assert told == [([1] * 4, [1] * 4), ([2] * 4, [2] * 4), ([1, 2], [3, 3])]
