"""Every step of a clean-up, with every fault: whatever version a reader finds, its files are there.

Versions that must stay are there, whole; versions that go are whole or gone, never in between; what
a repetition finds later ends where an undisturbed clean-up ends, but for files that no version
needs and that are too young to be judged.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache

import pytest

from lance_nb.errors import LanceError
from lance_nb.format.layout import branch_root
from lance_nb.table.refs import Target
from lance_nb.table.retention import RetentionPolicy
from lance_nb.table.versions import load_manifest, version_names
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.writing.branching import BranchWriter
from lance_nb.writing.cleanup import Cleanup, CleanupOptions
from tests.support.committing import SCHEMA, Table, file_names, fragment
from tests.support.faulty_store import LISTS, WRITES, Crash, Fault, Step

pytestmark = pytest.mark.slow

ON_DELETES = (
    Fault.ERROR_BEFORE,
    Fault.UNKNOWN_BEFORE,
    Fault.LOST_REPLY,
    Fault.ARRIVES_LATER,
    Fault.CRASH_BEFORE,
    Fault.CRASH_AFTER,
)
ON_LISTS = (Fault.ERROR_BEFORE, Fault.CRASH_BEFORE)
ON_READS = (Fault.ERROR_BEFORE, Fault.CRASH_BEFORE)
TAGGED, FORKED, NEWEST = 2, 3, 6
STAY = {TAGGED, FORKED, NEWEST}
CELLS_MIN = 200


def prepared() -> Table:
    """Return a table with a copy of what ``_written`` has made."""
    table = Table(seed=5)
    for path, data in _written().items():
        table.inner.write(path, data)
    return table


@cache
def _written() -> dict[str, bytes]:
    """Six versions, each with a data file of its own; one is tagged, one has a branch."""
    table = Table(seed=5)
    made = table.create()
    table.inner.write(f"data/{file_names(made)[0]}", b"rows")
    for version in range(1, NEWEST):
        operation = Overwrite(SCHEMA, (fragment(f"made-{version}"),))
        commit(table.sound, table.transaction(version, operation), table.options())
        table.inner.write(f"data/made-{version}.lance", b"rows")

    def place(branch: str | None) -> CommitPlace:
        return CommitPlace.of(table.inner, branch)

    TagWriter(table.inner, place, table.environment).create("kept", Target(None, TAGGED))
    BranchWriter(table.inner, place, table.environment).create("dev", Target(None, FORKED))
    return {one.name: bytes(table.inner.read(one.name)) for one in table.inner.list_recursive("")}


def clean(table: Table, *, delete_unverified: bool = False) -> None:
    policy = RetentionPolicy.of(
        timedelta(0), None, None, delete_unverified=delete_unverified,
        error_if_tagged_old_versions=False,
    )  # fmt: skip
    # The clock is the real one: the store's modification times are.
    Cleanup(table.root, "", NEWEST, policy, CleanupOptions(environment=Environment())).run()


def readable_versions(table: Table) -> set[int]:
    """Return the versions that are listed; every file that one of them names must be there."""
    there = {one.name for one in table.inner.list_recursive("data")}
    found = set()
    for folder in ("", branch_root("dev")):
        home = table.inner.child(folder) if folder else table.inner
        for name in version_names(home):
            names = {file.path for one in load_manifest(home, name).fragments for file in one.files}
            assert names <= there, f"version {name.version} of {folder!r} has lost {names - there}"
            if not folder:
                found.add(name.version)
    return found


def faults_of(step: Step) -> tuple[Fault, ...]:
    if step.method in LISTS:
        return ON_LISTS
    return ON_DELETES if step.method in WRITES else ON_READS


def run(number: int, fault: Fault, *, all_later: bool) -> tuple[Table, str]:
    table = prepared()

    def plan(step: Step) -> Fault | None:
        if step.number == number:
            return fault
        return Fault.ERROR_BEFORE if all_later and step.number > number else None

    table.root.world.plan = plan
    try:
        clean(table)
        ended = "done"
    except Crash:
        ended = "crashed"
    except LanceError as error:
        ended = f"refused ({type(error).__name__})"
    table.root.world.plan = lambda _step: None
    return table, ended


def test_whatever_fails_every_version_that_is_listed_has_its_files():
    whole = prepared()
    clean(whole)
    assert readable_versions(whole) == STAY
    left = {one.name for one in whole.inner.list_recursive("")}
    cells = [
        (step, fault, later)
        for step in list(whole.root.steps)
        for fault in faults_of(step)
        for later in (False, True)
    ]
    for step, fault, later in cells:
        cell = f"{fault.name} at step {step}{', all later steps fail' * later}"
        table, ended = run(step.number, fault, all_later=later)
        assert readable_versions(table) >= STAY, f"{cell}: {ended}"
        table.root.world.arrive()
        assert readable_versions(table) >= STAY, f"{cell}: {ended}, late"
        clean(table, delete_unverified=True)
        table.root.world.arrive()
        assert readable_versions(table) == STAY, f"{cell}: {ended}, repeated"
        names = {one.name for one in table.inner.list_recursive("")}
        assert {one for one in names if one.startswith("data/")} == {
            one for one in left if one.startswith("data/")
        }, f"{cell}: {ended}, repeated"
    assert len(cells) >= CELLS_MIN
    print(f"{len(cells)} cells")
