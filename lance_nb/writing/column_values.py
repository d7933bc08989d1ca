"""The values of new columns: from expressions, functions, streams, joins and casts.

Each kind says which columns it makes and gives their values fragment by fragment, for every
physical row in order. What is computed for deleted rows is never read, but it must not fail: a
deleted row may hold a null that the column no longer allows, or a number too large for the new
type. So a deleted row is given the values of a row that is not deleted; its row id is null.

Limits: a stream is read once, fragment after fragment, a window of rows at a time; a join holds its
table in memory, and the key column of a fragment.
Source: ``LanceDataset.add_columns`` and ``LanceFragment.merge_columns`` of pylance 14.0.2; messages
``DataFile`` and ``DataFragment`` of lance.table (a file holds every physical row).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import one_batch, taken_rows
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import ColumnNotFoundError, NotSupportedError, SchemaMismatchError
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import count_of
from lance_nb.table.blob_scan import fragment_addresses, rows_with_payloads
from lance_nb.table.computed_columns import Shape, shape_of
from lance_nb.table.data_statistics import payload_rows
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.scan_plan import ScanOptions, plan_scan
from lance_nb.table.snapshot import Snapshot, storage_version
from lance_nb.value_classes import dataclass
from lance_nb.writing.fragment_writer import WriteOptions
from lance_nb.writing.input_data import reader_of, without_views
from lance_nb.writing.row_rewrite import cast
from lance_nb.writing.udf_columns import BatchUDF, FunctionColumns


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
    other = plan_scan(snapshot, options).table().to_batches()
    for batch in stored:
        is_live = batch.column(ROW_ID).is_valid().to_numpy(zero_copy_only=False)
        joined = pa.Table.from_batches([batch.drop_columns([ROW_ID]), *other])
        chosen = np.where(is_live, np.arange(len(is_live)), min(len(is_live), len(joined) - 1))
        yield one_batch(taken_rows(joined, from_integers(chosen)))


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
    return plan_scan(snapshot, options).batches()


def row_ids(snapshot: Snapshot, fragment: Fragment) -> pa.ChunkedArray:
    """Return the row ids of all rows that are stored, null where the row is deleted."""
    options = ScanOptions([], with_row_id=True, fragments=(fragment,), include_deleted_rows=True)
    return plan_scan(snapshot, options).table().column(ROW_ID)


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
    import pyarrow.compute as pc

    left = _comparable(left)
    keys = cast(right[right_on], pa.field(right_on, left.type))
    backwards = from_integers(np.arange(len(keys))[::-1].copy())
    value_set = keys.take(backwards).combine_chunks()
    # A deleted row has no row id and no partner; null keys match null keys, as in pylance.
    last = pc.index_in(left, value_set=value_set, skip_nulls=left_on == ROW_ID)
    position = pc.fill_null(last, -1).to_numpy().astype(np.int64)
    return np.where(position < 0, -1, len(keys) - 1 - position)


def _comparable(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return keys in a type that Arrow looks values up in: no dictionary, no float16."""
    if pa.types.is_dictionary(keys.type):
        return keys.cast(keys.type.value_type)
    return keys.cast(pa.float32()) if pa.types.is_float16(keys.type) else keys


def integers_or_null(positions: np.ndarray) -> pa.Array:
    """Return positions as an Arrow array, the negative ones null."""
    return pa.array(positions, pa.int64(), mask=positions < 0)


_WINDOW_ROWS = 64 * 1024


