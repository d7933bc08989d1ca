"""Upsert large sources, or into large datasets.

::

    lance_spark.upsert(ds, changed, on="id")
    counts = (
        lance_spark.merge(ds, changed, on="id")
        .when_matched_update_all("source.price <> target.price")
        .when_not_matched_insert_all()
        .execute(engine="spark", message="prices of today")
    )

``source`` is a Spark DataFrame, or anything that ``merge_insert`` takes. There are two join
strategies (argument ``form``):

==========  ====================================================================================
broadcast   for sources of up to ``SOURCE_BYTES``: every task gets the whole source and matches
            it with some fragments of the target; the driver inserts unmatched source rows
shuffle     source rows, and keys and row addresses of the target, are shuffled by a hash of the
            key; a task merges one bucket and inserts the unmatched rows of that bucket
==========  ====================================================================================

A large source that is not a DataFrame becomes one if there is a session.

Limits: matched rows are rewritten as a whole; ``update_columns`` rewrites single columns. A Spark
Connect DataFrame does not report its size, so ``form="auto"`` means "shuffle" there. A bucket is
held in memory: its source rows and its target keys. Keys are compared in the types of the dataset.
Keys with nanoseconds are refused because Spark has none; keys that cannot be hashed (maps) are
refused by Spark.
Source: ``MergeInsertBuilder`` of pylance 14.0.2; ``PandasCogroupedOps.applyInArrow`` of PySpark
4.3; lance_nb.writing.upserting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.dataset.merge_insert import MergeClauseBuilder
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.spark.background_jobs import ProgressReporter
from lance_nb.spark.dataframes import collect_results, is_dataframe, read
from lance_nb.spark.engine import RESULT_DDL, outcome_of, result_batch
from lance_nb.spark.plan import (
    TASK_BYTES,
    PinnedVersion,
    Plan,
    commit_edits,
    fragment_groups,
    select_fragments,
)
from lance_nb.spark.row_writer import Destination
from lance_nb.spark.run import RunOptions, run_with_results
from lance_nb.spark.sessions import find_session, is_connect, no_pandas_warning, num_cores
from lance_nb.spark.spark_engine import RowCounter
from lance_nb.spark.types import cast_to_dataset, dataset_fields
from lance_nb.table.projection import ROW_ADDRESS
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass
from lance_nb.writing.input_data import reader_of
from lance_nb.writing.staged import MergePlan
from lance_nb.writing.upsert_join import typed
from lance_nb.writing.upsert_source import MergeClauses, SourceRows, check_clauses
from lance_nb.writing.upserting import (
    MergePart,
    plan_bucket,
    plan_fragments,
    plan_inserts,
    united_plans,
    unmatched_filter,
    windows_of,
    without_rows,
)
from lance_nb.writing.writing import own_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMS = ("auto", "broadcast", "shuffle")


class MergeRun(MergeClauseBuilder):
    """A builder of an upsert: add clauses, then ``execute``. Made by ``merge``."""

    def __init__(
        self, dataset: LanceDataset, source: Any, on: str | Iterable[str] | None, form: str
    ) -> None:
        super().__init__(dataset.lance_schema.tree, on)
        if form not in FORMS:
            raise InvalidInputError(f"form {form!r} is not one of {', '.join(FORMS)}")
        self._dataset = dataset
        self._source = source
        self._form = form
        self._clauses = replace(self._clauses, write_mode="rewrite_rows")
        self._table: pa.Table | None = None
        self.dataset = dataset

    def plan(self, engine: str = "local", spark: SparkSession | None = None) -> Plan:
        """Return the plan of ``execute``, for ``explain`` and ``run_edits``."""
        frame = self._source_to_shuffle(RunOptions(engine, spark))
        return self._plan(self._dataset, frame)

    def _plan(self, base: LanceDataset, frame: DataFrame | None) -> Plan:
        if frame is None:
            return plan_merge(base, self._clauses, self._source_table())
        return plan_shuffled(base, self._clauses, frame)

    def execute(self, *, message: str | None = None, **options: Any) -> dict[str, int]:
        """Merge and commit; return the counts that ``merge_insert`` returns.

        Afterwards ``dataset`` of this builder is the new version. Options: ``engine``, ``spark``,
        ``progress``, ``stop``. Raises MergeInsertError (several source rows match one row; a
        match is not allowed), SchemaMismatchError, RunCancelledError, CommitConflictError.
        """
        run_options = RunOptions.of(message, options)
        frame = self._source_to_shuffle(run_options)
        self.dataset, plans = run_with_results(
            self._dataset, lambda base: self._plan(base, frame), run_options
        )
        names = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
        return {name: sum(plan.stats[name] for plan in plans) for name in names}

    def rewriting_columns(self) -> Self:
        """Rewrite the columns of the source, and leave rows in their fragments."""
        self._clauses = replace(self._clauses, write_mode="rewrite_columns")
        self._form = "broadcast"
        return self

    def _source_table(self) -> pa.Table:
        """Read the source into a table, once."""
        if self._table is None:
            if is_dataframe(self._source):
                with no_pandas_warning():
                    table = self._source.toArrow()
                self._table = cast_to_dataset(table, self._dataset.schema)
            else:
                self._table = reader_of(self._source, None).read_all()
        return self._table

    def _source_to_shuffle(self, run_options: RunOptions) -> DataFrame | None:
        """Return the DataFrame to shuffle; None for a broadcast join."""
        if self._form == "broadcast":
            return None
        if is_dataframe(self._source):
            size = source_bytes(self._source) if self._form == "auto" else None
            return None if size is not None and size <= SOURCE_BYTES else self._source
        is_small = self._form == "auto" and self._source_table().nbytes <= SOURCE_BYTES
        session = run_options.spark if run_options.spark is not None else find_session()
        if is_small or run_options.engine == "local" or session is None:
            return None
        with no_pandas_warning():
            return session.createDataFrame(self._source_table())


def merge(
    target: Destination, source: Any, on: str | Iterable[str] | None = None, *, form: str = "auto"
) -> MergeRun:
    """Start an upsert that matches rows by the columns ``on``; add clauses and ``execute``.

    ``on=None`` is the unenforced primary key. Raises ColumnNotFoundError, InvalidInputError.
    """
    dataset = target if isinstance(target, LanceDataset) else open_dataset(target)
    return MergeRun(dataset, source, on, form)


def upsert(
    target: Destination, source: Any, on: str | Iterable[str] | None = None, *,
    form: str = "auto", message: str | None = None, **options: Any,
) -> LanceDataset:  # fmt: skip
    """Update the rows whose key exists, insert the others; return the new version.

    Options and errors as for ``MergeRun.execute``.
    """
    begun = merge(target, source, on, form=form)
    begun.when_matched_update_all().when_not_matched_insert_all()
    begun.execute(message=message, **options)
    return begun.dataset


def plan_upsert(
    target: Destination, source: Any, on: str | Iterable[str] | None = None, *,
    engine: str = "auto", spark: SparkSession | None = None,
) -> Plan:  # fmt: skip
    """Plan an ``upsert``, for ``explain`` and ``run_edits``."""
    begun = merge(target, source, on).when_matched_update_all().when_not_matched_insert_all()
    return begun.plan(engine, spark)


def update_columns(
    target: Destination, source: Any, on: str | Iterable[str] | None = None, *,
    message: str | None = None, **options: Any,
) -> LanceDataset:  # fmt: skip
    """Update single columns of the rows whose key is in ``source``; return the new version.

    Only these columns are written, for the fragments with matching rows. Rows keep their addresses,
    and indices on other columns stay valid. Options and errors as for ``MergeRun.execute``.
    """
    begun = merge(target, source, on).rewriting_columns()
    begun.when_matched_update_all()
    begun.execute(message=message, **options)
    return begun.dataset


SOURCE_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class MergeClauseText:
    """The clauses of an upsert as a value that can be pickled: its filter is SQL text."""

    clauses: MergeClauses
    unmatched_filter: str | None

    @classmethod
    def of(cls, clauses: MergeClauses) -> MergeClauseText:
        """Convert clauses. Raises InvalidInputError for a filter that is not SQL text."""
        unmatched = clauses.unmatched_filter
        if unmatched is not None and unmatched.expression is None:
            raise InvalidInputError(
                "the filter of when_not_matched_by_source_delete must be SQL text here, because "
                "pyarrow expressions cannot be sent to other processes"
            )
        return cls(
            replace(clauses, unmatched_filter=None), None if unmatched is None else unmatched.text
        )

    def bound(self, snapshot: Snapshot) -> MergeClauses:
        """Return the clauses bound to the schema of a version."""
        if self.unmatched_filter is None:
            return self.clauses
        condition = unmatched_filter(snapshot.manifest.schema, self.unmatched_filter)
        return replace(self.clauses, unmatched_filter=condition)


@dataclass(frozen=True, slots=True)
class MergeFragments:
    """Match the source with the rows of some fragments, and rewrite matched rows."""

    pinned: PinnedVersion
    fragment_ids: tuple[int, ...]
    clauses: MergeClauseText
    source: bytes
    size_bytes: int

    def run(self) -> MergePart:
        """Write the updated rows."""
        _, snapshot = self.pinned.open()
        with read_source(self.source) as rows:
            return plan_fragments(
                snapshot,
                rows,
                self.clauses.bound(snapshot),
                options=own_options(snapshot),
                fragments=select_fragments(snapshot, self.fragment_ids),
            )


@dataclass(frozen=True, slots=True)
class InsertUnmatched:
    """Insert the source rows that no task has matched, and unite the results."""

    clauses: MergeClauseText
    source: bytes

    def __call__(self, plan: Plan, results: Sequence[Any]) -> list[MergePlan]:
        """Return the united plan, as a list of one."""
        _, snapshot = plan.pinned.open()
        parts: list[MergePart] = list(results)
        clauses = self.clauses.bound(snapshot)
        with read_source(self.source) as rows:
            inserts = plan_inserts(
                snapshot, rows, clauses, options=own_options(snapshot), parts=parts
            )
        united = united_plans([*(part.plan for part in parts), inserts])
        return [replace(united, logs=clauses.logs)]


def plan_merge(
    dataset: LanceDataset, clauses: MergeClauses, source: pa.Table, *, task_bytes: int = TASK_BYTES
) -> Plan:
    """Plan an upsert with a broadcast join. Raises as ``merge_insert`` does."""
    _, snapshot = dataset.opened
    check(snapshot, clauses, source.schema)
    pinned, clause_text, payload = (
        PinnedVersion.of(dataset),
        MergeClauseText.of(clauses),
        ipc_bytes(source),
    )
    weight = len(payload)
    tasks = tuple(
        MergeFragments(pinned, ids, clause_text, source=payload, size_bytes=size + weight)
        for ids, size in fragment_groups(snapshot, task_bytes)
    )
    detail = f"{source.num_rows:,} rows on {', '.join(clauses.on)}"
    inserts = InsertUnmatched(clause_text, payload)
    return Plan(
        "merge_insert",
        detail,
        pinned,
        tasks=tasks,
        finish=commit_edits,
        finalize=inserts,
        commits_without_results=True,
    )


def check(snapshot: Snapshot, clauses: MergeClauses, source: pa.Schema) -> None:
    """Check an upsert before anything is read. Raises as ``merge_insert`` does."""
    if clauses.does_nothing:
        raise InvalidInputError(
            "the merge has no clause: add when_matched_update_all(), when_not_matched_insert_all() "
            "or another clause"
        )
    check_clauses(clauses, source, snapshot.manifest.schema)


def ipc_bytes(table: pa.Table) -> bytes:
    """Serialize a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def read_source(payload: bytes) -> SourceRows:
    """Read an Arrow IPC stream without copying it."""
    return SourceRows(pa.ipc.open_stream(pa.py_buffer(payload)), None)


