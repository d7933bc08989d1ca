"""Read rows of one fragment: its data files are joined by field, deleted rows are left out.

A fragment's columns may lie in several data files (a column that was added or rewritten later has a
file of its own); each file says which field ids it holds. A field that no file holds reads as null.
Of a field that several files hold, the first file counts: releases up to 0.10.5 gave the ids of
dropped columns to new ones, and pylance reads such fragments in this way.

Limits: rows are addressed by their physical offset in the fragment, deleted rows included.
Source: messages DataFragment and DataFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError, NotSupportedError, ObjectNotFoundError
from lance_nb.file.columns import Leaf, LeafPart, assemble, leaves_of
from lance_nb.file.opening import DataFileReader
from lance_nb.format.fragment import TOMBSTONE, DataFile, Fragment
from lance_nb.format.schema import Field
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

FAR_READS = 8
_PLANS_MAX = 64
_NEAR = ("file", "memory")


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
    plan = read_plan(snapshot, fragment, columns)
    expected = fragment.physical_rows or None
    if not plan.leaves_by_file:
        confirmed_rows(snapshot, fragment)  # no column is read that would show a wrong count
    parts_by_leaf: dict[int, list[LeafPart]] = {}
    for number, file_leaves in plan.leaves_by_file.items():
        reader = open_file(snapshot, fragment, fragment.files[number])
        owners: Mapping[int, int] = plan.owners[number]
        if reader.file_version < (2, 0):
            from lance_nb.file.v0_1_reader import LegacyReader

            if isinstance(reader, LegacyReader):
                owners = reader.own_ids(fragment.files[number].fields)
        parts_by_leaf |= _read_leaves(reader, file_leaves, owners, (rows, expected))
    return [
        assembled(fragment, plan, number, parts_by_leaf=parts_by_leaf, num_rows=rows.num_rows)
        for number in range(len(columns))
    ]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Which leaves some columns have, and which file of a fragment holds which of them.

    ``owners`` has the columns of each file by field id, ``leaves_by_file`` is by number of file.
    Good for all fragments whose files are laid out as ``files`` says.
    """

    columns: Sequence[Column]
    files: tuple[Hashable, ...]
    owners: list[dict[int, int]]
    leaves: list[list[Leaf]]
    leaves_by_file: dict[int, list[Leaf]]


def read_plan(snapshot: Snapshot, fragment: Fragment, columns: Sequence[Column]) -> ReadPlan:
    """Return the plan that was made for the fragment before, if it is alike, or make one."""
    files = columns_layout(fragment)
    cached = snapshot.plans.get(id(columns))
    if cached is not None and cached.columns is columns and cached.files == files:
        plan: ReadPlan = cached
        return plan
    plan = _made_plan(fragment, columns, files)
    if isinstance(columns, tuple):  # others are made for one read
        if len(snapshot.plans) >= _PLANS_MAX:
            snapshot.plans.clear()
        snapshot.plans[id(columns)] = plan
    return plan


def columns_layout(fragment: Fragment) -> tuple[Hashable, ...]:
    """Describe which columns the files of a fragment have; equal for fragments laid out alike."""
    return tuple((file.fields, file.column_indices, file.is_legacy) for file in fragment.files)


def _made_plan(
    fragment: Fragment, columns: Sequence[Column], files: tuple[Hashable, ...]
) -> ReadPlan:
    by_file = [columns_of(fragment, file) for file in fragment.files]
    last_first = list(enumerate(by_file))[::-1]  # so that the first file prevails
    file_of_field = {
        field_id: number for number, fields_of_file in last_first for field_id in fields_of_file
    }
    owners = {
        field_id: column
        for _, fields_of_file in last_first
        for field_id, column in fields_of_file.items()
    }
    leaves_by_file: dict[int, list[Leaf]] = {}
    leaves: list[list[Leaf]] = []
    for column in columns:
        mine = list(leaves_of(column.field, column.arrow.type, owners))
        if column.keeps_dictionary:
            mine = [replace(leaf, encoded=True) for leaf in mine]
        leaves.append(mine)
        for leaf in mine:
            if leaf.field_id in file_of_field:
                _check_owned(fragment, leaf, owners[leaf.field_id])
                leaves_by_file.setdefault(file_of_field[leaf.field_id], []).append(leaf)
    return ReadPlan(columns, files, by_file, leaves=leaves, leaves_by_file=leaves_by_file)


