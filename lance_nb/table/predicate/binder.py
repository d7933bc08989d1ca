"""Bind a syntax tree to the columns of a dataset.

One method per kind of node of sqlglot's tree, found by the node's key. AND and OR are flattened
before they are bound, so that a chain of any length is one call; equalities of one column with
literals inside an OR become one IN.

Not supported: subqueries, aggregates, window functions, and functions that are in none
of the tables of this folder; nothing here can read a file or another table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import (
    comparison,
    list_functions,
    list_results,
    number_functions,
    pattern_functions,
    string_functions,
    time_functions,
)
from lance_nb.table.predicate.arithmetic import arithmetic, negative, number, shift
from lance_nb.table.predicate.casts import try_cast_kernel
from lance_nb.table.predicate.coercion import (
    cast,
    fit_float16,
    fit_literal,
    plain,
    plain_for_cast,
    uncast,
    unify,
)
from lance_nb.table.predicate.expression import (
    Column,
    Expression,
    Literal,
    Names,
    call,
    child,
    null_of_null,
    scalar_of,
)
from lance_nb.table.predicate.functions import call_of
from lance_nb.table.predicate.logic import (
    chain_of,
    in_bulk,
    in_members,
    is_null,
    join_equalities,
    literal_value,
    negation,
    true_or_null,
)
from lance_nb.table.predicate.sql_text import SqlText, sql_of
from lance_nb.table.predicate.type_names import type_of

_COMPARISONS = {
    "eq": ("=", comparison.equal), "neq": ("<>", comparison.not_equal),
    "lt": ("<", comparison.less), "lte": ("<=", comparison.less_equal),
    "gt": (">", comparison.greater), "gte": (">=", comparison.greater_equal),
    "nullsafeneq": ("IS DISTINCT FROM", comparison.is_distinct),
}  # fmt: skip
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "intdiv": "/"}
_SHIFTS = {"bitwiseleftshift": "shift_left", "bitwiserightshift": "shift_right"}
_INSTEAD = {
    "similarto": "use regexp_like(text, pattern)",
    "regexpilike": "use regexp_like(text, pattern, 'i')",
    "any": "use IN (...), or array_has(list, value)",
    "slice": "use array_slice(list, first, last)",
    "attimezone": "use to_local_time(timestamp), or a cast",
    "exists": "subqueries are not read; query the dataset with SQL (ds.sql)",
    "if": "use CASE WHEN ... THEN ... ELSE ... END",
}
_HAS = frozenset(list_functions.list_names("has", "contains", "element_of"))
_WORDS_AS_CALLS = ("current_date", "current_timestamp")


def bind_sql(sql: SqlText, names: Names) -> Expression:
    """Bind a parsed text. Raises PredicateError, which names what is wrong and where."""
    return _Binder(sql, names).bind(sql.tree)


class _Binder:
    """Binds the nodes of one tree; holds the text for messages."""

    def __init__(self, sql: SqlText, names: Names) -> None:
        self._sql = sql
        self._names = names

    def bind(self, node: Any) -> Expression:
        """Bind one node."""
        key = node.key
        if key in _COMPARISONS:
            return self._compare(key, node)
        if key in _ARITHMETIC:
            left, right = self.bind(node.this), self.bind(node.expression)
            return arithmetic(_ARITHMETIC[key], left, right)
        if key in _SHIFTS:
            return shift(_SHIFTS[key], self.bind(node.this), self.bind(node.expression))
        method: Callable[[Any], Expression] | None = getattr(self, f"_bind_{key}", None)
        if method is None:
            hint = f"; {_INSTEAD[key]}" if key in _INSTEAD else ""
            raise PredicateError(f"{sql_of(node)} cannot be used in an expression{hint}")
        return method(node)

    def boolean(self, node: Any) -> Expression:
        """Bind a node that must be a condition."""
        found = pattern_functions.as_test(plain(self.bind(node)))
        if pt.is_null(found.type):
            return Literal(scalar_of(None, pa.bool_()))
        if not pt.is_boolean(found.type):
            raise PredicateError(f"{sql_of(node)} is {found.type}, not a condition")
        return found

    # Leaves.

    def _bind_paren(self, node: Any) -> Expression:
        return self.bind(node.this)

    def _bind_literal(self, node: Any) -> Expression:
        return Literal(scalar_of(node.this)) if node.is_string else number(node.this)

    def _bind_boolean(self, node: Any) -> Expression:
        return Literal(scalar_of(bool(node.this)))

    def _bind_null(self, node: Any) -> Expression:
        return Literal(scalar_of(None))

    def _bind_hexstring(self, node: Any) -> Expression:
        digits = str(node.this)
        try:
            return Literal(scalar_of(bytes.fromhex("0" * (len(digits) % 2) + digits)))
        except ValueError as exc:
            raise PredicateError(f"{digits!r} is no hexadecimal number") from exc

    def _bind_array(self, node: Any) -> Expression:
        values = [self.bind(one) for one in node.expressions]
        literals = [one for one in values if isinstance(one, Literal)]
        if len(literals) < len(values):
            return list_results.make_array("a list in brackets", values)
        return list_functions.literal_list(literals)

    def _bind_column(self, node: Any) -> Expression:
        parts = node.parts
        if len(parts) == 1 and not parts[0].args.get("quoted"):
            word = parts[0].name.lower()
            if word in _WORDS_AS_CALLS and parts[0].name not in self._names.schema.names:
                return call_of(word, [])
        return self._names.resolve(
            [part.name for part in parts],
            quoted=bool(parts[0].args.get("quoted")),
            place=_place(parts[0]),
        )

    def _bind_dot(self, node: Any) -> Expression:
        return child(self.bind(node.this), node.expression.name, place=_place(node.expression))

    def _bind_bracket(self, node: Any) -> Expression:
        parent = self.bind(node.this)
        if len(node.expressions) != 1:
            raise PredicateError(f"{sql_of(node)}: expected one field or one position in brackets")
        key = self.bind(node.expressions[0])
        if isinstance(key, Literal) and pt.is_string(key.type):
            return child(parent, key.scalar.as_py())
        return list_functions.element_at("an element", [parent, key])

    # Logic.

    def _bind_and(self, node: Any) -> Expression:
        parts = [self.boolean(one) for one in chain_of(node, "and")]
        return call("AND", comparison.all_of, *parts, folds=True)

    def _bind_or(self, node: Any) -> Expression:
        parts = join_equalities([self.boolean(one) for one in chain_of(node, "or")])
        return parts[0] if len(parts) == 1 else call("OR", comparison.any_of, *parts, folds=True)

    def _bind_not(self, node: Any) -> Expression:
        return negation(self.boolean(node.this))

    def _bind_is(self, node: Any) -> Expression:
        wanted = node.expression
        if wanted.key == "null":
            return call("IS NULL", is_null, self._for_null_test(node.this))
        if wanted.key != "boolean":
            raise PredicateError(f"{sql_of(node)}: IS is followed by NULL, TRUE or FALSE")
        kernel = partial(comparison.is_truth, wanted=bool(wanted.this), negated=False)
        return call("IS", kernel, self.boolean(node.this))

    def _for_null_test(self, node: Any) -> Expression:
        """Bind what IS NULL asks about: regexp_match is null where the pattern is not found."""
        found = self.bind(node)
        tested = pattern_functions.as_test(found)
        if tested is found:
            return found
        return call("regexp_match", true_or_null, tested)

    # Comparisons.

    def _compare(self, key: str, node: Any) -> Expression:
        sign, kernel = _COMPARISONS[key]
        left, right = uncast(self.bind(node.this), self.bind(node.expression))
        found = call(f"operator {sign}", kernel, *unify(left, right))
        return found if key == "nullsafeneq" else null_of_null(found)

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
        for one in node.expressions:
            bulk = self._sql.bulks.get(str(one.this)) if one.key == "placeholder" else None
            if bulk:
                quick = in_bulk(value, bulk) if len(node.expressions) == 1 else None
                if quick is not None:
                    return quick
                members += [literal_value(*pair) for pair in bulk]
            else:
                members.append(self.bind(one))
        rounded = [plain(fit_float16(operand, member)[1]) for member in members]
        return in_members(value, rounded, is_column=isinstance(operand, Column))

    def _bind_like(self, node: Any, escape: str = "\\") -> Expression:
        operands = [self.bind(node.this), self.bind(node.expression)]
        found = pattern_functions.like(
            node.key.upper(), operands, ignore_case=node.key == "ilike", escape=escape
        )
        return negation(found) if node.args.get("negate") else found

    _bind_ilike = _bind_like

    def _bind_escape(self, node: Any) -> Expression:
        return self._bind_like(node.this, str(node.expression.this))

    # Values.

    def _bind_neg(self, node: Any) -> Expression:
        return negative(self.bind(node.this))

    def _bind_dpipe(self, node: Any) -> Expression:
        return string_functions.joined("||", self.bind(node.this), self.bind(node.expression))

    def _bind_cast(self, node: Any) -> Expression:
        value, type_ = self.bind(node.this), type_of(node.args["to"], node)
        if isinstance(value, Literal) and pt.is_decimal(type_) and value.digits:
            value = fit_literal(value, type_)
        return cast(plain_for_cast(value, type_), type_)

    def _bind_trycast(self, node: Any) -> Expression:
        type_ = type_of(node.args["to"], node)
        value = plain_for_cast(self.bind(node.this), type_)
        return call(f"TRY_CAST to {type_}", try_cast_kernel(type_), value)

    def _bind_case(self, node: Any) -> Expression:
        branches = []
        for one in node.args["ifs"]:
            if node.this is None:
                test = self.boolean(one.this)
            else:
                operands = unify(self.bind(node.this), self.bind(one.this))
                test = call("CASE", comparison.equal, *operands)
            branches.append((test, self.bind(one.args["true"])))
        default = node.args.get("default")
        otherwise = Literal(scalar_of(None)) if default is None else self.bind(default)
        return number_functions.choose("CASE", branches, otherwise)

    def _bind_anonymous(self, node: Any) -> Expression:
        name, operands = str(node.this).lower(), [self.bind(one) for one in node.expressions]
        if name in _HAS and len(operands) == 2:
            listed, element = operands
            if isinstance(listed, Literal) and not isinstance(element, Literal):
                return _in_list(name, listed, element)
        return call_of(name, operands)

    def _bind_substring(self, node: Any) -> Expression:
        parts = (node.this, node.args.get("start"), node.args.get("length"))
        return call_of("substr", [self.bind(one) for one in parts if one is not None])

    def _bind_strposition(self, node: Any) -> Expression:
        return call_of("strpos", [self.bind(node.this), self.bind(node.args["substr"])])

    def _bind_trim(self, node: Any) -> Expression:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            str(node.args.get("position")), "btrim"
        )
        parts = (node.this, node.expression)
        return call_of(name, [self.bind(one) for one in parts if one])

    def _bind_interval(self, node: Any) -> Expression:
        unit = node.args.get("unit")
        return time_functions.interval(str(node.this.name), str(unit.name) if unit else "")

    def _bind_extract(self, node: Any) -> Expression:
        field = Literal(scalar_of(str(node.this.this).lower()))
        return time_functions.date_part("extract", [field, self.bind(node.expression)])


def _in_list(name: str, listed: Literal, element: Expression) -> Expression:
    """Bind array_has of a list of literals as IN; none is found in an empty list."""
    if not listed.scalar.is_valid:
        return Literal(scalar_of(None, pa.bool_()))
    list_functions.list_of(listed, name=name)
    values = listed.scalar.values
    if not len(values):
        return Literal(scalar_of(False))
    members = [Literal(one if one.is_valid else scalar_of(None)) for one in values]
    return in_members(plain(element), members, is_column=isinstance(element, Column))


def _place(identifier: Any) -> str:
    start = identifier.meta.get("start") if identifier.meta else None
    return "" if start is None else f" (at character {start})"
