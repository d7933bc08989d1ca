"""Read one row as a tree, some rows as text for the clipboard, and the bytes of one cell.

Layout of a node of the tree: ``name``, ``type``, and either ``text`` (with ``look`` null, value or
bytes) or ``children``; ``more`` counts the children left out.

The text for the clipboard has a header and one line per row, with values separated by tabs, or is a
table of Markdown.

The bytes of a cell are read in pieces. Of a blob only the requested pieces are read; a binary value
is read with its row once, and the last one is kept for the next piece.

Limits: a tree has ``MAX_NODES`` nodes in all, ``MAX_CHILDREN`` of one and ``MAX_DEPTH`` levels,
with ``TEXT_CHARS`` per value and ``BYTES_CHARS`` of opaque bytes; of a list only the shown items
become Python objects. The clipboard gets ``MAX_ROWS`` rows and ``MAX_COLUMNS`` columns with
``CELL_CHARS`` characters per value and ``MAX_CHARS`` in all. A value of more than
``media.MAX_BYTES`` is described, not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.explorer import cells, text
from lance_nb.explorer.media import HEAD_BYTES, Media, media_of
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.source import Source, is_blob_column, scanned_source
from lance_nb.value_classes import dataclass

MAX_NODES = 1200
MAX_CHILDREN = 60
MAX_DEPTH = 10
TEXT_CHARS = 2000
BYTES_CHARS = 256

_MARKUP = re.compile(r"[\\|`*_<>\[\]&~]")
Node = dict[str, Any]
MAX_ROWS = 2000
MAX_COLUMNS = 200
CELL_CHARS = 2000
MAX_CHARS = 700_000
CellPlace = tuple[Any, ...]


class _Budget:
    """The number of nodes that may still be added to one tree."""

    def __init__(self) -> None:
        self.left = MAX_NODES


def row_tree(row: pa.Table) -> list[Node]:
    """Turn a table of one row into the nodes of its columns."""
    budget = _Budget()
    nodes = []
    for name, column in zip(row.schema.names, row.columns, strict=True):
        if budget.left <= 0:
            break
        nodes.append(_node(text.name(name), cells.plain(column)[0], 0, budget))
    return nodes


def _node(name: str, scalar: pa.Scalar, depth: int, budget: _Budget) -> Node:
    budget.left -= 1
    kind = scalar.type
    node: Node = {"name": name, "type": type_label(kind), "more": 0}
    if not scalar.is_valid:
        return node | {"text": "null", "look": "null"}
    if cells.is_binary(kind):
        return node | {"text": cells.scalar_text(scalar, BYTES_CHARS), "look": "bytes"}
    if depth < MAX_DEPTH and pa.types.is_struct(kind):
        items = [(text.name(field.name), scalar[index]) for index, field in enumerate(kind)]
    elif depth < MAX_DEPTH and _is_list(kind) and not _is_flat(kind):
        items = [(str(index), item) for index, item in enumerate(scalar.values[:MAX_CHILDREN])]
        node["more"] = max(0, len(scalar.values) - MAX_CHILDREN)
    else:
        return node | {"text": cells.scalar_text(scalar, TEXT_CHARS), "look": "value"}
    shown = items[: min(MAX_CHILDREN, max(0, budget.left))]
    node["more"] += len(items) - len(shown)
    node["children"] = [_node(key, inner, depth + 1, budget) for key, inner in shown]
    return node


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_map(kind)
    )


def _is_flat(kind: pa.DataType) -> bool:
    """Whether a list holds plain numbers (a vector), which reads better as one line."""
    if pa.types.is_map(kind):
        return False
    inner = kind.value_type
    return bool(pa.types.is_floating(inner) or pa.types.is_integer(inner))


@dataclass(frozen=True, slots=True)
class ClipboardText:
    """Lines for the clipboard, and how many rows they hold."""

    text: str
    rows: int


def clipboard_text(table: pa.Table) -> ClipboardText:
    """Write rows as lines; tabs and line breaks within values are signs, so that columns stay."""
    table = table.slice(0, MAX_ROWS).select(list(range(min(MAX_COLUMNS, table.num_columns))))
    columns = [cells.cell_texts(column, CELL_CHARS) for column in table.columns]
    lines = ["\t".join(text.name(name) for name in table.schema.names)]
    spent = len(lines[0])
    for row in zip(*columns, strict=True):
        line = "\t".join("null" if value is None else value for value in row)
        spent += len(line) + 1
        if spent > MAX_CHARS:
            break
        lines.append(line)
    return ClipboardText("\n".join(lines), len(lines) - 1)


def clipboard_markdown(table: pa.Table) -> ClipboardText:
    """Write rows as a table of Markdown, in which no value ends a cell or begins markup."""
    table_text = clipboard_text(table)
    lines = [
        "| " + " | ".join(_MARKUP.sub(r"\\\g<0>", value) for value in line.split("\t")) + " |"
        for line in table_text.text.split("\n")
    ]
    rule = "|" + " --- |" * (table_text.text.split("\n", 1)[0].count("\t") + 1)
    return ClipboardText("\n".join([lines[0], rule, *lines[1:]]), table_text.rows)


@dataclass(frozen=True, slots=True)
class CellBytes:
    """One value: its size, its media type, and a function that reads ``(offset, length)`` of it."""

    size_bytes: int
    media: Media
    read: Callable[[int, int], bytes]


class CellBytesCache:
    """Opens values, and caches the last one."""

    def __init__(self, _session: object) -> None:
        self._last: tuple[CellPlace, CellBytes | None] | None = None

    def open(self, dataset: Source, query: RowQuery, row: int, column: int) -> CellBytes | None:
        """Return a value's bytes, None for null. Raises NotSupportedError, InvalidInputError."""
        spot = (dataset, query.order, query.filter, row, column)
        if self._last is None or not _same(self._last[0], spot):
            self._last = (spot, _open_cell(dataset, query, row, column))
        return self._last[1]


