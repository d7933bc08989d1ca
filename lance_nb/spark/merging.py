"""Upserts of large sources or into large datasets.

::

    lance_spark.upsert(ds, changed, on="id")
    counts = (
        lance_spark.merge(ds, changed, on="id")
        .when_matched_update_all("source.price <> target.price")
        .when_not_matched_insert_all()
        .execute(engine="spark", message="prices of today")
    )

``source`` is a DataFrame of Spark's, or anything that ``merge_insert`` takes. What is small enough
goes to every task ("broadcast"); a larger DataFrame is shuffled by key ("shuffle"). A larger source
that is no DataFrame becomes one if there is a session.

Limits: rows are rewritten as a whole, columns alone by ``update_columns``. On Connect, whose
DataFrames do not tell their size, ``form="auto"`` is "shuffle".
Source: ``MergeInsertBuilder`` of pylance 14.0.2; lance_nb.transactions.merge_insert_parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.dataset.merge_insert import MergeClauseBuilder
from lance_nb.dataset.verbs.input_data import reader_of
from lance_nb.dataset.verbs.upserting import with_clause
from lance_nb.errors import InvalidInputError
from lance_nb.spark import journal, shuffle
from lance_nb.spark.frames import is_frame
from lance_nb.spark.new_rows import Destination
from lance_nb.spark.plan import Plan
from lance_nb.spark.progress import PLANNING, Watch
from lance_nb.spark.run import RunOptions, land, replanned, run_tasks
from lance_nb.spark.sessions import find_session
from lance_nb.spark.tasks.merge import SOURCE_BYTES, plan_merge
from lance_nb.spark.types import fitted
from lance_nb.transactions.merge_insert_clauses import MergeClauses
from lance_nb.transactions.merge_insert_plan import MergePlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMS = ("auto", "broadcast", "shuffle")


class MergeRun(MergeClauseBuilder):
    """An upsert under construction: its clauses, then ``execute``. Made by ``merge``."""

    def __init__(
        self, dataset: LanceDataset, source: Any, on: str | Iterable[str] | None, form: str
    ) -> None:
        super().__init__(dataset.lance_schema.tree, on)
        if form not in FORMS:
            raise InvalidInputError(f"form {form!r} is not one of {', '.join(FORMS)}")
        self._dataset = dataset
        self._source = source
        self._form = form
        self._write_mode = "rewrite_rows"
        self._table: pa.Table | None = None
        self.dataset = dataset

    def plan(self, engine: str = "local", spark: SparkSession | None = None) -> Plan:
        """Return the plan that ``execute`` would run there, for ``explain`` and ``run_edits``."""
        frame = self._shuffled(RunOptions(engine, spark))
        return self._planned(self._dataset, frame)

    def _planned(self, base: LanceDataset, frame: DataFrame | None) -> Plan:
        if frame is None:
            return plan_merge(base, self._wanted, self._held())
        return shuffle.plan_shuffled(base, self._wanted, frame)

    def execute(self, *, message: str | None = None, **options: Any) -> dict[str, int]:
        """Merge and commit; return the counts that ``merge_insert`` returns.

        ``dataset`` of this builder is the new version then. Options: ``engine``, ``spark``,
        ``progress``, ``stop``. Raises MergeInsertError (several source rows for one row; a match
        that must not be), SchemaMismatchError, RunCancelledError, CommitConflictError.
        """
        how = RunOptions.of(message, options)
        watch = Watch(how.progress)
        frame = self._shuffled(how)

        def attempt(base: LanceDataset) -> dict[str, int]:
            watch.phase(PLANNING)
            plan = self._planned(base, frame)
            journal.check()
            results = run_tasks(plan, how, watch)
            self.dataset = land(plan, results, how, watch)
            return _counts(results)

        return replanned(self._dataset, attempt)

    @property
    def _wanted(self) -> MergeClauses:
        return with_clause(self._clauses, write_mode=self._write_mode)

    def by_columns(self) -> Self:
        """Write the source's columns anew for whole fragments, and leave rows where they are."""
        self._write_mode, self._form = "rewrite_columns", "broadcast"
        return self

    def _held(self) -> pa.Table:
        """Return the source as a table, read once."""
        if self._table is None:
            if is_frame(self._source):
                self._table = fitted(self._source.toArrow(), self._dataset.schema)
            else:
                self._table = reader_of(self._source, None).read_all()
        return self._table

    def _shuffled(self, how: RunOptions) -> DataFrame | None:
        """Return the DataFrame to shuffle; None for the broadcast form."""
        if self._form == "broadcast":
            return None
        if is_frame(self._source):
            size = shuffle.source_bytes(self._source) if self._form == "auto" else None
            return None if size is not None and size <= SOURCE_BYTES else self._source
        is_small = self._form == "auto" and self._held().nbytes <= SOURCE_BYTES
        session = how.spark if how.spark is not None else find_session()
        if is_small or how.engine == "local" or session is None:
            return None
        return session.createDataFrame(self._held())


def _counts(results: list[MergePlan]) -> dict[str, int]:
    names = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
    return {name: sum(one.stats[name] for one in results) for name in names}


def merge(
    target: Destination, source: Any, on: str | Iterable[str] | None = None, *, form: str = "auto"
) -> MergeRun:
    """Begin an upsert that matches rows by the columns ``on``; its clauses and ``execute`` follow.

    None is the unenforced primary key. Raises ColumnNotFoundError, InvalidInputError.
    """
    dataset = target if isinstance(target, LanceDataset) else open_dataset(target)
    return MergeRun(dataset, source, on, form)


def upsert(
    target: Destination, source: Any, on: str | Iterable[str] | None = None, *,
    form: str = "auto", message: str | None = None, **options: Any,
) -> LanceDataset:  # fmt: skip
    """Update the rows whose key is there, insert the others; return the new version.

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
    """Plan what ``upsert`` does, in the form that fits its source, for ``run_edits``."""
    begun = merge(target, source, on).when_matched_update_all().when_not_matched_insert_all()
    return begun.plan(engine, spark)


def update_columns(
    target: Destination, source: Any, on: str | Iterable[str] | None = None, *,
    message: str | None = None, **options: Any,
) -> LanceDataset:  # fmt: skip
    """Give rows whose key is in ``source`` the values of its columns; return the new version.

    Only these columns are written, for the fragments that have such rows; rows stay where they are,
    and so do indices on other columns. Options and errors as for ``MergeRun.execute``.
    """
    begun = merge(target, source, on).by_columns()
    begun.when_matched_update_all()
    begun.execute(message=message, **options)
    return begun.dataset
