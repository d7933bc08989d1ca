"""One row as a tree: every column, nested values open to any depth that is shown.

Layout of a node: ``name``, ``type``, and either ``text`` (with ``look`` null, value or bytes) or
``children``; ``more`` counts the children left out.

Limits: ``MAX_NODES`` nodes in all, ``MAX_CHILDREN`` of one, ``MAX_DEPTH`` deep, ``TEXT_CHARS`` per
value, ``BYTES_CHARS`` of opaque bytes. Of a list only the shown items are ever turned into Python
objects.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_nb.explorer.models import cells, text
from lance_nb.explorer.models.schema_tree import type_label

MAX_NODES = 1200
MAX_CHILDREN = 60
MAX_DEPTH = 10
TEXT_CHARS = 2000
BYTES_CHARS = 256

Node = dict[str, Any]


class _Budget:
    """How many nodes may still be made; one per tree."""

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
        items = [(text.name(one.name), scalar[at]) for at, one in enumerate(kind)]
    elif depth < MAX_DEPTH and _is_list(kind) and not _is_flat(kind):
        items = [(str(at), item) for at, item in enumerate(scalar.values[:MAX_CHILDREN])]
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
    """Tell lists of plain numbers (vectors), which read better as one line."""
    if pa.types.is_map(kind):
        return False
    inner = kind.value_type
    return bool(pa.types.is_floating(inner) or pa.types.is_integer(inner))
