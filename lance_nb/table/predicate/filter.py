"""A filter or a computed column, bound to a schema: the columns it needs, and how to compute it.

A filter is SQL text or a pyarrow.compute.Expression; a computed column is SQL text. All errors
other than those of the values of rows are raised when they are bound.

pyarrow expressions are computed by Arrow itself, with Arrow's rules where those differ from SQL's
(NaN is unlike every number, sums that overflow are errors). Such an expression cannot be walked
from Python: it is bound to no columns, and the column that Arrow misses is added, until it binds.
An expression that names columns by number is given all of them. Row columns (``_rowid`` ...) may be
named too.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import InvalidInputError, PredicateError
from lance_nb.format.schema import format_column_path
from lance_nb.table.predicate.arithmetic import arithmetic
from lance_nb.table.predicate.casts import cast_value
from lance_nb.table.predicate.comparison import as_bits, as_mask, count_true
from lance_nb.table.predicate.condition_binder import ConditionBinder
from lance_nb.table.predicate.expression import (
    Call,
    Column,
    Columns,
    Expression,
    Literal,
    Names,
    Path,
    Value,
    call,
    evaluate_needed,
    first_line,
    one_array,
    paths_of,
)
from lance_nb.table.predicate.logic import as_test, is_null, may_be_null
from lance_nb.table.predicate.simple_sql import parse_simple
from lance_nb.table.predicate.sql_text import (
    CALLS_MAX,
    SqlText,
    call_deeply,
    parse_sql,
    read_sql,
    shown,
    with_quoted_columns,
)
from lance_nb.table.projection import ROW_COLUMNS
from lance_nb.value_classes import dataclass

_MISSED = re.compile(
    r"No match for FieldRef\.(?:Name\((.*?)\) in |Nested\(FieldRef\.Name\((.*?)\))"
)


def arrow_paths(expression: Any, schema: pa.Schema) -> tuple[Path, ...]:
    """List the top-level columns that the expression needs. Raises PredicateError."""
    fields = {field.name: field for field in schema}
    for name in ROW_COLUMNS:
        fields.setdefault(name, pa.field(name, pa.uint64()))
    if "FieldPath(" in str(expression):
        names = list(schema.names)
        _try_bind(expression, [fields[name] for name in names])
        return tuple((name,) for name in names)
    names = []
    while True:
        missed = _try_bind(expression, [fields[name] for name in names])
        if missed is None:
            return tuple((name,) for name in names)
        if missed not in fields or missed in names:
            Names(schema).resolve([missed], quoted=True)
            raise PredicateError(f"filter {expression}: column {missed!r} cannot be used")
        names.append(missed)


def _try_bind(expression: Any, fields: list[pa.Field]) -> str | None:
    """Return the name of a column that is missing, None when the expression is complete."""
    schema = pa.schema(fields)
    try:
        result = _project(expression, pa.Table.from_batches([], schema))
    except pa.ArrowException as exc:
        match = _MISSED.search(str(exc))
        if match is None:
            raise PredicateError(f"filter {expression}: {first_line(exc)}") from exc
        return match[1] if match[1] is not None else match[2]
    if not pt.is_boolean(result.type):
        raise PredicateError(f"filter {expression} is {result.type}, not a condition")
    return None


def evaluate_arrow(expression: Any, columns: Columns, num_rows: int) -> pa.ChunkedArray:
    """Compute the expression over rows."""
    if not columns:
        columns = {("_",): pa.chunked_array([pa.nulls(num_rows)])}
    table = pa.table({path[0]: values for path, values in columns.items()})
    return _project(expression, table)


def _project(expression: Any, table: pa.Table) -> pa.ChunkedArray:
    from pyarrow import acero

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    options = acero.ProjectNodeOptions([expression], ["found"])
    plan = acero.Declaration("project", options, [source])
    return plan.to_table(use_threads=False).column("found")


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on rows. ``paths`` are the columns it reads; ``text`` shows it to people."""

    text: str
    paths: tuple[Path, ...]
    expression: Expression | None
    arrow: Any = None

    def mask(self, columns: Columns, num_rows: int) -> np.ndarray[Any, Any]:
        """Tell for every row whether it is wanted. Raises PredicateError for a row's value."""
        return as_mask(self._value(columns, num_rows), num_rows)

    def bits(self, columns: Columns, num_rows: int) -> pa.BooleanArray:
        """Tell for every row whether it is wanted, in bits. Raises PredicateError."""
        return as_bits(self._value(columns, num_rows), num_rows)

    def count(self, columns: Columns, num_rows: int) -> int:
        """Count the rows that are wanted. Raises PredicateError for a row's value."""
        return count_true(self._value(columns, num_rows), num_rows)

    def _value(self, columns: Columns, num_rows: int) -> Value:
        try:
            if self.expression is None:
                return evaluate_arrow(self.arrow, columns, num_rows)
            return evaluate_needed(self.expression, columns)
        except (pa.ArrowException, OverflowError) as exc:
            raise PredicateError(f"filter {shown(self.text)}: {first_line(exc)}") from exc


