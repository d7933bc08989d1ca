"""Scan blob columns as payloads instead of descriptions (``blob_handling="all_binary"``).

It runs the scan of the descriptions with row addresses, and puts a ``large_binary`` column in the
place of each column of descriptions, inside structs and lists as well.

Limits: a batch holds all payloads of its rows; choose ``batch_size`` by their size.
Not supported: blobs inside maps and fixed-size lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.field import Field
from lance_nb.format.fragment import Fragment
from lance_nb.table.blob_columns import (
    binary_form,
    holds_reachable_blobs,
    is_list,
    payload_form,
    stored_field,
)
from lance_nb.table.blobs import ADDRESS_SHIFT, BlobFile, described_blobs, read_parts
from lance_nb.table.computed_columns import Shape, shape_of
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, Projection
from lance_nb.table.scan_plan import ScanOptions, ScanPlan, plan_scan
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class BlobScan:
    """A planned scan of descriptions and row addresses, and what becomes of its columns.

    ``shape`` computes columns from the payloads, None when stored columns are returned.
    """

    snapshot: Snapshot
    inner: ScanPlan
    shape: Shape | None
    schema: pa.Schema

    def table(self) -> pa.Table:
        """Read the result into one table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the result batch by batch."""
        for batch in self.inner.batches():
            # By name: the inner scan returns the row address last, wherever it was asked for.
            rows = rows_with_payloads(self.snapshot, batch, batch.column(ROW_ADDRESS).to_pylist())
            arrays: dict[str, pa.Array] = dict(zip(rows.schema.names, rows.columns, strict=True))
            if self.shape is not None:
                source = rows.select(self.shape.source.schema.names)
                computed = self.shape.table(pa.Table.from_batches([source])).combine_chunks()
                arrays |= {name: computed[name].chunk(0) for name in computed.schema.names}
            if self.inner.options.include_deleted_rows and ROW_ADDRESS in self.schema.names:
                is_deleted = pc.is_null(arrays[ROW_ID]).to_numpy(zero_copy_only=False)
                addresses = arrays[ROW_ADDRESS].to_numpy()
                arrays[ROW_ADDRESS] = pa.array(addresses, pa.uint64(), mask=is_deleted)
            columns = [arrays[name] for name in self.schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def count(self) -> int:
        """Count the rows of the result."""
        return self.inner.count()

    def explain(self) -> str:
        """Tell what is read first."""
        return f"{self.inner.explain()}\n  then: the payloads of blobs"


def plan_blob_scan(snapshot: Snapshot, options: ScanOptions) -> BlobScan:
    """Check a scan of payloads against a version; raises as ``plan_scan``."""
    schema = snapshot.manifest.schema
    shape = None
    if isinstance(options.columns, Mapping):
        shape = shape_of(schema, options.columns, payloads=True)
        options = replace(options, columns=list(shape.source.schema.names))
    scan_schema = plan_scan(snapshot, options).schema
    inner = _with_addresses(snapshot, options)
    if shape is None:
        forms = [payload_form(schema, arrow) for arrow in scan_schema]
    else:
        source = shape.source.schema.names
        forms = [*shape.schema, *(field for field in scan_schema if field.name not in source)]
    return BlobScan(snapshot, inner, shape, pa.schema(forms, scan_schema.metadata))


def _with_addresses(snapshot: Snapshot, options: ScanOptions) -> ScanPlan:
    """Plan a scan that returns the address of every row; deleted ones have payloads, too."""
    plan = plan_scan(snapshot, replace(options, with_row_address=True))
    if plan.shape is None:  # a plain scan, which returns no deleted rows
        return plan
    source = replace(plan.source, addresses_of_deleted=True)
    return replace(plan, source=source, shape=replace(plan.shape, source=source))


def rows_with_payloads(
    snapshot: Snapshot, rows: pa.RecordBatch, addresses: Sequence[int]
) -> pa.RecordBatch:
    """Return rows with the bytes of blobs in the place of their descriptions.

    ``addresses`` are those of the rows; what counts of them is the fragment. Columns are found by
    their names. Raises CorruptFileError, StorageError.
    """
    columns, fields = [], []
    for arrow, array in zip(rows.schema, rows.columns, strict=True):
        field = stored_field(snapshot.manifest.schema, arrow.name)
        columns.append(array if field is None else with_payloads(snapshot, field, array, addresses))
        fields.append(payload_form(snapshot.manifest.schema, arrow))
    if not columns:
        return rows
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, rows.schema.metadata))


def fragment_addresses(fragment: Fragment, num_rows: int) -> list[int]:
    """Return addresses for rows of which only the fragment is known."""
    return [fragment.id << ADDRESS_SHIFT] * num_rows


def with_payloads(
    snapshot: Snapshot, field: Field, array: pa.Array, addresses: Sequence[int]
) -> pa.Array:
    """Replace the descriptions in a column by payloads, given the addresses of its rows."""
    if is_blob(field):
        files = described_blobs(snapshot, field, array.to_pylist(), addresses)
        parts = [None if file is None else (file, 0, file.size()) for file in files]
        return pa.array(read_parts(parts), pa.large_binary())
    if not holds_reachable_blobs(field):
        return array
    form = binary_form(field, pa.field(field.name, array.type)).type
    if is_list(array.type):
        return _filled_lists(snapshot, field, (array, form), addresses)
    children = [
        with_payloads(snapshot, child, array.field(number), addresses)
        for number, child in enumerate(field.children)
    ]
    return pa.StructArray.from_arrays(children, fields=list(form), mask=pc.is_null(array))


def _filled_lists(
    snapshot: Snapshot, field: Field, lists: tuple[pa.Array, pa.DataType], addresses: Sequence[int]
) -> pa.Array:
    array, form = lists
    lengths = pc.fill_null(array.value_lengths(), 0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.asarray(addresses, np.uint64), lengths).tolist()
    items = with_payloads(snapshot, field.children[0], array.flatten(), owners)
    is_large = pa.types.is_large_list(array.type)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64 if is_large else np.int32)
    kind = pa.LargeListArray if is_large else pa.ListArray
    return kind.from_arrays(pa.array(offsets), items, form, mask=pc.is_null(array))


def binary_schema(projection: Projection) -> pa.Schema:
    """Return the schema of rows of a projection with payloads instead of descriptions."""
    forms = map(_binary_output, _fields_of(projection), projection.schema)
    return pa.schema(list(forms), projection.schema.metadata)


def batch_with_payloads(
    snapshot: Snapshot, projection: Projection, batch: pa.RecordBatch, fragment_id: int
) -> pa.RecordBatch:
    """Replace the descriptions in rows of one fragment by payloads.

    The projection keeps nested fields in their structs (``project_nested``).
    """
    addresses = [fragment_id << ADDRESS_SHIFT] * batch.num_rows  # only the fragment counts
    columns = [
        column if field is None else with_payloads(snapshot, field, column, addresses)
        for field, column in zip(_fields_of(projection), batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=binary_schema(projection))


def _fields_of(projection: Projection) -> list[Field | None]:
    """Return the stored field of each column of the result, None for row columns."""
    return [
        None if output.source < 0 else projection.columns[output.source].field
        for output in projection.outputs
    ]


def _binary_output(field: Field | None, arrow: pa.Field) -> pa.Field:
    return arrow if field is None else binary_form(field, arrow)


def with_files(
    snapshot: Snapshot, options: ScanOptions
) -> tuple[pa.Table, dict[str, list[BlobFile | None]]]:
    """Read a table of descriptions, and open the blobs of its columns at the top as files."""
    column_names = plan_scan(snapshot, options).schema.names
    rows = _with_addresses(snapshot, options).table()
    addresses = rows[ROW_ADDRESS].to_pylist()
    expressions = options.columns if isinstance(options.columns, Mapping) else {}
    files = {}
    for name in column_names:
        field = stored_field(snapshot.manifest.schema, expressions.get(name, name))
        if field is not None and is_blob(field):
            descriptions = rows[name].to_pylist()
            files[name] = described_blobs(snapshot, field, descriptions, addresses)
    return rows.select(column_names), files
