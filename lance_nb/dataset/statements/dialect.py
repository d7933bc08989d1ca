"""The dialect of statements: DuckDB's grammar, with the meaning that Lance's SQL has.

Functions are calls by name, so that filters and statements share their tables of functions; nulls
are the largest values where ORDER BY does not say otherwise; ``~`` searches a regular expression
anywhere in the text; positions in brackets are written as they are read.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.sql_text import lance_dialect, parse_statements

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

_WITH_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION")
_WITHOUT_BRACKETS = ("ANY", "CASE")


def parse_statement(text: str) -> Any | None:
    """Parse one statement; None for several, and for what only DuckDB may understand."""
    from sqlglot.errors import SqlglotError

    try:
        trees = parse_statements(text, _dialects()[0])
    except (SqlglotError, PredicateError):
        return None
    return trees[0] if len(trees) == 1 else None


def duckdb_text(tree: Any) -> str:
    """Write a tree as DuckDB reads it."""
    return str(tree.sql(dialect=_dialects()[1]))


def filter_text(tree: Any) -> str:
    """Write an expression as filters are written."""
    return str(tree.sql(dialect=lance_dialect()))


@cache
def _dialects() -> tuple[type[Dialect], type[Dialect]]:
    """Define what statements are read by, and what they are written by."""
    from sqlglot import exp, parser
    from sqlglot.dialects.duckdb import DuckDB

    duckdb_parser: Any = DuckDB.Parser
    duckdb_tokenizer: Any = DuckDB.Tokenizer
    searches = {kind for kind in duckdb_parser.RANGE_PARSERS if kind.name in ("RLIKE", "TILDE")}

    class StatementSql(DuckDB):
        """Statements as they are read."""

        INDEX_OFFSET = 0
        NULL_ORDERING = "nulls_are_large"
        SAFE_DIVISION = False

        class Tokenizer(duckdb_tokenizer):  # type: ignore[misc]
            HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012

        class Parser(duckdb_parser):  # type: ignore[misc]
            FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
            NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012
            NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
                name: parser.Parser.NO_PAREN_FUNCTION_PARSERS[name] for name in _WITHOUT_BRACKETS
            }
            FUNCTION_PARSERS = {  # noqa: RUF012
                name: parse
                for name, parse in parser.Parser.FUNCTION_PARSERS.items()
                if name in _WITH_GRAMMAR
            }
            RANGE_PARSERS = {  # noqa: RUF012
                kind: parser.binary_range_parser(exp.RegexpLike) if kind in searches else parse
                for kind, parse in duckdb_parser.RANGE_PARSERS.items()
            }

    class Written(DuckDB):
        """Statements as they are written."""

        INDEX_OFFSET = 0

    return StatementSql, Written
