"""New columns for a fragment that is there: one more data file beside its others.

The file has a row for every physical row of the fragment, deleted ones included. Columns that it
replaces are crossed out in the files that hold them now (field id -2); a file of which every column
is crossed out is no longer listed.

Limits: all rows of the file come from one stream, in physical order.
Source: messages ``DataFile`` and ``DataFragment`` of lance.table (tombstones); ``merge_columns``
and ``update_columns`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.file.versions import file_version_of
from lance_nb.format.blob_fields import with_blobs
from lance_nb.format.field import Field
from lance_nb.format.fragment import TOMBSTONE, DataFile, Fragment
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.storage.base import Store
from lance_nb.table.snapshot import storage_version
from lance_nb.transactions.fragment_writer import FragmentWriter, WriteOptions
from lance_nb.transactions.schema_change import extended

_ONE_FILE = 1 << 62
_LEGACY = "0.1"


def extend_schema(manifest: Manifest, added: pa.Schema) -> tuple[Schema, Schema]:
    """Return the schema with columns added at its end, and the added part, with new field ids.

    A struct that is there already gets the new ones of its fields (files of version 2.2 only).
    Raises SchemaMismatchError for a column that exists already.
    """
    schema, version = manifest.schema, storage_version(manifest)
    # As in new datasets, marked bytes become blobs of the file version. pylance 14.0.2 leaves them
    # as they are, and cannot read what it has written to files of 2.2.
    if version != _LEGACY:
        added = with_blobs(added, file_version_of(version))
    new = Schema.from_arrow(added.remove_metadata())
    new.check_text_metadata()
    made = new.fields
    grows = next((one.name for one in made if one.name in schema.names), None)
    after, part = extended(schema, made, next_field_id(manifest))
    if grows is not None and version != "2.2":
        raise SchemaMismatchError(
            f"column {grows!r} is a struct: a field can be added to it in files of version 2.2, "
            f"not in those of version {version}"
        )
    return after, part


def next_field_id(manifest: Manifest) -> int:
    """Return the first id that no column has had, as far as schema and files tell."""
    used = [manifest.schema.max_field_id, manifest.max_allocated_field_id or -1]
    used += [max(file.fields, default=-1) for one in manifest.fragments for file in one.files]
    return max(used) + 1


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
    replaced = {one.id for top in fields for one in top.walk()}
    kept = []
    for file in fragment.files:
        left = tuple(TOMBSTONE if one in replaced else one for one in file.fields)
        if any(one != TOMBSTONE for one in left):
            kept.append(replace(file, fields=left))
    return replace(fragment, files=(*kept, new_file))
