"""Run the tasks of a scan: fragments to Arrow tables and record batches, in bounded memory.

A table scan decodes large fragments side by side, one per processor; a batch scan decodes one
*window* of rows at a time, so that memory does not grow with the size of a fragment.

Limits: a window holds at most ``WINDOW_BYTES`` of decoded values, estimated from the types and from
the size of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import one_batch
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.fragment import Fragment
from lance_nb.storage.threads import cpu_count, run_side_by_side
from lance_nb.table.fragment_group import GROUP_BYTES, GROUP_ROWS, grouped, read_group
from lance_nb.table.fragment_reader import (
    Column,
    num_physical_rows,
    read_rows,
    reads_at_a_time,
)
from lance_nb.table.live_rows import LiveRows, one_range, wanted_rows
from lance_nb.table.projection import (
    CREATED_AT,
    LAST_UPDATED_AT,
    ROW_ADDRESS,
    ROW_ID,
    ROW_OFFSET,
    Projection,
    result_table,
)
from lance_nb.table.scan_tasks import FragmentTask
from lance_nb.table.snapshot import Snapshot

WINDOW_BYTES = 32 * 1024 * 1024
WINDOW_ROWS_MIN = 1024
WINDOW_ROWS_MAX = 1024 * 1024
DEFAULT_BATCH_ROWS = 8192
ONCE_BYTES = GROUP_BYTES // 2  # of a group whose rows are only written again
FIRST_GROUP_ROWS = 1 << 14  # the first batch comes soon
PARALLEL_BYTES = 4 * 1024 * 1024  # of a fragment: below, threads cost more than they bring


def scan_table(
    snapshot: Snapshot, projection: Projection, tasks: Iterable[FragmentTask]
) -> pa.Table:
    """Read every task into one table."""
    tables = list(_read_side_by_side(snapshot, projection, tasks))
    if not tables:
        return empty_table(projection.schema)
    if not projection.outputs:  # Arrow would forget how many rows the tables have
        return result_table(projection, [], {}, sum(table.num_rows for table in tables))
    return pa.concat_tables(tables)


def _read_side_by_side(
    snapshot: Snapshot, projection: Projection, tasks: Iterable[FragmentTask]
) -> Iterator[pa.Table]:
    """Read tasks in order, small ones together; on all processors where there is much to do."""
    groups = grouped(snapshot, tasks, projection.row_bytes)
    first = list(islice(groups, 2))
    threads = threads_for(snapshot, projection, first[0]) if len(first) == 2 else 1
    work = (partial(read_tasks, snapshot, projection, group) for group in chain(first, groups))
    return run_side_by_side(work, threads)


def read_tasks(
    snapshot: Snapshot, projection: Projection, tasks: Sequence[FragmentTask], once: bool = False
) -> pa.Table:
    """Read the rows of a group of tasks, one after the other; ``once`` as in ``read_group``."""
    if len(tasks) == 1:
        return read_task(snapshot, projection, tasks[0])
    fragments = [task.fragment for task in tasks]
    if any(fragment.deletion_file is not None for fragment in fragments):
        from lance_nb.table.deletions import load_deletions

        load_deletions(snapshot, fragments)
    live = [wanted_rows(snapshot, task.fragment, task.start, task.stop) for task in tasks]
    stored = read_live_group(snapshot, projection.columns, fragments, live=live, once=once)
    if stored is None:
        return pa.concat_tables([read_task(snapshot, projection, task) for task in tasks])
    rows: dict[str, pa.ChunkedArray] = {}
    if projection.row_columns:
        parts = [
            row_columns(snapshot, projection, task.fragment, live=own, first_row=task.first_row)
            for task, own in zip(tasks, live, strict=True)
        ]
        rows = {name: pa.chunked_array([part[name] for part in parts]) for name in parts[0]}
    return result_table(projection, stored, rows, sum(task.num_rows for task in tasks))


def read_live_group(
    snapshot: Snapshot,
    columns: Sequence[Column],
    fragments: Sequence[Fragment],
    live: Sequence[LiveRows],
    once: bool = False,
) -> list[pa.ChunkedArray] | None:
    """Read all live rows of the fragments of a group; None as ``read_group`` says."""
    stored = read_group(snapshot, fragments, columns, once)
    if stored is None or all(fragment.deletion_file is None for fragment in fragments):
        return stored
    mask = np.zeros(sum(fragment.physical_rows for fragment in fragments), np.bool_)
    first = 0
    for fragment, own in zip(fragments, live, strict=True):
        start, stop = int(own.rows.starts[0]), int(own.rows.stops[-1])
        mask[first + start : first + stop] = True if own.mask is None else own.mask
        first += fragment.physical_rows
    return LiveRows(one_range(0, first), mask).filter(stored)


def threads_for(snapshot: Snapshot, projection: Projection, tasks: Sequence[FragmentTask]) -> int:
    """Choose how many groups like this one are read at the same time.

    Those of far stores mostly wait for requests, so more of them than there are processors.
    """
    awaited = reads_at_a_time(snapshot, tasks[0].fragment)
    if awaited > 1:
        return awaited
    return cpu_count() if is_large(snapshot, projection, tasks) else 1


def is_large(snapshot: Snapshot, projection: Projection, tasks: Sequence[FragmentTask]) -> bool:
    """Tell whether tasks keep a processor busy. Ranges of remote files are awaited instead."""
    fragment = tasks[0].fragment
    num_rows = sum(task.num_rows for task in tasks)
    if num_rows * _row_bytes(snapshot, projection, fragment) < PARALLEL_BYTES:
        return False
    stores = (snapshot.locations.locate("", file.base_id)[0] for file in fragment.files)
    return all(store.scheme == "file" for store in stores)


def scan_batches(
    snapshot: Snapshot,
    projection: Projection,
    tasks: Iterable[FragmentTask],
    batch_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most ``batch_rows`` rows; a batch never spans two fragments."""
    size = DEFAULT_BATCH_ROWS if batch_rows is None else batch_rows
    if size <= 0:
        raise InvalidInputError(f"batch_size must be positive, got {batch_rows}")
    for table, sizes in scan_windows(
        snapshot, projection, tasks, batch_rows=size, first_rows=min(size, FIRST_GROUP_ROWS)
    ):
        start = 0
        for num_rows in sizes:
            if not table.num_columns:
                yield from empty_batches(num_rows, size)
            else:
                part = table if len(sizes) == 1 else table.slice(start, num_rows)
                yield from cut(part, size)
            start += num_rows


