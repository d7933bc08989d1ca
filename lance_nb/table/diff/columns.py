"""Pair the columns of two versions, and find the files of a fragment that hold a column.

Top-level columns are paired by name, renamed ones with their former names. Field ids alone do not
identify them: after a column was dropped and its files were compacted away, its id is assigned
again. So the schemas of the versions that changed them are read in order; a version that was
restored brings its names back. A column whose type changed is paired when Arrow can cast the one
type to the other.

Two fragments that keep a column in the same files, by (field id, file), have equal values in it,
row by row, without reading any.

Limits: renames are not followed past a version that was cleaned up; fields are matched by name.
Source: messages Field and DataFile of lance.table; operations Project, Merge, Overwrite, Restore.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from lance_nb.errors import ColumnNotFoundError, NotFoundError
from lance_nb.format.field import Field
from lance_nb.format.fragment import TOMBSTONE, Fragment
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_effects import restored_version
from lance_nb.table.diff.fragments import FileKey, Places
from lance_nb.table.diff.merge_base import Ends, ancestor_of
from lance_nb.table.projection import project
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot, read_transaction
from lance_nb.value_classes import dataclass

ColumnFiles = frozenset[tuple[int, FileKey]]


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """One top-level column as both versions have it; None where a version has it not.

    ``name`` is that of ``b``, or of ``a`` when ``b`` has none. ``castable`` tells whether values
    of ``a`` can be shown in the type of ``b``.
    """

    name: str
    a: Field | None
    b: Field | None
    type_a: pa.Field | None
    type_b: pa.Field | None
    castable: bool = True

    @property
    def is_shared(self) -> bool:
        """Whether both versions have it, in types that can be compared."""
        return self.a is not None and self.b is not None and self.castable

    @property
    def arrow(self) -> pa.Field:
        """The Arrow field in which its values are shown."""
        field = self.type_a if self.type_b is None else self.type_b
        return pa.field(self.name, field.type, True, field.metadata)  # type: ignore[union-attr]


def pair_columns(a: Schema, b: Schema, renamed: Mapping[str, str]) -> tuple[ColumnPair, ...]:
    """Pair the columns: those of ``b`` in their order, then those that only ``a`` has.

    ``renamed`` gives the old path of those of ``b`` that had another one.
    """
    types_a = {field.name: field for field in project(a, None).schema}
    types_b = {field.name: field for field in project(b, None).schema}
    left = {field.name: field for field in a}
    names_a = {a.path_of(field.id): field.name for field in a}
    pairs = []
    for other in b:
        was = names_a.get(renamed.get(b.path_of(other.id) or "", ""))
        old = left.pop(other.name if was is None else was, None)
        type_a = None if old is None else types_a[old.name]
        type_b = types_b[other.name]
        fits = type_a is None or can_cast(type_a.type, type_b.type)
        pairs.append(
            ColumnPair(other.name, old, other, type_a=type_a, type_b=type_b, castable=fits)
        )
    pairs += [
        ColumnPair(field.name, field, None, type_a=types_a[field.name], type_b=None)
        for field in left.values()
    ]
    return tuple(pairs)


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Tell whether Arrow casts values of one type to another."""
    if source == target:
        return True
    try:
        pa.nulls(0, source).cast(target)
    except pa.ArrowException:
        return False
    return True


def choose_columns(
    pairs: Sequence[ColumnPair], columns: Sequence[str] | str | None
) -> tuple[ColumnPair, ...]:
    """Return the pairs of some names, in the order asked for. Raises ColumnNotFoundError."""
    if columns is None:
        return tuple(pairs)
    by_name = {pair.name: pair for pair in pairs}
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in by_name:
            raise ColumnNotFoundError(name, tuple(by_name))
    return tuple(by_name[name] for name in names)


class FragmentColumns:
    """The files in which the fragments of one version keep its columns."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._newest: tuple[Fragment, dict[int, FileKey]] | None = None

    def files_of(self, fragment: Fragment, field: Field) -> ColumnFiles:
        """Return the files that hold a column in a fragment; none if it has not the column."""
        if self._newest is None or self._newest[0] is not fragment:  # asked column after column
            self._newest = (fragment, dict(self._fields(fragment)))
        files = self._newest[1]
        return frozenset((field.id, files[field.id]) for field in field.walk() if field.id in files)

    def _fields(self, fragment: Fragment) -> Iterator[tuple[int, FileKey]]:
        for file in fragment.files:
            key = self._places.of_file(file)
            for field_id in file.fields:
                if field_id != TOMBSTONE:
                    yield field_id, key


# Column path in a version -> the path that it had in the common ancestor.
Names = dict[str, str]
_CHANGE_SCHEMA = ("Project", "Merge", "Overwrite", "Restore")


def find_renames(ends: Ends) -> dict[str, str]:
    """Return the old path of each field of ``b`` that has another one in ``a``."""
    a, b = set(_paths(ends.a.manifest.schema)), set(_paths(ends.b.manifest.schema))
    if not (a - b and b - a):
        return {}
    try:
        ancestor = ancestor_of(ends)
        if ancestor is None:
            return {}
        old = {start: path for path, start in _followed(ends, "a", ancestor).items()}
        new = _followed(ends, "b", ancestor)
    except NotFoundError:
        return {}
    renames = {path: old[start] for path, start in new.items() if start in old}
    return {path: was for path, was in renames.items() if path not in a and was not in b}


def _paths(schema: Schema) -> dict[str, int]:
    """Return the path of every field, with its id."""
    return {schema.path_of(field.id) or field.name: field.id for field in schema.walk()}


def _followed(ends: Ends, side: str, ancestor: Snapshot) -> Names:
    """Follow the fields from the ancestor to one side."""
    paths = _paths(ancestor.manifest.schema)
    names: Names = {path: path for path in paths}
    at_version: dict[int, Names] = {ancestor.version: names}
    for stretch in ends.between:
        if stretch.side != side:
            continue
        log = ends.source.log(stretch.branch)
        for version in range(stretch.after + 1, stretch.upto + 1):
            done = log.transaction(version)
            if done is not None and done.operation in _CHANGE_SCHEMA:
                snapshot = ends.source.load(Target(stretch.branch, version))
                after = _paths(snapshot.manifest.schema)
                if done.operation == "Overwrite":
                    names = {}
                elif done.operation == "Restore":
                    names = at_version.get(_restored(snapshot), {path: path for path in after})
                else:
                    names = _next(paths, after, names)
                paths = after
            at_version[version] = names
    return names


def _next(before: dict[str, int], after: dict[str, int], names: Names) -> Names:
    by_id = {number: path for path, number in before.items()}
    moved = {path: by_id[number] for path, number in after.items() if number in by_id}
    return {path: names[was] for path, was in moved.items() if was in names}


def _restored(snapshot: Snapshot) -> int:
    data = read_transaction(snapshot)
    version = None if data is None else restored_version(data, snapshot.manifest.path)
    return -1 if version is None else version
