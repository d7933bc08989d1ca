"""Data files of several versions in one dataset: who may add which, and every verb after it.

The name of a file version is an argument of eight verbs. Each name x dataset x verb comes out as
with pylance: the same files, format and feature flags, or a refusal. What other verbs make of a
dataset of files of 2.0, 2.1 and 2.2 both read, and it is what pylance makes of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import LanceError

pytestmark = pytest.mark.interop

VERSIONS = ("0.1", "2.0", "2.1", "2.2")
NAMES = ("legacy", "0.1", "0.3", "2.0", "2.1", "2.2", "stable", "0.2")
ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "text": [f"text {i}" * 9 for i in range(6)],
        "point": pa.array([{"x": i, "y": float(i)} for i in range(6)]),
        "list": pa.array([[i] * i for i in range(6)], pa.list_(pa.int32())),
    }
)
FLAT = ROWS.select(["id", "text"])


def upsert(module: Any, uri: str, name: str) -> None:
    clauses = module.dataset(uri).merge_insert("id").when_matched_update_all()
    clauses.when_not_matched_insert_all().data_storage_version(name).execute(FLAT.slice(3))


def append_fragments(module: Any, uri: str, name: str) -> None:
    write = module.fragment.write_fragments if module is lance else module.write_fragments
    fragments = write(FLAT, uri, mode="append", data_storage_version=name)
    module.LanceDataset.commit(uri, module.LanceOperation.Append(fragments), read_version=1)


def append_created(module: Any, uri: str, name: str) -> None:
    fragment = module.LanceFragment.create(uri, FLAT, mode="append", data_storage_version=name)
    module.LanceDataset.commit(uri, module.LanceOperation.Append([fragment]), read_version=1)


WRITING: dict[str, Callable[[Any, str, str], Any]] = {
    "append": lambda m, uri, name: m.write_dataset(
        FLAT, uri, mode="append", data_storage_version=name
    ),
    "overwrite": lambda m, uri, name: m.write_dataset(
        FLAT, uri, mode="overwrite", data_storage_version=name
    ),
    "insert": lambda m, uri, name: m.dataset(uri).insert(FLAT, data_storage_version=name),
    "write fragments": append_fragments,
    "create a fragment": append_created,
    "update": lambda m, uri, name: m.dataset(uri).update(
        {"text": "'x'"}, where="id = 1", data_storage_version=name
    ),
    "upsert": upsert,
    "compact": lambda m, uri, name: m.dataset(uri).optimize.compact_files(
        data_storage_version=name
    ),
}


def state(uri: str) -> tuple[Any, ...]:
    manifest = lance_nb.dataset(uri).opened[1].manifest
    versions = sorted({file.file_version for one in manifest.fragments for file in one.files})
    flags = manifest.reader_feature_flags, manifest.writer_feature_flags
    rows = lance.dataset(uri).to_table().sort_by("id")
    assert lance_nb.dataset(uri).to_table().sort_by("id").equals(rows)
    return manifest.data_format, flags, versions, rows


@pytest.mark.parametrize("verb", WRITING)
def test_a_named_version_is_written_or_refused_as_by_pylance(verb: str, tmp_path: Path) -> None:
    for version, name in product(VERSIONS, NAMES):
        if version == "0.1" and name in ("0.1", "legacy"):
            continue  # pylance only writes these
        if verb == "overwrite" and name in ("0.1", "legacy"):
            continue
        outcomes: list[Any] = []
        for module in (lance, lance_nb):
            uri = str(tmp_path / module.__name__)
            shutil.rmtree(uri, ignore_errors=True)
            lance.write_dataset(FLAT, uri, data_storage_version=version, max_rows_per_file=3)
            try:
                WRITING[verb](module, uri, name)
            except (OSError, ValueError, LanceError):
                outcomes.append("refused")
            else:
                outcomes.append(state(uri))
        assert outcomes[0] == outcomes[1], (version, name)


VERBS: dict[str, Callable[[Any], Any]] = {
    "append": lambda one: one.insert(ROWS),
    "overwrite": lambda one: one.insert(ROWS, mode="overwrite"),
    "delete": lambda one: one.delete("id = 2 OR point.x = 4"),
    "update": lambda one: one.update({"text": "'x'", "list": "[7]"}, where="id % 2 = 0"),
    "update all": lambda one: one.update({"text": "'x'"}),
    "upsert": lambda one: (
        one.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(ROWS.slice(3).set_column(0, "id", pa.array([1, 4, 9])))
    ),
    "upsert columns": lambda one: (
        one.merge_insert("id")
        .when_matched_update_all()
        .execute(pa.table({"id": [1, 4], "text": ["x", "y"]}))
    ),
    "add": lambda one: one.add_columns({"n": "id * 2", "m": "point.x + 1"}),
    "add a null": lambda one: one.add_columns(pa.field("n", pa.int32())),
    "drop": lambda one: one.drop_columns(["text"]),
    "drop a field": lambda one: one.drop_columns(["point.x"]),
    "cast": lambda one: one.alter_columns({"path": "id", "data_type": pa.int32()}),
    "rename": lambda one: one.alter_columns({"path": "point.y", "name": "z"}),
    "compact": lambda one: one.optimize.compact_files(),
    "index": lambda one: one.create_scalar_index("id", "BTREE"),
    "restore": lambda one: one.checkout_version(2).restore(),
    "branch": lambda one: one.create_branch("dev"),
    "settings": lambda one: one.update_config({"k": "v"}),
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixed") / "t.lance"
    for number, version in enumerate(("2.1", "2.0", "2.2")):
        part = ROWS.slice(2 * number, 2)
        mode = "append" if number else "create"
        lance.write_dataset(part, str(folder), mode=mode, data_storage_version=version)
    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_on_files_of_several_versions_does_as_in_pylance(
    mixed: Path, tmp_path: Path, verb: str
) -> None:
    outcomes = []
    for module in (lance, lance_nb):
        uri = str(tmp_path / module.__name__)
        shutil.copytree(mixed, uri)
        VERBS[verb](module.dataset(uri))
        data_format, flags, _, rows = state(uri)
        lance.dataset(uri).validate()
        id_column = rows.schema.names[0]
        outcomes.append((data_format, flags, rows.sort_by(id_column)))
    assert outcomes[0] == outcomes[1]
