"""SQL statements on one version that need no scan, because indices have what they ask for.

===================================================  ===============================================
of one column, distinct values and numbers of rows   the values of a BITMAP index with their counts:
(``SELECT DISTINCT``, ``count(*)``, ``GROUP BY``,    the statement runs on these rows, and
``count(DISTINCT c)``, ``min``, ``max``)             ``count(*)`` is the sum of the counts
numbers of rows                                      ``count_rows``
least and greatest values of whole columns           the bounds of ZONEMAP indices
===================================================  ===============================================

Conditions on the column itself are computed for its values; all others have to be decided by
indices. Fragments that the BITMAP index does not cover are read. Statements with anything else
(other functions, joins, windows, fractions, whose zeros have two signs) are run on a scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.errors import PredicateError
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset

_WEIGHT = "__rows_of_value"  # the column of the counts


@dataclass(frozen=True, slots=True)
class IndexedStatement:
    """A statement that gives the same result on the rows of an index.

    ``text`` runs on ``rows``. ``words`` say what was used.
    """

    text: str
    rows: pa.Table
    words: str


def _statements_of(text: str) -> list[Any]:
    from sqlglot.errors import SqlglotError

    from lance_nb.table.predicate.sql_text import parse_duckdb

    try:
        return parse_duckdb(text)
    except (SqlglotError, PredicateError):
        return []  # DuckDB may understand it, or say better what is wrong


def _is_of_table(tree: Any, name: str) -> bool:
    """Whether a statement is one SELECT of a table; a sample would be taken before WHERE."""
    from sqlglot import expressions as sql

    tables = list(tree.find_all(sql.Table))
    is_single = len(tables) == 1 and tables[0].name.lower() == name.lower()
    if not isinstance(tree, sql.Select) or not is_single:
        return False
    node_types = (sql.Subquery, sql.Join, sql.Lateral, sql.TableSample, sql.CTE, sql.SetOperation)
    return not any(node is not tree for node in tree.find_all(sql.Select, *node_types))


def _names_of_table(tree: Any) -> set[str]:
    """Return what may stand before a column of the only table of a statement."""
    from sqlglot import expressions as sql

    table = tree.find(sql.Table)
    return {table.name.lower(), table.alias_or_name.lower(), ""}


def _parts(where: Any) -> list[Any]:
    """Return the conditions that WHERE joins by AND."""
    from sqlglot import expressions as sql

    parts = where.this.flatten() if isinstance(where.this, sql.And) else [where.this]
    return [part.unnest() for part in parts]


def _condition_of(part: Any, tables: set[str], schema: pa.Schema) -> str | None:
    """Return a comparison of a column with constants as a filter of ours, None for others."""
    from sqlglot import expressions as sql

    signs = {sql.EQ: "=", sql.LT: "<", sql.LTE: "<=", sql.GT: ">", sql.GTE: ">="}
    if isinstance(part, sql.In) and not (part.args.get("query") or part.args.get("unnest")):
        values = part.expressions
    elif isinstance(part, sql.Between):
        values = [part.args["low"], part.args["high"]]
    elif type(part) in signs:
        values = [part.expression]
    else:
        return None
    column = part.this
    if not isinstance(column, sql.Column) or column.table.lower() not in tables or not values:
        return None
    same = [field for field in schema if field.name.lower() == column.name.lower()]
    constants = [_constant_of(value, same[0].type) if same else None for value in values]
    listed = [constant for constant in constants if constant is not None]
    if len(same) != 1 or len(listed) < len(values):
        return None
    from lance_nb.table.filtered_scan import quoted  # loads what filters need

    name = quoted([same[0].name])
    if isinstance(part, sql.In):
        return f"{name} IN ({', '.join(listed)})"
    if isinstance(part, sql.Between):
        return f"{name} BETWEEN {listed[0]} AND {listed[1]}"
    return f"{name} {signs[type(part)]} {listed[0]}"


def _constant_of(value: Any, kind: pa.DataType) -> str | None:
    """Return a constant that DuckDB compares in the type of the column, None for others."""
    from sqlglot import expressions as sql

    is_negative = isinstance(value, sql.Neg)
    literal = value.this if is_negative else value
    if not isinstance(literal, sql.Literal):
        return None
    if literal.is_string:
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        escaped = str(literal.this).replace("'", "''")
        return f"'{escaped}'" if is_text and not is_negative else None
    if not pa.types.is_integer(kind) or not str(literal.this).isdecimal():
        return None
    number = -int(literal.this) if is_negative else int(literal.this)
    lowest = 0 if pa.types.is_unsigned_integer(kind) else -(1 << (kind.bit_width - 1))
    return str(number) if lowest <= number < lowest + (1 << kind.bit_width) else None


def indexed_statement(dataset: LanceDataset, text: str, name: str) -> IndexedStatement | None:
    """Return a statement on the rows of indices in the place of one on the version.

    None where indices do not have what it needs.
    """
    trees = _statements_of(text)
    if len(trees) != 1 or not _is_of_table(trees[0], name):
        return None
    tree = trees[0]
    if not _is_of_values(tree):
        return None
    schema = dataset.schema
    columns = {column.lower(): column for column in schema.names}
    if len(columns) < len(schema.names) or _WEIGHT in columns:
        return None
    where = tree.args.get("where")
    tables = _names_of_table(tree)
    named = _named(tree, where, tables, columns)
    if named is None:
        return None
    parts = [] if where is None else _parts(where)
    if not named:
        conditions = [_condition_of(part, tables, schema) for part in parts]
        if None not in conditions:
            return _of_rows(
                dataset, tree, [condition for condition in conditions if condition is not None]
            )
        named = _named(where, None, tables, columns) or set()
    if len(named) == 1:
        statement = _of_values(dataset, tree, next(iter(named)), parts=parts, tables=tables)
        if statement is not None:
            return statement
    return None if where is not None else _of_bounds(dataset, tree, named)


def _is_of_values(tree: Any) -> bool:
    """Whether the result depends on the different values and their counts, and on nothing else."""
    from sqlglot import expressions as sql

    aggregates = (sql.Count, sql.Min, sql.Max)
    known_types = (
        sql.Select, sql.From, sql.Table, sql.TableAlias, sql.Identifier, sql.Column, sql.Alias,
        sql.Star, sql.Distinct, sql.Group, sql.Order, sql.Ordered, sql.Limit, sql.Offset,
        sql.Having, sql.Where, sql.Literal, sql.Paren, sql.And, sql.Or, sql.Not, sql.Is, sql.Null,
        sql.Boolean, sql.In, sql.Between, sql.Like, sql.ILike, sql.EQ, sql.NEQ, sql.GT, sql.GTE,
        sql.LT, sql.LTE, sql.Neg, sql.Lower, sql.Upper, sql.Length, sql.Add, sql.Sub, sql.Mul,
        *aggregates,
    )  # fmt: skip
    for node in tree.walk():
        if type(node) not in known_types:
            return False
        if isinstance(node, sql.Star) and not isinstance(node.parent, sql.Count):
            return False
        if isinstance(node, sql.Distinct) and node.args.get("on"):
            return False
        if isinstance(node, aggregates):  # min(c, 3) lists values
            later_arguments = (
                argument for key, argument in node.args.items() if key not in ("this", "big_int")
            )
            if node.this is None or any(later_arguments):
                return False
        if isinstance(node, sql.Table | sql.Column) and node.args.get("db"):
            return False
    is_grouped = tree.args.get("group") or tree.args.get("distinct")
    return bool(is_grouped) or any(expression.find(*aggregates) for expression in tree.expressions)


def _named(tree: Any, where: Any, tables: set[str], columns: dict[str, str]) -> set[str] | None:
    """Return the columns that a statement names outside of WHERE, None if it names something else.

    What is no column may be the alias of a part of the result.
    """
    from sqlglot import expressions as sql

    inside = set() if where is None else {id(node) for node in where.walk()}
    aliases = {alias.alias.lower() for alias in tree.find_all(sql.Alias)}
    names = set()
    for column in tree.find_all(sql.Column):
        if id(column) in inside:
            continue
        if column.table.lower() not in tables:
            return None
        if column.name.lower() in columns:
            names.add(columns[column.name.lower()])
        elif column.name.lower() not in aliases:
            return None
    return names


def _of_rows(dataset: LanceDataset, tree: Any, conditions: list[str]) -> IndexedStatement:
    """Return the statement on a row that stands for all that pass."""
    condition = " AND ".join(conditions) or None
    count = dataset.count_rows(condition)
    rows = pa.table({_WEIGHT: pa.array([count] if count else [], pa.int64())})
    words = "number of rows: from the manifest"
    if condition is not None:
        words = f"number of rows: count_rows({condition!r})"
    return _statement(tree, rows, [], words)


def _of_values(
    dataset: LanceDataset, tree: Any, column: str, parts: list[Any], tables: set[str]
) -> IndexedStatement | None:
    """Return the statement on the values of a column that has a BITMAP index."""
    from lance_nb.dataset.stats import indexed_value_counts

    schema = dataset.schema
    if pa.types.is_floating(schema.field(column).type):
        return None
    kept_conditions, conditions = [], []
    for part in parts:
        if _is_only_of(part, column):
            kept_conditions.append(part)
            continue
        condition = _condition_of(part, tables, schema)
        if condition is None:
            return None
        conditions.append(condition)
    counts = indexed_value_counts(dataset, column, " AND ".join(conditions) or None)
    if counts is None:
        return None
    return _statement(tree, counts[0].rename_columns([column, _WEIGHT]), kept_conditions, counts[1])


def _is_only_of(part: Any, column: str) -> bool:
    from sqlglot import expressions as sql

    names = {node.name.lower() for node in part.find_all(sql.Column)}
    return names == {column.lower()}


def _of_bounds(dataset: LanceDataset, tree: Any, columns: set[str]) -> IndexedStatement | None:
    """Return the statement on the least and greatest values of columns with ZONEMAP indices."""
    from sqlglot import expressions as sql

    from lance_nb.indices.search import scalar_search

    search = scalar_search(dataset.opened[1])
    aggregates = list(tree.find_all(sql.Count, sql.Min, sql.Max))
    is_plain = not tree.args.get("group") and not tree.args.get("distinct")
    if search is None or not is_plain or not columns:
        return None
    if not all(isinstance(aggregate, sql.Min | sql.Max) for aggregate in aggregates):
        return None
    if not all(isinstance(aggregate.this, sql.Column) for aggregate in aggregates):
        return None
    arrays, words = {}, []
    for column in sorted(columns):
        bounds = search.value_range(column)
        if bounds is None or bounds.has_nan:
            return None
        own_aggregates = [
            aggregate for aggregate in aggregates if aggregate.this.name.lower() == column.lower()
        ]
        ends = {
            bounds.low if isinstance(aggregate, sql.Min) else bounds.high
            for aggregate in own_aggregates
        }
        if None in ends:
            return None
        arrays[column] = pa.array([bounds.low, bounds.high], dataset.schema.field(column).type)
        words.append(f"bounds of all rows: {bounds.words}")
    return _statement(tree, pa.table(arrays), [], "\n  ".join(words))


def _statement(tree: Any, rows: pa.Table, conditions: list[Any], words: str) -> IndexedStatement:
    """Return the statement with sums of the counts, and only the kept conditions."""
    from sqlglot import expressions as sql

    changed = tree.copy()
    where = sql.Where(this=sql.and_(*conditions)) if conditions else None  # copies them
    changed.set("where", where)
    for node in list(changed.find_all(sql.Count)):
        if isinstance(node.this, sql.Distinct):
            continue
        total: Any = sql.Sum(this=sql.column(_WEIGHT))
        if not isinstance(node.this, sql.Star):
            not_null = sql.Not(this=sql.Is(this=node.this.copy(), expression=sql.Null()))
            total = sql.Filter(this=total, expression=sql.Where(this=not_null))
        zero = sql.Coalesce(this=total, expressions=[sql.Literal.number(0)])
        node.replace(sql.cast(zero, "BIGINT", dialect="duckdb"))
    text = changed.sql(dialect="duckdb")
    return IndexedStatement(text, rows, words)
