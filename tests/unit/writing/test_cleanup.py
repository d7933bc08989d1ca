"""Clean-up of old versions and of files that none refers to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lance_nb
from lance_nb import DatasetNotFoundError
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CleanupError,
    CommitConflictError,
    CorruptFileError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.format.layout import DETACHED_BIT, branch_path, branch_root, manifest_path
from lance_nb.storage.local import LocalStore
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.system_calls import OpenFolder
from lance_nb.storage.threads import THREADS_MAX, run_side_by_side
from lance_nb.table.cleanup_plan import Candidate, CleanupPlan
from lance_nb.table.refs import Target
from lance_nb.table.retention import RetentionPolicy
from lance_nb.table.survey import LineOfVersions, StoredFile, Survey
from lance_nb.table.versions import load_latest, load_version, version_names
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.external.synchronised_store import synchronised
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.writing.branching import BranchWriter
from lance_nb.writing.cleanup import (
    Cleanup,
    CleanupCandidateFile,
    CleanupExplanation,
    CleanupOptions,
    CleanupReferencedBranch,
    CleanupStats,
    explanation_of,
    stats_of,
)
from tests.support.committing import SCHEMA, Table, file_names, fragment
from tests.support.external_table import MemoryEntries
from tests.support.faulty_store import Fault, Step
from tests.support.faulty_system import Call, WatchedSystem, in_place_of_os


def history(count: int = 5) -> Table:
    """Return versions 1 to ``count``, each an overwrite with a data file of its own."""
    table = Table(seed=1)
    made = table.create()
    table.inner.write(f"data/{file_names(made)[0]}", b"rows")
    for version in range(1, count):
        overwrite(table, version)
    table.root.steps.clear()
    return table


def overwrite(table: Table, version: int) -> None:
    name = f"made-{version}"
    table.inner.write(f"data/{name}.lance", b"rows")
    operation = Overwrite(SCHEMA, (fragment(name),))
    commit(table.sound, table.transaction(version, operation), table.options())


def place_of(table: Table) -> Callable[[str | None], CommitPlace]:
    return lambda branch: CommitPlace.of(table.inner, branch)


def cleanup(table: Table, current: int, **options: object) -> Cleanup:
    how = {key: options.pop(key) for key in list(options) if key in _DELETING}
    policy = RetentionPolicy.of(
        options.pop("older_than", timedelta(0)),  # type: ignore[arg-type]
        options.pop("retain_versions", None),  # type: ignore[arg-type]
        options.pop("versions", None),  # type: ignore[arg-type]
        **options,  # type: ignore[arg-type]
    )
    return Cleanup(
        table.root,
        "",
        current,
        policy,
        CleanupOptions(environment=Environment(), **how),  # type: ignore[arg-type]
    )


_DELETING = ("delete_concurrency", "delete_rate_limit", "progress")


def numbers(table: Table) -> list[int]:
    return [one.version for one in version_names(table.inner)]


def at_first_delete(table: Table, act: Callable[[], None], method: str = "delete") -> None:
    """Do something at the moment the first manifest is about to be deleted."""
    done = False

    def plan(step: Step) -> Fault | None:
        nonlocal done
        if step.method == method and step.path.endswith(".manifest") and not done:
            done = True
            act()
        return None

    table.root.world.plan = plan


def test_manifests_go_first_and_oldest_first():
    table = history()
    cleanup(table, 5).run()
    deleted = [step.path for step in table.root.steps if step.method == "delete"]
    assert deleted[:4] == [manifest_path(version) for version in (1, 2, 3, 4)]
    assert all(path.startswith(("data/", "_transactions/")) for path in deleted[4:])
    assert len(deleted) == 12


def test_a_restore_that_lands_meanwhile_keeps_its_files():
    table = history()
    restore = table.transaction(5, Restore(2))
    at_first_delete(table, lambda: commit(table.sound, restore, table.options()))
    cleanup(table, 5).run()
    assert numbers(table) == [5, 6]
    kept = load_latest(table.inner)
    names = {file.path for one in kept.fragments for file in one.files}
    assert names == {"made-1.lance"}
    assert names <= {one.name for one in table.inner.list("data")}


def test_a_version_that_is_tagged_after_the_survey_stays():
    table = history()
    tags = TagWriter(table.inner, place_of(table), table.environment)
    done = False

    def plan(step: Step) -> Fault | None:
        nonlocal done
        if step.method == "read_tail" and not done:  # the survey is over: manifests are read
            done = True
            tags.create("late", Target(None, 3))
        return None

    table.root.world.plan = plan
    stats = cleanup(table, 5).run()
    assert numbers(table) == [3, 5]
    assert stats.old_versions == 3
    assert table.inner.exists("data/made-2.lance")


def test_a_branch_that_is_made_meanwhile_keeps_the_files_of_its_version():
    table = history()
    branches = BranchWriter(table.inner, place_of(table), table.environment)
    at_first_delete(table, lambda: branches.create("dev", Target(None, 4)))
    cleanup(table, 5).run()
    assert table.inner.exists("data/made-3.lance")
    assert load_latest(table.inner.child(branch_root("dev"))).version == 4


def test_a_branch_that_is_being_made_without_a_record_keeps_them_too():
    """pylance writes the first version of a branch before its record."""
    table = history()
    branches = BranchWriter(table.inner, place_of(table), table.environment)

    def make() -> None:
        branches.create("dev", Target(None, 4))
        table.inner.delete(branch_path("dev"))

    at_first_delete(table, make)
    cleanup(table, 5).run()
    assert table.inner.exists("data/made-3.lance")


def test_files_of_a_write_that_is_going_on_stay_and_go_when_it_is_sure_that_nobody_writes():
    table = history(2)
    table.inner.write("data/staged.lance", b"rows")
    table.inner.write("_deletions/0-2-77.arrow", b"rows")
    cleanup(table, 2).run()
    assert table.inner.exists("data/staged.lance")
    stats = cleanup(table, 2, delete_unverified=True).run()
    assert (stats.data_files_removed, stats.deletion_files_removed) == (1, 1)
    assert not table.inner.exists("data/staged.lance")


def test_a_manifest_that_cannot_be_deleted_keeps_its_files_and_is_counted():
    table = history()

    def plan(step: Step) -> Fault | None:
        is_second = step.path == manifest_path(2) and step.method == "delete"
        return Fault.ERROR_BEFORE if is_second else None

    table.root.world.plan = plan
    stats = cleanup(table, 5).run()
    assert (stats.failed_deletes, stats.old_versions) == (1, 3)
    assert numbers(table) == [2, 5]
    assert table.inner.exists("data/made-1.lance")


def test_nothing_is_deleted_when_a_manifest_that_stays_is_damaged():
    table = history()
    table.inner.write(manifest_path(4), b"no manifest")
    before = {one.name for one in table.inner.list_recursive("")}
    with pytest.raises(CorruptFileError):
        cleanup(table, 5, retain_versions=2).run()
    assert {one.name for one in table.inner.list_recursive("")} == before


def test_nothing_is_deleted_when_a_version_has_fields_of_a_newer_writer():
    table = history()
    data = bytes(table.inner.read(manifest_path(5)))
    message = data[:-16] + b"\xfa\x3f\x01\x61"  # field 1023
    position = int.from_bytes(data[-16:-8], "little")
    length = len(message) - position - 4
    grown = message[:position] + length.to_bytes(4, "little") + message[position + 4 :] + data[-16:]
    table.inner.write(manifest_path(5), grown)
    with pytest.raises(NotSupportedError, match="newer"):
        cleanup(table, 5).run()
    assert numbers(table) == [1, 2, 3, 4, 5]


def test_with_everything_old_only_versions_that_stay_are_read(monkeypatch: pytest.MonkeyPatch):
    table = history(30)
    monkeypatch.setattr("lance_nb.table.retention.UNVERIFIED_AGE", timedelta(0))
    stats = cleanup(table, 30, older_than=None, retain_versions=3).run()
    read = [step.path for step in table.root.steps if step.method == "read_tail"]
    assert sorted(read) == sorted(manifest_path(version) for version in (28, 29, 30))
    assert stats.old_versions == 27
    assert stats.data_files_removed == 27


def test_the_age_of_versions_is_found_by_halving():
    table = history(40)
    cleanup(table, 40, older_than=timedelta(days=100_000)).explain()
    looked_at = [step for step in table.root.steps if step.method == "read"]
    assert len(looked_at) <= 6


def test_detached_versions_stay_with_their_files_and_are_no_place_to_start_from():
    table = history(3)
    table.inner.write("data/detached.lance", b"rows")
    overwriting = table.transaction(2, Overwrite(SCHEMA, (fragment("detached"),)))
    made = commit(table.sound, overwriting, table.options(detached=True))
    cleanup(table, 3, delete_unverified=True).run()
    assert load_version(table.inner, made.version).version == made.version
    assert table.inner.exists("data/detached.lance")
    with pytest.raises(InvalidInputError, match="detached"):
        cleanup(table, DETACHED_BIT | 5)


def test_leftovers_of_interrupted_commits_go_when_they_are_old(monkeypatch: pytest.MonkeyPatch):
    table = history(3)
    left = [f"{manifest_path(2)}#1", "_versions/.tmp-ab", "data/.tmp-cd", "_transactions/.tmp-ef"]
    staged = f"{manifest_path(9)}-{'a' * 8}"  # of a version that only a manifest store knows
    for path in (*left, staged, "_versions/notes.txt", "data/notes.txt"):
        table.inner.write(path, b"x")
    cleanup(table, 3).run()
    assert all(table.inner.exists(path) for path in left)
    monkeypatch.setattr("lance_nb.table.retention.UNVERIFIED_AGE", timedelta(0))
    cleanup(table, 3).run()
    assert not any(table.inner.exists(path) for path in left)
    assert table.inner.exists(staged)
    assert table.inner.exists("_versions/notes.txt")
    assert table.inner.exists("data/notes.txt")


def test_a_dataset_with_a_manifest_store_stays_consistent():
    table = Table(seed=4)
    entries = MemoryEntries()
    store = synchronised(table.inner, entries, "base")
    made = commit(CommitPlace.of(store), table.creating(), table.options())
    for version in (1, 2, 3):
        table.inner.write(f"data/after-{version}.lance", b"rows")
        commit(CommitPlace.of(store), table.appending(version), table.options())
    policy = RetentionPolicy.of(timedelta(0), None, None)
    Cleanup(store, "", 4, policy, CleanupOptions(environment=Environment())).run()
    assert [one.version for one in version_names(store)] == [4]
    again = commit(CommitPlace.of(store), table.appending(4), table.options())
    assert (made.version, again.version) == (1, 5)
    assert load_latest(store).version == 5


def test_deletions_are_paced_when_a_rate_is_given():
    table = history(3)
    time = table.time
    done = cleanup(table, 3, delete_rate_limit=10)
    environment = Environment(clock=Environment().clock, sleep=time.sleep)
    options = CleanupOptions(delete_rate_limit=10, environment=environment)
    done._options = options
    stats = done.run()
    assert time.slept == [0.1] * (stats.old_versions * 3)


def test_progress_counts_what_is_read_and_what_is_deleted():
    table = history(4)
    seen: list[tuple[int, int]] = []
    cleanup(table, 4, progress=lambda *step: seen.append(step)).run()
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] == seen[-1][1] == 4 + 9


def test_an_interrupted_cleanup_leaves_versions_whole():
    table = history()

    def stop(done: int, total: int) -> None:
        if done > 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cleanup(table, 5, progress=stop).run()
    for name in version_names(table.inner):
        found = load_version(table.inner, name.version)
        assert all(
            table.inner.exists(f"data/{file.path}") for one in found.fragments for file in one.files
        )


def test_on_a_disk_manifests_are_gone_for_good_before_files_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    table = Table(seed=2, inner=LocalStore(str(tmp_path)))
    table.create()
    for version in (1, 2):
        overwrite(table, version)
    done: list[str] = []
    remove = OpenFolder.remove

    def place(folder: OpenFolder) -> str:
        return str(Path(f"/proc/self/fd/{folder.descriptor}").readlink())

    def recorded(folder: OpenFolder, name: str) -> None:
        done.append(f"delete {place(folder)}/{name}")
        remove(folder, name)

    monkeypatch.setattr(OpenFolder, "remove", recorded)
    monkeypatch.setattr(OpenFolder, "sync", lambda folder: done.append(f"sync {place(folder)}"))
    policy = RetentionPolicy.of(timedelta(0), None, None)
    Cleanup(table.inner, "", 3, policy, CleanupOptions(environment=Environment())).run()
    synced = done.index(f"sync {tmp_path}/_versions")
    assert synced == 2
    assert all("_versions" in one for one in done[:synced])
    assert all("_versions" not in one for one in done[synced + 1 :])
    assert len(done) > 3


def age_manifests(table: Table, versions: Iterable[int], days: int) -> None:
    """Let the manifests of some versions be that many days old."""
    world = table.inner._root
    for key, (data, modified) in list(world.objects.items()):
        if any(key.endswith(manifest_path(version)) for version in versions):
            world.objects[key] = data, modified - timedelta(days=days)


def read_versions(table: Table) -> list[int]:
    """Return the versions whose manifests were read for their files, in order."""
    numbers = {manifest_path(version): version for version in range(1, 50)}
    read = [step.path for step in table.root.steps if step.method == "read_tail"]
    return sorted({numbers[one] for one in read if one in numbers})


@pytest.mark.parametrize(("age", "expected"), [(8, [4, 5]), (6, [1, 2, 3, 4, 5])])
def test_versions_that_go_are_read_when_they_may_hold_young_files(age: int, expected: list[int]):
    """A young file that nobody knows may be of a version that goes, unless that is settled."""
    table = history(5)
    age_manifests(table, (1, 2, 3), age)

    stats = cleanup(table, 5).run()

    assert read_versions(table) == expected
    assert stats.old_versions == 4
    assert table.inner.exists("data/made-4.lance")
    assert not table.inner.exists("data/made-3.lance")


@pytest.mark.parametrize(
    ("age_s", "older_than_s", "goes"), [(10, 9.5, True), (10, 10.5, False), (0.5, 0, True)]
)
def test_a_version_goes_when_it_is_older_than_asked_for_by_the_clock(
    age_s: float, older_than_s: float, goes: bool
):
    table = history(2)
    committed_ns = load_version(table.inner, 1).timestamp_ns
    clock = committed_ns + int(age_s * 1e9)
    policy = RetentionPolicy.of(timedelta(seconds=older_than_s), None, None)
    options = CleanupOptions(environment=Environment(clock=lambda: clock))

    plan, _ = Cleanup(table.root, "", 2, policy, options).explain()

    assert [one.version for one in plan.names] == ([1] if goes else [])


@pytest.mark.parametrize(
    ("options", "going"),
    [
        ({}, [1, 2, 3, 4]),
        ({"retain_versions": 1}, [1, 2, 3, 4]),
        ({"retain_versions": 3}, [1, 2]),
        ({"retain_versions": 9}, []),
        ({"versions": [2, 4]}, [2, 4]),
        ({"versions": [2, 4], "retain_versions": 3}, [2]),
        ({"versions": [5]}, []),
        ({"older_than": timedelta(days=100_000)}, []),
    ],
)
def test_the_plan_is_what_a_clean_up_deletes(options: dict, going: list[int]):
    table = history(5)
    plan, _ = cleanup(table, 5, **options).explain()
    before = {one.name for one in table.inner.list_recursive("")}

    stats = cleanup(table, 5, **options).run()

    gone = before - {one.name for one in table.inner.list_recursive("")}
    assert [one.version for one in plan.names] == going
    assert gone == {one.file.path for one in plan.candidates}
    assert (stats.old_versions, stats.data_files_removed) == (len(going), len(going))
    assert stats.bytes_removed == sum(one.file.size_bytes for one in plan.candidates)
    assert numbers(table) == [one for one in range(1, 6) if one not in going]


def test_deletions_run_side_by_side_in_stores_that_are_far(monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []

    def count(tasks: object, threads: int) -> object:
        seen.append(threads)
        return run_side_by_side(tasks, threads)  # type: ignore[arg-type]

    monkeypatch.setattr("lance_nb.writing.cleanup.run_side_by_side", count)
    for scheme, options, expected in (
        ("memory", {}, 1),
        ("s3", {}, THREADS_MAX),
        ("s3", {"delete_concurrency": 3}, 3),
        ("s3", {"delete_concurrency": 3, "delete_rate_limit": 1000}, 1),
    ):
        table = history(2)
        monkeypatch.setattr(type(table.root), "scheme", scheme)
        assert cleanup(table, 2, **options).run().old_versions == 1
        assert set(seen) == {expected}
        seen.clear()


def test_versions_that_go_are_not_read_when_all_young_files_are_known():
    table = history(3)
    world = table.inner._root
    for key, (data, modified) in list(world.objects.items()):
        if "data/made-2" not in key and ".manifest" not in key:
            world.objects[key] = data, modified - timedelta(days=8)

    stats = cleanup(table, 3).run()

    assert read_versions(table) == [3]
    assert (stats.old_versions, stats.data_files_removed) == (2, 2)


def candidates() -> list[Candidate]:
    kinds = ("manifest", "data", "data", "transaction", "index", "deletion", "temporary_manifest")
    return [
        Candidate(
            StoredFile(f"x/{number}", 10, None, "", kind), number > 4, 3 if number < 5 else None
        )
        for number, kind in enumerate(kinds)
    ]


def plan() -> tuple[CleanupPlan, Survey]:
    found = candidates()
    survey = Survey(MemoryStore("r"), (), {"": LineOfVersions("", None, (), ())}, {}, {}, {})
    return CleanupPlan("", (), tuple(found[:1]), tuple(found[1:])), survey


def test_files_are_counted_by_kind():
    stats = stats_of(candidates(), 2)
    assert stats.bytes_removed == 70
    assert stats.old_versions == 1
    assert stats.data_files_removed == 2
    assert stats.transaction_files_removed == 1
    assert stats.index_files_removed == 1
    assert stats.deletion_files_removed == 1
    assert stats.failed_deletes == 2


def test_a_list_that_is_cut_says_so_and_counts_everything():
    found = explanation_of(*plan(), 9, max_files=2)
    assert (found.read_version, len(found.candidate_files)) == (9, 2)
    assert found.candidate_files_truncated
    assert found.warnings == ["candidate_files truncated to 2 entries"]
    assert found.stats.bytes_removed == 70


def test_a_list_that_is_not_wanted_is_empty_and_not_cut():
    found = explanation_of(*plan(), 9, max_files=5, include_files=False)
    assert found.candidate_files == []
    assert not found.candidate_files_truncated


def test_every_file_has_a_reason():
    found = explanation_of(*plan(), 9)
    reasons = found.to_table()["reason"].to_pylist()
    assert reasons[0] == "version 3 is deleted"
    assert reasons[1] == "only deleted versions refer to it, the newest is 3"
    assert reasons[5] == "no version refers to it"
    assert reasons[6] == "left behind by a commit that was interrupted"
    assert "70 bytes" in str(found)
    assert "x/0" in str(found)


@pytest.mark.parametrize("count", [0, 8, 9, 12])
def test_at_most_eight_files_are_shown(count: int):
    files = [CleanupCandidateFile(f"x/{n}", "data", False, 1000 + n, 3, "r") for n in range(count)]
    shown = str(CleanupExplanation(9, CleanupStats(5000, 2, 3, 4, 5, 6), files))
    lines = shown.splitlines()
    assert lines[0] == (
        "cleanup seen from version 9 would free 5,000 bytes: 2 versions and 18 files"
    )
    assert [line.split()[1] for line in lines[1:9]] == [f"x/{n}" for n in range(min(count, 8))]
    assert lines[9:] == (
        [f"  ... and {count - 8} more: to_table() lists them"] if count > 8 else []
    )


def test_branches_that_stay_and_warnings_are_shown():
    found = CleanupExplanation(
        9, CleanupStats(),
        referenced_branches=[CleanupReferencedBranch("dev", 4, False)], warnings=["careful"],
    )  # fmt: skip
    assert str(found).splitlines()[1:] == [
        "  version 4 stays: branch 'dev' started from it", "  careful",
    ]  # fmt: skip


def test_branches_that_start_from_versions_are_listed_in_order():
    forks = {7: ("b",), 3: ("a", "c")}
    survey = SimpleNamespace(
        lines={"": SimpleNamespace(branch=None)}, fork_versions=lambda _: forks
    )
    found = explanation_of(plan()[0], survey, 9)
    assert [(one.name, one.referenced_version) for one in found.referenced_branches] == [
        ("a", 3), ("c", 3), ("b", 7),
    ]  # fmt: skip
    assert not found.candidate_files_truncated
    assert explanation_of(plan()[0], survey, 9, max_files=7).warnings == []


def test_nothing_deleted_is_all_zeros():
    assert set(dataclasses.astuple(CleanupStats())) == {0}


def test_a_clean_up_of_nothing_counts_nothing() -> None:
    assert dataclasses.astuple(CleanupStats()) == (0,) * 7


def test_a_plan_that_is_run_deletes_what_it_counted():
    table = history()
    work = cleanup(table, 5, retain_versions=2)
    found, survey = work.explain()
    shown = explanation_of(found, survey, 5, pinned=work.pinned(found))
    assert shown.versions == (1, 2, 3)
    before = {one.name for one in table.inner.list_recursive("")}
    done = shown.run()
    assert done == shown.stats
    deleted = before - {one.name for one in table.inner.list_recursive("")}
    assert deleted == {one.path for one in shown.candidate_files}
    assert numbers(table) == [4, 5]


@pytest.mark.parametrize(
    "change",
    [
        lambda table: overwrite(table, 5),
        lambda table: TagWriter(table.inner, place_of(table)).create("v", Target(None, 2)),
        lambda table: table.inner.delete(manifest_path(1)),
        lambda table: BranchWriter(table.inner, place_of(table)).create("b", Target(None, 3)),
    ],
    ids=["commit", "tag", "other clean-up", "branch"],
)
def test_a_plan_that_no_longer_holds_deletes_nothing(change: Callable[[Table], object]):
    table = history()
    work = cleanup(table, 6, retain_versions=2, error_if_tagged_old_versions=False)
    found, survey = work.explain()
    shown = explanation_of(found, survey, 6, pinned=work.pinned(found))
    change(table)
    before = {one.name for one in table.inner.list_recursive("")}
    with pytest.raises(CommitConflictError, match="nothing was deleted: the dataset changed"):
        shown.run()
    assert {one.name for one in table.inner.list_recursive("")} == before


def test_an_explanation_made_by_hand_has_no_plan():
    with pytest.raises(InvalidInputError, match="has no plan"):
        CleanupExplanation(9, CleanupStats()).run()


NOW = timedelta(0)


@pytest.fixture
def grown(make: Callable[..., LanceDataset], rows: Any) -> LanceDataset:
    """Return five versions: rows, three overwrites, an append."""
    found = make()
    for _ in range(3):
        found.insert(rows, mode="overwrite")
    found.insert(rows)
    return found


def test_old_versions_go_with_what_only_they_need(grown: LanceDataset, files: Any):
    before = files()
    planned = grown.cleanup_old_versions(NOW, dry_run=True)
    assert files() == before
    stats = grown.cleanup_old_versions(NOW)
    gone = {path: data for path, data in before.items() if path not in files()}
    assert {one.path for one in planned.candidate_files} == set(gone)
    assert planned.stats == stats
    assert stats.bytes_removed == sum(map(len, gone.values()))
    assert stats.old_versions == 4
    assert grown.version_numbers() == [5]
    assert grown.count_rows() == grown.to_table().num_rows == 20


def test_rules_hold_together(grown: LanceDataset):
    assert grown.cleanup_old_versions().old_versions == 0
    assert grown.cleanup_old_versions(timedelta(days=1), 1).old_versions == 0
    assert grown.cleanup_old_versions(NOW, 4, versions=[1, 2, 5]).old_versions == 1
    assert grown.version_numbers() == [2, 3, 4, 5]
    assert grown.cleanup_old_versions(retain_versions=2).old_versions == 2
    assert grown.version_numbers() == [4, 5]


def test_versions_after_the_one_that_is_open_stay(grown: LanceDataset):
    assert grown.checkout_version(3).cleanup_old_versions(retain_versions=1).old_versions == 2
    assert grown.version_numbers() == [3, 4, 5]


def test_tagged_versions_are_reported_or_left(grown: LanceDataset, files: Any):
    grown.tags.create("kept", 2)
    before = files()
    with pytest.raises(CleanupError, match="'kept' \\(version 2\\)") as caught:
        grown.cleanup_old_versions(NOW)
    assert files() == before
    assert isinstance(caught.value, OSError)
    grown.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert grown.version_numbers() == [2, 5]
    assert grown.checkout_version("kept").to_table().num_rows == 10


def test_a_branch_protects_the_version_it_started_from_and_is_cleaned_alone(
    grown: LanceDataset, rows: Any, files: Any
):
    branch = grown.create_branch("a/data", 3)  # its folder looks like data of a branch "a"
    other = grown.create_branch("a", 4)
    for one in (branch, other):
        one.insert(rows, mode="overwrite")
        one.insert(rows)
    inner = {path: data for path, data in files().items() if path.startswith("tree/a/data/")}
    outer = {path: data for path, data in files().items() if not path.startswith("tree/")}
    other.cleanup_old_versions(NOW, delete_unverified=True)
    assert inner.items() <= files().items()
    assert outer.items() <= files().items()
    assert other.version_numbers() == [6]
    found = grown.cleanup_old_versions(NOW, dry_run=True)
    assert [(one.name, one.referenced_version) for one in found.referenced_branches] == [
        ("a/data", 3),
        ("a", 4),
    ]
    grown.cleanup_old_versions(NOW, delete_unverified=True)
    assert grown.version_numbers() == [3, 4, 5]
    assert branch.checkout_version(3).to_table().num_rows == 10
    assert branch.to_table().num_rows == 20
    assert grown.verify().ok


@pytest.mark.parametrize(
    "wrong",
    [
        {"older_than": 5},
        {"older_than": timedelta(-1)},
        {"retain_versions": 0},
        {"retain_versions": 1.5},
        {"versions": []},
        {"versions": ["1"]},
        {"delete_rate_limit": 0},
        {"delete_concurrency": 0},
        {"delete_concurrency": 2**61},
    ],
)
def test_wrong_rules_change_nothing(grown: LanceDataset, files: Any, wrong: dict[str, Any]):
    before = files()
    with pytest.raises(CleanupError):
        grown.cleanup_old_versions(**wrong)
    assert files() == before


def test_an_explanation_lists_files_when_asked(grown: LanceDataset):
    assert grown.explain_cleanup_old_versions(NOW).candidate_files == []
    found = grown.explain_cleanup_old_versions(NOW, include_files=True, max_files=2)
    assert (len(found.candidate_files), found.candidate_file_limit) == (2, 2)
    with pytest.raises(InvalidInputError, match="max_files"):
        grown.explain_cleanup_old_versions(max_files=0)


def test_a_handle_whose_version_is_gone_cleans_up_what_is_older(grown: LanceDataset):
    old = grown.checkout_version(2)
    grown.cleanup_old_versions(NOW, versions=[2])
    newest = grown.version
    assert old.cleanup_old_versions(NOW).old_versions == 1
    assert grown.version_numbers() == list(range(3, newest + 1))


def test_files_under_another_base_path_are_never_deleted(grown: LanceDataset, uri: str, rows: Any):
    clone = grown.shallow_clone(f"{uri}-clone")
    clone.insert(rows, mode="overwrite")
    before = set(grown.space().files["path"].to_pylist())
    opened = lance_nb.dataset(f"{uri}-clone", allow_bases=[uri])
    opened.cleanup_old_versions(NOW, delete_unverified=True)
    assert opened.version_numbers() == [6]
    assert before == set(grown.space().files["path"].to_pylist())
    assert grown.verify().ok


def test_folders_of_indices_go_once_they_are_empty(rows: Any, tmp_path: Path):
    place = tmp_path / "indexed.lance"
    ds = lance_nb.write_dataset(rows, place)
    branch = ds.create_branch("dev")
    branch.create_scalar_index("id", "BTREE")
    names = []
    for _ in range(3):
        ds.create_scalar_index("id", "BTREE", replace=True)
        names.append(str(ds.list_indices()[0]["uuid"]))
    indices = place / "_indices"
    (indices / names[1] / "of-another-process").mkdir()
    (indices / "new").mkdir()  # another process is about to write into it
    ds.cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    assert {one.name for one in indices.iterdir()} == {names[1], names[2], "new"}
    assert [one.name for one in (indices / names[1]).iterdir()] == ["of-another-process"]
    (folder,) = (place / "tree" / "dev" / "_indices").iterdir()
    assert list(folder.iterdir())
    branch.drop_index("id_idx")
    branch.cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    assert not folder.exists()


def test_nothing_remains_of_a_dataset(make, uri, files) -> None:
    made = make()
    made.create_branch("dev").insert(made.to_table())
    made.tags.create("t", 1)
    LanceDataset.drop(uri)
    assert files() == {}
    with pytest.raises(DatasetNotFoundError):
        lance_nb.dataset(uri)


def test_no_folder_remains_of_a_local_one(rows, tmp_path: Path) -> None:
    lance_nb.write_dataset(rows, tmp_path / "d").create_branch("dev")
    LanceDataset.drop(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_is_nothing_can_be_dropped(uri) -> None:
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.drop(uri)
    LanceDataset.drop(uri, ignore_not_found=True)


def test_other_folders_are_left_alone(rows, tmp_path: Path) -> None:
    lance_nb.write_dataset(rows, tmp_path / "above" / "d")
    with pytest.raises(InvalidInputError, match="not the root of a dataset"):
        LanceDataset.drop(tmp_path / "above")
    broken = tmp_path / "broken" / "_versions"
    broken.mkdir(parents=True)
    (broken / "1.manifest").write_bytes(b"no manifest")
    with pytest.raises(InvalidInputError, match="not the root of a dataset"):
        LanceDataset.drop(tmp_path / "broken")
    assert lance_nb.dataset(tmp_path / "above" / "d").count_rows() == 10
    assert (broken / "1.manifest").exists()


class _PowerSwitch:
    """Writes the calls down, and ends the process, as it were, before one of the removals."""

    def __init__(self, number: int = 0) -> None:
        self.log: list[str] = []
        self._number = number

    def __call__(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        if name == "unlink":
            self._number -= 1
            if self._number == 0:
                raise KeyboardInterrupt
        self.log.append(f"{name} {arguments[0]}" if isinstance(arguments[0], str) else name)
        return real(*arguments, **options)


@pytest.mark.parametrize("has_store", [False, True])
def test_a_drop_that_was_interrupted_can_be_repeated(
    rows, tmp_path: Path, *, has_store: bool
) -> None:
    """The hint went after the last manifest: without one, the next drop refused the rest.

    A manifest store named a manifest that was gone, so the rest was no dataset.
    """
    options = {"manifest_store": f"sqlite:///{tmp_path}/m.db"} if has_store else {}
    place = tmp_path / "in" / "d"
    place.parent.mkdir()
    number = 0
    while True:
        number += 1
        made = lance_nb.write_dataset(rows, place, storage_options=options)
        made.delete("id = 1")
        switch = _PowerSwitch(number)
        try:
            with in_place_of_os(WatchedSystem(("unlink",), switch)):
                LanceDataset.drop(place, options)
        except KeyboardInterrupt:
            LanceDataset.drop(place, options, ignore_not_found=True)
            assert list(place.parent.iterdir()) == []
            continue
        assert number > 6
        return


def test_manifests_go_when_the_rest_is_gone_from_the_disk(rows, tmp_path: Path) -> None:
    lance_nb.write_dataset(rows, tmp_path / "d").delete("id = 1")
    switch = _PowerSwitch()
    with in_place_of_os(WatchedSystem(("unlink", "fsync", "rmdir"), switch)):
        LanceDataset.drop(tmp_path / "d")
    is_manifest = [one.endswith(".manifest") for one in switch.log]
    first, last = is_manifest.index(True), len(is_manifest) - is_manifest[::-1].index(True)
    assert last - first == 2, "all in a row"
    folders = {"data", "_deletions", "_transactions", "_versions"}
    assert switch.log[first - len(folders) : first] == ["fsync"] * len(folders)
    assert switch.log[last] == "fsync"
