from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

import lance_nb
from lance_nb.storage.base import Store
from lance_nb.table.files import ALL, TRACKED, all_files, tracked_files
from lance_nb.table.snapshot import Snapshot


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
