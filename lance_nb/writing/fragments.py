"""Fragment by fragment: write, delete rows, add columns, replace columns; commit them later.

These are the steps of a distributed write: workers make fragments, one process commits them with
``LanceDataset.commit``.

Source: ``lance.fragment.write_fragments`` and ``LanceFragment`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.arrow_casts import cast_array
from lance_nb.encodings.arrow_parts import taken
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    NotSupportedError,
    SchemaMismatchError,
)
from lance_nb.file.fitting import fit
from lance_nb.file.reader import FileReader
from lance_nb.format import layout
from lance_nb.format.blob_fields import holds_blobs
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DataFile, DeletionFileType, Fragment
from lance_nb.format.lance_schema import LanceSchema
from lance_nb.format.schema import Field, Schema
from lance_nb.session.opening import Destination, destination
from lance_nb.session.session import Session
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.scan import row_addresses
from lance_nb.table.single_file import data_file
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.deletion_files import PendingDeletions
from lance_nb.transactions.environment import new_uuid
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.schema_change import extend_schema, writable_part
from lance_nb.transactions.transaction import Transaction
from lance_nb.writing import writing
from lance_nb.writing.deleting import plan as plan_delete
from lance_nb.writing.deleting import plan_offsets
from lance_nb.writing.fragment_writer import copying
from lance_nb.writing.input_data import reader_of, without_views
from lance_nb.writing.rewriting import write_columns
from lance_nb.writing.schema_evolution import (
    ColumnValues,
    JoinedColumns,
    options_of,
    partners,
    physical_batches,
    values_of,
)
from lance_nb.writing.staged import DeletionPlan

_ONE_FILE = 1 << 62


def write_fragments(
    session: Session,
    current: Snapshot | None,
    data: Any,
    request: writing.WriteRequest,
    *,
    mode: str,
    schema: pa.Schema | None,
) -> Transaction:
    """Write rows and return the transaction that would add them; it is not committed."""
    staged = writing.stage_rows(session, current, data, request, mode=mode, schema=schema)
    properties = dict(request.transaction_properties)
    return Transaction(
        staged.read_version, staged.operation, new_uuid(), transaction_properties=properties
    )


def fragments_of(transaction: Transaction) -> list[Fragment]:
    """Return the fragments that a transaction adds."""
    operation = transaction.operation
    return list(operation.fragments) if isinstance(operation, Append | Overwrite) else []


def create_one(
    place: Destination, data: Any, schema: pa.Schema | None, *, mode: str, **options: Any
) -> Fragment:
    """Write rows as one fragment, however many they are."""
    session, current = destination(
        place, options.pop("storage_options", None), options.pop("allow_bases", ())
    )
    request = writing.WriteRequest(
        **options, max_rows_per_file=_ONE_FILE, max_bytes_per_file=_ONE_FILE
    )
    transaction = write_fragments(session, current, data, request, mode=mode, schema=schema)
    fragments = fragments_of(transaction)
    if not fragments:
        raise InvalidInputError("no rows were given: a fragment must have at least one row")
    return fragments[0]


def from_file(snapshot: Snapshot, name: str, fragment_id: int) -> Fragment:
    """Describe a file in the data folder that no fragment names, or that one has lost.

    Raises ObjectNotFoundError, SchemaMismatchError, CorruptFileError, NotSupportedError.
    """
    reader, part = _opened(snapshot, name, None)
    missing = [field.name for field in snapshot.manifest.schema if field.name not in part.names]
    if missing:
        raise SchemaMismatchError(f"{name} has no column {missing[0]!r}, but the dataset has")
    file = data_file(reader, part, name, size_bytes=reader.size_bytes)
    return numbered(Fragment(0, (file,), reader.num_rows), fragment_id)


def describe_file(snapshot: Snapshot, name: str, base_id: int | None) -> DataFile:
    """Describe a file in a data folder, which may hold some of the columns only.

    Raises ObjectNotFoundError, SchemaMismatchError, CorruptFileError, NotSupportedError.
    """
    reader, part = _opened(snapshot, name, base_id)
    return data_file(reader, part, name, base_id=base_id, size_bytes=reader.size_bytes)


def _opened(snapshot: Snapshot, name: str, base_id: int | None) -> tuple[FileReader, Schema]:
    """Return a reader of a data file, and its columns with the ids of the dataset."""
    path = f"{layout.DATA}/{layout.check_relative_path(name)}"
    reader = snapshot.files.get(*snapshot.locations.locate(path, base_id))
    if not isinstance(reader, FileReader):
        raise NotSupportedError(
            f"{name}: a file of version 0.1 does not record which columns it has"
        )
    part = writable_part(reader.schema.to_arrow(), snapshot.manifest.schema)
    return reader, Schema(_in_file_order(part.fields, reader.schema.fields))


def _in_file_order(fields: Sequence[Field], order: Sequence[Field]) -> tuple[Field, ...]:
    """Return fields of the dataset in the order of a file, which numbers its columns by it."""
    place = {field.name: position for position, field in enumerate(order)}
    if place.keys() != {field.name for field in fields}:
        return tuple(fields)  # the parts of a blob, which are no columns
    ordered = sorted(fields, key=lambda field: place[field.name])
    return tuple(
        replace(field, children=_in_file_order(field.children, order[place[field.name]].children))
        for field in ordered
    )


def numbered(fragment: Fragment, fragment_id: int) -> Fragment:
    """Return the fragment with an id of the caller's choice. Raises InvalidInputError."""
    check_id(fragment_id)
    return replace(fragment, id=fragment_id)


