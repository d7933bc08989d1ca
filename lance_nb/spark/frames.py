"""Write a DataFrame: every partition becomes fragments, all of them one version.

A partition is written where it is computed, by ``mapInArrow``; only the metadata of its fragments
comes back. The commit is made in this process.

Limits: the fragments are as many as the partitions have files, at least one each; repartition a
DataFrame of thousands of small partitions first. A shuffle before it may leave fewer partitions
than expected (adaptive execution joins small ones).
Source: lance_nb.spark.new_rows, PySpark's ``DataFrame.mapInArrow``.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.spark.engine import TaskProgress, rows_of
from lance_nb.spark.engines.job import RowCounter, SparkJob
from lance_nb.spark.new_rows import Destination, NewRows, Wanted
from lance_nb.spark.plan import Plan
from lance_nb.spark.progress import Watch
from lance_nb.spark.run import RunOptions
from lance_nb.spark.types import new_schema, readable_schema, to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = pa.schema([("made", pa.binary())])
MADE_DDL = "made binary"
APPEND = Wanted()


def made(value: Any) -> pa.RecordBatch:
    """Return what a worker made as the one row that it sends back."""
    return pa.RecordBatch.from_pydict({"made": [pickle.dumps(value)]}, _SCHEMA)


def made_table(value: Any) -> pa.Table:
    """Return the same as a table."""
    return pa.Table.from_batches([made(value)])


@dataclass(frozen=True, slots=True)
class WritePartition:
    """What a Python worker runs for a partition."""

    rows: NewRows
    counter: RowCounter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the partition and return the metadata of its fragments."""
        found = self.rows.write_of_spark(batches)
        self.counter.add(rows_of(found))
        yield made(found)


def plan_frame(target: Destination, frame: DataFrame, wanted: Wanted = APPEND) -> Plan:
    """Plan to append a DataFrame, to overwrite with one, or to create from one.

    Raises DatasetAlreadyExistsError, SchemaMismatchError.
    """
    rows = NewRows.of(target, new_schema(frame.schema), wanted)

    def gather(options: RunOptions, watch: Watch) -> list[Any]:
        counter = RowCounter(frame.sparkSession)
        job = frame.mapInArrow(WritePartition(rows, counter), MADE_DDL)
        return collected(job, counter, options, watch)

    return replace(rows.plan(wanted.mode, "a DataFrame"), gather=gather)


def collected(job: DataFrame, counter: RowCounter, options: RunOptions, watch: Watch) -> list[Any]:
    """Run a job whose rows are what workers made, and return that."""

    def tell(num_done: int, num_tasks: int, num_rows: int) -> None:
        watch.tasks(TaskProgress(num_done, num_tasks, 0, 0, num_rows))

    action = SparkJob(job.sparkSession, "lance_nb: write a DataFrame", job.collect)
    found = action.finish(counter, tell, options.is_stopped)
    results = [pickle.loads(bytes(row["made"])) for row in found]  # noqa: S301 - our own workers'
    num_rows = sum(rows_of(one) for one in results)
    watch.tasks(TaskProgress(len(results), len(results), 0, 0, num_rows))
    return results


@dataclass(frozen=True, slots=True)
class ReadParts:
    """What a Python worker runs to read parts whose numbers it is given."""

    parts: tuple[Any, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn numbers of parts into their rows, as Spark wants them."""
        schema = readable_schema(self.parts[0].schema())
        for batch in batches:
            for at in batch.column(0).to_pylist():
                for rows in self.parts[at].batches():
                    yield to_spark(rows, schema)


def frame_of_parts(parts: Sequence[Any], spark: SparkSession) -> DataFrame:
    """Return a DataFrame with a partition for each part, which has ``schema`` and ``batches``."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(readable_schema(parts[0].schema()))
    numbers = spark.range(0, len(parts), 1, numPartitions=len(parts))
    return numbers.mapInArrow(ReadParts(tuple(parts)), schema)


def is_frame(value: object) -> bool:
    """Whether a value is a DataFrame of Spark's; told without importing PySpark."""
    return any(
        one.__module__.startswith("pyspark.sql") and one.__name__ == "DataFrame"
        for one in type(value).__mro__
    )
