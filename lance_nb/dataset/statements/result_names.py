"""Names of results without an alias, as pylance gives them: ``count(*)``, ``sum(dataset.a)``.

Casts and brackets leave no trace in a name; literals are written with their types.
Source: behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow.types as pt

from lance_nb.table.predicate.arithmetic import number

_OPERATORS = {
    "or": "OR", "and": "AND", "nullsafeneq": "IS DISTINCT FROM",
    "nullsafeeq": "IS NOT DISTINCT FROM", "eq": "=", "neq": "!=", "lt": "<", "lte": "<=",
    "gt": ">", "gte": ">=", "regexplike": "~", "regexpilike": "~*", "bitwiseor": "|",
    "bitwiseand": "&", "bitwiseleftshift": "<<", "bitwiserightshift": ">>", "add": "+",
    "sub": "-", "mul": "*", "div": "/", "intdiv": "/", "mod": "%", "dpipe": "||",
}  # fmt: skip
_NEGATED = {
    "like": "NOT LIKE", "ilike": "NOT ILIKE", "between": "NOT BETWEEN", "in": "NOT IN",
    "regexplike": "!~", "regexpilike": "!~*",
}  # fmt: skip
_INTERVAL_UNITS = {
    "YEAR": (12, 0, 0), "MONTH": (1, 0, 0), "WEEK": (0, 7, 0), "DAY": (0, 1, 0),
    "HOUR": (0, 0, 3600 * 10**9), "MINUTE": (0, 0, 60 * 10**9), "SECOND": (0, 0, 10**9),
    "MILLISECOND": (0, 0, 10**6), "MICROSECOND": (0, 0, 10**3), "NANOSECOND": (0, 0, 1),
}  # fmt: skip
_FUNCTION_NAMES = {
    "trim": "btrim", "substring": "substr", "mean": "avg", "pow": "power", "datepart": "date_part",
    "datetrunc": "date_trunc", "list_value": "make_array",
    "stddev_samp": "stddev", "var": "var_samp", "var_sample": "var_samp",
    "var_population": "var_pop", "covar": "covar_samp",
}  # fmt: skip


class ResultNames:
    """Names of expressions; ``column_name`` gives the name of a column in its scope."""

    def __init__(self, column_name: Callable[[Any], str]) -> None:
        self._column_name = column_name

    def name_of(self, node: Any) -> str:
        """Return the name of a result."""
        method = getattr(self, f"_name_{node.key}", None)
        if method is not None:
            return str(method(node))
        if node.key in _OPERATORS:
            return self._operator(node)
        return str(node.sql(dialect="duckdb"))

    def _operator(self, node: Any) -> str:
        return f" {_OPERATORS[node.key]} ".join(map(self.name_of, (node.this, node.expression)))

    def _listed(self, nodes: list[Any], between: str = ",") -> str:
        return between.join(self.name_of(node) for node in nodes)

    def _name_paren(self, node: Any) -> str:
        return self.name_of(node.this)

    _name_cast = _name_trycast = _name_alias = _name_distinct_value = _name_paren

    def _name_column(self, node: Any) -> str:
        name = self._column_name(node)
        return f"{name}()" if name in ("current_date", "current_timestamp") else name

    def _name_star(self, node: Any) -> str:
        return "*"

    def _name_literal(self, node: Any) -> str:
        if node.is_string:
            return f'Utf8("{node.this}")'
        value = number(node.this)
        text = value.scalar.as_py()
        if pt.is_floating(value.type):
            return f"Float64({_without_exponent(text)})"
        return f"{'UInt64' if pt.is_uint64(value.type) else 'Int64'}({text})"

    def _name_boolean(self, node: Any) -> str:
        return f"Boolean({str(bool(node.this)).lower()})"

    def _name_null(self, node: Any) -> str:
        return "NULL"

    def _name_neg(self, node: Any) -> str:
        inner = node.this.unnest()
        if inner.key == "literal" and not inner.is_string:
            kind, _, value = self._name_literal(inner).partition("(")
            return f"{kind}(-{value}"
        return f"(- {self.name_of(inner)})"

    def _name_not(self, node: Any) -> str:
        inner = node.this
        if inner.key in _NEGATED:
            return self._predicate(inner, _NEGATED[inner.key])
        if inner.key == "is":
            return f"{self.name_of(inner.this)} IS NOT {self._truth(inner.expression)}"
        return f"NOT {self.name_of(inner)}"

    def _name_is(self, node: Any) -> str:
        return f"{self.name_of(node.this)} IS {self._truth(node.expression)}"

    def _truth(self, node: Any) -> str:
        return "NULL" if node.key == "null" else str(bool(node.this)).upper()

    def _predicate(self, node: Any, sign: str) -> str:
        value = self.name_of(node.this)
        if node.key == "between":
            low, high = (self.name_of(node.args[end]) for end in ("low", "high"))
            return f"{value} {sign} {low} AND {high}"
        if node.key == "in":
            query = node.args.get("query")
            if query is not None:
                return f"{value} {sign} (<subquery>)"
            return f"{value} {sign} {self._listed(node.expressions, ', ')}"
        return f"{value} {sign} {self.name_of(node.expression)}"

    def _name_between(self, node: Any) -> str:
        return self._predicate(node, "BETWEEN")

    def _name_in(self, node: Any) -> str:
        return self._predicate(node, "IN")

    def _name_like(self, node: Any) -> str:
        return self._predicate(node, "NOT LIKE" if node.args.get("negate") else "LIKE")

    def _name_ilike(self, node: Any) -> str:
        return self._predicate(node, "NOT ILIKE" if node.args.get("negate") else "ILIKE")

    def _name_escape(self, node: Any) -> str:
        return f"{self.name_of(node.this)} CHAR '{node.expression.this}'"

    def _name_case(self, node: Any) -> str:
        parts = ["CASE"] if node.this is None else [f"CASE {self.name_of(node.this)}"]
        for branch in node.args["ifs"]:
            test, value = self.name_of(branch.this), self.name_of(branch.args["true"])
            parts.append(f"WHEN {test} THEN {value}")
        default = node.args.get("default")
        if default is not None:
            parts.append(f"ELSE {self.name_of(default)}")
        return " ".join([*parts, "END"])

    def _name_interval(self, node: Any) -> str:
        unit = str(node.args["unit"].name).upper().rstrip("S") if node.args.get("unit") else ""
        try:
            sizes = [int(node.this.name) * size for size in _INTERVAL_UNITS[unit]]
        except (KeyError, ValueError):
            return str(node.sql(dialect="duckdb"))
        months, days, nanoseconds = sizes
        shown = f"months: {months}, days: {days}, nanoseconds: {nanoseconds}"
        return f'IntervalMonthDayNano("IntervalMonthDayNano {{ {shown} }}")'

    def _name_array(self, node: Any) -> str:
        return f"make_array({self._listed(node.expressions)})"

    def _name_bracket(self, node: Any) -> str:
        key = node.expressions[0]
        is_field = key.key == "literal" and key.is_string
        return f"{self.name_of(node.this)}[{key.this if is_field else self.name_of(key)}]"

    def _name_dot(self, node: Any) -> str:
        return f"{self.name_of(node.this)}[{node.expression.name}]"

    def _name_anonymous(self, node: Any) -> str:
        name = str(node.this).lower()
        operands = list(node.expressions)
        order = ""
        if operands and operands[-1].key == "order":
            last = operands.pop()
            operands.append(last.this)
            order = f" ORDER BY {self._ordered(last)}"
        return f"{_FUNCTION_NAMES.get(name, name)}({self._listed(operands)}){order}"

    def _name_distinct(self, node: Any) -> str:
        return f"DISTINCT {self._listed(node.expressions)}"

    def _name_substring(self, node: Any) -> str:
        parts = (node.this, node.args.get("start"), node.args.get("length"))
        return f"substr({self._listed([part for part in parts if part is not None])})"

    def _name_strposition(self, node: Any) -> str:
        return f"strpos({self._listed([node.this, node.args['substr']])})"

    def _name_trim(self, node: Any) -> str:
        side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")))
        parts = [part for part in (node.this, node.expression) if part]
        return f"{side or 'btrim'}({self._listed(parts)})"

    def _name_extract(self, node: Any) -> str:
        field = str(node.this.this).upper()
        return f'date_part(Utf8("{field}"),{self.name_of(node.expression)})'

    def _name_filter(self, node: Any) -> str:
        return f"{self.name_of(node.this)} FILTER (WHERE {self.name_of(node.expression.this)})"

    def _name_subquery(self, node: Any) -> str:
        projections = node.this.expressions if node.this.key == "select" else []
        return self.name_of(projections[0]) if projections else "subquery"

    def _ordered(self, order: Any) -> str:
        parts = []
        for node in order.expressions:
            direction = "DESC" if node.args.get("desc") else "ASC"
            nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
            parts.append(f"{self.name_of(node.this)} {direction} NULLS {nulls}")
        return f"[{', '.join(parts)}]"

    def _name_window(self, node: Any) -> str:
        parts = [self.name_of(node.this)]
        keys = node.args.get("partition_by")
        if keys:
            parts.append(f"PARTITION BY [{self._listed(keys, ', ')}]")
        order = node.args.get("order")
        if order is not None:
            parts.append(f"ORDER BY {self._ordered(order)}")
        parts.append(_frame(node.args.get("spec"), is_ordered=order is not None))
        return " ".join(parts)


def _without_exponent(value: float) -> str:
    """Return the shortest digits that are this number, all of them written."""
    if not isfinite(value):
        return str(value)
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def _frame(spec: Any, *, is_ordered: bool) -> str:
    if spec is None:
        if is_ordered:
            return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    start = _frame_end(spec.args.get("start"), spec.args.get("start_side"))
    end = _frame_end(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    return f"{str(spec.args.get('kind')).upper()} BETWEEN {start} AND {end}"


def _frame_end(value: Any, side: Any) -> str:
    text = value if isinstance(value, str) else str(value.name)
    return f"{text} {side or ''}".strip().upper()
