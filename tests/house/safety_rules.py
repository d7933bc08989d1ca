"""Rules about what may run code, or open a door to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.source import Source

DUCKDB_ALLOWED = ("lance_nb/dataset/sql.py",)

# Reading what they write can run any code.
PICKLES = frozenset(
    {"_pickle", "cloudpickle", "cPickle", "dill", "joblib", "jsonpickle", "marshal", "pickle",
     "shelve"}
)  # fmt: skip
# Between a driver and the workers it has started: tasks go out and outcomes come back in messages
# of PySpark's own, which are pickles themselves. Who could change them runs code there already.
PICKLES_IN_MEMORY = (
    "lance_nb/spark/spark_engine.py",  # tasks and outcomes
    "lance_nb/spark/engine.py",  # functions of a notebook, plain values, results
)
# What has bytes from anywhere but this process and its workers.
READERS = frozenset(
    {"fdopen", "memory_map", "open", "open_store", "pread", "read", "read_all", "read_bytes",
     "read_file", "read_range", "read_ranges", "read_tail", "read_text", "readinto", "urlopen"}
)  # fmt: skip
LOADERS = frozenset({"Unpickler", "load", "read_pickle"})


def one_duckdb(source: Source) -> Iterator[str]:
    """DuckDB is opened, locked, in one module: a statement must not read files or load code."""
    if not source.is_product_code or source.is_in(*DUCKDB_ALLOWED):
        return
    for node in source.nodes:
        if "duckdb" in _packages(node):
            yield source.at(node, f"imports duckdb; use open_duckdb of {DUCKDB_ALLOWED[0]}")


def no_stored_code(source: Source) -> Iterator[str]:
    """No pickle is read from a disk, a store or the network: reading one can run any code.

    What is kept is JSON or Arrow. Pickles in memory, between a Spark driver and its own workers,
    are made and read in the modules listed here; those read no files and no stores.
    """
    if not source.is_product_code:
        return
    may = source.is_in(*PICKLES_IN_MEMORY)
    for node in source.nodes:
        if not may and PICKLES & (_packages(node) | _imported(node)):
            yield source.at(node, "imports a pickle; keep JSON or Arrow instead")
        if not isinstance(node, ast.Call):
            continue
        called = _called(node)
        if may and called in READERS | LOADERS:
            yield source.at(node, f"calls {called} where pickles are read: bytes from elsewhere?")
        if called == "read_pickle" or _allows_pickle(node):
            yield source.at(node, "reads a pickle; keep JSON or Arrow instead")


def _allows_pickle(node: ast.Call) -> bool:
    return any(
        one.arg == "allow_pickle"
        and not (isinstance(one.value, ast.Constant) and one.value.value is False)
        for one in node.keywords
    )


def _imported(node: ast.AST) -> set[str]:
    """Return the names that ``from x import name`` takes."""
    return {one.name for one in node.names} if isinstance(node, ast.ImportFrom) else set()


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


SAFETY_RULES = (one_duckdb, no_stored_code)
