"""The store in front of which a manifest store stands, and its version slots."""

from __future__ import annotations

import logging
import pickle
import uuid
from pathlib import Path

import pytest

from lance_nb.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.format.layout import DETACHED_BIT, ManifestName, NamingScheme
from lance_nb.storage.local import LocalStore
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.versions import load_latest, version_names
from lance_nb.transactions.external.base import ManifestEntry
from lance_nb.transactions.external.synchronised_store import (
    ExternalSlots,
    SynchronisedStore,
    synchronised,
)
from lance_nb.transactions.ref_writer import Replacing
from lance_nb.transactions.version_slots import SlotKeeper, slots_of
from tests.conformance.external_commit_tests import ExternalCommitTests, disturb_everything
from tests.conformance.manifest_store_tests import ManifestStoreTests
from tests.conformance.store_tests import StoreTests
from tests.support.committing import file_names
from tests.support.external_table import ExternalTable, MemoryEntries
from tests.support.faulty_store import Fault, FaultyStore, on

V2 = ManifestName(2, NamingScheme.V2)


class TestTheModel(ManifestStoreTests):
    @pytest.fixture
    def entries(self) -> MemoryEntries:
        return MemoryEntries()


class TestCommits(ExternalCommitTests):
    @pytest.fixture
    def entries(self) -> MemoryEntries:
        return MemoryEntries()


@pytest.fixture
def table() -> ExternalTable:
    """A table of one version."""
    made = ExternalTable(MemoryEntries())
    made.create()
    return made


def staged_only(table: ExternalTable) -> ManifestEntry:
    """Commit version 2 up to the second step; return its entry."""
    table.root.world.plan = on("put_if_not_exists", "entries", Fault.CRASH_AFTER)
    with pytest.raises(BaseException, match="put_if_not_exists"):
        table.commit(table.appending(1, "mine"))
    found = table.entries.get(table.base, 2)
    assert found is not None
    assert found.is_staged
    return found


def test_every_step_of_a_commit_disturbed_in_every_way():
    told = disturb_everything(MemoryEntries())
    assert sum(told.values()) == 110
    assert set(told) == {"committed", "crashed", "failed"}


def test_an_outcome_that_cannot_be_found_out_is_unknown_and_nothing_is_deleted(
    table: ExternalTable,
):
    down = on("get", "entries/2", Fault.UNKNOWN_BEFORE, times=99)
    lost = on("put_if_not_exists", "entries/2", Fault.LOST_REPLY)
    table.root.world.plan = lambda step: down(step) or lost(step)
    transaction = table.appending(1, "mine")
    with pytest.raises(CommitStateUnknownError, match=transaction.uuid):
        table.commit(transaction)
    assert not [step for step in table.root.steps if step.method == "delete"]
    table.root.world.plan = lambda _step: None
    assert table.commit(transaction).version == 2
    assert file_names(table.append(1, "other"))[1:] == ["mine.lance", "other.lance"]


def test_a_manifest_store_that_stays_away_fails_commits_and_readers(table: ExternalTable):
    table.root.world.plan = lambda step: (
        Fault.UNKNOWN_BEFORE if step.path.startswith("entries") else None
    )
    with pytest.raises(StorageError):
        table.commit(table.appending(1, "mine"))
    with pytest.raises(StorageError):
        load_latest(table.guarded)
    assert load_latest(table.inner).version == 1


def test_a_store_without_a_manifest_store_keeps_its_own_slots(table: ExternalTable):
    assert isinstance(slots_of(table.reader), ExternalSlots)
    assert isinstance(slots_of(table.reader.child("tree/b")), ExternalSlots)
    assert not isinstance(slots_of(table.inner), ExternalSlots)


def test_who_knows_nothing_sees_the_version_before_until_somebody_reads(table: ExternalTable):
    staged_only(table)
    assert load_latest(table.inner).version == 1
    assert load_latest(table.reader).version == 2
    assert load_latest(table.inner).version == 2
    assert not [name for name in table.inner.list_names("_versions") if "manifest-" in name]


def test_a_version_that_is_asked_for_by_number_is_finished(table: ExternalTable):
    staged_only(table)
    data = table.sound.slots.read(V2)
    assert bytes(data) == bytes(table.inner.read(V2.path))
    with pytest.raises(ObjectNotFoundError):
        table.sound.slots.read(ManifestName(3, NamingScheme.V2))


@pytest.mark.parametrize("method", ["read", "write"])
def test_a_version_that_cannot_be_put_in_place_is_not_loaded(table: ExternalTable, method: str):
    staged_only(table)
    table.root.world.plan = on(method, ".manifest", Fault.ERROR_BEFORE, times=9)
    with pytest.raises(StorageError):
        load_latest(table.guarded)
    table.root.world.plan = lambda _step: None
    assert load_latest(table.guarded).version == 2


def test_an_entry_that_cannot_be_changed_is_a_matter_for_the_log(table, caplog):
    staged_only(table)
    table.root.world.plan = on("put_if_exists", "entries", Fault.UNKNOWN_BEFORE)
    with caplog.at_level(logging.WARNING):
        assert load_latest(table.guarded).version == 2
    assert "in place but not noted" in caplog.text
    assert table.entries.get(table.base, 2).is_staged
    assert load_latest(table.inner).version == 2
    assert load_latest(table.reader).version == 2
    assert not table.entries.get(table.base, 2).is_staged


