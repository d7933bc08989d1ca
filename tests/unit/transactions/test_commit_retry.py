"""What happens when the store fails in the middle of a commit (names after pyiceberg's tests)."""

from __future__ import annotations

import pytest

from lance_nb.errors import CommitStateUnknownError, StorageError
from lance_nb.storage.base import Store
from lance_nb.table.versions import load_latest, version_names
from lance_nb.transactions.resume import find_transaction, resume
from tests.support.committing import Table, file_names
from tests.support.faulty_store import Crash, Fault, on

MANIFEST = ("write_if_absent", "_versions/")
DEAD = 99


def _versions(store: Store) -> list[int]:
    return [one.version for one in version_names(store)]


def _files(store: Store) -> set[str]:
    return {one.name for one in store.list_recursive("")}


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REPLY_REPEATED])
def test_commit_that_landed_but_was_reported_failed_is_not_committed_twice(fault: Fault):
    table = Table()
    table.create()
    table.root.world.plan = on(*MANIFEST, fault)
    made = table.commit(table.appending(1, "mine"))
    assert (made.version, made.attempts) == (2, 1)
    assert _versions(table.inner) == [1, 2]
    assert file_names(made).count("mine.lance") == 1


def test_a_reply_lost_while_others_go_on_is_recognised_all_the_same():
    table = Table()
    table.create()

    def plan(step):
        if step.method == "read" and len(_versions(table.inner)) == 2:
            table.append(2)
        return lost(step)

    lost = on(*MANIFEST, Fault.LOST_REPLY)
    table.root.world.plan = plan
    assert table.commit(table.appending(1, "mine")).version == 2
    assert str(list(load_latest(table.inner).fragments)).count("mine.lance") == 1


def test_a_request_that_never_arrived_is_made_again():
    table = Table()
    table.create()
    table.root.world.plan = on(*MANIFEST, Fault.UNKNOWN_BEFORE, times=2)
    assert table.commit(table.appending(1)).version == 2
    assert _versions(table.inner) == [1, 2]


def test_a_request_that_arrives_late_is_committed_once():
    table = Table()
    table.create()
    table.root.world.plan = on(*MANIFEST, Fault.ARRIVES_LATER)
    made = table.commit(table.appending(1, "mine"))
    table.root.world.arrive()
    assert made.version == 2
    assert _versions(table.inner) == [1, 2]


def test_unknown_commit_outcome_keeps_the_committed_files():
    table = Table()
    table.create()
    before = _files(table.inner)
    table.root.world.plan = on(*MANIFEST, Fault.UNKNOWN_BEFORE, times=DEAD)
    with pytest.raises(CommitStateUnknownError, match="Delete nothing"):
        table.commit(table.appending(1))
    assert not [one for one in table.root.steps if one.method == "delete"]
    assert before < _files(table.inner)  # the transaction file stays, it may be needed


def test_a_commit_of_unknown_outcome_that_landed_is_found_by_its_uuid():
    table = Table()
    table.create()
    transaction = table.appending(1, "mine")
    table.root.world.plan = _all(
        on(*MANIFEST, Fault.LOST_REPLY), on("read", "_versions", Fault.ERROR_BEFORE, DEAD)
    )
    with pytest.raises(CommitStateUnknownError, match=transaction.uuid):
        table.commit(transaction)
    table.append(2)
    assert find_transaction(table.sound, transaction.uuid) == 2
    assert resume(table.sound, transaction).version == 2


def test_a_commit_of_unknown_outcome_that_did_not_land_can_be_committed_again():
    table = Table()
    table.create()
    transaction = table.appending(1, "mine")
    table.root.world.plan = on(*MANIFEST, Fault.UNKNOWN_BEFORE, times=DEAD)
    with pytest.raises(CommitStateUnknownError):
        table.commit(transaction)
    assert resume(table.sound, transaction) is None
    table.append(1, "other")
    table.root.world.plan = lambda _step: None
    assert table.commit(transaction).version == 3
    assert file_names(table.commit(transaction))[1:] == ["other.lance", "mine.lance"]


def test_unknown_outcome_is_never_reported_as_failed():
    table = Table()
    table.create()
    table.root.world.plan = _all(
        on(*MANIFEST, Fault.ARRIVES_LATER), on(*MANIFEST, Fault.ERROR_BEFORE, DEAD)
    )
    table.root.world.delay_steps = 1000
    with pytest.raises(CommitStateUnknownError):
        table.commit(table.appending(1))
    table.root.world.arrive()
    assert _versions(table.inner) == [1, 2]


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.NO_SPACE])
@pytest.mark.parametrize("step", [("write", "_transactions"), MANIFEST])
def test_a_commit_that_certainly_failed_says_so_and_can_be_repeated(fault: Fault, step):
    table = Table()
    table.create()
    transaction = table.appending(1)
    table.root.world.plan = on(*step, fault)
    with pytest.raises(StorageError) as caught:
        table.commit(transaction)
    assert not isinstance(caught.value, CommitStateUnknownError)
    assert _versions(table.inner) == [1]
    assert table.commit(transaction).version == 2


def test_a_failed_transaction_file_leaves_no_version_without_one():
    table = Table()
    table.create()
    table.root.world.plan = on("write", "_transactions", Fault.LOST_REPLY)
    with pytest.raises(StorageError):
        table.commit(table.appending(1))
    assert _versions(table.inner) == [1]


@pytest.mark.parametrize("fault", [Fault.STALE_LIST, Fault.EMPTY_LIST])
def test_a_listing_that_lags_behind_costs_attempts_and_nothing_else(fault: Fault):
    table = Table()
    table.create()
    table.root.list_names("_versions")  # the listing that stays
    table.append(1, "other")
    table.root.world.plan = on("list_names", "_versions", fault, times=3)
    made = table.commit(table.appending(1, "mine"))
    assert file_names(made)[1:] == ["other.lance", "mine.lance"]


def test_a_crash_after_the_manifest_leaves_a_committed_version():
    table = Table()
    table.create()
    transaction = table.appending(1)
    table.root.world.plan = on(*MANIFEST, Fault.CRASH_AFTER)
    with pytest.raises(Crash):
        table.commit(transaction)
    assert load_latest(table.inner).version == 2
    assert table.commit(transaction).version == 2


def _all(*plans):
    return lambda step: next((found for plan in plans if (found := plan(step))), None)
