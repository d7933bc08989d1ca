"""Read a dataset as a Spark DataFrame, write a DataFrame, register ``format("lance_nb")``.

Write: each partition of the DataFrame is written to new fragments where it is computed, with
``mapInArrow``. Only the metadata of the fragments returns to the driver, which commits all of them
as one version.

Limits: every non-empty partition makes at least one fragment, so repartition a DataFrame of
thousands of small partitions first. After a shuffle there may be fewer partitions than expected,
because adaptive query execution coalesces small ones.
Source: ``DataFrame.mapInArrow`` of PySpark 4.3.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.spark.background_jobs import ProgressReporter
from lance_nb.spark.engine import (
    RESULT_DDL,
    TaskProgress,
    outcome_of,
    result_batch,
    result_of_row,
    rows_of,
)
from lance_nb.spark.plan import PinnedVersion, Plan
from lance_nb.spark.row_writer import Destination, RowWriter, WriteSettings
from lance_nb.spark.run import RunOptions
from lance_nb.spark.sessions import (
    find_session,
    is_connect,
    no_pandas_warning,
    num_cores,
    start_session,
)
from lance_nb.spark.source.options import STORAGE_OPTIONS, SourceOptions, with_one_spelling
from lance_nb.spark.source.scan import ReadPart, ReadPlan
from lance_nb.spark.spark_engine import NO_PROPERTIES, RowCounter, SparkJob
from lance_nb.spark.types import new_schema
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPEND = WriteSettings()


@dataclass(frozen=True, slots=True)
class WritePartition:
    """The function that a Python worker runs to write a partition of ``FrameBatches``."""

    rows: RowWriter
    counter: RowCounter
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the partition and yield the metadata of its fragments, or a LanceError."""
        result = outcome_of(lambda: self.rows.write_of_spark(rows_sent(batches, self.names)))
        self.counter.add(rows_of(result))
        yield result_batch(result)


