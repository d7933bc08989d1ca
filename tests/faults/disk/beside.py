"""pylance commits to a dataset while a writer of ours is at it, which is then killed.

The child stops at one of its calls that change the disk, pylance commits in a process of its own,
the child goes on and dies at a later call; or it dies first and pylance commits then. Afterwards
the state is what one after the other would have left, or what the verb alone may leave half-way:
no commit of pylance's is lost or there twice, its version has the rows that it read, both engines
read the same, ``verify`` finds no error, and the verb can be repeated.

    python -m tests.faults beside 700 [seed] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lance_nb.errors import CommitConflictError
from tests.faults.disk.case import Case, Place, is_counted, run_kind
from tests.faults.disk.kills import Killer, killed
from tests.faults.disk.looking import Judge, State, errors_of, is_between, look, unnumbered
from tests.faults.verbs import VERBS
from tests.faults.verbs.verb import opened
from tests.support.faulty_system import Call

PER_VERB = 6
CALLS_MORE = 12  # of a commit that is made again behind pylance's
PAUSES_SHARE = 0.75  # of the rounds; in the others pylance commits after the kill
QUESTIONS = ("append beside", "delete beside", "update beside", "configure beside")
# Readers of pylance refuse a dataset whose manifests have names of two schemes, so nobody may write
# while they are migrated.
ALONE = ("migrate_manifest_paths_v2", "drop", "repair of a damaged version")
SAME_SCHEMA = ("", "-stable")
NAMES = tuple(
    name
    for name, verb in VERBS.items()
    if verb.at in SAME_SCHEMA and verb.commits and name not in ALONE
)


class Round(NamedTuple):
    """What pylance does, at which call our writer waits for it (0: at none), and where it ends."""

    question: str
    pause: int
    place: Place


class _Pausing(Killer):
    """Waits at one call for pylance, and ends the process at another one."""

    def __init__(self, place: Place, pause: int, pipes: tuple[int, int]) -> None:
        super().__init__(place)
        self._pause = pause
        self._pipes = pipes

    def __call__(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        if is_counted(name, arguments) and self._count + 1 == self._pause:
            self._pause = 0
            os.write(self._pipes[1], b"p")
            os.read(self._pipes[0], 1)
        return super().__call__(name, real, arguments, options)


class BesideCase(Case):
    """A verb on a dataset of a seed, and what may be seen of it beside a commit of pylance's."""

    def __init__(self, name: str, seed: int, folder: Path, judge: Judge, per_verb: int) -> None:
        super().__init__(name, seed, folder, judge)
        self._seed, self._per_verb = seed, per_verb
        self._orders: dict[str, list[State]] = {}

    def rounds(self) -> Iterator[Round]:
        """Yield some rounds, whose pause and end are chosen by chance."""
        for number in range(self._per_verb):
            pauses = self.chance.random() < PAUSES_SHARE
            pause = self.chance.randint(1, len(self.calls)) if pauses else 0
            last = self.chance.randint(max(pause, 1), len(self.calls) + CALLS_MORE * pauses)
            place = Place(last, self.chance.choice(("before", "after")))
            yield Round(QUESTIONS[(self._seed + number) % len(QUESTIONS)], pause, place)

    def orders(self, question: str) -> list[State]:
        """Return what is seen of pylance alone, the verb and then pylance, and the reverse."""
        if question not in self._orders:
            states = []
            for steps in ((False,), (True, False), (False, True)):
                path = self.copied("order")
                try:
                    for is_verb in steps:
                        if is_verb:
                            self.verb.run(path)
                        else:
                            self.judge.ask(question, path + self.verb.at)
                    states.append(look(path + self.verb.at))
                except CommitConflictError:  # as to revert rows that pylance has changed
                    assert steps == (False, True)
                finally:
                    shutil.rmtree(Path(path).parent)
            self._orders[question] = states
        return self._orders[question]

    def round(self, fault: Round) -> str:
        """Kill once beside a commit of pylance's; return how it ended. Raises AssertionError."""
        orders = self.orders(fault.question)
        path = self.copied("round")
        answers: list[Any] = []
        to_child, to_parent = os.pipe(), os.pipe()

        def commit() -> None:
            answers.append(self.judge.ask(fault.question, path + self.verb.at))
            os.write(to_child[1], b"g")

        killer = _Pausing(fault.place, fault.pause, (to_child[0], to_parent[1]))
        try:
            how = killed(lambda: self.watched_run(path, killer), to_parent[0], commit)
        finally:
            for descriptor in (*to_child, *to_parent):
                os.close(descriptor)
        if not answers:
            commit_alone = self.judge.ask(fault.question, path + self.verb.at)
            answers.append(commit_alone)
        self._look(path, orders, answers[0], is_ended=how == "ended")
        self.tidy()
        return how

    def _look(self, path: str, orders: list[State], theirs: Any, *, is_ended: bool) -> None:
        changed = path + self.verb.at
        state = look(changed)
        alone, *joint = orders
        rows = sorted_rows(state)
        landed = rows in map(sorted_rows, joint)
        if not landed and (is_ended or rows != sorted_rows(alone)):
            allowed = not is_ended and any(
                is_between(self.verb, state, alone, after) for after in joint
            )
            assert allowed, f"readers see {state}"
        self.judge.compare(changed, state)
        if theirs["version"] in state["main"]["versions"]:
            version = opened(changed).checkout_version(theirs["version"])
            assert version.to_table().to_pylist() == theirs["rows"], "pylance read other rows"
        else:
            is_cleaned = {"versions", "cleaned"} & {*self.verb.between}
            assert is_cleaned, f"version {theirs['version']}, of pylance, is gone"
        if not landed:
            try:
                self.repeat(path)
            except CommitConflictError:
                assert len(joint) == 1, "repeated, it is refused"
            else:
                again = look(changed)
                assert sorted_rows(again) in map(sorted_rows, joint), f"repeated, they see {again}"
        problems = errors_of(changed)
        assert problems in ([], self.errors), f"verify: {problems}"


def sorted_rows(state: State) -> State:
    """Return a state without the numbers of versions and the order of rows."""
    plain = unnumbered(state)
    for line in (plain["main"], *plain["branches"].values()):
        if isinstance(line, dict):
            line["rows"] = sorted(line["rows"], key=repr)
    return plain


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    return run_kind("beside", "beside", arguments, BesideCase, (700, PER_VERB), names=NAMES)
