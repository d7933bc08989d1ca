"""Change the columns of a dataset: drop, rename, retype, add, join.

Dropping, renaming and changing nullability write no data. New values go to new column files, one
per fragment, beside the existing ones. A cast gives a column a new field id; its values are written
fragment by fragment, here or in tasks elsewhere.

The values of new columns come from expressions, functions, streams, joins and casts. Each kind says
which columns it makes and gives their values fragment by fragment, for every physical row in order.
What is computed for deleted rows is never read, but it must not fail: a deleted row may hold a null
that the column no longer allows, or a number too large for the new type. So a deleted row is given
the values of a row that is not deleted; its row id is null.

Limits: files of version 2.0 cannot hold one field of a struct by itself; a column that has an index
is not cast. A stream is read once, fragment after fragment, a window of rows at a time; a join
holds its table in memory, and the key column of a fragment.
Source: ``LanceDataset.drop_columns``,
``alter_columns``, ``add_columns``, ``merge`` and ``LanceFragment.merge_columns`` of pylance 14.0.2;
messages ``DataFile`` and ``DataFragment`` of lance.table (a file holds every physical row).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_parts import one_batch, taken_rows
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import ColumnNotFoundError, NotSupportedError, SchemaMismatchError
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import count_of
from lance_nb.session.session import Session
from lance_nb.table.blob_scan import fragment_addresses, rows_with_payloads
from lance_nb.table.computed_columns import Shape, shape_of
from lance_nb.table.data_statistics import payload_rows
from lance_nb.table.filtered_scan import RowChoice
from lance_nb.table.indices import read_indices
from lance_nb.table.predicate import is_null_cast, null_filter
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, project
from lance_nb.table.row_selection import count_selected
from lance_nb.table.scan_plan import ScanOptions, plan_scan
from lance_nb.table.snapshot import Snapshot, storage_version
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.schema_change import (
    Alteration,
    altered,
    extend_schema,
    next_field_id,
    preserves_nullability,
    with_former_paths,
    without_fields,
)
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import commit_operation, replanned
from lance_nb.writing.fragment_writer import UncommittedFiles, WriteOptions
from lance_nb.writing.input_data import reader_of, without_views
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.rewriting import cast, write_columns
from lance_nb.writing.staged import Replacement
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
    left = _comparable(left)
    keys = cast(right[right_on], pa.field(right_on, left.type))
    backwards = from_integers(np.arange(len(keys))[::-1].copy())
    value_set = pc.take(keys, backwards).combine_chunks()
    # A deleted row has no row id and no partner; null keys match null keys, as in pylance.
    last = pc.index_in(left, value_set=value_set, skip_nulls=left_on == ROW_ID)
    position = pc.fill_null(last, -1).to_numpy().astype(np.int64)
    return np.where(position < 0, -1, len(keys) - 1 - position)


def _comparable(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return keys in a type that Arrow looks values up in: no dictionary, no float16."""
    if pa.types.is_dictionary(keys.type):
        return pc.cast(keys, keys.type.value_type)
    return pc.cast(keys, pa.float32()) if pa.types.is_float16(keys.type) else keys


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
        return pa.StructArray.from_arrays(
            children, fields=list(field.type), mask=pc.is_null(values)
        )
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


@dataclass(frozen=True, slots=True)
class Altered:
    """The schema after alterations; ``cast`` are the columns to write for it, if any."""

    schema: Schema
    keeps_nullability: bool
    cast: CastColumns | None = None


def look(snapshot: Snapshot, alterations: Sequence[Alteration]) -> Altered:
    """Say what alterations come to; reads values only to find nulls where there must be none.

    Raises ColumnNotFoundError, SchemaMismatchError (nulls in a column that is to have none, a cast
    of a column that has an index), NotSupportedError.
    """
    before = snapshot.manifest.schema
    alterations = with_former_paths(before, alterations)
    after = altered(before, alterations, next_field_id(snapshot.manifest))
    for alteration in alterations:
        if alteration.nullable is False and before.field(alteration.path).nullable:
            _check_no_nulls(snapshot, alteration.path)
    keeps = preserves_nullability(before, after)
    retyped = [
        replace(alteration, name=None, nullable=None)
        for alteration in alterations
        if alteration.data_type
    ]
    typed = altered(before, retyped, next_field_id(snapshot.manifest))
    old = {field.id for field in before.walk()}
    new = [field.id for field in typed.walk() if field.id not in old]
    if not new:
        return Altered(after, keeps)
    _check_no_indices(snapshot, old - {field.id for field in typed.walk()})
    cast = CastColumns(snapshot, typed.project_by_ids(new))
    if any(top.id in old for top in cast.part) and storage_version(snapshot.manifest) == "2.0":
        raise NotSupportedError(
            "in files of version 2.0, a single field of a struct cannot be cast; overwrite the "
            "dataset with data_storage_version='2.2' first"
        )
    return Altered(after, keeps, cast)


