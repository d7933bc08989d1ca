"""Rows of the chunks of mini-block pages: numbered by the repetition index, joined over pages.

Source: message MiniBlockLayout of lance.encodings21; verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import ChunkBuffer, Chunks, DataBlock, Ints, Rows, Span, corrupt
from lance_nb.encodings.chunk_table import ChunkTable, RowIndex
from lance_nb.encodings.slicing import expand_ranges

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PageParts:
    """The index buffers of a page, read: chunk table, repetition index, dictionary.

    ``page_chunks`` are the numbers of the chunks at which joined pages begin, but the first.
    """

    table: ChunkTable
    rows: RowIndex | None
    items: DataBlock | None
    page_chunks: Ints | None = None


@dataclass(frozen=True, slots=True)
class ValueRuns:
    """Values ``starts[i]..stops[i]`` belong to the i-th range of rows; ``total`` are there."""

    starts: Ints
    stops: Ints
    total: int


def chunks_of(table: ChunkTable, index: RowIndex | None, rows: Rows) -> Ints:
    """List the chunks that hold the rows, ascending, without repeats.

    At most one row goes on where a chunk ends, so a range of rows begins in the chunk in which the
    range before it ends, or in a later one.
    """
    if not rows.starts.size or not table.starts.size:
        return np.zeros(0, np.int64)
    started = table.value_ends if index is None else index.started
    ended = table.value_ends if index is None else index.ended
    first = started.searchsorted(rows.starts, side="right")
    last = ended.searchsorted(rows.stops - 1, side="right")
    if first.size == 1:
        return np.arange(int(first[0]), int(last[0]) + 1)
    chunks = expand_ranges(first, last + 1)
    keep = np.ones(chunks.size, bool)
    keep[1:] = np.diff(chunks) > 0
    return chunks[keep]


def runs_of(table: ChunkTable, chunks: Ints) -> Sequence[Span]:
    """Return the byte ranges of runs of neighbouring chunks, of which there is at least one."""
    breaks = np.flatnonzero(np.diff(chunks) != 1)
    firsts = chunks[np.concatenate(([0], breaks + 1))]
    lasts = chunks[np.concatenate((breaks, [chunks.size - 1]))]
    starts = table.starts[firsts]
    stops = table.starts[lasts] + table.sizes[lasts]
    return [Span(1, int(a), int(b)) for a, b in zip(starts, stops, strict=True)]


def no_chunks(num_buffers: int) -> Chunks:
    """Return no chunks, with so many value buffers each."""
    zero = np.zeros(0, np.int64)
    nothing = ChunkBuffer(np.zeros(0, np.uint8), zero, zero)
    return Chunks((nothing,) * num_buffers, zero)


def join_parts(
    pages: Sequence[PageParts], num_rows: Sequence[int], shifts: Sequence[int]
) -> PageParts:
    """Join the index buffers of pages; ``shifts`` are the bytes from the first chunks to theirs."""
    tables = [page.table for page in pages]
    starts = [table.starts + shift for table, shift in zip(tables, shifts, strict=True)]
    counts = np.concatenate([table.num_values for table in tables])
    sizes = np.concatenate([table.sizes for table in tables])
    table = ChunkTable(np.concatenate(starts), sizes, counts, np.cumsum(counts))
    chunk_ends = np.cumsum([table.starts.size for table in tables])
    rows = None
    if pages[0].rows is not None:
        row_ends = np.cumsum(num_rows)
        first = np.repeat(np.append(0, row_ends[:-1]), np.diff(chunk_ends, prepend=0))
        indices = [page.rows for page in pages if page.rows is not None]
        rows = RowIndex(
            np.concatenate([one.ended for one in indices]) + first,
            np.concatenate([one.started for one in indices]) + first,
        )
    return PageParts(table, rows, None, chunk_ends[:-1])


def check_joints(parts: PageParts, begins: Mask, num_levels: Ints) -> None:
    """Make sure that no page continues the last row of the page before it.

    ``begins`` marks the entries that begin a row. Raises CorruptFileError.
    """
    if parts.page_chunks is None:
        return
    firsts = np.cumsum(num_levels)[parts.page_chunks - 1]
    if not bool(begins[firsts[firsts < begins.size]].all()):
        raise corrupt("pages that begin with a new row", "one that continues a row")


def number_rows(index: RowIndex, chunks: Ints, begins: Mask, num_levels: Ints) -> Ints:
    """Return the page row of every decoded entry of some chunks (non-decreasing)."""
    if not begins.size:
        return np.zeros(0, np.int64)
    started = index.started
    before_chunk = np.where(chunks > 0, started[np.maximum(chunks - 1, 0)], 0)
    seen = np.cumsum(begins)
    chunk_first = np.cumsum(num_levels) - num_levels
    seen_before = np.where(chunk_first > 0, seen[np.maximum(chunk_first - 1, 0)], 0)
    rows: Ints = seen - 1
    rows += np.repeat(before_chunk - seen_before, num_levels)
    return rows


def flat_positions(table: ChunkTable, chunks: Ints, rows: Rows) -> Ints:
    """Return where each range of rows begins among the values of some chunks (no lists)."""
    counts = table.num_values[chunks]
    decoded_starts = np.cumsum(counts) - counts
    page_starts = table.value_ends[chunks] - counts
    chunk = page_starts.searchsorted(rows.starts, side="right") - 1
    positions: Ints = rows.starts - page_starts[chunk] + decoded_starts[chunk]
    return positions


def value_runs(starts: Ints, stops: Ints, visible: Mask | None, num_levels: int) -> ValueRuns:
    """Turn ranges of entries into ranges of values; entries not ``visible`` have no value."""
    if visible is None:
        return ValueRuns(starts, stops, num_levels)
    before = np.zeros(num_levels + 1, np.int64)
    np.cumsum(visible, out=before[1:])
    return ValueRuns(before[starts], before[stops], int(before[-1]))
