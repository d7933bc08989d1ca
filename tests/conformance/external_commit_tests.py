"""A commit through an external manifest store, disturbed at every step in every way.

A manifest store's own test file provides ``entries``. Each cell is a commit with one fault; then
somebody else looks, late requests arrive, and the commit is repeated. Whatever happened: the
outcome that was told is true, the version is there once, and a reader that knows nothing of the
manifest store sees all of it.
"""

from __future__ import annotations

import uuid

import pytest

from lance_nb.errors import CommitStateUnknownError, LanceError, StorageError
from lance_nb.format.layout import VERSIONS
from lance_nb.storage.base import Store
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.versions import load_latest, version_names
from lance_nb.transactions.commit_options import Committed
from lance_nb.transactions.external.base import ExternalManifestStore
from tests.support.committing import file_names
from tests.support.external_table import ExternalTable
from tests.support.faulty_store import Crash, Fault, Plan, at, no_faults

FOUR_STEPS = (
    ("write", ".manifest-"),
    ("put_if_not_exists", "entries/2"),
    ("write", ".manifest"),
    ("put_if_exists", "entries/2"),
)
OUTAGES = (
    Fault.ERROR_BEFORE, Fault.UNKNOWN_BEFORE, Fault.LOST_REPLY, Fault.LOST_REPLY_REPEATED,
    Fault.ARRIVES_LATER,
)  # fmt: skip
CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)


def steps_of_a_commit(entries: ExternalManifestStore) -> list[tuple[str, str]]:
    """Run a commit without faults; return its calls."""
    table = ExternalTable(entries)
    table.create()
    table.commit(table.appending(1, "mine"))
    return [(step.method, step.path) for step in table.root.steps]


def copy_of(store: Store) -> Store:
    """Copy every file to another place."""
    copy = MemoryStore(uuid.uuid4().hex)
    for info in store.list_recursive(""):
        copy.write(info.name, store.read(info.name))
    return copy


def check_cell(entries: ExternalManifestStore, plan: Plan) -> str:
    """Commit with faults and check what is left; return what the writer was told."""
    table = ExternalTable(entries)
    table.create()
    transaction = table.appending(1, "mine")
    table.root.world.plan = plan
    made: Committed | None = None
    try:
        made = table.commit(transaction)
        told = "committed"
    except Crash:
        told = "crashed"
    except CommitStateUnknownError:
        told = "unknown"
    except StorageError:
        told = "failed"
    table.root.world.plan = no_faults
    found = load_latest(table.reader)
    assert found.version in (1, 2)
    if made is not None:
        assert (made.version, found.version) == (2, 2)
    table.root.world.arrive()
    latest = load_latest(table.reader).version
    if told == "failed":
        assert latest == 1
    # Whoever reads by hand sees what the manifest store says, also in a copy of the folder.
    assert load_latest(table.inner).version == latest
    assert load_latest(copy_of(table.inner)).version == latest
    again = table.commit(transaction)
    assert again.version == 2
    assert file_names(again) == ["first.lance", "mine.lance"]
    more = table.append(1, "other")
    assert file_names(more) == ["first.lance", "mine.lance", "other.lance"]
    assert [name.version for name in version_names(table.inner)] == [1, 2, 3]
    newest = entries.latest(table.base)
    assert newest is not None
    assert not newest.is_staged
    assert entries.get(table.base, 4) is None
    return told


def _from_then_on(number: int, side: str, fault: Fault) -> Plan:
    """Plan that one side fails from a step on; what only reads fails before it is done."""
    return lambda step: fault if step.number >= number and step.path.startswith(side) else None


class ExternalCommitTests:
    """``entries`` is a manifest store."""

    @pytest.fixture
    def entries(self) -> ExternalManifestStore:
        raise NotImplementedError

    def test_a_commit_takes_four_steps_in_order(self, entries: ExternalManifestStore):
        steps = [one for one in steps_of_a_commit(entries) if self._is_step(one)]
        assert [method for method, _ in steps] == [method for method, _ in FOUR_STEPS]

    @pytest.mark.parametrize("fault", CRASHES, ids=lambda fault: fault.name)
    def test_readers_finish_the_commit_of_a_writer_that_crashed(
        self, entries: ExternalManifestStore, fault: Fault
    ):
        told = {}
        for number, step in self._four_steps(entries):
            told[step] = check_cell(entries, at(number, fault))
        assert set(told.values()) == {"crashed"}
        assert len(told) == 4

    @pytest.mark.parametrize("fault", OUTAGES, ids=lambda fault: fault.name)
    def test_outages_at_each_step_lose_nothing(self, entries: ExternalManifestStore, fault: Fault):
        for number, step in self._four_steps(entries):
            told = check_cell(entries, at(number, fault))
            if step[0] == "put_if_exists" or fault in (Fault.LOST_REPLY, Fault.LOST_REPLY_REPEATED):
                assert told in ("committed", "failed")

    def test_an_outage_that_begins_at_a_step_and_lasts_loses_nothing(
        self, entries: ExternalManifestStore
    ):
        for number, (method, _) in self._four_steps(entries):
            side = "entries" if method.startswith("put_") else VERSIONS
            for fault in (Fault.UNKNOWN_BEFORE, Fault.LOST_REPLY):
                told = check_cell(entries, _from_then_on(number, side, fault))
                expected = {"put_if_not_exists": "unknown", "put_if_exists": "committed"}
                assert told in expected.get(method, "committed failed")

    def _four_steps(self, entries: ExternalManifestStore) -> list[tuple[int, tuple[str, str]]]:
        calls = steps_of_a_commit(entries)
        return [(number, one) for number, one in enumerate(calls, 1) if self._is_step(one)]

    @staticmethod
    def _is_step(call: tuple[str, str]) -> bool:
        method, path = call
        manifest = path.startswith(VERSIONS) and ".manifest" in path
        return method.startswith("put_") or (method == "write" and manifest)


def disturb_everything(entries: ExternalManifestStore) -> dict[str, int]:
    """Run every cell; return how often each outcome was told."""
    told: dict[str, int] = {}
    for number in range(1, len(steps_of_a_commit(entries)) + 1):
        for fault in (*CRASHES, *OUTAGES, Fault.STALE_LIST, Fault.EMPTY_LIST, Fault.NO_SPACE):
            try:
                outcome = check_cell(entries, at(number, fault))
            except (AssertionError, LanceError) as error:
                error.add_note(f"step {number}, {fault.name}")
                raise
            told[outcome] = told.get(outcome, 0) + 1
    return told