def check_id(fragment_id: int) -> None:
    """Raise InvalidInputError for what is no fragment id."""
    if not 0 <= fragment_id < 2**32:
        raise InvalidInputError(f"fragment id {fragment_id} must be between 0 and 2**32 - 1")


# --- rows out -------------------------------------------------------------------------------------


def delete(snapshot: Snapshot, fragment: Fragment, predicate: Any) -> Fragment | None:
    """Delete the rows that pass a filter; None when no row is left."""
    return _changed(snapshot, fragment, plan_delete(snapshot, predicate, [fragment]))


def delete_rows(snapshot: Snapshot, fragment: Fragment, offsets: Iterable[int]) -> Fragment | None:
    """Delete rows by their physical offset; None when no row is left."""
    unique_offsets = np.unique(np.fromiter(offsets, np.int64))
    num_rows = confirmed_rows(snapshot, fragment)
    outside = unique_offsets[(unique_offsets < 0) | (unique_offsets >= num_rows)]
    if outside.size:
        raise InvalidInputError(
            f"row offset {outside[0]} is outside fragment {fragment.id}, which has {num_rows} "
            "physical rows"
        )
    return _changed(snapshot, fragment, plan_offsets(snapshot, fragment, unique_offsets))


def _changed(snapshot: Snapshot, fragment: Fragment, plan: DeletionPlan) -> Fragment | None:
    pending = PendingDeletions(checksums=wants_checksums(snapshot.manifest.config))
    updated, removed = plan.changes(pending)
    pending.write(snapshot.locations.home)
    if removed:
        return None
    return updated[0] if updated else fragment


# --- columns in -----------------------------------------------------------------------------------


def merge_columns(
    snapshot: Snapshot,
    fragment: Fragment,
    values: Any,
    *,
    columns: Sequence[str] | None,
    batch_size: int | None,
    reader_schema: pa.Schema | None,
) -> tuple[Fragment, LanceSchema]:
    """Add columns made of expressions, by a function of batches, or streamed in row order."""
    column_values = values_of(
        snapshot,
        values,
        columns=columns,
        batch_size=batch_size,
        reader_schema=reader_schema,
        is_whole=False,
    )
    return _extended(snapshot, fragment, column_values)