@dataclass(frozen=True, slots=True)
class Computed:
    """A column of the result made by an expression."""

    name: str
    text: str
    expression: Expression
    nullable: bool

    @property
    def field(self) -> pa.Field:
        """Arrow field of the column."""
        nullable = self.nullable or pt.is_null(self.expression.type)
        return pa.field(self.name, self.expression.type, nullable)

    @property
    def source_path(self) -> Path | None:
        """The one column that is returned as it is or cast, None for any other expression."""
        expression = self.expression
        while isinstance(expression, Call) and expression.name.startswith("a cast to "):
            expression = expression.operands[0]
        return expression.path if isinstance(expression, Column) else None

    def values(self, columns: Columns, num_rows: int) -> pa.Array:
        """Compute the column. Raises PredicateError for a row's value."""
        try:
            return one_array(evaluate_needed(self.expression, columns), num_rows)
        except (pa.ArrowException, OverflowError) as exc:
            raise PredicateError(
                f"column {self.name!r} = {shown(self.text)}: {first_line(exc)}"
            ) from exc


def compile_filter(condition: Any, schema: pa.Schema) -> Filter:
    """Bind a filter to a schema. Raises PredicateError, InvalidInputError."""
    if isinstance(condition, str):
        expression = _bind(condition, schema, "filter")
        expression = as_test(expression)
        if not pt.is_boolean(expression.type):
            raise PredicateError(
                f"filter {shown(condition)} is {expression.type}, not a condition; compare it with "
                "something"
            )
        return Filter(condition, _distinct(expression), expression)
    if is_arrow_expression(condition):
        return Filter(str(condition), arrow_paths(condition, schema), None, condition)
    raise InvalidInputError(
        f"a filter is SQL text or a pyarrow.compute.Expression, not {type(condition).__name__}"
    )


def null_filter(path: Path, schema: pa.Schema) -> Filter:
    """Make the condition that a column, or a field of structs, is null.

    The names of ``path`` are taken as they are, without quotes. Raises PredicateError.
    """
    expression = call("IS NULL", is_null, Names(schema).resolve(path, quoted=True))
    return Filter(f"{format_column_path(path)} IS NULL", _distinct(expression), expression)


def compile_column(name: str, text: str, schema: pa.Schema) -> Computed:
    """Bind a computed column to a schema. Raises PredicateError."""
    if text in schema.names:  # whatever it would mean as an expression: ``null``, ``a-b``
        stored = Names(schema).resolve([text], quoted=True)
        return Computed(name, text, stored, may_be_null(stored, schema))
    expression = _bind(text, schema, f"column {name!r}")
    is_operator = isinstance(expression, Call) and expression.name.startswith("operator ")
    if is_operator and call_deeply(
        partial(_is_simple_arithmetic, with_quoted_columns(text, schema.names))
    ):
        expression = _narrowed(expression)
    return Computed(name, text, expression, may_be_null(expression, schema))


