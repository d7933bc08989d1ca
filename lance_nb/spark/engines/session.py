"""Tasks on a Spark session, classic or Connect: descriptors travel, data does not.

``spark.range(n, numPartitions=n)`` gives every task a partition of its own, ``mapInArrow`` runs it
in a Python worker, ``collect`` brings the results back to this process, where the commit is made.

Limits: lance_nb must be installed where the executors run. Errors of tasks come back as text;
LanceErrors are sent back as values and raised here as they were.
Source: PySpark 4.3 (``DataFrame.mapInArrow``).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.errors import LanceError, StorageError
from lance_nb.spark.engine import Report, Stop, counted, progress_of, rows_of, run_task
from lance_nb.spark.engines.job import RowCounter, SparkJob
from lance_nb.spark.plan import Task
from lance_nb.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = pa.schema([("task", pa.int64()), ("outcome", pa.binary())])
_DDL = "task long, outcome binary"


@dataclass(frozen=True, slots=True)
class RunTasks:
    """What a Python worker runs: the tasks whose numbers it is given.

    All tasks are one pickle, so that what they share travels once.
    """

    payload: bytes
    counter: RowCounter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn numbers of tasks into their outcomes."""
        tasks: tuple[Task, ...] = pickle.loads(self.payload)  # noqa: S301 - the driver's own
        for batch in batches:
            for at in batch.column(0).to_pylist():
                found = _outcome(tasks[at])
                self.counter.add(rows_of(found))
                row = {"task": [at], "outcome": [pickle.dumps(found)]}
                yield pa.RecordBatch.from_pydict(row, _SCHEMA)
        settle()


def _outcome(task: Task) -> Any:
    try:
        return run_task(task)
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
        counter = RowCounter(self._spark)
        numbers = self._spark.range(0, len(tasks), 1, numPartitions=len(tasks))
        job = numbers.mapInArrow(RunTasks(pickle.dumps(tuple(tasks)), counter), _DDL)

        def tell(num_done: int, _: int, num_rows: int) -> None:
            report(counted(tasks, min(num_done, len(tasks)), num_rows))

        what = f"lance_nb: {len(tasks)} x {type(tasks[0]).__name__}"
        rows = SparkJob(self._spark, what, job.collect).finish(counter, tell, stop)
        outcomes = {row["task"]: pickle.loads(bytes(row["outcome"])) for row in rows}  # noqa: S301
        for outcome in outcomes.values():
            if isinstance(outcome, LanceError):
                raise outcome
        report(progress_of(tasks, outcomes))
        return [outcomes[at] for at in range(len(tasks))]
