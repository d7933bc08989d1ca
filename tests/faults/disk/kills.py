"""Writers that are killed at every call that changes the disk: SIGKILL, nothing is tidied up.

A forked child makes one change and dies at its Nth call: before it, after it, or when half of a
write is done; N counts from 1 to the last call that the verb makes undisturbed. Afterwards ours and
pylance see the state before or the one after, and one can go on (``Case.go_on``).

    python -m tests.faults kills 2000 [seed] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lance_nb.errors import CommitConflictError
from tests.faults.command import NOT_REACHED
from tests.faults.disk.case import Case, Place, is_counted, run_kind
from tests.faults.disk.looking import Judge
from tests.support.faulty_system import Call

MOMENTS = ("before", "after", "short")
CHILD_S_MAX = 30
PER_VERB = 1000  # more than any verb makes calls
ENDED, RAISED, REFUSED = 0, 3, 4  # exit codes of a child
ENDS = {ENDED: "ended", REFUSED: "refused", -signal.SIGKILL: "died"}


class Killer:
    """Counts the calls that change the disk and ends the process at one of them."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._count = 0
        self._lock = threading.Lock()

    def __call__(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        number, moment, _ = self._place
        if not is_counted(name, arguments) or (moment == "short" and not name.startswith("write")):
            return real(*arguments, **options)
        with self._lock:
            self._count += 1
            is_last = self._count == number
        if not is_last:
            return real(*arguments, **options)
        if moment == "after":
            real(*arguments, **options)
        elif moment == "short":
            _write_half(name, arguments)
        os.kill(os.getpid(), signal.SIGKILL)
        return None


def _write_half(name: str, arguments: Any) -> None:
    pieces = arguments[1] if name == "writev" else [arguments[1]]
    data = b"".join(bytes(piece) for piece in pieces)
    os.write(arguments[0], data[: len(data) // 2])


def killed(act: Callable[[], Any], paused: int = -1, resume: Callable[[], Any] = bool) -> str:
    """Make a change in a child that dies; return how it ended. Raises AssertionError.

    ``resume`` is called when the child writes a byte to the pipe ``paused``.
    """
    child = os.fork()
    if not child:
        _in_child(act)
    end = time.monotonic() + CHILD_S_MAX
    try:
        done, status = os.waitpid(child, os.WNOHANG)
        while not done:
            if paused < 0:
                time.sleep(0.0005)
            elif select.select([paused], [], [], 0.001)[0]:
                os.read(paused, 1)
                resume()
            assert time.monotonic() < end, f"the writer is still at it after {CHILD_S_MAX} s"
            done, status = os.waitpid(child, os.WNOHANG)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    code = os.waitstatus_to_exitcode(status)
    assert code != RAISED, "the writer raised an error (printed above)"
    return ENDS[code]


def _in_child(act: Callable[[], Any]) -> None:
    try:
        act()
    except CommitConflictError:
        os._exit(REFUSED)
    except BaseException:  # noqa: BLE001 (a child may not go on as its parent)
        traceback.print_exc()
        os._exit(RAISED)
    os._exit(ENDED)


class KillCase(Case):
    """A verb that is killed at every call, at each moment, or at ``per_verb`` of them."""

    def __init__(self, name: str, seed: int, folder: Path, judge: Judge, per_verb: int) -> None:
        super().__init__(name, seed, folder, judge)
        self._per_verb = per_verb

    def rounds(self) -> Iterator[Place]:
        """Yield where the writer is killed."""
        writes = [call for call in self.calls if call.startswith("write")]
        places = [
            Place(number, moment, call)
            for moment in MOMENTS
            for number, call in enumerate(writes if moment == "short" else self.calls, 1)
        ]
        yield from self.sampled(places, self._per_verb)

    def killer(self, place: Place) -> Killer:
        """Return what ends the process."""
        return Killer(place)

    def round(self, place: Place) -> str:
        """Kill once, look, and go on; return what the end state was. Raises AssertionError."""
        path = self.copied("round")
        killer = self.killer(place)
        how = killed(lambda: self.watched_run(path, killer))
        assert how != "refused", "nobody is in the way, and the writer was refused"
        end = self.go_on(path) if how == "died" else NOT_REACHED  # it made fewer calls this time
        self.tidy()
        return end


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    return run_kind("kills", "kills", arguments, KillCase, (2000, PER_VERB))
