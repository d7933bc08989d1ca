"""``ds.merge_insert(on)``: upserts, and everything else that a join by key can do, in one commit.

    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

Source: ``LanceDataset.merge_insert`` and ``MergeInsertBuilder`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa

from lance_nb.errors import ArgumentError, InvalidInputError, MergeInsertError

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.result_types import ExecuteResult
    from lance_nb.format.schema import Schema
    from lance_nb.transactions.transaction import Transaction

_RETRIES = 10
_RETRY_TIMEOUT = timedelta(seconds=30)
Progress = Callable[[int, int], object]


class MergeClauseBuilder:
    """The clauses of an upsert under construction; each returns the builder itself."""

    def __init__(self, schema: Schema, on: str | Iterable[str] | None) -> None:
        from lance_nb.writing import upserting

        self._schema = schema
        self._clauses = upserting.start(schema, on)

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Give matched rows the source's values; columns that it does not have keep theirs.

        Args:
            condition: SQL over ``source.column`` and ``target.column``; a matched row that does not
                pass stays as it is.

        Raises PredicateError.

        Examples:
            >>> values = pa.table({"id": [3, 4], "label": ["x", "y"]})
            >>> upsert = ds.merge_insert("id").when_matched_update_all("source.label = 'x'")
            >>> upsert.execute(values)["num_updated_rows"]
            1
        """
        from lance_nb.writing.upsert_source import WhenMatched

        return self._with(matched=WhenMatched.UPDATE, condition=condition)

    def when_matched_delete(self) -> Self:
        """Delete matched rows.

        Examples:
            >>> upsert = ds.merge_insert("id").when_matched_delete()
            >>> upsert.execute(pa.table({"id": [3, 99]}))["num_deleted_rows"]
            1
        """
        from lance_nb.writing.upsert_source import WhenMatched

        return self._with(matched=WhenMatched.DELETE, condition=None)

    def when_matched_fail(self) -> Self:
        """Fail if any row matches.

        Examples:
            >>> upsert = ds.merge_insert("id").when_matched_fail().when_not_matched_insert_all()
            >>> upsert.execute(rows)["num_inserted_rows"]
            2
        """
        from lance_nb.writing.upsert_source import WhenMatched

        return self._with(matched=WhenMatched.FAIL, condition=None)

    def when_not_matched_insert_all(self) -> Self:
        """Insert rows that are in the source only; columns that it does not have are null.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all()
            >>> upsert.execute(pa.table({"id": [9, 10]}))["num_inserted_rows"]
            1
        """
        return self._with(inserts=True)

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> Self:
        """Delete rows that are in the dataset only.

        Args:
            expr: SQL; only those that pass it are deleted.

        Raises PredicateError.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_by_source_delete("id > 7")
            >>> upsert.execute(pa.table({"id": [9]}))["num_deleted_rows"]
            1
        """
        from lance_nb.writing import upserting

        filter_text = None
        if expr is not None:
            filter_text = upserting.unmatched_filter(self._schema, expr)
        return self._with(deletes_unmatched=True, unmatched_filter=filter_text)

    def _with(self, **changes: Any) -> Self:
        self._clauses = replace(self._clauses, **changes)
        return self