BUCKET = "__lance_nb_bucket"
# Approximate limits of a bucket in memory: rows of the target, bytes of the source.
BUCKET_ROWS = 2_000_000
BUCKET_BYTES = 64 * 1024**2
_LEAST_ROWS = 50_000  # of the target in a bucket, because each writes its own files
_KNOWN_BYTES = 1 << 50  # Spark estimates 2**63 - 1 if it has no statistics


@dataclass(frozen=True, slots=True)
class MergeBucket:
    """The function that a Python worker runs for a bucket: source rows and target keys."""

    pinned: PinnedVersion
    clauses: MergeClauseText
    counter: RowCounter

    def __call__(self, source: pa.Table, target: pa.Table) -> pa.Table:
        """Merge the bucket; return a LanceError as a value."""
        result = outcome_of(lambda: self.merged(source, target))
        return pa.Table.from_batches([result_batch(result)])

    def merged(self, source: pa.Table, target: pa.Table) -> MergePlan:
        """Write the updated and the new rows of the bucket."""
        _, snapshot = self.pinned.open()
        clauses = self.clauses.bound(snapshot)
        addresses = target[ROW_ADDRESS].cast(pa.int64()).to_numpy().astype(np.uint64)
        keys = typed(target.select(list(clauses.on)), snapshot.manifest.schema)
        windows = list(windows_of(snapshot, addresses, keys))
        names = [name for name in source.column_names if name != BUCKET]
        rows = cast_to_dataset(source.select(names), snapshot.manifest.schema.to_arrow())
        with SourceRows(rows.to_reader(), None) as source_rows:
            plan = plan_bucket(
                snapshot, source_rows, clauses, options=own_options(snapshot), windows=windows
            )
        self.counter.add(plan.num_updated_rows + plan.num_inserted_rows + plan.num_deleted_rows)
        return plan


