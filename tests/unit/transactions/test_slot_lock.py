from __future__ import annotations

import uuid
from contextlib import contextmanager

import pytest

from lance_nb.errors import (
    CommitConflictError,
    NotSupportedError,
    ObjectExistsError,
    TooMuchWriteContentionError,
)
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.versions import version_names
from lance_nb.transactions.manifest_slots import StoreSlots
from lance_nb.transactions.slot_claim import LockedSlots
from tests.support.committing import Table


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


def test_the_lock_is_called_with_the_version_that_is_created():
    table, lock = Table(), _Lock()
    table.create()
    table.commit(table.appending(1), commit_lock=lock)
    assert lock.seen == [(2, "done")]


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
