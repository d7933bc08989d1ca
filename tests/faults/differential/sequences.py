"""Long histories of every verb, by us and by pylance in turns, that must never change afterwards.

    python -m tests.faults stateful 10000 [seed] [--keep]     many sequences
    python -m tests.faults stateful 1 SEED --show             the steps of one

The steps are those of the differential cases and more: clean-ups, tags and branches that come and
go, merges of branches, reverts. pylance is the judge of each step where it has the verb; else a
three-way merge by ``uid`` is. Beside that a model remembers every version: at the end both
libraries read all that are left, which must be what they were, and no row id or fragment id was
given twice.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_nb
from tests.faults import command
from tests.faults.differential.histories import OPERATIONS, Author
from tests.faults.differential.play import (
    OURS,
    PYLANCE,
    Finding,
    Player,
    Step,
    comparable,
    difference,
    first_finding,
    outcome_of,
    playing,
    refusals,
)
from tests.faults.differential.reads import State
from tests.faults.differential.run import minimal, play_author, script
from tests.faults.differential.values import Column, Rows
from tests.support.reading import decoded

STEPS = 30
COUNTS = (0, 1, 2, 7, 20)
MOST_BRANCHES = 3
READ_SHARE = 0.25  # of the steps
LINEAGE = ("_rowid", "_row_created_at_version", "_row_last_updated_at_version")
Place = tuple[str | None, int]  # a branch (None: main) and a version


class LongAuthor(Author):
    """Makes the steps of a long history."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.length = STEPS + 1
        if self.file_version == "0.1":
            self.file_version = "2.2"

    def _rows(self, columns: tuple[Column, ...], count: int | None = None) -> Rows:
        return super()._rows(
            columns, self.chance.choice(COUNTS) if count is None else min(count, 20)
        )

    def _first(self) -> Step:
        step = super()._first()
        if self.chance.random() < 0.25:
            code = step.code.replace("t, uri", "t, uri, enable_v2_manifest_paths=False")
            return replace(step, code=code)
        return step

    def reads(self, player: Player, branch: str | None) -> tuple[str, ...]:
        """Choose a read now and then: a history is long, and every version is read at its end."""
        return super().reads(player, branch)[:1] if self.chance.random() < READ_SHARE else ()

    def commit_fragments(self, state: State) -> Step | None:
        step = self.append(state)
        if step.rows is None or self.branch is not None or "t.to_reader" in step.code:
            return None
        return replace(step, code="append_fragments(lance, ds, t)")

    def configure(self, state: State) -> Step:
        key, value = f"k{self.chance.randint(0, 2)}", self.chance.choice((None, "", "value", "Ü"))
        verb = self.chance.choice(("update_config", "update_metadata"))
        return Step(self._actor(), f"ds.{verb}({{{key!r}: {value!r}}})")

    def migrate_names(self, state: State) -> Step | None:
        code = "ds.migrate_manifest_paths_v2()"
        return Step(self._actor(), code) if self.branch is None else None

    def clean_up(self, state: State) -> Step:
        options = f"retain_versions={self.chance.randint(1, 4)}"
        options += f", delete_unverified={self.chance.random() < 0.5}"
        code = f"ds.cleanup_old_versions({options}, error_if_tagged_old_versions=False)"
        return Step(self._actor(), code, other=False)

    def move_tag(self, state: State) -> Step | None:
        if not state.tags:
            return None
        name = self.chance.choice(state.tags)
        if self.chance.random() < 0.5:
            return Step(self._actor(), f"ds.tags.delete({name!r})")
        version = self.chance.choice(state.versions)
        place = version if self.branch is None else (self.branch, version)
        return Step(self._actor(), f"ds.tags.update({name!r}, {place})")

    def merge_branch(self, state: State) -> Step | None:
        if not state.branches or self.branch is not None:
            return None
        name = self.chance.choice(state.branches)
        code = f"ds.branches.merge({name!r}, key='uid', copy={self.chance.random() < 0.5})"
        return Step(OURS, code, other=False, ordered=False)

    def revert(self, state: State) -> Step:
        newest = max(state.versions)
        return Step(OURS, f"ds.revert({newest}, key='uid')", other=False, ordered=False)

    def make_branch(self, state: State) -> Step | None:
        return super().make_branch(state) if len(state.branches) < MOST_BRANCHES else None

    def delete_branch(self, state: State) -> Step | None:
        if not state.branches or self.branch is not None:
            return None
        return Step(self._actor(), f"ds.branches.delete({self.chance.choice(state.branches)!r})")

    operations = OPERATIONS | {
        commit_fragments: 1, configure: 1, migrate_names: 0.3, clean_up: 1, move_tag: 0.7,
        merge_branch: 2, revert: 1, delete_branch: 0.4,
    }  # fmt: skip


