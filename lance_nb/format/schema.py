"""The schema of a dataset: a tree of fields with ids; lookup by column path or id, and projection.

Column names are paths: ``a.b`` is field ``b`` of struct ``a``. A name with a dot or a backtick is
quoted with backticks (``a.`b.c` ``), a backtick inside is doubled. Names match exactly first, and
without regard to case if only one field matches, as in pylance.

Limits: see field.py. 200,000 columns open in well under two seconds.
Source: ``Manifest.fields`` and ``Manifest.schema_metadata``; ``FileDescriptor.schema``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import pyarrow as pa

from lance_nb._pb import file as pb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError
from lance_nb.format.arrow_schema import (
    check_text_metadata,
    field_to_arrow,
    fields_from_arrow,
    metadata_from_arrow,
)
from lance_nb.format.field import Field, fields_from_pb, fields_to_pb
from lance_nb.value_classes import dataclass

__all__ = ["Field", "Schema", "format_column_path", "parse_column_path"]


@dataclass(frozen=True, slots=True)
class Schema:
    """Top-level fields, in order, with the schema's own metadata."""

    fields: tuple[Field, ...]
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    _by_id: dict[int, Field] = field(init=False, repr=False, compare=False)
    _by_name: dict[str, Field] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_id = {top.id: top for top in self.fields}
        for top in self.fields:
            if top.children:
                by_id.update((field.id, field) for field in top.walk())
        for nameless in [field_id for field_id in by_id if field_id < 0]:
            del by_id[nameless]  # positions without identity: see field.py
        object.__setattr__(self, "_by_id", by_id)
        object.__setattr__(self, "_by_name", {top.name: top for top in self.fields})

    # --- conversions ----------------------------------------------------------------------------

    @classmethod
    def from_pb(
        cls, fields: Sequence[pb.Field], metadata: Mapping[str, bytes], path: str = ""
    ) -> Schema:
        """Build from the flat list of a manifest or data file. Raises CorruptFileError."""
        return cls(fields_from_pb(fields, path), dict(metadata))

    def to_pb(self) -> list[pb.Field]:
        """Return the flat depth-first list; ``metadata`` is stored beside it."""
        return fields_to_pb(self.fields)

    @classmethod
    def from_arrow(cls, schema: pa.Schema, first_id: int = 0) -> Schema:
        """Build from an Arrow schema, numbered depth first as in a new dataset."""
        metadata = metadata_from_arrow(schema.metadata, "the schema")
        return cls(fields_from_arrow(schema, first_id), metadata)

    def check_text_metadata(self) -> None:
        """Raise InvalidInputError for metadata, also of fields, that is no UTF-8 text."""
        check_text_metadata(self.walk(), self.metadata)

    def to_arrow(self, *, storage: bool = False) -> pa.Schema:
        """Return the Arrow schema that users see, or with ``storage`` the one data files hold.

        Raises NotSupportedError or CorruptFileError, with a note that names the column.
        """
        fields = [field_to_arrow(field, storage=storage) for field in self.fields]
        return pa.schema(fields, metadata=dict(self.metadata) or None)

    # --- looking around -------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def names(self) -> list[str]:
        """Names of the top-level fields."""
        return [field.name for field in self.fields]

    def walk(self) -> Iterator[Field]:
        """Yield every field, depth first."""
        for top in self.fields:
            yield from top.walk()

    def leaves(self) -> Iterator[Field]:
        """Yield the fields without children, depth first."""
        return (field for field in self.walk() if not field.children)

    def field_by_id(self, field_id: int) -> Field | None:
        """Return the field with that id, None if the schema has none."""
        return self._by_id.get(field_id)

    @property
    def max_field_id(self) -> int:
        """The largest id in the schema, -1 if it is empty."""
        return max(self._by_id, default=-1)

    def resolve(self, column: str) -> tuple[Field, ...]:
        """Return the fields from the top level down to ``column``.

        Raises ColumnNotFoundError, or InvalidInputError when the name fits several fields.
        """
        if column in self._by_name:
            return (self._by_name[column],)
        path: list[Field] = []
        siblings: Iterable[Field] = self.fields
        for segment in parse_column_path(column):
            exact = self._by_name.get(segment) if not path else path[-1].child(segment)
            chosen = exact or _ignoring_case(siblings, segment)
            if chosen is None:
                raise ColumnNotFoundError(column, tuple(self.names))
            path.append(chosen)
            siblings = chosen.children
        return tuple(path)

    def field(self, column: str) -> Field:
        """Return the field that ``column`` names. Raises ColumnNotFoundError."""
        return self.resolve(column)[-1]

    def path_of(self, field_id: int) -> str | None:
        """Return the column path of a field id, None if the schema has no such field."""
        names: list[str] = []
        field = self._by_id.get(field_id)
        while field is not None:
            names.append(field.name)
            field = self._by_id.get(field.parent_id)
        return format_column_path(reversed(names)) if names else None

    # --- choosing -------------------------------------------------------------------------------

    def project(self, columns: Sequence[str]) -> Schema:
        """Return the schema of some columns, in the order asked for.

        ``a.b`` keeps struct ``a`` with only ``b`` inside; several parts of one column are joined in
        the order of the schema. Raises ColumnNotFoundError, and InvalidInputError for a repeat.
        """
        if len(set(columns)) != len(columns):
            twice = next(column for column in columns if list(columns).count(column) > 1)
            raise InvalidInputError(f"column {twice!r} is asked for twice")
        paths = [self.resolve(column) for column in columns]
        wanted_ids = {id(path[-1]) for path in paths}
        passed = {id(field) for path in paths for field in path}
        tops = {id(path[0]): path[0] for path in paths}
        return Schema(
            tuple(_prune(top, wanted_ids, passed) for top in tops.values()), self.metadata
        )

    def project_by_ids(self, field_ids: Iterable[int]) -> Schema:
        """Return the schema of the fields with these ids, with the parents that lead to them."""
        leaves = [self._by_id[field_id] for field_id in field_ids if field_id in self._by_id]
        wanted_ids = {id(leaf) for leaf in leaves}
        passed = set(wanted_ids)
        for leaf in leaves:
            parent = self._by_id.get(leaf.parent_id)
            while parent is not None and id(parent) not in passed:
                passed.add(id(parent))
                parent = self._by_id.get(parent.parent_id)
        top_fields = [top for top in self.fields if id(top) in passed]
        return Schema(tuple(_prune(top, wanted_ids, passed) for top in top_fields), self.metadata)


