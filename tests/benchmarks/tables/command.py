"""Real tables, ours against pylance, the worst ratio first.

Reads and changes of tables as people have them: many fragments, long texts, many columns. Each
engine has its own process for each row of the table (``--size ci``: one for all rows); both are
called by turns. Times are the best of several calls; the first call in a process, after the import
of the engine, stands beside. Ratios are pylance's time over ours. Goals are held against warm
calls. Of whole processes, the first call is what a verb takes beyond the import.

To refresh the ratios that --check compares with, on an idle machine, one size after the other:

    python -m tests.benchmarks tables --json tests/benchmarks/ratios.json
    python -m tests.benchmarks tables --size ci --json tests/benchmarks/ratios.json

Ratios of the other size and of rows that were not measured (--only) stay as they are.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from tests.benchmarks.tables.measure import measure, shared_workers, write_data
from tests.benchmarks.tables.operations import GROWTH, OPERATIONS, Operation
from tests.benchmarks.tables.processes import PROCESSES
from tests.benchmarks.tables.report import (
    RATIOS,
    Row,
    fallen,
    growth_table,
    ratios,
    store,
    stored_ratios,
    table,
)
from tests.benchmarks.tables.sizes import SIZES, Size
from tests.benchmarks.timing import ONLY

OPTIONS = {
    "--size": {"choices": SIZES, "default": "full", "help": "ci: small tables and few calls"},
    "--only": ONLY,
    "--growth": {
        "action": "store_true",
        "help": "cost of each fragment, column, deletion file, ref",
    },
    "--json": {"type": Path, "help": "put the ratios into this file"},
    "--check": {
        "action": "store_true",
        "help": "exit with 1 when a warm ratio by processor time is over a third below the one in "
        "tests/benchmarks/ratios.json (size ci: 60 %%), after it was measured once more",
    },
}

ROWS = (*OPERATIONS, *PROCESSES)
BY_KEY = {operation.key: operation for operation in (*ROWS, *GROWTH)}


def measure_all(operations: Iterable[Operation], size: Size) -> list[Row]:
    """Write the data that is missing and measure each operation."""
    chosen = list(operations)
    write_data(chosen, size)
    if not chosen:
        return []
    with shared_workers(size) as shared:
        return [measure(operation, size, shared) for operation in chosen]


def check(rows: list[Row], size: Size, stored: Path = RATIOS) -> list[str]:
    """Return a sentence for each ratio that fell, after a second look at it."""
    reference = stored_ratios(stored, size.name)
    if not reference:
        return [f"{stored.name} has no ratios of size {size.name}: write them with --json"]
    again = measure_all((BY_KEY[key] for key in fallen(reference, ratios(rows), size.name)), size)
    return list(fallen(reference, ratios(again), size.name).values())


def run(options: Namespace) -> int:
    """Measure what was asked for, print the table, store and check the ratios."""
    size = SIZES[options.size]
    rows = measure_all(
        (
            operation
            for operation in (GROWTH if options.growth else ROWS)
            if options.only in operation.key or options.only in operation.title(size)
        ),
        size,
    )
    print(growth_table(rows) if options.growth else table(rows))
    if options.json:
        store(options.json, size.name, ratios(rows))
    problems = check(rows, size) if options.check else []
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0
