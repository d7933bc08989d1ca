from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError, ObjectNotFoundError
from lance_nb.table.file_cache import FileCache
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
