"""Version slots: reading, creating exactly once, and creating under a lock."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import replace

import pytest

from lance_nb.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptFileError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    RetryableCommitConflictError,
    StorageError,
    TooMuchWriteContentionError,
    VersionNotFoundError,
)
from lance_nb.format.layout import DETACHED_BIT, ManifestName, NamingScheme, manifest_path
from lance_nb.format.manifest import Manifest
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.versions import version_names
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import (
    TRIES_MAX,
    LockedSlots,
    StoreSlots,
    VersionSource,
    claim,
    parse_version,
    transaction_uuid,
)
from tests.support.committing import SCHEMA, FakeTime, Table, environment
from tests.support.faulty_store import Fault, FaultyStore, Plan, no_faults, on


@pytest.fixture
def slots() -> StoreSlots:
    return StoreSlots(MemoryStore(uuid.uuid4().hex))


def test_an_empty_folder_has_no_versions(slots: StoreSlots):
    assert slots.latest() is None
    assert slots.list_names() == []


@pytest.mark.parametrize("scheme", NamingScheme)
def test_what_is_created_is_listed_found_and_read(slots: StoreSlots, scheme: NamingScheme):
    for version in (1, 2, 10):
        slots.create(ManifestName(version, scheme), b"m%d" % version, "u")
    assert [one.version for one in slots.list_names()] == [1, 2, 10]
    assert slots.latest() == ManifestName(10, scheme)
    assert bytes(slots.read(ManifestName(2, scheme))) == b"m2"


def test_a_slot_is_created_once(slots: StoreSlots):
    name = ManifestName(1, NamingScheme.V2)
    slots.create(name, b"first", "u")
    with pytest.raises(ObjectExistsError):
        slots.create(name, b"second", "v")
    assert bytes(slots.read(name)) == b"first"


def test_a_detached_version_is_read_but_not_listed(slots: StoreSlots):
    name = ManifestName(DETACHED_BIT | 7, NamingScheme.V2)
    slots.create(name, b"aside", "u")
    assert bytes(slots.read(name)) == b"aside"
    assert slots.home.list_names("_versions") == [f"d{DETACHED_BIT | 7}.manifest"]
    assert slots.latest() is None


def test_a_missing_version_is_reported(slots: StoreSlots):
    with pytest.raises(ObjectNotFoundError):
        slots.read(ManifestName(1, NamingScheme.V2))


def test_leftovers_are_no_versions(slots: StoreSlots):
    for name in ("1.manifest#1", ".tmp-abc", "2.manifest-uuid", "latest_version_hint.json"):
        slots.home.write(f"_versions/{name}", b"")
    assert slots.latest() is None


def test_mixed_names_are_damage(slots: StoreSlots):
    for scheme in NamingScheme:
        slots.home.write(manifest_path(1, scheme), b"")
    with pytest.raises(CorruptFileError, match="naming scheme"):
        slots.latest()


NAME = ManifestName(2, NamingScheme.V2)
OURS, OTHERS = str(uuid.uuid4()), str(uuid.uuid4())


def _manifest(owner: str, *, inline: bool = True) -> bytes:
    transaction = Transaction(1, Append(()), owner)
    found = Manifest(2, SCHEMA, transaction_file=transaction.file_name)
    return found.to_bytes(transaction=transaction.to_bytes() if inline else None)


def _slots(plan: Plan = no_faults) -> StoreSlots:
    return StoreSlots(FaultyStore(MemoryStore(uuid.uuid4().hex), plan))


def _claim(slots: StoreSlots) -> bool:
    return claim(slots, NAME, _manifest(OURS), OURS, environment())


def test_a_free_slot_is_ours_with_one_request():
    slots = _slots()
    assert _claim(slots) is True
    assert [step.method for step in slots.home.steps] == ["write_if_absent"]


@pytest.mark.parametrize("inline", [True, False])
def test_a_slot_of_somebody_else_is_not_ours(inline: bool):
    slots = _slots()
    slots.create(NAME, _manifest(OTHERS, inline=inline), OTHERS)
    assert _claim(slots) is False


def test_a_slot_that_holds_our_transaction_is_ours_whatever_else_is_in_it():
    slots = _slots()
    slots.create(NAME, _manifest(OURS, inline=False), OURS)
    assert _claim(slots) is True


@pytest.mark.parametrize("garbage", [b"", b"garbage" * 10, _manifest(OURS)[:-1]])
def test_a_slot_with_garbage_is_somebody_elses(garbage: bytes):
    slots = _slots()
    slots.create(NAME, garbage, OTHERS)
    assert _claim(slots) is False


def test_an_answer_that_stays_unclear_is_unknown_after_some_waits():
    slots = _slots(on("write_if_absent", "", Fault.UNKNOWN_BEFORE, times=99))
    with pytest.raises(CommitStateUnknownError, match=OURS) as caught:
        _claim(slots)
    assert (caught.value.transaction_uuid, caught.value.version) == (OURS, NAME.version)
    assert len([one for one in slots.home.steps if one.method == "write_if_absent"]) == TRIES_MAX


def test_a_clear_failure_is_reported_as_such_at_once():
    slots = _slots(on("write_if_absent", "", Fault.ERROR_BEFORE))
    with pytest.raises(StorageError):
        _claim(slots)
    assert len(slots.home.steps) == 1


def test_a_read_back_that_fails_is_repeated():
    lost = on("write_if_absent", "", Fault.LOST_REPLY)
    failing = on("read", "", Fault.ERROR_BEFORE)
    assert _claim(_slots(lambda step: lost(step) or failing(step))) is True


def test_the_id_of_a_manifest_without_any_transaction_is_none():
    assert transaction_uuid(Manifest(2, SCHEMA).to_bytes()) is None


def _with_sync(slots: StoreSlots, *, fails: bool) -> list[str]:
    """Let the store sync folders, which it notes; or fail to."""
    synced: list[str] = []

    def sync_folder(folder: str) -> None:
        synced.append(folder)
        if fails:
            raise StorageError(folder, "not confirmed")

    slots.home.sync_folder = sync_folder
    return synced


def test_a_slot_that_is_found_to_be_ours_is_made_durable():
    slots = _slots(on("write_if_absent", "", Fault.LOST_REPLY))
    synced = _with_sync(slots, fails=False)
    assert _claim(slots) is True
    assert synced == ["_versions"]


def test_a_slot_that_is_ours_and_not_durable_is_reported_as_such():
    slots = _slots(on("write_if_absent", "", Fault.LOST_REPLY_REPEATED))
    _with_sync(slots, fails=True)
    with pytest.raises(CommitStateUnknownError, match="every reader sees it") as caught:
        _claim(slots)
    assert (caught.value.transaction_uuid, caught.value.version) == (OURS, NAME.version)


def test_a_slot_that_somebody_else_took_while_ours_was_unclear_is_not_ours():
    slots = _slots(on("write_if_absent", "", Fault.UNKNOWN_BEFORE))
    slots.home.inner.write(NAME.path, _manifest(OTHERS))
    assert _claim(slots) is False


def test_waits_between_unclear_answers_double():
    time = FakeTime()
    slots = _slots(on("write_if_absent", "", Fault.UNKNOWN_BEFORE, times=99))
    with pytest.raises(CommitStateUnknownError):
        claim(slots, NAME, _manifest(OURS), OURS, environment(0, time))
    assert time.slept == pytest.approx([0.1, 0.2, 0.4, 0.8])


def test_a_failure_after_an_unclear_answer_stays_unclear():
    unclear = on("write_if_absent", "", Fault.UNKNOWN_BEFORE)
    failing = on("write_if_absent", "", Fault.ERROR_BEFORE, times=99)
    with pytest.raises(CommitStateUnknownError):
        _claim(_slots(lambda step: unclear(step) or failing(step)))


class _Lock:
    """Records the versions it was called with, and how the block ended."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    @contextmanager
    def __call__(self, version: int):
        try:
            yield
        except CommitConflictError:
            self.seen.append((version, "conflict"))
            raise
        self.seen.append((version, "done"))


