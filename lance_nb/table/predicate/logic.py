"""NOT, IS NULL, and chains of AND and OR in the tree of a parsed text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_nb.table.predicate.expression import Expression, Value, call


def chain_of(node: Any, key: str) -> list[Any]:
    """List the operands of nested ANDs (or ORs), in order, without recursion."""
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        while one.key == "paren":
            one = one.this
        if one.key == key:
            waiting += [one.expression, one.this]
        else:
            found.append(one)
    return found


def negation(operand: Expression) -> Expression:
    """Bind NOT."""
    return call("NOT", _invert, operand)


def _invert(value: Value) -> Value:
    import pyarrow.compute as pc

    return pc.invert(value)


def is_null(value: Value) -> Value:
    """Tell which values are null."""
    import pyarrow.compute as pc

    return pc.is_null(value)


def true_or_null(value: Value) -> Value:
    """Make null of what is false."""
    import pyarrow.compute as pc

    return pc.if_else(value, value, pa.scalar(None, pa.bool_()))
