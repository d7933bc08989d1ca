"""Manifests that say files of version 0.1 over files of later versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import lance
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.format.manifest import DataStorageFormat
from lance_nb.transactions.manifest_building import Draft

pytestmark = pytest.mark.interop

ROWS = pa.table({"a": range(6)})
VERBS: dict[str, Callable[[Any], Any]] = {
    "settings": lambda one: one.update_config({"k": "v"}),
    "index": lambda one: one.create_scalar_index("a", "BTREE"),
    "restore": lambda one: one.checkout_version(2).restore(),
    "rename": lambda one: one.alter_columns({"path": "a", "name": "b"}),
    # pylance fails with these: it reads files, or writes them, by what the manifest says.
    "append": lambda one: one.insert(ROWS),
    "delete": lambda one: one.delete("a = 1"),
    "compaction": lambda one: one.optimize.compact_files(),
}


def forged(uri: str, version: str) -> None:
    lance.write_dataset(ROWS, uri, data_storage_version=version, max_rows_per_file=3)
    legacy = DataStorageFormat("lance", "0.1")
    with mock.patch.object(Draft, "_data_format", return_value=legacy):
        lance_nb.dataset(uri).update_config({"forged": "1"})
    assert lance_nb.dataset(uri).opened[1].manifest.data_format == legacy


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("verb", VERBS)
def test_the_next_version_says_what_the_files_are(verb: str, version: str, tmp_path: Path) -> None:
    found = []
    for module in (lance_nb, lance):
        uri = f"{tmp_path}/{module.__name__}"
        forged(uri, version)
        try:
            VERBS[verb](module.dataset(uri))
        except OSError:
            assert module is lance
            assert verb in ("append", "delete", "compaction")
            continue
        manifest = lance_nb.dataset(uri).opened[1].manifest
        assert manifest.data_format is not None
        found.append(manifest.data_format.version)
        versions = {file.file_version for one in manifest.fragments for file in one.files}
        assert versions == {tuple(map(int, version.split(".")))}
        if module is lance_nb:
            rows = lance.dataset(uri).to_table()
            assert rows.num_rows == {"append": 12, "delete": 5}.get(verb, 6)
    assert set(found) == {version}


def test_files_of_0_1_stay_what_they_are(tmp_path: Path) -> None:
    uri = str(tmp_path / "old")
    lance.write_dataset(ROWS, uri, data_storage_version="legacy")
    lance_nb.dataset(uri).update_config({"k": "v"})
    manifest = lance_nb.dataset(uri).opened[1].manifest
    assert manifest.data_format == DataStorageFormat("lance", "0.1")
