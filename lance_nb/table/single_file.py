"""Read a data file on its own, as a dataset of one version with one fragment.

Projections, ranges and takes then work on a single file as on a dataset. Fields and
their ids are those of the file's own descriptor; which column holds which field follows from the
file version: since 2.1 every leaf has one, in 2.0 every field.

Not supported: 0.1 files, which do not describe themselves.
Source: spec page "file format"; messages FileDescriptor and Field.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.file.reader import FileReader
from lance_nb.format.blob_fields import PACKED_KEY, is_blob, without_descriptors
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.logical_types import JSON, arrow_to_logical, leaf_to_arrow
from lance_nb.format.manifest import BasePath, Manifest
from lance_nb.format.schema import Schema
from lance_nb.storage.registry import StorageOptions, open_store
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

FRAGMENT_ID = 0
_BASE_ID = 0
_PACKED_KEYS = (PACKED_KEY, "packed")


@dataclass(frozen=True, slots=True)
class SingleFile:
    """An open data file, its fields as it describes them, and the snapshot that shows its rows.

    JSON columns are the JSONB that is stored.
    """

    reader: FileReader
    schema: Schema
    snapshot: Snapshot


def open_single_file(
    uri: str | os.PathLike[str], storage_options: StorageOptions | None = None
) -> SingleFile:
    """Open a data file by its path or URI.

    Raises ObjectNotFoundError, CorruptFileError, NotSupportedError, InvalidInputError.
    """
    folder, _, name = os.fspath(uri).rpartition("/")
    if not name:
        raise InvalidInputError(f"{os.fspath(uri)!r} does not name a file")
    # Whoever names a file means it, whatever links lead there.
    store = open_store(folder or ".", storage_options, ("/",))
    bases = (BasePath(_BASE_ID, store.uri),)
    locations = Locations(store, store, bases, ("/",), has_external=False)
    snapshot = Snapshot(Manifest(1, Schema(())), locations)
    reader = snapshot.files.get(store, name)
    if not isinstance(reader, FileReader):
        raise NotSupportedError(f"{name}: a 0.1 file has no descriptor; open its dataset instead")
    described = reader.schema
    stored = Schema(tuple(map(_as_stored, described.fields)), described.metadata)
    schema = Schema(without_descriptors(stored.fields), stored.metadata)
    file = data_file(reader, schema, name, _BASE_ID)
    fragment = Fragment(FRAGMENT_ID, (file,), reader.num_rows)
    manifest = Manifest(1, schema, FragmentList.of([fragment]), path=name)
    return SingleFile(reader, stored, Snapshot(manifest, locations, None, snapshot.files))


def _as_stored(field: Field) -> Field:
    """Return a field with JSON as bytes, marked by the name of the extension type."""
    children = tuple(map(_as_stored, field.children))
    if field.logical_type == JSON:
        field = replace(field, logical_type=arrow_to_logical(leaf_to_arrow(JSON)))
    return replace(field, children=children)


def data_file(
    reader: FileReader, schema: Schema, name: str, base_id: int | None = None, size_bytes: int = 0
) -> DataFile:
    """Return what a fragment says of an open file whose columns are those of ``schema``."""
    owners = column_owners(schema, reader.file_version)
    return DataFile(name, owners, owners.values(), *reader.file_version, size_bytes, base_id)


def column_owners(schema: Schema, file_version: tuple[int, int]) -> dict[int, int]:
    """Map field ids to columns, in the order in which columns are written."""
    owning = column_fields(schema, file_version)
    return {field.id: column for column, field in enumerate(owning)}


def column_fields(schema: Schema, file_version: tuple[int, int]) -> list[Field]:
    """List the fields that own a column, in the order in which columns are written."""
    return list(_owning(schema, every=file_version < (2, 1)))


def is_whole(field: Field) -> bool:
    """Return whether a field owns the only column of itself and of the fields below it."""
    packed = any(field.metadata.get(key) in (b"true", b"1") for key in _PACKED_KEYS)
    return not field.children or packed or is_blob(field)


def _owning(schema: Schema, *, every: bool) -> Iterator[Field]:
    """Yield the fields that own a column: leaves, or ``every`` field.

    A packed struct and a blob own one, and the fields below them none.
    """
    stack = list(reversed(schema.fields))
    while stack:
        field = stack.pop()
        whole = is_whole(field)
        if whole or every:
            yield field
        if not whole:
            stack.extend(reversed(field.children))
