"""Verbs that change the columns of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.dataset import verbs
from lance_nb.dataset.opened import OpenedVersion

Progress = Callable[[int, int], None]


class Evolving(OpenedVersion):
    """Columns in, out, and changed. Every change is a new version."""

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns, by name or dotted path; no data is written.

        Raises ColumnNotFoundError, InvalidInputError when no column would be left.
        """
        self._evolve(lambda base, _: verbs.evolving.drop(base, columns))

    def alter_columns(
        self, *alterations: Mapping[str, Any], progress: Progress | None = None
    ) -> None:
        """Rename columns, change whether they may be null, or cast them.

        Each alteration is a dict with ``path`` and one or more of ``name``, ``nullable``,
        ``data_type``. Only a cast writes data: the column gets a new field id. ``progress`` (our
        own argument) is called with rows done and rows in all. Raises ColumnNotFoundError,
        InvalidInputError, SchemaMismatchError, PredicateError (a value that does not fit).
        """
        wanted = verbs.evolving.alterations_of(alterations)
        self._evolve(lambda base, work: verbs.evolving.alter(base, wanted, work), progress)

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Add columns: computed, streamed, or all null. Other columns are not touched.

        ``transforms``: a dict of name to SQL expression; a function from record batches (of
        ``read_columns``) to record batches or DataFrames, plain or a ``batch_udf``, whose
        checkpoint lets an interrupted call go on; rows to stream, one per row in order; or fields,
        for columns of nulls, which write no data. A struct that is there gets the new ones of its
        fields. ``progress`` (our own argument) is called with rows done and rows in all. Unlike
        pylance, an error of the function comes out as it is.

        Raises InvalidInputError, SchemaMismatchError, PredicateError. After an error or an
        interrupt no new file remains (but what a checkpoint remembers).
        """
        wanted = verbs.evolving.NewColumns(transforms, read_columns, reader_schema, batch_size)
        self._evolve(lambda base, work: verbs.evolving.add(base, wanted, work), progress)
        verbs.evolving.forget(transforms)

    def merge(
        self,
        data_obj: Any,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Add the columns of a table by a left join; rows without a partner get null.

        Of several partners the last counts. ``left_on`` may be ``_rowid`` or ``_rowaddr``. Raises
        ColumnNotFoundError, SchemaMismatchError (keys of different types, columns that are there).
        """
        right = verbs.evolving.read_right(data_obj, schema)
        on = (left_on, right_on or left_on)
        self._evolve(lambda base, work: verbs.evolving.merge(base, right, on, work), progress)

    def truncate_table(self) -> None:
        """Delete every row; the schema and the older versions stay."""
        self._snapshot, _ = verbs.deleting.delete(self._session, self._snapshot, "true")

    def _evolve(self, plan: Any, progress: Progress | None = None) -> None:
        self._snapshot = verbs.evolving.evolve(self._session, self._snapshot, plan, progress)
