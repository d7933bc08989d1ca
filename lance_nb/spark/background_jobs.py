"""Report the progress of a run, and run operations in a background thread.

::

    job = lance_spark.submit(lance_spark.delete, ds, "x < 3", engine="auto", message="why")
    job.progress            phase, engine, tasks done, rows, bytes, seconds
    job.cancel()            nothing is committed
    job.result()            the result of the operation, or its exception

Limits: the last ``KEPT`` jobs of the process are listed. A job that has reached its commit can no
longer be cancelled.
"""

from __future__ import annotations

import inspect
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from functools import partial
from threading import Event
from typing import Any

from lance_nb.errors import CancelledError, InvalidInputError
from lance_nb.spark.engine import TaskProgress
from lance_nb.value_classes import dataclass

PLANNING, STARTING, RUNNING, COMMITTING = "planning", "starting spark", "running", "committing"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"
OVER = (DONE, FAILED, CANCELLED)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run at one moment.

    ``phase`` is "planning", "starting spark", "running", "committing", and at last "done", "failed"
    or "cancelled"; ``engine`` and ``reason`` are empty during planning. ``num_rows`` is the sum
    of the rows that finished tasks report.
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


class ProgressReporter:
    """Report the progress of a run to one listener; ``other_parts`` is added to its tasks."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._began = time.monotonic()
        self.now = RunProgress()
        self.other_parts = TaskProgress()

    def phase(self, phase: str, engine: str | None = None, reason: str | None = None) -> None:
        """Report a new phase, and the engine with its reason once it is known."""
        chosen = {} if engine is None else {"engine": engine, "reason": reason}
        self._tell(phase=phase, **chosen)

    def tasks(self, done: TaskProgress) -> None:
        """Report the progress of the tasks."""
        self._tell(**asdict(self.other_parts + done))

    def _tell(self, **changes: Any) -> None:
        self.now = replace(self.now, elapsed_s=time.monotonic() - self._began, **changes)
        if self._listener is not None:
            self._listener(self.now)


KEPT = 50
_JOBS: deque[Job] = deque(maxlen=KEPT)


class Job:
    """An operation that runs in a background thread. Made by ``submit``."""

    def __init__(self, verb: str, call: Callable[..., Any]) -> None:
        self.id = str(uuid.uuid4())
        self.verb = verb
        self._progress = RunProgress()
        self._stopped = Event()
        self._listeners: list[Listener] = []
        threads = ThreadPoolExecutor(1, thread_name_prefix=f"lance_nb-{verb}")
        self._future: Future[Any] = threads.submit(
            call, progress=self._report, stop=self._stopped.is_set
        )
        threads.shutdown(wait=False)

    @property
    def progress(self) -> RunProgress:
        """The current progress."""
        if not self._future.done() or self._progress.phase in OVER:
            return self._progress
        error = self._future.exception()
        ended = DONE if error is None else FAILED
        return replace(
            self._progress, phase=CANCELLED if isinstance(error, CancelledError) else ended
        )

    @property
    def state(self) -> str:
        """The current phase."""
        return self.progress.phase

    @property
    def error(self) -> BaseException | None:
        """The exception that ended it, None if there is none."""
        return self._future.exception() if self._future.done() else None

    def watch(self, listener: Listener) -> None:
        """Call ``listener`` now, and after each change on the thread of the job."""
        self._listeners.append(listener)
        listener(self.progress)
        self._future.add_done_callback(lambda _: listener(self.progress))

    def cancel(self) -> None:
        """Request cancellation and return at once."""
        self._stopped.set()

    def result(self, timeout: float | None = None) -> Any:
        """Wait until the job is over; return the result of the operation, or raise its exception.

        Raises TimeoutError after ``timeout`` seconds. A KeyboardInterrupt cancels the job.
        """
        try:
            return self._future.result(timeout)
        except KeyboardInterrupt:
            self.cancel()
            wait([self._future])
            raise

    def _report(self, now: RunProgress) -> None:
        if now.phase in OVER:  # reported once the result is available too
            now = replace(now, phase=self._progress.phase)
        self._progress = now
        for listener in tuple(self._listeners):
            listener(now)

    def __repr__(self) -> str:
        now = self.progress
        tasks = f", {now.num_done} of {now.num_tasks} tasks" if now.num_tasks else ""
        return f"<lance_nb.spark.Job {self.verb}: {now.phase}{tasks}, {now.elapsed_s:.0f} s>"


def submit(verb: Callable[..., Any], *args: Any, **options: Any) -> Job:
    """Start a function of ``lance_nb.spark`` in a background thread and return its job.

    Raises InvalidInputError if ``verb`` is not callable, or for ``progress`` and ``stop``: use
    ``Job.watch`` and ``Job.cancel``.
    """
    for name in ("progress", "stop"):
        if name in options:
            raise InvalidInputError(
                f"submit() has no argument {name!r}; use watch() and cancel() of the job"
            )
    if not callable(verb):
        raise InvalidInputError(f"submit() expects a function of lance_nb.spark, not {verb!r}")
    parameters = inspect.signature(verb).parameters.values()
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    reports = {"progress", "stop"} <= {parameter.name for parameter in parameters}
    reports = reports or (takes_any and verb.__module__.startswith("lance_nb"))
    call = partial(verb, *args, **options)
    job = Job(getattr(verb, "__name__", "job"), call if reports else lambda **_: call())
    _JOBS.appendleft(job)
    return job


def jobs() -> tuple[Job, ...]:
    """List the jobs of this process, newest first."""
    return tuple(_JOBS)