def scan_windows(
    snapshot: Snapshot,
    projection: Projection,
    tasks: Iterable[FragmentTask],
    batch_rows: int = 1,
    first_rows: int = GROUP_ROWS,
    *,
    once: bool = False,
) -> Iterator[tuple[pa.Table, list[int]]]:
    """Yield the rows of a scan in tables of bounded size, with the rows of each task in them.

    A part of a fragment has a multiple of ``batch_rows`` rows, but for its last one. ``first_rows``
    is the size of the first group of small fragments; ``once`` as in ``read_group``.
    """
    most_bytes = ONCE_BYTES if once else GROUP_BYTES
    row_bytes = projection.row_bytes
    for group in grouped(snapshot, tasks, row_bytes, first_rows=first_rows, most_bytes=most_bytes):
        if len(group) > 1:
            sizes = [task.num_rows for task in group]
            yield read_tasks(snapshot, projection, group, once), sizes
            continue
        task = group[0]
        window = window_rows(snapshot, projection, task.fragment)
        step = max(window // batch_rows, 1) * batch_rows
        for start in range(task.start, task.stop, step):
            stop = min(start + step, task.stop)
            part = FragmentTask(task.fragment, start, stop, task.first_row + start - task.start)
            yield read_task(snapshot, projection, part), [part.num_rows]


def cut(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    """Cut a table into batches of ``size`` rows; of large ones only what spans pages is copied."""
    # So many slices of columns cost more than one copy of all.
    step = size if size >= DEFAULT_BATCH_ROWS else max(table.num_rows, 1)
    for start in range(0, table.num_rows, step):
        part = table.slice(start, step)
        try:
            part = part.combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            yield from _cut_dictionaries(part, size)
            continue
        yield from part.to_batches(max_chunksize=size)


def _cut_dictionaries(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    """Cut a table whose chunks cannot be joined: where it must be, batches end with a chunk."""
    for start in range(0, table.num_rows, size):
        part = table.slice(start, size)
        try:
            batches = [one_batch(part)]
        except NotSupportedError:
            batches = part.to_batches()
        yield from batches


def read_task(snapshot: Snapshot, projection: Projection, task: FragmentTask) -> pa.Table:
    """Read the rows of one task."""
    fragment = task.fragment
    live = wanted_rows(snapshot, fragment, task.start, task.stop)
    stored = read_rows(snapshot, fragment, projection.columns, live.rows)
    stored = live.filter(stored)
    rows = row_columns(snapshot, projection, fragment, live=live, first_row=task.first_row)
    return result_table(projection, stored, rows, task.num_rows)


def row_columns(
    snapshot: Snapshot,
    projection: Projection,
    fragment: Fragment,
    live: LiveRows,
    first_row: int,
) -> dict[str, pa.Array]:
    """Compute the row columns that the projection wants."""
    names = projection.row_columns
    if not names:
        return {}
    from lance_nb.table import row_ids

    physical = live.physical
    columns = {}
    if ROW_ADDRESS in names:
        columns[ROW_ADDRESS] = from_integers(row_addresses(fragment, physical))
    if ROW_ID in names:
        ids = row_ids.fragment_row_ids(snapshot, fragment)
        chosen = row_addresses(fragment, physical) if ids is None else ids[physical]
        columns[ROW_ID] = from_integers(chosen)
    if CREATED_AT in names:
        created = row_ids.created_at_versions(snapshot, fragment)
        columns[CREATED_AT] = from_integers(created[physical])
    if LAST_UPDATED_AT in names:
        updated = row_ids.last_updated_at_versions(snapshot, fragment)
        columns[LAST_UPDATED_AT] = from_integers(updated[physical])
    if ROW_OFFSET in names:
        count = physical.size
        columns[ROW_OFFSET] = from_integers(
            np.arange(first_row, first_row + count, dtype=np.uint64)
        )
    return columns


def row_addresses(fragment: Fragment, physical: Ints) -> np.ndarray:
    """Return ``fragment id << 32 | offset`` for physical offsets."""
    return physical.astype(np.uint64) | np.uint64(fragment.id << 32)


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return the result of a scan that finds no row.

    Arrow's own ``Schema.empty_table`` fails when an extension type is nested in another type.
    """
    return pa.Table.from_batches([], schema)


def empty_batches(num_rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """Batches without columns cannot carry rows through Arrow; say how many with a struct."""
    for start in range(0, num_rows, size):
        count = min(size, num_rows - start)
        rows = pa.StructArray.from_buffers(pa.struct([]), count, [None])
        yield pa.RecordBatch.from_struct_array(rows)


def window_rows(snapshot: Snapshot, projection: Projection, fragment: Fragment) -> int:
    """Choose how many rows of this fragment to decode at a time."""
    per_row = _row_bytes(snapshot, projection, fragment)
    return min(max(WINDOW_BYTES // per_row, WINDOW_ROWS_MIN), WINDOW_ROWS_MAX)


def _row_bytes(snapshot: Snapshot, projection: Projection, fragment: Fragment) -> int:
    """Estimate the bytes of a row, decoded or stored, whatever is more."""
    stored = sum(file.size_bytes for file in fragment.files)
    rows = max(num_physical_rows(snapshot, fragment), 1)
    return max(projection.row_bytes, stored // rows, 1)
