"""The pages of a data file by column: layout, codecs, bytes, and how much they save.

Layout of ``to_json``: ``path``, ``bytes`` of all pages, ``columns`` ``[{name, pages, rows, bytes,
plain, encodings: [{encoding, pages}]}]`` in file order, ``hidden`` (columns left out). ``plain`` is
what the values would take without any compression, null where the type does not tell.

Limits: ``MAX_COLUMNS`` columns, ``MAX_ENCODINGS`` encodings of each. Reads the file's metadata.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from lance_nb.explorer.models import text
from lance_nb.explorer.models.source import StoredSource

MAX_COLUMNS = 200
MAX_ENCODINGS = 4


@dataclass(frozen=True, slots=True)
class PagesOfColumn:
    """The pages of one column of a file."""

    name: str
    pages: int
    rows: int
    bytes: int
    plain: int | None
    encodings: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class FilePages:
    """The pages of one data file."""

    path: str
    bytes: int
    columns: tuple[PagesOfColumn, ...]
    hidden: int

    def to_json(self) -> dict[str, Any]:
        """Return the pages as JSON-able values."""
        return asdict(self)


def file_pages(dataset: StoredSource, path: str) -> FilePages:
    """List the pages of a data file. Raises NotFoundError, CorruptFileError."""
    rows = dataset.inspect.pages(path).to_pylist()
    columns: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        columns.setdefault(row["column"], []).append(row)
    widths = _widths(dataset.schema)
    shown = tuple(_column(pages, widths) for pages in list(columns.values())[:MAX_COLUMNS])
    return FilePages(
        path=text.name(path),
        bytes=sum(row["size_bytes"] or 0 for row in rows),
        columns=shown,
        hidden=max(0, len(columns) - MAX_COLUMNS),
    )


def _column(pages: list[dict[str, Any]], widths: dict[str, int]) -> PagesOfColumn:
    name = pages[0]["name"]
    counts: dict[str, int] = {}
    for page in pages:
        counts[page["encoding"]] = counts.get(page["encoding"], 0) + 1
    num_rows = sum(page["num_rows"] or 0 for page in pages)  # a damaged page has none
    bits = widths.get(name) if name is not None else None
    return PagesOfColumn(
        name="(not in the schema)" if name is None else text.name(name),
        pages=len(pages),
        rows=num_rows,
        bytes=sum(page["size_bytes"] or 0 for page in pages),
        plain=None if bits is None else (num_rows * bits + 7) // 8,
        encodings=tuple(
            {"encoding": text.line(encoding), "pages": count}
            for encoding, count in list(counts.items())[:MAX_ENCODINGS]
        ),
    )


def _widths(schema: pa.Schema) -> dict[str, int]:
    """Bits per value of the columns at the top level whose type tells."""
    found = {}
    for field in schema:
        bits = _bits(field.type)
        if bits:
            found[field.name] = bits
    return found


def _bits(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _bits(kind.value_type)
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0
