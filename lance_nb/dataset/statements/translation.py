"""Translate a statement in Lance's SQL to DuckDB's, so that it means the same.

Every SELECT is gone through with the types of its columns. Conditions of WHERE on a table of the
dataset become the filter of its scan. Aggregates and window functions get the types that pylance
gives them, results without an alias its names, floats its total order, nulls its place in ORDER BY.

Samples, PIVOT, table functions and the like are left as they are, with DuckDB's meaning and types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.dataset.statements.carriers import distinct_names
from lance_nb.dataset.statements.dialect import duckdb_text, filter_text, parse_statement
from lance_nb.dataset.statements.duckdb_nodes import is_float, order_key
from lance_nb.dataset.statements.expressions import (
    UNBOUND,
    ExpressionTranslator,
    ScopeBinder,
    has_aggregate,
    has_meaning_of_statements,
    with_nanoseconds,
)
from lance_nb.dataset.statements.result_names import ResultNames
from lance_nb.dataset.statements.row_functions import COMPUTED_PREFIX, IS_COMPUTED, RowFunction
from lance_nb.dataset.statements.scope import Relation, ResultField, Scope
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import unify
from lance_nb.table.predicate.expression import Column
from lance_nb.table.predicate.filter import compile_filter
from lance_nb.table.predicate.sql_text import call_deeply
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class TableScan:
    """What a statement reads under one name: a table's columns (None for all) and rows.

    ``computed`` are the functions whose values its rows have as further columns.
    """

    name: str
    table: str
    columns: tuple[str, ...] | None
    filter: str | None
    computed: tuple[RowFunction, ...] = ()


@dataclass(frozen=True, slots=True)
class Translation:
    """A statement for DuckDB: what it reads, calls, and returns (None where that is not known)."""

    text: str
    scans: tuple[TableScan, ...]
    functions: tuple[RowFunction, ...]
    fields: tuple[tuple[str, pa.DataType | None], ...] | None


def translate(
    text: str, tables: Mapping[str, pa.Schema], *, has_filters: bool = True
) -> Translation:
    """Translate a statement on tables with these schemas.

    ``has_filters``: whether the scans can filter and compute; otherwise DuckDB computes everything.
    A text that is not one query is returned as it is, with scans of the tables.
    """
    from sqlglot import exp

    tree = parse_statement(text)
    if not isinstance(tree, exp.Query):
        scans = tuple(TableScan(name, name, None, None) for name in tables)
        return Translation(text, scans, (), None)
    translator = _Translator(tree, tables, has_filters=has_filters)
    query, fields = call_deeply(lambda: translator.query(tree, Scope()))
    result_fields = None if fields is None else tuple((field.name, field.type) for field in fields)
    names = {table.name for table in query.find_all(exp.Table)}
    columns = {column.name for column in query.find_all(exp.Column)}
    functions = tuple(translator.functions.values())
    scans_of_query = []
    for scan in translator.scans:
        names_used = translator.computed.get(scan.name, set()) & columns
        computed = tuple(function for function in functions if function.name in names_used)
        if scan.name in names:
            scans_of_query.append(replace(scan, computed=computed))
    _hide_computed(query, [scan for scan in scans_of_query if scan.computed])
    written = call_deeply(lambda: duckdb_text(query))
    return Translation(written, tuple(scans_of_query), functions, result_fields)


def _named_columns(tree: Any, names: list[str]) -> tuple[str, ...] | None:
    """Return the columns that a statement may need, None where a star stands for all of them."""
    from sqlglot import exp

    if not all(map(_is_counted, tree.find_all(exp.Star))):
        return None
    written = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}
    return tuple(name for name in names if name.lower() in written) or tuple(names[:1])


def _is_counted(star: Any) -> bool:
    """Whether a star is that of ``count(*)``, which stands for no column."""
    from sqlglot import exp

    call = star.parent
    return isinstance(call, exp.Anonymous) and str(call.this).lower() == "count"


def _uses_all_columns(tree: Any, column_names: Iterable[str]) -> bool:
    """Whether a statement uses columns that it does not name, other than by a star.

    NATURAL and PIVOT compare all columns; the name of a table is its row as a struct.
    """
    from sqlglot import exp

    if any(str(call.this).lower() == "columns" for call in tree.find_all(exp.Anonymous)):
        return True
    is_natural = (
        str(join.args.get("method")).upper() == "NATURAL" for join in tree.find_all(exp.Join)
    )
    if tree.find(exp.Pivot) is not None or any(is_natural):
        return True
    tables = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    row_names = tables.difference(name.lower() for name in column_names)
    return any(
        column.name.lower() in row_names
        for column in tree.find_all(exp.Column)
        if not column.table and isinstance(column.this, exp.Identifier)
    )


def _hide_computed(query: Any, scans: Iterable[TableScan]) -> None:
    """Exclude what scans compute from the stars that show their columns."""
    from sqlglot import exp

    names = {
        scan.name: [*(function.name for function in scan.computed), IS_COMPUTED] for scan in scans
    }
    for select in query.find_all(exp.Select):
        table = _first_table(select)
        if not isinstance(table, exp.Table) or table.name not in names:
            continue
        for part in select.expressions:
            star = part.this if isinstance(part, exp.Column) else part
            if isinstance(star, exp.Star):
                hidden = [exp.to_identifier(name, quoted=True) for name in names[table.name]]
                star.set("except_", [*(star.args.get("except_") or []), *hidden])


class _Translator(ExpressionTranslator):
    """Translates one statement, whose tree it changes."""

    def __init__(self, tree: Any, tables: Mapping[str, pa.Schema], *, has_filters: bool) -> None:
        super().__init__()
        self._has_filters = has_filters
        column_names = {name for schema in tables.values() for name in schema.names}
        self._shows_columns = _uses_all_columns(tree, column_names)
        self._tables = {name.lower(): (name, schema) for name, schema in tables.items()}
        self._columns = {
            name: None if self._shows_columns else _named_columns(tree, schema.names)
            for name, schema in tables.items()
        }
        self.scans: list[TableScan] = []

    # Queries.

    def query(self, node: Any, outer: Scope) -> tuple[Any, list[ResultField] | None]:
        """Return a query for DuckDB and its columns, None where these are not known."""
        from sqlglot import exp

        outer = self._with_tables(node, outer)
        fields = None
        if isinstance(node, exp.Subquery):
            inner, fields = self.query(node.this, outer)
            node.set("this", inner)
        elif isinstance(node, exp.SetOperation):
            left, first = self.query(node.this, outer)
            right, second = self.query(node.expression, outer)
            node.set("this", left)
            node.set("expression", right)
            is_union = isinstance(node, exp.Union)
            fields = _united(first, second) if is_union else first
            return _with_zeros_apart(node, fields, None), fields
        elif isinstance(node, exp.Select):
            return self._select(node, outer)
        return node, fields

    def _with_tables(self, node: Any, outer: Scope) -> Scope:
        """Return a scope that knows the tables of WITH."""
        from sqlglot import exp

        ctes = node.ctes if hasattr(node, "ctes") else []
        if not ctes:
            return outer
        with_ = node.args.get("with_") or node.args.get("with")
        is_recursive = bool(with_ is not None and with_.args.get("recursive"))
        tables = dict(outer.tables)
        scope = Scope(outer.parent, tables, outer.relations, aliases=outer.aliases, keys=outer.keys)
        for cte in ctes:
            if is_recursive and isinstance(cte.this, exp.SetOperation):
                # Its columns are those that it begins with.
                fields = self.query(cte.this.this.copy(), scope)[1]
                tables[cte.alias.lower()] = _renamed(fields, cte)
            inner, fields = self.query(cte.this, scope)
            cte.set("this", inner)
            tables[cte.alias.lower()] = _renamed(fields, cte)
        return scope

    def _select(self, node: Any, outer: Scope) -> tuple[Any, list[ResultField] | None]:
        from sqlglot import exp

        rows = Scope(outer, outer.tables)
        self._from(node, rows)
        projections = list(node.expressions)
        for projection in projections:
            if projection.key == "alias":
                inner = self.expression(projection.this, rows)[1]
                rows.aliases.setdefault(projection.alias.lower(), inner)
        self._where(node, rows)
        scope, keys = self._groups(node, rows, projections)
        names = ResultNames(rows.name_of)
        fields: list[ResultField] | None = []
        written = []
        for projection in projections:
            new, columns = self._projection(projection, scope, names)
            written.append(new)
            fields = None if fields is None or columns is None else [*fields, *columns]
        node.set("expressions", written)
        if keys is not None:
            node.args["group"].set("expressions", keys)
        for clause in ("having", "qualify"):
            if node.args.get(clause) is not None:
                inner = self.expression(node.args[clause].this, scope)[0]
                node.args[clause].set("this", inner)
        for window in node.args.get("windows") or []:
            self.window_parts(window, scope)
        distinct = node.args.get("distinct")
        if distinct is not None and not distinct.args.get("on"):
            return self._distinct(node, written, fields, names), fields
        if distinct is not None:
            keys = distinct.args["on"].expressions
            distinct.set("on", exp.Tuple(expressions=[self._sort_key(key, scope) for key in keys]))
        self._order(node, scope, written, fields)
        return node, fields

    def _from(self, node: Any, rows: Scope) -> None:
        table = _first_table(node)
        if table is not None:
            self._relation(table, rows)
        for join in node.args.get("joins") or []:
            self._join(join, rows)
        for lateral in node.args.get("laterals") or []:
            rows.relations.append(Relation(lateral.alias, None))

    def _join(self, join: Any, rows: Scope) -> None:
        before = list(rows.relations)
        self._relation(join.this, rows)
        using = [part.name.lower() for part in join.args.get("using") or []]
        for relation in rows.relations[len(before) :]:
            relation.merged = frozenset(using)
            relation.is_hidden = str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI")
            if str(join.args.get("method") or "").upper() == "NATURAL":
                relation.fields = None
        condition = join.args.get("on")
        if condition is not None:
            join.set("on", self.expression(condition, rows)[0])

    def _relation(self, node: Any, rows: Scope) -> None:
        from sqlglot import exp

        is_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if is_table and not node.args.get("db"):
            self._table(node, rows)
        elif isinstance(node, exp.Subquery):
            inner, fields = self.query(node.this, Scope(rows.parent, rows.tables))
            node.set("this", inner)
            rows.relations.append(Relation(node.alias, _renamed(fields, node)))
        elif isinstance(node, exp.Values):
            rows.relations.append(Relation(node.alias, self._values(node, rows)))
        else:
            rows.relations.append(Relation(node.alias, None))
        if node.args.get("pivots"):
            rows.relations[-1].fields = None
        for join in node.args.get("joins") or []:
            self._join(join, rows)

    def _values(self, node: Any, rows: Scope) -> list[ResultField] | None:
        """Return the columns of VALUES, which are called column1, column2 ... as in pylance."""
        from sqlglot import exp

        fields: list[ResultField] = []
        for row in node.expressions:
            pairs = [self.expression(value, Scope(None)) for value in row.expressions]
            row.set("expressions", [value for value, _ in pairs])
            columns = [
                ResultField(f"column{number}", type_)
                for number, (_, type_) in enumerate(pairs, start=1)
            ]
            united = _united(fields, columns) if fields else columns
            if united is None:
                return None
            fields = united
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("unnamed"))
        if not alias.args.get("columns"):
            names = [exp.to_identifier(field.name, quoted=True) for field in fields]
            alias.set("columns", names)
        node.set("alias", alias)
        return _renamed(fields, node)

    def _table(self, node: Any, rows: Scope) -> None:
        from sqlglot import exp

        name, can_compute = node.name.lower(), False
        if name in rows.tables:
            fields = rows.tables[name]
        elif name in self._tables:
            table, schema = self._tables[name]
            number = sum(scan.table == table for scan in self.scans)
            # New names of columns go by their positions.
            columns = None if node.alias_column_names else self._columns[table]
            names = schema.names if columns is None else columns
            duckdb_names = dict(zip(names, distinct_names(names), strict=True))
            fields = [
                ResultField(field.name, field.type, duckdb_names.get(field.name))
                for field in schema
            ]
            scan = TableScan(f"{table}#{number}" if number else table, table, columns, None)
            self.scans.append(scan)
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(table, quoted=True)))
            node.set("this", exp.to_identifier(scan.name, quoted=True))
            is_named = not node.alias_column_names and not any(
                column.lower().startswith(COMPUTED_PREFIX) for column in schema.names
            )
            can_compute = self._has_filters and is_named and not self._shows_columns
        else:
            fields = None
        relation = Relation(node.alias_or_name, _renamed(fields, node))
        if can_compute:
            relation.scan = node.name
        rows.relations.append(relation)

    # Clauses.

    def _where(self, node: Any, rows: Scope) -> None:
        """Translate WHERE; what the scan of the only table can decide becomes its filter."""
        from sqlglot import exp

        where = node.args.get("where")
        if where is None:
            return
        remaining = self._filtered(node, where, rows)
        if not remaining:
            node.set("where", None)
            return
        where.set("this", self.expression(exp.and_(*remaining, copy=False), rows)[0])

    def _filtered(self, node: Any, where: Any, rows: Scope) -> list[Any]:
        """Give conditions to the scan of the only table, and return those that are left."""
        from sqlglot import exp

        table = _first_table(node)
        numbers = [
            number
            for number, scan in enumerate(self.scans)
            if isinstance(table, exp.Table) and scan.name == table.name
        ]
        is_plain = len(rows.relations) == 1 and len(numbers) == 1
        is_renamed = table is not None and bool(
            table.args.get("pivots") or table.alias_column_names
        )
        is_whole = is_plain and not is_renamed
        if not (self._has_filters and is_whole) or node.find(exp.TableSample) is not None:
            return [where.this]
        scan = self.scans[numbers[0]]
        schema = self._tables[scan.table.lower()][1]
        filters, remaining = [], []
        for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            text = self._filter_of(part, rows, schema)
            if text is None:
                remaining.append(part)
            else:
                filters.append(text)
        if filters:
            joined = " AND ".join(filters)
            self.scans[numbers[0]] = replace(scan, filter=joined)
        return remaining

    def _filter_of(self, part: Any, rows: Scope, schema: pa.Schema) -> str | None:
        """Return a condition as the text of a filter, None if it is none."""
        from sqlglot import exp

        if any('"' in str(text.this) for text in part.find_all(exp.Literal) if text.is_string):
            return None
        if part.find(exp.Query, exp.Subquery, exp.Window) is not None:
            return None

        def renamed(inner: Any) -> Any:
            if isinstance(inner, exp.Cast):
                return with_nanoseconds(inner)
            if not isinstance(inner, exp.Column):
                return inner
            relation, column, parts = rows.resolve(inner)
            if relation is None or relation not in rows.relations:
                raise PredicateError("a column of another table")
            names = [exp.to_identifier(name, quoted=True) for name in (column.name, *parts)]
            return exp.Dot.build(names) if len(names) > 1 else exp.column(names[0])

        try:
            bound = ScopeBinder(self, rows).bind(part)
            if not pt.is_boolean(bound.type) or has_meaning_of_statements(bound, part):
                return None
            inner = part.unnest().copy().transform(renamed)
            if isinstance(inner, exp.Or):
                inner = exp.Paren(this=inner)
            text = filter_text(inner)
            compile_filter(text, schema)
        except UNBOUND:
            return None
        return text

    def _groups(
        self, node: Any, rows: Scope, projections: list[Any]
    ) -> tuple[Scope, list[Any] | None]:
        """Return the scope of what is computed from groups, and the keys for DuckDB."""
        group = node.args.get("group")
        if group is None:
            return rows, None
        parts = group.expressions
        if group.args.get("all"):
            parts = _keys_of_all(projections)
            group.set("all", None if parts else True)
        keys: dict[str, Any] = {}
        written = [key for part in parts for key in self._group_keys(part, rows, projections, keys)]
        is_plain = not any(
            group.args.get(name) for name in ("grouping_sets", "rollup", "cube", "all", "totals")
        )
        return rows.grouped(keys), written if is_plain and written else None

    def _group_keys(
        self, node: Any, rows: Scope, projections: list[Any], keys: dict[str, Any]
    ) -> list[Any]:
        """Translate a part of GROUP BY, and add what it groups by to ``keys``.

        Beside a float stands its key, so that -0.0 and 0.0, and NaNs of both signs, are groups.
        """
        from sqlglot import exp

        key_sets = (exp.Rollup, exp.Cube, exp.GroupingSets)
        if isinstance(node, exp.Tuple):
            return [
                key
                for part in node.expressions
                for key in self._group_keys(part, rows, projections, keys)
            ]
        if isinstance(node, key_sets):
            sets = []
            for part in node.expressions:
                inner = self._group_keys(part.unnest(), rows, projections, keys)
                is_set = isinstance(part, key_sets)
                sets.append(inner[0] if is_set else exp.Tuple(expressions=inner))
            return [type(node)(expressions=sets)]
        target = _projection_at(node, projections)
        if target is None:
            is_alias = isinstance(node, exp.Column) and not node.table
            named = [projection for projection in projections if projection.key == "alias"
                     and is_alias and projection.alias.lower() == node.name.lower()]  # fmt: skip
            is_column = any(relation.find(node.name) for relation in rows.relations if is_alias)
            target = named[0].this if named and not is_column else node
        new, type_ = self.expression(target, rows)
        keys[rows.signature_of(target)] = (new, type_)
        return [new, order_key(new)] if is_float(type_) else [new]

    def _projection(
        self, node: Any, scope: Scope, names: ResultNames
    ) -> tuple[Any, list[ResultField] | None]:
        from sqlglot import exp

        if isinstance(node, exp.Star) or (
            isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
        ):
            return node, _expanded(node, scope)
        inner = node.this if isinstance(node, exp.Alias) else node
        new, type_ = self.expression(inner, scope)
        if isinstance(node, exp.Alias):
            name = node.alias
        elif isinstance(node, exp.Column):
            try:
                _, column, parts = scope.resolve(node)
            except PredicateError:
                column, parts = ResultField(names.name_of(node), None), []
            name = scope.name_of(node) if parts else column.name
        else:
            name = names.name_of(node)
        if isinstance(new, exp.Column) and new.name == name:
            return new, [ResultField(name, type_)]
        if isinstance(node, exp.Unnest) or (
            isinstance(node, exp.Anonymous) and str(node.this).lower() in ("unnest", "columns")
        ):
            return new, None
        alias = exp.to_identifier(name, quoted=True)
        return exp.Alias(this=new, alias=alias), [ResultField(name, type_)]

    def _order(
        self, node: Any, scope: Scope, written: list[Any], fields: list[ResultField] | None
    ) -> None:
        """Translate what rows are ordered by: positions and names of results, or expressions."""
        from sqlglot import exp

        order = node.args.get("order")
        results = written if fields is not None and len(fields) == len(written) else []
        constant = []
        for part in order.expressions if order is not None else []:
            inner = part.this
            number = _position_of(inner, fields if results else None)
            if number is not None and fields is not None:
                result = results[number]
                value = result.this if isinstance(result, exp.Alias) else result
                if is_float(fields[number].type):
                    part.set("this", order_key(value))
            elif not (isinstance(inner, exp.Literal) and not inner.is_string):
                value, type_ = self.expression(inner, scope)
                part.set("this", order_key(value) if is_float(type_) else value)
                if isinstance(value.unnest(), exp.Literal):  # which DuckDB refuses to order by
                    constant.append(part)
        for part in constant:
            order.expressions.remove(part)
        if order is not None and not order.expressions:
            node.set("order", None)

    def _distinct(
        self,
        node: Any,
        written: list[Any],
        fields: list[ResultField] | None,
        names: ResultNames,
    ) -> Any:
        """Return a SELECT DISTINCT that tells -0.0 from 0.0 and orders floats totally."""
        from sqlglot import exp

        distinct = node.args["distinct"]
        if not fields or len(fields) != len(written):
            return node
        keys = []
        for projection, field in zip(written, fields, strict=True):
            value = projection.this if isinstance(projection, exp.Alias) else projection
            keys.append(order_key(value) if is_float(field.type) else value.copy())
        if any(is_float(field.type) for field in fields):
            distinct.set("on", exp.Tuple(expressions=keys))
        return _ordered_outside(node, fields, names)


def _first_table(select: Any) -> Any | None:
    """Return what stands first in FROM."""
    start = select.args.get("from_") or select.args.get("from")  # by the version of sqlglot
    return None if start is None else start.this


def _keys_of_all(projections: list[Any]) -> list[Any]:
    """Return the projections that GROUP BY ALL groups by, none where only DuckDB can tell."""
    from sqlglot import exp

    stars = [star for part in projections for star in part.find_all(exp.Star)]
    has_columns = any(not _is_counted(star) for star in stars)
    if has_columns or any(part.find(exp.Window) is not None for part in projections):
        return []
    bare = [part.this if isinstance(part, exp.Alias) else part for part in projections]
    return [part for part in bare if not has_aggregate(part)]


def _projection_at(node: Any, projections: list[Any]) -> Any | None:
    """Return the expression of the projection whose position stands in a clause, None if none."""
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdecimal():
        return None
    position = int(node.this)
    if not 0 < position <= len(projections):
        return None
    target = projections[position - 1]
    if target.find(exp.Star) is not None and not isinstance(target, exp.Alias | exp.Anonymous):
        return None
    return target.this if isinstance(target, exp.Alias) else target


def _renamed(fields: list[ResultField] | None, node: Any) -> list[ResultField] | None:
    """Return columns with the names that an alias gives them."""
    names = node.alias_column_names
    if fields is None or not names:
        return fields
    all_names = [*names, *(field.name for field in fields[len(names) :])]
    return [ResultField(name, field.type) for name, field in zip(all_names, fields, strict=False)]


def _expanded(star: Any, scope: Scope) -> list[ResultField] | None:
    """Return the columns that ``*`` stands for, None where they are not known."""
    qualifier = star.table.lower() if star.key == "column" else None
    inner = star.this if star.key == "column" else star
    excluded = inner.args.get("except_") or inner.args.get("except") or []
    if inner.args.get("replace") or inner.args.get("rename"):
        return None
    names = {part.name.lower() for part in excluded}
    fields = []
    for relation in scope.relations:
        if relation.is_hidden or qualifier not in (None, relation.qualifier.lower()):
            continue
        if relation.fields is None:
            return None
        merged = relation.merged if qualifier is None else frozenset()
        fields += [
            field
            for field in relation.fields
            if field.name.lower() not in merged and field.name.lower() not in names
        ]
    return fields


def _position_of(
    node: Any, fields: list[ResultField] | None, names: ResultNames | None = None
) -> int | None:
    """Return which column of a result ORDER BY names, by its number or its name."""
    from sqlglot import exp

    if not fields:
        return None
    if isinstance(node, exp.Literal):
        number = int(node.this) - 1 if str(node.this).isdecimal() and not node.is_string else -1
        return number if 0 <= number < len(fields) else None
    if isinstance(node, exp.Column) and not node.table:
        name = node.name.lower()
    elif names is not None:
        name = names.name_of(node).lower()
    else:
        return None
    numbers = [number for number, field in enumerate(fields) if field.name.lower() == name]
    return numbers[0] if numbers else None


def _ordered_outside(node: Any, fields: list[ResultField], names: ResultNames | None) -> Any:
    """Return a query whose rows are ordered by its columns, floats totally."""
    from sqlglot import exp

    order = node.args.get("order")
    if order is None:
        return node
    numbers = [_position_of(part.this, fields, names) for part in order.expressions]
    if None in numbers:
        return node
    if not any(is_float(fields[number].type) for number in numbers if number is not None):
        for part, number in zip(order.expressions, numbers, strict=True):
            part.set("this", exp.Literal.number((number or 0) + 1))
        return node
    inner = node.copy()
    for clause in _OUTSIDE:
        inner.set(clause, None)
    return _outer_query(node, inner, fields, numbers)


_OUTSIDE = ("order", "limit", "offset", "with_")


def _outer_query(node: Any, inner: Any, fields: list[ResultField], numbers: list[Any]) -> Any:
    """Return a query on another, which has the names of the result and the order of ``node``.

    ``numbers`` are the columns that it is ordered by.
    """
    from sqlglot import exp

    columns = [_numbered(number) for number in range(len(fields))]
    aliases = [column.this.copy() for column in columns]
    alias = exp.TableAlias(this=exp.to_identifier("inner"), columns=aliases)
    renamed = [
        exp.Alias(this=column.copy(), alias=exp.to_identifier(field.name, quoted=True))
        for column, field in zip(columns, fields, strict=True)
    ]
    outer = exp.select(*renamed).from_(exp.Subquery(this=inner, alias=alias))
    order = node.args.get("order")
    for part, number in zip(order.expressions if order is not None else [], numbers, strict=True):
        if number is not None:
            key = columns[number].copy()
            part.set("this", order_key(key) if is_float(fields[number].type) else key)
    for clause in _OUTSIDE:
        outer.set(clause, node.args.get(clause))
    return outer


def _numbered(number: int) -> Any:
    from sqlglot import exp

    return exp.column(exp.to_identifier(f"column{number + 1}", quoted=True))


def _with_zeros_apart(
    node: Any, fields: list[ResultField] | None, names: ResultNames | None
) -> Any:
    """Return a set operation that tells -0.0 from 0.0: both sides have the keys of their floats."""
    from sqlglot import exp

    if not fields:
        return node
    floats = [number for number, field in enumerate(fields) if is_float(field.type)]
    if not floats or not node.args.get("distinct", True):
        return _ordered_outside(node, fields, names)
    columns = [_numbered(number) for number in range(len(fields))]
    keys = [
        exp.Alias(this=order_key(columns[number]), alias=exp.to_identifier(f"key{number}"))
        for number in floats
    ]
    union = node.copy()
    for clause in _OUTSIDE:
        union.set(clause, None)
    for side in ("this", "expression"):
        aliases = [column.this.copy() for column in columns]
        alias = exp.TableAlias(this=exp.to_identifier("side"), columns=aliases)
        inner = exp.Subquery(this=node.args[side].unnest().copy(), alias=alias)
        selected = [part.copy() for part in (*columns, *keys)]
        union.set(side, exp.select(*selected).from_(inner))
    order = node.args.get("order")
    parts = order.expressions if order is not None else []
    numbers = [_position_of(part.this, fields, names) for part in parts]
    return _outer_query(node, union, fields, numbers)


def _united(
    left: list[ResultField] | None, right: list[ResultField] | None
) -> list[ResultField] | None:
    """Return the columns of a set operation: the names of the left, types that hold both."""
    if left is None or right is None or len(left) != len(right):
        return None
    fields = []
    for first, second in zip(left, right, strict=True):
        type_ = first.type
        if first.type != second.type:
            type_ = None
            if first.type is not None and second.type is not None:
                try:
                    pair = unify(Column(("l",), first.type), Column(("r",), second.type))
                    type_ = pair[0].type
                except PredicateError:
                    type_ = None
        fields.append(ResultField(first.name, type_))
    return fields
