"""Lay out a window of rows as column buffers, which the grid in the browser reads without Arrow.

Layout: ``RowPage.to_json`` is the sidecar; every ``buffer`` index in it points into ``buffers``.

============  =======================================================================
``encoding``  buffers, in order
============  =======================================================================
i8..i64       values, little-endian two's complement (i64 reaches the browser as BigInt: exact)
u8..u64       values
f32, f64      values (float16 is widened to f32)
bool          one byte per row, 0 or 1
text          int32 offsets (``num_rows + 1``), then UTF-8; ``pictures`` marks the values of a
              binary column that are small images (see ``media``)
vector        f32 norm per row, then ``points`` bytes per row: the vector's outline, 0..255
              between ``low`` and ``high``; with ``dimension``
============  =======================================================================

Where rows were found by a search for words, the cells of the texts that were searched begin near
the first of these words. ``marks`` of such a column are by row of the page where words stand in its
cell: starts and stops one after the other, in the units of UTF-16 that a browser counts in.

A column with nulls has one buffer more, ``validity``: one byte per row, 0 is null.

``page_texts`` reads a page back as text for the static rendering and the tests; the browser's
reader of the same buffers is ``js/columns.js``.

Limits: ``MAX_ROWS`` rows and ``MAX_COLUMNS`` columns per page; ``GRID_CHARS`` characters per
cell; ``MAX_READ_BYTES`` estimated bytes are decoded per page, ``MAX_PAGE_BYTES`` are sent: a page
may hold fewer rows than requested (never none, if there are rows) and the browser requests the
rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.explorer import cells, text
from lance_nb.explorer.arrow_buffers import flags_of, numbers_of, validity_of
from lance_nb.explorer.media import image_marks
from lance_nb.explorer.rows.full_text_search import FullTextSearch
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.source import Source
from lance_nb.value_classes import dataclass

MAX_ROWS = 500
MAX_COLUMNS = 64
GRID_CHARS = 240
MAX_READ_BYTES = 16_000_000
MAX_PAGE_BYTES = 900_000
SPARK_POINTS = 32
_MIN_VECTOR = 4
_GUESSED_WIDTH = 64
_KINDS = {"i": "<i", "u": "<u", "f": "<f"}


@dataclass(frozen=True, slots=True)
class Window:
    """Which rows and columns are wanted: live rows by position, columns by position."""

    offset: int = 0
    limit: int = 100
    first_column: int = 0
    num_columns: int = MAX_COLUMNS


@dataclass(frozen=True, slots=True)
class PageColumn:
    """One column of a page; ``buffers`` are positions in the page's list."""

    name: str
    type: str
    encoding: str
    buffers: tuple[int, ...]
    validity: int | None
    extra: dict[str, Any]
    raw: str | None = None  # the name as it is stored, where it is not shown as such

    def to_json(self) -> dict[str, Any]:
        """Return the column's part of the sidecar."""
        return {
            "name": self.name,
            "type": self.type,
            "encoding": self.encoding,
            "buffers": list(self.buffers),
            "validity": self.validity,
            **({} if self.raw is None else {"raw": self.raw}),
            **self.extra,
        }


@dataclass(frozen=True, slots=True)
class RowPage:
    """A rectangle of the rows of one version."""

    offset: int
    num_rows: int
    first_column: int
    columns: tuple[PageColumn, ...]
    buffers: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(map(len, self.buffers))

    def to_json(self) -> dict[str, Any]:
        """Return the sidecar, without the buffers."""
        return {
            "offset": self.offset,
            "num_rows": self.num_rows,
            "first_column": self.first_column,
            "columns": [column.to_json() for column in self.columns],
        }


