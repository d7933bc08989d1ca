"""Tasks on a Spark session, classic or Connect: descriptors travel, data does not.

``spark.range(n, numPartitions=n)`` gives every task a partition of its own, ``mapInArrow`` runs it
in a Python worker, ``collect`` brings the edits back to this process, where the commit is made.

Cancel: a job group on a classic session (``interruptTag`` does not reach ``mapInArrow`` there), the
tag on Connect. A request that comes before the job is known is lost, so it is repeated.

Limits: lance_nb must be installed where the executors run. Errors of tasks come back as text;
LanceErrors are sent back as values and raised here as they were.
Source: PySpark 4.3 (``DataFrame.mapInArrow``, ``SparkContext.setJobGroup``, ``interruptTag``).
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.errors import LanceError, RunCancelledError, StorageError
from lance_nb.spark.engine import Report, Stop, progress_of
from lance_nb.spark.plan import Task
from lance_nb.spark.sessions import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 0.25
_SCHEMA = pa.schema([("task", pa.int64()), ("outcome", pa.binary())])
_DDL = "task long, outcome binary"


@dataclass(frozen=True, slots=True)
class RunTasks:
    """What a Python worker runs: the tasks whose numbers it is given."""

    payloads: tuple[bytes, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn numbers of tasks into their outcomes."""
        for batch in batches:
            for at in batch.column(0).to_pylist():
                outcome = pickle.dumps(_outcome(self.payloads[at]))
                yield pa.RecordBatch.from_pydict({"task": [at], "outcome": [outcome]}, _SCHEMA)


def _outcome(payload: bytes) -> Any:
    task: Task = pickle.loads(payload)  # noqa: S301 - written by the driver of this job
    try:
        return task.run()
    except StorageError:
        raise  # may pass by itself: Spark tries the task again
    except LanceError as error:
        return error


class SparkEngine:
    """Runs tasks on a session, which stays as it is."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run every task in a partition of its own."""
        payloads = tuple(pickle.dumps(task) for task in tasks)
        numbers = self._spark.range(0, len(tasks), 1, numPartitions=len(tasks))
        job = numbers.mapInArrow(RunTasks(payloads), _DDL)
        rows = _Job(self._spark, job.collect).finish(tasks, report, stop)
        outcomes = {row["task"]: pickle.loads(bytes(row["outcome"])) for row in rows}  # noqa: S301
        for outcome in outcomes.values():
            if isinstance(outcome, LanceError):
                raise outcome
        return [outcomes[at] for at in range(len(tasks))]


class _Job:
    """One action of Spark's in a thread of its own, watched and stopped from here."""

    def __init__(self, spark: SparkSession, action: Callable[[], Any]) -> None:
        self._spark = spark
        self._action = action
        self._group = f"lance_nb-{uuid.uuid4()}"

    def finish(self, tasks: Sequence[Task], report: Report, stop: Stop) -> Any:
        done = 0
        with ThreadPoolExecutor(1, thread_name_prefix=self._group) as threads:
            job = threads.submit(self._run)
            try:
                while not wait([job], timeout=_POLL_S).done:
                    now = self._num_done(len(tasks))
                    if now != done:
                        done = now
                        report(progress_of(tasks, range(done)))
                    if stop():
                        raise RunCancelledError(done, len(tasks))
            finally:
                if not job.done():  # stopped, or an interrupt of the kernel
                    self._cancel(job)
            rows = job.result()
        report(progress_of(tasks, range(len(tasks))))
        return rows

    def _run(self) -> Any:
        # Spark keeps groups and tags per thread, so they are set in the one that runs the action.
        if is_connect(self._spark):
            self._spark.addTag(self._group)
        else:
            self._spark.sparkContext.setJobGroup(self._group, "lance_nb", interruptOnCancel=True)
        return self._action()

    def _num_done(self, most: int) -> int:
        if is_connect(self._spark):
            return 0
        tracker = self._spark.sparkContext.statusTracker()
        done = 0
        for job in tracker.getJobIdsForGroup(self._group):
            about = tracker.getJobInfo(job)
            for stage in about.stageIds if about else ():
                found = tracker.getStageInfo(stage)
                done += found.numCompletedTasks if found else 0
        return min(done, most)

    def _cancel(self, job: Future[Any]) -> None:
        """Stop the job; a request that comes before Spark knows it is lost, so it is repeated."""
        while not job.done():
            if is_connect(self._spark):
                self._spark.interruptTag(self._group)
            else:
                self._spark.sparkContext.cancelJobGroup(self._group)
            wait([job], timeout=_POLL_S)