class _NoCondition(MemoryStore):
    """A store that cannot create exclusively."""

    def write_if_absent(self, path, data) -> None:
        raise NotSupportedError("no condition")


def test_the_lock_sees_the_conflict_and_is_called_for_the_next_version():
    table, lock = Table(), _Lock()
    table.create()
    others = [lambda: table.append(1)]
    table.root.world.plan = lambda step: (
        others.pop()() and None if step.method == "write_if_absent" and others else None
    )
    assert table.commit(table.appending(1), commit_lock=lock).version == 3
    assert lock.seen == [(2, "conflict"), (3, "done")]


def test_a_lock_that_swallows_the_conflict_does_not_make_it_a_success():
    class Swallowing(_Lock):
        @contextmanager
        def __call__(self, version: int):
            try:
                yield
            except CommitConflictError:
                self.seen.append((version, "swallowed"))

    table, lock = Table(), Swallowing()
    table.create()
    others = [lambda: table.append(1)]
    table.root.world.plan = lambda step: (
        others.pop()() and None if step.method == "write_if_absent" and others else None
    )
    assert table.commit(table.appending(1), commit_lock=lock).version == 3


def test_a_lock_that_refuses_the_version_means_that_it_is_taken():
    @contextmanager
    def refusing(version: int):
        raise CommitConflictError("taken")
        yield

    table = Table()
    table.create()
    with pytest.raises(TooMuchWriteContentionError):
        table.commit(table.appending(1), commit_lock=refusing, max_retries=2)
    assert [one.version for one in version_names(table.inner)] == [1]


