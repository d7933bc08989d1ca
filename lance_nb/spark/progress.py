"""How far a run is, from its planning to its commit, told to whoever asked.

Source: the phases of ``lance_nb.spark.run``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from lance_nb.spark.engine import TaskProgress

PLANNING, STARTING, RUNNING, COMMITTING = "planning", "starting spark", "running", "committing"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"
OVER = (DONE, FAILED, CANCELLED)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A run at one moment.

    ``phase`` is "planning", "starting spark", "running", "committing", and at last "done", "failed"
    or "cancelled"; ``engine`` and ``reason`` are empty while it is planned. ``num_rows`` counts the
    rows that finished tasks report.
    """

    phase: str = PLANNING
    engine: str = ""
    reason: str = ""
    num_done: int = 0
    num_tasks: int = 0
    num_rows: int = 0
    done_bytes: int = 0
    total_bytes: int = 0
    elapsed_s: float = 0.0


Listener = Callable[[RunProgress], None]


class Watch:
    """Tells one listener how far one run is."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._began = time.monotonic()
        self.now = RunProgress()

    def phase(self, phase: str, engine: str | None = None, reason: str | None = None) -> None:
        """Tell that a phase begins, and where tasks run once that is known."""
        self._tell(
            replace(
                self.now,
                phase=phase,
                engine=self.now.engine if engine is None else engine,
                reason=self.now.reason if reason is None else reason,
            )
        )

    def tasks(self, done: TaskProgress) -> None:
        """Tell how far the tasks are."""
        self._tell(
            replace(
                self.now,
                num_done=done.num_done,
                num_tasks=done.num_tasks,
                num_rows=done.num_rows,
                done_bytes=done.done_bytes,
                total_bytes=done.total_bytes,
            )
        )

    def _tell(self, now: RunProgress) -> None:
        self.now = replace(now, elapsed_s=time.monotonic() - self._began)
        if self._listener is not None:
            self._listener(self.now)
