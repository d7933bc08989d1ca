"""A store with a manifest store in front: everything but manifests passes through."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import pytest

from lance_nb.errors import NotSupportedError, ObjectExistsError
from lance_nb.storage.local import LocalStore
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions.external.synchronised_store import SynchronisedStore, synchronised
from lance_nb.transactions.ref_writer import Replacing
from lance_nb.transactions.version_slots import SlotKeeper
from tests.conformance.store_tests import StoreTests
from tests.support.external_table import ExternalTable, MemoryEntries
from tests.support.faulty_store import Fault, FaultyStore, on


class ScratchStore(SynchronisedStore):
    """Without the guard over manifests, which the tests of plain stores create by name."""

    def write_if_absent(self, path: str, data: bytes) -> None:
        self._inner.write_if_absent(path, data)


class TestOverMemory(StoreTests):
    @pytest.fixture
    def store(self) -> SynchronisedStore:
        return ScratchStore(MemoryStore(uuid.uuid4().hex), MemoryEntries(), "t")


class TestOverFiles(StoreTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> SynchronisedStore:
        return ScratchStore(LocalStore(str(tmp_path)), MemoryEntries(), "t")


@pytest.fixture
def store() -> SynchronisedStore:
    return SynchronisedStore(MemoryStore(uuid.uuid4().hex), MemoryEntries(), "a/t")


def test_listing_versions_finishes_the_newest():
    table = ExternalTable(MemoryEntries())
    table.create()
    for listing in ("list", "list_names"):
        table.root.world.plan = on("put_if_not_exists", "entries", Fault.CRASH_AFTER)
        with pytest.raises(BaseException, match="put_if_not_exists"):
            table.commit(table.appending(1))
        before = [name for name in table.inner.list_names("_versions") if "-" in name]
        assert len(before) == 1
        found = getattr(table.reader, listing)("_versions/")
        assert not [one for one in found if "-" in getattr(one, "name", one)]


def test_manifests_are_not_created_by_name(store: SynchronisedStore):
    with pytest.raises(NotSupportedError, match="memory entries"):
        store.write_if_absent("_versions/2.manifest", b"x")
    store.write_if_absent("_versions/other", b"x")


def test_refs_are_created_also_where_the_store_cannot_do_it_exclusively():
    class Plain(MemoryStore):
        def write_if_absent(self, path: str, data: bytes) -> None:
            raise NotSupportedError("no exclusive create")

    store = SynchronisedStore(Plain(uuid.uuid4().hex), MemoryEntries(), "t")
    store.write_if_absent("_refs/tags/v1.json", b"first")
    with pytest.raises(ObjectExistsError):
        store.write_if_absent("_refs/tags/v1.json", b"second")
    assert bytes(store.read("_refs/tags/v1.json")) == b"first"


def test_a_branch_has_entries_of_its_own(store: SynchronisedStore):
    assert isinstance(store, SlotKeeper)
    assert store.manifest_slots().base_uri == "a/t"
    assert store.child("tree/team/x").manifest_slots().base_uri == "a/t/tree/team/x"


def test_records_are_replaced_in_one_step_where_the_store_can():
    store = synchronised(MemoryStore(uuid.uuid4().hex), MemoryEntries(), "t").child("a")
    assert isinstance(store, Replacing)
    store.write("x", b"1")
    assert not store.replace("x", b"0", b"2")
    assert store.replace("x", b"1", b"2")
    assert bytes(store.read("x")) == b"2"
    plain = FaultyStore(MemoryStore(uuid.uuid4().hex))
    without = type("Without", (), {"uri": "x", "scheme": "x"})()
    assert isinstance(synchronised(plain, MemoryEntries(), "t"), Replacing)
    assert not isinstance(synchronised(without, MemoryEntries(), "t"), Replacing)


def test_it_is_not_pickled(store: SynchronisedStore):
    with pytest.raises(NotSupportedError):
        pickle.dumps(store)
