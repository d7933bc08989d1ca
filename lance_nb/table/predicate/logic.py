"""NOT, IS NULL, LIKE, IN, chains of AND and OR, and whether an expression can be null.

Equalities of one column inside an OR become one look-up for all literals, as IN does. Nullability
is that of pylance: operators, comparisons, AND, OR, NOT, LIKE, BETWEEN and casts are null where
an operand is; IS NULL never is; COALESCE is not where an operand is not. Any other function may
return null.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate import comparison
from lance_nb.table.predicate.arithmetic import number
from lance_nb.table.predicate.coercion import cast, fit_literal, rounds_beside, text, unify
from lance_nb.table.predicate.expression import (
    Call,
    Column,
    Expression,
    Literal,
    Path,
    Value,
    call,
    is_null_literal,
)
from lance_nb.table.predicate.sql_text import Bulk


def chain_of(node: Any, key: str) -> list[Any]:
    """List the operands of nested ANDs (or ORs), in order, without recursion."""
    operands, waiting = [], [node]
    while waiting:
        operand = waiting.pop()
        while operand.key == "paren":
            operand = operand.this
        if operand.key == key:
            waiting += [operand.expression, operand.this]
        else:
            operands.append(operand)
    return operands


def negation(operand: Expression) -> Expression:
    """Bind NOT."""
    return call("NOT", invert, operand)


def invert(value: Value) -> Value:
    """Tell which conditions are false."""
    return pc.invert(value)


def is_null(value: Value) -> Value:
    """Tell which values are null."""
    return pc.is_null(value)


def like(
    name: str, operands: Sequence[Expression], *, ignore_case: bool, escape: str = "\\"
) -> Expression:
    """Bind LIKE and ILIKE."""
    if escape != "\\":
        raise PredicateError(f"the escape character of LIKE must be a backslash, not {escape!r}")
    value, pattern = (text(operand, name=name) for operand in operands)
    kernel = partial(comparison.like, ignore_case=ignore_case)
    if isinstance(pattern, Literal) and not isinstance(value, Literal):
        return call(name, partial(kernel, pattern=pattern.scalar), value)
    return call(name, kernel, value, pattern)


def as_test(expression: Expression) -> Expression:
    """Turn regexp_match into "is found", never null, where a condition is wanted (as pylance)."""
    # Asked of the kernel, because only what calls such functions imports them.
    test = getattr(expression.kernel, "is_found", None) if isinstance(expression, Call) else None
    if test is None or not isinstance(expression, Call):
        return expression
    return call(expression.name, test, *expression.operands)


def true_or_null(value: Value) -> Value:
    """Make null of what is false."""
    return pc.if_else(value, value, scalar_of(None, pa.bool_()))


_STRICT = frozenset({"AND", "OR", "NOT", "LIKE", "ILIKE", "BETWEEN", "||"})
_STRICT_STARTS = ("operator ", "a cast to ")
_FIRST_VALUE = frozenset({"coalesce", "nvl", "ifnull"})


def may_be_null(expression: Expression, schema: pa.Schema) -> bool:
    """Tell whether a value of the expression over columns of this schema can be null."""
    nodes = [expression]  # each before its operands; recursion would end at a thousand levels
    for node in nodes:
        if isinstance(node, Call):
            nodes += node.operands
    memo: dict[int, bool] = {}
    for node in reversed(nodes):
        memo[id(node)] = _node_may_be_null(node, schema, memo)
    return memo[id(expression)]


def _node_may_be_null(node: Expression, schema: pa.Schema, memo: dict[int, bool]) -> bool:
    """Tell it of one node; ``memo`` has its operands by identity."""
    if isinstance(node, Literal):
        return not node.scalar.is_valid
    if isinstance(node, Column):
        return _path_may_be_null(node.path, schema)
    name = node.name
    if name == "IS NULL":
        return False
    nullable = [memo[id(operand)] for operand in node.operands]
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


_SHORTEST_SET = 3


def literal_value(is_text: bool, text: str) -> Literal:
    """Bind one item of a long list."""
    if is_text:
        return Literal(scalar_of(text))
    return Literal(scalar_of(None)) if text.upper() == "NULL" else number(text)


def in_bulk(value: Expression, bulk: Bulk) -> Expression | None:
    """Bind IN of a long list of integers or texts at once, None where the list is neither."""
    texts = [text for is_text, text in bulk if is_text or text.upper() != "NULL"]
    kinds = {is_text for is_text, text in bulk if is_text or text.upper() != "NULL"}
    try:
        if pt.is_integer(value.type) and kinds == {False}:
            members = comparison.array_of([int(text) for text in texts], value.type)
        elif (pt.is_string(value.type) or pt.is_large_string(value.type)) and kinds == {True}:
            members = comparison.array_of(texts, value.type)
        else:
            return None
    except (ValueError, OverflowError, pa.ArrowException):
        return None
    has_null = len(texts) < len(bulk)
    return call("IN", partial(comparison.in_set, members=members, has_null=has_null), value)


def in_members(
    value: Expression, members: Sequence[Expression], *, is_column: bool = True
) -> Expression:
    """Bind IN: one look-up for the literals of each type, an OR for what is no literal."""
    sets: dict[pa.DataType, list[pa.Scalar]] = {}
    tests = []
    for member in members:
        fitted = member
        if isinstance(member, Literal) and not isinstance(value, Literal):
            rounds = not is_column and rounds_beside(member, value.type)
            fitted = member if rounds else fit_literal(member, value.type)
        type_ = _looked_up_type(value, fitted)
        if isinstance(fitted, Literal) and type_ is not None:
            sets.setdefault(type_, []).append(fitted.scalar)
        else:
            tests.append(call("IN", comparison.equal, *unify(value, fitted)))
    for type_, scalars in sets.items():
        array, has_null = comparison.members_of(scalars, type_)
        kernel = partial(comparison.in_set, members=array, has_null=has_null)
        tests.append(call("IN", kernel, cast(value, type_)))
    if all(is_null_literal(member) for member in members):
        return Literal(scalar_of(None, pa.bool_()))
    if len(tests) == 1:
        return tests[0]
    return call("IN", comparison.any_of, *tests, folds=True)


def _looked_up_type(value: Expression, member: Expression) -> pa.DataType | None:
    """Return the type in which a literal is looked up, None where it has to be compared."""
    if not isinstance(member, Literal) or pt.is_nested(value.type):
        return None
    if member.type == value.type or pt.is_null(member.type):
        return value.type
    if pt.is_integer(value.type) and pt.is_floating(member.type):
        return member.type
    return None


def join_equalities(parts: Sequence[Expression]) -> list[Expression]:
    """Turn equalities of one column with literals into one look-up per column."""
    groups: dict[Column, list[Literal]] = {}
    for part in parts:
        column, literal = _equality(part)
        if column is not None and literal is not None:
            groups.setdefault(column, []).append(literal)
    joined = {column for column, members in groups.items() if len(members) >= _SHORTEST_SET}
    unjoined = [part for part in parts if _equality(part)[0] not in joined]
    return [
        *unjoined,
        *(in_members(column, members) for column, members in groups.items() if column in joined),
    ]


def _equality(part: Expression) -> tuple[Column | None, Literal | None]:
    if isinstance(part, Call) and part.kernel is comparison.equal:
        left, right = part.operands
        if isinstance(left, Column) and isinstance(right, Literal):
            return left, right
    return None, None
