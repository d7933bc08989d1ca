"""``format("lance_nb")``: batches and streams in Spark's Python data source API.

Reading pins the version when the DataFrame is made; every partition opens exactly that version.
Writing returns metadata from the tasks and commits once, in a Python process beside the driver.
``abort`` never deletes files: Spark also calls it after a commit whose reply was lost, and the
files may be part of a version by then.

Streams: Spark stores the offsets, ``{"version": v}``, in its checkpoint, so a restarted query
resumes there. A first query without ``startingVersion`` begins with all existing rows. A batch that
an earlier run committed is not committed again (sink.py); the stream is identified by the query id
in the metadata of its checkpoint, which Spark passes to its tasks.

Not supported: ``pushFilters`` (in PySpark 4.3 a pushed filter leaks into other scans of the same
DataFrame and returns wrong rows; use option ``filter``), save modes other than append and
overwrite, SQL time travel, UPDATE/DELETE/MERGE (use ``lance_nb.spark``).
Source: ``pyspark.sql.datasource`` of PySpark 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.scan import ChangePlan, ChangeRange, MetadataTable, ReadPlan
from lance_nb.spark.types import spark_schema
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.spark.source.sink import SourceWrite
    from lance_nb.writing.staged import Addition

# Set by Spark's StreamExecution for the jobs of a query: the id in the metadata of its checkpoint.
_QUERY_ID = "sql.streaming.queryId"


class LanceSource(DataSource):
    """A Lance dataset, or one of its metadata tables."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "lance_nb"

    _pinned: PlanReader | None = None

    def schema(self) -> StructType:
        """Pin a version and return its schema in the types of Spark.

        Spark pickles this object afterwards, and asks the copy for readers.
        """
        self._pinned = self._planned()
        return self._pinned.spark_schema

    def reader(self, schema: StructType) -> PlanReader:
        """Return the reader; only the columns in ``schema`` are read."""
        return (self._pinned or self._planned()).select_columns(schema)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return the writer."""
        return LanceWriter(self._write(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:  # noqa: N802
        """Return the writer of a stream."""
        return LanceStreamWriter(self._write(schema, overwrite))

    def streamReader(self, schema: StructType) -> LanceStreamReader:  # noqa: N802
        """Return the reader of a stream."""
        options = self._options()
        plan = ChangePlan.of(options).select(schema.names)
        return LanceStreamReader(plan, options)

    def _write(self, schema: StructType, overwrite: bool) -> SourceWrite:
        from lance_nb.spark.source.sink import plan_write  # not needed by reads

        return plan_write(self._options(), schema, overwrite=overwrite)

    def _options(self) -> SourceOptions:
        return SourceOptions.of(dict(self.options))

    def _planned(self) -> PlanReader:
        options = self._options()
        if options.is_set("readchangefeed"):
            return PlanReader(ChangeRange.of(options))
        table = options.get("table")
        if table is None:
            return PlanReader(ReadPlan.of(options))
        return PlanReader(MetadataTable.of(options.open(), table))


class LanceAlias(LanceSource):
    """The data source under the name that other Lance connectors use."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "lance"


@dataclass(frozen=True, slots=True)
class PlannedPartition(InputPartition):
    """What one task reads: a part of a plan."""

    part: Any


class PlanReader(DataSourceReader):
    """Read the parts of a plan: of a version, a metadata table, or a range of the change feed."""

    def __init__(self, plan: ReadPlan | MetadataTable | ChangeRange) -> None:
        self._plan: Any = plan

    @property
    def spark_schema(self) -> StructType:
        """The schema as Spark's type."""
        is_scan = isinstance(self._plan, ReadPlan)  # whose columns keep their Arrow fields
        return spark_schema(self._plan.stored) if is_scan else from_arrow_schema(self._plan.schema)

    def select_columns(self, schema: StructType) -> PlanReader:
        """Return a reader of only the columns in ``schema``."""
        return PlanReader(self._plan.select(schema.names))

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions, at least one."""
        parts = [PlannedPartition(part) for part in self._plan.parts()]
        return parts or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        if isinstance(partition, PlannedPartition):
            yield from self._plan.batches(partition.part)


@dataclass(frozen=True, slots=True)
class WrittenPartition(WriterCommitMessage):
    """The files that one task wrote (None without rows), and the id of its streaming query."""

    addition: Addition | None
    stream: str | None = None


class LanceWriter(DataSourceArrowWriter):
    """Write a DataFrame as one version."""

    def __init__(self, write: SourceWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPartition:
        """Write one partition."""
        written = self._write.rows.write_of_spark(iterator)
        return WrittenPartition(written)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks."""
        self._write.commit(_made(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: the files may be committed, see the module docstring."""


class LanceStreamWriter(DataSourceStreamArrowWriter):
    """Write each batch of a stream as one version."""

    def __init__(self, write: SourceWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPartition:
        """Write one partition of a batch."""
        written = self._write.rows.write_of_spark(iterator)
        task = TaskContext.get()
        return WrittenPartition(written, None if task is None else task.getLocalProperty(_QUERY_ID))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit a batch, unless an earlier run has committed it."""
        sent: Sequence[Any] = messages
        streams = {message.stream for message in sent if message is not None and message.stream}
        self._write.commit_batch(_made(messages), batchId, min(streams, default=None))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: the files may be committed, see the module docstring."""


def _made(messages: Sequence[Any]) -> list[Addition | None]:
    return [message.addition for message in messages if message is not None]


_VERSION = "version"
_WHOLE_DATASET = -1  # the offset before every version: see scan


class LanceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read a stream, version by version."""

    def __init__(self, plan: ChangePlan, options: SourceOptions) -> None:
        self._plan = plan
        self._starting = options.starting_version
        self._at_once = options.number("maxversionspertrigger")
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return the offset at which a new query begins."""
        if self._starting is None:
            return {_VERSION: _WHOLE_DATASET}
        latest = self._plan.numbers()[-1]
        return {_VERSION: latest if self._starting < 0 else self._starting - 1}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the most versions of a batch, as a limit of files: Spark has no other limit."""
        return ReadAllAvailable() if self._at_once is None else ReadMaxFiles(self._at_once)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return the offset at which the next batch ends."""
        numbers = self._plan.numbers()
        latest = numbers[-1] if self._last is None else min(numbers[-1], self._last)
        begin = start[_VERSION]
        if begin >= 0 and isinstance(limit, ReadMaxFiles):
            latest = min(latest, begin + limit.max_files)
        return {_VERSION: max(latest, begin)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """Return the newest version."""
        return {_VERSION: self._plan.numbers()[-1]}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Ignore versions that are committed from now on."""
        self._last = self._plan.numbers()[-1]

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the partitions of a batch."""
        parts = self._plan.parts(start[_VERSION], end[_VERSION])
        return [PlannedPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        if isinstance(partition, PlannedPartition):  # Spark passes another if there are none
            yield from self._plan.batches(partition.part)

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing: versions are kept until cleanup."""

    def stop(self) -> None:
        """Do nothing: no resources are held."""