# --- the model ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Version:
    """What a version held when it was the newest: rows as text by uid, and ids given so far."""

    schema: pa.Schema
    rows: dict[Any, str] | None  # None without uids, or where Python cannot hold a value
    table: pa.Table
    row_ids: dict[int, Any]  # stable row id -> uid, of this branch up to here
    fragment_ids: frozenset[int]


class HistoryPlayer(Player):
    """The dataset of a long history, and every version of it that there was."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.versions: dict[Place, Version] = {}
        self.parents: dict[str, Place] = {}
        self._merged: set[str] = set()

    def operate(self, step: Step) -> Finding | None:
        """Do an operation, compare, and remember the version that it made."""
        before = self._newest(step.branch)
        finding = super().operate(step)
        if finding is not None or not self.root.exists():
            return finding
        try:
            self._note(step, before)
        except AssertionError as error:
            return Finding(step.code, str(error))
        return None

    def finish(self) -> Finding | None:
        """Read every version that is left with both libraries."""
        for (branch, number), version in self.versions.items():
            names = version.table.column_names
            outcomes = {
                actor: outcome_of(partial(self._read_version, actor, branch, number, names))
                for actor in (OURS, PYLANCE)
            }
            finding = refusals("ds.to_table()", outcomes, self.place(branch))
            if finding is not None:
                return finding
            for actor, outcome in outcomes.items():
                text = outcome.error is None and difference(outcome.value, version.table)
                if text:
                    return Finding("ds.to_table()", f"{actor}, version {branch}:{number}: {text}")
        for branch in (None, *self.parents) if self.versions else ():
            listed = [self._listed(actor, branch) for actor in (OURS, PYLANCE)]
            if listed[0] != listed[1]:
                return Finding(
                    "ds.versions()", f"versions of {branch}: {listed[0]}, not {listed[1]}"
                )
        return None

    def _opened(self, actor: str, branch: str | None = None, version: int | None = None) -> Any:
        if actor == OURS:
            dataset: Any = lance_nb.dataset(str(self.root), allow_bases=[str(self.root.parent)])
        else:
            dataset = lance.dataset(str(self.root))
        if branch is not None:
            return dataset.checkout_version((branch, version))
        return dataset if version is None else dataset.checkout_version(version)

    def _read_version(
        self, actor: str, branch: str | None, number: int, names: list[str]
    ) -> pa.Table:
        return _read(self._opened(actor, branch, number), names)

    def _listed(self, actor: str, branch: str | None) -> list[int]:
        return [record["version"] for record in self._opened(actor, branch).versions()]

    def _newest(self, branch: str | None) -> int:
        numbers = [number for name, number in self.versions if name == branch]
        return max(numbers, default=0)

    def _note(self, step: Step, before: int) -> None:
        if deleted := re.match(r"ds\.branches\.delete\('(\w+)'\)", step.code):
            self._forget_branch(deleted[1])
        if made := re.match(r"ds\.create_branch\('(\w+)', (\d+)\)", step.code):
            self._start_branch(step.branch, made[1], int(made[2]))
        try:
            dataset = self._opened(OURS, step.branch)
            table = _read(dataset, self._columns(dataset))
        except lance_nb.LanceError:  # what pylance alone took, and the comparison accepts
            return
        if "cleanup_old_versions" in step.code:
            self._check_cleaned(step, before)
        place = (step.branch, dataset.version)
        if place in self.versions:
            text = difference(table, self.versions[place].table)
            assert not text, f"version {dataset.version} has changed: {text}"
            return
        if dataset.version < before:
            return  # created anew
        version = self._version(place, before, dataset, table)
        if "branches.merge" in step.code:
            self._check_merged(step, before, version)
        elif "ds.revert" in step.code and (step.branch, before - 1) in self.versions:
            expected = self.versions[step.branch, before - 1]
            if None not in (version.rows, expected.rows) and expected.schema == version.schema:
                assert version.rows == expected.rows, "a revert leaves other rows"
        self.versions[place] = version

    @staticmethod
    def _columns(dataset: Any) -> list[str]:
        lineage = LINEAGE if dataset.has_stable_row_ids else ()
        return [*(name for name in dataset.schema.names if "." not in name), *lineage]

    def _version(self, place: Place, before: int, dataset: Any, table: pa.Table) -> Version:
        """Remember a version; no id of a row or fragment may mean another one than before."""
        last = self.versions.get((place[0], before))
        row_ids = dict(last.row_ids) if last else {}
        uids = table["uid"].to_pylist() if "uid" in table.column_names else []
        if uids and "_rowid" in table.column_names:
            for row_id, uid in zip(table["_rowid"].to_pylist(), uids, strict=True):
                assert row_ids.setdefault(row_id, uid) == uid, f"row id {row_id} was given twice"
        manifest = dataset.opened[1].manifest
        fragment_ids = [fragment.id for fragment in manifest.fragments]
        assert len(set(fragment_ids)) == len(fragment_ids), f"fragment ids {fragment_ids} repeat"
        earlier = last.fragment_ids if last else frozenset()
        new = set(fragment_ids) - earlier
        assert not new or not earlier or min(new) > max(earlier), f"fragment ids {new} come again"
        assert manifest.max_fragment_id is None or manifest.max_fragment_id >= max(
            earlier | new, default=0
        ), f"the highest fragment id is {manifest.max_fragment_id}"
        plain = table.drop_columns([name for name in LINEAGE if name in table.column_names])
        try:
            rows = dict(zip(uids, map(str, plain.to_pylist()), strict=True)) if uids else None
        except (OverflowError, ValueError):  # times that Python cannot hold
            rows = None
        return Version(dataset.schema, rows, table, row_ids, earlier | new)

    def _start_branch(self, source: str | None, name: str, number: int) -> None:
        if (source, number) in self.versions:
            self.versions[name, number] = self.versions[source, number]
        self.parents[name] = source, number
        assert self._opened(OURS, name).version == number

    def _forget_branch(self, name: str) -> None:
        self.parents.pop(name, None)
        self._merged.discard(name)
        self.versions = {place: kept for place, kept in self.versions.items() if place[0] != name}

    def _check_cleaned(self, step: Step, before: int) -> None:
        left = set(self._listed(OURS, step.branch))
        retained = re.search(r"retain_versions=(\d+)", step.code)
        assert retained is not None
        known = sorted(number for name, number in self.versions if name == step.branch)
        tags = self._opened(OURS).tags.list().values()
        needed = {record["version"] for record in tags if record["branch"] == step.branch}
        needed.add(before)
        assert needed & set(known) <= left, f"versions {needed - left} are gone"
        if step.actor == OURS:  # pylance does not keep versions that branches started from
            forks = {number for branch, number in self.parents.values() if branch == step.branch}
            assert forks & set(known) <= left, f"versions {forks - left} are gone"
            assert len(left) <= int(retained[1]) + len(needed | forks), f"{left} are left"
        self.versions = {
            place: kept
            for place, kept in self.versions.items()
            if place[0] != step.branch or place[1] in left
        }

    def _check_merged(self, step: Step, before: int, merged: Version) -> None:
        name = re.findall(r"'(\w+)'", step.code)[0]
        source, number = self.parents[name]
        places = ((source, number), (step.branch, before), (name, self._newest(name)))
        base, ours, theirs = (self.versions.get(place) for place in places)
        if base is None or ours is None or theirs is None or source != step.branch:
            return
        if name in self._merged or not base.schema == ours.schema == theirs.schema:
            return
        self._merged.add(name)
        if base.rows is not None and ours.rows is not None and theirs.rows is not None:
            expected, disputed = three_ways(base.rows, ours.rows, theirs.rows)
            assert not disputed, f"two changes of rows {disputed} were merged"
            assert merged.rows == expected, "a merge of branches leaves other rows"


def _read(dataset: Any, columns: Sequence[str]) -> pa.Table:
    table = dataset.to_table(columns=list(columns))
    arrays = [comparable(decoded(column)).combine_chunks() for column in table.columns]
    return pa.table(arrays, names=table.column_names)


def three_ways(
    base: dict[Any, str], ours: dict[Any, str], theirs: dict[Any, str]
) -> tuple[dict[Any, str], set[Any]]:
    """Merge rows by uid; also return the uids of rows that both sides changed or removed."""
    merged, disputed = {}, set()
    for uid in ours | theirs | base:
        old, left, right = base.get(uid), ours.get(uid), theirs.get(uid)
        if old is not None and old not in (left, right):
            disputed.add(uid)
        row = right if left == old else left
        if row is not None:
            merged[uid] = row
    return merged, disputed


# --- many sequences -------------------------------------------------------------------------------


def play(seed: int) -> tuple[list[Step], Finding | None]:
    """Make and play the history of a seed; return its steps and the first thing that is wrong."""
    with warnings.catch_warnings(), playing(HistoryPlayer) as player:
        warnings.simplefilter("ignore")  # pylance's, about its own arguments
        steps, finding = play_author(LongAuthor(seed), player)
        return steps, finding or player.finish()


def explained(seed: int, steps: list[Step], finding: Finding) -> str:
    """Make a failing history small; return a script that repeats it."""
    fails: Callable[..., Any] = lambda candidate: first_finding(candidate, HistoryPlayer)
    small, last = minimal(steps, finding, first=fails)
    return f"python -m tests.faults stateful 1 {seed}\n{script(seed, small, last)}"


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.parser_of("stateful", f"sequences of {STEPS} steps", 10_000)
    parser.add_argument("--show", action="store_true", help="print the steps")

    def work(run: command.Run) -> command.Counts:
        taken, seeds = 0, []
        for seed in run.seeds():
            seeds.append(seed)
            steps, finding = play(seed)
            taken += len(steps)
            if run.options.show:
                print(*steps, sep="\n")
            if finding is not None:
                run.fail(explained(seed, steps, finding))
        return run.result({"runs": len(seeds), "steps": taken}, seeds)

    return command.run("sequences", parser, arguments, work)
