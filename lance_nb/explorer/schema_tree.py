"""The schema as a flat list of lines, parents before children, each with its depth.

Layout of a line: ``depth``, ``name``, ``type`` (short form, see ``type_label``), ``nullable``,
``note`` (the field's metadata in one line).

Limits: ``MAX_LINES`` lines and ``MAX_DEPTH`` levels; ``hidden`` counts the top-level fields that
are left out or cut short.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.value_classes import dataclass

MAX_LINES = 200
MAX_DEPTH = 32
_MAX_NOTES = 4
_SHORT = {"halffloat": "float16", "float": "float32", "double": "float64"}


@dataclass(frozen=True, slots=True)
class SchemaLine(JsonFields):
    """One field of the schema."""

    depth: int
    name: str
    type: str
    nullable: bool
    note: str


@dataclass(frozen=True, slots=True)
class SchemaTree:
    """The first ``MAX_LINES`` fields of a schema in depth-first order."""

    lines: tuple[SchemaLine, ...]
    hidden: int
    num_columns: int

    def to_json(self) -> dict[str, Any]:
        """Return the tree as JSON-able values."""
        return {
            "lines": [line.to_json() for line in self.lines],
            "hidden": self.hidden,
            "columns": self.num_columns,
        }


def schema_tree(schema: pa.Schema) -> SchemaTree:
    """Lay a schema out line by line."""
    lines: list[SchemaLine] = []
    hidden = 0
    for field in schema:
        if len(lines) == MAX_LINES:
            hidden += 1
            continue
        for line in _lines(field, 0):
            if len(lines) < MAX_LINES:
                lines.append(line)
            else:
                hidden += 1
                break
    return SchemaTree(tuple(lines), hidden, len(schema))


def _lines(field: pa.Field, depth: int) -> Iterator[SchemaLine]:
    label = type_label(field.type)
    yield SchemaLine(depth, text.name(field.name), label, bool(field.nullable), _note(field))
    if depth < MAX_DEPTH:
        for child in _children(field.type):
            yield from _lines(child, depth + 1)


def _children(kind: pa.DataType) -> list[pa.Field]:
    """Fields worth a line of their own: members of structs, and what lists of structs hold."""
    if pa.types.is_struct(kind):
        return [kind.field(index) for index in range(kind.num_fields)]
    if _is_list(kind):
        return _children(kind.value_type)
    if pa.types.is_map(kind):
        return _children(kind.item_type)
    return []


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _note(field: pa.Field) -> str:
    pairs = list((field.metadata or {}).items())[:_MAX_NOTES]
    shown = [f"{_decoded(key)}={_decoded(value)}" for key, value in pairs]
    return text.line(", ".join(shown), 160)


def _decoded(raw: bytes) -> str:
    return text.cut(raw[:200].decode("utf-8", "replace"), 60)


def type_label(kind: pa.DataType, depth: int = 0) -> str:
    """Shorten to ``float32[128]``, ``list<int64>``, ``struct{3}``, ``timestamp[us, UTC]``."""
    if depth > MAX_DEPTH:
        return text.ELLIPSIS
    if isinstance(kind, pa.BaseExtensionType):
        return text.name(kind.extension_name)
    if pa.types.is_struct(kind):
        return f"struct{{{kind.num_fields}}}"
    if pa.types.is_fixed_size_list(kind):
        return f"{type_label(kind.value_type, depth + 1)}[{kind.list_size}]"
    if pa.types.is_map(kind):
        key, item = type_label(kind.key_type, depth + 1), type_label(kind.item_type, depth + 1)
        return f"map<{key}, {item}>"
    if pa.types.is_large_list(kind):
        return f"large_list<{type_label(kind.value_type, depth + 1)}>"
    if pa.types.is_list(kind):
        return f"list<{type_label(kind.value_type, depth + 1)}>"
    if pa.types.is_dictionary(kind):
        return f"dictionary<{type_label(kind.value_type, depth + 1)}>"
    shown = str(kind)
    return _SHORT.get(shown, text.name(shown.replace("tz=", "")))
