from __future__ import annotations

import uuid

import pytest

from lance_nb.errors import (
    CommitStateUnknownError,
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    RefConflictError,
    StorageError,
)
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions import ref_record
from lance_nb.transactions.ref_record import create_record, delete_record, replace_record
from tests.support.faulty_store import Fault, FaultyStore, on

PATH = "_refs/tags/v1.json"


class _InSteps(MemoryStore):
    """A store that cannot compare and replace in one step."""

    replace = None


def _store(plan=None, kind=MemoryStore):
    inner = kind(uuid.uuid4().hex)
    return inner if plan is None else FaultyStore(inner, plan)


def test_a_record_is_created_once():
    store = _store()
    create_record(store, PATH, b"mine", "tag 'v1'")
    with pytest.raises(RefConflictError, match="tag 'v1' already exists"):
        create_record(store, PATH, b"other", "tag 'v1'")
    assert bytes(store.read(PATH)) == b"mine"


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REPLY_REPEATED])
def test_a_record_whose_creation_was_reported_failed_is_recognised(fault: Fault):
    store = _store(on("write_if_absent", "", fault))
    create_record(store, PATH, b"mine", "tag")
    assert bytes(store.read(PATH)) == b"mine"


@pytest.mark.parametrize(
    ("fault", "told"),
    [(Fault.ERROR_BEFORE, StorageError), (Fault.UNKNOWN_BEFORE, CommitStateUnknownError)],
    ids=["failed", "unknown"],
)
def test_a_record_that_is_not_there_is_not_reported_created(fault: Fault, told: type):
    store = _store(on("write_if_absent", "", fault))
    with pytest.raises(told):
        create_record(store, PATH, b"mine", "tag")
    assert not store.exists(PATH)


@pytest.mark.parametrize("kind", [MemoryStore, _InSteps])
def test_a_record_is_replaced_if_nobody_changed_it(kind):
    store = _store(kind=kind)
    store.write(PATH, b"old")
    replace_record(store, PATH, b"old", b"new", "tag")
    with pytest.raises(RefConflictError, match="changed by another process"):
        replace_record(store, PATH, b"old", b"newer", "tag")
    assert bytes(store.read(PATH)) == b"new"
    with pytest.raises(ObjectNotFoundError):
        replace_record(store, "_refs/tags/x.json", b"old", b"new", "tag")


def test_a_change_that_was_overwritten_in_between_is_told():
    inner = _InSteps(uuid.uuid4().hex)
    inner.write(PATH, b"old")

    class Overwriting(_InSteps):
        def write(self, path, data) -> None:
            super().write(path, data)
            super().write(path, b"somebody else's")

    store = Overwriting(inner.uri.removeprefix("memory://"))
    with pytest.raises(RefConflictError):
        replace_record(store, PATH, b"old", b"new", "tag")


def test_deleting_tells_whether_there_was_one():
    store = _store()
    store.write(PATH, b"1")
    assert delete_record(store, PATH, "tag") is True
    assert delete_record(store, PATH, "tag") is False


def test_a_record_that_cannot_be_read_back_is_of_unknown_outcome():
    store = _store(_plans(on("write_if_absent", "", Fault.LOST_REPLY), on("read", "", ERROR)))
    with pytest.raises(CommitStateUnknownError, match="whether tag was created is unknown"):
        create_record(store, PATH, b"mine", "tag")
    assert bytes(store.inner.read(PATH)) == b"mine"


@pytest.mark.parametrize("kind", [MemoryStore, _InSteps], ids=["in one step", "in two"])
def test_a_change_whose_reply_was_lost_is_recognised(kind):
    store = _changing(kind, Fault.LOST_REPLY)
    replace_record(store, PATH, b"old", b"new", "tag")
    assert bytes(store.inner.read(PATH)) == b"new"


@pytest.mark.parametrize("kind", [MemoryStore, _InSteps], ids=["in one step", "in two"])
@pytest.mark.parametrize("fault", [Fault.UNKNOWN_BEFORE, Fault.ARRIVES_LATER])
def test_a_change_that_may_still_arrive_is_of_unknown_outcome(kind, fault: Fault):
    store = _changing(kind, fault)
    with pytest.raises(CommitStateUnknownError, match="whether tag was changed is unknown"):
        replace_record(store, PATH, b"old", b"new", "tag")


