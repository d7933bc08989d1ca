"""IN, and equalities of one column inside an OR: one look-up for all literals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.table.predicate import comparison
from lance_nb.table.predicate.arithmetic import number
from lance_nb.table.predicate.coercion import fit_literal, unify
from lance_nb.table.predicate.expression import Call, Column, Expression, Literal, call
from lance_nb.table.predicate.sql_text import Bulk

_SHORTEST_SET = 3


def literal_value(is_text: bool, text: str) -> Literal:
    """Bind one item of a long list."""
    return Literal(pa.scalar(text)) if is_text else number(text)


def in_whole_numbers(value: Expression, bulk: Bulk) -> Expression | None:
    """Bind IN of a long list of integers at once, None where that is not what the list is."""
    if not pt.is_integer(value.type) or any(is_text for is_text, _ in bulk):
        return None
    try:
        members = pa.array([int(text) for _, text in bulk], value.type)
    except (ValueError, OverflowError, pa.ArrowException):
        return None
    return call("IN", partial(comparison.in_set, members=members, has_null=False), value)


def in_members(value: Expression, members: Sequence[Expression]) -> Expression:
    """Bind IN: one look-up for literals of the value's type, an OR for the others."""
    fixed, others = [], []
    for member in members:
        fitted = member
        if isinstance(member, Literal) and not isinstance(value, Literal):
            fitted = fit_literal(member, value.type)
        literal = isinstance(fitted, Literal) and not pt.is_nested(value.type)
        if literal and (fitted.type == value.type or pt.is_null(fitted.type)):
            fixed.append(fitted)
        else:
            others.append(call("IN", comparison.equal, *unify(value, fitted)))
    if fixed:
        scalars = [one.scalar for one in fixed if isinstance(one, Literal)]
        array, has_null = comparison.members_of(scalars, value.type)
        kernel = partial(comparison.in_set, members=array, has_null=has_null)
        others.append(call("IN", kernel, value))
    return others[0] if len(others) == 1 else call("IN", comparison.any_of, *others)


def join_equalities(parts: Sequence[Expression]) -> list[Expression]:
    """Turn equalities of one column with literals into one look-up per column."""
    groups: dict[Column, list[Literal]] = {}
    for part in parts:
        column, literal = _equality(part)
        if column is not None and literal is not None:
            groups.setdefault(column, []).append(literal)
    joined = {column for column, found in groups.items() if len(found) >= _SHORTEST_SET}
    kept = [part for part in parts if _equality(part)[0] not in joined]
    return [
        *kept,
        *(in_members(column, found) for column, found in groups.items() if column in joined),
    ]


def _equality(part: Expression) -> tuple[Column | None, Literal | None]:
    if isinstance(part, Call) and part.kernel is comparison.equal:
        left, right = part.operands
        if isinstance(left, Column) and isinstance(right, Literal):
            return left, right
    return None, None