def _bind(text: str, schema: pa.Schema, subject: str) -> Expression:
    def bind() -> Expression:
        sql = read_sql(with_quoted_columns(text, schema.names))
        names = Names(schema)
        expression = _bind_simple(sql, names)
        if expression is not None:
            return expression
        from lance_nb.table.predicate.binder import bind_sql  # and all functions

        tree = sql.tree()
        try:
            return bind_sql(tree, sql.bulks, names)
        except PredicateError as exc:
            # Its own traceback would be printed above this one and says nothing more.
            raise PredicateError(f"{subject} {shown(text)}: {exc}") from None
        except pa.ArrowException as exc:
            raise PredicateError(f"{subject} {shown(text)}: {first_line(exc)}") from exc

    try:
        return call_deeply(bind)
    except RecursionError as exc:
        raise PredicateError(
            f"{subject} {shown(text)}: it needs more than {CALLS_MAX:,} nested calls to be read; "
            "write a shorter chain of operators, or IN (...) for many values"
        ) from exc


def _bind_simple(sql: SqlText, names: Names) -> Expression | None:
    """Bind a condition that needs no sqlglot; None for others, and where something is wrong."""
    tree = parse_simple(sql.short)
    try:
        return None if tree is None else ConditionBinder(sql.bulks, names).bind(tree)
    except (PredicateError, pa.ArrowException):
        return None  # read again by sqlglot, whose nodes the message shows


def _is_simple_arithmetic(text: str) -> bool:
    """Tell whether the text is an operator between plain operands: no casts, no functions."""
    from sqlglot import exp  # only what reads SQL pays for it

    tree = parse_sql(text).unnest()
    if not isinstance(tree, exp.Binary):
        return False
    return not any(isinstance(side.unnest(), exp.Func) for side in (tree.left, tree.right))


def _narrowed(expression: Expression) -> Expression:
    """Compute ``column + literal`` in the column's type, as pylance does at the top of a column."""
    if not isinstance(expression, Call) or not expression.name.startswith("operator "):
        return expression
    if expression.name[-1] not in "+-*/%" or len(expression.operands) != 2:
        return expression
    inner = [_uncast(operand) for operand in expression.operands]
    columns = [operand for operand in inner if isinstance(operand, Column)]
    literals = [operand for operand in inner if isinstance(operand, Literal)]
    if len(columns) == 1 and len(literals) == 1 and _is_number(columns[0].type):
        fitted = _as_type(literals[0], columns[0].type)
        if fitted is None:
            return expression
        left, right = (operand if isinstance(operand, Column) else fitted for operand in inner)
        return arithmetic(expression.name[-1], left, right)
    return expression


def _as_type(literal: Literal, type_: pa.DataType) -> Literal | None:
    """Return a number in another type, None where its value would change; floats are rounded."""
    try:
        fitted = cast_value(literal.scalar, type_)
        is_rounded = pt.is_floating(literal.type) and pt.is_floating(type_)
        is_kept = is_rounded or cast_value(fitted, literal.type).equals(literal.scalar)
    except pa.ArrowException:
        return None
    return Literal(fitted) if is_kept else None


def _is_number(type_: pa.DataType) -> bool:
    return bool(pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_))


def _uncast(expression: Expression) -> Expression:
    is_cast = isinstance(expression, Call) and expression.name.startswith("a cast to")
    return expression.operands[0] if isinstance(expression, Call) and is_cast else expression


def _distinct(expression: Expression) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(paths_of(expression)))


def needed_paths(computed: Computed) -> tuple[Path, ...]:
    """List the columns that a computed column reads."""
    return _distinct(computed.expression)


def is_null_cast(text: str) -> bool:
    """Tell whether an expression is CAST(NULL AS type) and nothing else. Raises PredicateError."""
    node = _without_brackets(call_deeply(lambda: parse_sql(text)))
    return bool(node.key == "cast" and _without_brackets(node.this).key == "null")


def _without_brackets(node: Any) -> Any:
    while node.key == "paren":
        node = node.this
    return node


def is_arrow_expression(value: Any) -> bool:
    """Tell whether this is a pyarrow expression, without importing what makes them."""
    kind = type(value)
    return kind.__name__ == "Expression" and kind.__module__.startswith("pyarrow")
