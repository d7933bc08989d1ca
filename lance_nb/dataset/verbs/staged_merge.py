"""An upsert that is staged: its clauses, then its rows.

Source: ``LanceDataset.merge_insert`` of pylance 14.0.2; lance_nb.dataset.verbs.stage_edits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import pyarrow as pa

from lance_nb.dataset.merge_insert import MergeClauseBuilder
from lance_nb.dataset.verbs import upserting
from lance_nb.dataset.verbs.sources import fitted
from lance_nb.format.schema import Schema
from lance_nb.transactions.merge_insert_clauses import MergeClauses
from lance_nb.transactions.merge_insert_source import SourceRows

S = TypeVar("S")


class StagedMerge(MergeClauseBuilder, Generic[S]):
    """An upsert under construction on a stage of the kind ``S``."""

    def __init__(
        self,
        schema: Schema,
        on: str | Iterable[str] | None,
        add: Callable[[MergeClauses, SourceRows, Any], S],
    ) -> None:
        super().__init__(schema, on)
        self._add = add

    def stage(self, data: Any, *, schema: pa.Schema | None = None, progress: Any = None) -> S:
        """Find the matches, write the new rows, and add the upsert to the stage.

        Raises SchemaMismatchError, MergeInsertError, PredicateError; the stage is as it was then.
        """
        clauses = upserting.with_clause(self._clauses, write_mode="rewrite_rows")
        rows = fitted(data, self._schema.to_arrow())
        with upserting.source_of(rows, schema) as source:
            return self._add(clauses, source, progress)
