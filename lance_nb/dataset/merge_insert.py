"""``ds.merge_insert(on)``: upserts, and everything else that a join by key can do, in one commit.

    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

Source: ``LanceDataset.merge_insert`` and ``MergeInsertBuilder`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        from lance_nb.dataset.verbs import upserting

        self._schema = schema
        self._clauses = upserting.start(schema, on)

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Give matched rows the source's values, where ``condition`` holds.

        ``condition`` is SQL over ``source.column`` and ``target.column``; a matched row that does
        not pass stays as it is. Columns that the source does not have keep their values.
        """
        from lance_nb.dataset.verbs import upserting

        matched = upserting.WhenMatched.UPDATE
        return self._with(matched=matched, condition=condition)

    def when_matched_delete(self) -> Self:
        """Delete matched rows."""
        from lance_nb.dataset.verbs import upserting

        return self._with(matched=upserting.WhenMatched.DELETE, condition=None)

    def when_matched_fail(self) -> Self:
        """Fail if any row matches."""
        from lance_nb.dataset.verbs import upserting

        return self._with(matched=upserting.WhenMatched.FAIL, condition=None)

    def when_not_matched_insert_all(self) -> Self:
        """Insert rows that are in the source only; columns that it does not have are null."""
        return self._with(inserts=True)

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> Self:
        """Delete rows that are in the dataset only, those that pass ``expr`` (SQL) if given.

        Raises PredicateError.
        """
        from lance_nb.dataset.verbs import upserting

        found = None
        if expr is not None:
            found = upserting.unmatched_filter(self._schema, expr)
        return self._with(deletes_unmatched=True, unmatched_filter=found)

    def _with(self, **changes: Any) -> Self:
        from lance_nb.dataset.verbs import upserting

        self._clauses = upserting.with_clause(self._clauses, **changes)
        return self


