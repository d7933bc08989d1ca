"""DataFrames of what tasks read: ``mapInArrow`` over the numbers of the parts.

======================  ==========================================================================
``count()`` of          comes from
======================  ==========================================================================
a read of all rows      the manifest: no job runs
a read with a filter    tasks that read the columns of the filter
what ``cache()`` or     Spark, since counting is how a cache is filled
``persist()`` keeps
======================  ==========================================================================

Limits: any other DataFrame, such as one with ``where`` or ``select`` of Spark, is Spark's own, and
its ``count()`` reads the rows: ``mapInArrow`` is not told which columns are used.
Source: ``DataFrame.mapInArrow`` of PySpark 4.3, on classic sessions and on Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from lance_nb.spark.run import run_edits
from lance_nb.spark.sessions import is_connect, no_pandas_warning
from lance_nb.spark.source.scan import ReadParts, ReadPlan
from lance_nb.spark.tasks.rows import plan_count
from lance_nb.spark.types import spark_schema
from lance_nb.value_classes import dataclass

BROADCAST_BYTES = 10 * 1024**2
"""What Spark broadcasts in a join by default (``spark.sql.autoBroadcastJoinThreshold``)."""


@dataclass(frozen=True, slots=True)
class ScanCount:
    """Count the rows of a scan without reading them."""

    plan: ReadPlan
    session: SparkSession

    def __call__(self) -> int:
        """Return the number of rows. Raises StorageError, CorruptFileError."""
        if self.plan.filter is None:
            return self.plan.num_rows
        tasks = plan_count(self.plan.pinned.dataset(), self.plan.filter)
        results = run_edits(tasks, engine="spark", spark=self.session)
        return sum(result.num_rows for result in results)


class ScanDataFrame(ClassicDataFrame):
    """A DataFrame of a scan, which counts its rows without reading them."""

    def __init__(self, frame: DataFrame, count: Callable[[], int]) -> None:
        java: Any = frame
        super().__init__(java._jdf, frame.sparkSession)  # noqa: SLF001 - as PySpark's own do
        self._count = count

    def count(self) -> int:
        """Return the number of rows."""
        return super().count() if self.is_cached else self._count()


def dataframe_of_parts(
    parts: Sequence[Any],
    spark: SparkSession,
    size_bytes: int | None = None,
    count: Callable[[], int] | None = None,
) -> DataFrame:
    """Return a DataFrame with one partition per part, an object with ``schema`` and ``batches``.

    ``count`` counts the rows without reading them (classic sessions only).

    Spark estimates the size of ``mapInArrow`` by its input, here a few numbers, and would broadcast
    the largest dataset in a join. So above ``BROADCAST_BYTES`` the input is one whose size Spark
    does not know; adaptive execution measures the rows, and still broadcasts what is small.
    """
    schema = spark_schema(parts[0].schema())
    numbers = spark.range(0, len(parts), 1, numPartitions=len(parts))
    if not is_connect(spark) and (size_bytes is None or size_bytes > BROADCAST_BYTES):
        numbers = without_statistics(numbers)
    with no_pandas_warning():
        frame = numbers.mapInArrow(ReadParts(tuple(parts)), schema)
    return frame if count is None or is_connect(spark) else ScanDataFrame(frame, count)


def without_statistics(frame: DataFrame) -> DataFrame:
    """Return the same rows as an RDD of the JVM, of which Spark assumes that it is large."""
    java: Any = frame
    numbers = java._jdf.toDF()  # noqa: SLF001 - there is no public API
    session = java.sparkSession._jsparkSession  # noqa: SLF001
    rebuilt = session.createDataFrame(numbers.javaRDD(), numbers.schema())
    return ClassicDataFrame(rebuilt, frame.sparkSession)
