"""Rows of one fragment: its data files joined by field, deleted rows left out.

A fragment's columns may lie in several data files (a column that was added or rewritten later has a
file of its own); each file says which field ids it holds. A field that no file holds reads as null.

Limits: rows are addressed by their physical offset in the fragment, deleted rows included.
Source: messages DataFragment and DataFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError, NotSupportedError, ObjectNotFoundError
from lance_nb.file.columns import Leaf, LeafPart, assemble, leaves_of
from lance_nb.file.opening import DataFileReader
from lance_nb.format.fragment import TOMBSTONE, DataFile, Fragment
from lance_nb.format.schema import Field
from lance_nb.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Column:
    """A wanted top-level column: its field and its Arrow form.

    ``keeps_dictionary``: the form is a dictionary although the field is not.
    """

    field: Field
    arrow: pa.Field
    keeps_dictionary: bool = False


def read_rows(
    snapshot: Snapshot, fragment: Fragment, columns: Sequence[Column], rows: Rows
) -> list[pa.ChunkedArray]:
    """Read physical ``rows`` of the columns. Raises CorruptFileError, ObjectNotFoundError."""
    if fragment.overlays:
        raise NotSupportedError(f"fragment {fragment.id} has data overlay files")
    homes = _homes(fragment)
    expected = fragment.physical_rows or None
    owners = {field_id: column for field_id, (_, column) in homes.items()}
    wanted: dict[int, list[Leaf]] = {}
    leaves: list[list[Leaf]] = []
    for column in columns:
        mine = list(leaves_of(column.field, column.arrow.type, owners))
        if column.keeps_dictionary:
            mine = [replace(leaf, encoded=True) for leaf in mine]
        leaves.append(mine)
        for leaf in mine:
            if leaf.field_id in homes:
                _check_owned(fragment, leaf, homes[leaf.field_id][1])
                wanted.setdefault(homes[leaf.field_id][0], []).append(leaf)
    if not wanted:
        confirmed_rows(snapshot, fragment)  # no column is read that would show a wrong count
    found: dict[int, list[LeafPart]] = {}
    for number, file_leaves in wanted.items():
        file = fragment.files[number]
        reader = open_file(snapshot, fragment, file)
        found |= _read_leaves(reader, file_leaves, columns_of(fragment, file), (rows, expected))
    return [
        _assemble(fragment, column, mine, found, rows.num_rows)
        for column, mine in zip(columns, leaves, strict=True)
    ]


def _read_leaves(
    reader: DataFileReader,
    leaves: Sequence[Leaf],
    owners: Mapping[int, int],
    wanted: tuple[Rows, int | None],
) -> dict[int, list[LeafPart]]:
    """Read leaves of a file; plain values that shall come as a dictionary are made one.

    Since 2.1 a page is read as the type asks; before, the type tells how it was written.
    """
    stored = leaves
    if reader.file_version < (2, 1):
        stored = [replace(one, type=one.type.value_type) if one.encoded else one for one in leaves]
    found = reader.read_leaves(stored, owners, *wanted)
    if stored is not leaves:
        for leaf in leaves:
            if leaf.encoded:
                found[leaf.field_id] = [
                    LeafPart(part.levels, part.values.dictionary_encode())
                    for part in found[leaf.field_id]
                ]
    return found


def _assemble(
    fragment: Fragment,
    column: Column,
    leaves: Sequence[Leaf],
    found: dict[int, list[LeafPart]],
    num_rows: int,
) -> pa.ChunkedArray:
    mine = {leaf.field_id: found[leaf.field_id] for leaf in leaves if leaf.field_id in found}
    try:
        built = assemble(column.field, column.arrow.type, mine, num_rows)
    except CorruptFileError as exc:
        place = f"column {column.field.name!r}"
        raise exc.located(f"fragment {fragment.id}", None, place) from exc
    if len(built) != num_rows:
        raise CorruptFileError(
            f"fragment {fragment.id}",
            None,
            f"{num_rows} rows",
            f"{len(built)} rows",
            f"column {column.field.name!r}",
        )
    return built


def _homes(fragment: Fragment) -> dict[int, tuple[int, int]]:
    """Map each field id to (number of its data file, number of its column in that file)."""
    homes: dict[int, tuple[int, int]] = {}
    for number, file in enumerate(fragment.files):
        for field_id, column in columns_of(fragment, file).items():
            homes[field_id] = (number, column)
    return homes


def columns_of(fragment: Fragment, file: DataFile) -> dict[int, int]:
    """Map the field ids of a data file to its columns. Raises CorruptFileError.

    A 0.1 file has no column numbers: its pages are found by field id.
    """
    columns = file.fields if file.is_legacy else file.column_indices
    if len(file.fields) != len(columns):
        raise CorruptFileError(
            f"data file {file.path!r} of fragment {fragment.id}",
            None,
            f"{len(file.fields)} column indices",
            str(len(columns)),
        )
    return {
        field_id: column
        for field_id, column in zip(file.fields, columns, strict=True)
        if field_id != TOMBSTONE
    }


def _check_owned(fragment: Fragment, leaf: Leaf, column: int) -> None:
    """Refuse a leaf that is listed without a column: its values would silently read as null."""
    if column < 0:
        raise CorruptFileError(
            f"fragment {fragment.id}", None, "a column number", str(column), f"column {leaf.name!r}"
        )


def open_file(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> DataFileReader:
    """Open a data file of the fragment, or return the open one. Adds who needs it to errors.

    Raises CorruptFileError when the file is not of the kind that the manifest says.
    """
    store, path = snapshot.locations.locate(file.location(snapshot.manifest.path), file.base_id)
    snapshot.locations.check_links(store, path)
    try:
        reader = snapshot.files.get(store, path, file.size_bytes)
    except ObjectNotFoundError as exc:
        raise ObjectNotFoundError(
            f"{store.uri}/{path}", f"fragment {fragment.id} of version {snapshot.version}"
        ) from exc
    if file.is_legacy != (reader.file_version < (2, 0)):
        said = ".".join(map(str, file.file_version))
        found = ".".join(map(str, reader.file_version))
        raise CorruptFileError(path, None, f"file version {said}, as the manifest says", found)
    return reader


def num_physical_rows(snapshot: Snapshot, fragment: Fragment) -> int:
    """Return the fragment's rows, deleted ones included.

    Old writers left the count to the data files.
    """
    if fragment.physical_rows or not fragment.files:
        return fragment.physical_rows
    return open_file(snapshot, fragment, fragment.files[0]).num_rows


def confirmed_rows(snapshot: Snapshot, fragment: Fragment) -> int:
    """Return the physical rows, once a data file has confirmed what the manifest says.

    For whatever allocates by that number before a column is read. Raises CorruptFileError.
    """
    where = f"fragment {fragment.id} of version {snapshot.version}"
    if not fragment.files:
        raise CorruptFileError(where, None, "at least one data file", "none")
    found = open_file(snapshot, fragment, fragment.files[0]).num_rows
    if fragment.physical_rows not in (0, found):
        expected = f"{fragment.physical_rows} rows, as the manifest says"
        raise CorruptFileError(where, None, expected, f"{found} rows in its first data file")
    return found
