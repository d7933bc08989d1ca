"""Rows of one fragment: its data files joined by field, deleted rows left out.

A fragment's columns may lie in several data files (a column that was added or rewritten later has a
file of its own); each file says which field ids it holds. A field that no file holds reads as null.

Limits: rows are addressed by their physical offset in the fragment, deleted rows included.
Source: messages DataFragment and DataFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError, NotSupportedError, ObjectNotFoundError
from lance_nb.file.columns import Leaf, LeafPart, assemble, leaves_of
from lance_nb.file.reader import FileReader
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Field
from lance_nb.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Column:
    """A wanted top-level column: its field and its Arrow form."""

    field: Field
    arrow: pa.Field


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
        leaves.append(mine)
        for leaf in mine:
            if leaf.field_id in homes:
                _check_owned(fragment, leaf, homes[leaf.field_id][1])
                wanted.setdefault(homes[leaf.field_id][0], []).append(leaf)
    found: dict[int, list[LeafPart]] = {}
    for number, file_leaves in wanted.items():
        reader = open_file(snapshot, fragment, fragment.files[number])
        found |= reader.read_leaves(file_leaves, owners, rows, expected)
    return [
        _assemble(fragment, column, mine, found, rows.num_rows)
        for column, mine in zip(columns, leaves, strict=True)
    ]


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
    """Map each field id to (number of its data file, number of its column in that file).

    A field that owns no column of its own, because its children do, has column -1.
    """
    homes: dict[int, tuple[int, int]] = {}
    for number, file in enumerate(fragment.files):
        if file.file_version < (0, 3):  # no column numbers are recorded for these
            raise NotSupportedError(
                f"data file {file.path!r} of fragment {fragment.id} has file version 0.1, which "
                "this release cannot read"
            )
        if len(file.fields) != len(file.column_indices):
            raise CorruptFileError(
                f"data file {file.path!r} of fragment {fragment.id}",
                None,
                f"{len(file.fields)} column indices",
                str(len(file.column_indices)),
            )
        for field_id, column in zip(file.fields, file.column_indices, strict=True):
            if field_id >= 0:
                homes[field_id] = (number, column)
    return homes


def _check_owned(fragment: Fragment, leaf: Leaf, column: int) -> None:
    """Refuse a leaf that is listed without a column: its values would silently read as null."""
    if column < 0:
        raise CorruptFileError(
            f"fragment {fragment.id}", None, "a column number", str(column), f"column {leaf.name!r}"
        )


def open_file(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> FileReader:
    """Open a data file of the fragment, or return the open one. Adds who needs it to errors."""
    store, path = snapshot.locations.locate(file.location(snapshot.manifest.path), file.base_id)
    try:
        return snapshot.files.get(store, path, file.size_bytes)
    except ObjectNotFoundError as exc:
        raise ObjectNotFoundError(
            f"{store.uri}/{path}", f"fragment {fragment.id} of version {snapshot.version}"
        ) from exc


def num_physical_rows(snapshot: Snapshot, fragment: Fragment) -> int:
    """Return the fragment's rows, deleted ones included.

    Old writers left the count to the data files.
    """
    if fragment.physical_rows or not fragment.files:
        return fragment.physical_rows
    return open_file(snapshot, fragment, fragment.files[0]).num_rows
