"""Simulated clean-ups: the same as real ones, fast, and they say who keeps a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from lance_nb.dataset import LanceDataset
from lance_nb.errors import CleanupError, RefNotFoundError
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.format.manifest_history import DATA, NamedFile, identity_of
from lance_nb.table.file_references import Line, References
from lance_nb.table.retention import RetentionPolicy
from lance_nb.table.retention_simulation import RetentionRule, RetentionSimulator
from lance_nb.table.space_usage import SpaceAccount, WhatIf
from lance_nb.table.survey import MANIFEST, LineOfVersions, StoredFile, Survey

NOW = timedelta(0)


@pytest.fixture
def grown(make: Callable[..., LanceDataset], rows: Any) -> LanceDataset:
    """Return main with seven versions of shared and own files, two tags, a branch, an index."""
    found = make()
    for at in range(6):
        found.insert(rows, mode="overwrite" if at % 3 == 2 else "append")
    found.tags.create("first", 2)
    found.tags.create("second", 4)
    found.create_branch("dev", 3).insert(rows)
    return found


def test_every_rule_comes_true(grown: LanceDataset) -> None:
    simulator = grown.space().simulator()
    for keep, age in product((None, 1, 2, 4, 7, 99), (None, NOW, timedelta(days=1))):
        if keep is None and age is None:
            continue
        found = simulator.simulate(RetentionRule(keep, age))
        plan = grown.cleanup_old_versions(
            age, keep, error_if_tagged_old_versions=False, dry_run=True
        )
        assert found.numbers == plan.versions, (keep, age)
        shown = (found.num_files, found.size_bytes)
        assert shown == (len(plan.candidate_files), plan.stats.bytes_removed), (keep, age)


@pytest.mark.parametrize("branch", [None, "dev"])
def test_the_version_that_the_next_merge_starts_from_is_kept(
    make: Callable[..., LanceDataset], rows: Any, branch: str | None
) -> None:
    main = make()
    sides = {None: main, "dev": main.create_branch("dev")}
    for side in (*sides.values(), *sides.values()):
        side.insert(rows)
    source, target = sides[branch], sides["dev" if branch is None else None]
    merged = source.version
    target.branches.merge(branch or "main", copy=True)
    for _ in range(2):
        source.insert(rows)
    space = source.space()

    freed = space.freed_if(retain_versions=1, branch=branch)
    simulated = space.simulator(branch).simulate(RetentionRule(1, None))
    explained = source.explain_cleanup_old_versions(retain_versions=1, older_than=NOW)
    real = source.cleanup_old_versions(retain_versions=1, older_than=NOW)

    assert merged in source.version_numbers()
    assert merged not in simulated.numbers
    assert len(simulated.numbers) == real.old_versions == explained.stats.old_versions
    assert (simulated.size_bytes, freed.size_bytes) == (real.bytes_removed,) * 2
    assert freed.num_versions == real.old_versions


def test_tags_that_are_dropped_keep_nothing(grown: LanceDataset) -> None:
    simulator = grown.space().simulator()
    rule = RetentionRule(1, None, frozenset({"first"}))
    found = simulator.simulate(rule)
    assert found.numbers == (1, 2, 5, 6)
    grown.tags.delete("first")
    plan = grown.cleanup_old_versions(
        retain_versions=1, error_if_tagged_old_versions=False, dry_run=True
    )
    assert (found.numbers, found.size_bytes) == (plan.versions, plan.stats.bytes_removed)


def test_a_branch_is_simulated_by_itself(grown: LanceDataset) -> None:
    simulator = grown.space().simulator("dev")
    assert simulator.numbers == [3, 4]
    assert simulator.tags == {}
    dev = grown.checkout_version(("dev", None))
    plan = dev.cleanup_old_versions(retain_versions=1, dry_run=True)
    found = simulator.simulate(RetentionRule(1))
    assert (found.numbers, found.size_bytes) == (plan.versions, plan.stats.bytes_removed)
    with pytest.raises(RefNotFoundError):
        grown.space().simulator("nope")


def test_a_rule_is_checked(grown: LanceDataset) -> None:
    with pytest.raises(CleanupError, match="at least 1"):
        grown.space().simulator().simulate(RetentionRule(0))


def test_a_file_names_who_keeps_it(grown: LanceDataset) -> None:
    simulator = grown.space().simulator()
    gone = simulator.simulate(RetentionRule(1)).numbers
    assert gone == (1, 5, 6)
    data = [one for one in simulator.files_of(1, gone, 9) if one.path.startswith("data/")]
    (kept,) = data  # of version 1, which later appends go on to use
    assert not kept.goes
    assert kept.keepers == ((None, 3), (None, 2), ("dev", 4), ("dev", 3))
    assert kept.num_keepers == 4
    assert all(not one.goes for one in simulator.files_of(7, gone, 9))
    every = tuple(range(1, 7))
    own = [one for one in simulator.files_of(5, every, 9) if one.path.startswith("data/")]
    assert {(one.goes, one.num_keepers) for one in own} == {(True, 0)}
    assert simulator.files_of(99, gone, 9) == []
    assert len(simulator.files_of(6, gone, 1)) == 1


def test_a_move_of_a_thousand_versions_takes_a_few_milliseconds() -> None:
    """The budget of a move is 100 ms, on the way to the browser and back included."""
    count = 1000
    now = datetime(2026, 1, 1, tzinfo=UTC)
    names = tuple(ManifestName(one, NamingScheme.V2) for one in range(1, count + 1))
    references = References()
    line = references.lines[""] = Line("")
    files, live = [], []
    for at, name in enumerate(names):
        new = [NamedFile(DATA, f"data/f{at}-{part}.lance") for part in range(3)]
        old = live[:2] if at % 2 else []
        live = live[len(old) :] + new
        moment = int((now - timedelta(hours=count - at)).timestamp() * 1e9)
        version = SimpleNamespace(
            version=name.version, timestamp_ns=moment, size_bytes=100, appeared=new, vanished=old
        )
        line.add(version, references.identity)  # type: ignore[arg-type]
        files += [StoredFile(one.path, 10, now, "", DATA, one.identity) for one in new]
    manifests = {one.path: StoredFile(one.path, 100, now, "", MANIFEST) for one in names}
    lines = {"": LineOfVersions("", None, names, ())}
    root: Any = None
    survey = Survey(root, (*files, *manifests.values()), lines, {}, {}, manifests)
    simulator = RetentionSimulator(SpaceAccount.of(survey, references, now))
    started = time.process_time()
    for keep in range(1, 101):
        found = simulator.simulate(RetentionRule(keep * 10, timedelta(days=1)))
    assert found.numbers == ()
    assert time.process_time() - started < 2.0  # of a hundred moves; about 0.1 on a quiet machine
    assert len(simulator.simulate(RetentionRule(1, timedelta(days=20))).numbers) == 520


def test_a_file_in_the_folder_of_a_needed_file_stays() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    names = tuple(ManifestName(one, NamingScheme.V2) for one in (1, 2))
    references = References()
    line = references.lines[""] = Line("")
    for name in names:
        new = [NamedFile(DATA, f"data/f{name.version}.lance")]
        version = SimpleNamespace(
            version=name.version, timestamp_ns=1, size_bytes=100, appeared=new,
            vanished=[NamedFile(DATA, "data/f1.lance")] if name.version == 2 else [],
        )  # fmt: skip
        line.add(version, references.identity)  # type: ignore[arg-type]
    old = now - timedelta(days=30)
    files = [
        StoredFile(path, size, old, "", DATA, identity_of(DATA, path.split("/")[at]))
        for path, size, at in (
            ("data/f1.lance", 1, -1), ("data/f2.lance", 2, -1),
            ("data/f1/deep/1.blob", 4, -2), ("data/f2/deep/1.blob", 8, -2),
        )
    ]  # fmt: skip
    manifests = {one.path: StoredFile(one.path, 100, old, "", MANIFEST) for one in names}
    lines = {"": LineOfVersions("", None, names, ())}
    root: Any = None
    survey = Survey(root, (*files, *manifests.values()), lines, {}, {}, manifests)
    account = SpaceAccount.of(survey, references, now)
    found = RetentionSimulator(account).simulate(RetentionRule(1))
    real = account.freed(RetentionPolicy.of(None, 1, None), WhatIf())
    assert (found.numbers, found.size_bytes, found.num_files) == ((1,), 105, 3)
    assert (real.size_bytes, real.num_files) == (105, 3)
