"""Rows as text for the clipboard: a head and one line per row, values parted by tabs.

Limits: ``MAX_ROWS`` rows, ``MAX_COLUMNS`` columns, ``CELL_CHARS`` characters per value,
``MAX_CHARS`` in all; ``rows`` of the result says how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_nb.explorer.models import cells, text

MAX_ROWS = 2000
MAX_COLUMNS = 200
CELL_CHARS = 2000
MAX_CHARS = 700_000


@dataclass(frozen=True, slots=True)
class RowTexts:
    """Lines for the clipboard, and how many rows they hold."""

    text: str
    rows: int


def row_texts(table: pa.Table) -> RowTexts:
    """Write rows as lines; tabs and line breaks within values are signs, so that columns stay."""
    table = table.slice(0, MAX_ROWS).select(list(range(min(MAX_COLUMNS, table.num_columns))))
    columns = [cells.cell_texts(column, CELL_CHARS) for column in table.columns]
    lines = ["\t".join(text.name(name) for name in table.schema.names)]
    spent = len(lines[0])
    for row in zip(*columns, strict=True):
        line = "\t".join("null" if value is None else value for value in row)
        spent += len(line) + 1
        if spent > MAX_CHARS:
            break
        lines.append(line)
    return RowTexts("\n".join(lines), len(lines) - 1)
