from __future__ import annotations

import pytest

from lance_nb.errors import CommitStateUnknownError
from lance_nb.format.layout import NamingScheme
from lance_nb.table.versions import load_latest, version_names
from lance_nb.transactions.manifest_migration import migrate_manifest_paths_v2
from lance_nb.transactions.resume import resume
from tests.support.committing import Table, file_names
from tests.support.faulty_store import Fault, no_faults, on


def _table() -> Table:
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
    table = _table()
    made = table.commit(table.appending(2))
    assert (made.version, made.attempts) == (3, 1)
    assert {one.scheme for one in version_names(table.inner)} == {NamingScheme.V1}


def test_a_commit_during_the_migration_is_renamed():
    table = _table()
    _just_before_creating(table, lambda: migrate_manifest_paths_v2(table.inner))
    made = table.commit(table.appending(2, "mine"))
    assert _only_v2(table) == [1, 2, 3]
    assert file_names(made)[-1] == "mine.lance"
    assert load_latest(table.inner).fragments == made.manifest.fragments


def test_a_commit_whose_number_was_taken_meanwhile_is_made_again():
    table = _table()
    _just_before_creating(
        table, lambda: migrate_manifest_paths_v2(table.inner), lambda: table.append(2, "other")
    )
    made = table.commit(table.appending(2, "mine"))
    assert (made.version, made.attempts) == (4, 2)
    assert _only_v2(table) == [1, 2, 3, 4]
    assert file_names(made)[-2:] == ["other.lance", "mine.lance"]


@pytest.mark.parametrize("part", [1, 2])
def test_a_migration_that_is_half_done_is_no_obstacle(part: int):
    table = _table()

    def half() -> None:
        name = version_names(table.inner)[part - 1]
        new = type(name)(name.version, NamingScheme.V2).path
        table.inner.write_if_absent(new, bytes(table.inner.read(name.path)))
        table.inner.delete(name.path)

    _just_before_creating(table, half)
    table.commit(table.appending(2))
    migrate_manifest_paths_v2(table.inner)
    assert _only_v2(table) == [1, 2, 3]


def test_a_version_that_is_there_is_not_told_as_failed_when_looking_for_a_migration_fails():
    table = _table()
    table.root.world.plan = on("list_names", "_versions", Fault.ERROR_BEFORE, skip=1)
    transaction = table.appending(2)
    with pytest.raises(CommitStateUnknownError, match="has been created") as caught:
        table.commit(transaction)
    table.root.world.plan = no_faults
    assert (caught.value.transaction_uuid, caught.value.version) == (transaction.uuid, 3)
    assert resume(table.place, transaction).version == 3
    assert table.commit(transaction).version == 3
