"""Rows with new values: written again at the end of the dataset, or some columns of all rows anew.

Rows: matching rows are read in windows, the columns that change are computed, and the rows stream
into new data files; they are deleted where they were. With stable row ids the new fragments have
the ids of their rows. Payloads of blobs that stay the same are copied from file to file.

Columns: one more data file per fragment, rows stay where they are. The file has a row for every
physical row of the fragment, deleted ones included: of an updated column, the values are read, the
new ones put in their places, and all written. Columns that the file replaces become tombstones
(field id -2) in the files that hold them now; a file of tombstones only is no longer listed. Row
addresses and deletions stay, so that indices on other columns stay whole; indices on these columns
no longer cover the fragments.

``columns_are_cheaper`` estimates which is cheaper: writing rows anew, or some columns of all rows.
Whole rows cost the width of a row for every row that changes, columns their own width for every row
of the fragments; both are read and written. Widths are those of the stored columns of one fragment,
payloads of blobs included.

Limits: memory holds one window. All rows of a column file come from one stream, in physical order;
an update of columns costs those of whole fragments, however few rows change. The estimate is from
one fragment and leaves out what moved rows cost later reads (deletions, small fragments, rows that
no index covers).
Source: messages ``DataFile``, ``DataFragment`` and ``Transaction.Update`` (modes
REWRITE_ROWS and REWRITE_COLUMNS) of lance.table; ``update``, ``merge_columns``, ``update_columns``
and ``write_mode`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_nb import arrow_compute as pc
from lance_nb.arrow_casts import cast_array, with_items
from lance_nb.encodings.arrow_parts import one_array, taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers, to_integers
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, PredicateError
from lance_nb.file.fitting import fit
from lance_nb.format.blob_fields import holds_blobs, is_blob
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment, RowIdMeta
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.format.schema import Schema
from lance_nb.storage.base import Store
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.blob_scan import rows_with_payloads
from lance_nb.table.computed_columns import Shape, shape_of
from lance_nb.table.data_statistics import payload_bytes, payload_rows
from lance_nb.table.filtered_scan import (
    RowChoice,
    Selected,
    column_key,
    quoted,
    read_columns,
    selected_table,
)
from lance_nb.table.fragment_reader import columns_of, confirmed_rows, open_file
from lance_nb.table.projection import ROW_ID, Projection, project
from lance_nb.table.row_selection import select_rows
from lance_nb.table.scan import row_addresses, window_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operations.data_replacement import with_columns_in
from lance_nb.value_classes import dataclass
from lance_nb.writing.deleting import deletion_of
from lance_nb.writing.fragment_writer import FragmentWriter, UncommittedFiles, WriteOptions, copying
from lance_nb.writing.staged import ColumnRewrite, DeletionPlan, RowRewrite

_ONE_FILE = 1 << 62


def write_columns(
    home: Store,
    fragment: Fragment,
    part: Schema,
    batches: Iterable[pa.RecordBatch],
    options: WriteOptions,
) -> Fragment:
    """Write columns for all physical rows of a fragment; return the fragment with the new file.

    ``part`` are the columns with their field ids: new ones, or ones that are replaced. Raises
    InvalidInputError when the rows are not as many as the fragment has; nothing remains then.
    """
    alone = replace(options, max_rows_per_file=_ONE_FILE, max_bytes_per_file=_ONE_FILE, places=())
    with FragmentWriter(part, home, alone) as writer:
        count = 0
        for batch in batches:
            count += batch.num_rows
            if count > fragment.physical_rows:
                break
            writer.write(batch)
        if count != fragment.physical_rows:
            raise InvalidInputError(
                f"fragment {fragment.id} has {fragment.physical_rows} physical rows: the new "
                f"columns have {'more' if count > fragment.physical_rows else count}"
            )
        written = writer.finish()
    new_file = written[0].files[0] if written else None
    return with_file(fragment, new_file, part.fields)


def with_file(fragment: Fragment, new_file: DataFile | None, fields: Iterable[Field]) -> Fragment:
    """Return the fragment with one more file, which holds ``fields`` from now on."""
    if new_file is None:
        return fragment
    return with_columns_in(
        fragment, new_file, (nested.id for top in fields for nested in top.walk())
    )


Touched = tuple[Fragment, Ints]
"""A fragment and the physical offsets of the rows that change in it, ascending."""
NewValues = Callable[[Fragment, int, int], pa.Table]
"""Gives the new values of some of a fragment's changing rows, counted from its first one."""


