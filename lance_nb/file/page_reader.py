"""From wanted rows of a column to decoded pages: split by page, open, fetch, decode.

Two rounds of reading at most: index buffers (chunk tables, row indices, dictionaries) of pages that
are opened for the first time, then the bytes of the rows. Opened pages stay with their column.

Lists make small pages (some 60,000 items), and the cost of a page besides its bytes is the same for
all. So mini-block pages that lie one after the other in a mapped file, and are described alike, are
decoded as one run of up to ``RUN_VALUES`` values.

Limits: pages are joined only where their bytes are at hand without copying.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
from google.protobuf.message import DecodeError

from lance_nb.encodings.base import (
    DecodedPage,
    Layout,
    PageBuffer,
    PageReader,
    PageShape,
    Rows,
    Span,
)
from lance_nb.encodings.mini_block_page import MiniBlockPage
from lance_nb.encodings.registry import LAYOUTS, codecs, layout_of
from lance_nb.encodings.slicing import split_at
from lance_nb.errors import CorruptFileError, NotSupportedError, describe_bytes
from lance_nb.file.metadata import ColumnMetadata, PageMetadata
from lance_nb.file.source import FileSource
from lance_nb.storage.threads import cpu_count, run_side_by_side
from lance_nb.value_classes import dataclass

T = TypeVar("T")
Buffers: TypeAlias = dict[int, PageBuffer]
RUN_VALUES = 1 << 20
PARALLEL_BYTES = 1 << 22  # of all pages: below, threads cost more than they bring
PARALLEL_TASK_BYTES = (
    1 << 18
)  # of one task, on average: smaller ones wait for the interpreter's lock
_CHUNKS = 1  # the page buffer that holds them


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
    to_open = []
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
        to_open.append((part, layout, message, shape, numbers))
    if not to_open:
        return
    ranges = [
        _buffer_range(part.metadata, number) for part, *_, numbers in to_open for number in numbers
    ]
    arrays = iter(source.arrays(ranges))
    for part, layout, message, shape, numbers in to_open:
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
        actual = describe_bytes(part.metadata.encoding)
        raise CorruptFileError(
            source.path, None, "a PageLayout message", actual, part.place
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
    viewed = part.column.viewed.get(part.page)
    if viewed is not None:
        return viewed
    numbers = range(len(part.metadata.buffer_sizes))
    arrays = source.views([_buffer_range(part.metadata, number) for number in numbers])
    buffers = {number: PageBuffer(array) for number, array in enumerate(arrays)}
    part.column.viewed[part.page] = buffers
    return buffers


def fetch(
    source: FileSource, parts: Sequence[PageRows], spans: Sequence[Sequence[Span]]
) -> list[dict[int, PageBuffer]]:
    """Read the spans of all parts at once and hand each part its buffers."""
    ranges = []
    for part, page_spans in zip(parts, spans, strict=True):
        for span in page_spans:
            start = part.metadata.buffer_offsets[span.buffer]
            ranges.append((start + span.start, start + span.stop))
    arrays = iter(source.arrays(ranges))
    return [_buffers_of(page_spans, [next(arrays) for _ in page_spans]) for page_spans in spans]


def _buffers_of(spans: Sequence[Span], arrays: Sequence[np.ndarray]) -> dict[int, PageBuffer]:
    buffers = {}
    for number in {span.buffer for span in spans}:
        mine = [(s.start, a) for s, a in zip(spans, arrays, strict=True) if s.buffer == number]
        sizes = np.array([array.size for _, array in mine], np.int64)
        starts = np.array([start for start, _ in mine], np.int64)
        data = mine[0][1] if len(mine) == 1 else np.concatenate([array for _, array in mine])
        buffers[number] = PageBuffer(data, starts, np.cumsum(sizes) - sizes)
    return buffers


@dataclass(frozen=True, slots=True)
class PageRun:
    """ValuePlaces rows of one page, or of several that are joined. ``reader`` decodes them."""

    parts: tuple[PageRows, ...]
    reader: PageReader
    rows: Rows

    @property
    def place(self) -> str:
        """Name the pages for an error message."""
        if len(self.parts) == 1:
            return self.parts[0].place
        first, last = self.parts[0], self.parts[-1]
        return f"column {first.column.name!r}, pages {first.page} to {last.page}"

    @property
    def whole_bytes(self) -> int:
        """Bytes of the pages in the file."""
        if len(self.parts) == 1:
            return sum(self.parts[0].metadata.buffer_sizes)
        return sum(sum(part.metadata.buffer_sizes) for part in self.parts)

    @property
    def size_bytes(self) -> int:
        """Bytes of the pages in the file, the share of the wanted rows."""
        return self._share(self.whole_bytes)

    def _share(self, size_bytes: int) -> int:
        num_rows = sum([part.metadata.num_rows for part in self.parts])
        return size_bytes * self.rows.num_rows // max(num_rows, 1)

    @property
    def offset_bytes(self) -> int | None:
        """Where the first page begins in the file."""
        offsets = self.parts[0].metadata.buffer_offsets
        return offsets[0] if offsets else None

    def buffers(self, source: FileSource) -> dict[int, PageBuffer]:
        """View the bytes of the pages in a mapped file; the share of the wanted rows is counted."""
        only_part = self.parts[0] if len(self.parts) == 1 else None
        requests = len(only_part.metadata.buffer_sizes) if only_part else 1
        whole = self.whole_bytes
        source.count_view(whole, self._share(whole), requests)
        if only_part:
            return whole_buffers(source, only_part)
        last = self.parts[-1].metadata
        stop = last.buffer_offsets[_CHUNKS] + last.buffer_sizes[_CHUNKS]
        (data,) = source.views([(self.parts[0].metadata.buffer_offsets[_CHUNKS], stop)])
        return {_CHUNKS: PageBuffer(data)}


def decode_columns(
    source: FileSource,
    rows_of_columns: Sequence[Sequence[PageRows]],
    finish: Callable[[int, DecodedPage, int], T],
) -> list[list[T]]:
    """Decode the wanted rows of some columns, pages in order.

    ``finish`` makes the result of the number of a column, some decoded rows and their number; it
    may run in any thread.
    """
    open_pages(source, [part for mine in rows_of_columns for part in mine])
    if source.is_mapped and len(rows_of_columns) == 1 and len(rows_of_columns[0]) == 1:
        return [[_decode(source, _run(rows_of_columns[0]), None, partial(finish, 0))]]
    if source.is_mapped:
        runs = [join_runs(mine) for mine in rows_of_columns]
    else:
        runs = [[_run([part]) for part in mine] for mine in rows_of_columns]
    flat = [(number, run) for number, mine in enumerate(runs) for run in mine]
    fetched: Sequence[Buffers | None] = [None] * len(flat)
    if not source.is_mapped:
        spans = [run.reader.spans(run.rows) for _, run in flat]
        fetched = fetch(source, [run.parts[0] for _, run in flat], spans)
    tasks = [
        partial(_decode, source, run, buffers, partial(finish, number))
        for (number, run), buffers in zip(flat, fetched, strict=True)
    ]
    threads = threads_for(sum(run.size_bytes for _, run in flat), len(tasks))
    done = run_side_by_side(tasks, threads)
    return [[next(done) for _ in mine] for mine in runs]


def threads_for(size_bytes: int, num_tasks: int) -> int:
    """Choose how many threads decode so many bytes of pages in so many tasks.

    Small tasks spend their time in Python: 500 columns of 70 KB take 0.15 s in one thread and
    0.21 s in two.
    """
    least = max(PARALLEL_BYTES, num_tasks * PARALLEL_TASK_BYTES)
    return cpu_count() if num_tasks > 1 and size_bytes >= least else 1


def _decode(
    source: FileSource,
    run: PageRun,
    buffers: Buffers | None,
    finish: Callable[[DecodedPage, int], T],
) -> T:
    """Decode a run; errors say where it lies."""
    try:
        page = run.reader.decode(run.rows, buffers or run.buffers(source))
        return finish(page, run.rows.num_rows)
    except CorruptFileError as exc:
        raise exc.located(source.path, run.offset_bytes, run.place) from exc
    except NotSupportedError as exc:
        exc.add_note(f"{source.path}, {run.place}")
        raise


def join_runs(parts: Sequence[PageRows]) -> list[PageRun]:
    """Group the wanted rows of a column, in order; every page has been opened."""
    if len(parts) == 1:
        return [_run(parts)]
    runs: list[PageRun] = []
    waiting: list[PageRows] = []
    key: bytes | None = None
    room = 0
    for part in parts:
        reader = _joinable(part)
        mine = None if reader is None else reader.join_key
        fits = waiting and mine is not None and mine == key and room > 0
        if waiting and not (fits and _follows(waiting[-1], part)):
            runs.append(_run(waiting))
            waiting = []
        if not waiting:
            key, room = mine, RUN_VALUES
        waiting.append(part)
        room -= 0 if reader is None else reader.num_values
    if waiting:
        runs.append(_run(waiting))
    return runs


def _joinable(part: PageRows) -> MiniBlockPage | None:
    """Return the page's reader if its kind can be joined."""
    reader = part.column.opened[part.page]
    return reader if isinstance(reader, MiniBlockPage) else None


