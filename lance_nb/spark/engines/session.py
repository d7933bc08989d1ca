"""Tasks on a Spark session, classic or Connect: descriptors travel, data does not.

``spark.range(n, numPartitions=n)`` gives every group of tasks a partition of its own,
``mapInArrow`` runs them in a Python worker, ``collect`` brings the results back to this process,
where the commit is made.

A task that meets a storage error does not take those along that share its partition: it runs again,
in a partition of its own, where Spark tries it as often as it is set up to.

Limits: a Connect session does not tell how many cores there are, so that there only tasks of few
bytes share a partition. lance_nb must be installed where the executors run. Errors of tasks come
back as text; LanceErrors are sent back as values and raised here as they were.
Source: PySpark 4.3 (``DataFrame.mapInArrow``).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.errors import LanceError, StorageError
from lance_nb.spark.engine import Report, Stop, counted, progress_of, rows_of, run_task
from lance_nb.spark.engines.job import RowCounter, SparkJob
from lance_nb.spark.packing import partitions
from lance_nb.spark.plan import Task
from lance_nb.spark.sessions import num_cores
from lance_nb.storage.sync_later import synced_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = pa.schema([("task", pa.int64()), ("outcome", pa.binary())])


@dataclass(frozen=True, slots=True)
class RunTasks:
    """What a Python worker runs: the tasks of the groups whose numbers it is given.

    All tasks are one pickle, so that what they share travels once.
    """

    payload: bytes
    groups: tuple[tuple[int, ...], ...]
    counter: RowCounter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn numbers of groups into the outcomes of their tasks.

        Raises StorageError when files did not become durable: Spark tries the partition again.
        """
        tasks: tuple[Task, ...] = pickle.loads(self.payload)  # noqa: S301 - the driver's own
        with synced_together():  # a partition whose end is not reached has no outcomes
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from self._outcomes(tasks, self.groups[number])

    def _outcomes(
        self, tasks: tuple[Task, ...], group: tuple[int, ...]
    ) -> Iterator[pa.RecordBatch]:
        for at in group:
            found = _outcome(tasks[at], is_alone=len(group) == 1)
            self.counter.add(rows_of(found))
            row = {"task": [at], "outcome": [pickle.dumps(found)]}
            yield pa.RecordBatch.from_pydict(row, _SCHEMA)


def _outcome(task: Task, *, is_alone: bool) -> Any:
    try:
        return run_task(task)
    except StorageError as error:
        if is_alone:
            raise  # may pass by itself: Spark tries the task again
        return error  # the same, without its neighbours
    except LanceError as error:
        return error


class SparkEngine:
    """Runs tasks on a session, which stays as it is."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run the tasks, small ones together; one that met a storage error then runs alone."""
        counter = RowCounter(self._spark)
        groups = partitions([one.size_bytes for one in tasks], num_cores(self._spark))

        def tell(num_done: int, num_rows: int) -> None:
            report(counted(tasks, num_done, num_rows))

        outcomes = self._outcomes(tasks, groups, counter, tell, stop)
        failed = [(at,) for at, found in outcomes.items() if isinstance(found, StorageError)]
        if failed:
            outcomes |= self._outcomes(tasks, failed, counter, tell, stop)
        for outcome in outcomes.values():
            if isinstance(outcome, LanceError):
                raise outcome
        report(progress_of(tasks, outcomes))
        return [outcomes[at] for at in range(len(tasks))]

    def _outcomes(
        self,
        tasks: Sequence[Task],
        groups: Sequence[tuple[int, ...]],
        counter: RowCounter,
        tell: Callable[[int, int], object],
        stop: Stop,
    ) -> dict[int, Any]:
        """Run groups of tasks, each in a partition of its own; return what each task returned."""
        from pyspark.sql.pandas.types import from_arrow_schema  # PySpark may be missing

        work = RunTasks(pickle.dumps(tuple(tasks)), tuple(groups), counter)
        numbers = self._spark.range(0, len(groups), 1, numPartitions=len(groups))
        job = numbers.mapInArrow(work, from_arrow_schema(_SCHEMA))
        others = len(tasks) - sum(map(len, groups))

        def tell_tasks(num_done: int, _: int, num_rows: int) -> None:
            tell(others + sum(map(len, groups[:num_done])), num_rows)

        what = f"lance_nb: {len(tasks) - others} x {type(tasks[0]).__name__}"
        rows = SparkJob(self._spark, what, job.collect).finish(counter, tell_tasks, stop)
        return {row["task"]: pickle.loads(bytes(row["outcome"])) for row in rows}  # noqa: S301