def _same(place: CellPlace, other: CellPlace) -> bool:
    (dataset, arranged, *rest), (other_dataset, other_arranged, *other_rest) = place, other
    return dataset is other_dataset and arranged is other_arranged and rest == other_rest


def _open_cell(dataset: Source, query: RowQuery, row: int, column: int) -> CellBytes | None:
    names = query.names(dataset)
    if column >= len(names):
        raise InvalidInputError(f"column {column} does not exist")
    name = names[column]
    read, size = (
        _blob_value(dataset, query, row, name)
        if is_blob_column(dataset, name)
        else (_binary_value(dataset, query, row, name))
    )
    if read is None:
        return None
    return CellBytes(size, media_of(read(0, HEAD_BYTES), size), read)


Reader = Callable[[int, int], bytes]


def _blob_value(dataset: Source, query: RowQuery, row: int, name: str) -> tuple[Reader | None, int]:
    ids = query.rows(dataset, ["_rowid"], row, 1)["_rowid"]
    if not len(ids):
        raise InvalidInputError(f"row {row:,} does not exist")
    file = scanned_source(dataset).take_blobs(name, ids=ids.to_numpy())[0]
    return (None, 0) if file is None else (file.read_range, file.size())


def _binary_value(
    dataset: Source, query: RowQuery, row: int, name: str
) -> tuple[Reader | None, int]:
    column = query.rows(dataset, [name], row, 1).column(0)
    if not len(column):
        raise InvalidInputError(f"row {row:,} does not exist")
    scalar = cells.plain(column)[0]
    if not cells.is_binary(scalar.type):
        raise NotSupportedError(f"values of {name!r} are not binary")
    if not scalar.is_valid:
        return None, 0
    data = memoryview(scalar.as_buffer())
    return lambda offset, length: data[offset : offset + length].tobytes(), len(data)
