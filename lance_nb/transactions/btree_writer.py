"""Write a B-tree index over some fragments: one segment of an index, as several make up one.

Layout of ``_indices/<uuid>/``:

====================  ==========================================================================
``page_data.lance``   ``values`` (the type of the column) and ``ids`` (uint64, never null), a row
                      for each live row of the fragments, by value: nulls first, NaN last
``page_lookup.lance`` a row for each 4,096 of them, which are a page: ``min`` and ``max`` (its first
                      and last value), ``null_count`` and ``page_idx`` (uint32, never null); the
                      schema's metadata says ``batch_size`` and ``range_partitioned``
====================  ==========================================================================

``ids`` are row addresses, or row ids where these are stable.

Limits: the values of the segment are in memory.
Not supported: columns inside of structs; other kinds of index (pylance builds those).
Source: files that pylance 14.0.2 writes; message ``BTreeIndexDetails`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
from pyroaring import BitMap

from lance_nb.errors import InvalidInputError
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions, FileWriter, WrittenFile
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.format.schema import Schema
from lance_nb.table.snapshot import Snapshot, storage_version
from lance_nb.transactions.checksum_records import write_record
from lance_nb.transactions.environment import Environment

PAGE_ROWS = 4096
_DETAILS = "/lance.table.BTreeIndexDetails"
_NANOSECONDS = 1_000_000
_LEGACY = "0.1"
_SORTED: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_temporal,
    pa.types.is_decimal,
)


def check_sortable(field: pa.Field) -> None:
    """Refuse a column that a B-tree cannot hold. Raises InvalidInputError."""
    if not any(fits(field.type) for fits in _SORTED):
        raise InvalidInputError(
            f"a BTREE index holds numbers, texts, bytes, times and decimals: column {field.name!r} "
            f"is {field.type}"
        )


def write_btree(
    snapshot: Snapshot, field_id: int, name: str, rows: pa.Table, fragment_ids: Iterable[int]
) -> IndexMetadata:
    """Write a segment and return what a manifest says of it.

    ``rows`` has the values and the ids of all live rows of the fragments.
    """
    environment = Environment()
    identity = environment.new_uuid()
    data = _by_value(rows)
    written = (
        _write(snapshot, f"_indices/{identity}/page_data.lance", data),
        _write(snapshot, f"_indices/{identity}/page_lookup.lance", _pages(data)),
    )
    write_record(snapshot.locations.home, (one for file in written for one in file.sums))
    files = tuple(IndexFile(one.path.rpartition("/")[2], one.size_bytes) for one in written)
    return IndexMetadata(
        identity,
        name,
        (field_id,),
        snapshot.version,
        BitMap(fragment_ids).serialize(),
        _DETAILS,
        index_version=0,
        created_at_ms=environment.clock() // _NANOSECONDS,
        files=files,
    )


def _by_value(rows: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    values = rows.column(0).combine_chunks()
    keys = values.cast(pa.float32()) if pa.types.is_float16(values.type) else values
    order = pc.array_sort_indices(keys, null_placement="at_end")  # NaN between the two
    first_null = len(order) - values.null_count
    order = pa.concat_arrays([order[first_null:], order[:first_null]])
    schema = pa.schema(
        [pa.field("values", values.type), pa.field("ids", pa.uint64(), nullable=False)]
    )
    return pa.table([values.take(order), rows.column(1).take(order)], schema=schema)


def _pages(data: pa.Table) -> pa.Table:
    import numpy as np

    starts = np.arange(0, data.num_rows, PAGE_ROWS)
    ends = np.minimum(starts + PAGE_ROWS, data.num_rows)
    values = data.column(0)
    num_nulls = np.clip(values.null_count - starts, 0, ends - starts)
    counts = [pa.array(one.astype(np.uint32)) for one in (num_nulls, np.arange(len(starts)))]
    schema = pa.schema(
        [
            pa.field("min", values.type),
            pa.field("max", values.type),
            pa.field("null_count", pa.uint32(), nullable=False),
            pa.field("page_idx", pa.uint32(), nullable=False),
        ],
        {"batch_size": str(PAGE_ROWS), "range_partitioned": "false"},
    )
    ends_of = [values.take(pa.array(one)) for one in (starts, ends - 1)]
    return pa.table([*ends_of, *counts], schema=schema)


def _write(snapshot: Snapshot, path: str, table: pa.Table) -> WrittenFile:
    version = storage_version(snapshot.manifest)
    version = "2.0" if version == _LEGACY else version
    schema = Schema.from_arrow(table.schema)
    home = snapshot.locations.home
    options = FileOptions(checksums=wants_checksums(snapshot.manifest.config))
    number = file_version_of(version)
    with FileWriter(home, path, schema, file_version=number, options=options) as file:
        file.add_schema_metadata(
            {key.decode(): one for key, one in (table.schema.metadata or {}).items()}
        )
        for batch in table.to_batches():
            file.write(batch)
        return file.finish()