class ColumnValues(Protocol):
    """The values of new columns."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that are made."""
        ...

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Yield the values for all physical rows of a fragment; fragments come in order."""
        ...

    def finish(self) -> None:
        """Check that nothing is left over, after the last fragment."""
        ...


def values_of(
    snapshot: Snapshot,
    source: Any,
    *,
    columns: Sequence[str] | None,
    batch_size: int | None,
    reader_schema: pa.Schema | None,
    is_whole: bool = True,
) -> ColumnValues:
    """Return the values that ``add_columns`` was given. Raises InvalidInputError.

    ``is_whole``: a stream has the rows of all fragments, not of one.
    """
    if isinstance(source, Mapping) and source and all(isinstance(v, str) for v in source.values()):
        shape = shape_of(snapshot.manifest.schema, dict(source), payloads=True)
        return ExpressionColumns(snapshot, dict(source), batch_size, shape)
    if callable(source) and not hasattr(source, "__arrow_c_stream__"):
        function = source if isinstance(source, BatchUDF) else BatchUDF(source)
        return FunctionColumns(snapshot, function, columns, batch_size)
    reader = without_views(reader_of(source, reader_schema))
    return StreamedColumns(snapshot, reader, is_whole=is_whole)


@dataclass(frozen=True, slots=True)
class ExpressionColumns:
    """Columns of SQL expressions over those that are there."""

    snapshot: Snapshot
    expressions: dict[str, str]
    batch_size: int | None
    shape: Shape

    @property
    def schema(self) -> pa.Schema:
        """The columns that are made, without the metadata of columns that they only copy."""
        return pa.schema([field.remove_metadata() for field in self.shape.schema])

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Compute the values."""
        shape = self.shape
        if not shape.reads_payloads:
            yield from physical_batches(self.snapshot, fragment, self.expressions, self.batch_size)
            return
        names = shape.source.schema.names
        size = payload_rows(self.snapshot, fragment, names, self.batch_size)
        for batch in physical_batches(self.snapshot, fragment, names, size):
            rows = _with_payloads(self.snapshot, fragment, batch)
            yield from shape.table(pa.Table.from_batches([rows])).to_batches()

    def finish(self) -> None:
        """Do nothing: every row was computed."""


class StreamedColumns:
    """Columns that come as a stream with one row per live row, in order."""

    def __init__(self, snapshot: Snapshot, reader: pa.RecordBatchReader, *, is_whole: bool) -> None:
        self._snapshot = snapshot
        self._reader = reader
        self._is_whole = is_whole
        self._waiting: list[pa.RecordBatch] = []

    @property
    def schema(self) -> pa.Schema:
        """The columns of the stream."""
        return self._reader.schema

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Put values for the live rows at their physical places; deleted rows get one of them."""
        table = self._next_rows(fragment.num_rows)
        if not self._is_whole:
            self.finish()
        if not fragment.num_deleted_rows:
            yield from table.to_batches()
            return
        is_live = row_ids(self._snapshot, fragment).is_valid().to_numpy()
        place = np.maximum(np.cumsum(is_live) - 1, 0)
        yield from taken_rows(table, pa.array(place)).to_batches()

    def finish(self) -> None:
        """Refuse a stream that has rows left."""
        if any(part.num_rows for part in self._waiting) or self._pull():
            raise SchemaMismatchError(
                "the new columns have too many rows: expected one value for each row that is not "
                "deleted, in row order"
            )

    def _next_rows(self, count: int) -> pa.Table:
        parts, missing = [], count
        while missing and (self._waiting or self._pull()):
            batch = self._waiting.pop(0)
            if batch.num_rows > missing:
                self._waiting.insert(0, batch.slice(missing))
                batch = batch.slice(0, missing)
            parts.append(batch)
            missing -= batch.num_rows
        if missing:
            raise SchemaMismatchError(
                f"the new columns end {count_of(missing, 'row')} too early: expected one value "
                "for each row that is not deleted, in row order"
            )
        return pa.Table.from_batches(parts, self._reader.schema)

    def _pull(self) -> bool:
        """Read a batch with rows; False at the end of the stream."""
        for batch in self._reader:
            if batch.num_rows:
                self._waiting.append(batch)
                return True
        return False


@dataclass(frozen=True, slots=True)
class JoinedColumns:
    """The columns of a table, by a left join on (our column, its column)."""

    snapshot: Snapshot
    right: pa.Table
    on: tuple[str, str]

    def __post_init__(self) -> None:
        """Check the keys.

        Raises ColumnNotFoundError, SchemaMismatchError, NotSupportedError.
        """
        left_on, right_on = self.on
        if right_on not in self.right.schema.names:
            raise ColumnNotFoundError(right_on, tuple(self.right.schema.names))
        given_type = self.right.schema.field(right_on).type
        if left_on in (ROW_ID, ROW_ADDRESS):
            expected_type = pa.uint64()
        else:
            expected_type = key_type(self.snapshot.manifest.schema, left_on)
        if not _fits(given_type, expected_type):
            raise SchemaMismatchError(
                f"key {right_on!r} has type {given_type}, but {left_on!r} of the dataset has type "
                f"{expected_type}: cast one of them"
            )
        if pa.types.is_nested(given_type) or isinstance(given_type, pa.BaseExtensionType):
            raise NotSupportedError(
                f"key {right_on!r} has type {given_type}: a key must not have a nested or "
                "extension type"
            )
        if len(self.right.schema.names) < 2:
            raise SchemaMismatchError(
                "the data has no columns besides the key, so there is nothing to add"
            )

    @property
    def schema(self) -> pa.Schema:
        """All columns of the table but the key."""
        right = self.right.schema
        return pa.schema([field for field in right if field.name != self.on[1]], right.metadata)

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Return the values of the partners, null without one.

        Raises SchemaMismatchError for a row without a partner when a column must not be null.
        """
        partner = partners(self.snapshot, fragment, self.right, self.on)
        required = [field.name for field in self.schema if not field.nullable]
        if required:
            partner = self._with_partners(fragment, partner, required[0])
        added = self.right.drop_columns([self.on[1]])
        for start in range(0, len(partner), _WINDOW_ROWS):
            window = partner[start : start + _WINDOW_ROWS]
            yield from taken_rows(added, integers_or_null(window)).to_batches()

    def _with_partners(self, fragment: Fragment, partner: Any, required: str) -> Any:
        """Check that every live row has a partner; deleted rows without one get any."""
        unmatched = partner < 0
        if not unmatched.any():
            return partner
        is_live = row_ids(self.snapshot, fragment).is_valid().to_numpy(zero_copy_only=False)
        count = int((unmatched & is_live).sum())
        if count:
            raise SchemaMismatchError(
                f"column {required!r} must not be null; rows without a matching key: {count:,}. "
                "Make the column nullable, or provide a row for each key"
            )
        return np.where(unmatched, 0, partner)

    def finish(self) -> None:
        """Do nothing: a join uses what it needs."""


