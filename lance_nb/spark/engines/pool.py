"""Tasks in a pool of processes on this machine.

Processes are started afresh ("spawn"), so that no lock of the notebook's threads is copied. Every
process gets all tasks once, so that what tasks share travels once. Processes end with the run, and
when it is stopped, an interrupt of the kernel included.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any

from lance_nb.errors import RunCancelledError
from lance_nb.spark.engine import Report, Stop, progress_of, run_task
from lance_nb.spark.plan import Task

_POLL_S = 0.2
# The tasks of the run that this process works for; set once, when the process starts.
_TASKS: list[Task] = []


class PoolEngine:
    """Runs tasks in ``num_workers`` processes (by default one per core)."""

    name = "pool"

    def __init__(self, num_workers: int | None = None) -> None:
        self._num_workers = num_workers or os.cpu_count() or 1

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run all tasks, as many at once as there are workers."""
        context = multiprocessing.get_context("spawn")
        workers = max(1, min(self._num_workers, len(tasks)))
        payload = pickle.dumps(list(tasks))
        pool = ProcessPoolExecutor(workers, context, initializer=hold, initargs=(payload,))
        found: list[Any] | None = None
        try:
            waiting = {pool.submit(run_one, at): at for at in range(len(tasks))}
            found = _gather(tasks, waiting, report, stop)
            return found
        finally:
            if found is None:  # a failure, a stop, or an interrupt of the kernel
                _kill(pool)
            pool.shutdown(wait=True, cancel_futures=True)


def hold(payload: bytes) -> None:
    """Take the tasks of a run."""
    _TASKS[:] = pickle.loads(payload)  # noqa: S301 - written by the process that started this one


def run_one(at: int) -> Any:
    """Run one task; a function of a module, so that it can be sent by name."""
    return run_task(_TASKS[at])


def _gather(
    tasks: Sequence[Task], waiting: dict[Future[Any], int], report: Report, stop: Stop
) -> list[Any]:
    found: dict[int, Any] = {}
    left = set(waiting)
    while left:
        done, left = wait(left, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        for future in done:
            found[waiting[future]] = future.result()
        if done:
            report(progress_of(tasks, found))
        if stop():
            raise RunCancelledError(len(found), len(tasks))
    return [found[at] for at in range(len(tasks))]


def _kill(pool: ProcessPoolExecutor) -> None:
    """End the workers at once: what they wrote belongs to no version."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()
