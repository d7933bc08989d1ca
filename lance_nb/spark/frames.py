"""Write a DataFrame: every partition becomes fragments, all of them one version.

A partition is written where it is computed, by ``mapInArrow``; only the metadata of its fragments
comes back. The commit is made in this process.

Limits: the fragments are as many as the partitions have files, at least one each; repartition a
DataFrame of thousands of small partitions first. A shuffle before it may leave fewer partitions
than expected (adaptive execution joins small ones).
Source: lance_nb.transactions.fragment_writer, PySpark's ``DataFrame.mapInArrow``.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.session import open_session
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.spark.types import from_spark
from lance_nb.transactions.fragment_writer import WriteOptions, write_fragments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA = pa.schema([("fragments", pa.binary())])
_DDL = "fragments binary"


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows of Spark's go: a folder, the schema with field ids, how files are written."""

    uri: str
    branch: str | None
    storage_options: tuple[tuple[str, Any], ...]
    schema: Schema
    options: WriteOptions

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[Fragment]:
        """Write the rows of one partition; no rows, no fragments."""
        rows = (one for one in batches if one.num_rows)
        first = next(rows, None)
        if first is None:
            return []
        arrow = self.schema.to_arrow()
        session = open_session(self.uri, dict(self.storage_options) or None)
        reader = pa.RecordBatchReader.from_batches(arrow, self._cast(first, rows, arrow))
        home = session.home(self.branch)
        return write_fragments(reader, self.schema, home, self.options)

    @staticmethod
    def _cast(
        first: pa.RecordBatch, rows: Iterator[pa.RecordBatch], arrow: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        yield from_spark(first, arrow)
        for batch in rows:
            yield from_spark(batch, arrow)


@dataclass(frozen=True, slots=True)
class WritePartition:
    """What a Python worker runs for a partition."""

    target: Target

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the partition and return the metadata of its fragments."""
        made = self.target.write(batches)
        yield pa.RecordBatch.from_pydict({"fragments": [pickle.dumps(made)]}, _SCHEMA)


def write_partitions(frame: DataFrame, target: Target) -> list[Fragment]:
    """Write all partitions of a DataFrame and return their fragments, in their order."""
    rows = frame.mapInArrow(WritePartition(target), _DDL).collect()
    return [one for row in rows for one in pickle.loads(bytes(row["fragments"]))]  # noqa: S301


def is_frame(value: object) -> bool:
    """Whether a value is a DataFrame of Spark's; told without importing PySpark."""
    return any(
        one.__module__.startswith("pyspark.sql") and one.__name__ == "DataFrame"
        for one in type(value).__mro__
    )


def target_of(dataset: LanceDataset, options: WriteOptions) -> Target:
    """Return where rows for the end of a dataset go."""
    session, snapshot = dataset.opened
    stored = tuple(sorted((session.storage_options or {}).items()))
    return Target(dataset.uri, snapshot.branch, stored, snapshot.manifest.schema, options)