def plan_shuffled(dataset: LanceDataset, clauses: MergeClauses, source: DataFrame) -> Plan:
    """Plan an upsert with a shuffle join. Raises as ``merge_insert`` does."""
    _, snapshot = dataset.opened
    arrow = snapshot.manifest.schema.to_arrow()
    check(snapshot, clauses, dataset_fields(source.columns, arrow))
    for field in dataset_fields(clauses.on, arrow):
        _check_key(field)
    pinned, detail = PinnedVersion.of(dataset), f"a DataFrame on {', '.join(clauses.on)}"

    def run_job(options: RunOptions, watch: ProgressReporter) -> list[MergePlan]:
        return merge_buckets(pinned, clauses, source, options=options, watch=watch)

    return Plan(
        "merge_insert",
        detail,
        pinned,
        tasks=(),
        finish=commit_edits,
        run_job=run_job,
        commits_without_results=True,
    )


def _check_key(field: pa.Field) -> None:
    """Refuse key types that Spark does not have. Raises NotSupportedError."""
    kind = field.type
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        raise NotSupportedError(
            f"key {field.name!r} has nanoseconds, which Spark does not support; use "
            "form='broadcast'"
        )


def merge_buckets(
    pinned: PinnedVersion,
    clauses: MergeClauses,
    source: DataFrame,
    options: RunOptions,
    watch: ProgressReporter,
) -> list[MergePlan]:
    """Shuffle source and target keys, merge all buckets, unite the results."""
    spark = source.sparkSession
    on = list(clauses.on)
    target = _target(spark, pinned, on)
    counter = RowCounter(spark)
    num_rows = int(live_counts(pinned.open()[1]).sum())
    num_buckets = bucket_count(num_rows, source_bytes(source), _partitions(spark), num_cores(spark))
    left = _in_buckets(_typed(source, target, on), on, num_buckets)
    right = _in_buckets(target, on, num_buckets)
    merge = MergeBucket(pinned, MergeClauseText.of(clauses), counter)
    pairs: Any = left.groupBy(BUCKET).cogroup(right.groupBy(BUCKET))

    def merged(source: pa.Table, target: pa.Table) -> pa.Table:  # PySpark requires a plain function
        return merge(source, target)

    with no_pandas_warning():
        job = pairs.applyInArrow(merged, RESULT_DDL)
    plans = collect_results(job, counter, options, watch)
    _, snapshot = pinned.open()
    united = united_plans(plans) if plans else without_rows(snapshot, clauses)
    return [replace(united, logs=clauses.logs)]


