"""Translate expressions: on rows, on groups, aggregates and window functions.

An expression on rows that the filters know becomes a column or a call of a function that the
filters' own code computes (``RowFunction``), ahead in the scan where the SELECT is from one table;
comparisons of columns and constants in which both agree are left to DuckDB, which joins by them.
What the filters do not know (functions of DuckDB alone, lambdas ...) is left as it is, and its
operands are translated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.arrow_compute import scalar_of
from lance_nb.dataset.statements.aggregates import AGGREGATES, OF_DUCKDB, WINDOWS, average_kernel
from lance_nb.dataset.statements.dialect import duckdb_text
from lance_nb.dataset.statements.duckdb_nodes import (
    is_float,
    literal_node,
    order_key,
    typed_node,
    zoned_node,
)
from lance_nb.dataset.statements.row_functions import COMPUTED_PREFIX, IS_COMPUTED, RowFunction
from lance_nb.dataset.statements.scope import ResultField, Scope
from lance_nb.errors import InvalidInputError, PredicateError
from lance_nb.table.predicate.arithmetic import arithmetic
from lance_nb.table.predicate.binder import Binder
from lance_nb.table.predicate.coercion import cast
from lance_nb.table.predicate.expression import (
    Column,
    Expression,
    Literal,
    Names,
    Path,
    call,
    nodes_of,
    paths_of,
)
from lance_nb.table.predicate.functions import call_of
from lance_nb.table.predicate.logic import chain_of
from lance_nb.table.predicate.type_names import type_of

_COMPARISONS = frozenset({"eq", "neq", "lt", "lte", "gt", "gte"})
_TRUTHS = _COMPARISONS | {
    "and", "or", "not", "is", "in", "between", "like", "ilike", "exists", "nullsafeeq",
    "nullsafeneq", "regexplike", "regexpilike",
}  # fmt: skip
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "/", "mod": "%"}
_CLOCKS = {
    "now": "now", "current_timestamp": "now", "current_date": "current_date",
    "today": "current_date",
}  # fmt: skip
UNBOUND = (PredicateError, pa.ArrowException, OverflowError)


class ScopeBinder(Binder):
    """Binds an expression on rows or groups; ``nodes`` say what DuckDB calls the columns."""

    def __init__(self, translator: ExpressionTranslator, scope: Scope) -> None:
        super().__init__({}, Names(pa.schema([])), nanoseconds=True)
        self._translator = translator
        self._scope = scope
        self.nodes: dict[Path, Any] = {}

    def bind(self, node: Any) -> Expression:
        """Bind one node; what was computed before is a column. Raises PredicateError."""
        computed = self._translator.computed_before(node, self._scope)
        if computed is None:
            return super().bind(node)
        inner, type_ = computed
        if type_ is None:
            raise PredicateError("the type is not known")
        column = Column((duckdb_text(inner),), type_)
        self.nodes[column.path] = inner
        return column

    def bind_other(self, key: str, node: Any) -> Expression:
        """Bind operators; a literal has a type of its own beside decimals and half floats."""
        if key not in _SIGNS:
            return super().bind_other(key, node)
        left, right = (self.bind(side) for side in (node.this, node.expression))
        if node.expression.key == "interval" and pt.is_date(left.type):
            raise PredicateError("a date plus an interval is a date")
        if pt.is_decimal(left.type) or pt.is_decimal(right.type):
            left, right = _as_decimal(left), _as_decimal(right)
        is_constant = isinstance(left, Literal) and isinstance(right, Literal)
        left, right = _as_double(left, right), _as_double(right, left)
        try:
            return arithmetic(_SIGNS[key], left, right)
        except PredicateError as exc:
            if is_constant and not pt.is_temporal(left.type) and not pt.is_temporal(right.type):
                raise InvalidInputError(f"SQL: {exc}") from None
            raise

    def _bind_mod(self, node: Any) -> Expression:
        return self.bind_other("mod", node)

    def _bind_anonymous(self, node: Any) -> Expression:
        name = str(node.this).lower()
        return super()._bind_anonymous(node) if name not in _CLOCKS else self._clock(name)

    def _clock(self, name: str) -> Expression:
        """Return the time of the statement, which is one in all of its places."""
        clocks, name = self._translator.clocks, _CLOCKS[name]
        if name not in clocks:
            clocks[name] = call_of(name, [])
        return clocks[name]

    def _bind_column(self, node: Any) -> Expression:
        try:
            column = self._scope.column_of(node)
        except PredicateError:
            if node.name.lower() in _CLOCKS and len(node.parts) == 1:
                return self._clock(node.name.lower())
            raise
        if isinstance(column, Column):
            self.nodes[column.path] = self._translator.column_node(node, self._scope)
        return column

    def _bind_regexplike(self, node: Any, *flags: Expression) -> Expression:
        return call_of("regexp_like", [self.bind(node.this), self.bind(node.expression), *flags])

    def _bind_regexpilike(self, node: Any) -> Expression:
        return self._bind_regexplike(node, Literal(scalar_of("i")))

    def _bind_cast(self, node: Any) -> Expression:
        try:
            return super()._bind_cast(node)
        except PredicateError as exc:
            if isinstance(self.bind(node.this), Literal):
                raise InvalidInputError(f"SQL: {exc}") from None
            raise


def _as_double(operand: Expression, other: Expression) -> Expression:
    """Return a half float beside a fraction as double; in filters the fraction is rounded."""
    is_fraction = isinstance(other, Literal) and pt.is_float64(other.type)
    return cast(operand, pa.float64()) if is_fraction and pt.is_float16(operand.type) else operand


def has_meaning_of_statements(bound: Expression, node: Any) -> bool:
    """Whether a condition means something else in a filter: half floats, units of moments."""
    from sqlglot import exp

    types = [column.type for column in _columns_of(bound)]
    targets = [with_nanoseconds(part).args["to"] for part in node.find_all(exp.Cast)]
    has_numbers = any(map(pt.is_integer, types))
    is_moment = any(
        type_.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIME)
        or (has_numbers and type_of(type_, node) == pa.timestamp("ns"))
        for type_ in targets
    )
    is_computed = node.find(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod) is not None
    return is_moment or (is_computed and any(map(pt.is_float16, types)))


def _as_decimal(operand: Expression) -> Expression:
    """Return a whole number beside a decimal with all the digits that its type can have."""
    if not isinstance(operand, Literal) or not pt.is_integer(operand.type):
        return operand
    return cast(Literal(operand.scalar), pa.decimal128(20, 0))


def with_nanoseconds(node: Any) -> Any:
    """Return a cast in which TIMESTAMP counts nanoseconds, as in pylance's statements."""
    from sqlglot import exp

    to = node.args["to"]
    kinds = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ)
    if to.this not in kinds or to.expressions:
        return node
    copy = node.copy()
    precision = exp.DataTypeParam(this=exp.Literal.number(9))
    copy.set("to", exp.DataType(this=to.this, expressions=[precision]))
    return copy


