"""All rows that a fragment stores, deleted ones too, in their order, and who their partners are.

New columns have a value for every physical row; where a row is deleted its row id is null. What is
made of deleted rows is never seen, but it must not fail: a deleted row may hold a null that the
column has since been freed of, or a number too large for the type it is cast to. So deleted rows
show the values of a row that is not deleted.

Source: messages ``DataFile`` and ``DataFragment`` of lance.table (a file holds every physical row).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import one_batch, taken_rows
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import ColumnNotFoundError
from lance_nb.format.fragment import Fragment
from lance_nb.table.projection import ROW_ID
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import plan_request
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.row_rewrite import cast


def physical_batches(
    snapshot: Snapshot, fragment: Fragment, columns: Any, batch_size: int | None
) -> Iterator[pa.RecordBatch]:
    """Read all rows that are stored, in their order; deleted ones show the values of another."""
    stored = _stored(snapshot, fragment, columns, batch_size)
    if not fragment.num_deleted_rows:
        for batch in stored:
            yield batch.drop_columns([ROW_ID])
        return
    options = ScanOptions(columns, fragments=(fragment,), limit=1)
    other = plan_request(snapshot, options).table().to_batches()
    for batch in stored:
        is_live = batch.column(ROW_ID).is_valid().to_numpy(zero_copy_only=False)
        both = pa.Table.from_batches([batch.drop_columns([ROW_ID]), *other])
        chosen = np.where(is_live, np.arange(len(is_live)), min(len(is_live), len(both) - 1))
        yield one_batch(taken_rows(both, from_integers(chosen)))


def _stored(
    snapshot: Snapshot, fragment: Fragment, columns: Any, batch_size: int | None
) -> Iterator[pa.RecordBatch]:
    options = ScanOptions(
        columns,
        batch_size=batch_size,
        fragments=(fragment,),
        with_row_id=True,
        include_deleted_rows=True,
    )
    return plan_request(snapshot, options).batches()


def row_ids(snapshot: Snapshot, fragment: Fragment) -> pa.ChunkedArray:
    """Return the row ids of all rows that are stored, null where the row is deleted."""
    options = ScanOptions([], with_row_id=True, fragments=(fragment,), include_deleted_rows=True)
    return plan_request(snapshot, options).table().column(ROW_ID)


def partners(
    snapshot: Snapshot, fragment: Fragment, right: pa.Table, on: tuple[str, str]
) -> np.ndarray:
    """Return for every physical row the last row of ``right`` with its key, -1 without one."""
    left_on, right_on = on
    if right_on not in right.schema.names:
        raise ColumnNotFoundError(right_on, tuple(right.schema.names))
    if left_on == ROW_ID:
        left = row_ids(snapshot, fragment)
    else:
        batches = list(_stored(snapshot, fragment, [left_on], None))
        left = pa.Table.from_batches(batches)[left_on]
    keys = cast(right[right_on], pa.field(right_on, left.type))
    import pyarrow.compute as pc

    backwards = from_integers(np.arange(len(keys))[::-1].copy())
    last = pc.index_in(left, value_set=keys.take(backwards).combine_chunks(), skip_nulls=True)
    position = pc.fill_null(last, -1).to_numpy().astype(np.int64)
    return np.where(position < 0, -1, len(keys) - 1 - position)


def integers_or_null(positions: np.ndarray) -> pa.Array:
    """Return positions as an Arrow array, the negative ones null."""
    return pa.array(positions, pa.int64(), mask=positions < 0)
