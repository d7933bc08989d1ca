"""Verbs that change the columns of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.dataset import verbs
from lance_nb.dataset.opened import OpenedVersion


class Evolving(OpenedVersion):
    """Columns in, out, and changed. Every change is a new version."""

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns, by name or dotted path; no data is written.

        Raises ColumnNotFoundError, InvalidInputError when no column would be left.
        """
        self._evolve(lambda base: verbs.evolving.drop(base, columns))

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Rename columns, change whether they may be null, or cast them.

        Each alteration is a dict with ``path`` and one or more of ``name``, ``nullable``,
        ``data_type``. Only a cast writes data: the column gets a new field id. Raises
        ColumnNotFoundError, InvalidInputError, PredicateError (a value that does not fit).
        """
        wanted = verbs.evolving.alterations_of(alterations)
        self._evolve(lambda base: verbs.evolving.alter(base, wanted))

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns: computed, streamed, or all null. Other columns are not touched.

        ``transforms``: a dict of name to SQL expression; a function from record batches (of
        ``read_columns``) to record batches; rows to stream, one per row in order; or fields, for
        columns of nulls, which write no data. Raises InvalidInputError, PredicateError.
        """
        self._evolve(
            lambda base: verbs.evolving.add(
                base, transforms, read_columns, reader_schema, batch_size
            )
        )

    def merge(
        self,
        data_obj: Any,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        """Add the columns of a table by a left join; rows without a partner get null.

        Of several partners the last counts. Raises ColumnNotFoundError, InvalidInputError.
        """
        right = verbs.evolving.read_right(data_obj, schema)
        on = (left_on, right_on or left_on)
        self._evolve(lambda base: verbs.evolving.merge(base, right, on))

    def truncate_table(self) -> None:
        """Delete every row; the schema and the older versions stay."""
        self._snapshot, _ = verbs.deleting.delete(self._session, self._snapshot, "true")

    def _evolve(self, plan: Any) -> None:
        self._snapshot = verbs.evolving.evolve(self._session, self._snapshot, plan)