def rewrite_columns(
    snapshot: Snapshot,
    part: Schema,
    touched: Iterable[Touched],
    values: NewValues,
    options: WriteOptions,
    *,
    copies: BlobCopies | None = None,
) -> ColumnRewrite:
    """Write the columns of ``part`` anew for every fragment that has rows that change.

    ``copies``: what ``values`` refer to, if there are stored blobs among them.
    Raises CorruptFileError, SchemaMismatchError, StorageError; no file remains then.
    """
    home = snapshot.locations.home
    columns = project(snapshot.manifest.schema, [quoted([field.name]) for field in part])
    copies = BlobCopies(snapshot) if copies is None else copies
    options = copying(options, copies)
    records = bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)
    changed: list[Fragment] = []
    offsets: dict[int, bytes] = {}
    num_rows = 0
    with UncommittedFiles(home) as files:
        for fragment, rows in touched:
            batches = _rewritten_batches(
                snapshot, columns, (fragment, rows), values=values, copies=copies
            )
            changed.append(write_columns(home, fragment, part, batches=batches, options=options))
            files.add(changed[-1].files[-1:])
            num_rows += rows.size
            if records:
                offsets[fragment.id] = BitMap(rows.astype(np.uint32)).serialize()
    fields = tuple(field.id for field in part.walk())
    return ColumnRewrite(tuple(changed), fields, num_rows, offsets)


def _rewritten_batches(
    snapshot: Snapshot,
    columns: Projection,
    touched: Touched,
    values: NewValues,
    copies: BlobCopies,
) -> Iterator[pa.RecordBatch]:
    fragment, rows = touched
    step = window_rows(snapshot, columns, fragment)
    for start in range(0, confirmed_rows(snapshot, fragment), step):
        stop = min(start + step, confirmed_rows(snapshot, fragment))
        first, last = (int(edge) for edge in np.searchsorted(rows, (start, stop)))
        physical = np.arange(start, stop, dtype=np.int64)
        if last - first == stop - start:
            yield from values(fragment, first, last).to_batches()
            continue
        old = selected_table(snapshot, columns, Selected(fragment, physical, physical, {}))
        old = copies.table(old, row_addresses(fragment, physical))
        if first < last:
            place = physical - start
            place[rows[first:last] - start] = np.arange(last - first) + old.num_rows
            new = _like(values(fragment, first, last), old.schema, snapshot.manifest.schema)
            old = taken_rows(pa.concat_tables([old, new]), from_integers(place))
        yield from old.to_batches()


def _like(new: pa.Table, target_schema: pa.Schema, schema: Schema) -> pa.Table:
    """Return new values in the form of the old ones: bytes of blobs beside stored payloads."""
    arrays = []
    for field in target_schema:
        values = new.column(field.name)
        stored = schema.field(quoted([field.name]))
        if holds_blobs(stored):
            arrays.append(fit(values.combine_chunks(), stored, field.type))
        else:
            arrays.append(cast_array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=target_schema)


SAVED_BYTES_MIN = 4 * 1024 * 1024
"""What columns must save: below, rows are rewritten, as pylance does."""


def columns_are_cheaper(
    snapshot: Snapshot, touched: Sequence[tuple[Fragment, int]], part: Schema
) -> bool:
    """Compare, for the number of rows that change in each fragment and the columns that do."""
    changing = sum(count for _, count in touched)
    if not changing:
        return False
    stored = sum(max(fragment.physical_rows, 1) for fragment, _ in touched)
    whole, some = _widths(snapshot, touched[0][0], part)
    return changing * whole > stored * some + SAVED_BYTES_MIN / 2


