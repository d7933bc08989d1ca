"""Commits to a store whose requests take long: what is overlapped, and what is not read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

import lance_nb
from lance_nb.errors import StorageError
from lance_nb.storage import conditional_put, registry
from lance_nb.storage.object_store import ObjectStore

ROWS = pa.table({"a": range(5)})
PLACE = "s3://bucket/t.lance"


class Bucket:
    """Objects in memory behind obstore; counts requests, and fails those that a test wants."""

    def __init__(self) -> None:
        self.memory = MemoryStore()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.refused = ""

    def open(self, uri: str, *_: Any) -> ObjectStore:
        return ObjectStore.over(self.memory, uri.partition("://")[2], uri)

    def watch(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        act = getattr(obstore, name)

        def watched(driver: Any, path: str, *args: Any, **options: Any) -> Any:
            kind = path.removeprefix("bucket/t.lance/").partition("/")[0]
            self.requests[name, kind] += 1
            if name == "put" and self.refused and self.refused in path:
                raise obstore.exceptions.PermissionDeniedError("403")
            return act(driver, path, *args, **options)

        monkeypatch.setattr(obstore, name, watched)

    def copy(self, source: str, target: str) -> None:
        for entry in obstore.list(self.memory, target).collect():
            obstore.delete(self.memory, entry["path"])
        for entry in obstore.list(self.memory, source).collect():
            data = obstore.get(self.memory, entry["path"]).bytes()
            obstore.put(self.memory, entry["path"].replace(source, target, 1), data)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    made = Bucket()
    load = registry._load
    monkeypatch.setattr(
        registry, "_load", lambda target: made.open if "object_store" in target else load(target)
    )
    for name in ("get", "get_ranges", "head", "put", "list_with_delimiter"):
        made.watch(monkeypatch, name)
    conditional_put.forget_probes()
    yield made
    conditional_put.forget_probes()


def test_an_append_reads_the_manifest_once(bucket: Bucket):
    lance_nb.write_dataset(ROWS, PLACE)
    bucket.requests.clear()
    assert lance_nb.write_dataset(ROWS, PLACE, mode="append").count_rows() == 10
    assert bucket.requests["get", "_versions"] == 1
    assert bucket.requests["list_with_delimiter", "_versions"] == 2
    assert bucket.requests["put", "_versions"] == 2
    assert bucket.requests["put", "_transactions"] == bucket.requests["put", "data"] == 1
    assert bucket.requests.total() == 7


def test_a_dataset_that_was_replaced_is_read_again(bucket: Bucket):
    lance_nb.write_dataset(ROWS, PLACE)
    handle = lance_nb.dataset(PLACE)
    lance_nb.write_dataset(pa.table({"a": range(5, 10)}), "s3://bucket/other.lance")
    bucket.copy("bucket/other.lance", "bucket/t.lance")
    handle.insert(pa.table({"a": [99]}))
    assert lance_nb.dataset(PLACE).to_table()["a"].to_pylist() == [5, 6, 7, 8, 9, 99]


def test_a_transaction_file_that_cannot_be_written_does_not_undo_the_version(bucket: Bucket):
    lance_nb.write_dataset(ROWS, PLACE)
    bucket.refused = "/_transactions/"
    after = lance_nb.write_dataset(ROWS, PLACE, mode="append", commit_message="twice")
    assert (after.version, after.count_rows()) == (2, 10)
    assert next(iter(lance_nb.dataset(PLACE).history())).message == "twice"
    after.delete("a = 1")
    assert lance_nb.dataset(PLACE).count_rows() == 8


def test_a_version_that_is_refused_is_an_error_although_its_transaction_was_written(
    bucket: Bucket,
):
    lance_nb.write_dataset(ROWS, PLACE)
    bucket.refused = ".manifest"
    with pytest.raises(StorageError) as caught:
        lance_nb.write_dataset(ROWS, PLACE, mode="append")
    assert caught.value.outcome == "failed"
    assert lance_nb.dataset(PLACE).version == 1
