"""Every call to a local disk fails, before or after it did its work: the reply stays true.

A cell makes one change while one call of the system reports an error, or several in a row do. What
was told must be so: a change that was acknowledged is in the dataset, once; one that failed is not
in it; of one that is unknown, looking tells the truth. Then the change is done (again) if it is not
there, and is there once. pylance opens the dataset in every end state.

    python -m tests.concurrency.lost_replies 13344 [first cell] [--jobs 2] [--times 2] [--keep]

Cells have numbers from 1: each of six errors at every call; after the last one the first one comes
again. Two threads sync and copy, so the same number may be another thread's call the next time:
repeat a cell of these changes some times.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.errors import CommitStateUnknownError, LanceError
from lance_nb.storage.base import Store
from lance_nb.storage.registry import open_store
from lance_nb.table import refs
from lance_nb.transactions.commit import find_transaction
from lance_nb.transactions.commit_options import CommitPlace
from tests.support.faulty_system import failing_at
from tests.support.requirements import require_pylance
from tests.torture import command

CODES = [
    getattr(errno, name) for name in ("EIO", "ENOSPC", "EINTR", "ESTALE", "ETIMEDOUT", "EACCES")
]
NAMING = ("link", "rename", "fsync", "unlink")  # where the suite tries each error, else only EIO
STEADY_CALLS = 130  # a deep clone makes 137 to 147, every other change fewer and as many each time
State = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the dataset in a folder, and where what it changes is looked at.

    ``between``: errors that leave it half done, as readers can see, for a repetition to complete.
    """

    act: Callable[[str], Any]
    prepare: Callable[[str], Any] = lambda _: None
    at: str = ""
    between: tuple[str, ...] = ()


def rows(first: int) -> pa.Table:
    return pa.table({"id": range(first, first + 10)})


def opened(place: str) -> Any:
    return lance_nb.dataset(place)


def with_tag(place: str) -> None:
    opened(place).tags.create("kept", 1)


def with_branch(place: str) -> None:
    opened(place).create_branch("dev", 2).insert(rows(500))


CHANGES = {
    "create": Change(lambda place: lance_nb.write_dataset(rows(0), f"{place}/new"), at="/new"),
    "append": Change(lambda place: opened(place).insert(rows(100))),
    "append of three files": Change(
        lambda place: lance_nb.write_dataset(rows(100), place, mode="append", max_rows_per_file=4)
    ),
    "overwrite": Change(lambda place: opened(place).insert(rows(100), mode="overwrite")),
    "delete": Change(lambda place: opened(place).delete("id % 3 = 0")),
    "update": Change(lambda place: opened(place).update({"id": "id + 1000"}, where="id < 5")),
    "restore": Change(lambda place: opened(place).checkout_version(1).restore()),
    "tag created": Change(lambda place: opened(place).tags.create("kept", 2)),
    "tag moved": Change(lambda place: opened(place).tags.update("kept", 2), with_tag),
    "tag described": Change(
        lambda place: opened(place).tags.replace_metadata("kept", {"k": "v"}), with_tag
    ),
    "tag deleted": Change(lambda place: opened(place).tags.delete("kept"), with_tag),
    "branch created": Change(
        lambda place: opened(place).create_branch("dev", 2), between=("unknown",)
    ),
    "append to a branch": Change(
        lambda place: lance_nb.dataset(place, ("dev", None)).insert(rows(100)), with_branch
    ),
    "branch deleted": Change(
        lambda place: opened(place).branches.delete("dev"), with_branch, between=("failed",)
    ),
    "shallow clone": Change(
        lambda place: opened(place).shallow_clone(f"{place}/clone", 2), at="/clone"
    ),
    "deep clone": Change(lambda place: opened(place).deep_clone(f"{place}/clone", 2), at="/clone"),
}


def state(place: str) -> State:
    """What a reader sees: rows and number of versions of each branch, tags."""
    root = open_store(place)
    if not _has_versions(root):
        return ("nothing",)
    main = lance_nb.dataset(place, allow_bases=[str(Path(place).parent)])
    branches = {}
    for name in refs.branch_names(root):
        if _has_versions(root.child(f"tree/{name}")):
            branches[name] = _line(main.checkout_version((name, None)))
        else:
            branches[name] = "unfinished"
    tags = {name: (one["version"], one["metadata"]) for name, one in main.tags.list().items()}
    return _line(main), branches, tags


def _has_versions(home: Store) -> bool:
    """Look for manifests; temporary files may be there that a failing call could not remove."""
    return any(one.endswith(".manifest") for one in home.list_names("_versions"))


def _line(dataset: Any) -> tuple[Any, ...]:
    return dataset.version, len(dataset.versions()), dataset.to_table()["id"].to_pylist()


def judged(place: str, found: State) -> None:
    """Let pylance open what is there and compare its rows."""
    lance = require_pylance()
    if found == ("nothing",):
        return
    main, branches, tags = found
    theirs = lance.dataset(place)
    assert theirs.to_table()["id"].to_pylist() == main[2]
    assert set(theirs.tags.list()) == set(tags)
    assert set(theirs.branches.list()) == set(branches)
    for name, one in branches.items():
        if one != "unfinished":
            assert theirs.checkout_version((name, None)).to_table()["id"].to_pylist() == one[2]


def told(place: str, change: Change) -> tuple[str, LanceError | None]:
    try:
        change.act(place)
    except CommitStateUnknownError as error:
        return "unknown", error
    except LanceError as error:
        return "failed", error
    return "done", None


