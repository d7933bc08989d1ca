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
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import astuple
from operator import add
from typing import Any, Protocol

import pyarrow as pa

from lance_nb.encodings.kernels.memory import from_bytes
from lance_nb.errors import LanceError, MissingPackageError, RunCancelledError, StorageError
from lance_nb.spark.plan import Task
from lance_nb.storage.sync_later import synced_together
from lance_nb.storage.threads import cpu_count
from lance_nb.value_classes import dataclass

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

    def __add__(self, other: TaskProgress) -> TaskProgress:
        """Return the progress of the tasks of both."""
        return TaskProgress(*map(add, astuple(self), astuple(other)))


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


def outcome_of(work: Callable[[], Any]) -> Any:
    """Return the result of the work of a worker, or its LanceError as a value.

    A StorageError is raised: it is possibly transient, and Spark retries the task.
    """
    try:
        return work()
    except StorageError:
        raise
    except LanceError as error:
        return error


def progress_of_results(tasks: Sequence[Task], results: Mapping[int, Any]) -> TaskProgress:
    """Return the progress of a run from the results of finished tasks, by task number."""
    return TaskProgress(
        len(results),
        len(tasks),
        sum(tasks[number].size_bytes for number in results),
        total_bytes=sum(task.size_bytes for task in tasks),
        num_rows=sum(rows_of(result) for result in results.values()),
    )


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
        progress = progress_of_results(tasks, {})
        results: dict[int, Any] = {}
        with closing(self._finished(tasks, progress.total_bytes, stop)) as finished:
            for number, result in finished:
                results[number] = result
                size_bytes = tasks[number].size_bytes
                progress += TaskProgress(1, done_bytes=size_bytes, num_rows=rows_of(result))
                report(progress)
        return [results[number] for number in range(len(tasks))]

    def _finished(
        self, tasks: Sequence[Task], total_bytes: int, stop: Stop
    ) -> Generator[tuple[int, Any]]:
        """Yield the number and the result of each task when it has finished."""
        calls_user_code = any(getattr(task, "calls_user_code", False) for task in tasks)
        num_threads = min(len(tasks), cpu_count(), THREADS_MAX)
        if total_bytes < LARGE_BYTES or calls_user_code or num_threads < 2:
            with synced_together():
                for number, task in enumerate(tasks):
                    if stop():
                        raise RunCancelledError(number, len(tasks))
                    yield number, task.run()
            return
        with ThreadPoolExecutor(num_threads, thread_name_prefix="lance_nb-task") as pool:
            try:
                # Pending syncs are kept per thread.
                waiting = {pool.submit(run_task, task): index for index, task in enumerate(tasks)}
                while waiting:
                    if stop():
                        raise RunCancelledError(len(tasks) - len(waiting), len(tasks))
                    for future in wait(waiting, _POLL_S, FIRST_COMPLETED).done:
                        yield waiting.pop(future), future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
