"""SQL over any versions: DuckDB on Arrow streams (extra ``sql``).

``FROM photos`` is the dataset in the variable ``photos``, ``FROM dataset`` the one in hand, and
``FROM photos@tag:v1`` or ``FROM dataset@HEAD~2`` the same at another version. Only the columns that
the statement names are read.
"""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot.errors import SqlglotError

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.sql import words_of
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.explorer.models import refs, text
from lance_nb.magic.answer import Answer, answer_of_table
from lance_nb.magic.desk import Desk, variables_of
from lance_nb.magic.verb import Verb, argument

IN_HAND = "dataset"
# A name, an at sign, and a ref, which may hold what an identifier may not; strings, quoted names
# and comments are matched first, to be left alone.
_PLACE = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/"""
    r"|\b(?P<name>[A-Za-z_]\w*)@(?P<ref>[\w:./~+-]*\w)",
    re.DOTALL,
)


def sql(desk: Desk, said: Namespace) -> Answer:
    """Run a statement."""
    statement = said.statement.strip().rstrip(";")
    if not statement:
        raise InvalidInputError("there is no statement; try: %lance sql SELECT * FROM dataset")
    table = query(desk, statement)
    count = f"{text.plural(table.num_rows, 'row')}"
    return answer_of_table("Result", table, desk.settings.rows_shown, lines=[count])


def query(desk: Desk, statement: str) -> pa.Table:
    """Run a statement over the datasets that it names. Raises InvalidInputError."""
    duckdb = _duckdb()
    known = variables_of(desk.namespace)
    if desk.is_open:
        known[IN_HAND] = desk.dataset
    rewritten, places = _with_views(statement, known)
    named = {name: known[name] for name in _tables(rewritten) & set(known)}
    connection = duckdb.connect()
    # Values of a dataset are never taken for code: no file and no network from SQL.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET python_enable_replacements = false")
    try:
        for name, dataset in {**named, **places}.items():
            connection.register(name, dataset)
        result = connection.sql(rewritten)
        if result is None:
            raise InvalidInputError("SQL: only statements that return rows can be run")
        table: pa.Table = result.to_arrow_table()
    except duckdb.Error as error:
        hint = "" if known else "; no dataset is open: %lance open URI"
        raise InvalidInputError(f"SQL: {words_of(error)}{hint}") from error
    finally:
        connection.close()
    return table


def _with_views(
    statement: str, known: dict[str, LanceDataset]
) -> tuple[str, dict[str, LanceDataset]]:
    """Give every ``name@ref`` outside of quotes and comments a name that SQL can say."""
    views: dict[str, LanceDataset] = {}

    def view(match: re.Match[str]) -> str:
        name, ref = match.group("name", "ref")
        if name is None:
            return match.group()
        if name not in known:
            raise InvalidInputError(
                f"SQL: {name!r} is not a dataset; there are: {', '.join(known)}"
            )
        found: Any = refs.resolve(known[name], ref)
        given = f"{name}_at_{len(views)}"
        views[given] = found
        return given

    return _PLACE.sub(view, statement), views


def _tables(statement: str) -> set[str]:
    try:
        parsed = sqlglot.parse(statement, read="duckdb")
    except SqlglotError as error:
        raise InvalidInputError(f"SQL: {error}") from error
    tables = (one.find_all(sqlglot.exp.Table) for one in parsed if one is not None)
    return {table.name for found in tables for table in found}


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        message = "SQL needs DuckDB: pip install 'lance-nb[sql]'"
        raise NotSupportedError(message) from error
    return duckdb


VERBS = (
    Verb(
        "sql",
        "run SQL over any versions: FROM dataset, FROM photos@tag:v1",
        sql,
        (argument("statement", metavar="STATEMENT", help="what DuckDB understands"),),
        "sql SELECT label, count(*) FROM dataset GROUP BY label",
        needs_dataset=False,
        is_text=True,
    ),
)
