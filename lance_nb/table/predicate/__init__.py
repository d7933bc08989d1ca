"""Filters and computed columns: SQL text or Arrow expressions, bound to a schema."""

from lance_nb.table.predicate.expression import Columns
from lance_nb.table.predicate.filter import (
    Computed,
    Filter,
    compile_column,
    compile_filter,
    is_null_cast,
    needed_paths,
    null_filter,
)

__all__ = [
    "Columns",
    "Computed",
    "Filter",
    "compile_column",
    "compile_filter",
    "is_null_cast",
    "needed_paths",
    "null_filter",
]
