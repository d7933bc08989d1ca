"""pylance commits to a dataset while a writer of ours is at it, which is then killed.

The child stops at one of its calls that change the disk, pylance commits in a process of its own,
the child goes on and dies at a later call; or it dies first and pylance commits then. Afterwards
the state is what one after the other would have left, or what the verb alone may leave half-way:
no commit of pylance's is lost or there twice, its version has the rows that it read, both engines
read the same, ``verify`` finds no error, and the verb can be repeated.

    python -m tests.torture.beside 700 [seed] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lance_nb.errors import CommitConflictError, RetryableCommitConflictError
from tests.support.faulty_system import Call, WatchedSystem, in_place_of_os
from tests.torture import command
from tests.torture.kills import CHANGING, CHILD_S_MAX, Case, Killer
from tests.torture.looking import Judge, State, errors_of, is_between, look, unnumbered
from tests.torture.verb import opened
from tests.torture.verbs import VERBS

PER_VERB = 6
CALLS_MORE = 12  # of a commit that is made again behind pylance's
PAUSES_SHARE = 0.75  # of the rounds; in the others pylance commits after the kill
DIED, ENDED, REFUSED, RAISED = "died", "ended", "refused", "raised"
_REFUSED = 4  # exit code
QUESTIONS = ("append beside", "delete beside", "update beside", "configure beside")
# Readers of pylance refuse a dataset whose manifests have names of two schemes, so nobody may write
# while they are migrated.
ALONE = ("migrate_manifest_paths_v2", "drop", "repair of a damaged version")
SAME_SCHEMA = ("", "-stable")
NAMES = [
    name
    for name, verb in VERBS.items()
    if verb.at in SAME_SCHEMA and verb.commits and name not in ALONE
]


class End(NamedTuple):
    """At which call a writer waits for pylance (0: at none), and at which it ends, and how."""

    pause: int
    number: int
    moment: str


class _Pausing(Killer):
    """Waits at one call for pylance, and ends the process at another one."""

    def __init__(self, end_at: End, pipes: tuple[int, int]) -> None:
        super().__init__(end_at.number, end_at.moment, [])
        self._pause = end_at.pause
        self._pipes = pipes

    def __call__(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        if name == "open" and not arguments[1] & os.O_CREAT:
            return real(*arguments, **options)
        if len(self.calls) + 1 == self._pause:
            self._pause = 0
            os.write(self._pipes[1], b"p")
            os.read(self._pipes[0], 1)
        return super().__call__(name, real, arguments, options)


class BesideCase(Case):
    """A verb on a dataset of a seed, and what may be seen of it beside a commit of pylance's."""

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        super().__init__(name, seed, folder)
        self.where = ""
        self._orders: dict[str, list[State]] = {}

    def orders(self, judge: Judge, question: str) -> list[State]:
        """Return what is seen of pylance alone, the verb and then pylance, and the reverse."""
        if question not in self._orders:
            found = []
            for steps in ((False,), (True, False), (False, True)):
                place = self.copied("order")
                try:
                    for is_verb in steps:
                        if is_verb:
                            self.verb.act(place)
                        else:
                            judge.ask(question, place + self.verb.at)
                    found.append(look(place + self.verb.at))
                except CommitConflictError:  # as to revert rows that pylance has changed
                    assert steps == (False, True)
                finally:
                    shutil.rmtree(Path(place).parent)
            self._orders[question] = found
        return self._orders[question]

    def beside(self, judge: Judge, chance: random.Random, question: str) -> str:
        """Kill once beside a commit of pylance's; return how it ended. Raises AssertionError."""
        orders = self.orders(judge, question)
        place = self.copied("round")
        at = place + self.verb.at
        pauses = chance.random() < PAUSES_SHARE
        pause = chance.randint(1, len(self.calls)) if pauses else 0
        number = chance.randint(max(pause, 1), len(self.calls) + CALLS_MORE * pauses)
        moment = chance.choice(("before", "after"))
        self.where = f"{question}, paused at {pause}, killed {moment} {number}"
        how, theirs = _killed(
            lambda: self.verb.act(place),
            End(pause, number, moment),
            lambda: judge.ask(question, at),
        )
        assert how != RAISED, "the writer raised an error (printed above)"
        self._look(judge, at, orders, theirs or judge.ask(question, at), how)
        shutil.rmtree(self._folder / "round")
        return how

    def _look(self, judge: Judge, at: str, orders: list[State], theirs: Any, how: str) -> None:
        found = look(at)
        alone, *both = orders
        rows = sorted_rows(found)
        landed = rows in map(sorted_rows, both)
        if not landed and (how == ENDED or rows != sorted_rows(alone)):
            allowed = how != ENDED and any(
                is_between(self.verb, found, alone, after) for after in both
            )
            assert allowed, f"{how}, readers see {found}"
        judge.compare(at, found)
        if theirs["version"] in found["main"]["versions"]:
            there = opened(at).checkout_version(theirs["version"]).to_table().to_pylist()
            assert there == theirs["rows"], "the version of pylance's commit has other rows"
        else:
            kept = {"versions", "cleaned"} & {*self.verb.between}
            assert kept, f"version {theirs['version']}, of pylance, is gone"
        if not landed:
            try:
                self.repeat(at.removesuffix(self.verb.at))
            except CommitConflictError:
                assert len(both) == 1, "repeated, it is refused"
            else:
                again = look(at)
                assert sorted_rows(again) in map(sorted_rows, both), f"repeated, they see {again}"
        problems = errors_of(at)
        assert problems in ([], self.errors), f"verify: {problems}"