class MergeInsertBuilder(MergeClauseBuilder):
    """One upsert under construction.

    "Matched" rows are in the source and in the dataset, "not matched" ones in the source only, "not
    matched by source" ones in the dataset only. Rows match when all columns of the key are equal;
    a null equals nothing. Where pylance and we differ: an index on the key is not looked up, the
    key columns are read; conditions may also be given to branches of versions that pylance plans
    wrongly (``when_matched_delete`` with ``when_not_matched_by_source_delete``); ``auto`` chooses
    the write mode by cost.
    """

    def __init__(self, dataset: LanceDataset, on: str | Iterable[str] | None = None) -> None:
        super().__init__(dataset.lance_schema.tree, on)
        self._dataset = dataset
        self._retries = _RETRIES
        self._timeout = _RETRY_TIMEOUT

    # --- how --------------------------------------------------------------------------------------

    def conflict_retries(self, max_retries: int) -> Self:
        """Set how often to start over from the newest version after a conflict (10)."""
        if not isinstance(max_retries, int):
            raise ArgumentError(f"max_retries must be an integer, not {type(max_retries).__name__}")
        if max_retries < 0:
            raise ArgumentError(f"max_retries must be at least 0, not {max_retries}")
        self._retries = max_retries
        return self

    def retry_timeout(self, timeout: timedelta) -> Self:
        """Set how long to keep starting over (30 seconds); the first attempt is always made."""
        if not isinstance(timeout, timedelta):
            raise ArgumentError(f"timeout must be a timedelta, not {type(timeout).__name__}")
        if timeout < timedelta(0):
            raise InvalidInputError(f"timeout must not be negative: {timeout}")
        self._timeout = timeout
        return self

    def data_storage_version(self, version: str) -> Self:
        """Name the version of the files that are written: only the dataset's own.

        Raises InvalidInputError, NotSupportedError for another one, which pylance allows.
        """
        from lance_nb.dataset.verbs import updating

        _, snapshot = self._dataset.opened
        updating.check_file_version(snapshot, version)
        return self

    def use_index(self, use_index: bool) -> Self:
        """Do nothing: keys are read from the dataset whether there is an index or not."""
        if not isinstance(use_index, bool):
            raise ArgumentError(f"use_index must be a bool, not {type(use_index).__name__}")
        return self

    def write_mode(self, mode: str) -> Self:
        """Choose how matched rows are updated: "auto", "rewrite_rows" or "rewrite_columns".

        ``rewrite_columns`` writes the source's columns anew for whole fragments and leaves rows
        where they are; it can only update matched rows, with some of the columns. ``auto`` takes
        what reads and writes less, by an estimate. Raises InvalidInputError.
        """
        from lance_nb.dataset.verbs import upserting

        return self._with(write_mode=upserting.check_write_mode(mode))

    def target_bases(self, bases: list[str]) -> Self:
        """Put files of new rows under these base paths (names or paths), one after the other.

        Columns that are written anew stay beside the others. Raises BasePathError, and
        InvalidInputError for a place that the dataset was not opened to use (``allow_bases``).
        """
        if not bases:
            raise MergeInsertError("target_bases must name at least one base path, or be left out")
        return self._to_bases(bases=tuple(bases), all_bases=None)

    def target_all_bases(self, include_primary: bool = True) -> Self:
        """Spread files of new rows over all base paths; the dataset's own folder comes first.

        Without ``include_primary`` it gets none. Raises BasePathError, InvalidInputError.
        """
        return self._to_bases(bases=(), all_bases=include_primary)

    def _to_bases(self, *, bases: tuple[str, ...], all_bases: bool | None) -> Self:
        from lance_nb.dataset.verbs import writing

        locations = self._dataset.opened[1].locations
        writing.places_of(locations, bases or None, all_bases)  # refuses at once
        return self._with(bases=bases, all_bases=all_bases)

    def mark_sstables_as_compacted(self, sstables: Iterable[Any]) -> Self:
        """Record with the commit that write-ahead logs have been merged.

        ``sstables``: values with ``shard_id`` (the text of a UUID) and ``generation``.
        """
        from lance_nb.dataset.verbs import upserting

        return self._with(logs=upserting.logs_of(sstables))

    # --- doing it ---------------------------------------------------------------------------------

    def execute(
        self, data_obj: Any, *, schema: pa.Schema | None = None, progress: Progress | None = None
    ) -> ExecuteResult:
        """Merge ``data_obj`` (what ``write_dataset`` takes) and commit.

        Returns ``num_inserted_rows``, ``num_updated_rows`` and ``num_deleted_rows``; a version is
        made even when nothing changes, as pylance does. After a conflict with another writer the
        merge is done again on the newest version. ``progress(done, total)`` counts rows. Raises
        SchemaMismatchError, MergeInsertError (several source rows for one row; a match that must
        not be), PredicateError, CommitConflictError, TooMuchWriteContentionError.
        """
        from lance_nb.dataset.verbs import upserting

        session, snapshot = self._dataset.opened
        with upserting.source_of(data_obj, schema) as source:
            made, stats = upserting.execute(
                session,
                snapshot,
                self._clauses,
                source,
                max_retries=self._retries,
                timeout_s=self._timeout.total_seconds(),
                progress=progress,
            )
        self._dataset._moved(made)  # noqa: SLF001 - made by it
        return cast("ExecuteResult", stats)

    def execute_uncommitted(
        self, data_obj: Any, *, schema: pa.Schema | None = None, progress: Progress | None = None
    ) -> tuple[Transaction, dict[str, int]]:
        """Merge without committing: ``(transaction, counts)``, for ``LanceDataset.commit``."""
        from lance_nb.dataset.verbs import upserting

        session, snapshot = self._dataset.opened
        with upserting.source_of(data_obj, schema) as source:
            return upserting.execute_uncommitted(session, snapshot, self._clauses, source, progress)

    def execute_batches(self, new_data: Any, *, schema: pa.Schema | None = None) -> ExecuteResult:
        """Do as ``execute``; pylance's name for rows that lie in memory and can be read again."""
        return self.execute(new_data, schema=schema)

    def execute_uncommitted_batches(
        self, new_data: Any, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, dict[str, int]]:
        """Do as ``execute_uncommitted``; pylance's name for rows that lie in memory."""
        return self.execute_uncommitted(new_data, schema=schema)

    def analyze_plan_batches(self, new_data: Any, *, schema: pa.Schema | None = None) -> str:
        """Do as ``analyze_plan``; pylance's name for rows that lie in memory."""
        return self.analyze_plan(new_data, schema=schema)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """Describe what a merge of a source of this schema does, in our engine's own words."""
        from lance_nb.dataset.verbs import upserting

        _, snapshot = self._dataset.opened
        return upserting.explain(snapshot, self._clauses, schema)

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Merge, commit nothing, remove the files again, and tell what it took."""
        from lance_nb.dataset.verbs import upserting

        _, snapshot = self._dataset.opened
        with upserting.source_of(data_obj, schema) as source:
            return upserting.analyze(snapshot, self._clauses, source)
