from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lance_nb.errors import CorruptFileError, ObjectNotFoundError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFileType
from lance_nb.table.deletions import (
    LiveSpan,
    fragment_deletions,
    live_span,
    load_deletions,
    physical_rows,
    read_deletions,
    with_deletions,
)
from lance_nb.table.file_cache import DeletionCache
from tests.golden.copies import copy_to_memory
from tests.golden.opening import WatchedStore, snapshot_of


def deletions(snapshot, number):
    fragment = snapshot.manifest.fragments[number]
    return read_deletions(snapshot.locations, snapshot.deletions, fragment, fragment.physical_rows)


def test_both_kinds_of_deletion_files_are_read(at):
    snapshot = at(5)
    kinds = [
        one.deletion_file and one.deletion_file.file_type for one in snapshot.manifest.fragments
    ]
    assert kinds == [DeletionFileType.ARROW, None, DeletionFileType.BITMAP]
    assert deletions(snapshot, 0).offsets().tolist() == [4, 13, 22, 31]
    assert deletions(snapshot, 1) is None
    assert len(deletions(snapshot, 2)) == 5019


def test_a_deletion_file_is_read_once(history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 5)
    store.forget()
    first = deletions(snapshot, 0)
    assert deletions(snapshot, 0) is first
    assert sum(store.reads.values()) == 1


def test_a_missing_deletion_file_is_named_with_its_fragment():
    store = copy_to_memory("history")
    for info in store.list("_deletions"):
        store.delete(f"_deletions/{info.name}")
    with pytest.raises(ObjectNotFoundError, match=r"_deletions/0-2-.*needed by fragment 0"):
        deletions(snapshot_of(store, 5), 0)


@pytest.mark.parametrize(("number", "count"), [(0, 4), (2, 5019)])
def test_a_deletion_file_must_hold_as_many_rows_as_the_manifest_says(at, number, count):
    snapshot = at(5)
    fragment = snapshot.manifest.fragments[number]
    assert fragment.deletion_file.num_deleted_rows == count

    def read(claimed):
        file = replace(fragment.deletion_file, num_deleted_rows=claimed)
        other = replace(fragment, deletion_file=file)
        return read_deletions(snapshot.locations, DeletionCache(), other, fragment.physical_rows)

    for claimed in (count - 1, count + 1):
        with pytest.raises(CorruptFileError, match=f"{claimed} deleted rows, as the manifest says"):
            read(claimed)
    assert len(read(0)) == count  # releases of 2023 wrote no count


def test_the_cache_forgets_what_was_used_longest_ago():
    made = {name: DeletionVector.of([number]) for number, name in enumerate("abc")}
    cache = DeletionCache(bytes_max=2 * made["a"].size_bytes)
    cache.put(("s", "a"), made["a"])
    cache.put(("s", "b"), made["b"])
    assert cache.get(("s", "a")) is made["a"]
    cache.put(("s", "c"), made["c"])
    assert cache.get(("s", "b")) is None
    assert cache.get(("s", "a")) is made["a"]
    assert cache.get(("other", "a")) is None
    assert cache.length(("s", "b")) == 1  # counts take little room


def test_the_cache_is_bounded_by_bytes_and_keeps_the_newest_vector():
    small, large = DeletionVector.of([1, 2]), DeletionVector.of(range(100))
    cache = DeletionCache(bytes_max=50)
    cache.put(("s", "a"), small)
    assert cache.size_bytes() == small.size_bytes == 8
    cache.put(("s", "a"), small)
    assert cache.size_bytes() == 8
    cache.put(("s", "b"), large)
    assert cache.get(("s", "a")) is None
    assert cache.get(("s", "b")) is large
    assert cache.size_bytes() == large.size_bytes


def test_deletion_files_are_loaded_together_and_once(history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 5)
    fragments = snapshot.manifest.fragments
    store.forget()
    load_deletions(snapshot, fragments)
    names = [fragments[n].deletion_file.location(fragments[n].id) for n in (0, 2)]
    assert store.reads == dict.fromkeys(names, 1)
    assert [fragment.id for fragment in with_deletions(snapshot, fragments)] == [0, 1, 2]
    assert len(fragment_deletions(snapshot, fragments[2])) == 5019
    assert fragment_deletions(snapshot, fragments[1]) is None
    assert store.reads == dict.fromkeys(names, 1)


def test_few_deletion_files_are_read_for_the_first_fragments(history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 5)
    store.forget()
    next(with_deletions(snapshot, snapshot.manifest.fragments))
    assert sum(store.reads.values()) == 1


@pytest.mark.parametrize("number", [0, 2])
def test_a_damaged_deletion_file_is_refused_by_every_read(number):
    store = copy_to_memory("history")
    fragment = snapshot_of(store, 5).manifest.fragments[number]
    path = fragment.deletion_file.location(fragment.id)
    data = bytes(store.read(path))
    for broken in (b"", data[:-20], data[: len(data) // 2]):
        store.write(path, broken)
        for read in (load_deletions, lambda *both: list(with_deletions(*both))):
            snapshot = snapshot_of(store, 5)
            with pytest.raises(CorruptFileError, match="_deletions"):
                read(snapshot, snapshot.manifest.fragments)


def test_a_large_number_of_rows_is_confirmed_before_anything_is_allocated(at):
    snapshot = at(5)
    fragment = replace(snapshot.manifest.fragments[0], physical_rows=2**45)
    with pytest.raises(CorruptFileError, match="35184372088832 rows, as the manifest says"):
        fragment_deletions(snapshot, fragment)


def rows_of(span: LiveSpan) -> list[int]:
    every = np.arange(span.start, span.stop)
    return (every if span.mask is None else every[span.mask]).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_live_positions_turn_into_physical_offsets(seed):
    rng = np.random.default_rng(seed)
    num_rows = int(rng.integers(1, 400))
    deleted = np.flatnonzero(rng.random(num_rows) < rng.choice([0.02, 0.5, 0.98]))
    vector = DeletionVector.of(deleted.tolist())
    live = np.setdiff1d(np.arange(num_rows), deleted)
    positions = rng.permutation(live.size)
    assert physical_rows(vector, positions).tolist() == live[positions].tolist()
    for _ in range(20 if live.size else 0):
        start = int(rng.integers(0, live.size))
        stop = int(rng.integers(start + 1, live.size + 1))
        assert rows_of(live_span(vector, start, stop, num_rows)) == live[start:stop].tolist()


def test_a_window_costs_as_much_as_itself_and_not_as_the_fragment():
    vector = DeletionVector.of([0, 5, 2**24 - 2])
    assert rows_of(live_span(vector, 0, 4, 2**24)) == [1, 2, 3, 4]
    assert rows_of(live_span(vector, 2**24 - 8, 2**24 - 6, 2**24)) == [2**24 - 6, 2**24 - 5]