def sorted_rows(state: State) -> State:
    """Return a state without the numbers of versions and the order of rows."""
    plain = unnumbered(state)
    lines = [plain["main"], *plain["branches"].values()]
    for line in lines:
        if isinstance(line, dict):
            line["rows"] = sorted(line["rows"], key=repr)
    return plain


def _killed(act: Callable[[], Any], end_at: End, commit: Callable[[], Any]) -> tuple[str, Any]:
    """Make the change in a child that pauses and dies; return how it ended, and what came of it.

    That is what ``commit`` returns, which is called while the child pauses.
    """
    to_child, to_parent = os.pipe(), os.pipe()
    theirs = None
    child = os.fork()
    if not child:
        _in_child(act, _Pausing(end_at, (to_child[0], to_parent[1])))
    end = time.monotonic() + CHILD_S_MAX
    try:
        done, status = os.waitpid(child, os.WNOHANG)
        while not done:
            if select.select([to_parent[0]], [], [], 0.001)[0]:
                os.read(to_parent[0], 1)
                theirs = commit()
                os.write(to_child[1], b"g")
            assert time.monotonic() < end, f"the writer is still at it after {CHILD_S_MAX} s"
            done, status = os.waitpid(child, os.WNOHANG)
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        for one in (*to_child, *to_parent):
            os.close(one)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, f"the writer died of {status}"
        return DIED, theirs
    return {0: ENDED, _REFUSED: REFUSED}.get(os.WEXITSTATUS(status), RAISED), theirs


def _in_child(act: Callable[[], Any], killer: Killer) -> None:
    try:
        with in_place_of_os(WatchedSystem(CHANGING, killer)):
            act()
    except (CommitConflictError, RetryableCommitConflictError):
        os._exit(_REFUSED)
    except BaseException:  # noqa: BLE001 (a child may not go on as its parent)
        traceback.print_exc()
        os._exit(3)
    os._exit(0)


class Besides:
    """A run: its counts, and what it found."""

    def __init__(self, seed: int) -> None:
        self._judge = Judge()
        self._seed = seed
        self.ends: Counter[str] = Counter()
        self.verbs: Counter[str] = Counter()
        self.failures: list[str] = []

    def close(self) -> None:
        """End the process of pylance."""
        self._judge.close()

    def all_of(self, name: str, seed: int) -> None:
        """Kill a verb some times beside commits of pylance's."""
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        chance = random.Random(f"{name} {seed}")
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
            case = BesideCase(name, seed, Path(folder) / "case")
            for number in range(PER_VERB):
                question = QUESTIONS[(seed + number) % len(QUESTIONS)]
                case.where = question
                try:
                    end = case.beside(self._judge, chance, question)
                except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
                    end = "found"
                    text = f"{name}, seed {seed}, {case.where} of {case.calls}"
                    self.failures.append(f"{text}: {type(error).__name__}: {error}")
                    case.tidy()
                self.ends[end] += 1
                self.verbs[name] += 1
        seconds = time.perf_counter() - began
        print(f"{name}, seed {seed}: {PER_VERB} kills, {seconds:.1f} s", flush=True)


def work(run: command.Run) -> command.Found:
    """Kill until the size is reached and every verb is through; return the counts."""
    return command.each_verb(run, run.options.verb or NAMES, Besides, "rounds")


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.arguments_of("tests.torture.beside", "kills beside a commit of pylance's")
    parser.add_argument("--verb", action="append", choices=NAMES)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return command.run("beside", parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
