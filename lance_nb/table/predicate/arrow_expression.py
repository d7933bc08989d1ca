"""pyarrow.compute.Expression as a filter: which columns it needs, and its value.

Such an expression cannot be walked from Python, so Arrow is asked: it is bound to no columns, and
the column that Arrow misses is added, until it binds. An expression that names columns by number is
given all of them. Row columns (``_rowid`` ...) may be named too.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.expression import Columns, Path, first_line
from lance_nb.table.predicate.names import Names
from lance_nb.table.projection import ROW_COLUMNS

_MISSED = re.compile(
    r"No match for FieldRef\.(?:Name\((.*?)\) in |Nested\(FieldRef\.Name\((.*?)\))"
)


def arrow_paths(expression: Any, schema: pa.Schema) -> tuple[Path, ...]:
    """List the top-level columns that the expression needs. Raises PredicateError."""
    fields = {field.name: field for field in schema}
    for name in ROW_COLUMNS:
        fields.setdefault(name, pa.field(name, pa.uint64()))
    if "FieldPath(" in str(expression):
        wanted = list(schema.names)
        _try_bind(expression, [fields[name] for name in wanted])
        return tuple((name,) for name in wanted)
    wanted = []
    while True:
        missed = _try_bind(expression, [fields[name] for name in wanted])
        if missed is None:
            return tuple((name,) for name in wanted)
        if missed not in fields or missed in wanted:
            Names(schema).resolve([missed], quoted=True)
            raise PredicateError(f"filter {expression}: column {missed!r} cannot be used")
        wanted.append(missed)


def _try_bind(expression: Any, fields: list[pa.Field]) -> str | None:
    """Return the name of a column that is missing, None when the expression is complete."""
    schema = pa.schema(fields)
    try:
        found = _project(expression, pa.Table.from_batches([], schema))
    except pa.ArrowException as exc:
        match = _MISSED.search(str(exc))
        if match is None:
            raise PredicateError(f"filter {expression}: {first_line(exc)}") from exc
        return match[1] if match[1] is not None else match[2]
    if not pt.is_boolean(found.type):
        raise PredicateError(f"filter {expression} is {found.type}, not a condition")
    return None


def evaluate_arrow(expression: Any, columns: Columns, num_rows: int) -> pa.ChunkedArray:
    """Compute the expression over rows."""
    if not columns:
        columns = {("_",): pa.chunked_array([pa.nulls(num_rows)])}
    table = pa.table({path[0]: values for path, values in columns.items()})
    return _project(expression, table)


def _project(expression: Any, table: pa.Table) -> pa.ChunkedArray:
    from pyarrow import acero

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    options = acero.ProjectNodeOptions([expression], ["found"])
    plan = acero.Declaration("project", options, [source])
    return plan.to_table(use_threads=False).column("found")
