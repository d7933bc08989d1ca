"""Define the engine interface, and run tasks in this process.

All engines take tasks, report progress, can be stopped, and return one result per task in the order
of the tasks, however often a task was tried.

``LocalEngine`` runs small plans task by task, and large ones on a few threads. Decoding, encoding
and compression release the GIL, and tasks wait for the disk: measured on two shared cores, appends
of 1.4 GB took a third less time than without threads (medians of five, same CPU time), updates 5 %
less, compactions the same. No processes are started, because a process pool would import the user's
script and run it again.

Messages between the driver and its Python workers (functions and results) are pickled. Only this
module and spark_engine.py unpickle, and only bytes from this process or its own workers, which
PySpark pickles too. Neither reads files or stores (tests/house/safety_rules.py). Values that are
stored use JSON instead (journal.py).

Limits: at most ``THREADS_MAX`` tasks run at a time, and each holds some batches in memory. User
functions are called from one thread only. A running task cannot be interrupted: a stop request, an
error and a keyboard interrupt wait for the tasks that have started.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from lance_nb.encodings.kernels.memory import from_bytes
from lance_nb.errors import MissingPackageError, RunCancelledError
from lance_nb.spark.plan import Task
from lance_nb.storage.sync_later import synced_together
from lance_nb.storage.threads import cpu_count

RESULT_DDL = "result binary"
_SCHEMA = pa.schema([("result", pa.binary())])


@dataclass(frozen=True, slots=True)
class PickledValue:
    """A pickled value. Only for values that this process pickled itself.

    Functions are pickled by cloudpickle, which PySpark contains: pickle stores a function by its
    name, and other processes cannot import the names of a notebook.
    """

    payload: bytes

    @classmethod
    def of(cls, value: Any) -> PickledValue:
        """Pickle a value. Raises MissingPackageError for a function, without PySpark."""
        if not callable(value):
            return cls(pickle.dumps(value))
        try:
            from pyspark import cloudpickle
        except ImportError as error:
            raise MissingPackageError(
                "sending a function to other processes (engine='local' sends none)",
                "PySpark", "lance-nb[spark]",
            ) from error  # fmt: skip
        return cls(bytes(cloudpickle.dumps(value)))  # type: ignore[no-untyped-call]

    @property
    def value(self) -> Any:
        """The unpickled value."""
        return pickle.loads(self.payload)  # noqa: S301 - made by ``of`` on the driver


def result_batch(value: Any) -> pa.RecordBatch:
    """Pickle the result of a worker into a batch of one row, for ``mapInArrow``.

    Made without pandas: PySpark collects garbage in a worker after every task, which takes twice as
    long with the objects of pandas.
    """
    return pa.RecordBatch.from_arrays([from_bytes([pickle.dumps(value)])], schema=_SCHEMA)


def result_table(value: Any) -> pa.Table:
    """Pickle the result of a worker into a table of one row, for ``applyInArrow``."""
    return pa.Table.from_batches([result_batch(value)])


def result_of_row(row: Any) -> Any:
    """Unpickle the result in a row that a worker returned."""
    return pickle.loads(bytes(row["result"]))  # noqa: S301 - from our own workers


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """Tasks done and in total, their estimated bytes, and the rows that they report."""

    num_done: int = 0
    num_tasks: int = 0
    done_bytes: int = 0
    total_bytes: int = 0
    num_rows: int = 0


Report = Callable[[TaskProgress], None]
# Called between tasks; True cancels the run.
Stop = Callable[[], bool]


class Engine(Protocol):
    """Run tasks. ``name`` is "local" or "spark"."""

    @property
    def name(self) -> str: ...

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run all tasks and return their results in the order of the tasks.

        Raises RunCancelledError, and what a task raises.
        """
        ...


def run_task(task: Task) -> Any:
    """Run a task in a worker process; its files are synced together at the end of the task."""
    with synced_together():
        return task.run()


class TaskCounter:
    """Counts finished tasks, each in constant time."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        total_bytes = sum(task.size_bytes for task in tasks)
        self._now = TaskProgress(0, len(tasks), 0, total_bytes, 0)

    def after(self, task: Task, result: Any) -> TaskProgress:
        """Count a task, and return the progress."""
        now = self._now
        self._now = replace(
            now,
            num_done=now.num_done + 1,
            done_bytes=now.done_bytes + task.size_bytes,
            num_rows=now.num_rows + rows_of(result),
        )
        return self._now


def progress_of_results(tasks: Sequence[Task], results: Mapping[int, Any]) -> TaskProgress:
    """Return the progress of a run from the results of finished tasks, by task number."""
    return TaskProgress(
        len(results),
        len(tasks),
        sum(tasks[number].size_bytes for number in results),
        sum(task.size_bytes for task in tasks),
        sum(rows_of(result) for result in results.values()),
    )


def estimated_progress(tasks: Sequence[Task], num_done: int, num_rows: int) -> TaskProgress:
    """Estimate the progress from the number of finished tasks alone."""
    total = sum(task.size_bytes for task in tasks)
    share = num_done / max(len(tasks), 1)
    return TaskProgress(num_done, len(tasks), int(total * share), total, num_rows)


def rows_of(result: Any) -> int:
    """Return ``num_rows`` of a result, 0 if it has none."""
    return int(getattr(result, "num_rows", 0))


THREADS_MAX = 8
LARGE_BYTES = 64 * 1024**2  # of all tasks; threads do not pay for less
_POLL_S = 0.2


class LocalEngine:
    """Run tasks in this process."""

    name = "local"

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run all tasks; their files are durable on return."""
        threads = _num_threads(tasks)
        if threads > 1:
            return _on_threads(tasks, threads, report, stop)
        results: list[Any] = []
        counted = TaskCounter(tasks)
        with synced_together():
            for position, task in enumerate(tasks):
                if stop():
                    raise RunCancelledError(position, len(tasks))
                results.append(task.run())
                report(counted.after(task, results[-1]))
        return results


def _num_threads(tasks: Sequence[Task]) -> int:
    is_small = sum(task.size_bytes for task in tasks) < LARGE_BYTES
    if is_small or any(getattr(task, "calls_user_code", False) for task in tasks):
        return 1
    return min(len(tasks), cpu_count(), THREADS_MAX)


def _on_threads(tasks: Sequence[Task], threads: int, report: Report, stop: Stop) -> list[Any]:
    results: dict[int, Any] = {}
    counted = TaskCounter(tasks)
    with ThreadPoolExecutor(threads, thread_name_prefix="lance_nb-task") as pool:
        try:
            left = {pool.submit(_run, task): index for index, task in enumerate(tasks)}
            while left:
                if stop():
                    raise RunCancelledError(len(results), len(tasks))
                done = wait(left, timeout=_POLL_S, return_when=FIRST_COMPLETED).done
                for future in done:
                    number = left.pop(future)
                    results[number] = future.result()
                    report(counted.after(tasks[number], results[number]))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return [results[index] for index in range(len(tasks))]


def _run(task: Task) -> Any:
    with synced_together():  # pending syncs are kept per thread
        return task.run()
