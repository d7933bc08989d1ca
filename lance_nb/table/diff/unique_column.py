"""Find a column whose values are all different, so that it can name rows and tell them apart.

A table without stable row ids and without a primary key often has such a column. Columns of whole
numbers and of text are tried, in the order of the schema. A column that is unique today need not be
a key: what depends on it is offered to a person, and never assumed.

Limits: ``MAX_TRIED`` columns are tried, on at most ``MAX_ROWS`` rows; a table with more has none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.table.filtered_scan import quoted
from lance_nb.table.projection import project
from lance_nb.table.scan_tasks import row_ends
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import take_rows

MAX_ROWS = 2_000_000
MAX_TRIED = 4
_FIRST_ROWS = 1000
_KINDS = (pt.is_integer, pt.is_string, pt.is_large_string)


def unique_column(
    snapshots: Sequence[Snapshot], without: frozenset[str] = frozenset()
) -> str | None:
    """Return the first column that is unique in every one of some versions, None if there is none.

    ``without`` are columns that are not tried.
    """
    totals = [int(row_ends(snapshot)[-1:].sum()) for snapshot in snapshots]
    if not all(0 < total <= MAX_ROWS for total in totals):
        return None
    schemas = [snapshot.manifest.schema.to_arrow() for snapshot in snapshots]
    names: list[str] = [
        column.name
        for column in schemas[0]
        if column.name not in without
        and any(is_kind(column.type) for is_kind in _KINDS)
        and all(
            column.name in schema.names and schema.field(column.name).type == column.type
            for schema in schemas
        )
    ]
    for name in names[:MAX_TRIED]:
        if all(
            _is_unique(snapshot, name, total)
            for snapshot, total in zip(snapshots, totals, strict=True)
        ):
            return name
    return None


def _is_unique(snapshot: Snapshot, name: str, total: int) -> bool:
    """Read the first rows before the column is read as a whole: most columns end there."""
    columns = project(snapshot.manifest.schema, [quoted([name])])
    for count in (min(total, _FIRST_ROWS), total):
        column: pa.ChunkedArray = take_rows(snapshot, columns, np.arange(count)).column(0)
        if column.null_count or len(column.unique()) != count:
            return False
    return True
