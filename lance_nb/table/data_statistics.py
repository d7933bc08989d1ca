"""Storage statistics: the bytes of each field, in pages of data files and payloads of blobs.

Every field of the schema is counted, depth first; a struct has bytes of its own only where its
files store them (2.0 keeps its validity there). Dropped columns are still in their files and are
not counted; deleted rows are. The payloads of a blob column are stored beside its pages, in the
data file or in blob files: they are added up from the descriptions. External blobs are not part of
the dataset.

Limits: footers, descriptors and column metadata are not counted. 0.1 files do not record sizes and
count as 0. No page is read but those of the descriptions of blobs.
Source: ``LanceStats.data_stats`` of pylance 14.0.2, with the same numbers, except that it leaves
out the payloads of blobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.file.reader import FileReader
from lance_nb.format.blob_fields import holds_blobs, is_blob
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Field
from lance_nb.table.blob_columns import EXTERNAL, is_list, stored_field
from lance_nb.table.filtered_scan import quoted
from lance_nb.table.fragment_reader import columns_of, confirmed_rows, open_file, read_rows
from lance_nb.table.live_rows import one_range
from lance_nb.table.projection import project
from lance_nb.table.scan import DEFAULT_BATCH_ROWS, WINDOW_BYTES, window_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """One field: its id and the (compressed) bytes of its values.

    ``payload_bytes`` of these are payloads of blobs.

    Examples:
        >>> ids = ds.stats.data_stats().fields[0]
        >>> ids.id, ids.bytes_on_disk > 0, ids.payload_bytes
        (0, True, 0)
    """

    id: int
    bytes_on_disk: int
    payload_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DataStatistics:
    """All fields of the schema, in its order. Created by ``LanceStats.data_stats``.

    Examples:
        >>> len(ds.stats.data_stats().fields)
        3
    """

    fields: list[FieldStatistics] = field(default_factory=list)


def data_statistics(
    snapshot: Snapshot,
    progress: Callable[[int, int], object] | None = None,
    among: Iterable[Fragment] | None = None,
) -> DataStatistics:
    """Add up the pages of every field; ``progress`` is called per fragment.

    ``among``: these fragments alone. Raises CorruptFileError, ObjectNotFoundError.
    """
    schema = snapshot.manifest.schema
    sizes = {field.id: 0 for field in schema.walk()}
    payloads = dict.fromkeys((field.id for field in schema.walk() if is_blob(field)), 0)
    fragments = list(snapshot.manifest.fragments if among is None else among)
    for done, fragment in enumerate(fragments, 1):
        for file in fragment.files:
            reader = open_file(snapshot, fragment, file)
            for field_id, column in columns_of(fragment, file).items():
                if field_id in sizes and isinstance(reader, FileReader) and column >= 0:
                    sizes[field_id] += _page_bytes(reader, column)
        for field_id, size in payload_bytes(snapshot, fragment).items():
            payloads[field_id] += size
        if progress is not None:
            progress(done, len(fragments))
    return DataStatistics(
        [
            FieldStatistics(field_id, size + payloads.get(field_id, 0), payloads.get(field_id, 0))
            for field_id, size in sizes.items()
        ]
    )


def _page_bytes(reader: FileReader, column: int) -> int:
    pages = reader.column_metadata(column).pages
    return sum(size for page in pages for size in page.buffer_sizes)


def payload_bytes(snapshot: Snapshot, fragment: Fragment) -> dict[int, int]:
    """Add up the payloads of a fragment that the dataset stores, by field id of the blobs.

    Reads the descriptions. Raises CorruptFileError, ObjectNotFoundError.
    """
    schema = snapshot.manifest.schema
    bytes_by_field: dict[int, int] = {}
    names = [quoted([field.name]) for field in schema if holds_blobs(field)]
    if not names:
        return bytes_by_field
    columns = project(schema, names)
    step = window_rows(snapshot, columns, fragment)
    count = confirmed_rows(snapshot, fragment)
    for start in range(0, count, step):
        rows = one_range(start, min(start + step, count))
        read = read_rows(snapshot, fragment, columns.columns, rows)
        for column, values in zip(columns.columns, read, strict=True):
            for chunk in values.chunks:
                _add_payloads(column.field, chunk, bytes_by_field)
    return bytes_by_field


def payload_rows(
    snapshot: Snapshot, fragment: Fragment, names: Sequence[str], batch_rows: int | None
) -> int | None:
    """Return how many rows of a fragment to read with the bytes of their blobs at a time.

    ``names`` are the columns that are read. ``batch_rows`` if it is given; None where there are no
    blobs among them.
    """
    read = [stored_field(snapshot.manifest.schema, name) for name in names]
    if batch_rows is not None or not any(read):
        return batch_rows
    field_ids = {
        descendant.id for field in read if field is not None for descendant in field.walk()
    }
    bytes_by_field = payload_bytes(snapshot, fragment)
    size_bytes = sum(size for field_id, size in bytes_by_field.items() if field_id in field_ids)
    if not size_bytes:
        return None
    rows = max(confirmed_rows(snapshot, fragment), 1)
    return min(max(WINDOW_BYTES * rows // size_bytes, 1), DEFAULT_BATCH_ROWS)


def _add_payloads(field: Field, array: pa.Array, bytes_by_field: dict[int, int]) -> None:
    if is_blob(field):
        sizes = array.field("size").fill_null(0).to_numpy().astype(np.uint64)
        counted = np.asarray(array.is_valid())
        if array.type.get_field_index("kind") >= 0:
            counted &= pc.fill_null(array.field("kind"), 0).to_numpy() != EXTERNAL
        bytes_by_field[field.id] = bytes_by_field.get(field.id, 0) + int(sizes[counted].sum())
    elif is_list(array.type):
        _add_payloads(field.children[0], array.flatten(), bytes_by_field)
    elif pa.types.is_struct(array.type):
        for child, part in zip(field.children, array.flatten(), strict=True):
            _add_payloads(child, part, bytes_by_field)