def _target(spark: SparkSession, pinned: PinnedVersion, on: list[str]) -> DataFrame:
    """Read the key columns and row addresses of the pinned version."""
    return read(
        pinned.location.opening_uri, spark=spark, columns=on, withRowAddress=True,
        version=pinned.version, branch=pinned.branch,
        storage_options=pinned.location.storage_options,
    )  # fmt: skip


def _typed(source: DataFrame, target: DataFrame, on: list[str]) -> DataFrame:
    """Cast the key of the source to the types of the target, so that equal keys hash equally."""
    types = {field.name: field.dataType for field in target.schema.fields}
    return source.withColumns({name: source[name].cast(types[name]) for name in on})


def _in_buckets(frame: DataFrame, on: list[str], num_buckets: int) -> DataFrame:
    from pyspark.sql import functions as of

    number = of.pmod(of.hash(*(frame[name] for name in on)), of.lit(num_buckets))
    return frame.withColumn(BUCKET, number)


def _partitions(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


def bucket_count(num_rows: int, num_bytes: int | None, num_partitions: int, num_cores: int) -> int:
    """Return the number of buckets that bounds memory and uses all cores.

    ``num_rows`` is of the target, ``num_bytes`` of the source. Spark often overestimates the bytes
    of a join, so they make no more than ``num_partitions`` buckets. Each bucket with updated rows
    becomes a fragment, so there are no more buckets than needed.
    """
    for_source = num_partitions
    if num_bytes is not None:
        for_source = min(num_partitions, -(-num_bytes // BUCKET_BYTES))
    for_cores = min(num_cores, num_partitions, 1 + num_rows // _LEAST_ROWS)
    return max(-(-num_rows // BUCKET_ROWS), for_source, for_cores, 1)


def source_bytes(frame: Any) -> int | None:
    """Return Spark's estimate of the bytes of a DataFrame; None if there is none."""
    if is_connect(frame.sparkSession):
        return None
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - there is no public API
    num_bytes = int(str(plan.stats().sizeInBytes()))
    return num_bytes if num_bytes < _KNOWN_BYTES else None