def _follows(before: PageRows, after: PageRows) -> bool:
    """Tell whether one page lies behind the other in the file."""
    first, second = before.metadata, after.metadata
    return first.buffer_offsets[_CHUNKS] < second.buffer_offsets[_CHUNKS]


def _run(parts: Sequence[PageRows]) -> PageRun:
    first = parts[0]
    reader = first.column.opened[first.page]
    if len(parts) == 1 or not isinstance(reader, MiniBlockPage):
        return PageRun((first,), reader, first.rows)
    begin = first.metadata.buffer_offsets[_CHUNKS]
    other_parts = []
    for part in parts[1:]:
        other = part.column.opened[part.page]
        if isinstance(other, MiniBlockPage):
            other_parts.append((other, part.metadata.buffer_offsets[_CHUNKS] - begin))
    joined = reader.joined(other_parts)
    return PageRun(tuple(parts), joined, _joined_rows(parts))


def _joined_rows(parts: Sequence[PageRows]) -> Rows:
    """Return the wanted rows of joined pages, counted through all of them."""
    counts = np.array([part.metadata.num_rows for part in parts], np.int64)
    firsts = np.cumsum(counts) - counts
    if sum(part.rows.num_rows for part in parts) == int(counts.sum()):
        return Rows(np.zeros(1, np.int64), counts.sum(keepdims=True))
    pairs = list(zip(parts, firsts, strict=True))
    return Rows(
        np.concatenate([part.rows.starts + first for part, first in pairs]),
        np.concatenate([part.rows.stops + first for part, first in pairs]),
    )
