"""Every call to a local disk fails, before or after it did its work: the reply stays true.

A round makes one change while one call of the system reports an error, or several in a row do. What
was reported must be so: a change that was acknowledged is in the dataset, once; one that failed is
not in it, or only half as its verb says; of one that is unknown, looking tells the truth. Then the
change is made (again) if it is not there, and is there once. pylance opens every end state.

    python -m tests.faults replies 13400 [seed] [--verb NAME] [--times 2] [--jobs 2]

Two threads sync and copy, so the same number may be another thread's call the next time: repeat a
finding some times.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lance_nb.errors import CommitStateUnknownError, LanceError
from lance_nb.storage.registry import open_store
from lance_nb.table import refs
from lance_nb.transactions.commit import find_transaction
from lance_nb.transactions.commit_options import CommitPlace
from tests.faults.command import NOT_REACHED
from tests.faults.disk.case import LANDED, Case, run_kind
from tests.faults.disk.looking import Judge, is_same, look
from tests.faults.verbs import VERBS
from tests.support.faulty_system import failing_at

CODES = tuple(
    getattr(errno, name) for name in ("EIO", "ENOSPC", "EINTR", "ESTALE", "ETIMEDOUT", "EACCES")
)
# They report what became of each step, or do more after their commit.
IN_STEPS = {
    "cleanup_old_versions", "cleanup that retains versions", "cleanup of chosen versions",
    "cleanup of a branch", "add_checksums", "repair_moved", "repair of an unfinished branch",
    "repair of a damaged version", "repair of leftovers", "undo_repair", "drop",
    "shallow_clone of a branch",
}  # fmt: skip
NAMES = tuple(name for name in VERBS if name not in IN_STEPS)
NAMING = ("link", "rename", "fsync", "unlink")  # where the suite tries each error, else only EIO
PER_VERB = 100
DETACHED = 1 << 62  # versions above are of no branch


class Failure(NamedTuple):
    """The call of the system that reports an error, maybe ``after`` its work."""

    number: int
    call: str
    code: int
    after: bool
    times: int

    def __str__(self) -> str:
        moment = "after" if self.after else "before"
        code = errno.errorcode[self.code]
        return f"call {self.number} ({self.call}), {code} {moment}, {self.times} times"


class ReplyCase(Case):
    """A verb every call of which reports each of six errors, or ``per_verb`` of them."""

    def __init__(
        self, name: str, seed: int, folder: Path, judge: Judge, per_verb: int, *, times: int = 1
    ) -> None:
        super().__init__(name, seed, folder, judge)
        self._per_verb, self._times = per_verb, times
        self._judged: set[str] = set()  # ends
        with failing_at(0, errno.EIO, after=False) as system:
            self.verb.run(self.copied("round"))
        self.tidy()
        self._system_calls = system.calls

    def rounds(self) -> Iterator[Failure]:
        """Yield which call fails, and how: every other one of a share without ``per_verb``."""
        failures = [
            Failure(number, call, code, after, self._times)
            for number, call in enumerate(self._system_calls, 1)
            for code in (CODES if self._per_verb or call in NAMING else CODES[:1])
            for after in (False, True)
        ]
        yield from self.sampled(failures, self._per_verb) if self._per_verb else failures[::2]

    def round(self, failure: Failure) -> str:
        """Let a call fail, compare what is reported, and go on. Raises AssertionError."""
        path = self.copied("round")
        ended, error = "done", None
        with failing_at(
            failure.number, failure.code, after=failure.after, times=failure.times
        ) as system:
            try:
                self.verb.run(path)
            except CommitStateUnknownError as unknown:
                ended, error = "unknown", unknown
            except LanceError as refusal:
                ended, error = "failed", refusal
        is_reached = len(system.calls) >= failure.number
        state = self.seen(path)
        end = self.end_of(state)
        self.where = f"{failure}: {ended} ({error!r}), readers see {end}"
        if ended == "done":
            assert end in LANDED or not self.verb.commits
        elif ended == "failed":
            assert end != "after" or not self.verb.commits
        elif isinstance(error, CommitStateUnknownError):
            self._check_uuid(path + self.verb.at, error, is_there=end == "after")
        if end not in ("refused", *self._judged) and self.verb.foreign_before:
            self.judge.compare(path + self.verb.at, state)
            self._judged.add(end)
        if end not in LANDED:
            self.repeat(path)
            again = look(path + self.verb.at)
            assert is_same(again, self.after), f"repeated, readers see {again}"
        self.tidy()
        return ended if is_reached else NOT_REACHED

    def _check_uuid(self, path: str, error: CommitStateUnknownError, *, is_there: bool) -> None:
        """Look for the transaction that an unknown outcome names, in every branch."""
        if not error.transaction_uuid or (error.version or 0) > DETACHED:
            return  # of a tag, a branch's record, or a version of no branch
        root = open_store(path)
        versions = [
            find_transaction(CommitPlace.of(root, branch), error.transaction_uuid)
            for branch in (None, *refs.branch_names(root))
        ]
        assert is_there == any(v is not None and v == error.version for v in versions)


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    times = 1
    if "--times" in arguments:  # calls in a row that fail
        at = arguments.index("--times")
        times = int(arguments[at + 1])
        arguments = [*arguments[:at], *arguments[at + 2 :]]
    result = "lost_replies" if times == 1 else "replies_lost_twice"
    case = partial(ReplyCase, times=times)
    return run_kind("replies", result, arguments, case, (13_400, PER_VERB), names=NAMES)
