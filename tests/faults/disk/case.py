"""A verb on the dataset of a seed: the states before and after it, and copies to try faults on."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lance_nb.errors import AlreadyExistsError, LanceError, RefNotFoundError
from tests.faults import command
from tests.faults.disk.looking import (
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
from tests.faults.verbs import VERBS
from tests.faults.verbs.verb import make
from tests.support.faulty_system import Call, WatchedSystem, in_place_of_os

CHANGING = (
    "open", "write", "writev", "fsync", "link", "rename", "unlink", "mkdir", "makedirs", "rmdir",
)  # fmt: skip
JUDGED_SHARE = 0.3  # of the states whose files were left before; of others all
LANDED = ("after", "landed")  # ends at which the verb is not repeated
_RANDOM = re.compile(r"[0-9a-f-]{20,}|(?<=data/)[01]+[0-9a-f]+")


class Place(NamedTuple):
    """At which call something happens, and when: before it, after it, in the middle of a write."""

    number: int
    moment: str
    call: str = ""

    def __str__(self) -> str:
        return f"{self.moment} call {self.number} {self.call}"


class Case:
    """A verb on a dataset of a seed, with what it looks like before and after."""

    def __init__(self, name: str, seed: int, folder: Path, judge: Judge) -> None:
        self.name, self.verb, self.judge = name, VERBS[name], judge
        self.where = ""
        self.chance = random.Random(f"{name} {seed}")
        self._folder = folder
        self._examined: set[str] = set()
        self._source = folder / "source"
        self._source.mkdir(parents=True)
        make(f"{self._source}/t.lance", seed)
        self.verb.prepare(f"{self._source}/t.lance")
        path = self.copied("whole")
        self.before = self.seen(path)
        is_dataset = isinstance(self.before, dict) and self.before
        # What a verb is there to mend: the dataset shows it until the verb has done its work.
        self.errors_before = errors_of(path + self.verb.at) if is_dataset else []
        self.calls: list[str] = []
        self.watched_run(path, self._count)
        self.after = look(path + self.verb.at)
        assert (self.before != self.after) == self.verb.commits, f"{name}: {self.before}"
        # What a verb leaves that verify calls an error, as the tag of a branch that is deleted.
        self.errors = errors_of(path + self.verb.at) if self.after else []
        shutil.rmtree(folder / "whole")

    def _count(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        if is_counted(name, arguments):
            self.calls.append(name)
        return real(*arguments, **options)

    def watched_run(self, path: str, watch: Callable[..., Any]) -> None:
        """Make the change, while every call that changes something goes through ``watch``."""
        with in_place_of_os(WatchedSystem(CHANGING, watch)):
            self.verb.run(path)

    def copied(self, name: str) -> str:
        """Copy the dataset, under hard links: files are never changed in place."""
        shutil.copytree(self._source, self._folder / name, copy_function=os.link)
        return f"{self._folder / name}/t.lance"

    def sampled(self, faults: Sequence[Any], most: int) -> Iterator[Any]:
        """Yield all faults, or as many as ``most`` that the seed chooses."""
        yield from faults if len(faults) <= most else self.chance.sample(faults, most)

    def tidy(self) -> None:
        """Remove what a round left."""
        shutil.rmtree(self._folder / "round", ignore_errors=True)

    # --- what readers see -------------------------------------------------------------------------

    def seen(self, path: str) -> State | str:
        """Look; of a dataset that may be refused half-way, return the refusal."""
        try:
            return look(path + self.verb.at)
        except LanceError as error:
            if "refused" not in self.verb.between:
                raise
            return str(error)

    def end_of(self, state: State | str) -> str:
        """Say which state readers see of a writer that failed. Raises AssertionError."""
        if isinstance(state, str):
            return "refused"
        if state == self.after:
            return "after"
        if state == self.before:
            return "before"
        if has_landed(self.verb, state, self.after):
            return "landed"
        before = NOTHING if isinstance(self.before, str) else self.before
        assert is_between(self.verb, state, before, self.after), f"readers see {state}"
        return "between"

    def go_on(self, path: str) -> str:
        """Look at what a failed writer left, and go on with it; return its end.

        pylance compares; the verb is repeated, ``verify`` finds no error, a row is appended, and
        a clean-up leaves no file that nobody needs: once for each set of files. Raises
        AssertionError.
        """
        state = self.seen(path)
        end = self.end_of(state)
        files = self.left()
        is_new = files not in self._examined
        is_judged = is_new or self.chance.random() < JUDGED_SHARE
        if is_judged and end != "refused" and (end != "before" or self.verb.foreign_before):
            self.judge.compare(path + self.verb.at, state)
        if is_new:
            self._examine(path, end)
            self._examined.add(files)
        return end

    def _examine(self, path: str, end: str) -> None:
        changed = path + self.verb.at
        if end not in LANDED:
            self.repeat(path)
            again = look(changed)
            assert is_same(again, self.after), f"{end}; repeated, readers see {again}"
            self.judge.compare(changed, again)
        if not self.after:  # a dataset that was dropped
            self.repeat(path)
            assert not Path(changed).exists(), "files of a dropped dataset are left"
            return
        problems = errors_of(changed)
        assert problems in ([], self.errors), f"verify: {problems}"
        count = self.append(changed)
        assert count == len(look(changed)["main"]["rows"]), "a row that is appended is not seen"
        orphans = left_behind(changed)
        assert not orphans, f"{end}; after a clean-up there are {orphans}"

    def left(self) -> str:
        """Describe the files that a failed writer left; what is random in a name is left out."""
        folder = self._folder / "round"
        files = (
            (_RANDOM.sub("*", str(file.relative_to(folder))), file.stat().st_size)
            for file in folder.rglob("*")
            if file.is_file()
        )
        return str(sorted(files))

    def append(self, path: str) -> int:
        """Let pylance append a row, after all that; return how many there are."""
        return int(self.judge.ask("append", path))

    def repeat(self, path: str) -> None:
        """Make the change again; what it makes may be there already."""
        try:
            self.verb.run(path)
        except (AlreadyExistsError, RefNotFoundError) as error:
            print(f"{self.name}: repeated: {error}")


def is_counted(name: str, arguments: Any) -> bool:
    """Tell whether a call of the system changes the disk: opening counts when it makes a file."""
    return name != "open" or bool(arguments[1] & os.O_CREAT)


def run_kind(
    kind: str,
    result: str,
    arguments: list[str],
    case: Callable[..., command.VerbCase],
    defaults: tuple[int, int],
    *,
    names: Sequence[str] = tuple(VERBS),
) -> int:
    """Run a kind of fault that is tried verb by verb; return the exit code.

    ``case(name, seed, folder, judge, per_verb)`` makes a case, ``defaults`` are how many rounds
    there are in all and of a verb at most.
    """
    parser = command.parser_of(kind, "rounds", defaults[0])
    parser.add_argument("--verb", action="append", choices=names)
    parser.add_argument("--per-verb", type=int, default=defaults[1], help="rounds at most")

    def work(run: command.Run) -> command.Counts:
        def begin() -> tuple[command.MakeCase, Callable[[], None]]:
            judge, most = Judge(), run.options.per_verb
            return lambda name, seed, folder: case(name, seed, folder, judge, most), judge.close

        return command.each_verb(run, run.options.verb or names, begin)

    return command.run(result, parser, arguments, work)
