"""``format("lance_nb")``: batches and streams, read and written, in Spark's Python API.

Reading pins the version when the DataFrame is made; every partition opens exactly that one. Writing
returns metadata from the tasks and commits once, in a Python process beside the driver. ``abort``
never deletes: Spark calls it after a commit that failed for whatever reason, a lost answer
included, and the files may be part of a version by then.

A batch of a stream that an earlier run committed is not committed again: see ``writing``. Which
stream it is, Spark tells its tasks: the id in the metadata of the query's checkpoint.

Not supported: ``pushFilters`` (in PySpark 4.3 a pushed filter leaks into other scans of the same
DataFrame: wrong results; use option ``filter``), save modes other than append and overwrite, SQL
time travel, UPDATE/DELETE/MERGE (use ``lance_nb.spark``).
Source: ``pyspark.sql.datasource`` of PySpark 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lance_nb.spark import source
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.rows import ReadPlan, metadata_table
from lance_nb.spark.types import readable_schema, to_spark

if TYPE_CHECKING:
    from lance_nb.spark.source.streaming import ChangeReader, LanceStreamReader
    from lance_nb.spark.source.writing import SourceWrite
    from lance_nb.transactions.staged import Addition


# What Spark's StreamExecution sets for the jobs of a query: the id in its checkpoint's metadata.
_QUERY_ID = "sql.streaming.queryId"


class LanceSource(DataSource):
    """A Lance dataset, or one of its metadata tables."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "lance_nb"

    _pinned: LanceReader | TableReader | ChangeReader | None = None

    def schema(self) -> StructType:
        """Pin a version and return its schema as Spark sees it.

        Spark keeps this object as it is then, and asks it for readers.
        """
        self._pinned = self._planned()
        return self._pinned.spark_schema

    def reader(self, schema: StructType) -> LanceReader | TableReader | ChangeReader:
        """Return the reader; columns that a user's schema leaves out are not read."""
        return (self._pinned or self._planned()).narrowed(schema)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return the writer."""
        return LanceWriter(self._write(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:  # noqa: N802
        """Return the sink of a stream."""
        return LanceStreamWriter(self._write(schema, overwrite))

    def streamReader(self, schema: StructType) -> LanceStreamReader:  # noqa: N802
        """Return the source of a stream."""
        options = self._options()
        plan = source.changes.ChangePlan.of(options).only(schema.names)
        return source.streaming.LanceStreamReader(plan, options)

    def _write(self, schema: StructType, overwrite: bool) -> SourceWrite:
        return source.writing.plan_write(self._options(), schema, overwrite=overwrite)

    def _options(self) -> SourceOptions:
        return SourceOptions.of(dict(self.options))

    def _planned(self) -> LanceReader | TableReader | ChangeReader:
        options = self._options()
        if options.is_set("readchangefeed"):
            plan = source.changes.ChangePlan.of(options)
            start = options.starting_version or 1
            end = options.number("endingversion") or plan.place.version
            return source.streaming.ChangeReader(plan, start - 1 if start > 0 else end, end)
        table = options.get("table")
        if table is None:
            return LanceReader(ReadPlan.of(options))
        found = metadata_table(options.open(), table)
        schema = readable_schema(found.schema)
        batches = [to_spark(one, schema) for one in found.combine_chunks().to_batches()]
        return TableReader(pa.Table.from_batches(batches, schema))


class LanceAlias(LanceSource):
    """The same under the name that other writers of Lance use."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "lance"


@dataclass(frozen=True)
class FragmentsPartition(InputPartition):
    """The fragments that one task reads."""

    fragment_ids: tuple[int, ...]


class LanceReader(DataSourceReader):
    """Reads the fragments of a pinned version."""

    def __init__(self, plan: ReadPlan) -> None:
        self._plan = plan

    @property
    def spark_schema(self) -> StructType:
        """The schema as Spark's type."""
        return from_arrow_schema(self._plan.schema)

    def narrowed(self, schema: StructType) -> LanceReader:
        """Read only the columns that a schema names."""
        return LanceReader(self._plan.only(schema.names))

    def partitions(self) -> Sequence[InputPartition]:
        """Cut the version into parts; at least one, as Spark wants it."""
        return [FragmentsPartition(ids) for ids in self._plan.parts()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        if isinstance(partition, FragmentsPartition):
            yield from self._plan.batches(partition.fragment_ids)


class TableReader(DataSourceReader):
    """Reads a table that is there already."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def spark_schema(self) -> StructType:
        """The schema as Spark's type."""
        return from_arrow_schema(self._table.schema)

    def narrowed(self, schema: StructType) -> TableReader:
        """Read only the columns that a schema names."""
        return TableReader(self._table.select(schema.names))

    def partitions(self) -> Sequence[InputPartition]:
        """Return the one part."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read it."""
        yield from self._table.to_batches()


@dataclass
class WrittenPartition(WriterCommitMessage):
    """What one task wrote, None for a partition without rows; the id of the query it ran for."""

    made: Addition | None
    stream: str | None = None


class LanceWriter(DataSourceArrowWriter):
    """Writes a DataFrame as one version."""

    def __init__(self, write: SourceWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPartition:
        """Write one partition."""
        made = self._write.rows.write_of_spark(iterator)
        return WrittenPartition(made)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote."""
        self._write.commit(_made(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete nothing: see the module."""


class LanceStreamWriter(DataSourceStreamArrowWriter):
    """Writes every batch of a stream as one version."""

    def __init__(self, write: SourceWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPartition:
        """Write one partition of a batch."""
        made = self._write.rows.write_of_spark(iterator)
        task = TaskContext.get()
        return WrittenPartition(made, None if task is None else task.getLocalProperty(_QUERY_ID))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit a batch, unless an earlier run has."""
        told: Sequence[Any] = messages
        streams = {one.stream for one in told if one is not None and one.stream}
        self._write.commit_batch(_made(messages), batchId, min(streams, default=None))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Delete nothing: see the module."""


def _made(messages: Sequence[Any]) -> list[Addition | None]:
    return [message.made for message in messages if message is not None]