def _check_no_indices(snapshot: Snapshot, fields: AbstractSet[int]) -> None:
    """Refuse to cast fields that indices are on: these could not be used any more."""
    affected = [index for index in read_indices(snapshot) if not fields.isdisjoint(index.fields)]
    if affected:
        schema = snapshot.manifest.schema
        ids = {field_id for index in affected for field_id in index.fields if field_id in fields}
        paths = sorted(schema.path_of(field_id) or str(field_id) for field_id in ids)
        names = sorted({index.name for index in affected})
        raise SchemaMismatchError(
            f"{', '.join(map(repr, paths))} cannot be cast: {', '.join(names)} would no longer fit "
            "the values; call drop_index() first, and create the index again after the cast"
        )


def _check_no_nulls(snapshot: Snapshot, path: str) -> None:
    names = tuple(field.name for field in snapshot.manifest.schema.resolve(path))
    condition = null_filter(names, project(snapshot.manifest.schema, None).schema)
    count = count_selected(snapshot, RowChoice(condition))
    if count:
        raise SchemaMismatchError(
            f"column {path!r} has {count_of(count, 'null')} and cannot be made non-nullable; "
            "delete or update those rows first"
        )


class Work:
    """One attempt: where new files are noted, and who is counter how far it is."""

    def __init__(self, files: UncommittedFiles, progress: Progress | None = None) -> None:
        self.files = files
        self._progress = progress

    def write(
        self, snapshot: Snapshot, part: Schema, values: FragmentValues
    ) -> tuple[Fragment, ...]:
        """Write the values of new columns for every fragment."""
        fragments = snapshot.manifest.fragments
        counter = ProgressCounter(
            sum(fragment.physical_rows for fragment in fragments), self._progress
        )
        return tuple(
            self._write_one(snapshot, fragment, part, values=values, counter=counter)
            for fragment in fragments
        )

    def _write_one(
        self,
        snapshot: Snapshot,
        fragment: Fragment,
        part: Schema,
        values: FragmentValues,
        counter: ProgressCounter,
    ) -> Fragment:
        checkpointed = (
            values if isinstance(values, FunctionColumns) and values.is_checkpointed else None
        )
        stored = None if checkpointed is None else checkpointed.known_fragment(fragment, part)
        if stored is not None:
            counter.add(fragment.physical_rows)
            return stored
        batches = _counted(values.batches(fragment), counter)
        written = write_columns(
            snapshot.locations.home, fragment, part, batches=batches, options=options_of(snapshot)
        )
        if checkpointed is None:
            self.files.add(_new_files(fragment, written))
        else:
            checkpointed.keep_fragment(written)
        return written


Plan = Callable[[Snapshot, Work], Operation]


