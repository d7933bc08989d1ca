"""Writers that are killed at every call that changes the disk: SIGKILL, nothing is tidied up.

A forked child makes one change and dies at its Nth call: before it, after it, or when half of a
write is done; N counts from 1 to the last call that the verb makes undisturbed. Afterwards ours and
pylance see the state before or the one after. Once for each set of files that is left: the verb can
be repeated; ``verify`` finds no error; pylance appends a row; a clean-up leaves no file that nobody
needs.

    python -m tests.torture.kills 2000 [seed] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lance_nb.errors import AlreadyExistsError, LanceError, RefNotFoundError
from tests.support.faulty_system import Call, WatchedSystem, in_place_of_os
from tests.torture import command
from tests.torture.looking import (
    NOTHING,
    Judge,
    State,
    errors_of,
    has_landed,
    is_between,
    is_same,
    left_behind,
    look,
)
from tests.torture.verb import make
from tests.torture.verbs import VERBS

CHANGING = (
    "open",
    "write",
    "writev",
    "fsync",
    "link",
    "rename",
    "unlink",
    "mkdir",
    "makedirs",
    "rmdir",
)
MOMENTS = ("before", "after", "short")
CHILD_S_MAX = 30
JUDGED_SHARE = 0.3  # of the states whose files were left before; of others all
LANDED = ("after", "landed")  # ends at which the verb is not repeated
PER_VERB = 1000  # more than any verb makes calls
ENDED, RAISED = 0, 3
_RANDOM = re.compile(r"[0-9a-f-]{20,}|(?<=data/)[01]+[0-9a-f]+")


class Killer:
    """Counts the calls that change the disk and ends the process at one of them."""

    def __init__(self, number: int, moment: str, calls: list[str]) -> None:
        self._number, self._moment, self.calls = number, moment, calls
        self._lock = threading.Lock()

    def __call__(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        if name == "open" and not arguments[1] & os.O_CREAT:
            return real(*arguments, **options)
        if self._moment == "short" and not name.startswith("write"):
            return real(*arguments, **options)
        with self._lock:
            self.calls.append(name)
            number = len(self.calls)
        if number != self._number:
            return real(*arguments, **options)
        if self._moment == "after":
            real(*arguments, **options)
        elif self._moment == "short":
            _write_half(name, arguments)
        os.kill(os.getpid(), signal.SIGKILL)
        return None


def _write_half(name: str, arguments: Any) -> None:
    pieces = arguments[1] if name == "writev" else [arguments[1]]
    data = b"".join(bytes(one) for one in pieces)
    os.write(arguments[0], data[: len(data) // 2])


def killed(act: Callable[[], Any]) -> bool:
    """Make a change in a child that dies; tell whether it did (or had ended before)."""
    child = os.fork()
    if not child:
        _in_child(act)
    end = time.monotonic() + CHILD_S_MAX
    done, status = os.waitpid(child, os.WNOHANG)
    while not done:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"the writer is still at it after {CHILD_S_MAX} s")
        time.sleep(0.0005)
        done, status = os.waitpid(child, os.WNOHANG)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, f"the writer died of {status}"
        return True
    assert os.WEXITSTATUS(status) == ENDED, "the writer raised an error (printed above)"
    return False


def _files_of(folder: Path) -> str:
    """Describe the files below a folder by name and size; what is random in a name is left out."""
    found = (
        (_RANDOM.sub("*", str(one.relative_to(folder))), one.stat().st_size)
        for one in folder.rglob("*")
        if one.is_file()
    )
    return str(sorted(found))


def _in_child(act: Callable[[], Any]) -> None:
    try:
        act()
    except BaseException:  # noqa: BLE001 (a child may not go on as its parent)
        traceback.print_exc()
        os._exit(RAISED)
    os._exit(ENDED)


class Case:
    """A verb on a dataset of a seed, with what it looks like before and after."""

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        self.name, self.verb = name, VERBS[name]
        self._folder = folder
        self._examined: set[str] = set()
        self._chance = random.Random(f"{name} {seed}")
        self._source = folder / "source"
        self._source.mkdir(parents=True)
        make(f"{self._source}/t.lance", seed)
        self.verb.prepare(f"{self._source}/t.lance")
        place = self.copied("whole")
        self.before = self.seen(place + self.verb.at)
        # What a verb is there to mend: the dataset shows it until the verb has done its work.
        self.errors_before = (
            errors_of(place + self.verb.at) if isinstance(self.before, dict) and self.before else []
        )
        self.calls: list[str] = []
        self.watched_act(place, Killer(0, "", self.calls))
        self.after = look(place + self.verb.at)
        assert (self.before != self.after) == self.verb.commits, f"{name}: {self.before}"
        # What a verb leaves that verify calls an error, as the tag of a branch that is deleted.
        self.errors = errors_of(place + self.verb.at) if self.after else []
        shutil.rmtree(folder / "whole")

    def killer(self, number: int, moment: str) -> Killer:
        """Return what ends the process at a call."""
        return Killer(number, moment, [])

    def watched_act(self, place: str, killer: Killer) -> None:
        """Make the change, while every call that changes something goes through ``killer``."""
        with in_place_of_os(WatchedSystem(CHANGING, killer)):
            self.verb.act(place)

    def copied(self, name: str) -> str:
        """Copy the dataset, under hard links: files are never changed in place."""
        shutil.copytree(self._source, self._folder / name, copy_function=os.link)
        return f"{self._folder / name}/t.lance"

    def end_of(self, found: State | str) -> str:
        """Say which state readers see of a writer that died. Raises AssertionError."""
        if isinstance(found, str):
            return "refused"
        if found == self.after:
            return "after"
        if found == self.before:
            return "before"
        if has_landed(self.verb, found, self.after):
            return "landed"
        before = NOTHING if isinstance(self.before, str) else self.before
        assert is_between(self.verb, found, before, self.after), f"readers see {found}"
        return "between"

    def seen(self, at: str) -> State | str:
        """Look; of a dataset that may be refused half-way, return the refusal."""
        try:
            return look(at)
        except LanceError as error:
            if "refused" not in self.verb.between:
                raise
            return str(error)

    def round(self, judge: Judge, number: int, moment: str) -> str:
        """Kill once and look; return what the end state was. Raises AssertionError."""
        place = self.copied("round")
        at = place + self.verb.at
        killer = self.killer(number, moment)
        if not killed(lambda: self.watched_act(place, killer)):
            shutil.rmtree(self._folder / "round")
            return "ended"
        found = self.seen(at)
        end = self.end_of(found)
        files = self.left()
        is_new = files not in self._examined
        is_judged = is_new or self._chance.random() < JUDGED_SHARE
        if is_judged and end != "refused" and (end != "before" or self.verb.foreign_before):
            judge.compare(at, found)
        if is_new:
            self._examine(judge, place, end)
            self._examined.add(files)
        shutil.rmtree(self._folder / "round")
        return end

    def tidy(self) -> None:
        """Remove what a round left that ended in a finding."""
        shutil.rmtree(self._folder / "round", ignore_errors=True)

    def _examine(self, judge: Judge, place: str, end: str) -> None:
        """Go on with what a dead writer left, once for each set of files. Raises AssertionError."""
        at = place + self.verb.at
        if end not in LANDED:
            self.repeat(place)
            again = look(at)
            assert is_same(again, self.after), f"{end}; repeated, readers see {again}"
            judge.compare(at, again)
        if not self.after:  # a dataset that was dropped
            self.repeat(place)
            assert not Path(at).exists(), "files of a dropped dataset are left"
            return
        problems = errors_of(at)
        assert problems in ([], self.errors), f"verify: {problems}"
        count = self.append(judge, at)
        assert count == len(look(at)["main"]["rows"]), "a row that pylance appends is not seen"
        orphans = left_behind(at)
        assert not orphans, f"{end}; after a clean-up there are {orphans}"

    def left(self) -> str:
        """Describe what a dead writer left."""
        return _files_of(self._folder / "round")

    def append(self, judge: Judge, at: str) -> int:
        """Append a row, after all that; return how many there are."""
        return int(judge.ask("append", at))

    def repeat(self, place: str) -> None:
        """Make the change again; what it makes may be there already."""
        try:
            self.verb.act(place)
        except (AlreadyExistsError, RefNotFoundError) as error:
            print(f"{self.name}: repeated: {error}")


class Kills:
    """A run: its counts, and what it found."""

    def __init__(self, seed: int, per_verb: int) -> None:
        self._judge = Judge()
        self._chance = random.Random(seed)
        self._per_verb = per_verb
        self.ends: Counter[str] = Counter()
        self.verbs: Counter[str] = Counter()
        self.failures: list[str] = []

    def close(self) -> None:
        """End the process of pylance."""
        self._judge.close()

    def all_of(self, name: str, seed: int) -> None:
        """Kill a verb at every call, at each moment."""
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        began, before = time.perf_counter(), self.verbs[name]
        with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
            case = Case(name, seed, Path(folder) / "case")
            for moment, number in self._cells(case):
                end = self._once(case, f"{name}, seed {seed}", number, moment)
                if end != "ended":  # it made fewer calls this time
                    self.ends[end] += 1
                    self.verbs[name] += 1
        seconds = time.perf_counter() - began
        print(
            f"{name}, seed {seed}: {self.verbs[name] - before} kills, {seconds:.1f} s", flush=True
        )

    def _cells(self, case: Case) -> Iterator[tuple[str, int]]:
        """Yield every moment of every call, or ``per_verb`` of them."""
        writes = [one for one in case.calls if one.startswith("write")]
        cells = [
            (moment, number)
            for moment in MOMENTS
            for number in range(1, len(writes if moment == "short" else case.calls) + 1)
        ]
        yield from (
            cells if len(cells) <= self._per_verb else self._chance.sample(cells, self._per_verb)
        )

    def _once(self, case: Case, where: str, number: int, moment: str) -> str:
        try:
            return case.round(self._judge, number, moment)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            text = f"{where}, killed {moment} {number} of {case.calls}"
            self.failures.append(f"{text}: {type(error).__name__}: {error}")
            case.tidy()
            return "found"


def work(run: command.Run) -> command.Found:
    """Kill until the size is reached and every verb is through; return the counts."""

    def make(seed: int) -> Kills:
        return Kills(seed, run.options.per_verb)

    return command.each_verb(run, run.options.verb or list(VERBS), make, "rounds")


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.arguments_of("tests.torture.kills", "kills")
    parser.add_argument("--verb", action="append", choices=list(VERBS))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--per-verb", type=int, default=PER_VERB, help="kills at most")
    return command.run("kills", parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
