"""A row page read back as text: what the static picture and the tests show of it.

The browser's reader of the same buffers is ``js/columns.js``; both follow ``row_page``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_nb.explorer.models import text
from lance_nb.explorer.models.row_page import PageColumn, RowPage

_KINDS = {"i": "<i", "u": "<u", "f": "<f"}


def page_texts(page: RowPage) -> list[list[str | None]]:
    """Every column of ``page`` as texts, ``None`` for null."""
    return [_column_texts(page, column) for column in page.columns]


def _column_texts(page: RowPage, column: PageColumn) -> list[str | None]:
    parts = [page.buffers[at] for at in column.buffers]
    texts = _values(column, parts, page.num_rows)
    if column.validity is None:
        return list(texts)
    valid = page.buffers[column.validity]
    return [shown if valid[row] else None for row, shown in enumerate(texts)]


def _values(column: PageColumn, parts: list[bytes], num_rows: int) -> list[str]:
    if column.encoding == "bool":
        return ["true" if flag else "false" for flag in parts[0]]
    if column.encoding == "text":
        offsets = np.frombuffer(parts[0], "<i4")
        return [parts[1][offsets[at] : offsets[at + 1]].decode() for at in range(num_rows)]
    if column.encoding == "vector":
        norms = np.frombuffer(parts[0], "<f4")
        dimension = text.count(int(column.extra["dimension"]))
        return [f"[{dimension} values, norm {norm:.4g}]" for norm in norms]
    kind = _KINDS[column.encoding[0]] + str(int(column.encoding[1:]) // 8)
    return [_number(value) for value in np.frombuffer(parts[0], kind)]


def _number(value: Any) -> str:
    shown = str(value)
    return "NaN" if shown == "nan" else shown
