"""Commits beside other writers: outcomes, retries, lost replies, detached versions, batches."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lance_nb.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    DatasetAlreadyExistsError,
    DatasetNotFoundError,
    InvalidInputError,
    NotSupportedError,
    RetryableCommitConflictError,
    StorageError,
    TooMuchWriteContentionError,
    VersionNotFoundError,
)
from lance_nb.format.layout import DETACHED_BIT, HINT_PATH, NamingScheme
from lance_nb.format.manifest import parse_manifest
from lance_nb.storage.base import Store
from lance_nb.table import file_cache
from lance_nb.table.versions import load_latest, load_version, version_names
from lance_nb.transactions.commit import (
    commit,
    commit_batch,
    find_transaction,
    merge_appends,
)
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.transaction import Transaction
from tests.support.committing import SCHEMA, Table, file_names, fragment
from tests.support.faulty_store import Crash, Fault, no_faults, on

READS = ("read", "read_tail")


def test_a_new_dataset_has_version_1_with_its_transaction_three_times_recorded():
    table = Table()
    made = table.commit(table.creating("a"), message="the first rows")
    manifest = load_latest(table.inner)
    assert manifest.version == made.version == 1
    assert made.transaction.message == "the first rows"
    inline = manifest.transaction_section.data
    assert bytes(table.inner.read(f"_transactions/{manifest.transaction_file}")) == inline
    assert Transaction.from_bytes(inline) == made.transaction
    assert json.loads(bytes(table.inner.read(HINT_PATH))) == {"version": 1}


def test_what_commit_returns_is_what_a_reader_loads():
    table = Table()
    table.create()
    made = table.commit(table.appending(1))
    found = load_latest(table.inner)
    assert made.manifest == found
    assert made.manifest.path == found.path
    assert made.manifest.size_bytes == found.size_bytes
    assert made.manifest.transaction_section == found.transaction_section


def test_the_manifest_is_the_last_thing_written_before_the_hint():
    table = Table()
    table.create()
    table.commit(table.appending(1))
    writes = [one for one in table.root.steps if one.method.startswith("write")]
    assert [(one.method, one.path.partition("/")[0]) for one in writes] == [
        ("write", "_transactions"),
        ("write_if_absent", "_versions"),
        ("write", "_versions"),
    ]
    assert writes[-1].path == HINT_PATH


def test_an_undisturbed_commit_lists_once_and_reads_one_manifest():
    table = Table()
    table.create()
    table.commit(table.appending(1))
    reads = [one.method for one in table.root.steps if not one.method.startswith("write")]
    assert reads == ["list_names", "read_tail"]


def test_a_manifest_that_is_not_known_is_read_whole():
    table = Table()
    table.create()
    file_cache._small_manifests.clear()  # as in another process
    table.commit(table.appending(1))
    reads = [one.method for one in table.root.steps if not one.method.startswith("write")]
    assert reads == ["list_names", "read"]


def test_what_others_commit_while_their_versions_are_read_is_caught_up_with():
    table = Table()
    table.create()
    table.append(1, "second")
    late = iter(["third", "fourth"])

    def plan(step):
        if step.method in READS and step.path.startswith("_versions"):
            for name in late:
                table.append(1, name)
                break

    table.root.world.plan = plan
    made = table.commit(table.appending(1, "mine"))
    assert (made.version, made.attempts) == (5, 1)
    assert file_names(made)[1:] == ["second.lance", "third.lance", "fourth.lance", "mine.lance"]


def test_appends_of_stale_writers_follow_one_another():
    table = Table()
    table.create()
    names = [file_names(table.commit(table.appending(1, f"f{n}"))) for n in range(4)]
    assert [len(one) for one in names] == [2, 3, 4, 5]
    assert names[-1][1:] == ["f0.lance", "f1.lance", "f2.lance", "f3.lance"]
    assert [one.id for one in load_latest(table.inner).fragments] == [0, 1, 2, 3, 4]


def test_a_commit_that_lost_its_slot_takes_the_next_one():
    table = Table()
    table.create()
    table.root.world.plan = _between(table, "write_if_absent", [lambda: table.append(1, "other")])
    made = table.commit(table.appending(1, "mine"))
    assert (made.version, made.attempts) == (3, 2)
    assert file_names(made)[1:] == ["other.lance", "mine.lance"]


def test_a_retry_waits_for_a_random_slot_that_grows():
    table = Table()
    table.create()
    table.root.world.plan = _between(
        table, "write_if_absent", [lambda: table.append(1) for _ in range(6)]
    )
    made = table.commit(table.appending(1))
    assert made.attempts == 7
    assert len(table.time.slept) <= 6
    assert max(table.time.slept) <= 5.0


def test_too_many_lost_slots_end_in_an_error_and_nothing_committed():
    table = Table()
    table.create()
    table.root.world.plan = _between(
        table, "write_if_absent", [lambda: table.append(1) for _ in range(9)]
    )
    with pytest.raises(TooMuchWriteContentionError, match="4 attempts"):
        table.commit(table.appending(1, "mine"), max_retries=3)
    assert "mine.lance" not in str(list(load_latest(table.inner).fragments))


def test_no_retries_means_one_attempt():
    table = Table()
    table.create()
    table.root.world.plan = _between(table, "write_if_absent", [lambda: table.append(1)])
    with pytest.raises(TooMuchWriteContentionError):
        table.commit(table.appending(1), max_retries=0)


def test_the_timeout_ends_waiting_between_attempts():
    table = Table()
    table.create()

    def slow() -> None:
        table.time.now_s += 2.0
        table.append(1)

    table.root.world.plan = _between(table, "write_if_absent", [slow] * 20)
    with pytest.raises(TooMuchWriteContentionError):
        table.commit(table.appending(1), timeout_s=5.0)
    assert table.time.now_s < 30


def test_of_two_creations_one_wins_and_the_other_is_reported():
    table = Table()
    table.root.world.plan = _between(
        table, "write_if_absent", [lambda: commit(table.sound, table.creating(), table.options())]
    )
    with pytest.raises(DatasetAlreadyExistsError):
        table.commit(table.creating())
    with pytest.raises(DatasetAlreadyExistsError):
        table.commit(table.creating())
    assert [one.version for one in version_names(table.inner)] == [1]


@pytest.mark.parametrize("read_version", [0, 3])
def test_a_change_of_nothing_is_refused(read_version: int):
    table = Table()
    with pytest.raises(DatasetNotFoundError):
        table.commit(table.appending(read_version))
    assert table.inner.list_recursive("") == []


def test_a_read_version_that_does_not_exist_is_reported():
    table = Table()
    table.create()
    with pytest.raises(VersionNotFoundError, match="9"):
        table.commit(table.appending(9))


def test_others_that_never_stop_end_the_commit_by_its_retries():
    table = Table()
    table.create()
    number = 1

    def plan(step):
        nonlocal number
        if step.method in READS:
            number = table.append(number).version

    table.append(1)
    number = 2
    table.root.world.plan = plan
    with pytest.raises(TooMuchWriteContentionError, match="3 attempts"):
        table.commit(table.appending(1), max_retries=2)
    assert number < 60


def test_a_change_of_version_0_is_reported():
    table = Table()
    table.create()
    with pytest.raises(VersionNotFoundError, match="version 0"):
        table.commit(table.appending(0))


def test_a_change_of_a_detached_version_does_not_enter_the_history():
    table = Table()
    table.create()
    aside = table.commit(table.appending(1), detached=True)
    with pytest.raises(InvalidInputError, match="detached"):
        table.commit(table.appending(aside.version))
    assert [one.version for one in version_names(table.inner)] == [1]


def test_an_overwrite_of_an_existing_dataset_keeps_numbers_and_ids_going():
    table = Table()
    table.create()
    made = table.commit(table.transaction(1, Overwrite(SCHEMA, (fragment("new"),))))
    assert made.version == 2
    assert [one.id for one in made.manifest.fragments] == [1]


def test_restore_loads_the_old_version():
    table = Table()
    table.create()
    table.append(1)
    made = table.commit(table.transaction(2, Restore(1)))
    assert (made.version, len(made.manifest.fragments)) == (3, 1)


def test_a_dataset_with_v1_names_keeps_them():
    table = Table()
    table.create(enable_v2_manifest_paths=False)
    table.commit(table.appending(1))
    table.commit(table.appending(1))
    assert [(one.version, one.scheme) for one in version_names(table.inner)] == [
        (number, NamingScheme.V1) for number in (1, 2, 3)
    ]
    assert "_versions/3.manifest" in [one.path for one in version_names(table.inner)]


def test_the_same_transaction_committed_again_is_committed_once():
    table = Table()
    table.create()
    transaction = table.appending(1, "mine")
    first = table.commit(transaction)
    table.append(2)
    again = table.commit(transaction)
    assert again.version == first.version == 2
    assert again.manifest == first.manifest
    assert len(version_names(table.inner)) == 3


def test_the_same_creation_committed_again_is_committed_once():
    table = Table()
    transaction = table.creating()
    first = table.commit(transaction)
    table.append(1)
    assert table.commit(transaction).manifest == first.manifest


def test_a_conflict_names_both_operations_and_the_version():
    table = Table()
    table.create()
    overwrite = table.transaction(1, Overwrite(SCHEMA, (fragment(),)))
    commit(table.sound, overwrite, table.options())
    with pytest.raises(CommitConflictError, match=r"Append.*Overwrite.*version 2"):
        table.commit(table.appending(1))


def test_a_retryable_conflict_commits_nothing():
    table = Table()
    table.create()
    gone = table.transaction(1, Delete((), (0,), "true"))
    commit(table.sound, gone, table.options())
    with pytest.raises(RetryableCommitConflictError):
        table.commit(table.transaction(1, Delete((), (0,), "id > 3")))
    assert len(version_names(table.inner)) == 2


def test_a_concurrent_version_without_transaction_is_a_clear_conflict():
    table = Table()
    table.create()
    other = table.append(1)
    _strip_transaction(table, other.version)
    with pytest.raises(RetryableCommitConflictError, match=r"version 2.*recorded no transaction"):
        table.commit(table.appending(1))
    assert table.commit(table.appending(2)).version == 3


def test_the_transaction_file_stands_in_for_the_inline_one():
    table = Table()
    table.create()
    other = table.append(1)
    _strip_transaction(table, other.version, keep_file=True)
    assert table.commit(table.appending(1)).version == 3


def test_a_concurrent_version_that_was_removed_is_a_clear_conflict():
    table = Table()
    table.create()
    for version in (1, 2, 3):
        table.append(version)
    table.inner.delete(version_names(table.inner)[1].path)
    with pytest.raises(RetryableCommitConflictError, match=r"version 2.*removed"):
        table.commit(table.transaction(1, Delete((), (0,), "true")))
    assert table.commit(table.appending(1)).version == 5  # which depends on the schema alone


def test_unknown_writer_flags_forbid_the_commit():
    table = Table()
    made = table.create()
    manifest = parse_manifest(table.inner.read(_path(table, 1)), "")
    data = _with(manifest, writer_feature_flags=1 << 40).to_bytes(
        transaction=made.manifest.transaction_section.data
    )
    table.inner.write(_path(table, 1), data)
    with pytest.raises(NotSupportedError, match="bit 40"):
        table.commit(table.appending(1))
    assert len(version_names(table.inner)) == 1


def test_a_failed_hint_is_nobodys_business():
    table = Table(on("write", "hint", Fault.NO_SPACE, times=9))
    table.commit(table.creating())
    table.commit(table.appending(1))
    assert load_latest(table.inner).version == 2


def test_a_hint_that_lies_is_not_believed():
    table = Table()
    table.create()
    for lie in (b'{"version":99}', b"nonsense", b'{"version":0}'):
        table.inner.write(HINT_PATH, lie)
        version = load_latest(table.inner).version
        assert table.commit(table.appending(version)).version == version + 1


# --- helpers --------------------------------------------------------------------------------------


def _between(table: Table, method: str, acts: list) -> object:
    """Plan no fault, but let others act just before our call of a method."""
    left = list(acts)

    def plan(step):
        if step.method == method and left:
            left.pop(0)()

    return plan


def _path(table: Table, version: int) -> str:
    return next(one.path for one in version_names(table.inner) if one.version == version)


def _with(manifest, **changes):
    from dataclasses import replace

    return replace(manifest, **changes)


def _strip_transaction(table: Table, version: int, *, keep_file: bool = False) -> None:
    path = _path(table, version)
    manifest = parse_manifest(table.inner.read(path), "")
    if not keep_file:
        manifest = _with(manifest, transaction_file="")
    table.inner.write(path, manifest.to_bytes())


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


def test_a_commit_of_unknown_outcome_that_did_not_land_can_be_committed_again():
    table = Table()
    table.create()
    transaction = table.appending(1, "mine")
    table.root.world.plan = on(*MANIFEST, Fault.UNKNOWN_BEFORE, times=DEAD)
    with pytest.raises(CommitStateUnknownError):
        table.commit(transaction)
    assert find_transaction(table.sound, transaction.uuid) is None
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
    table.root.world.plan = no_faults
    assert load_latest(table.inner).version == 2
    assert table.commit(transaction).version == 2


def _all(*plans):
    return lambda step: next((found for plan in plans if (found := plan(step))), None)


def test_it_is_built_on_its_read_version_and_no_part_of_the_history():
    table = Table()
    table.create()
    table.append(1, "second")
    made = table.commit(table.appending(1, "aside"), detached=True, message="look")
    assert made.version & DETACHED_BIT
    assert file_names(made)[1:] == ["aside.lance"]
    assert [one.version for one in version_names(table.inner)] == [1, 2]
    assert load_version(table.inner, made.version) == made.manifest
    assert bytes(table.inner.read(HINT_PATH)) == b'{"version":2}'
    assert made.transaction.message == "look"


def test_it_conflicts_with_nothing():
    table = Table()
    table.create()
    other = table.transaction(1, Overwrite(SCHEMA, ()))
    table.commit(other)
    assert table.commit(table.appending(1), detached=True).version & DETACHED_BIT


def test_a_detached_version_can_be_built_on():
    table = Table()
    table.create()
    first = table.commit(table.appending(1), detached=True)
    second = table.commit(table.appending(first.version), detached=True)
    assert len(file_names(second)) == 3
    assert second.version != first.version


def test_a_lost_reply_is_recognised():
    table = Table()
    table.create()
    table.root.world.plan = on("write_if_absent", "_versions/d", Fault.LOST_REPLY)
    table.commit(table.appending(1), detached=True)
    names = table.inner.list_names("_versions")
    assert len([name for name in names if name.startswith("d")]) == 1


@pytest.mark.parametrize(
    ("read_version", "error"), [(0, InvalidInputError), (7, VersionNotFoundError)]
)
def test_it_needs_a_version_to_be_built_on(read_version: int, error: type[Exception]):
    table = Table()
    table.create()
    with pytest.raises(error):
        table.commit(table.appending(read_version), detached=True)


def test_it_needs_a_dataset():
    with pytest.raises(DatasetNotFoundError):
        Table().commit(Table().appending(1), detached=True)


def test_a_transaction_is_found_wherever_it_landed():
    table = Table()
    first = table.create()
    made = [table.append(version) for version in (1, 2, 3)]
    for one in (first, *made):
        assert find_transaction(table.sound, one.transaction.uuid) == one.version


def test_a_transaction_that_did_not_land_is_not_found():
    table = Table()
    table.create()
    assert find_transaction(table.sound, "nobody") is None


def test_only_newer_versions_are_read():
    table = Table()
    made = table.create()
    for version in range(1, 6):
        table.append(version)
    assert find_transaction(table.place, made.transaction.uuid, since=4) is None
    assert len([step for step in table.root.steps if step.method == "read"]) == 2


def test_a_version_that_cannot_be_read_is_passed_over():
    table = Table()
    made = table.create()
    table.append(1)
    table.inner.write(version_names(table.inner)[-1].path, b"garbage")
    assert find_transaction(table.sound, made.transaction.uuid) == 1


def test_a_version_that_vanishes_while_it_is_looked_at_is_passed_over():
    table = Table()
    made = table.create()
    table.append(1)
    newest = version_names(table.inner)[-1].path
    table.root.world.plan = lambda step: (
        table.inner.delete(newest) if step.method == "read" and step.path == newest else None
    )
    assert find_transaction(table.place, made.transaction.uuid) == 1


@pytest.mark.parametrize(("since", "found"), [(0, 2), (1, 2), (2, None), (3, None)])
def test_versions_up_to_since_are_not_looked_at(since: int, found: int | None):
    table = Table()
    table.create()
    made = table.append(1)
    table.append(2)
    assert find_transaction(table.sound, made.transaction.uuid, since) == found


def test_several_appends_become_one_version():
    table = Table()
    table.create()
    table.append(1, "between")
    parts = [table.appending(2, "a"), table.appending(1, "b"), table.appending(2, "c")]
    made = commit_batch(table.place, parts, table.options(message="three"))
    assert made.committed.version == 3
    assert file_names(made.committed)[1:] == ["between.lance", "a.lance", "b.lance", "c.lance"]
    assert made.merged.read_version == 1
    assert made.merged.message == "three"
    assert made.merged.uuid not in [one.uuid for one in parts]


def test_properties_are_joined():
    table = Table()
    one = replace(table.appending(1), transaction_properties={"a": "1", "b": "1"})
    two = replace(table.appending(1), transaction_properties={"b": "2"})
    assert merge_appends([one, two]).properties == {"a": "1", "b": "2"}


def test_nothing_to_commit_is_reported():
    with pytest.raises(InvalidInputError, match="no transactions"):
        commit_batch(Table().place, [])


def test_only_appends_can_be_merged():
    table = Table()
    table.create()
    with pytest.raises(NotSupportedError, match="Restore"):
        commit_batch(table.place, [table.appending(1), table.transaction(1, Restore(1))])


def test_appends_with_fields_of_a_newer_release_are_refused():
    table = Table()
    one, newer = table.appending(1), b"\xf8\x07\x01"
    for changed in (
        replace(one, unknown=newer),
        replace(one, operation=replace(one.operation, unknown=newer)),
    ):
        with pytest.raises(NotSupportedError, match="only appends that this release knows"):
            merge_appends([one, changed])


def test_the_same_batch_committed_again_is_committed_once():
    table = Table()
    table.create()
    parts = [table.appending(1, "a"), table.appending(1, "b")]
    first, again = (commit_batch(table.place, parts, table.options()) for _ in range(2))
    assert first.committed.version == again.committed.version == 2
    other = commit_batch(table.place, parts[::-1], table.options())
    assert other.committed.version == 3
