"""Call a function that recurses deeper than Python allows by default.

sqlglot needs some twenty calls per level of nesting, so that about forty levels exhaust the default
limit of 1,000 calls. Such an expression is read again in a thread of its own, with a stack that has
room and the limit raised meanwhile. The limit is one for all threads: while it is raised, endless
recursion elsewhere is noticed later, nothing else changes.

Limits: the raised limit holds for some 400 levels; ``sql_text`` refuses more than 200.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lance_nb.errors import PredicateError

CALLS_MAX = 20_000
STACK_BYTES = 256 * 1024 * 1024

T = TypeVar("T")
_one_at_a_time = threading.Lock()


def call_deeply(function: Callable[[], T]) -> T:
    """Return what ``function`` returns, called again with more room if it recurses too deeply.

    Raises what it raises; RecursionError when that room does not do.
    """
    try:
        return function()
    except RecursionError:
        return _with_room(function)


def parse_duckdb(text: str) -> list[Any]:
    """Parse statements of DuckDB's dialect.

    Raises PredicateError for one that is nested too deeply, what sqlglot raises for bad syntax.
    """
    import sqlglot

    try:
        trees = call_deeply(lambda: sqlglot.parse(text, read="duckdb"))
    except RecursionError as exc:
        raise PredicateError(
            f"the SQL statement of {len(text):,} characters is nested too deeply: it needs more "
            f"than {CALLS_MAX:,} nested calls to be read"
        ) from exc
    return [one for one in trees if one is not None]


def _with_room(function: Callable[[], T]) -> T:
    with _one_at_a_time:
        before = sys.getrecursionlimit()
        stack = threading.stack_size(STACK_BYTES)
        try:
            sys.setrecursionlimit(max(before, CALLS_MAX))
            with ThreadPoolExecutor(1, "lance-nb-deep-call") as pool:
                return pool.submit(function).result()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(before)
