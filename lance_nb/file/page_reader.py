"""From wanted rows of a column to pages that can decode them: split by page, open, fetch.

Two rounds of reading at most: index buffers (chunk tables, row indices, dictionaries) of pages that
are opened for the first time, then the bytes of the rows. Opened pages stay with their column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from google.protobuf.message import DecodeError

from lance_nb.encodings.base import (
    Layout,
    PageBuffer,
    PageReader,
    PageShape,
    Rows,
    Span,
)
from lance_nb.encodings.registry import LAYOUTS, codecs, layout_of
from lance_nb.encodings.slicing import split_at
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.metadata import ColumnMetadata, PageMetadata
from lance_nb.file.source import FileSource


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an open file, with the pages that have been opened so far.

    ``viewed`` has the buffers of those whose file is mapped.
    """

    name: str
    file_version: tuple[int, int]
    metadata: ColumnMetadata
    opened: dict[int, PageReader] = field(default_factory=dict)
    viewed: dict[int, dict[int, PageBuffer]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PageRows:
    """The wanted rows of one page of one column."""

    column: Column
    page: int
    rows: Rows

    @property
    def place(self) -> str:
        """Name the page for an error message."""
        return f"column {self.column.name!r}, page {self.page}"

    @property
    def metadata(self) -> PageMetadata:
        """The page's metadata."""
        return self.column.metadata.pages[self.page]


def split_rows(column: Column, rows: Rows) -> list[PageRows]:
    """Cut file rows at page borders; pages without wanted rows are left out.

    A column without wanted rows (or without pages) yields nothing.
    """
    return [
        PageRows(column, page, mine) for page, mine in split_at(rows, column.metadata.page_ends)
    ]


def _located(exc: CorruptFileError, source: FileSource, part: PageRows) -> CorruptFileError:
    offsets = part.metadata.buffer_offsets
    return exc.located(source.path, offsets[0] if offsets else None, part.place)


def open_pages(source: FileSource, parts: Sequence[PageRows]) -> None:
    """Read the index buffers of all pages that are not open yet, in one go, and open them."""
    wanted = []
    for part in parts:
        if part.page in part.column.opened:
            continue
        layout, message = _layout_of(source, part)
        shape = PageShape(
            part.metadata.num_rows, part.metadata.buffer_sizes, part.column.file_version
        )
        try:
            numbers = layout.index_buffers(message, shape)
        except CorruptFileError as exc:
            raise _located(exc, source, part) from exc
        wanted.append((part, layout, message, shape, numbers))
    if not wanted:
        return
    ranges = [
        _buffer_range(part.metadata, number) for part, *_, numbers in wanted for number in numbers
    ]
    arrays = iter(source.arrays(ranges))
    for part, layout, message, shape, numbers in wanted:
        buffers = {number: next(arrays) for number in numbers}
        try:
            part.column.opened[part.page] = layout.open(message, shape, buffers, codecs)
        except CorruptFileError as exc:
            raise _located(exc, source, part) from exc
        except NotSupportedError as exc:
            exc.add_note(f"{source.path}, {part.place}")
            raise


def _layout_of(source: FileSource, part: PageRows) -> tuple[Layout, object]:
    try:
        message = part.metadata.layout()
    except DecodeError as exc:
        raise CorruptFileError(
            source.path, None, "a PageLayout message", "other bytes", part.place
        ) from exc
    except NotSupportedError as exc:
        exc.add_note(f"{source.path}, {part.place}")
        raise
    arm = message.WhichOneof("layout")
    if arm is None or arm not in LAYOUTS:
        raise NotSupportedError(f"{source.path}, {part.place}: page layout {arm!r} is not known")
    return layout_of(arm), getattr(message, arm)


def _buffer_range(page: PageMetadata, number: int) -> tuple[int, int]:
    start = page.buffer_offsets[number]
    return start, start + page.buffer_sizes[number]


def whole_buffers(source: FileSource, part: PageRows) -> dict[int, PageBuffer]:
    """View all buffers of a page of a mapped file, without counting what is read of them."""
    known = part.column.viewed.get(part.page)
    if known is not None:
        return known
    numbers = range(len(part.metadata.buffer_sizes))
    arrays = source.views([_buffer_range(part.metadata, number) for number in numbers])
    found = {number: PageBuffer(array) for number, array in enumerate(arrays)}
    part.column.viewed[part.page] = found
    return found


def fetch(
    source: FileSource, parts: Sequence[PageRows], spans: Sequence[Sequence[Span]]
) -> list[dict[int, PageBuffer]]:
    """Read the spans of all parts at once and hand each part its buffers."""
    ranges = []
    for part, wanted in zip(parts, spans, strict=True):
        for span in wanted:
            start = part.metadata.buffer_offsets[span.buffer]
            ranges.append((start + span.start, start + span.stop))
    arrays = iter(source.arrays(ranges))
    return [_buffers_of(wanted, [next(arrays) for _ in wanted]) for wanted in spans]


def _buffers_of(spans: Sequence[Span], arrays: Sequence[np.ndarray]) -> dict[int, PageBuffer]:
    buffers = {}
    for number in {span.buffer for span in spans}:
        mine = [(s.start, a) for s, a in zip(spans, arrays, strict=True) if s.buffer == number]
        sizes = np.array([array.size for _, array in mine], np.int64)
        starts = np.array([start for start, _ in mine], np.int64)
        data = mine[0][1] if len(mine) == 1 else np.concatenate([array for _, array in mine])
        buffers[number] = PageBuffer(data, starts, np.cumsum(sizes) - sizes)
    return buffers