class ExpressionTranslator(ABC):
    """Translates the expressions of one statement; ``functions`` are those that they call.

    ``computed`` are the functions that a scan computes ahead.
    """

    def __init__(self) -> None:
        self.functions: dict[Any, RowFunction] = {}
        self.clocks: dict[str, Expression] = {}
        self.computed: dict[str, set[str]] = {}  # names of functions by scan
        self._subqueries: dict[tuple[int, ...], tuple[Any, Scope, Any, pa.DataType | None]] = {}

    @abstractmethod
    def query(self, node: Any, outer: Scope) -> tuple[Any, list[ResultField] | None]:
        """Return a query for DuckDB and its columns, None where these are not known."""

    def expression(self, node: Any, scope: Scope) -> tuple[Any, pa.DataType | None]:
        """Return an expression for DuckDB, and its type where that is known."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            inner, type_ = self.expression(node.this, scope)
            return exp.Paren(this=inner), type_
        computed = self.computed_before(node, scope)
        if computed is not None:
            return computed
        binder = ScopeBinder(self, scope)
        try:
            bound: Expression | None = binder.bind(node)
        except UNBOUND:
            bound = None
        if bound is not None:
            new = self._written(node, bound, binder, scope)
            if new is not None:
                return new, bound.type
        return self._left_to_duckdb(node, scope)

    def computed_before(self, node: Any, scope: Scope) -> tuple[Any, pa.DataType | None] | None:
        """Return what an expression finds computed: group keys, aggregates, windows, subqueries."""
        from sqlglot import exp

        if scope.keys:
            key = scope.keys.get(scope.signature_of(node))
            if key is not None:
                return key[0].copy(), key[1]
        if isinstance(node, exp.Window):
            return self._window(node, scope)
        if isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
            return self._aggregate(node, scope)
        if isinstance(node, exp.Anonymous):
            return self._aggregate(node, scope) if _is_aggregate(node) else None
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            return self._subquery(node, scope)
        return None

    def _subquery(self, node: Any, scope: Scope) -> tuple[Any, pa.DataType | None]:
        """Translate a query inside of an expression, once for all the times that it is bound.

        Each level of nested queries would otherwise be translated several times as often.
        """
        key = (id(node), id(scope.relations), id(scope.keys))
        if key not in self._subqueries:
            query, fields = self.query(node.copy(), scope)
            type_ = fields[0].type if fields and len(fields) == 1 else None
            self._subqueries[key] = (node, scope, query, type_)  # the ids hold while these live
        _, _, query, type_ = self._subqueries[key]
        return query.copy(), type_

    def _written(
        self, node: Any, bound: Expression, binder: ScopeBinder, scope: Scope
    ) -> Any | None:
        """Return a bound expression for DuckDB; None where it cannot have it so."""
        from sqlglot import exp

        if isinstance(bound, Column):
            return binder.nodes[bound.path].copy() if bound.path in binder.nodes else None
        if isinstance(bound, Literal):
            return literal_node(bound)
        if self._is_native(node, binder):
            return self._left_to_duckdb(node, scope)[0]
        tables = {path[0].partition(".")[0] for path in paths_of(bound)}
        if len(tables) > 1 and isinstance(node, exp.And | exp.Or | exp.Not):
            return self._left_to_duckdb(node, scope)[0]
        if len(tables) > 1 and node.key in _COMPARISONS:
            return self._compared(node, scope)
        return self._called(node, bound, binder, scope)

    def _called(
        self, node: Any, bound: Expression, binder: ScopeBinder, scope: Scope
    ) -> Any | None:
        from sqlglot import exp

        paths = tuple(dict.fromkeys(paths_of(bound)))
        if not paths or any(path not in binder.nodes for path in paths):
            return None
        types = {leaf.path: leaf.type for leaf in _columns_of(bound)}
        operands = [binder.nodes[path] for path in paths]
        pairs = tuple((path, types[path]) for path in paths)
        name = self._function(str(node.sql(dialect="duckdb")), bound, pairs)
        if name is None:
            return None
        called = exp.Anonymous(this=name, expressions=[operand.copy() for operand in operands])
        scan = scope.scan_of(paths)
        if scan is None:
            return called
        self.computed.setdefault(scan, set()).add(name)
        is_computed, value = (exp.column(column, quoted=True) for column in (IS_COMPUTED, name))
        return exp.Case(ifs=[exp.If(this=is_computed, true=value)], default=called)

    def _function(
        self, text: str, bound: Expression, paths: tuple[tuple[Path, pa.DataType], ...]
    ) -> str | None:
        """Return the name of the function that computes an expression.

        None where DuckDB has no types for it.
        """
        key = (text, paths)
        function = self.functions.get(key)
        if function is None:
            name = f"{COMPUTED_PREFIX}{len(self.functions)}"
            function = RowFunction(name, text, bound, paths)
            if not function.is_carried:
                return None
            self.functions[key] = function
        return function.name

    def _compared(self, node: Any, scope: Scope) -> Any:
        """Compare columns of two tables, so that DuckDB can join by them."""
        copy = node.copy()
        sides = [self.expression(side, scope) for side in (node.this, node.expression)]
        is_ordered = any(is_float(type_) for _, type_ in sides)
        left, right = (order_key(side) if is_ordered else side for side, _ in sides)
        copy.set("this", left)
        copy.set("expression", right)
        return copy

    def _is_native(self, node: Any, binder: ScopeBinder) -> bool:
        """Whether DuckDB computes an expression as the filters do."""
        node = node.unnest()
        if node.key in ("and", "or"):
            return all(self._is_native(side, binder) for side in (node.this, node.expression))
        if node.key == "not":
            return self._is_native(node.this, binder)
        if node.key == "is":
            return isinstance(binder.bind(node.this), Column) and node.expression.key == "null"
        if node.key == "column":
            return bool(pt.is_boolean(binder.bind(node).type))
        if node.key in _COMPARISONS:
            operands = [node.this, node.expression]
        elif node.key == "between":
            operands = [node.this, node.args["low"], node.args["high"]]
        elif node.key == "in" and node.expressions:
            operands = [node.this, *node.expressions]
        else:
            return False
        bound = [binder.bind(operand) for operand in operands]
        if not all(isinstance(operand, Column | Literal) for operand in bound):
            return False
        types = [operand.type for operand in bound]
        if all(pt.is_integer(type_) for type_ in types):
            return True
        same = (pt.is_string, pt.is_boolean, pt.is_date32)
        return any(all(test(type_) for type_ in types) for test in same)

    def _left_to_duckdb(self, node: Any, scope: Scope) -> tuple[Any, pa.DataType | None]:
        """Return an expression of DuckDB's, whose operands are translated."""
        from sqlglot import exp

        if isinstance(node, exp.And | exp.Or):  # not level by level, which takes quadratic time
            parts = [self._operand(part, scope) for part in chain_of(node, node.key)]
            connect = exp.and_ if isinstance(node, exp.And) else exp.or_
            return connect(*parts, copy=False), pa.bool_()
        if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
            return self._plus_interval(node, scope)
        copy = node.copy()
        if isinstance(node, exp.Column):
            try:
                _, column, _ = scope.resolve(node)
            except PredicateError:
                return copy, None
            is_whole = len(node.parts) == 1 or (len(node.parts) == 2 and bool(node.table))
            return copy, column.type if is_whole else None
        if isinstance(node, exp.Lambda | exp.DataType | exp.Interval | exp.Identifier | exp.Star):
            return copy, None
        if isinstance(node, exp.Exists):
            copy.set("this", self.query(copy.this, scope)[0])
            return copy, pa.bool_()
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            copy.set("this", self.expression(node.this, scope)[0])
            copy.set("query", self.query(copy.args["query"], scope)[0])
            return copy, pa.bool_()
        if isinstance(node, exp.Escape):
            copy.set("this", self._left_to_duckdb(node.this, scope)[0])
            return copy, pa.bool_()
        for name, value in node.args.items():
            if isinstance(value, exp.Expression):
                copy.set(name, self._operand(value, scope))
            elif isinstance(value, list):
                copy.set(name, [self._operand(operand, scope) for operand in value])
        type_ = pa.bool_() if node.key in _TRUTHS else None
        if isinstance(node, exp.Cast):
            try:
                type_ = type_of(node.args["to"], node, nanoseconds=True)
            except PredicateError:
                type_ = None
        return copy, type_

    def _plus_interval(self, node: Any, scope: Scope) -> tuple[Any, pa.DataType | None]:
        """Move a time by an interval; a date stays a date, which in DuckDB becomes a timestamp."""
        from sqlglot import exp

        moment, type_ = self.expression(node.this, scope)
        copy = node.copy()
        copy.set("this", _with_zone(moment, type_))
        copy.set("expression", self._operand(node.expression, scope))
        if type_ is not None and pt.is_date32(type_):
            return exp.Cast(this=copy, to=exp.DataType.build("DATE")), type_
        return copy, type_

    def _operand(self, value: Any, scope: Scope) -> Any:
        from sqlglot import exp

        if not isinstance(value, exp.Expression):
            return value
        if isinstance(value, exp.Literal | exp.Var | exp.DataType | exp.Identifier | exp.Null):
            return value.copy()
        if isinstance(value, exp.Order | exp.Ordered | exp.Distinct | exp.If | exp.PropertyEQ):
            return self._left_to_duckdb(value, scope)[0]
        return _with_zone(*self.expression(value, scope))

    def _aggregate(self, node: Any, scope: Scope) -> tuple[Any, pa.DataType | None]:
        average = self._decimal_average(node, scope.of_rows(), scope)
        if average is not None:
            return average
        inner, type_ = self._computed_by(node, scope.of_rows(), AGGREGATES)
        return typed_node(inner, type_), type_

    def _computed_by(
        self, node: Any, scope: Scope, kinds: Mapping[str, Any]
    ) -> tuple[Any, pa.DataType | None]:
        """Translate an aggregate or the function of a window, with its clauses, before its cast."""
        from sqlglot import exp

        if isinstance(node, exp.Anonymous):
            return self._call(node, scope, kinds)
        copy = node.copy()
        if not isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
            return copy, None
        inner, type_ = self._computed_by(node.this, scope, kinds)
        copy.set("this", inner)
        if isinstance(node, exp.Filter):
            condition = self.expression(node.expression.this, scope)[0]
            copy.set("expression", exp.Where(this=condition))
        return copy, None if isinstance(node, exp.WithinGroup) else type_

    def _call(
        self, node: Any, scope: Scope, kinds: Mapping[str, Any]
    ) -> tuple[Any, pa.DataType | None]:
        from sqlglot import exp

        name = str(node.this).lower()
        types: list[pa.DataType | None] = []
        operands: list[Any] = []
        for operand in node.expressions:
            new, kind = self._aggregated(operand, scope, name, is_first=not operands)
            operands.append(new)
            types.append(kind)
        if name not in kinds:
            return exp.Anonymous(this=node.this, expressions=operands), None
        is_extreme = name in ("min", "max")
        if is_extreme and len(operands) > 1:  # the least three, as a list
            return exp.Anonymous(this=node.this, expressions=operands), None
        written, type_of_result = kinds[name]
        if is_extreme and is_float(types[0]) and not isinstance(operands[0], exp.Distinct):
            # Of FLOAT, arg_min and arg_max lose the sign of -0.0.
            double = exp.Cast(this=operands[0], to=exp.DataType.build("DOUBLE"))
            operands = [double, order_key(operands[0])]
            written = f"arg_{name}"
        return exp.Anonymous(this=written, expressions=operands), type_of_result(types)

    def _aggregated(
        self, node: Any, scope: Scope, name: str, *, is_first: bool
    ) -> tuple[Any, pa.DataType | None]:
        """Translate an operand of an aggregate."""
        from sqlglot import exp

        copy = node.copy()
        if isinstance(node, exp.Distinct):
            pairs = [self.expression(value, scope) for value in node.expressions]
            is_count = name == "count"
            values = [
                order_key(value) if is_count and is_float(kind) else value for value, kind in pairs
            ]
            copy.set("expressions", values)
            return copy, pairs[0][1]
        if isinstance(node, exp.Order):
            value, kind = self.expression(node.this, scope)
            copy.set("this", value)
            copy.set("expressions", [self._ordered(part, scope) for part in node.expressions])
            return copy, kind
        if isinstance(node, exp.Star):
            return copy, None
        return self.expression(node, scope) if is_first else (self._operand(node, scope), None)

    def _ordered(self, node: Any, scope: Scope) -> Any:
        copy = node.copy()
        copy.set("this", self._sort_key(node.this, scope))
        return copy

    def _sort_key(self, node: Any, scope: Scope) -> Any:
        value, type_ = self.expression(node, scope)
        return order_key(value) if is_float(type_) else value

    def _decimal_average(
        self, node: Any, rows: Scope, scope: Scope
    ) -> tuple[Any, pa.DataType | None] | None:
        """Return the exact average of decimals, None for other aggregates."""
        from sqlglot import exp

        inner = _called_in(node)
        is_average = inner is not None and str(inner.this).lower() in ("avg", "mean")
        if inner is None or not is_average or len(inner.expressions) != 1:
            return None
        operand = inner.expressions[0]
        if isinstance(operand, exp.Distinct):
            operand = operand.expressions[0]
        type_ = self.expression(operand, rows)[1]
        if type_ is None or not pt.is_decimal128(type_):
            return None
        total, total_type = self._summed("sum", node, scope)
        count, count_type = self._summed("count", node, scope)
        result = AGGREGATES["avg"][1]([type_])
        if total_type is None or count_type is None or result is None:
            return None
        sums, counts = Column(("sum",), total_type), Column(("count",), count_type)
        bound = call("avg", average_kernel(total_type, result), sums, counts)
        pairs = ((sums.path, total_type), (counts.path, count_type))
        name = self._function(f"avg of {type_}", bound, pairs)
        return exp.Anonymous(this=name, expressions=[total, count]), result

    def _summed(self, name: str, node: Any, scope: Scope) -> tuple[Any, pa.DataType | None]:
        """Translate another aggregate of the same values, with the same clauses."""
        copy = node.copy()
        inner = _called_in(copy)
        if inner is not None:
            inner.set("this", name)
        return self.computed_before(copy, scope) or (copy, None)

    def _window(self, node: Any, scope: Scope) -> tuple[Any, pa.DataType | None]:
        average = self._decimal_average(node, scope, scope)
        if average is not None:
            return average
        copy = node.copy()
        inner, type_ = self._computed_by(node.this, scope, {**AGGREGATES, **WINDOWS})
        copy.set("this", inner)
        self.window_parts(copy, scope)
        return typed_node(copy, type_), type_

    def window_parts(self, node: Any, scope: Scope) -> None:
        """Translate what a window is parted and ordered by, in its place."""
        keys = node.args.get("partition_by")
        if keys:
            node.set("partition_by", [self._sort_key(key, scope) for key in keys])
        order = node.args.get("order")
        if order is not None:
            order.set("expressions", [self._ordered(part, scope) for part in order.expressions])

    def column_node(self, node: Any, scope: Scope) -> Any:
        """Return a column as DuckDB finds it: with its own spelling, in quotes."""
        from sqlglot import exp

        relation, column, parts = scope.resolve(node)
        is_qualified = bool(node.table) and relation is not None
        names = [column.duckdb_name or column.name, *parts]
        if is_qualified and relation is not None and len(node.parts) > len(names):
            names = [relation.qualifier, *names]
        identifiers = [exp.to_identifier(name, quoted=True) for name in names]
        if len(identifiers) == 1:
            return exp.Column(this=identifiers[0])
        return exp.Dot.build([exp.Column(this=identifiers[0]), *identifiers[1:]])


def _with_zone(node: Any, type_: pa.DataType | None) -> Any:
    is_zoned = type_ is not None and pt.is_timestamp(type_) and type_.tz is not None
    return zoned_node(node) if is_zoned else node


def _columns_of(bound: Expression) -> list[Column]:
    return [node for node in nodes_of(bound) if isinstance(node, Column)]


def _is_aggregate(call: Any) -> bool:
    name = str(call.this).lower()
    return name in AGGREGATES or name in OF_DUCKDB


def has_aggregate(node: Any) -> bool:
    """Whether an expression has an aggregate outside of its subqueries."""
    from sqlglot import exp

    parts = node.walk(prune=lambda part: isinstance(part, exp.Query))
    return any(isinstance(part, exp.Anonymous) and _is_aggregate(part) for part in parts)


def _called_in(node: Any) -> Any | None:
    """Return the call inside of a window and the clauses of an aggregate."""
    from sqlglot import exp

    while isinstance(node, exp.Window | exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node if isinstance(node, exp.Anonymous) else None
