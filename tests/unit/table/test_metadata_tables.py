"""Metadata tables: fragments, data files, columns, pages, and the files of a dataset."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotFoundError
from lance_nb.storage.base import Store
from lance_nb.table import metadata_tables
from lance_nb.table.metadata_tables import ALL, TRACKED, all_files, tracked_files
from lance_nb.table.snapshot import Snapshot
from tests.golden.copies import NAMES, copy_to_memory, edited_fragment, edited_manifest
from tests.golden.opening import WatchedStore, snapshot_of


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_the_schemas_that_are_announced(stores, name):
    snapshot = snapshot_of(stores[name])
    assert metadata_tables.fragments(snapshot).schema.equals(metadata_tables.FRAGMENTS)
    assert metadata_tables.data_files(snapshot).schema.equals(metadata_tables.DATA_FILES)
    assert metadata_tables.columns(snapshot).schema.equals(metadata_tables.COLUMNS)
    for path in metadata_tables.data_files(snapshot)["path"].to_pylist():
        pages = metadata_tables.pages(snapshot, path)
        assert pages.schema.equals(metadata_tables.PAGES)
        pages.validate(full=True)
        assert not [text for text in pages["encoding"].to_pylist() if "?" in text]


def test_fragments_are_counted(at):
    found = metadata_tables.fragments(at(5)).to_pylist()
    assert [one["fragment_id"] for one in found] == [0, 1, 2]
    assert [one["physical_rows"] for one in found] == [40, 30, 5060]
    assert [one["num_deleted_rows"] for one in found] == [4, 0, 5019]
    assert [one["num_rows"] for one in found] == [36, 30, 41]
    assert all(one["size_bytes"] > 0 and one["num_data_files"] == 1 for one in found)


def test_counts_that_were_not_recorded_are_null():
    store = copy_to_memory("history")
    path = f"_versions/{2**64 - 1 - 5:020d}.manifest"

    def change(manifest):
        raw = manifest.fragments[0]
        manifest.fragments[0] = edited_fragment(raw, lambda one: setattr(one, "physical_rows", 0))

    store.write(path, edited_manifest(bytes(store.read(path)), change))
    found = metadata_tables.fragments(snapshot_of(store, 5)).to_pylist()
    assert (found[0]["num_rows"], found[0]["physical_rows"]) == (None, None)
    assert found[1]["num_rows"] == 30


def test_data_files_name_the_columns_that_are_still_there(at):
    early, late = (metadata_tables.data_files(at(version)).to_pylist() for version in (6, 8))
    assert early[0]["columns"] == ["id", "word", "value", "point.x", "point.tags.item"] or (
        "id" in early[0]["columns"]
    )
    assert early[1]["columns"] == ["double"]
    assert "word" in early[0]["columns"]
    assert "word" not in late[0]["columns"]
    assert "amount" in late[0]["columns"]
    assert early[0]["file_version"] == "2.2"


def test_data_files_tell_their_version(stores):
    for name, version in (("types_2_1", "2.1"), ("types_2_2", "2.2")):
        found = metadata_tables.data_files(snapshot_of(stores[name]))["file_version"]
        assert set(found.to_pylist()) == {version}


def test_files_of_a_parent_branch_show_their_base(at):
    found = metadata_tables.data_files(at(("side", None))).to_pylist()
    assert [one["base_id"] for one in found] == [0, 0, None]


def test_columns_are_listed_depth_first(at):
    found = metadata_tables.columns(at(14)).to_pylist()
    assert [one["name"] for one in found] == [
        "id",
        "amount",
        "point",
        "point.x",
        "point.tags",
        "point.tags.item",
        "double",
    ]
    by_name = {one["name"]: one for one in found}
    assert by_name["point.x"]["parent_id"] == by_name["point"]["field_id"]
    assert by_name["id"]["num_data_files"] == 2


def test_pages_add_up_to_the_rows_of_the_fragment(at):
    snapshot = at(4)
    path = snapshot.manifest.fragments[2].files[0].path
    found = metadata_tables.pages(snapshot, path).to_pylist()
    assert sum(one["num_rows"] for one in found if one["name"] == "id") == 5060
    assert found[0]["encoding"].startswith("mini_block")


def test_pages_read_metadata_and_no_page(at, history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 4)
    path = snapshot.manifest.fragments[2].files[0].path
    store.forget()
    metadata_tables.pages(snapshot, path)
    assert sum(store.reads.values()) == 1


def test_a_data_file_that_is_not_in_the_version_is_refused(at):
    with pytest.raises(NotFoundError, match=r"no data file 'x.lance' in version 4.*data_files\(\)"):
        metadata_tables.pages(at(4), "x.lance")


def test_a_column_that_no_file_holds_yet_is_in_none(tmp_path):
    dataset = lance_nb.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d")
    dataset.add_columns(pa.field("b", pa.int64()))

    found = dataset.inspect.columns().to_pylist()

    assert {one["name"]: one["num_data_files"] for one in found} == {"a": 1, "b": 0}


def test_versions_name_their_files(history: Store, at: Callable[..., Snapshot]) -> None:
    seen: list[tuple[int, int]] = []
    batches = list(tracked_files([1, 5], at, lambda *done: seen.append(done)))
    table = pa.Table.from_batches(batches, TRACKED)

    assert seen == [(1, 2), (2, 2)]
    assert set(table["version"].to_pylist()) == {1, 5}
    assert table["type"].to_pylist().count("manifest") == 2
    there = {one.name for one in history.list_recursive("")}
    assert set(table["path"].to_pylist()) <= there


def test_everything_below_the_root_is_listed(history: Store) -> None:
    (batch,) = all_files(history)

    assert batch.schema.equals(ALL)
    assert batch.num_rows == len(history.list_recursive(""))
    assert min(batch["size_bytes"].to_pylist()) >= 0


def test_every_column_of_the_tables_has_a_value() -> None:
    for schema in (TRACKED, ALL):
        assert [one.name for one in schema if one.nullable] == []


def test_versions_name_each_kind_of_file_with_its_root() -> None:
    table = pa.table({"id": range(6)})
    ds = lance_nb.write_dataset(table, "memory://tracked/d.lance", max_rows_per_file=3)
    ds.create_scalar_index("id", "BTREE")
    ds.delete("id = 1")
    found = ds.tracked_files().read_all().to_pylist()
    listed = ds.all_files().read_all().to_pylist()
    there = {one["path"]: one for one in listed}

    for version in (1, 2, 3):
        snapshot = ds.checkout_version(version).opened[1]
        manifest = snapshot.manifest
        expected = [(manifest.path.removeprefix(f"{ds.uri}/"), "manifest")]
        expected += [(f"_transactions/{manifest.transaction_file}", "transaction file")]
        for fragment in manifest.fragments:
            expected += [(f"data/{file.path}", "data file") for file in fragment.files]
            if fragment.deletion_file is not None:
                expected += [(fragment.deletion_file.location(fragment.id), "deletion file")]
        indices = [path for path in there if path.startswith("_indices/")] if version > 1 else []
        mine = [(one["path"], one["type"]) for one in found if one["version"] == version]
        assert sorted(mine) == sorted([*expected, *((path, "index file") for path in indices)])
        assert {path for path, _ in mine} <= there.keys()
    assert {one["base_uri"] for one in (*found, *listed)} == {ds.uri}
    data = [one for path, one in there.items() if path.startswith("data/")]
    sizes = [file.size_bytes for one in manifest.fragments for file in one.files]
    assert sorted(one["size_bytes"] for one in data) == sorted(sizes)
