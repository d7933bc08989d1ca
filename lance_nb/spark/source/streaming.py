"""``spark.readStream.format("lance_nb")``, and the change feed as a batch.

Spark keeps the offsets, ``{"version": v}``, in its checkpoint: a restarted query goes on where it
was. A first query without ``startingVersion`` begins with all rows that are there.

Source: ``DataSourceStreamReader`` of PySpark 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lance_nb.spark.source.changes import WHOLE, ChangePart, ChangePlan
from lance_nb.spark.source.options import SourceOptions

_VERSION = "version"


@dataclass(frozen=True)
class ChangePartition(InputPartition):
    """What one task reads, None for nothing."""

    part: ChangePart | None


class LanceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads version after version."""

    def __init__(self, plan: ChangePlan, options: SourceOptions) -> None:
        self._plan = plan
        self._starting = options.starting_version
        self._at_once = options.number("maxversionspertrigger")
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return where a new query begins."""
        if self._starting is None:
            return {_VERSION: WHOLE}
        latest = self._plan.numbers()[-1]
        return {_VERSION: latest if self._starting < 0 else self._starting - 1}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how many versions a batch may have; Spark has no word for it but files."""
        return ReadAllAvailable() if self._at_once is None else ReadMaxFiles(self._at_once)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return how far the next batch reads."""
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
        """Read nothing that is committed from now on."""
        self._last = self._plan.numbers()[-1]

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return what tasks read."""
        return partitions_of(self._plan, start[_VERSION], end[_VERSION])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        yield from rows_of(self._plan, partition)

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing: versions stay whoever has read them."""

    def stop(self) -> None:
        """Do nothing: nothing is held."""


class ChangeReader(DataSourceReader):
    """Reads the change feed after one version, up to another."""

    def __init__(self, plan: ChangePlan, start: int, end: int) -> None:
        self._plan = plan
        self._between = start, end

    @property
    def spark_schema(self) -> StructType:
        """The schema as Spark's type."""
        return from_arrow_schema(self._plan.schema)

    def narrowed(self, schema: StructType) -> ChangeReader:
        """Read only the columns that a schema names."""
        return ChangeReader(self._plan.only(schema.names), *self._between)

    def partitions(self) -> Sequence[InputPartition]:
        """Return what tasks read; at least one, as Spark wants it."""
        return partitions_of(self._plan, *self._between) or [ChangePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        yield from rows_of(self._plan, partition)


def partitions_of(plan: ChangePlan, start: int, end: int) -> list[InputPartition]:
    """Return the parts of some versions as Spark's partitions."""
    found: list[Any] = [ChangePartition(one) for one in plan.parts(start, end)]
    return found


def rows_of(plan: ChangePlan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Read one part; Spark makes up a partition where there is none."""
    if isinstance(partition, ChangePartition) and partition.part is not None:
        yield from plan.batches(partition.part)