def merge(
    snapshot: Snapshot,
    fragment: Fragment,
    data: Any,
    on: tuple[str, str],
    schema: pa.Schema | None,
) -> tuple[Fragment, LanceSchema]:
    """Add the columns of a table by a left join; rows without a partner get null."""
    right = without_views(reader_of(data, schema)).read_all()
    return _extended(snapshot, fragment, JoinedColumns(snapshot, right, on))


def _extended(
    snapshot: Snapshot, fragment: Fragment, values: ColumnValues
) -> tuple[Fragment, LanceSchema]:
    schema, part = extend_schema(snapshot.manifest, values.schema)
    home = snapshot.locations.home
    changed = write_columns(
        home, fragment, part, batches=values.batches(fragment), options=options_of(snapshot)
    )
    return changed, LanceSchema(schema)


def update_columns(
    snapshot: Snapshot,
    fragment: Fragment,
    data: Any,
    on: tuple[str, str],
    schema: pa.Schema | None,
) -> tuple[Fragment, list[int], bytes]:
    """Replace columns by those of a table where a row has a partner in it.

    Returns the fragment, the ids of the fields that changed, and the physical offsets of the rows
    that did, as a Roaring bitmap.
    """
    right = without_views(reader_of(data, schema)).read_all()
    names = [name for name in right.schema.names if name != on[1]]
    for name in names:
        if name not in snapshot.manifest.schema.names:
            raise ColumnNotFoundError(name, tuple(snapshot.manifest.schema.names))
    partner = partners(snapshot, fragment, right, on)
    is_matched = partner >= 0
    part = Schema(tuple(snapshot.manifest.schema.field(name) for name in names))
    old = pa.Table.from_batches(list(physical_batches(snapshot, fragment, names, None)))
    copies = BlobCopies(snapshot)
    old = copies.table(old, row_addresses(fragment, np.zeros(len(old), np.int64)))
    place = np.where(is_matched, partner + len(old), np.arange(len(old)))
    arrays = [
        _either(old[name], _new_values(right[name], field, old[name].type), place)
        for name, field in zip(names, part, strict=True)
    ]
    table = pa.Table.from_arrays(arrays, schema=old.schema)
    home, options = snapshot.locations.home, copying(options_of(snapshot), copies)
    changed = write_columns(home, fragment, part, batches=table.to_batches(), options=options)
    ids = [field.id for top in part.fields for field in top.walk()]
    touched = DeletionVector.from_mask(is_matched).to_bytes(DeletionFileType.BITMAP)
    return changed, ids, touched


def _new_values(new: pa.ChunkedArray, field: Field, type_: pa.DataType) -> pa.ChunkedArray:
    """Return values in the form of those that stay: blobs, names of items, dictionaries."""
    if new.type == type_ and not holds_blobs(field):
        return new
    if isinstance(type_, pa.BaseExtensionType):
        fitted = _cast(new, field, type_)
    else:
        fitted = pa.chunked_array([fit(new.combine_chunks(), field, type_)])
    if fitted.type != type_:
        raise SchemaMismatchError(
            f"the new values of {field.name!r} have type {new.type}, but the column has {type_}"
        )
    return fitted


def _cast(new: pa.ChunkedArray, field: Field, type_: pa.DataType) -> pa.ChunkedArray:
    try:
        return cast_array(new, type_)
    except pa.ArrowException as exc:
        raise SchemaMismatchError(
            f"the new values of {field.name!r} have type {new.type}, but the column has {type_}: "
            f"{exc}"
        ) from exc


def _either(old: pa.ChunkedArray, new: pa.ChunkedArray, place: np.ndarray) -> pa.ChunkedArray:
    """Return ``old`` and then ``new``, picked by position."""
    merged = pa.chunked_array([*old.chunks, *new.chunks], old.type)
    return taken(merged, from_integers(place))