@pytest.mark.parametrize("kind", [MemoryStore, _InSteps], ids=["in one step", "in two"])
def test_a_change_that_failed_is_told_as_such(kind):
    store = _changing(kind, Fault.ERROR_BEFORE)
    with pytest.raises(StorageError):
        replace_record(store, PATH, b"old", b"new", "tag")
    assert bytes(store.inner.read(PATH)) == b"old"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault.LOST_REPLY, None),
        (Fault.UNKNOWN_BEFORE, CommitStateUnknownError),
        (Fault.ERROR_BEFORE, StorageError),
    ],
    ids=["lost reply", "unknown", "failed"],
)
def test_a_deletion_is_looked_after_when_its_reply_was_lost(fault: Fault, told: type | None):
    store = _store(on("delete", "", fault))
    store.inner.write(PATH, b"1")
    if told is None:
        assert delete_record(store, PATH, "tag") is True
    else:
        with pytest.raises(told):
            delete_record(store, PATH, "tag")
    assert store.inner.exists(PATH) is (told is not None)


class _Unsynced(MemoryStore):
    """A store whose writes land and are not confirmed by the disk."""

    def write_if_absent(self, path, data) -> None:
        super().write_if_absent(path, data)
        raise StorageError(path, "not confirmed", "unsynced")

    def replace(self, path, expected, data) -> bool:
        super().replace(path, expected, data)
        raise StorageError(path, "not confirmed", "unsynced")


class _LosesReplies(MemoryStore):
    """A store that says that a name is taken by what it has just written; cannot sync folders."""

    def write_if_absent(self, path, data) -> None:
        super().write_if_absent(path, data)
        raise ObjectExistsError(path)

    def sync_folder(self, folder) -> None:
        raise StorageError(folder, "not confirmed")


def test_a_record_that_the_disk_did_not_confirm_is_told_as_such():
    store = _Unsynced(uuid.uuid4().hex)
    with pytest.raises(CommitStateUnknownError, match="created and everybody sees it"):
        create_record(store, PATH, b"mine", "tag")
    with pytest.raises(CommitStateUnknownError, match="changed and everybody sees it"):
        replace_record(store, PATH, b"mine", b"new", "tag")
    assert bytes(store.read(PATH)) == b"new"


def test_a_record_that_is_found_to_be_ours_is_synced():
    store = _LosesReplies(uuid.uuid4().hex)
    with pytest.raises(CommitStateUnknownError, match="everybody sees it"):
        create_record(store, PATH, b"mine", "tag")


ERROR = Fault.ERROR_BEFORE


def _plans(*plans):
    return lambda step: next(filter(None, (plan(step) for plan in plans)), None)


def _changing(kind, fault: Fault) -> FaultyStore:
    method = "write" if kind is _InSteps else "replace"
    store = _FaultyInSteps if kind is _InSteps else FaultyStore
    made = store(kind(uuid.uuid4().hex), on(method, "", fault))
    made.inner.write(PATH, b"old")
    return made


class _FaultyInSteps(FaultyStore):
    replace = None


def test_a_changed_record_is_not_written_over():
    store = _InSteps(uuid.uuid4().hex)
    store.write(PATH, b"changed")
    with pytest.raises(RefConflictError):
        replace_record(store, PATH, b"old", b"new", "tag")
    assert bytes(store.read(PATH)) == b"changed"


def test_an_unknown_outcome_gives_its_reason_where_there_is_one():
    text = "whether tag 't' was created is unknown{}: look at it before doing the change again"
    unknown = ref_record._unknown
    assert str(unknown("tag 't'", "created", None)) == text.format("")
    assert str(unknown("tag 't'", "created", LanceError("why"))) == text.format(" (why)")


def test_the_folder_of_a_record_is_made_durable(monkeypatch: pytest.MonkeyPatch):
    synced = []
    monkeypatch.setattr(ref_record, "sync_folder", lambda _root, folder: synced.append(folder))
    store = _store()
    create_record(store, PATH, b"mine", "tag 'v1'")
    assert delete_record(store, PATH, "tag 'v1'")
    assert synced[-1] == "_refs/tags"
    assert set(synced) == {"_refs/tags"}