def _widths(snapshot: Snapshot, fragment: Fragment, part: Schema) -> tuple[float, float]:
    """Return the stored bytes per row of the fragment, and of the columns of ``part`` in it."""
    field_ids = {field.id for field in part.walk()}
    whole = some = 0
    for file in fragment.files:
        live = {column: field for field, column in columns_of(fragment, file).items()}
        for page in open_file(snapshot, fragment, file).list_pages():
            field = live.get(page.column)
            if field is not None:
                size = page.size_bytes or 0
                whole += size
                some += size if field in field_ids else 0
    for blob, size in payload_bytes(snapshot, fragment).items():
        whole += size
        some += size if blob in field_ids else 0
    rows = max(fragment.physical_rows, 1)
    return whole / rows, some / rows


Updates = Mapping[str, str]


def _no_progress(num_rows: int) -> None:
    """Tell nobody how many rows are done."""


def rewrite_rows(
    snapshot: Snapshot,
    updates: Updates,
    choice: RowChoice,
    options: WriteOptions,
    touched: Sequence[Touched] | None = None,
    *,
    progress: Callable[[int], None] = _no_progress,
) -> RowRewrite:
    """Write the chosen rows again, with values from SQL expressions.

    ``touched``: the rows, if they have been looked for already. ``progress`` is called with numbers
    of rows that have been written. Raises ColumnNotFoundError, InvalidInputError, PredicateError,
    NotSupportedError; no file remains then.
    """
    schema = snapshot.manifest.schema
    check_updates(schema, updates)
    change = _Change(snapshot, shape_of(schema, dict(updates), payloads=True))
    every = project(schema, None, [ROW_ID])
    if touched is None:
        rows = select_rows(snapshot, choice, every)
    else:
        rows = _in_windows(snapshot, touched, every)
    text = "" if choice.filter is None else choice.filter.text
    new_values = change.compute, tuple(updates)
    return _written_again(
        snapshot, change.parts(rows), new_values, options, text=text, progress=progress
    )


def rewrite_given(
    snapshot: Snapshot,
    names: Sequence[str],
    touched: Sequence[Touched],
    values: Callable[[Selected], pa.Table],
    options: WriteOptions,
    *,
    progress: Callable[[int], None] = _no_progress,
) -> RowRewrite:
    """Write rows again, with values that the caller has for the columns ``names``.

    ``values`` returns these columns for some of the rows. Raises NotSupportedError, StorageError;
    no file remains then.
    """
    every = project(snapshot.manifest.schema, None, [ROW_ID])
    rows = _in_windows(snapshot, touched, every)
    return _written_again(
        snapshot, rows, (values, tuple(names)), options, text="", progress=progress
    )


def _written_again(
    snapshot: Snapshot,
    rows: Iterable[Selected],
    new_values: tuple[Callable[[Selected], pa.Table], tuple[str, ...]],
    options: WriteOptions,
    *,
    text: str,
    progress: Callable[[int], None],
) -> RowRewrite:
    """Write rows again; ``new_values`` gives the new values of the columns that it names."""
    schema = snapshot.manifest.schema
    every = project(schema, None, [ROW_ID])
    copies = BlobCopies(snapshot)
    deletions, ids = [], []
    with FragmentWriter(schema, snapshot.locations.home, copying(options, copies)) as writer:
        for fragment, windows in groupby(rows, key=lambda selection: selection.fragment):
            offsets = []
            for part in windows:
                window = _decoded(snapshot, every, part)
                table = _changed_table(
                    snapshot, every, window, changed=new_values[0](window), copies=copies
                )
                ids.append(to_integers(one_array(table.column(ROW_ID))))
                for batch in table.drop_columns([ROW_ID]).to_batches():
                    writer.write(batch)
                offsets.append(window.physical)
                progress(len(window.physical))
            deletions.append(deletion_of(snapshot, fragment, np.concatenate(offsets)))
        fragments = writer.finish()
    if snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
        fragments = list(with_row_ids(fragments, ids))
    return RowRewrite(
        DeletionPlan(snapshot.version, text, tuple(deletions)),
        tuple(fragments),
        tuple(field.id for name in new_values[1] for field in schema.field(quoted([name])).walk()),
    )