class FragmentValues(Protocol):
    """Values of new columns, fragment by fragment."""

    def batches(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Yield the values for all physical rows of a fragment; fragments come in order."""
        ...


def evolve(
    session: Session, snapshot: Snapshot, plan: Plan, progress: Progress | None = None
) -> Snapshot:
    """Commit a change of columns, planned again after a retryable conflict."""

    def attempt(base: Snapshot) -> Snapshot:
        with UncommittedFiles(base.locations.home) as files:
            operation = plan(base, Work(files, progress))
            files.offer()
            return commit_operation(session, base, operation)

    return replanned(session, snapshot, attempt)


def staged(snapshot: Snapshot, plan: Plan, progress: Progress | None = None) -> Replacement:
    """Make a change of columns as an edit that is not committed."""
    with UncommittedFiles(snapshot.locations.home) as files:
        return replacement(snapshot, plan(snapshot, Work(files, progress)))


def replacement(snapshot: Snapshot, operation: Operation) -> Replacement:
    """Return a change of columns as an edit that owns the files that were written for it."""
    if not isinstance(operation, Merge):
        return Replacement(operation)
    written = tuple(
        Fragment(after.id, added, 0)
        for before, after in zip(snapshot.manifest.fragments, operation.fragments, strict=True)
        if (added := _new_files(before, after))
    )
    return Replacement(operation, written)


def _new_files(before: Fragment, after: Fragment) -> tuple[DataFile, ...]:
    paths = {file.path for file in before.files}
    return tuple(file for file in after.files if file.path not in paths)


def _counted(
    batches: Iterable[pa.RecordBatch], counter: ProgressCounter
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        counter.add(batch.num_rows)


def alterations_of(changes: Sequence[Any]) -> list[Alteration]:
    """Read the arguments of ``alter_columns``. Raises InvalidInputError."""
    return [Alteration.of(change) for change in changes]


def drop(snapshot: Snapshot, columns: Sequence[str]) -> Operation:
    """Drop columns. Raises ColumnNotFoundError, InvalidInputError."""
    return Project(without_fields(snapshot.manifest.schema, columns), preserves_nullability=True)


def alter(snapshot: Snapshot, alterations: Sequence[Alteration], work: Work) -> Operation:
    """Rename columns, change whether they may be null, or cast them; raises as ``look`` does."""
    changed = look(snapshot, alterations)
    if changed.cast is None:
        return Project(changed.schema, preserves_nullability=changed.keeps_nullability)
    fragments = work.write(snapshot, changed.cast.part, changed.cast)
    return Merge(fragments, changed.schema, preserves_nullability=changed.keeps_nullability)


@dataclass(frozen=True, slots=True)
class NewColumns:
    """What ``add_columns`` was asked for."""

    transforms: Any
    read_columns: Sequence[str] | None = None
    reader_schema: pa.Schema | None = None
    batch_size: int | None = None


def add(snapshot: Snapshot, new_columns: NewColumns, work: Work) -> Operation:
    """Add columns: of nulls, of SQL expressions, by a function, or streamed in row order."""
    fields = null_fields(snapshot, new_columns.transforms)
    if fields is not None:
        schema, part = extend_schema(snapshot.manifest, fields)
        for field in _topmost_new(snapshot.manifest.schema, part):
            if not field.nullable:
                raise SchemaMismatchError(
                    f"column {field.name!r} would contain only nulls: make it nullable"
                )
        return Merge(tuple(snapshot.manifest.fragments), schema, preserves_nullability=True)
    values = values_of(
        snapshot,
        new_columns.transforms,
        columns=new_columns.read_columns,
        batch_size=new_columns.batch_size,
        reader_schema=new_columns.reader_schema,
    )
    return _merged(snapshot, values, work)


def merge(snapshot: Snapshot, right: pa.Table, on: tuple[str, str], work: Work) -> Operation:
    """Add the columns of a table by a left join. Raises ColumnNotFoundError."""
    return _merged(snapshot, JoinedColumns(snapshot, right, on), work)


def forget(transforms: Any) -> None:
    """Remove the checkpoint of a function whose columns are committed."""
    if isinstance(transforms, BatchUDF) and transforms.cache is not None:
        transforms.cache.cleanup()


def read_right(data: Any, schema: pa.Schema | None) -> pa.Table:
    """Return the table that is joined."""
    return without_views(reader_of(data, schema)).read_all()


def _merged(snapshot: Snapshot, values: ColumnValues, work: Work) -> Operation:
    schema, part = extend_schema(snapshot.manifest, values.schema)
    lists = [field.name for field in part if field.logical_type.endswith("list.struct")]
    names = set(snapshot.manifest.schema.names)
    if names.intersection(lists):
        raise NotSupportedError(
            f"column {lists[0]!r} is a list of structs: a field can be added to them only as "
            "nulls (pass a schema), not with values"
        )
    fragments = work.write(snapshot, part, values)
    values.finish()
    keeps = preserves_nullability(snapshot.manifest.schema, schema)
    return Merge(fragments, schema, preserves_nullability=keeps)


def _topmost_new(schema: Schema, fields: Iterable[Field]) -> Iterator[Field]:
    """Yield new fields whose parents are not new: what is below a null need not be nullable."""
    for field in fields:
        if schema.field_by_id(field.id) is None:
            yield field
        else:
            yield from _topmost_new(schema, field.children)


def null_fields(snapshot: Snapshot, transforms: Any) -> pa.Schema | None:
    """Return columns that are null in every row and need no files, None for others."""
    if isinstance(transforms, pa.Schema):
        return transforms
    if isinstance(transforms, Mapping) and not transforms:
        return pa.schema([])
    if isinstance(transforms, Mapping) and all(isinstance(v, str) for v in transforms.values()):
        if all(map(is_null_cast, transforms.values())):
            return values_of(
                snapshot, transforms, columns=None, batch_size=None, reader_schema=None
            ).schema
        return None
    if isinstance(transforms, pa.Field):
        return pa.schema([transforms])
    is_list = isinstance(transforms, list) and transforms
    if is_list and all(isinstance(transform, pa.Field) for transform in transforms):
        return pa.schema(transforms)
    return None
