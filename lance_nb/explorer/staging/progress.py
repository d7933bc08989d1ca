"""Report how far the work on a card is, and pass a request to cancel to whoever does the work.

Work on an engine reports tasks, rows and bytes; other work reports steps done and in all. Both end
when the browser has cancelled: an engine asks ``is_stopped``, other work gets an exception.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lance_nb.errors import CancelledError
from lance_nb.explorer.messages import Progress


class RunProgress(Protocol):
    """How far a run on an engine is; see lance_nb.spark.background_jobs."""

    @property
    def phase(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def num_done(self) -> int: ...
    @property
    def num_tasks(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def done_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Running:
    """A snapshot of running work, as a card shows it."""

    what: str
    phase: str = "planning"
    engine: str = "local"
    done: int = 0
    total: int = 0
    rows: int = 0
    size_bytes: int = 0
    elapsed_s: float = 0.0


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


class ProgressReporter:
    """The progress of one running piece of work."""

    def __init__(self, what: str = "", progress: Progress = quiet) -> None:
        self._what = what
        self._progress = progress
        self._began = time.monotonic()
        self._stopped: CancelledError | None = None
        self.now = Running(what)

    def seen(self) -> Running:
        """Return the current progress; the elapsed time is that of the call."""
        return replace(self.now, elapsed_s=time.monotonic() - self._began)

    def phase(self, phase: str) -> None:
        """Begin another phase."""
        self.now = replace(self.now, phase=phase)
        self._hear()

    def count(self, done: int, total: int) -> None:
        """Record steps. Raises CancelledError."""
        self._tell(phase="running", done=done, total=total)
        self.check()

    def run(self, now: RunProgress) -> None:
        """Record the progress of a run; may be called from any thread, and never raises."""
        self._tell(
            phase=now.phase, engine=now.engine or "local", done=now.num_done, total=now.num_tasks,
            rows=now.num_rows, size_bytes=now.done_bytes,
        )  # fmt: skip

    def is_stopped(self) -> bool:
        """Whether the work was cancelled."""
        self._hear()
        return self._stopped is not None

    def check(self) -> None:
        """Raise CancelledError if the work was cancelled."""
        if self._stopped is not None:
            raise self._stopped

    def _tell(self, **what: Any) -> None:
        self.now = Running(self._what, elapsed_s=time.monotonic() - self._began, **what)
        self._hear()

    def _hear(self) -> None:
        try:
            self._progress(self.now.done, self.now.total)
        except CancelledError as error:
            self._stopped = error