class MergeInsertBuilder(MergeClauseBuilder):
    """One upsert under construction. Created by ``LanceDataset.merge_insert``.

    "Matched" rows are in the source and in the dataset, "not matched" ones in the source only, "not
    matched by source" ones in the dataset only. Rows match when all columns of the key are equal;
    a null equals nothing. Where pylance and we differ: an index on the key is not looked up, the
    key columns are read; conditions may also be given to branches of versions that pylance plans
    wrongly (``when_matched_delete`` with ``when_not_matched_by_source_delete``); ``auto`` chooses
    the write mode by cost.

    Examples:
        >>> upsert = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        >>> upsert.execute(rows)
        {'num_inserted_rows': 2, 'num_updated_rows': 0, 'num_deleted_rows': 0}
    """

    def __init__(self, dataset: LanceDataset, on: str | Iterable[str] | None = None) -> None:
        super().__init__(dataset.lance_schema.tree, on)
        self._dataset = dataset
        self._retries = _RETRIES
        self._timeout = _RETRY_TIMEOUT

    # --- how --------------------------------------------------------------------------------------

    def conflict_retries(self, max_retries: int) -> Self:
        """Set how often to start over from the newest version after a conflict.

        Args:
            max_retries: attempts after the first; 10 by default.

        Examples:
            >>> upsert = ds.merge_insert("id").when_matched_delete().conflict_retries(3)
        """
        if not isinstance(max_retries, int):
            raise ArgumentError(f"max_retries must be an integer, not {type(max_retries).__name__}")
        if max_retries < 0:
            raise ArgumentError(f"max_retries must be at least 0, not {max_retries}")
        self._retries = max_retries
        return self

    def retry_timeout(self, timeout: timedelta) -> Self:
        """Set how long to keep starting over; the first attempt is always made.

        Args:
            timeout: 30 seconds by default.

        Examples:
            >>> from datetime import timedelta
            >>> upsert = ds.merge_insert("id").when_matched_delete()
            >>> upsert = upsert.retry_timeout(timedelta(seconds=5))
        """
        if not isinstance(timeout, timedelta):
            raise ArgumentError(f"timeout must be a timedelta, not {type(timeout).__name__}")
        if timeout < timedelta(0):
            raise InvalidInputError(f"timeout must not be negative: {timeout}")
        self._timeout = timeout
        return self

    def data_storage_version(self, version: str) -> Self:
        """Name the version of the files that are written, by default the dataset's own.

        Args:
            version: "2.0", "2.1", "2.2" or "stable"; files of several versions stand side by side.

        Raises InvalidInputError, NotSupportedError for one that cannot be written.

        Examples:
            >>> upsert = ds.merge_insert("id").when_matched_delete().data_storage_version("2.2")
        """
        from lance_nb.writing import writing

        _, snapshot = self._dataset.opened
        writing.own_options(snapshot, version)  # refuses at once
        return self._with(file_version=version)

    def use_index(self, use_index: bool) -> Self:
        """Do nothing: keys are read from the dataset whether there is an index or not."""
        if not isinstance(use_index, bool):
            raise ArgumentError(f"use_index must be a bool, not {type(use_index).__name__}")
        return self

    def write_mode(self, mode: str) -> Self:
        """Choose how matched rows are updated.

        Args:
            mode: "rewrite_rows" moves them to new files; "rewrite_columns" writes the source's
                columns anew for whole fragments and leaves rows where they are, and can only update
                matched rows, with some of the columns; "auto" takes what reads and writes less, by
                an estimate.

        Raises InvalidInputError.

        Examples:
            >>> upsert = ds.merge_insert("id").when_matched_update_all()
            >>> upsert = upsert.write_mode("rewrite_columns")
            >>> upsert.execute(pa.table({"id": [3], "label": ["x"]}))["num_updated_rows"]
            1
        """
        from lance_nb.writing import upserting

        return self._with(write_mode=upserting.check_write_mode(mode))

    def target_bases(self, bases: list[str]) -> Self:
        """Put files of new rows under base paths, one after the other.

        Columns that are written anew stay beside the others.

        Args:
            bases: names or paths of base paths.

        Raises BasePathError, and InvalidInputError for a place that the dataset was not opened to
        use (``allow_bases``).

        Examples:
            >>> _ = ds.add_bases([lance_nb.DatasetBasePath("archive", name="archive")])
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all()
            >>> upsert.target_bases(["archive"]).execute(rows)["num_inserted_rows"]
            2
        """
        if not bases:
            raise MergeInsertError("target_bases must name at least one base path, or be left out")
        return self._to_bases(bases=tuple(bases), all_bases=None)

    def target_all_bases(self, include_primary: bool = True) -> Self:
        """Spread files of new rows over all base paths; the dataset's own folder comes first.

        Args:
            include_primary: give the dataset's own folder some too.

        Raises BasePathError, InvalidInputError.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all().target_all_bases()
            >>> upsert.execute(rows)["num_inserted_rows"]
            2
        """
        return self._to_bases(bases=(), all_bases=include_primary)

    def _to_bases(self, *, bases: tuple[str, ...], all_bases: bool | None) -> Self:
        from lance_nb.writing import writing

        locations = self._dataset.opened[1].locations
        writing.places_of(locations, bases or None, all_bases)  # refuses at once
        return self._with(bases=bases, all_bases=all_bases)

    def mark_sstables_as_compacted(self, sstables: Iterable[Any]) -> Self:
        """Record with the commit that write-ahead logs have been merged.

        Args:
            sstables: values with ``shard_id`` (the text of a UUID) and ``generation``.

        Raises InvalidInputError.

        Examples:
            >>> upsert = ds.merge_insert("id").when_matched_delete().mark_sstables_as_compacted([])
        """
        from lance_nb.writing import upserting

        return self._with(logs=upserting.logs_of(sstables))

    # --- doing it ---------------------------------------------------------------------------------

    def execute(
        self, data_obj: Any, *, schema: pa.Schema | None = None, progress: Progress | None = None
    ) -> ExecuteResult:
        """Merge rows and commit; the dataset object moves to the new version.

        A version is made even when nothing changes, as in pylance. After a conflict with another
        writer the merge is done again on the newest version.

        Args:
            data_obj: the source: what ``write_dataset`` takes.
            schema: of the source, where it does not say.
            progress: called with rows done and rows in all. Not in pylance.

        Returns ``num_inserted_rows``, ``num_updated_rows`` and ``num_deleted_rows``. Raises
        SchemaMismatchError, MergeInsertError (several source rows for one row; a match that must
        not be), PredicateError, CommitConflictError, TooMuchWriteContentionError.

        Examples:
            >>> ds.merge_insert("id").when_not_matched_insert_all().execute(rows)
            {'num_inserted_rows': 2, 'num_updated_rows': 0, 'num_deleted_rows': 0}
        """
        from lance_nb.writing import upserting

        session, snapshot = self._dataset.opened
        with upserting.source_of(data_obj, schema) as source:
            snapshot_after, stats = upserting.execute(
                session,
                snapshot,
                self._clauses,
                source,
                max_retries=self._retries,
                timeout_s=self._timeout.total_seconds(),
                progress=progress,
            )
        self._dataset._moved(snapshot_after)  # noqa: SLF001 - made by it
        return cast("ExecuteResult", stats)

    def execute_uncommitted(
        self, data_obj: Any, *, schema: pa.Schema | None = None, progress: Progress | None = None
    ) -> tuple[Transaction, dict[str, int]]:
        """Merge without committing: ``(transaction, counts)``, for ``LanceDataset.commit``.

        The arguments and the errors are those of ``execute``.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all()
            >>> transaction, counts = upsert.execute_uncommitted(rows)
            >>> lance_nb.LanceDataset.commit(ds, transaction).count_rows()
            12
        """
        from lance_nb.writing import upserting

        session, snapshot = self._dataset.opened
        with upserting.source_of(data_obj, schema) as source:
            return upserting.execute_uncommitted(
                session, snapshot, self._clauses, source=source, progress=progress
            )

    def execute_batches(self, new_data: Any, *, schema: pa.Schema | None = None) -> ExecuteResult:
        """Do as ``execute``; pylance's name for rows that lie in memory and can be read again.

        Args:
            new_data: the source.
            schema: of the source, where it does not say.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all()
            >>> upsert.execute_batches(rows.to_batches())["num_inserted_rows"]
            2
        """
        return self.execute(new_data, schema=schema)

    def execute_uncommitted_batches(
        self, new_data: Any, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, dict[str, int]]:
        """Do as ``execute_uncommitted``; pylance's name for rows that lie in memory.

        Args:
            new_data: the source.
            schema: of the source, where it does not say.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all()
            >>> upsert.execute_uncommitted_batches(rows.to_batches())[1]["num_inserted_rows"]
            2
        """
        return self.execute_uncommitted(new_data, schema=schema)

    def analyze_plan_batches(self, new_data: Any, *, schema: pa.Schema | None = None) -> str:
        """Do as ``analyze_plan``; pylance's name for rows that lie in memory.

        Args:
            new_data: the source.
            schema: of the source, where it does not say.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all()
            >>> "num_inserted_rows=2" in upsert.analyze_plan_batches(rows.to_batches())
            True
        """
        return self.analyze_plan(new_data, schema=schema)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """Describe what a merge does, in our engine's own words.

        Args:
            schema: of the source; the dataset's by default.
            verbose: no effect.

        Examples:
            >>> plan = ds.merge_insert("id").when_not_matched_insert_all().explain_plan()
            >>> plan.splitlines()[3].strip()
            'TargetKeys: fragments=2, rows=10'
        """
        from lance_nb.writing import upserting

        _, snapshot = self._dataset.opened
        return upserting.explain(snapshot, self._clauses, schema)

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Merge, commit nothing, remove the files again, and tell what it took.

        Args:
            data_obj: the source: what ``write_dataset`` takes.
            schema: of the source, where it does not say.

        Raises as ``execute``.

        Examples:
            >>> upsert = ds.merge_insert("id").when_not_matched_insert_all()
            >>> "num_inserted_rows=2" in upsert.analyze_plan(rows)
            True
        """
        from lance_nb.writing import upserting

        _, snapshot = self._dataset.opened
        with upserting.source_of(data_obj, schema) as source:
            return upserting.analyze(snapshot, self._clauses, source)
