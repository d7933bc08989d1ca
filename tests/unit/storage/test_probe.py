"""The probe tells stores that create exclusively from those that only seem to."""

from __future__ import annotations

import threading

import pytest

from lance_nb.errors import NotSupportedError, ObjectExistsError, StorageError
from lance_nb.storage import probe
from lance_nb.storage.memory import MemoryStore, clear
from lance_nb.storage.probe import RACERS, Scratch, find_fault, require_exclusive


@pytest.fixture
def store():
    probe.forget()
    clear("probe")
    yield MemoryStore("probe")
    clear("probe")
    probe.forget()


def scratch(store: MemoryStore, create=None) -> Scratch:
    return Scratch(create or store.write_if_absent, store.read, store.delete, "_versions")


def test_a_store_that_creates_exclusively_passes_and_is_left_clean(store: MemoryStore):
    assert find_fault(scratch(store)) == ""
    assert store.list_recursive("") == []


def test_a_store_that_replaces_is_found_out(store: MemoryStore):
    assert "replaced an object" in find_fault(scratch(store, store.write))
    assert store.list_recursive("") == []


def test_a_store_that_looks_first_and_writes_then_is_found_out(store: MemoryStore):
    together = threading.Barrier(RACERS)

    def look_then_write(path: str, data: bytes) -> None:
        if store.exists(path):
            raise ObjectExistsError(path)
        if data.startswith(b"racer"):
            together.wait(10)
        store.write(path, data)

    assert f"{RACERS} of {RACERS}" in find_fault(scratch(store, look_then_write))


def test_a_store_whose_winner_is_not_what_is_kept_is_found_out(store: MemoryStore):
    def swapped(path: str, data: bytes) -> None:
        store.write_if_absent(path, data if data == b"first" else b"something else")

    assert "not the one" in find_fault(scratch(store, swapped))


def test_a_lost_reply_is_no_fault(store: MemoryStore):
    def lost(path: str, data: bytes) -> None:
        store.write_if_absent(path, data)
        raise ObjectExistsError(path)

    assert find_fault(scratch(store, lost)) == ""


def test_a_store_that_refuses_everything_is_found_out(store: MemoryStore):
    def refuse(path: str, data: bytes) -> None:
        raise ObjectExistsError(path)

    assert find_fault(scratch(store, refuse))


def test_the_answer_is_kept_and_names_the_way_out(store: MemoryStore):
    tries = []

    def replace(path: str, data: bytes) -> None:
        tries.append(path)
        store.write(path, data)

    for _ in range(2):
        with pytest.raises(NotSupportedError, match="manifest_store"):
            require_exclusive("bad place", scratch(store, replace))
    assert len(tries) == 2


def test_a_probe_that_could_not_be_made_is_made_again(store: MemoryStore):
    def down(path: str, data: bytes) -> None:
        raise StorageError(path, "no route", "unknown")

    with pytest.raises(StorageError):
        require_exclusive("place", scratch(store, down))
    require_exclusive("place", scratch(store))


def test_threads_that_begin_together_share_one_probe(store: MemoryStore):
    made = []

    def create(path: str, data: bytes) -> None:
        made.append(path)
        store.write_if_absent(path, data)

    wanted = [
        threading.Thread(target=require_exclusive, args=("place", scratch(store, create)))
        for _ in range(4)
    ]
    for thread in wanted:
        thread.start()
    for thread in wanted:
        thread.join()
    assert len(made) == 2 + RACERS
