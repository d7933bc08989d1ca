"""A scan that returns payloads where others return descriptions (``blob_handling="all_binary"``).

It runs the scan of the descriptions with row addresses, and puts a ``large_binary`` column in the
place of each column of descriptions, inside structs and lists as well.

Limits: a batch holds all payloads of its rows; choose ``batch_size`` by their size.
Not supported: blobs inside maps and fixed-size lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.field import Field
from lance_nb.format.logical_types import LARGE_LISTS, LISTS
from lance_nb.table.blob_columns import in_list, is_list
from lance_nb.table.blobs import ADDRESS_SHIFT, BlobFile, described_blobs, read_parts
from lance_nb.table.projection import ROW_ADDRESS, Projection
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import ScanRequest, plan_request
from lance_nb.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class BlobScan:
    """A planned scan and what becomes of its columns; ``fields`` are None for row columns."""

    snapshot: Snapshot
    inner: ScanRequest
    fields: tuple[Field | None, ...]
    schema: pa.Schema

    def table(self) -> pa.Table:
        """Read the result into one table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the result batch by batch."""
        for batch in self.inner.batches():
            addresses = batch.column(ROW_ADDRESS).to_pylist()
            # By name: the inner scan returns the row address last, wherever it was asked for.
            columns = [
                batch.column(name)
                if field is None
                else with_payloads(self.snapshot, field, batch.column(name), addresses)
                for name, field in zip(self.schema.names, self.fields, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def count(self) -> int:
        """Count the rows of the result."""
        return self.inner.count()

    def explain(self) -> str:
        """Tell what is read first."""
        return f"{self.inner.explain()}\n  then: the payloads of blobs"


def with_payloads(
    snapshot: Snapshot, field: Field, array: pa.Array, addresses: Sequence[int]
) -> pa.Array:
    """Replace the descriptions in a column by payloads, given the addresses of its rows."""
    if is_blob(field):
        files = described_blobs(snapshot, field, array.to_pylist(), addresses)
        parts = [None if file is None else (file, 0, file.size()) for file in files]
        return pa.array(read_parts(parts), pa.large_binary())
    if not holds_blobs(field):
        return array
    if is_list(array.type):
        return _lists_with_payloads(snapshot, field, array, addresses)
    children = [
        with_payloads(snapshot, child, array.field(number), addresses)
        for number, child in enumerate(field.children)
    ]
    form = binary_form(field, pa.field(field.name, array.type)).type
    return pa.StructArray.from_arrays(children, fields=list(form), mask=array.is_null())


def _lists_with_payloads(
    snapshot: Snapshot, field: Field, array: pa.Array, addresses: Sequence[int]
) -> pa.Array:
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.asarray(addresses, np.uint64), lengths).tolist()
    items = with_payloads(snapshot, field.children[0], array.flatten(), owners)
    form = binary_form(field, pa.field(field.name, array.type)).type
    is_large = pa.types.is_large_list(array.type)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64 if is_large else np.int32)
    kind = pa.LargeListArray if is_large else pa.ListArray
    return kind.from_arrays(pa.array(offsets), items, form, mask=array.is_null())


def plan_blob_scan(snapshot: Snapshot, options: ScanOptions) -> BlobScan:
    """Check a scan of payloads against a version; raises as ``plan_request``."""
    wanted = plan_request(snapshot, options).schema
    inner = plan_request(snapshot, replace(options, with_row_address=True))
    fields = tuple(_stored_field(snapshot, name) for name in wanted.names)
    forms = [
        arrow if field is None else binary_form(field, arrow)
        for field, arrow in zip(fields, wanted, strict=True)
    ]
    return BlobScan(snapshot, inner, fields, pa.schema(forms, wanted.metadata))


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
    wanted = plan_request(snapshot, options).schema.names
    rows = plan_request(snapshot, replace(options, with_row_address=True)).table()
    addresses = rows[ROW_ADDRESS].to_pylist()
    files = {}
    for name in wanted:
        field = _stored_field(snapshot, name)
        if field is not None and is_blob(field):
            descriptions = rows[name].to_pylist()
            files[name] = described_blobs(snapshot, field, descriptions, addresses)
    return rows.select(wanted), files


def binary_form(field: Field, arrow: pa.Field) -> pa.Field:
    """Return the Arrow field of payloads for that of descriptions."""
    if is_blob(field):
        metadata = {k: v for k, v in field.metadata.items() if not k.startswith("ARROW:extension")}
        return pa.field(arrow.name, pa.large_binary(), arrow.nullable, metadata or None)
    if not holds_blobs(field):
        return arrow
    if is_list(arrow.type):
        return in_list(arrow, binary_form(field.children[0], arrow.type.value_field))
    children = [
        binary_form(child, arrow.type.field(number)) for number, child in enumerate(field.children)
    ]
    return arrow.with_type(pa.struct(children))


def holds_blobs(field: Field) -> bool:
    """Tell whether a struct or a list has blobs inside."""
    if field.logical_type not in ("struct", *LISTS, *LARGE_LISTS):
        return False
    return any(is_blob(child) or holds_blobs(child) for child in field.children)


def _stored_field(snapshot: Snapshot, name: str) -> Field | None:
    """Return the field that a column of the result shows, None for expressions and row columns."""
    try:
        found = snapshot.manifest.schema.field(name)
    except ColumnNotFoundError:
        return None
    return found if is_blob(found) or holds_blobs(found) else None
