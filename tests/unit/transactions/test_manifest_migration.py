from __future__ import annotations

import pytest

from lance_nb.errors import CommitConflictError
from lance_nb.format.layout import VERSIONS, NamingScheme, manifest_path, parse_manifest_name
from lance_nb.table.versions import load_latest, version_names
from lance_nb.transactions.manifest_migration import migrate_manifest_paths_v2
from tests.support.committing import Table
from tests.support.faulty_store import Crash, Fault, Step, on


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


def test_a_version_that_exists_twice_is_told_and_both_are_kept():
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
