"""Result: the return value of a verb, with a text, an HTML and a JSON form.

``value`` is the Python object that ``-o NAME`` assigns: an Arrow table, a list, a report. All texts
are escaped for display, because names and values come from datasets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lance_nb.explorer.models import text
from lance_nb.explorer.static_rendering import StaticRendering, render_table
from lance_nb.format.python_values import rows_to_python, to_python
from lance_nb.shown_text import visible, visible_json

MAX_ROWS = 1000
_MAX_BYTES_SHOWN = 64
_CELL_CHARS = 120


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The result of a verb. ``exit_code`` is the exit status in a terminal."""

    value: Any
    picture: StaticRendering
    data: Any = None
    exit_code: int = field(default=0)

    def __repr__(self) -> str:
        return self.picture.text

    def _repr_html_(self) -> str:
        return self.picture.html

    def json(self) -> str:
        """Return the result as JSON text."""
        return visible_json(json.dumps(self.data, indent=2, default=plain, ensure_ascii=False))


class JsonText(str):
    """JSON text that a cell shows without quotes and escapes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def records_result(
    heading: str,
    records: Sequence[Mapping[str, Any]],
    *,
    value: Any = None,
    lines: Iterable[str] = (),
    exit_code: int = 0,
) -> Result:
    """Return a result that shows records as a table, one column per key of the first."""
    head = tuple(map(text.name, records[0])) if records else ()
    rows = [tuple(map(word, record.values())) for record in records[:MAX_ROWS]]
    numeric = {
        at for at, key in enumerate(records[0] if records else ()) if _is_number(records[0][key])
    }
    note = _more(len(records) - MAX_ROWS, "row")
    picture = render_table(heading, tuple(lines), (head, rows), numeric=numeric, note=note)
    data = [dict(record) for record in records]
    return Result(data if value is None else value, picture, data, exit_code)


def table_result(
    heading: str, table: pa.Table, rows_shown: int, *, lines: Iterable[str] = ()
) -> Result:
    """Return a result that shows the first rows of an Arrow table; its value is the table."""
    first = table.slice(0, rows_shown)
    columns = [[word(value) for value in to_python(column)] for column in first.columns]
    rows = list(zip(*columns, strict=True)) if columns else []
    numeric = {
        at
        for at, field_ in enumerate(table.schema)
        if pa.types.is_integer(field_.type) or pa.types.is_floating(field_.type)
    }
    names = tuple(map(text.name, table.column_names))
    note = _more(table.num_rows - first.num_rows, "row")
    picture = render_table(heading, tuple(lines), (names, rows), numeric=numeric, note=note)
    return Result(table, picture, Rows(table))


def text_result(
    heading: str, lines: Iterable[str], *, value: Any = None, data: Any = None, exit_code: int = 0
) -> Result:
    """Return a result that shows a heading and lines of text."""
    said = tuple(lines)
    picture = render_table(heading, said, ((), []))
    return Result(value, picture, list(said) if data is None else data, exit_code)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table, converted to JSON on demand."""

    table: pa.Table


def one_line(error: BaseException) -> str:
    """Return the message and notes of an error in one line, without control characters."""
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    return visible(" ".join(f"{error}{notes}".split()))


def plain(value: Any) -> Any:
    """Convert a value that is no JSON type."""
    if isinstance(value, Rows):
        return rows_to_python(value.table)
    if isinstance(value, pa.Table):
        return rows_to_python(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)


def word(value: Any) -> str:
    """Format one value for a table cell."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bytes):
        more = text.ELLIPSIS if len(value) > _MAX_BYTES_SHOWN else ""
        return value[:_MAX_BYTES_SHOWN].hex() + more
    if isinstance(value, Mapping | list | tuple):
        return text.line(json.dumps(value, default=plain, ensure_ascii=False), _CELL_CHARS)
    if isinstance(value, float | Decimal | timedelta | bool):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else text.line(value, _CELL_CHARS)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _more(count: int, noun: str) -> str:
    return f"{text.plural(count, f'more {noun}')}" if count > 0 else ""