def test_other_errors_of_the_lock_are_the_callers():
    @contextmanager
    def broken(version: int):
        raise RuntimeError("lock server is gone")
        yield

    table = Table()
    table.create()
    with pytest.raises(RuntimeError, match="lock server"):
        table.commit(table.appending(1), commit_lock=broken)


def test_with_a_lock_a_store_without_condition_takes_commits():
    table, lock = Table(inner=_NoCondition(uuid.uuid4().hex)), _Lock()
    with pytest.raises(NotSupportedError):
        table.commit(table.creating())
    table.commit(table.creating(), commit_lock=lock)
    table.commit(table.appending(1), commit_lock=lock)
    table.commit(table.appending(1), commit_lock=lock)
    assert [one.version for one in version_names(table.inner)] == [1, 2, 3]


def test_what_is_locked_reads_as_without_the_lock():
    table = Table()
    table.create()
    table.append(1)
    slots = StoreSlots(table.inner)
    locked = LockedSlots(slots)
    newest = locked.latest()
    assert locked.home is table.inner
    assert newest == slots.latest()
    assert newest is not None
    assert newest.version == 2
    assert locked.list_names() == slots.list_names()
    assert bytes(locked.read(newest)) == bytes(slots.read(newest))


def test_without_condition_a_taken_slot_is_seen_by_looking():
    table = Table(inner=_NoCondition(uuid.uuid4().hex))
    locked = LockedSlots(StoreSlots(table.inner))
    name = ManifestName(1, NamingScheme.V2)
    locked.create(name, b"first", "u")
    with pytest.raises(ObjectExistsError):
        locked.create(name, b"second", "v")
    assert bytes(locked.read(name)) == b"first"


def test_under_a_lock_two_writers_still_get_two_versions():
    table, lock = Table(inner=_NoCondition(uuid.uuid4().hex)), _Lock()
    table.commit(table.creating(), commit_lock=lock)
    source = table.appending(1)
    others = [lambda: table.commit(table.appending(1), commit_lock=_Lock())]
    table.root.world.plan = lambda step: (
        others.pop()() and None if "_transactions" in step.path and others else None
    )
    assert table.commit(source, commit_lock=lock).version == 3
    assert lock.seen == [(1, "done"), (2, "conflict"), (3, "done")]


def _table(**more) -> Table:
    table = Table()
    table.create(**more)
    table.append(1)
    return table


def test_a_version_is_read_once():
    table = _table()
    source = VersionSource(table.place.slots)
    source.head(0)
    assert source.load(2) is source.load(2)
    assert source.transaction(2).operation.arm == "append"
    assert [step.method for step in table.root.steps] == ["list_names", "read_tail"]