def rows_sent(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``FrameBatches``, with the names of their columns and without fillers."""
    for batch in batches:
        rows = batch.select(list(range(len(names)))).rename_columns(list(names))
        is_row = batch.column(len(names)) if batch.num_columns > len(names) else None
        has_fillers = is_row is not None and is_row.true_count < batch.num_rows
        yield rows.filter(is_row) if has_fillers else rows


def plan_frame(
    target: Destination,
    frame: DataFrame,
    write_settings: WriteSettings = APPEND,
    dimensions: Mapping[str, int] | None = None,
) -> Plan:
    """Plan to append a DataFrame, to overwrite with it, or to create a dataset from it.

    ``dimensions``: arrays that are vectors, and their lengths. Raises DatasetAlreadyExistsError,
    SchemaMismatchError, InvalidInputError.
    """
    rows = RowWriter.of_frame(target, new_schema(frame.schema, dimensions), write_settings)

    def run_job(options: RunOptions, watch: ProgressReporter) -> list[Any]:
        from lance_nb.spark.frame_batches import FrameBatches  # needs PySpark

        counter = RowCounter(frame.sparkSession)
        sent = FrameBatches.of(frame)
        write = WritePartition(rows, counter, tuple(frame.columns))
        with no_pandas_warning():
            job = sent.frame.mapInArrow(write, RESULT_DDL)
        return collect_results(job, counter, options, watch=watch, properties=sent.properties)

    return replace(rows.plan(write_settings.mode, "a DataFrame"), run_job=run_job)


def clustered(frame: DataFrame, columns: Sequence[str] | str) -> DataFrame:
    """Sort the rows of a DataFrame into partitions by columns. Raises InvalidInputError."""
    names = [columns] if isinstance(columns, str) else list(columns)
    unknown = [name for name in names if name not in frame.columns]
    if unknown or not names:
        column_names = ", ".join(frame.columns)
        problem = f"no column {unknown[0]!r}" if unknown else "cluster_by names no column"
        raise InvalidInputError(f"{problem}; columns: {column_names}")
    by = [frame[name] for name in names]
    return frame.repartitionByRange(*by).sortWithinPartitions(*by)


def collect_results(
    job: DataFrame,
    counter: RowCounter,
    options: RunOptions,
    watch: ProgressReporter,
    properties: Mapping[str, str] = NO_PROPERTIES,
) -> list[Any]:
    """Run a job whose rows are pickled results; return them, or raise one that is a LanceError.

    ``properties`` are local properties of the job.
    """
    description = "lance_nb: write a DataFrame"
    action = SparkJob(job.sparkSession, description, job.collect, properties)
    collected = action.finish(counter, watch.tasks, options.is_stopped)
    results = [result_of_row(row) for row in collected]
    for result in results:
        if isinstance(result, LanceError):
            raise result
    num_rows = sum(rows_of(result) for result in results)
    watch.tasks(TaskProgress(len(results), len(results), num_rows=num_rows))
    return results


def is_dataframe(value: object) -> bool:
    """Whether a value is a Spark DataFrame. Does not import PySpark."""
    return any(
        base.__module__.startswith("pyspark.sql") and base.__name__ == "DataFrame"
        for base in type(value).__mro__
    )


ALIAS = "lance"
_SOURCE = "lance_nb.spark.source"
_REFS = ("version", "versionasof", "timestampasof", "branch", "tag")
# The registered alias of each session, cached because finding it out costs a query.
_ALIASES: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()
_REGISTERED: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> str | None:
    """Register ``format("lance_nb")``, and ``format("lance")`` if that name is free.

    Returns "lance" if that name is registered to lance_nb, None if another source has it, such as
    lance-spark. What Spark has discovered by itself is not registered again. A classic session
    becomes the active one of this thread if there is none: ``df.write`` looks up sources in the
    active session, and a session that another thread has started is not active here.
    """
    from lance_nb.spark.source.data_source import LanceAlias  # needs PySpark

    register_source(spark)
    if not is_connect(spark):
        java: Any = spark
        sessions = java._jvm.SparkSession  # noqa: SLF001 - there is no public API
        if not sessions.getActiveSession().isDefined():
            sessions.setActiveSession(java._jsparkSession)  # noqa: SLF001
    if spark not in _ALIASES:
        answer = _error_of_source(spark, ALIAS)
        if "DATA_SOURCE_NOT_FOUND" in answer:
            spark.dataSource.register(LanceAlias)
            answer = _SOURCE
        _ALIASES[spark] = ALIAS if _SOURCE in answer else None
    return _ALIASES[spark]


def register_source(spark: SparkSession) -> None:
    """Register ``format("lance_nb")`` unless Spark knows it.

    An installed lance_nb is discovered by Spark. Registering it once more would make Spark warn
    that it replaces a source. A classic session has a catalog of sources. On Connect, an error that
    names the class of the source shows that it is known; one is provoked once for each session.
    """
    if spark in _REGISTERED:
        return
    from lance_nb.spark.source.data_source import LanceSource  # needs PySpark

    name = LanceSource.name()
    if is_connect(spark):
        is_known = _SOURCE in _error_of_source(spark, name)
    else:
        java: Any = spark._jsparkSession  # noqa: SLF001 - there is no public API
        is_known = java.sessionState().dataSourceManager().dataSourceExists(name)
    if not is_known:
        spark.dataSource.register(LanceSource)
    _REGISTERED.add(spark)


def _error_of_source(spark: SparkSession, name: str) -> str:
    """Return the error of a source for a path that does not exist; ours contains its module."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return str(spark.read.format(name).load("nowhere").columns)
    except (PySparkException, Py4JJavaError) as error:  # the latter on a classic session
        return str(error).replace("/", ".")


def read(
    target: Destination,
    *,
    spark: SparkSession | None = None,
    columns: list[str] | None = None,
    filter: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """Read a dataset as a DataFrame; other options as ``lance_nb.spark.source.options`` lists them.

    ``storage_options`` are those of ``lance_nb.dataset`` (also as option ``storageOptions``, a JSON
    text). Without ``spark``, the running session is used; a local one is started if there is none.
    The version is pinned by this call. ``count()`` of this DataFrame comes from the manifest, or
    reads only the columns of ``filter``; DataFrames that are made of it, such as by ``where``, read
    all columns that they have.

    Rows are read with ``mapInArrow``: the JVM spends a third less time on a batch than for a data
    source. On Connect, and for metadata tables and change feeds, ``format("lance_nb")`` is used.
    """
    session = spark or find_session() or start_session()
    settings: Mapping[str, Any] = {
        "columns": None if columns is None else json.dumps(columns),
        STORAGE_OPTIONS: None if storage_options is None else json.dumps(dict(storage_options)),
        "filter": filter,
        **options,
    }
    reader_options = with_one_spelling(
        {name: _text(value) for name, value in settings.items() if value is not None}
    )
    if isinstance(target, LanceDataset):
        reader_options = _pinned(reader_options, target)
        reader_options["path"] = PinnedVersion.of(target).location.opening_uri
    else:
        reader_options["path"] = os.fspath(target)
    if is_connect(session) or not {"table", "readchangefeed"}.isdisjoint(reader_options):
        register_source(session)
        return session.read.format("lance_nb").options(**reader_options).load()
    plan = ReadPlan.of(SourceOptions.of(reader_options))
    from lance_nb.spark.scan_frames import ScanCount, dataframe_of_parts  # needs PySpark

    parts = [ReadPart(plan, ids) for ids in plan.parts(num_cores(session))]
    return dataframe_of_parts(parts, session, plan.size_bytes, ScanCount(plan, session))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pinned(options: dict[str, str], dataset: LanceDataset) -> dict[str, str]:
    """Add the version of an open dataset. Raises InvalidInputError if another one is given."""
    if refs_given := [name for name in _REFS if name in options]:
        raise InvalidInputError(
            f"the dataset is already open at a version: leave out {refs_given[0]!r}"
        )
    pinned = PinnedVersion.of(dataset)
    ref = {"branch": pinned.branch, "version": str(pinned.version)}
    storage_options, bases = pinned.location.storage_options, pinned.allow_bases
    stored = {
        STORAGE_OPTIONS: json.dumps(storage_options) if storage_options else None,
        "allowbases": json.dumps(bases) if bases else None,  # a path may contain commas
    }
    return {key: text for key, text in {**stored, **options, **ref}.items() if text}