def primary_key(schema: Schema) -> tuple[str, ...]:
    """Return the columns of the unenforced primary key in their order, none if there is none."""
    marked = [field for field in schema if field.keys.primary]
    return tuple(
        field.name for field in sorted(marked, key=lambda field: field.keys.primary_position)
    )


def check_primary_key(schema: Schema) -> None:
    """Refuse an unenforced primary key that pylance 14.0.2 refuses, also when it reads the dataset.

    Its columns are leaves that are not in a list or map, and neither they nor the structs around
    them may be null. Raises InvalidInputError.
    """
    for top in schema:
        for path in _key_paths(top, ()) if top.children or top.keys.primary else ():
            problem = _problem_of_key(path)
            if problem is not None:
                name = format_column_path([field.name for field in path])
                raise InvalidInputError(
                    f"column {name} is marked as part of the primary key (field metadata "
                    f"'lance-schema:unenforced-primary-key'), but {problem}"
                )


def _key_paths(field: Field, above: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    path = (*above, field)
    if field.keys.primary:
        yield path
    for child in field.children:
        yield from _key_paths(child, path)


def _problem_of_key(path: tuple[Field, ...]) -> str | None:
    *above, key = path
    if key.children:
        return f"is of type {key.logical_type}: a key must be a column of single values"
    if any(field.logical_type != "struct" for field in above):
        return "lies inside of a list or map"
    for path_field in path:
        if path_field.nullable:
            reason = (
                "may be null"
                if path_field is key
                else f"its struct {path_field.name!r} may be null"
            )
            return f"{reason}: declare it with pa.field(..., nullable=False)"
    return None


def _prune(top: Field, wanted_ids: set[int], passed: set[int]) -> Field:
    """Keep the wanted fields whole and, of those only passed through, the children on the way."""
    if id(top) in wanted_ids:
        return top
    below = (child for child in top.children if id(child) in passed)
    return replace(top, children=tuple(_prune(child, wanted_ids, passed) for child in below))


def _ignoring_case(fields: Iterable[Field], name: str) -> Field | None:
    folded = name.casefold()
    fields_alike = [field for field in fields if field.name.casefold() == folded]
    if len(fields_alike) > 1:
        names = ", ".join(repr(field.name) for field in fields_alike[:5])
        raise InvalidInputError(f"column {name!r} fits several fields: {names}")
    return fields_alike[0] if fields_alike else None


def parse_column_path(column: str) -> list[str]:
    """Split ``a.`b.c` `` into its segments. Raises InvalidInputError for broken quoting."""
    segments: list[str] = []
    position = 0
    while position <= len(column):
        if column.startswith("`", position):
            segment, position = _quoted(column, position + 1)
        else:
            stop = column.find(".", position)
            stop = len(column) if stop < 0 else stop
            segment, position = column[position:stop], stop
        segments.append(segment)
        if position < len(column) and column[position] != ".":
            raise InvalidInputError(f"column path {column!r}: expected '.' at {position}")
        position += 1
    return segments


def _quoted(column: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    while True:
        stop = column.find("`", position)
        if stop < 0:
            raise InvalidInputError(f"column path {column!r}: a backtick is not closed")
        parts.append(column[position:stop])
        if not column.startswith("``", stop):
            return "".join(parts), stop + 1
        parts.append("`")
        position = stop + 2


def format_column_path(segments: Iterable[str]) -> str:
    """Join segments into a column path, quoting those that need it."""
    quoted = (
        "`" + segment.replace("`", "``") + "`"
        if "." in segment or "`" in segment or not segment
        else segment
        for segment in segments
    )
    return ".".join(quoted)
