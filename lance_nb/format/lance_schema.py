"""LanceSchema and LanceField: the public schema with field ids, under pylance's names.

Both wrap the values that the engine works with (schema.py, field.py); ``LanceSchema.tree`` is the
engine's schema.

Source: ``lance.schema.LanceSchema`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lance_nb.errors import ArgumentError, ColumnNotFoundError, InvalidInputError
from lance_nb.format.arrow_schema import field_to_arrow, resolve_extensions
from lance_nb.format.field import Field
from lance_nb.format.schema import Schema, parse_column_path
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class LanceField:
    """A column of a LanceSchema, or a part of one.

    Examples:
        >>> column = lance_nb.LanceSchema.from_pyarrow(
        ...     pa.schema([("b", pa.list_(pa.int8()))])).fields()[0]
        >>> column.name(), column.id(), [part.id() for part in column.children()]
        ('b', 0, [1])
        >>> column.metadata, column.to_arrow().type
        ({}, ListType(list<item: int8>))
        >>> column.is_unenforced_primary_key(), column.unenforced_primary_key_position()
        (False, None)
        >>> column.is_unenforced_clustering_key(), column.unenforced_clustering_key_position()
        (False, None)
    """

    node: Field

    def name(self) -> str:
        """Return the name."""
        return self.node.name

    def id(self) -> int:
        """Return the field id, which data files refer to."""
        return self.node.id

    def children(self) -> list[LanceField]:
        """List the fields below this one: of a struct, or the item of a list."""
        return [LanceField(child) for child in self.node.children]

    @property
    def metadata(self) -> Mapping[str, str]:
        """The field's own metadata."""
        items = self.node.metadata.items()
        return {key: value.decode("utf-8", "replace") for key, value in items}

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field, JSON as the bytes it is stored as. Raises NotSupportedError."""
        return resolve_extensions(field_to_arrow(self.node, storage=True))

    def is_unenforced_primary_key(self) -> bool:
        """Return whether the field is part of the primary key, which is not enforced."""
        return self.node.keys.primary

    def unenforced_primary_key_position(self) -> int | None:
        """Return the place in the primary key, from 1; None if it has none."""
        return self.node.keys.primary_position or None

    def is_unenforced_clustering_key(self) -> bool:
        """Return whether rows are clustered by the field, which is not enforced."""
        return self.node.keys.clustering

    def unenforced_clustering_key_position(self) -> int | None:
        """Return the place in the clustering key, from 1; None if it has none."""
        return self.node.keys.clustering_position or None

    def __repr__(self) -> str:
        parts = f", children={self.children()}" if self.node.children else ""
        null = "" if self.node.nullable else ", nullable=False"
        kind = self.node.logical_type
        return (
            f"LanceField(name={self.name()!r}, id={self.id()}, logical_type={kind!r}{null}{parts})"
        )


@dataclass(frozen=True, slots=True, repr=False)
class LanceSchema:
    """The schema of a dataset with the ids of its fields: ``ds.lance_schema``.

    Operations such as ``LanceOperation.Project`` take one. ``from_pyarrow`` numbers the fields as a
    new dataset does, depth first from 0.

    Examples:
        >>> arrow = pa.schema([("a", pa.int64()), ("b", pa.string())])
        >>> schema = lance_nb.LanceSchema.from_pyarrow(arrow)
        >>> [(field.name(), field.id()) for field in schema.fields()], schema.names
        ([('a', 0), ('b', 1)], ['a', 'b'])
        >>> schema.field("b").id(), schema.field_case_insensitive("B").id(), schema.field("c")
        (1, 1, None)
        >>> schema.unenforced_primary_key(), schema.unenforced_clustering_key()
        ([], [])
        >>> schema.to_pyarrow() == arrow
        True
    """

    tree: Schema

    @classmethod
    def of(cls, schema: Schema | LanceSchema | pa.Schema) -> LanceSchema:
        """Return any kind of schema as this one. Raises ArgumentError for other values."""
        match schema:
            case LanceSchema():
                return schema
            case Schema():
                return cls(schema)
            case pa.Schema():
                return cls.from_pyarrow(schema)
        raise ArgumentError(
            f"expected a LanceSchema or a pyarrow.Schema, not {type(schema).__name__}"
        )

    @classmethod
    def from_pyarrow(cls, schema: pa.Schema) -> LanceSchema:
        """Return an Arrow schema with field ids. Raises NotSupportedError for unknown types."""
        if not isinstance(schema, pa.Schema):
            raise ArgumentError(f"expected a pyarrow.Schema, not {type(schema).__name__}")
        tree = Schema.from_arrow(schema)
        tree.check_text_metadata()
        return cls(tree)

    def to_pyarrow(self) -> pa.Schema:
        """Return the Arrow schema, without ids; JSON columns as the bytes they are stored as.

        ``LanceDataset.schema`` has them as text. Raises NotSupportedError.
        """
        metadata = dict(self.tree.metadata) or None
        return pa.schema([field.to_arrow() for field in self.fields()], metadata=metadata)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self.tree.names

    def fields(self) -> list[LanceField]:
        """List the columns."""
        return [LanceField(field) for field in self.tree.fields]

    def field(self, name: str) -> LanceField | None:
        """Return a field by its path (``a.b``, ``a.`b.c```), None if there is none."""
        segments = _segments(name)
        current: Field | None = None
        for segment in segments:
            below = self.tree.fields if current is None else current.children
            current = next((child for child in below if child.name == segment), None)
            if current is None:
                return None
        return None if current is None else LanceField(current)

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """Return a field by its path, by another case if no name is the same; None if none fits.

        Raises InvalidInputError when several fit.
        """
        if not _segments(name):
            return None
        try:
            return LanceField(self.tree.field(name))
        except ColumnNotFoundError:
            return None

    def unenforced_primary_key(self) -> list[LanceField]:
        """List the fields of the primary key, in the order of their places."""
        marked = [field for field in self.tree.walk() if field.keys.primary]
        return [
            LanceField(field) for field in sorted(marked, key=lambda f: f.keys.primary_position)
        ]

    def unenforced_clustering_key(self) -> list[LanceField]:
        """List the fields that rows are clustered by, in the order of their places."""
        marked = [field for field in self.tree.walk() if field.keys.clustering]
        return [
            LanceField(field) for field in sorted(marked, key=lambda f: f.keys.clustering_position)
        ]

    def __repr__(self) -> str:
        metadata = f", metadata={dict(self.tree.metadata)}" if self.tree.metadata else ""
        return f"LanceSchema(fields={self.fields()}{metadata})"


def _segments(path: str) -> list[str]:
    try:
        return parse_column_path(path)
    except InvalidInputError:
        return []  # of broken quoting: no field has such a path
