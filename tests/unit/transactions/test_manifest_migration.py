"""Renaming V1 manifests, also beside writers that still use the old names."""

from __future__ import annotations

import pytest

from lance_nb.errors import CommitConflictError, CommitStateUnknownError
from lance_nb.format.layout import VERSIONS, NamingScheme, manifest_path, parse_manifest_name
from lance_nb.table.versions import load_latest, version_names
from lance_nb.transactions.commit import find_transaction
from lance_nb.transactions.manifest_migration import migrate_manifest_paths_v2
from tests.support.committing import Table, file_names
from tests.support.faulty_store import Crash, Fault, Step, no_faults, on


def _table() -> Table:
    table = Table()
    table.create(enable_v2_manifest_paths=False)
    for version in (1, 2):
        table.append(version)
    return table


def test_every_version_gets_its_new_name_and_keeps_its_bytes():
    table = _table()
    before = [bytes(table.inner.read(one.path)) for one in version_names(table.inner)]
    assert migrate_manifest_paths_v2(table.root) == 3
    names = version_names(table.inner)
    assert [(one.version, one.scheme) for one in names] == [(n, NamingScheme.V2) for n in (1, 2, 3)]
    assert [bytes(table.inner.read(one.path)) for one in names] == before
    assert migrate_manifest_paths_v2(table.root) == 0


@pytest.mark.parametrize("skip", range(3))
@pytest.mark.parametrize("method", ["write_if_absent", "delete"])
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_crash_in_the_middle_is_mended_by_repeating(method: str, fault: Fault, skip: int):
    table = _table()
    table.root.world.plan = on(method, "", fault, skip=skip)
    with pytest.raises(Crash):
        migrate_manifest_paths_v2(table.root)
    table.root.world.plan = no_faults
    migrate_manifest_paths_v2(table.root)
    assert [one.version for one in version_names(table.inner)] == [1, 2, 3]
    assert load_latest(table.inner).version == 3


def test_a_version_that_a_late_writer_added_is_renamed_too():
    table = _table()
    late = [lambda: table.append(3, "late")]
    table.root.world.plan = lambda step: (
        late.pop()() and None if step.method == "list_names" and late else None
    )
    assert migrate_manifest_paths_v2(table.root) == 4
    assert load_latest(table.inner).version == 4


def test_a_version_that_exists_twice_is_reported_and_both_are_kept():
    table = _table()
    migrate_manifest_paths_v2(table.root)
    late = manifest_path(3, NamingScheme.V1)
    table.inner.write(late, b"by a writer that looked before")
    with pytest.raises(CommitConflictError, match="exists twice"):
        migrate_manifest_paths_v2(table.root)
    assert table.inner.exists(late)
    assert table.inner.exists(manifest_path(3, NamingScheme.V2))


def test_a_version_that_somebody_else_renames_meanwhile_does_not_count():
    table = _table()
    (first, *_) = sorted(version_names(table.inner), key=lambda one: one.version)
    others = [lambda: migrate_manifest_paths_v2(table.inner)]
    table.root.world.plan = lambda step: (
        others.pop()() and None if step.path == first.path and others else None
    )
    assert migrate_manifest_paths_v2(table.root) == 0
    assert [one.version for one in version_names(table.inner)] == [1, 2, 3]


def test_writers_that_never_stop_end_the_migration():
    table = _table()
    added = []

    def plan(step: Step) -> None:
        if step.method == "list_names":
            version = 4 + len(added)
            added.append(version)
            table.inner.write(manifest_path(version, NamingScheme.V1), b"%d" % version)

    table.root.world.plan = plan
    with pytest.raises(CommitConflictError, match="keep committing under V1 names"):
        migrate_manifest_paths_v2(table.root)
    assert len(added) == 10
    names = [parse_manifest_name(name) for name in table.inner.list_names(VERSIONS)]
    assert {one.scheme for one in names if one is not None} == {NamingScheme.V2}


def test_the_oldest_version_is_renamed_first():
    table = _table()
    migrate_manifest_paths_v2(table.root)
    gone = [step.path for step in table.root.steps if step.method == "delete"]
    assert gone == [manifest_path(version, NamingScheme.V1) for version in (1, 2, 3)]


def _v1_table() -> Table:
    table = Table()
    table.create(enable_v2_manifest_paths=False)
    table.append(1)
    return table


def _just_before_creating(table: Table, *acts) -> None:
    left = list(acts)

    def plan(step):
        if step.method == "write_if_absent" and ".manifest" in step.path:
            while left:
                left.pop(0)()

    table.root.world.plan = plan


def _only_v2(table: Table) -> list[int]:
    names = version_names(table.inner)
    assert {one.scheme for one in names} == {NamingScheme.V2}
    return [one.version for one in names]


def test_without_a_migration_nothing_changes():
    table = _v1_table()
    made = table.commit(table.appending(2))
    assert (made.version, made.attempts) == (3, 1)
    assert {one.scheme for one in version_names(table.inner)} == {NamingScheme.V1}


def test_a_commit_during_the_migration_is_renamed():
    table = _v1_table()
    _just_before_creating(table, lambda: migrate_manifest_paths_v2(table.inner))
    made = table.commit(table.appending(2, "mine"))
    assert _only_v2(table) == [1, 2, 3]
    assert file_names(made)[-1] == "mine.lance"
    assert load_latest(table.inner).fragments == made.manifest.fragments


def test_a_commit_whose_number_was_taken_meanwhile_is_made_again():
    table = _v1_table()
    _just_before_creating(
        table, lambda: migrate_manifest_paths_v2(table.inner), lambda: table.append(2, "other")
    )
    made = table.commit(table.appending(2, "mine"))
    assert (made.version, made.attempts) == (4, 2)
    assert _only_v2(table) == [1, 2, 3, 4]
    assert file_names(made)[-2:] == ["other.lance", "mine.lance"]


@pytest.mark.parametrize("part", [1, 2])
def test_a_migration_that_is_half_done_is_no_obstacle(part: int):
    table = _v1_table()

    def half() -> None:
        name = version_names(table.inner)[part - 1]
        new = type(name)(name.version, NamingScheme.V2).path
        table.inner.write_if_absent(new, bytes(table.inner.read(name.path)))
        table.inner.delete(name.path)

    _just_before_creating(table, half)
    table.commit(table.appending(2))
    migrate_manifest_paths_v2(table.inner)
    assert _only_v2(table) == [1, 2, 3]


def test_a_version_that_is_there_is_not_reported_as_failed_when_looking_for_a_migration_fails():
    table = _v1_table()
    table.root.world.plan = on("list_names", "_versions", Fault.ERROR_BEFORE, skip=1)
    transaction = table.appending(2)
    with pytest.raises(CommitStateUnknownError, match="has been created") as caught:
        table.commit(transaction)
    table.root.world.plan = no_faults
    assert (caught.value.transaction_uuid, caught.value.version) == (transaction.uuid, 3)
    assert find_transaction(table.place, transaction.uuid) == 3
    assert table.commit(transaction).version == 3
