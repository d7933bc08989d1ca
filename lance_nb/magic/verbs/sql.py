"""SQL over any versions: DuckDB on Arrow streams (extra ``sql``).

``FROM photos`` is the dataset in the variable ``photos``, ``FROM dataset`` is the current dataset,
and ``FROM photos@tag:v1`` or ``FROM dataset@HEAD~2`` are the same at another version. Only the
columns of the statement are read.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Collection
from contextlib import closing
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.sql import duckdb_errors, indexed_answer, open_duckdb, prepare, words_of
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.format.alphanumeric import ALPHANUMERIC_CLASS
from lance_nb.magic.context import MagicContext, variables_of
from lance_nb.magic.verb import Result, argument, table_result, verb

CURRENT = "dataset"
_WORD = rf"\w{ALPHANUMERIC_CLASS}"  # the letters of names of tags and branches
# A name, an at sign and a ref. Strings, quoted names and comments are matched first, to skip them.
_PLACE = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/"""
    rf"|\b(?P<name>[A-Za-z_]\w*)@(?P<ref>[{_WORD}:./~+-]*[{_WORD}])",
    re.DOTALL,
)

_MISSING = re.compile(r"Table with name (?P<name>.+?) does not exist")
_WRITES = re.compile(r"(insert|update|delete|merge|truncate|alter|drop)\b", re.IGNORECASE)


@verb(
    argument("statement", metavar="STATEMENT", help="an SQL query for DuckDB"),
    example="sql SELECT label, count(*) FROM dataset GROUP BY label",
    needs_dataset=False,
    is_text=True,
)
def sql(context: MagicContext, args: Namespace) -> Result:
    """Run SQL over any versions: FROM dataset, FROM photos@tag:v1."""
    statement = _unquoted(args.statement.strip()).rstrip(";")
    if not statement:
        raise InvalidInputError("the statement is missing; try: %lance sql SELECT * FROM dataset")
    if _WRITES.match(statement):
        raise InvalidInputError(
            "SQL is read-only here; use %lance stage append, delete or update for edits"
        )
    table = query(context, statement)
    count = f"{text.plural(table.num_rows, 'row')}"
    return table_result("Result", table, context.settings.rows_shown, lines=[count])


def _unquoted(statement: str) -> str:
    """Remove the quotes that a shell would remove."""
    mark, inner = statement[:1], statement[1:-1]
    is_quoted = mark in {"'", '"'} and statement.endswith(mark) and mark not in inner
    return inner.strip() if is_quoted and " " in inner else statement


def query(context: MagicContext, statement: str) -> pa.Table:
    """Run a statement over the datasets that it names. Raises InvalidInputError."""
    variables = variables_of(context.namespace)
    if context.is_open:
        variables[CURRENT] = context.dataset
    rewritten, places = _with_views(statement, variables)
    named = {name: variables[name] for name in _tables(rewritten) & set(variables)}
    connection = open_duckdb()
    with closing(connection), duckdb_errors(lambda error: _error_message(error, variables)):
        tables = {**named, **places}
        for name, dataset in tables.items():
            indexed = indexed_answer(connection, dataset, rewritten, name)
            if indexed is not None:
                return indexed
        table: pa.Table = prepare(tables, rewritten).run(connection).read_all()
    return table


def _error_message(error: Exception, variables: Collection[str]) -> str:
    """Return the message of DuckDB; for an unknown table, list the known ones."""
    missing = _MISSING.search(str(error))
    if missing is None:
        return words_of(error)
    named = f"unknown table {missing['name']!r}"
    if not variables:
        return f"{named}; no dataset is open: %lance open URI"
    return f"{named}; open datasets: {', '.join(variables)}"


def _with_views(
    statement: str, variables: dict[str, LanceDataset]
) -> tuple[str, dict[str, LanceDataset]]:
    """Replace every ``name@ref`` outside of quotes and comments by an SQL identifier."""
    views: dict[str, LanceDataset] = {}

    def view(match: re.Match[str]) -> str:
        name, ref = match.group("name", "ref")
        if name is None:
            return match.group()
        if name not in variables:
            raise InvalidInputError(
                f"SQL: {name!r} is not a dataset; open datasets: {', '.join(variables)}"
            )
        dataset: Any = variables[name].checkout_version(ref)
        view_name = f"{name}_at_{len(views)}"
        views[view_name] = dataset
        return view_name

    return _PLACE.sub(view, statement), views


def _tables(statement: str) -> set[str]:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    from lance_nb.table.predicate.sql_text import parse_duckdb, problem_of

    try:
        parsed = parse_duckdb(statement)
    except SqlglotError as error:
        raise InvalidInputError(f"SQL: {problem_of(error, statement)}") from error
    tables = (parsed_statement.find_all(exp.Table) for parsed_statement in parsed)
    return {table.name for tables_of_statement in tables for table in tables_of_statement}


VERBS = (sql,)