def test_a_commit_that_cannot_be_put_in_place_has_landed(table: ExternalTable, caplog):
    table.root.world.plan = on("write", V2.path, Fault.ERROR_BEFORE, skip=1)
    with caplog.at_level(logging.WARNING):
        assert table.commit(table.appending(1, "mine")).version == 2
    assert "next reader" in caplog.text
    assert file_names(table.append(1, "other"))[1:] == ["mine.lance", "other.lance"]


def test_a_staged_manifest_of_another_size_is_refused(table: ExternalTable):
    entry = staged_only(table)
    table.inner.write(entry.object_path, b"x" * 300)
    with pytest.raises(CorruptFileError, match="300 bytes"):
        load_latest(table.reader)
    assert load_latest(table.inner).version == 1


def test_a_staged_object_that_is_no_manifest_is_refused(table: ExternalTable):
    entry = staged_only(table)
    table.inner.write(entry.object_path, b"x" * (entry.size_bytes or 0))
    with pytest.raises(CorruptFileError, match="LANC"):
        load_latest(table.reader)


def test_a_staged_manifest_that_is_gone_is_refused(table: ExternalTable):
    table.inner.delete(staged_only(table).object_path)
    with pytest.raises(CorruptFileError, match="no file"):
        load_latest(table.reader)


def test_a_staged_manifest_that_somebody_else_put_in_place_is_accepted(table: ExternalTable):
    entry = staged_only(table)
    table.inner.write(V2.path, table.inner.read(entry.object_path))
    table.inner.delete(entry.object_path)
    assert load_latest(table.reader).version == 2
    assert not table.entries.get(table.base, 2).is_staged


def test_a_newest_manifest_that_is_gone_is_reported(table: ExternalTable):
    table.append(1)
    table.inner.delete(V2.path)
    with pytest.raises(CorruptFileError, match="version 2"):
        load_latest(table.reader)


def test_a_newest_manifest_that_the_list_lacks_is_found_by_its_entry(table: ExternalTable):
    slots = slots_of(table.guarded)
    assert slots.latest() == ManifestName(1, NamingScheme.V2)
    listed = dict(table.root.world.listed)
    table.append(1)
    table.root.world.listed.update(listed)
    table.root.world.plan = on("list_names", "_versions", Fault.STALE_LIST, times=99)
    assert slots.latest() == V2


def test_a_dataset_that_was_deleted_is_gone_and_its_place_must_be_freed(table: ExternalTable):
    for info in table.inner.list_recursive(""):
        table.inner.delete(info.name)
    assert table.sound.slots.latest() is None
    with pytest.raises(StorageError, match="forget"):
        table.create()
    table.entries.forget(table.base)
    assert table.create().version == 1


def test_a_version_of_a_writer_who_knows_nothing_is_not_overwritten(table: ExternalTable):
    plain = ExternalTable(MemoryEntries(), inner=table.inner)
    plain.append(1, "foreign")
    assert load_latest(table.reader).version == 2
    made = table.commit(table.appending(1, "mine"))
    assert made.version == 3
    assert file_names(made)[1:] == ["foreign.lance", "mine.lance"]


def test_two_histories_in_one_folder_are_refused(table: ExternalTable):
    staged_only(table)
    ExternalTable(MemoryEntries(), inner=table.inner).append(1, "foreign")
    with pytest.raises(CorruptFileError, match="without the manifest store"):
        load_latest(table.reader)


@pytest.mark.parametrize(
    "path",
    [
        "t/_versions/3.manifest-12345678-1234-1234-1234-123456789abc",
        "t/elsewhere/2.manifest-12345678-1234-1234-1234-123456789abc",
        "t/_versions/../../x/2.manifest",
        "2.manifest",
        "",
        "t/_versions/2.manifest/..",
        f"t/_versions/d{DETACHED_BIT}.manifest",
    ],
)
def test_an_entry_with_a_foreign_path_is_refused(table: ExternalTable, path: str):
    table.entries.rows[table.base, 2] = ManifestEntry(2, path, 10)
    with pytest.raises(CorruptFileError):
        load_latest(table.reader)


def test_a_dataset_that_was_there_before_the_manifest_store_goes_on():
    old = ExternalTable(MemoryEntries())
    old.create()
    old.append(1)
    moved = ExternalTable(MemoryEntries(), inner=old.inner)
    assert load_latest(moved.reader).version == 2
    assert moved.commit(moved.appending(2)).version == 3
    assert moved.entries.get(moved.base, 3) is not None


def test_detached_versions_need_no_entry(table: ExternalTable):
    name = ManifestName(DETACHED_BIT + 5, NamingScheme.V2)
    slots = table.sound.slots
    slots.create(name, b"manifest", uuid.uuid4().hex)
    with pytest.raises(ObjectExistsError):
        slots.create(name, b"other", uuid.uuid4().hex)
    assert bytes(slots.read(name)) == b"manifest"
    assert table.entries.get(table.base, name.version) is None
    assert [one.version for one in slots.list_names()] == [1]


def test_names_of_the_old_scheme_are_kept():
    table = ExternalTable(MemoryEntries())
    table.create(enable_v2_manifest_paths=False)
    table.append(1)
    assert [one.scheme for one in version_names(table.inner)] == [NamingScheme.V1] * 2
    assert table.entries.get(table.base, 2).object_path == "_versions/2.manifest"


def test_an_empty_place_has_no_versions():
    slots = ExternalTable(MemoryEntries(), inner=MemoryStore(uuid.uuid4().hex)).sound.slots
    assert slots.latest() is None
    assert slots.list_names() == []


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
