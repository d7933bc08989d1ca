"""Compute an expression over a table in memory, for tests of single functions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_nb.table.predicate import compile_column
from lance_nb.table.predicate.expression import evaluate_needed, one_array, paths_of


def values_of(text: str, table: pa.Table) -> list[Any]:
    """Return what an expression over top-level columns gives for each row."""
    expression = compile_column("found", text, table.schema).expression
    columns = {path: table[path[0]] for path in paths_of(expression)}
    return one_array(evaluate_needed(expression, columns), table.num_rows).to_pylist()