def _read_leaves(
    reader: DataFileReader,
    leaves: Sequence[Leaf],
    owners: Mapping[int, int],
    requested: tuple[Rows, int | None],
) -> dict[int, list[LeafPart]]:
    """Read leaves of a file; plain values that shall come as a dictionary are made one.

    Since 2.1 a page is read as the type asks; before, the type tells how it was written.
    """
    stored = leaves
    if reader.file_version < (2, 1):
        stored = [
            replace(leaf, type=leaf.type.value_type) if leaf.encoded else leaf for leaf in leaves
        ]
    parts = reader.read_leaves(stored, owners, *requested)
    if stored is not leaves:
        for leaf in leaves:
            if leaf.encoded:
                parts[leaf.field_id] = [
                    LeafPart(part.levels, pc.dictionary_encode(part.values))
                    for part in parts[leaf.field_id]
                ]
    return parts


def assembled(
    fragment: Fragment,
    plan: ReadPlan,
    number: int,
    parts_by_leaf: dict[int, list[LeafPart]],
    num_rows: int,
) -> pa.ChunkedArray:
    """Build column ``number`` of the plan from the parts of its leaves."""
    column, leaves = plan.columns[number], plan.leaves[number]
    mine = {
        leaf.field_id: parts_by_leaf[leaf.field_id]
        for leaf in leaves
        if leaf.field_id in parts_by_leaf
    }
    place = f"column {column.field.name!r}"
    try:
        built = assemble(column.field, column.arrow.type, mine, num_rows)
    except CorruptFileError as exc:
        raise exc.located(_source_of(fragment, plan, leaves), None, place) from exc
    except NotSupportedError as exc:
        exc.add_note(f"{_source_of(fragment, plan, leaves)}, {place}")
        raise
    if len(built) != num_rows:
        raise CorruptFileError(
            f"fragment {fragment.id}", None, f"{num_rows} rows", f"{len(built)} rows", place
        )
    return built


def _source_of(fragment: Fragment, plan: ReadPlan, leaves: Sequence[Leaf]) -> str:
    """Name the fragment and its data files that hold some of the leaves."""
    paths = [
        fragment.files[number].path
        for number, theirs in plan.leaves_by_file.items()
        if any(leaf in leaves for leaf in theirs)
    ]
    return f"fragment {fragment.id} ({', '.join(paths)})"


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


def reads_at_a_time(snapshot: Snapshot, fragment: Fragment) -> int:
    """Return how many fragments like this one are read at the same time: 1 if it is near.

    Ranges of far stores are mostly awaited, so the time of a read is that of its rounds of
    requests, and the rounds of several fragments overlap.
    """
    stores = (snapshot.locations.locate("", file.base_id)[0] for file in fragment.files)
    return FAR_READS if any(store.scheme not in _NEAR for store in stores) else 1


def open_file(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> DataFileReader:
    """Open a data file of the fragment, or return the open one. Adds who needs it to errors.

    Raises CorruptFileError when the file is not of the kind that the manifest says.
    """
    store, path = snapshot.locations.locate(file.location(snapshot.manifest.path), file.base_id)
    try:
        reader = snapshot.files.get(store, path, file.size_bytes)
    except ObjectNotFoundError as exc:
        raise ObjectNotFoundError(
            f"{store.uri}/{path}", f"fragment {fragment.id} of version {snapshot.version}"
        ) from exc
    if file.is_legacy != (reader.file_version < (2, 0)):
        expected_version = ".".join(map(str, file.file_version))
        version = ".".join(map(str, reader.file_version))
        raise CorruptFileError(
            path, None, f"file version {expected_version}, as the manifest says", version
        )
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
    num_rows = open_file(snapshot, fragment, fragment.files[0]).num_rows
    if fragment.physical_rows not in (0, num_rows):
        expected = f"{fragment.physical_rows} rows, as the manifest says"
        raise CorruptFileError(where, None, expected, f"{num_rows} rows in its first data file")
    return num_rows