def row_page(
    dataset: Source, window: Window, max_bytes: int = MAX_PAGE_BYTES, query: RowQuery | None = None
) -> RowPage:
    """Read one window of ``dataset`` as ``query`` shows it, cut to the limits of this module."""
    query = query or RowQuery()
    names = query.names(dataset)[window.first_column :][: min(window.num_columns, MAX_COLUMNS)]
    limit = max(1, min(window.limit, MAX_ROWS, _affordable_rows(dataset, names)))
    table = query.rows(dataset, names, window.offset, limit)
    page = page_of(table, window.offset, window.first_column, query.search)
    while page.size_bytes > max_bytes and page.num_rows > 1:
        fewer = max(1, min(page.num_rows // 2, page.num_rows * max_bytes // page.size_bytes))
        page = page_of(table.slice(0, fewer), window.offset, window.first_column, query.search)
    return page


def _affordable_rows(dataset: Source, names: list[str]) -> int:
    """How many rows may be decoded at once, judged by the widths of the types."""
    kinds = {field.name: field.type for field in dataset.schema}
    width = sum(_width(kinds[name]) for name in names if name in kinds)
    return max(1, MAX_READ_BYTES // max(1, width))


def _width(kind: pa.DataType) -> int:
    """Bytes per value that the type alone tells; a guess for variable widths."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(_width(kind.field(index).type) for index in range(kind.num_fields))
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _GUESSED_WIDTH


def page_of(
    table: pa.Table,
    offset: int = 0,
    first_column: int = 0,
    search: FullTextSearch | None = None,
) -> RowPage:
    """Lay the columns of ``table`` out as buffers; ``offset`` and ``first_column`` are labels."""
    buffers: list[bytes] = []
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        flat = cells.plain(column)
        is_blob = cells.is_blob_description(field)
        if is_blob:
            encoding, parts = "text", _text_buffers(cells.blob_texts(flat))
            extra: dict[str, Any] = {"look": "binary"}
        elif search is not None and field.name in search.columns and cells.is_text(flat.type):
            encoding, parts, extra = _excerpts(flat, field.name, search)
        else:
            encoding, parts, extra = _encode(flat)
        first_buffer = len(buffers)
        buffers += parts
        validity = None
        if flat.null_count:
            validity = len(buffers)
            buffers.append(validity_of(flat).tobytes())
        places = tuple(range(first_buffer, first_buffer + len(parts)))
        shown = cells.BLOB_TYPE if is_blob else type_label(field.type)
        name = text.name(field.name)
        raw = None if name == field.name else field.name
        columns.append(
            PageColumn(
                name=name,
                type=shown,
                encoding=encoding,
                buffers=places,
                validity=validity,
                extra=extra,
                raw=raw,
            )
        )
    return RowPage(
        offset, table.num_rows, first_column, columns=tuple(columns), buffers=tuple(buffers)
    )


def _encode(column: pa.Array) -> tuple[str, list[bytes], dict[str, Any]]:
    """Return encoding name, buffers and extra sidecar entries of one column."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return "bool", [flags_of(column).tobytes()], {"look": "bool"}
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = _numbers(column)
        return f"{values.dtype.kind}{values.dtype.itemsize * 8}", [values.tobytes()], {}
    if _is_vector(kind):
        return _vector(column)
    extra = {"look": _look(kind)}
    if cells.is_binary(kind) and (marks := image_marks(column)):
        extra["pictures"] = marks
    return "text", _text_buffers(cells.cell_texts(column, GRID_CHARS)), extra


def _excerpts(
    column: pa.Array, name: str, search: FullTextSearch
) -> tuple[str, list[bytes], dict[str, Any]]:
    """Return texts from near the first word that was searched for, and where words stand."""
    shown: list[str | None] = []
    marks: dict[str, list[int]] = {}
    for row, whole in enumerate(cells.cell_texts(column, text.CELL_BYTES)):
        part, places = ("", []) if whole is None else search.excerpt(name, whole, GRID_CHARS)
        shown.append(None if whole is None else part)
        if places:
            marks[str(row)] = places
    return "text", _text_buffers(shown), {"look": "text", "marks": marks}


def _look(kind: pa.DataType) -> str:
    """How the grid sets a text column."""
    if cells.is_text(kind):
        return "text"
    if cells.is_binary(kind):
        return "binary"
    if cells.is_nested(kind):
        return "json"
    return "number" if pa.types.is_decimal(kind) else "plain"


def _numbers(column: pa.Array) -> Any:
    values = numbers_of(column)
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _text_buffers(texts: list[str | None]) -> list[bytes]:
    pieces = [(shown or "").encode() for shown in texts]
    offsets = np.zeros(len(pieces) + 1, np.int32)
    np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
    return [offsets.tobytes(), b"".join(pieces)]


def _is_vector(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_fixed_size_list(kind)
        and kind.list_size >= _MIN_VECTOR
        and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))
    )


def _vector_values(column: pa.Array, dimension: int) -> Any:
    """Return all items of all vectors, those of null vectors and null items as zero."""
    start, size = column.offset * dimension, len(column) * dimension
    items = cells.plain(column.values).slice(start, size)
    values = _numbers(items)
    if items.null_count or column.null_count:
        values = values * (validity_of(items) & np.repeat(validity_of(column), dimension))
    return values


def _vector(column: pa.Array) -> tuple[str, list[bytes], dict[str, Any]]:
    """Norms and outlines; NaN and infinity count as zero in the outline, not in the norm."""
    dimension = column.type.list_size
    size = dimension * len(column)
    values = _vector_values(column, dimension)
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = values.reshape(len(column), dimension).astype(np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
        norms = norms.astype(np.float32)
    finite = np.nan_to_num(matrix, nan=0.0, posinf=0.0, neginf=0.0)
    points = min(SPARK_POINTS, dimension)
    starts = np.arange(points) * dimension // points
    widths = np.diff(np.append(starts, dimension))
    outline = np.add.reduceat(finite, starts, axis=1, dtype=np.float64) / widths
    low, high = (float(outline.min()), float(outline.max())) if size else (0.0, 0.0)
    scale = 255 / (high - low) if high > low else 0.0
    shades = ((outline - low) * scale).round().astype(np.uint8)
    extra = {"dimension": dimension, "points": points, "low": low, "high": high, "look": "vector"}
    return "vector", [norms.tobytes(), shades.tobytes()], extra


def page_texts(page: RowPage) -> list[list[str | None]]:
    """Every column of ``page`` as texts, ``None`` for null."""
    return [_column_texts(page, column) for column in page.columns]


def _column_texts(page: RowPage, column: PageColumn) -> list[str | None]:
    parts = [page.buffers[index] for index in column.buffers]
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
        return [
            parts[1][offsets[row_index] : offsets[row_index + 1]].decode()
            for row_index in range(num_rows)
        ]
    if column.encoding == "vector":
        norms = np.frombuffer(parts[0], "<f4")
        dimension = text.count(int(column.extra["dimension"]))
        return [f"[{dimension} values, norm {norm:.4g}]" for norm in norms]
    kind = _KINDS[column.encoding[0]] + str(int(column.encoding[1:]) // 8)
    return [_number(value) for value in np.frombuffer(parts[0], kind)]


def _number(value: Any) -> str:
    shown = str(value)
    return "NaN" if shown == "nan" else shown
