"""An upsert that is staged: its clauses, then its rows.

Source: ``LanceDataset.merge_insert`` of pylance 14.0.2; lance_nb.dataset.verbs.staging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.dataset.merge_insert import MergeClauseBuilder
from lance_nb.dataset.verbs import upserting
from lance_nb.format.schema import Schema
from lance_nb.transactions.merge_insert_clauses import MergeClauses
from lance_nb.transactions.merge_insert_source import SourceRows

if TYPE_CHECKING:
    from lance_nb.dataset.verbs.staging import Stage


class StagedMerge(MergeClauseBuilder):
    """An upsert under construction on a stage."""

    def __init__(
        self,
        schema: Schema,
        on: str | Iterable[str] | None,
        add: Callable[[MergeClauses, SourceRows, Any], Stage],
    ) -> None:
        super().__init__(schema, on)
        self._add = add

    def stage(self, data: Any, *, schema: pa.Schema | None = None, progress: Any = None) -> Stage:
        """Find the matches, write the new rows, and add the upsert to the stage.

        Raises SchemaMismatchError, MergeInsertError, PredicateError; the stage is as it was then.
        """
        clauses = upserting.with_clause(self._clauses, write_mode="rewrite_rows")
        with upserting.source_of(data, schema) as source:
            return self._add(clauses, source, progress)
