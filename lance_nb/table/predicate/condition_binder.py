"""Bind conditions to the columns of a dataset: names, literals, comparisons, AND, OR, IN, LIKE.

One method per kind of node of a syntax tree, found by the node's key. AND and OR are flattened
before they are bound, so that a chain of any length is one call; equalities of one column with
literals inside an OR become one IN. The tree is sqlglot's or that of ``simple_sql``, which has all
its nodes here; ``binder`` adds the others, and imports the modules of all functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate import comparison
from lance_nb.table.predicate.arithmetic import arithmetic, negative, number
from lance_nb.table.predicate.coercion import fit_float16, plain, uncast, unify
from lance_nb.table.predicate.expression import (
    Column,
    Expression,
    Literal,
    Names,
    call,
    null_of_null,
)
from lance_nb.table.predicate.logic import (
    as_test,
    chain_of,
    in_bulk,
    in_members,
    is_null,
    join_equalities,
    like,
    literal_value,
    negation,
    true_or_null,
)
from lance_nb.table.predicate.sql_text import Bulk, sql_of

_COMPARISONS = {
    "eq": ("=", comparison.equal), "neq": ("<>", comparison.not_equal),
    "lt": ("<", comparison.less), "lte": ("<=", comparison.less_equal),
    "gt": (">", comparison.greater), "gte": (">=", comparison.greater_equal),
    "nullsafeneq": ("IS DISTINCT FROM", comparison.is_distinct),
}  # fmt: skip


class ConditionBinder:
    """Binds the nodes of one tree."""

    def __init__(self, bulks: Mapping[str, Bulk], names: Names) -> None:
        self._bulks = bulks
        self.names = names

    def bind(self, node: Any) -> Expression:
        """Bind one node."""
        key = node.key
        if key in _COMPARISONS:
            return self._compare(key, node)
        method: Callable[[Any], Expression] | None = getattr(self, f"_bind_{key}", None)
        return self.bind_other(key, node) if method is None else method(node)

    def bind_other(self, key: str, node: Any) -> Expression:
        """Refuse a node without a method. Raises PredicateError."""
        raise PredicateError(f"{sql_of(node)} cannot be used in an expression: {key}")

    def boolean(self, node: Any) -> Expression:
        """Bind a node that must be a condition."""
        test = as_test(plain(self.bind(node)))
        if pt.is_null(test.type):
            return Literal(scalar_of(None, pa.bool_()))
        if not pt.is_boolean(test.type):
            raise PredicateError(f"{sql_of(node)} is {test.type}, not a condition")
        return test

    # Leaves.

    def _bind_paren(self, node: Any) -> Expression:
        return self.bind(node.this)

    def _bind_literal(self, node: Any) -> Expression:
        return Literal(scalar_of(node.this)) if node.is_string else number(node.this)

    def _bind_boolean(self, node: Any) -> Expression:
        return Literal(scalar_of(bool(node.this)))

    def _bind_null(self, node: Any) -> Expression:
        return Literal(scalar_of(None))

    def _bind_column(self, node: Any) -> Expression:
        parts = node.parts
        return self.names.resolve(
            [part.name for part in parts],
            quoted=bool(parts[0].args.get("quoted")),
            place=place_of(parts[0]),
        )

    def _bind_mod(self, node: Any) -> Expression:
        return arithmetic("%", self.bind(node.this), self.bind(node.expression))

    # Logic.

    def _bind_and(self, node: Any) -> Expression:
        parts = [self.boolean(part) for part in chain_of(node, "and")]
        return call("AND", comparison.all_of, *parts, folds=True)

    def _bind_or(self, node: Any) -> Expression:
        parts = join_equalities([self.boolean(part) for part in chain_of(node, "or")])
        return parts[0] if len(parts) == 1 else call("OR", comparison.any_of, *parts, folds=True)

    def _bind_not(self, node: Any) -> Expression:
        return negation(self.boolean(node.this))

    def _bind_is(self, node: Any) -> Expression:
        expected = node.expression
        if expected.key == "null":
            return call("IS NULL", is_null, self._for_null_test(node.this))
        if expected.key != "boolean":
            raise PredicateError(f"{sql_of(node)}: IS is followed by NULL, TRUE or FALSE")
        kernel = partial(comparison.is_truth, truth=bool(expected.this), negated=False)
        return call("IS", kernel, self.boolean(node.this))

    def _for_null_test(self, node: Any) -> Expression:
        """Bind what IS NULL asks about: regexp_match is null where the pattern is not found."""
        operand = self.bind(node)
        tested = as_test(operand)
        if tested is operand:
            return operand
        return call("regexp_match", true_or_null, tested)

    # Comparisons.

    def _compare(self, key: str, node: Any) -> Expression:
        sign, kernel = _COMPARISONS[key]
        left, right = uncast(self.bind(node.this), self.bind(node.expression))
        result = call(f"operator {sign}", kernel, *unify(left, right))
        return result if key == "nullsafeneq" else null_of_null(result)

    def _bind_nullsafeeq(self, node: Any) -> Expression:
        return negation(self._compare("nullsafeneq", node))

    def _bind_between(self, node: Any) -> Expression:
        value = self.bind(node.this)
        low, high = (self.bind(node.args[name]) for name in ("low", "high"))
        above = call("BETWEEN", comparison.greater_equal, *unify(value, low))
        below = call("BETWEEN", comparison.less_equal, *unify(value, high))
        return call("BETWEEN", comparison.all_of, above, below)

    def _bind_in(self, node: Any) -> Expression:
        if node.args.get("query") is not None or node.args.get("unnest") is not None:
            raise PredicateError(f"{sql_of(node)}: a subquery cannot be used in an expression")
        if not node.expressions:
            raise PredicateError("IN needs at least one value")
        operand = self.bind(node.this)
        value = plain(operand)
        members: list[Expression] = []
        for expression in node.expressions:
            bulk = (
                self._bulks.get(str(expression.this)) if expression.key == "placeholder" else None
            )
            if bulk:
                quick = in_bulk(value, bulk) if len(node.expressions) == 1 else None
                if quick is not None:
                    return quick
                members += [literal_value(*pair) for pair in bulk]
            else:
                members.append(self.bind(expression))
        rounded = [plain(fit_float16(operand, member)[1]) for member in members]
        return in_members(value, rounded, is_column=isinstance(operand, Column))

    def _bind_like(self, node: Any, escape: str = "\\") -> Expression:
        operands = [self.bind(node.this), self.bind(node.expression)]
        result = like(node.key.upper(), operands, ignore_case=node.key == "ilike", escape=escape)
        return negation(result) if node.args.get("negate") else result

    _bind_ilike = _bind_like

    # Values.

    def _bind_neg(self, node: Any) -> Expression:
        return negative(self.bind(node.this))


def place_of(identifier: Any) -> str:
    """Tell where a name stands in the text, "" if that is not known."""
    start = identifier.meta.get("start") if identifier.meta else None
    return "" if start is None else f" (at character {start})"
