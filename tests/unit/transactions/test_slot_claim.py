from __future__ import annotations

import uuid

import pytest

from lance_nb.errors import CommitStateUnknownError, StorageError
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.format.manifest import Manifest
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions.manifest_slots import StoreSlots
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.slot_claim import TRIES_MAX, claim, transaction_uuid
from lance_nb.transactions.transaction import Transaction
from tests.support.committing import SCHEMA, FakeTime, environment
from tests.support.faulty_store import Fault, FaultyStore, Plan, no_faults, on

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


def test_a_clear_failure_is_told_as_such_at_once():
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


def test_a_slot_that_is_ours_and_not_durable_is_told_as_such():
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
