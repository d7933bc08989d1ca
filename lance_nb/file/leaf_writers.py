"""Which writer a column of a 2.1 or 2.2 file gets: plain values, blobs, structs without fields.

Source: files of pylance 14.0.2.
"""

from __future__ import annotations

from lance_nb.errors import NotSupportedError
from lance_nb.file.blob_writer import BlobLeafWriter, BlobV2LeafWriter
from lance_nb.file.column_writer import EmptyStructWriter, LeafWriter
from lance_nb.file.sink import FileSink
from lance_nb.file.write_plan import LeafPlan
from lance_nb.format.blob_fields import is_blob_v1, is_blob_v2
from lance_nb.format.logical_types import STRUCT


def leaf_writer(plan: LeafPlan, sink: FileSink, page_bytes: int) -> LeafWriter:
    """Begin the column of a leaf. Raises NotSupportedError for blobs of another type."""
    if is_blob_v2(plan.field):
        return BlobV2LeafWriter(plan, sink, page_bytes)
    if plan.field.logical_type == STRUCT and not plan.field.children:
        return EmptyStructWriter(plan, sink, page_bytes)
    if not is_blob_v1(plan.field):
        return LeafWriter(plan, sink, page_bytes)
    if plan.field.logical_type != "large_binary":
        raise NotSupportedError(
            f"column {plan.field.name!r}: blobs are large_binary, not {plan.field.logical_type}"
        )
    return BlobLeafWriter(plan, sink, page_bytes)
