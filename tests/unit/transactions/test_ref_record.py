from __future__ import annotations

import uuid

import pytest

from lance_nb.errors import ObjectNotFoundError, RefConflictError, StorageError
from lance_nb.storage.memory import MemoryStore
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


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.UNKNOWN_BEFORE])
def test_a_record_that_is_not_there_is_not_reported_created(fault: Fault):
    store = _store(on("write_if_absent", "", fault))
    with pytest.raises(StorageError):
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
    assert delete_record(store, PATH) is True
    assert delete_record(store, PATH) is False