def key_type(schema: Schema, path: str) -> pa.DataType:
    """Return the type of a column. Raises ColumnNotFoundError."""
    return Schema((schema.field(path),), {}).to_arrow().field(0).type


def _fits(given_type: pa.DataType, column_type: pa.DataType) -> bool:
    """Tell whether keys of the two types are compared; text is text however it is stored."""
    if given_type == column_type:
        return True
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    return any(is_kind(given_type) for is_kind in texts) and any(
        is_kind(column_type) for is_kind in texts
    )


@dataclass(frozen=True, slots=True)
class CastColumns:
    """Columns that are there, in other types. ``part`` names them, with their new field ids."""

    snapshot: Snapshot
    part: Schema

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Cast the values. Raises PredicateError for one that does not fit."""
        schema = self.part.to_arrow()
        size = payload_rows(self.snapshot, fragment, self.part.names, None)
        for batch in physical_batches(self.snapshot, fragment, self.part.names, size):
            rows = _with_payloads(self.snapshot, fragment, batch)
            arrays = [_cast_part(rows.column(place), field) for place, field in enumerate(schema)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast_part(values: pa.Array, field: pa.Field) -> pa.Array:
    """Cast a column; of a struct only the fields that are wanted, its own nulls kept."""
    if pa.types.is_struct(field.type):
        children = [
            _cast_part(values.field(values.type.get_field_index(child.name)), child)
            for child in field.type
        ]
        return pa.StructArray.from_arrays(children, fields=list(field.type), mask=values.is_null())
    if pa.types.is_nested(values.type) and any(
        pa.types.is_struct(values.type.field(place).type) for place in range(values.type.num_fields)
    ):
        raise NotSupportedError(
            f"column {field.name!r} is a list of structs, and a single field of them cannot be "
            "cast; add a column with add_columns instead"
        )
    array = cast(pa.chunked_array([values]), field)
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _with_payloads(snapshot: Snapshot, fragment: Fragment, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a fragment with the bytes of blobs, not their descriptions."""
    return rows_with_payloads(snapshot, rows, fragment_addresses(fragment, rows.num_rows))


def options_of(snapshot: Snapshot) -> WriteOptions:
    """Return how new column files are written: in the dataset's file version."""
    manifest = snapshot.manifest
    return WriteOptions(
        file_version=file_version_of(storage_version(manifest)),
        file=FileOptions(checksums=wants_checksums(manifest.config)),
    )