def _decoded(snapshot: Snapshot, columns: Projection, rows: Selected) -> Selected:
    """Return the rows with their columns: new values are made of them, and they are written."""
    stored = read_columns(snapshot, columns.columns, rows)
    keys = map(column_key, columns.columns)
    return replace(rows, decoded={**rows.decoded, **dict(zip(keys, stored, strict=True))})


def _changed_table(
    snapshot: Snapshot, every: Projection, rows: Selected, changed: pa.Table, copies: BlobCopies
) -> pa.Table:
    """Read rows with their row ids, and put the values that were made for them in their places."""
    table = selected_table(snapshot, every, rows)
    if copies:
        addresses = row_addresses(rows.fragment, rows.physical)
        table = copies.table(table, addresses, without=changed.schema.names)
    for name in changed.schema.names:
        place = table.schema.get_field_index(name)
        field = _written(snapshot, table.schema.field(place))
        table = table.set_column(place, field, cast(changed.column(name), field))
    return table


def _in_windows(
    snapshot: Snapshot, touched: Sequence[Touched], projection: Projection
) -> Iterator[Selected]:
    for fragment, rows in touched:
        step = window_rows(snapshot, projection, fragment)
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            yield Selected(fragment, part, part, {})


def find_rows(snapshot: Snapshot, choice: RowChoice) -> list[Touched]:
    """Return the chosen rows of every fragment that has any. Raises PredicateError."""
    rows = select_rows(snapshot, choice, project(snapshot.manifest.schema, []))
    return [
        (fragment, np.concatenate([window.physical for window in windows]))
        for fragment, windows in groupby(rows, key=lambda selection: selection.fragment)
    ]


def rewrite_values(
    snapshot: Snapshot,
    updates: Updates,
    touched: Sequence[Touched],
    options: WriteOptions,
    *,
    progress: Callable[[int], None] = _no_progress,
) -> ColumnRewrite:
    """Write the updated columns of all rows again, beside the others; rows stay where they are.

    Raises as ``rewrite_rows`` does; no file remains then.
    """
    schema = snapshot.manifest.schema
    check_updates(schema, updates)
    part = updated_part(schema, updates)
    change = _Change(snapshot, shape_of(schema, dict(updates), payloads=True))
    rows_of = {fragment.id: rows for fragment, rows in touched}

    def values(fragment: Fragment, first: int, last: int) -> pa.Table:
        rows = rows_of[fragment.id][first:last]
        table = change.values(Selected(fragment, rows, rows, {}), part.to_arrow())
        progress(len(rows))
        return table

    return rewrite_columns(snapshot, part, touched, values=values, options=options)


def updated_part(schema: Schema, updates: Updates) -> Schema:
    """Return the columns that an update changes, in the order of the schema."""
    return Schema(tuple(field for field in schema if field.name in updates), schema.metadata)


def check_updates(schema: Schema, updates: Updates) -> None:
    """Check that columns exist and that values are text. Raises InvalidInputError."""
    if not updates:
        raise InvalidInputError(
            'no updates: give a column and an expression, {"price": "price * 2"}'
        )
    for name, text in updates.items():
        if name not in schema.names:
            raise ColumnNotFoundError(name, tuple(schema.names))
        if not isinstance(text, str):
            raise InvalidInputError(
                f"the new value of {name!r} is an SQL expression, text, not {type(text).__name__}; "
                f'write a string value in quotes: {{"{name}": "\'text\'"}}'
            )


