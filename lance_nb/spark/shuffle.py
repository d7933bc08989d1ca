"""Upserts by keys: source and target are shuffled by a hash of the key, a task merges one bucket.

Only key columns and addresses of the target pass through Spark; the rows that change are read and
written by the tasks. Nobody else sees the keys of a bucket, so that its new rows are written there
as well. Equal keys of the source meet in one bucket, where duplicates are refused.

Limits: a bucket is in memory: the source's rows and the target's keys in it. Keys are compared in
the types of the dataset; a key of nanoseconds is refused, because Spark has none, and one that it
cannot hash (a map) is refused by Spark.
Source: PySpark 4.3 (``PandasCogroupedOps.applyInArrow``); lance_nb.transactions.merge_insert_parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import LanceError, NotSupportedError, StorageError
from lance_nb.spark.engines.job import RowCounter
from lance_nb.spark.frames import MADE_DDL, collected, made_table
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Plan, commit_edits
from lance_nb.spark.progress import Watch
from lance_nb.spark.registration import read
from lance_nb.spark.run import RunOptions
from lance_nb.spark.sessions import is_connect, num_cores
from lance_nb.spark.tasks.merge import Clauses, check, file_options
from lance_nb.spark.types import fitted, fitted_schema
from lance_nb.table.projection import ROW_ADDRESS
from lance_nb.table.scan_plan import live_counts
from lance_nb.transactions.merge_insert_clauses import MergeClauses
from lance_nb.transactions.merge_insert_parts import plan_bucket, united, windows_of, without_rows
from lance_nb.transactions.merge_insert_plan import MergePlan
from lance_nb.transactions.merge_insert_search import typed
from lance_nb.transactions.merge_insert_source import SourceRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKET = "__lance_nb_bucket"
# What a bucket has at most in memory, about: rows of the target, bytes of the source.
BUCKET_ROWS = 2_000_000
BUCKET_BYTES = 64 * 1024**2
_LEAST_ROWS = 50_000  # of the target in a bucket: each writes files of its own
_KNOWN_BYTES = 1 << 50  # Spark says 2**63 - 1 of what it knows nothing about


@dataclass(frozen=True, slots=True)
class MergeBucket:
    """What a Python worker runs for a bucket: rows of the source, keys of the target."""

    place: Place
    clauses: Clauses
    counter: RowCounter

    def __call__(self, source: pa.Table, target: pa.Table) -> pa.Table:
        """Merge the bucket; an error of ours is sent back as a value."""
        try:
            found: Any = self.merged(source, target)
        except StorageError:
            raise  # may pass by itself: Spark tries the task again
        except LanceError as error:
            found = error
        return made_table(found)

    def merged(self, source: pa.Table, target: pa.Table) -> MergePlan:
        """Write the rows of the bucket that change or are new."""
        _, snapshot = self.place.open()
        clauses = self.clauses.bound(snapshot)
        addresses = target[ROW_ADDRESS].cast(pa.int64()).to_numpy().astype(np.uint64)
        keys = typed(target.select(list(clauses.on)), snapshot.manifest.schema)
        windows = list(windows_of(snapshot, addresses, keys))
        names = [name for name in source.column_names if name != BUCKET]
        rows = fitted(source.select(names), snapshot.manifest.schema.to_arrow())
        with SourceRows(rows.to_reader(), None) as given:
            plan = plan_bucket(snapshot, given, clauses, file_options(snapshot), windows)
        self.counter.add(plan.num_updated_rows + plan.num_inserted_rows + plan.num_deleted_rows)
        return plan


def plan_shuffled(dataset: LanceDataset, clauses: MergeClauses, source: DataFrame) -> Plan:
    """Plan an upsert of a DataFrame that is shuffled. Raises as ``merge_insert`` does."""
    _, snapshot = dataset.opened
    arrow = snapshot.manifest.schema.to_arrow()
    check(snapshot, clauses, fitted_schema(source.columns, arrow))
    for field in fitted_schema(clauses.on, arrow):
        _check_key(field)
    place, detail = Place.of(dataset), f"a DataFrame on {', '.join(clauses.on)}"

    def gather(options: RunOptions, watch: Watch) -> list[MergePlan]:
        return merge_buckets(place, clauses, source, options, watch)

    return Plan("merge_insert", detail, place, (), commit_edits, gather, is_empty_too=True)


def _check_key(field: pa.Field) -> None:
    """Refuse keys that Spark cannot hold. Raises NotSupportedError."""
    kind = field.type
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        raise NotSupportedError(
            f"key {field.name!r}: Spark's times have no nanoseconds, so that rows cannot be "
            "matched there; form='broadcast' matches them here"
        )


def merge_buckets(
    place: Place, clauses: MergeClauses, source: DataFrame, options: RunOptions, watch: Watch
) -> list[MergePlan]:
    """Shuffle both sides and merge all buckets; return the one plan of all."""
    spark = source.sparkSession
    on = list(clauses.on)
    target = _target(spark, place, on)
    counter = RowCounter(spark)
    num_rows = int(live_counts(place.open()[1]).sum())
    num_buckets = bucket_count(num_rows, source_bytes(source), _partitions(spark), num_cores(spark))
    left = _in_buckets(_typed(source, target, on), on, num_buckets)
    right = _in_buckets(target, on, num_buckets)
    merge = MergeBucket(place, Clauses.of(clauses), counter)
    both: Any = left.groupBy(BUCKET).cogroup(right.groupBy(BUCKET))

    def merged(source: pa.Table, target: pa.Table) -> pa.Table:  # Spark wants a plain function
        return merge(source, target)

    job = both.applyInArrow(merged, MADE_DDL)
    found = collected(job, counter, options, watch)
    for one in found:
        if isinstance(one, LanceError):
            raise one
    _, snapshot = place.open()
    made = united(found) if found else without_rows(snapshot, clauses)
    return [replace(made, logs=clauses.logs)]


def _target(spark: SparkSession, place: Place, on: list[str]) -> DataFrame:
    """Read the key columns and addresses of the pinned version."""
    return read(
        place.uri, spark=spark, columns=on, withRowAddress=True, version=place.version,
        branch=place.branch, storageOptions=place.options_text,
    )  # fmt: skip


def _typed(source: DataFrame, target: DataFrame, on: list[str]) -> DataFrame:
    """Cast the source's key to the target's types, so that equal keys have equal hashes."""
    types = {one.name: one.dataType for one in target.schema.fields}
    return source.withColumns({name: source[name].cast(types[name]) for name in on})


def _in_buckets(frame: DataFrame, on: list[str], num_buckets: int) -> DataFrame:
    from pyspark.sql import functions as of

    number = of.pmod(of.hash(*(frame[name] for name in on)), of.lit(num_buckets))
    return frame.withColumn(BUCKET, number)


def _partitions(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


def bucket_count(num_rows: int, num_bytes: int | None, num_partitions: int, num_cores: int) -> int:
    """Return how many buckets keep memory bounded and all cores busy.

    ``num_rows`` are those of the target, ``num_bytes`` of the source; what Spark expects of a join
    is often far too much, so that these alone never make more than ``num_partitions``. Each bucket
    with rows that change becomes a fragment, so there are no more than that.
    """
    for_source = num_partitions
    if num_bytes is not None:
        for_source = min(num_partitions, -(-num_bytes // BUCKET_BYTES))
    for_cores = min(num_cores, num_partitions, 1 + num_rows // _LEAST_ROWS)
    return max(-(-num_rows // BUCKET_ROWS), for_source, for_cores, 1)


def source_bytes(frame: Any) -> int | None:
    """Return how many bytes Spark expects of a DataFrame; None where it does not tell."""
    if is_connect(frame.sparkSession):
        return None
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - nothing public tells
    found = int(str(plan.stats().sizeInBytes()))
    return found if found < _KNOWN_BYTES else None
