"""Tasks in a pool of processes on this machine.

Processes are started afresh ("spawn"), so that no lock of the notebook's threads is copied. They
end with the run, and when it is stopped, an interrupt of the kernel included.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any

from lance_nb.errors import RunCancelledError
from lance_nb.spark.engine import Report, Stop, progress_of
from lance_nb.spark.plan import Task

_POLL_S = 0.2


class PoolEngine:
    """Runs tasks in ``num_workers`` processes (by default one per core)."""

    name = "pool"

    def __init__(self, num_workers: int | None = None) -> None:
        self._num_workers = num_workers or os.cpu_count() or 1

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run all tasks, as many at once as there are workers."""
        context = multiprocessing.get_context("spawn")
        workers = max(1, min(self._num_workers, len(tasks)))
        pool = ProcessPoolExecutor(workers, mp_context=context)
        found: list[Any] | None = None
        try:
            waiting = {pool.submit(run_one, task): at for at, task in enumerate(tasks)}
            found = _gather(tasks, waiting, report, stop)
            return found
        finally:
            if found is None:  # a failure, a stop, or an interrupt of the kernel
                _kill(pool)
            pool.shutdown(wait=True, cancel_futures=True)


def run_one(task: Task) -> Any:
    """Run one task; a function of a module, so that it can be sent by name."""
    return task.run()


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
            report(progress_of(tasks, list(found)))
        if stop():
            raise RunCancelledError(len(found), len(tasks))
    return [found[at] for at in range(len(tasks))]


def _kill(pool: ProcessPoolExecutor) -> None:
    """End the workers at once: what they wrote belongs to no version."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()
