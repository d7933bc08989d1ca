"""Runs a verb in a thread, so that the notebook stays free; what a card of the explorer shows.

::

    job = lance_spark.submit(lance_spark.delete, ds, "x < 3", engine="auto", message="why")
    job.progress            phase, engine, tasks done, rows, bytes, seconds
    job.cancel()            nothing is committed
    job.result()            what the verb returns, or raises

Limits: the last ``KEPT`` jobs of the process are listed. A job that is committing already commits.
"""

from __future__ import annotations

import inspect
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

from lance_nb.errors import CancelledError, InvalidInputError
from lance_nb.spark.progress import CANCELLED, DONE, FAILED, OVER, Listener, RunProgress

KEPT = 50
_JOBS: deque[Job] = deque(maxlen=KEPT)


class Job:
    """A verb that runs. Made by ``submit``."""

    def __init__(self, verb: str, call: Callable[..., Any]) -> None:
        self.id = str(uuid.uuid4())
        self.verb = verb
        self._progress = RunProgress()
        self._stopped = Event()
        self._listeners: list[Listener] = []
        threads = ThreadPoolExecutor(1, thread_name_prefix=f"lance_nb-{verb}")
        self._future: Future[Any] = threads.submit(self._run, call)
        threads.shutdown(wait=False)

    @property
    def progress(self) -> RunProgress:
        """How far it is."""
        if not self._future.done() or self._progress.phase in OVER:
            return self._progress
        error = self._future.exception()
        ended = DONE if error is None else FAILED
        return replace(
            self._progress, phase=CANCELLED if isinstance(error, CancelledError) else ended
        )

    @property
    def state(self) -> str:
        """The phase it is in."""
        return self.progress.phase

    @property
    def is_over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.state in OVER

    @property
    def error(self) -> BaseException | None:
        """What it failed with."""
        return self._future.exception() if self._future.done() else None

    def watch(self, listener: Listener) -> None:
        """Call ``listener`` at each change, on the thread of the job, and once now."""
        self._listeners.append(listener)
        listener(self.progress)
        self._future.add_done_callback(lambda _: listener(self.progress))

    def cancel(self) -> None:
        """Ask it to end; returns at once."""
        self._stopped.set()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end; return what the verb returns, raise what it raises.

        Raises TimeoutError after ``timeout`` seconds. An interrupt of the kernel cancels the job.
        """
        try:
            return self._future.result(timeout)
        except KeyboardInterrupt:
            self.cancel()
            wait([self._future])
            raise

    def _run(self, call: Callable[..., Any]) -> Any:
        return call(progress=self._told, stop=self._stopped.is_set)

    def _told(self, now: RunProgress) -> None:
        if now.phase in OVER:  # told when the result is there as well
            now = replace(now, phase=self._progress.phase)
        self._progress = now
        for listener in tuple(self._listeners):
            listener(now)

    def __repr__(self) -> str:
        now = self.progress
        tasks = f", {now.num_done} of {now.num_tasks} tasks" if now.num_tasks else ""
        return f"<lance_nb.spark.Job {self.verb}: {now.phase}{tasks}, {now.elapsed_s:.0f} s>"


def submit(verb: Callable[..., Any], *args: Any, **options: Any) -> Job:
    """Begin a function of ``lance_nb.spark`` in a thread of its own and return at once.

    Raises InvalidInputError for what is no function, or for ``progress`` and ``stop``: a job has
    ``watch`` and ``cancel``.
    """
    for name in ("progress", "stop"):
        if name in options:
            raise InvalidInputError(f"submit takes no {name!r}: a job has watch() and cancel()")
    if not callable(verb):
        raise InvalidInputError(f"submit takes a function of lance_nb.spark, not {verb!r}")
    call = partial(verb, *args, **options)
    if not _reports(verb):
        call = partial(_without_reports, call)
    job = Job(getattr(verb, "__name__", "job"), call)
    _JOBS.appendleft(job)
    return job


def jobs() -> tuple[Job, ...]:
    """Return the jobs of this process, the newest first."""
    return tuple(_JOBS)


def _reports(verb: Callable[..., Any]) -> bool:
    """Tell whether a function takes ``progress`` and ``stop``."""
    parameters = inspect.signature(verb).parameters.values()
    names = {one.name for one in parameters}
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    return {"progress", "stop"} <= names or (takes_any and verb.__module__.startswith("lance_nb"))


def _without_reports(call: Callable[..., Any], **_: Any) -> Any:
    return call()
