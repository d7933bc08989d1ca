"""Manifests are known again by the end of their file, and by nothing less."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, ObjectNotFoundError
from lance_nb.format.manifest import TAIL_BYTES, Manifest, parse_manifest, parse_manifest_tail
from lance_nb.table import file_cache
from lance_nb.table.file_cache import FileCache, cache_manifest, cached_manifest
from tests.golden.copies import copy_to_memory
from tests.golden.opening import WatchedStore


@pytest.fixture
def paths(history):
    return sorted(f"data/{info.name}" for info in history.list("data"))


def test_a_file_is_opened_once(history, paths):
    store, cache = WatchedStore(history), FileCache()
    first = cache.get(store, paths[0])
    assert cache.get(store, paths[0]) is first
    assert store.reads == {paths[0]: 1}


def test_files_of_different_stores_are_different_files(history, stores, paths):
    cache = FileCache()
    other = copy_to_memory("history")
    assert cache.get(history, paths[0]) is not cache.get(other, paths[0])


def test_the_file_used_longest_ago_is_closed_first(history, paths):
    cache = FileCache(files_max=2)
    first = cache.get(history, paths[0])
    second = cache.get(history, paths[1])
    assert cache.get(history, paths[0]) is first
    cache.get(history, paths[2])
    assert cache.get(history, paths[0]) is first
    assert cache.get(history, paths[1]) is not second


def test_a_file_that_could_not_be_opened_is_tried_again(paths):
    store, cache = copy_to_memory("history"), FileCache()
    data = bytes(store.read(paths[0]))
    store.delete(paths[0])
    with pytest.raises(ObjectNotFoundError):
        cache.get(store, paths[0])
    store.write(paths[0], data)
    assert cache.get(store, paths[0]).size_bytes == len(data)


def test_a_size_that_the_manifest_did_not_promise_is_refused(history, paths):
    with pytest.raises(CorruptFileError, match="7 bytes as the manifest says"):
        FileCache().get(history, paths[0], 7)


def test_the_bytes_of_what_is_known_are_counted(history, paths):
    cache = FileCache()
    assert cache.size_bytes() == 0
    for path in paths[:2]:
        before = cache.size_bytes()
        reader = cache.get(history, path)
        assert cache.size_bytes() == before + reader.metadata_bytes > before


ROWS = pa.table({"id": range(10)})
MANY = 2000  # fragments: their manifest is larger than a tail


def forget() -> None:
    file_cache._small_manifests.clear()
    file_cache._large_manifests.clear()


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    forget()
    yield
    forget()


def large(folder: Path) -> str:
    uri = str(folder / "large.lance")
    made = lance_nb.write_dataset(ROWS, uri)
    one = made.get_fragments()[0].metadata
    lance_nb.LanceDataset.commit(uri, lance_nb.LanceOperation.Append([one] * MANY), read_version=1)
    return uri


def newest(uri: str) -> bytes:
    return min((Path(uri) / "_versions").glob("*.manifest")).read_bytes()


def test_a_large_manifest_is_known_by_its_size_and_its_end(tmp_path: Path) -> None:
    data = newest(large(tmp_path))
    assert len(data) > TAIL_BYTES
    found = parse_manifest(data, "x")
    cache_manifest("x", data, len(data), found)
    assert cached_manifest("x", data, len(data), whole=True) is found
    assert cached_manifest("x", memoryview(data)[-TAIL_BYTES:], len(data)) is found
    assert cached_manifest("x", data, len(data) + 1) is None
    assert cached_manifest("y", data, len(data)) is None
    other = data[:-1] + bytes([data[-1] ^ 1])
    assert cached_manifest("x", other, len(other)) is None


def test_one_whose_sections_were_not_read_is_none_for_who_wants_them(tmp_path: Path) -> None:
    data = newest(large(tmp_path))
    found = parse_manifest_tail(data[-len(data) + 1 :], len(data), "x")
    assert isinstance(found, Manifest)
    cache_manifest("x", data[1:], len(data), found)
    assert cached_manifest("x", data, len(data)) is found
    assert cached_manifest("x", data, len(data), whole=True) is None


def test_without_the_name_of_its_transaction_a_large_one_is_not_known(tmp_path: Path) -> None:
    data = newest(large(tmp_path))
    nameless = replace(parse_manifest(data, "x"), transaction_file="")
    cache_manifest("x", data, len(data), nameless)
    assert cached_manifest("x", data, len(data)) is None
    named_elsewhere = replace(nameless, transaction_file="1-other.txn")
    cache_manifest("x", data, len(data), named_elsewhere)
    assert cached_manifest("x", data, len(data)) is None


def test_few_are_kept(tmp_path: Path) -> None:
    data = newest(large(tmp_path))
    found = parse_manifest(data, "x")
    for at in range(5):
        cache_manifest(f"large {at}", data, len(data), found)
    for at in range(40):
        cache_manifest(f"small {at}", b"end", 3, found)
    assert [at for at in range(5) if cached_manifest(f"large {at}", data, len(data))] == [3, 4]
    assert sum(cached_manifest(f"small {at}", b"end", 3) is found for at in range(40)) == 16


def test_a_dataset_in_the_place_of_another_is_not_taken_for_it(tmp_path: Path) -> None:
    uri = large(tmp_path)
    lance_nb.dataset(uri)
    shutil.rmtree(uri)
    large(tmp_path)
    made = lance_nb.write_dataset(pa.table({"id": [7]}), uri, mode="append")
    assert made.count_rows() == 10 * (MANY + 1) + 1
    made.validate()


def test_indices_stay_when_a_large_manifest_was_opened_before(tmp_path: Path) -> None:
    uri = str(tmp_path / "indexed.lance")
    made = lance_nb.write_dataset(ROWS, uri)
    made.create_scalar_index("id", "BTREE")
    one = made.get_fragments()[0].metadata
    append = lance_nb.LanceOperation.Append([one] * MANY)
    lance_nb.LanceDataset.commit(uri, append, read_version=made.version)
    for _ in range(3):
        forget()  # as in a process of its own
        opened = lance_nb.dataset(uri)
        opened.insert(ROWS)
        assert [one["fields"] for one in lance_nb.dataset(uri).list_indices()] == [["id"]]


def test_appends_one_after_the_other_parse_no_large_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = large(tmp_path)
    lance_nb.write_dataset(ROWS, uri, mode="append")
    for name in ("parse_manifest", "parse_manifest_tail"):
        monkeypatch.setattr(f"lance_nb.table.versions.{name}", None)
    lance_nb.write_dataset(ROWS, uri, mode="append")
    monkeypatch.undo()
    forget()
    assert lance_nb.dataset(uri).count_rows() == 10 * (MANY + 3)


def test_several_threads_may_remember_at_once(tmp_path: Path) -> None:
    data = newest(large(tmp_path))
    found = parse_manifest(data, "x")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def use(thread: int) -> None:
        for at in range(1500):
            cache_manifest(f"small {thread} {at}", b"end", 3, found)
            cache_manifest(f"large {thread} {at}", data, len(data), found)

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(use, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert (len(file_cache._small_manifests), len(file_cache._large_manifests)) == (16, 2)


def test_what_was_found_out_about_columns_is_kept_with_a_cached_manifest(tmp_path):
    uri = str(tmp_path / "rows.lance")
    lance_nb.write_dataset(pa.table({"a": [1, 2], "b": ["x", "y"]}), uri)
    first = lance_nb.dataset(uri)
    assert first.head(1).to_pylist() == [{"a": 1, "b": "x"}]
    again = lance_nb.dataset(uri)
    assert again._snapshot.projections is first._snapshot.projections
    assert again._snapshot.plans is first._snapshot.plans
    assert first._snapshot.plans

    lance_nb.write_dataset(pa.table({"b": [3.0]}), uri, mode="overwrite")
    other = lance_nb.dataset(uri)
    assert other._snapshot.projections is not first._snapshot.projections
    assert other.head(1).to_pylist() == [{"b": 3.0}]
    assert first.head(2).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
