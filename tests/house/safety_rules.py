"""Rules about what may run code, or open a door to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.source import Source

DUCKDB_ALLOWED = ("lance_nb/dataset/locked_duckdb.py",)


def one_duckdb(source: Source) -> Iterator[str]:
    """DuckDB is opened, locked, in one module: a statement must not read files or load code."""
    if not source.is_product_code or source.is_in(*DUCKDB_ALLOWED):
        return
    for node in source.nodes:
        if "duckdb" in _packages(node):
            yield source.at(node, f"imports duckdb; use open_duckdb of {DUCKDB_ALLOWED[0]}")


def _packages(node: ast.AST) -> set[str]:
    """Return the top packages that a statement or a call of ``import_module`` imports."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [node.module or ""]
    elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
        names = [
            one.value
            for one in node.args
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
    return {name.partition(".")[0] for name in names}


def _called(node: ast.Call) -> str:
    """Return the last name of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


SAFETY_RULES = (one_duckdb,)
