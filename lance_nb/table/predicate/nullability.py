"""Whether an expression can be null, by the rules of the reference.

Operators, comparisons, AND, OR, NOT, LIKE, BETWEEN and casts are null where an operand is; IS NULL
never is; COALESCE is not where an operand is not. Any other function may return null.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.table.predicate.expression import Call, Column, Expression, Literal, Path

_STRICT = frozenset({"AND", "OR", "NOT", "LIKE", "ILIKE", "BETWEEN", "||"})
_STRICT_STARTS = ("operator ", "a cast to ")
_FIRST_VALUE = frozenset({"coalesce", "nvl", "ifnull"})


def may_be_null(expression: Expression, schema: pa.Schema) -> bool:
    """Tell whether a value of the expression over columns of this schema can be null."""
    nodes = [expression]  # each before its operands; recursion would end at a thousand levels
    for node in nodes:
        if isinstance(node, Call):
            nodes += node.operands
    found: dict[int, bool] = {}
    for node in reversed(nodes):
        found[id(node)] = _node_may_be_null(node, schema, found)
    return found[id(expression)]


def _node_may_be_null(node: Expression, schema: pa.Schema, found: dict[int, bool]) -> bool:
    """Tell it of one node; ``found`` has its operands by identity."""
    if isinstance(node, Literal):
        return not node.scalar.is_valid
    if isinstance(node, Column):
        return _path_may_be_null(node.path, schema)
    name = node.name
    if name == "IS NULL":
        return False
    nullable = [found[id(operand)] for operand in node.operands]
    if name in _FIRST_VALUE:
        return all(nullable)
    if name == "nvl2":
        return any(nullable[1:])
    if name == "IN":
        return any(nullable) or _has_null_member(node)
    if name in _STRICT or name.startswith(_STRICT_STARTS):
        return any(nullable)
    return True


def _has_null_member(call: Call) -> bool:
    return isinstance(call.kernel, partial) and bool(call.kernel.keywords.get("has_null"))


def _path_may_be_null(path: Path, schema: pa.Schema) -> bool:
    if path[0] not in schema.names:
        return True
    field = schema.field(path[0])
    nullable = field.nullable
    for name in path[1:]:
        if not pt.is_struct(field.type):
            return True
        field = field.type.field(name)
        nullable |= field.nullable
    return bool(nullable)