@pytest.mark.parametrize("v2", [True, False])
def test_a_version_that_listings_do_not_show_yet_counts(v2: bool):
    table = _table(enable_v2_manifest_paths=v2)
    scheme = NamingScheme.V2 if v2 else NamingScheme.V1
    table.root.world.plan = on("list_names", "", Fault.EMPTY_LIST, times=9)
    assert VersionSource(table.place.slots).head(2) == ManifestName(2, scheme)
    assert VersionSource(table.place.slots).head(0) is None
    assert VersionSource(table.place.slots).head(9) is None


@pytest.mark.parametrize("v2", [True, False])
def test_a_version_is_read_before_anybody_asked_for_the_newest(v2: bool):
    table = _table(enable_v2_manifest_paths=v2)
    assert VersionSource(table.place.slots).load(1).manifest.version == 1


def test_nothing_is_the_head_of_nothing():
    assert VersionSource(Table().place.slots).head(0) is None
    assert not VersionSource(Table().place.slots).has(1)


def test_a_version_that_cannot_be_loaded_is_reported():
    source = VersionSource(_table().place.slots)
    with pytest.raises(VersionNotFoundError, match="7"):
        source.load(7)


def test_a_manifest_with_another_number_is_damage():
    table = _table()
    data = table.inner.read("_versions/18446744073709551613.manifest")
    with pytest.raises(CorruptFileError, match="version 3"):
        parse_version(data, ManifestName(3, NamingScheme.V2), "x")


def test_a_manifest_with_unknown_reader_flags_is_refused():
    made = _table().append(2)
    data = replace(made.manifest, reader_feature_flags=1 << 50).to_bytes()
    with pytest.raises(NotSupportedError):
        parse_version(data, ManifestName(3, NamingScheme.V2), "x")


def test_versions_of_a_distant_store_are_read_ahead_and_missing_ones_are_left_to_load():
    table = Table()
    table.create()
    for version in (1, 2, 3):
        table.append(version)

    class Distant(FaultyStore):
        scheme = "s3"

    distant = Distant(table.inner)
    source = VersionSource(StoreSlots(distant))
    source.head(1)
    source.load_ahead(range(2, 7))
    read = len(distant.steps)
    assert [source.load(version).manifest.version for version in (2, 3, 4)] == [2, 3, 4]
    assert len(distant.steps) == read
    with pytest.raises(VersionNotFoundError):
        source.load(5)


def test_a_transaction_that_nobody_recorded_is_not_known():
    table = _table()
    name = ManifestName(3, NamingScheme.V2)
    table.inner.write(name.path, Manifest(3, SCHEMA).to_bytes())
    source = VersionSource(table.place.slots)
    source.head(3)
    with pytest.raises(RetryableCommitConflictError, match="its writer recorded no transaction"):
        source.transaction(3)
    with pytest.raises(RetryableCommitConflictError, match="removed in the meantime"):
        source.transaction(9)


def test_a_transaction_is_read_from_its_file_where_the_manifest_holds_none():
    table = _table()
    transaction = table.appending(2)
    manifest = Manifest(3, SCHEMA, transaction_file=transaction.file_name)
    table.inner.write(ManifestName(3, NamingScheme.V2).path, manifest.to_bytes())
    source = VersionSource(table.place.slots)
    source.head(3)
    with pytest.raises(RetryableCommitConflictError, match=f"{transaction.file_name} is gone"):
        source.transaction(3)
    table.inner.write(f"_transactions/{transaction.file_name}", transaction.to_bytes())
    assert source.transaction(3) == transaction


@pytest.mark.parametrize(
    ("gone", "first", "found"),
    [((), 2, [2, 3, 4]), ((2,), 2, [3, 4]), ((2, 3), 1, [1, 4]), ((), 4, [4]), ((), 5, [])],
)
def test_versions_that_were_cleaned_up_are_left_out(
    gone: tuple[int, ...], first: int, found: list[int]
):
    table = _table()
    for version in (2, 3):
        table.append(version)
    for version in gone:
        table.inner.delete(ManifestName(version, NamingScheme.V2).path)
    source = VersionSource(table.place.slots)
    head = source.head(4)
    assert head is not None
    assert list(source.present_versions(first, head)) == found
