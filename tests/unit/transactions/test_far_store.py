"""Commits to a store whose requests take long: what is overlapped, and what is not read again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import StorageError
from lance_nb.table.refs import list_tags
from tests.support.bucket import Bucket, bucket_in_memory

ROWS = pa.table({"a": range(5)})
PLACE = "s3://bucket/t.lance"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with bucket_in_memory(monkeypatch) as made:
        yield made


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


def test_deletion_files_are_sent_together(bucket: Bucket):
    for number in range(3):
        lance_nb.write_dataset(ROWS, PLACE, mode="append" if number else "create")
    together = threading.Barrier(3)

    def meet(name: str, path: str) -> None:
        if name == "put" and "/_deletions/" in path:
            together.wait(10)  # breaks when they are sent one after the other

    bucket.before = meet
    dataset = lance_nb.dataset(PLACE)
    dataset.delete("a = 3")
    assert lance_nb.dataset(PLACE).count_rows() == 12


def test_a_new_tag_or_branch_reads_no_other(bucket: Bucket):
    dataset = lance_nb.write_dataset(ROWS, PLACE)
    for number in range(20):
        dataset.tags.create(f"tag-{number}", 1)
    dataset.create_branch("other")
    bucket.requests.clear()
    dataset.tags.create("new", 1)
    assert dict(bucket.requests) == {("head", "_versions"): 1, ("put", "_refs"): 1}
    bucket.requests.clear()
    dataset.create_branch("new")
    assert bucket.requests["list_with_delimiter", "_refs"] == 0
    assert bucket.requests["get", "_refs"] == 1  # of its own record, which is not there
    assert bucket.requests["get", "_versions"] == 1
    assert bucket.requests.total() == 11


def test_tags_are_read_side_by_side(bucket: Bucket):
    dataset = lance_nb.write_dataset(ROWS, PLACE)
    for name in ("first", "second", "third"):
        dataset.tags.create(name, 1)
    together = threading.Barrier(3)

    def meet(name: str, path: str) -> None:
        if name == "get" and "/_refs/" in path:
            together.wait(10)  # breaks when they are read one after the other

    bucket.before = meet
    root = dataset.tags._session.root
    assert list(list_tags(root)) == list(dataset.tags.list()) == ["first", "second", "third"]