def has_blobs(schema: Schema) -> bool:
    """Return whether rows of the schema have payloads that sizes of data files do not show."""
    return any(holds_blobs(field) for field in schema)


@dataclass(frozen=True, slots=True)
class _Change:
    """How rows get their new values from expressions."""

    snapshot: Snapshot
    shape: Shape

    def parts(self, windows: Iterable[Selected]) -> Iterator[Selected]:
        """Cut windows where expressions see the bytes of blobs, so that these fit into memory."""
        for window in windows:
            step = None
            if self.shape.reads_payloads:
                names = self.shape.source.schema.names
                step = payload_rows(self.snapshot, window.fragment, names, None)
            for start in range(0, window.num_rows, step or max(window.num_rows, 1)):
                yield window.part(start, start + (step or window.num_rows))

    def compute(self, rows: Selected) -> pa.Table:
        """Compute new values; expressions see the bytes of blobs."""
        source = selected_table(self.snapshot, self.shape.source, rows)
        if self.shape.reads_payloads:
            addresses = row_addresses(rows.fragment, rows.physical).tolist()
            (batch,) = source.combine_chunks().to_batches()
            batch = rows_with_payloads(self.snapshot, batch, addresses)
            source = pa.Table.from_batches([batch])
        return self.shape.table(source)

    def values(self, rows: Selected, target_schema: pa.Schema) -> pa.Table:
        """Compute the new values of rows, in the types of ``target_schema``."""
        changed = self.compute(rows)
        fields = [_written(self.snapshot, field) for field in target_schema]
        arrays = [cast(changed.column(field.name), field) for field in fields]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _written(snapshot: Snapshot, field: pa.Field) -> pa.Field:
    """Return the form in which new values of a column are made: of blobs, their bytes."""
    if is_blob(snapshot.manifest.schema.field(quoted([field.name]))):
        return pa.field(field.name, pa.large_binary(), field.nullable)
    return field


def cast(values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return values in the type of a column; fractions are cut off.

    Raises PredicateError for a value that does not fit.
    """
    if values.type == field.type:
        return values
    options: Any = pc.CastOptions(
        field.type, allow_float_truncate=True, allow_time_truncate=True, allow_decimal_truncate=True
    )
    try:
        for chunk in values.chunks:
            _check_integers(chunk, field.type)
        return pc.cast(with_items(values, field.type), options=options)
    except pa.ArrowException as exc:
        raise PredicateError(f"the new value of {field.name!r} is no {field.type}: {exc}") from exc


def _check_integers(values: pa.Array, type_: pa.DataType) -> None:
    """Raise pyarrow.ArrowInvalid for floats that are too large for integers, or not a number.

    Where Arrow may cut fractions off, it also lets such values become any integer.
    """
    kinds = pa.types
    if kinds.is_floating(values.type) and kinds.is_integer(type_):
        pc.trunc(values).cast(type_)
    elif hasattr(values.type, "value_field") and hasattr(type_, "value_field"):
        _check_integers(values.flatten(), type_.value_type)
    elif kinds.is_struct(values.type) and kinds.is_struct(type_):
        for part, child in zip(values.type, values.flatten(), strict=True):
            place = type_.get_field_index(part.name)
            if place >= 0:
                _check_integers(child, type_.field(place).type)


def with_row_ids(fragments: Sequence[Fragment], ids: Sequence[np.ndarray]) -> Iterator[Fragment]:
    """Give rows their stable ids, which are in the order of the rows.

    Rows behind those that have ids are new: they get theirs at the commit.
    """
    row_ids = np.concatenate([np.zeros(0, np.uint64), *ids])
    start = 0
    for fragment in fragments:
        mine = row_ids[start : start + fragment.physical_rows].astype(np.uint64)
        start += fragment.physical_rows
        if not mine.size:
            yield fragment
            continue
        sequence = RowIdSegments.from_numpy(mine)
        yield replace(fragment, row_id_meta=RowIdMeta.inline(sequence.to_bytes()))
