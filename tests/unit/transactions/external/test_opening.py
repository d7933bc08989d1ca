"""Which manifest store a URI and options mean, and by which key a dataset is known there."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.registry import open_store
from lance_nb.transactions import external
from lance_nb.transactions.external.registry import base_uri, forget, open_root, plain_place
from lance_nb.transactions.external.synchronised_store import SynchronisedStore

DDB = "s3+ddb://bucket/a/t.lance?ddbTableName=commits"


def test_what_asks_for_a_manifest_store():
    assert external.is_configured(DDB, None)
    assert external.is_configured("S3+DDB://b/x", {})
    assert external.is_configured("/x", {"manifest_store": "sqlite:///m.db"})
    assert not external.is_configured("s3://b/x+ddb:y", {"key": "k"})
    assert not external.is_configured(Path("/x"), None)
    assert not external.is_configured("/x", {"manifest_store": None})


def test_a_dynamodb_uri_becomes_a_plain_one_and_an_option():
    uri, options = plain_place(f"{DDB}&x=1", {"key": "k"})
    assert uri == "s3://bucket/a/t.lance"
    assert options == {"key": "k", "manifest_store": "dynamodb://commits"}
    assert plain_place("s3://b/x", {"a": 1}) == ("s3://b/x", {"a": 1})


@pytest.mark.parametrize(
    "uri", ["s3+ddb://bucket/x", "s3+ddb://bucket/x?ddbTableName=", "gs+ddb://b/x?ddbTableName=t"]
)
def test_what_names_no_table_is_refused(uri: str):
    with pytest.raises(InvalidInputError, match="ddbTableName"):
        plain_place(uri, None)


def test_two_manifest_stores_are_one_too_many():
    with pytest.raises(InvalidInputError, match="both"):
        plain_place(DDB, {"manifest_store": "sqlite:///m.db"})


def test_keys_of_datasets(tmp_path: Path):
    memory = MemoryStore("a/b")
    assert base_uri(memory, "sqlite:///m.db") == "memory://a/b"
    assert base_uri(memory, "dynamodb://t") == "b"
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store = open_store(tmp_path / "link" / "t.lance")
    assert base_uri(store, "sqlite:///m.db") == os.path.realpath(tmp_path / "real" / "t.lance")


def test_an_unknown_manifest_store_is_refused():
    with pytest.raises(InvalidInputError, match="known: sqlite://"):
        open_root("memory://x", {"manifest_store": "etcd://host"})


def test_a_missing_package_names_the_pip_line(monkeypatch: pytest.MonkeyPatch):
    for package, url in (
        ("redis", "redis://h"),
        ("psycopg", "postgresql://h"),
        ("boto3", "dynamodb://t"),
    ):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(NotSupportedError, match=r"not installed: pip install .*\["):
            open_root("memory://x", {"manifest_store": url})


def test_the_facade_commits_and_reads_through_a_manifest_store(tmp_path: Path):
    options = {"manifest_store": f"sqlite:///{tmp_path}/manifests.db"}
    place = tmp_path / "t.lance"
    lance_nb.write_dataset(pa.table({"x": [1, 2]}), place, storage_options=options)
    dataset = lance_nb.dataset(place, storage_options=options)
    dataset.insert(pa.table({"x": [3]}))
    dataset.tags.create("two", 2)
    dataset.create_branch("b", 1)
    on_branch = lance_nb.dataset(place, ("b", None), storage_options=options)
    on_branch.insert(pa.table({"x": [9]}))
    root = open_root(place, options)
    assert isinstance(root, SynchronisedStore)
    entries, key = root.manifest_slots().entries, os.path.realpath(place)
    assert entries.latest(key).version == 2
    assert entries.latest(f"{key}/tree/b").version == 2
    for found in (
        lance_nb.dataset(place, storage_options=options),
        lance_nb.dataset(place),
        lance_nb.dataset(place, "two"),
    ):
        assert found.to_table().to_pydict() == {"x": [1, 2, 3]}
    found = lance_nb.dataset(place, ("b", None), storage_options=options)
    assert found.to_table().to_pydict() == {"x": [1, 2, 9]}
    found.branches.delete("b")
    assert entries.latest(f"{key}/tree/b") is None
    lance_nb.dataset(place, storage_options=options).create_branch("b", 2)
    again = lance_nb.dataset(place, ("b", None), storage_options=options)
    assert again.to_table().to_pydict() == {"x": [1, 2, 3]}
    shutil.rmtree(place)
    with pytest.raises(lance_nb.LanceError, match="forget"):
        lance_nb.write_dataset(pa.table({"x": [1]}), place, storage_options=options)
    shutil.rmtree(place)
    forget(place, options)
    assert entries.latest(key) is None
    made = lance_nb.write_dataset(pa.table({"x": [7]}), place, storage_options=options)
    assert made.to_table().to_pydict() == {"x": [7]}


def test_secrets_of_a_manifest_store_are_shown_nowhere(tmp_path: Path):
    url = "redis://user:TOPSECRET-canary@127.0.0.1:1/0"
    root = open_root(tmp_path / "x", {"manifest_store": url})
    shown = f"{root!r} {root} {root.uri} {root.manifest_slots()!r} {root.child('a')!r}"
    assert "TOPSECRET" not in shown
    with pytest.raises(NotSupportedError):
        pickle.dumps(root.manifest_slots())
    with pytest.raises(lance_nb.LanceError) as caught:
        lance_nb.dataset(str(tmp_path / "x"), storage_options={"manifest_store": url})
    assert "TOPSECRET" not in f"{caught.value!r} {caught.value} {caught.value.__cause__}"