# --- cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """A change, and the call of the system that reports an error, maybe ``after`` its work."""

    name: str
    number: int
    call: str
    code: int
    after: bool
    times: int = 1

    def __str__(self) -> str:
        moment = "after" if self.after else "before"
        code = errno.errorcode[self.code]
        return f"{self.name}, call {self.number} ({self.call}), {code} {moment}, {self.times} times"


def cells_of(name: str, calls: list[str], *, everywhere: bool, times: int = 1) -> Iterator[Cell]:
    """Yield the cells of a change: EIO at every call, other errors at some or ``everywhere``."""
    for number, call in enumerate(calls, 1):
        for code in CODES if everywhere or call in NAMING else CODES[:1]:
            for after in (False, True):
                yield Cell(name, number, call, code, after, times)


def _order(cell: Cell) -> tuple[bool, float]:
    """Mix early and late calls; those that only some runs make come last, so numbers stay."""
    return cell.number > STEADY_CALLS, random.Random(cell.number).random()


class LostReplies:
    """All cells of some changes, in an order in which few cells are of many changes."""

    def __init__(
        self,
        folder: Path,
        names: Collection[str] | None = None,
        *,
        everywhere: bool,
        times: int = 1,
    ) -> None:
        self._folder = folder
        self._source = folder / "source" / "t.lance"
        self._states: dict[str, tuple[State, State]] = {}
        self._judged: set[str] = set()
        self.calls: dict[str, int] = {}
        self.cells: list[Cell] = []
        lance_nb.write_dataset(rows(0), self._source)
        lance_nb.dataset(self._source).insert(rows(50))
        for name in CHANGES if names is None else names:
            calls, before, after = self._undisturbed(CHANGES[name])
            assert before != after, name
            self._states[name] = before, after
            self.calls[name] = len(calls)
            self.cells += cells_of(name, calls, everywhere=everywhere, times=times)
        self.cells.sort(key=_order)

    @property
    def end_states(self) -> int:
        """How many different end states pylance has opened."""
        return len(self._judged)

    def _prepared(self, change: Change, name: str) -> str:
        place = str(self._folder / name)
        shutil.copytree(self._source, place)
        change.prepare(place)
        return place

    def _undisturbed(self, change: Change) -> tuple[list[str], State, State]:
        place = self._prepared(change, "sound")
        before = state(place + change.at)
        with failing_at(0, errno.EIO, after=False) as system:
            change.act(place)
        after = state(place + change.at)
        shutil.rmtree(place)
        return system.calls, before, after

    def check(self, number: int) -> str:
        """Run a cell, from 1; return what was told of the change. Raises AssertionError."""
        cell = self.cells[(number - 1) % len(self.cells)]
        change = CHANGES[cell.name]
        place = self._prepared(change, f"cell-{number}")
        try:
            return self._check(cell, change, place)
        finally:
            shutil.rmtree(place)

    def _check(self, cell: Cell, change: Change, place: str) -> str:
        before, after = self._states[cell.name]
        with failing_at(cell.number, cell.code, after=cell.after, times=cell.times) as system:
            ended, error = told(place, change)
        found = state(place + change.at)
        call = "".join(system.calls[cell.number - 1 : cell.number])
        seen = f"{cell}, now {call or 'no call'}: {ended} ({error!r}), readers see {found}"
        if ended == "done":
            assert found == after, seen
        elif ended in change.between and found not in (before, after):
            assert found[0] == before[0], seen
        elif ended == "failed":
            assert found == before, seen
        else:
            assert found in (before, after), seen
            check_uuid(place + change.at, error, found == after)
        if f"{cell.name} {found}" not in self._judged:
            self._judged.add(f"{cell.name} {found}")
            judged(place + change.at, found)
        if found != after:
            change.act(place)
            again = state(place + change.at)
            assert again == after, f"{seen}; repeated, they see {again}"
        return ended if call else "not_reached"


def check_uuid(place: str, error: LanceError | None, is_there: bool) -> None:
    """Look for the transaction that an unknown outcome names, in every branch."""
    assert isinstance(error, CommitStateUnknownError)
    if not error.transaction_uuid:
        return  # of a tag, or a branch's record
    root = open_store(place)
    found = [
        find_transaction(CommitPlace.of(root, branch), error.transaction_uuid)
        for branch in (None, *refs.branch_names(root))
    ]
    assert any(one == error.version for one in found if one is not None) is is_there


# --- many cells -----------------------------------------------------------------------------------

MODULE = "tests.concurrency.lost_replies"
CHUNK = 1200  # cells of one process
_IN_MEMORY = "/dev/shm"


def share(numbers: range, tell: command.Tell, times: int = 1) -> tuple[Counter[str], list[str]]:
    """Run cells by their numbers; return counts and findings."""
    counts: Counter[str] = Counter()
    failures = []
    memory = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        replies = LostReplies(Path(folder), everywhere=True, times=times)
        for number in numbers:
            tell(number)
            try:
                ended = replies.check(number)
            except Exception:  # noqa: BLE001 (whatever it is, it is a finding)
                ended = "failing"
                found = traceback.format_exc(limit=-3)[-1500:]
                failures.append(
                    f"cell {number}: python -m {MODULE} 1 {number} --times {times}\n{found}"
                )
            counts.update(("cells", ended))
    return counts, failures


def main(arguments: list[str]) -> int:
    """Run as many cells as asked; return the exit code."""
    parser = command.arguments_of(MODULE, "cells; the seed is the number of the first")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--times", type=int, default=1, help="calls in a row that fail")

    def work(run: command.Run) -> command.Found:
        return command.shared(run, partial(share, times=run.options.times), CHUNK)

    name = "lost_replies" if "--times" not in arguments else "replies_lost_twice"
    return command.run(name, parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
