"""The chunks of mini-block pages: table, headers and rows, for reading and for writing.

Layout: see ``layouts/mini_block_layout``. Read are the chunk metadata words (buffer 0), the
repetition index (last buffer) and the header at the start of every chunk; from these follow the
chunks that hold some rows, and the values of these rows. ``assemble`` writes the same parts.

Limits: counts and sizes are checked against the page before anything is allocated from them. In
file version 2.1 a chunk is at most 32 KiB and its parts are at most 65,535 bytes; in 2.2 that bound
holds for levels only. ``assemble`` returns None for a page that does not fit, which is then stored
in another layout.
Source: message MiniBlockLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    VALUES_MAX,
    Bytes,
    ChunkBuffer,
    Chunks,
    DataBlock,
    FixedWidth,
    Ints,
    Levels,
    PageBuffer,
    PageShape,
    Rows,
    Span,
    SymbolTables,
    WholePage,
    corrupt,
)
from lance_nb.encodings.compress_base import PageLevels, Parts
from lance_nb.encodings.kernels import memory, ranges
from lance_nb.encodings.kernels.ranges import starts_of
from lance_nb.encodings.slicing import expand_ranges
from lance_nb.value_classes import dataclass

_WORD_LOG_BITS = 4
_WORD_LOG_MAX = (1 << _WORD_LOG_BITS) - 1
_CHUNK_ALIGNMENT = 8
_STRUCT_CODES = {"<u2": "H", "<u4": "I"}
Mask = npt.NDArray[np.bool_]
_U16_MAX = (1 << 16) - 1
_SIZE_SHIFT = 16  # bits of the levels before the size, in the header of a chunk
_U32_MAX = (1 << 32) - 1
_WORD_UNITS = {False: 1 << 12, True: 1 << 28}  # a chunk's size in units of 8 bytes


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """Where each chunk lies in buffer 1 and what it holds. ``value_ends`` is cumulative."""

    starts: Ints
    sizes: Ints
    num_values: Ints
    value_ends: Ints
    symbols: SymbolTables | None = None

    def part(self, chunks: Ints) -> ChunkTable:
        """Return the entries of some chunks, in any order, with repeats."""
        chosen_chunks: Ints | slice = chunks
        if chunks.size == 1:  # a view of each costs a third of a copy
            chosen_chunks = slice(int(chunks[0]), int(chunks[0]) + 1)
        return ChunkTable(
            self.starts[chosen_chunks],
            self.sizes[chosen_chunks],
            self.num_values[chosen_chunks],
            self.value_ends[chosen_chunks],
            None if self.symbols is None else self.symbols.part(chunks),
        )


@dataclass(frozen=True, slots=True)
class RowIndex:
    """For pages with repetition: rows that have ended, and started, by the end of each chunk."""

    ended: Ints
    started: Ints


@dataclass(frozen=True, slots=True)
class ParsedChunks:
    """Chunks taken apart: levels per chunk, the level buffers, and the value buffers."""

    num_levels: Ints
    rep: ChunkBuffer | None
    definition: ChunkBuffer | None
    values: Chunks


def read_chunk_table(
    layout: encodings21.MiniBlockLayout, shape: PageShape, words_bytes: Bytes
) -> ChunkTable:
    """Read the chunk metadata (buffer 0). Raises CorruptFileError."""
    width = 4 if layout.has_large_chunk else 2
    if words_bytes.size % width:
        raise corrupt(f"chunk metadata in {width}-byte words", f"{words_bytes.size} bytes")
    words = words_bytes.view(f"<u{width}").astype(np.int64)
    num_items = layout.num_items
    if not words.size:
        if num_items or shape.num_rows:
            raise corrupt(f"chunks for {num_items} values", "no chunk")
        empty = np.zeros(0, np.int64)
        return ChunkTable(empty, empty, empty, empty)
    sizes = ((words >> _WORD_LOG_BITS) + 1) * _CHUNK_ALIGNMENT
    counts = np.left_shift(1, words & _WORD_LOG_MAX)
    last_count = num_items - int(counts[:-1].sum())
    # The last word says 0, or what the chunk holds when that is a power of two (flat values).
    fits = not words[-1] & _WORD_LOG_MAX or last_count == int(counts[-1])
    if not 0 <= last_count <= VALUES_MAX or not fits:
        held = int(counts[:-1].sum())
        actual = f"{held} values before the last chunk, with word {int(words[-1])}"
        raise corrupt(f"chunks that hold {num_items} values", actual)
    counts[-1] = last_count
    ends = np.cumsum(sizes)
    if int(ends[-1]) > shape.buffer_sizes[1]:
        raise corrupt(f"{int(ends[-1])} bytes of chunks", f"{shape.buffer_sizes[1]} bytes")
    return ChunkTable(ends - sizes, sizes, counts, np.cumsum(counts))


def read_chunk_tables(
    large: bool, pages: Sequence[WholePage]
) -> tuple[ChunkTable, Ints, list[memoryview]]:
    """Read the chunk metadata of pages that are joined.

    Returns the table of all their chunks, the number of the chunk at which each page ends, and the
    chunks of each page without the bytes behind them. Raises CorruptFileError.
    """
    width = 4 if large else 2
    raw = b"".join([page.buffers[0] for page in pages])
    lengths = np.array([len(page.buffers[0]) for page in pages], np.int64)
    if bool((lengths % width).any()) or not bool(lengths.all()):
        wrong = int(((lengths % width != 0) | (lengths == 0)).argmax())
        actual = f"{int(lengths[wrong])} bytes on page {wrong} of those that were read"
        raise corrupt(f"chunk metadata in {width}-byte words", actual)
    words = np.frombuffer(raw, f"<u{width}").astype(np.int64)
    ends = np.cumsum(lengths // width)
    first, last = ends - lengths // width, ends - 1
    sizes = ((words >> _WORD_LOG_BITS) + 1) * _CHUNK_ALIGNMENT
    counts = np.left_shift(1, words & _WORD_LOG_MAX)
    num_items = np.array([page.layout.num_items for page in pages], np.uint64).view(np.int64)
    last_counts = num_items - np.add.reduceat(counts, first) + counts[last]
    fits = (words[last] & _WORD_LOG_MAX == 0) | (last_counts == counts[last])
    holds = fits & (last_counts >= 0) & (last_counts <= VALUES_MAX)
    if not bool(holds.all()):
        page_number = int(holds.argmin())
        held = int(num_items[page_number] - last_counts[page_number])
        actual = f"{held} before the last chunk, with word {int(words[last[page_number]])}"
        raise corrupt(f"chunks that hold {pages[page_number].layout.num_items} values", actual)
    counts[last] = last_counts
    stops = np.cumsum(sizes)
    symbols = symbols_of_pages([page.layout for page in pages], ends - first)
    table = ChunkTable(stops - sizes, sizes, counts, np.cumsum(counts), symbols)
    chunks = []
    for page, size in zip(pages, np.add.reduceat(sizes, first).tolist(), strict=True):
        if size > len(page.buffers[1]):
            raise corrupt(f"{size} bytes of chunks", f"{len(page.buffers[1])} bytes")
        chunks.append(page.buffers[1][:size])
    return table, ends, chunks


def read_row_indices(pages: Sequence[WholePage], chunk_ends: Ints) -> RowIndex:
    """Read the repetition indices of pages that are joined. Raises CorruptFileError."""
    lengths = np.array([len(page.buffers[-1]) for page in pages], np.int64)
    if not np.array_equal(np.cumsum(lengths), 16 * chunk_ends):
        expected = f"repetition indices of 16 bytes for each of {int(chunk_ends[-1])} chunks"
        raise corrupt(expected, f"{int(lengths.sum())} bytes on {lengths.size} pages")
    pairs = np.frombuffer(b"".join([page.buffers[-1] for page in pages]), "<u8").reshape(-1, 2)
    row_ends = np.cumsum(np.array([page.num_rows for page in pages], np.int64))
    if int(pairs.max()) > max(int(row_ends[-1]), 1 << 32):
        raise corrupt(f"a repetition index of {int(row_ends[-1])} rows", f"{int(pairs.max())}")
    ends = np.cumsum(pairs[:, 0].astype(np.int64))
    if not np.array_equal(ends[chunk_ends - 1], row_ends):
        differs = int((ends[chunk_ends - 1] != row_ends).argmax())
        actual = f"row {int(ends[chunk_ends[differs] - 1])}"
        raise corrupt(f"a repetition index that ends at row {int(row_ends[differs])}", actual)
    return RowIndex(ends, _within_pages(ends, ends + (pairs[:, 1] > 0), chunk_ends))


def _within_pages(ended: Ints, started: Ints, chunk_ends: Ints) -> Ints:
    """Return the rows that have started by the end of each chunk: none goes on behind a page."""
    last = chunk_ends - 1
    started[last] = ended[last]
    return started


def read_row_index(index: Bytes, num_chunks: int, num_rows: int) -> RowIndex:
    """Read the repetition index (last buffer). Raises CorruptFileError."""
    if index.size != 16 * num_chunks:
        raise corrupt(f"a repetition index of {16 * num_chunks} bytes", f"{index.size} bytes")
    pairs = index.view("<u8").reshape(-1, 2)
    if pairs.size and int(pairs.max()) > max(num_rows, 1 << 32):
        raise corrupt(f"a repetition index of {num_rows} rows", f"{int(pairs.max())}")
    ends = np.cumsum(pairs[:, 0].astype(np.int64))
    if num_chunks and int(ends[-1]) != num_rows:
        raise corrupt(f"a repetition index of {num_rows} rows", f"{int(ends[-1])} rows")
    return RowIndex(ends, ends + (pairs[:, 1] > 0))


def parse_chunks(
    layout: encodings21.MiniBlockLayout, table: ChunkTable, buffer: PageBuffer
) -> ParsedChunks:
    """Read the headers of the chunks, all at once, and locate levels and value buffers."""
    data = buffer.data
    starts = buffer.locate(table.starts)
    if starts.size == 1:
        return _parse_chunk(layout, table, data, int(starts[0]))
    ends = starts + table.sizes
    if int(ends.max()) > data.size:
        raise corrupt(f"{int(ends.max())} bytes of chunks", f"{data.size} bytes")
    header, least, _ = _header_type(layout)
    if int(table.sizes.min()) < least:  # sizes are whole words, as the padded header is
        raise corrupt(f"chunks of at least {least} bytes", f"{int(table.sizes.min())} bytes")
    raw = np.ascontiguousarray(ranges.rows(data, starts, header.itemsize))
    heads = raw.view(header).ravel()
    position = starts + header.itemsize
    parts: list[ChunkBuffer] = []
    for name in (header.names or ())[1:]:
        sizes = heads[name].astype(np.int64)
        parts.append(ChunkBuffer(data, position, sizes))
        is_outside = position + sizes > ends
        if bool(is_outside.any()):
            wrong = int(is_outside.argmax())
            room = int(ends[wrong] - position[wrong])
            raise corrupt(f"a part {name!r} within {room} bytes", f"{int(sizes[wrong])} bytes")
        position = position + _pad8(sizes)
    return _parsed(layout, table, parts, heads["levels"].astype(np.int64))


def _parse_chunk(
    layout: encodings21.MiniBlockLayout, table: ChunkTable, data: Bytes, start: int
) -> ParsedChunks:
    """Read the header of a single chunk: the first rows of a page need no more."""
    end = start + int(table.sizes[0])
    if end > data.size:
        raise corrupt(f"{end} bytes of chunks", f"{data.size} bytes")
    header, least, words = _header_type(layout)
    if end - start < least:
        raise corrupt(f"chunks of at least {least} bytes", f"{end - start} bytes")
    numbers = list(words.unpack_from(data.data, start))  # the levels, then the size of each part
    position = start + header.itemsize
    for size in numbers[1:]:
        if position + size > end:
            raise corrupt(f"a chunk part within {end - position} bytes", f"{size} bytes")
        numbers.append(position)
        position += size + 7 & ~7
    array = np.array(numbers)
    count = len(numbers) // 2
    parts = [
        ChunkBuffer(data, array[number + count : number + count + 1], array[number : number + 1])
        for number in range(1, count + 1)
    ]
    return _parsed(layout, table, parts, array[:1])


def _parsed(
    layout: encodings21.MiniBlockLayout,
    table: ChunkTable,
    parts: Iterable[ChunkBuffer],
    levels: Ints,
) -> ParsedChunks:
    parts_left = iter(parts)
    rep = next(parts_left) if layout.HasField("rep_compression") else None
    definition = next(parts_left) if layout.HasField("def_compression") else None
    counts = table.num_values
    flat = not layout.repetition_index_depth and (rep is not None or definition is not None)
    if flat and not np.array_equal(levels, counts):
        wrong = int((levels != counts).argmax())
        raise corrupt(f"{int(counts[wrong])} levels in a chunk", f"{int(levels[wrong])}")
    return ParsedChunks(levels, rep, definition, Chunks(tuple(parts_left), counts, table.symbols))


def _header_type(
    layout: encodings21.MiniBlockLayout,
) -> tuple[np.dtype[np.void], int, struct.Struct]:
    """Return the header padded to whole words, its bytes without padding, and its numbers."""
    return _header_of(
        layout.HasField("rep_compression"),
        layout.HasField("def_compression"),
        layout.num_buffers,
        "<u4" if layout.has_large_chunk else "<u2",
    )


@lru_cache(maxsize=64)
def _header_of(
    has_rep: bool, has_def: bool, num_buffers: int, width: str
) -> tuple[np.dtype[np.void], int, struct.Struct]:
    fields = [("levels", "<u2")]
    fields += [("rep", "<u2")] * has_rep
    fields += [("def", "<u2")] * has_def
    fields += [(f"value{k}", width) for k in range(num_buffers)]
    exact = np.dtype(fields)
    names, formats = zip(*fields, strict=True)
    padded = -(-exact.itemsize // _CHUNK_ALIGNMENT) * _CHUNK_ALIGNMENT
    numbers = struct.Struct("<" + "".join(_STRUCT_CODES[kind] for kind in formats))
    padding = np.dtype({"names": names, "formats": formats, "itemsize": padded})
    return padding, exact.itemsize, numbers


def _pad8(sizes: Ints) -> Ints:
    return (sizes + 7) & ~np.int64(7)


@dataclass(frozen=True, slots=True)
class PageItems:
    """The dictionaries of joined pages, which lie end to end: items and values of each page."""

    num_items: Ints
    num_values: Ints

    def shifted(self, indices: FixedWidth) -> FixedWidth:
        """Turn indices into the dictionary of their page into indices into all dictionaries.

        An index that its page does not have becomes one that no page has, which is refused where
        its value is not null.
        """
        if indices.bits_per_value not in (8, 16, 32, 64):
            raise corrupt("dictionary indices of whole bytes", f"{indices.bits_per_value} bits")
        own = indices.data.view(f"<u{indices.bits_per_value // 8}")
        ends = np.cumsum(self.num_items)
        first = np.repeat((ends - self.num_items).astype(np.uint32), self.num_values)
        most = np.repeat(self.num_items.astype(np.uint32), self.num_values)
        shifted_indices = np.where(own < most, own.astype(np.uint32) + first, np.uint32(_U32_MAX))
        return FixedWidth(32, indices.num_values, shifted_indices.view(np.uint8))


@dataclass(frozen=True, slots=True)
class PageParts:
    """The index buffers of a page, read: chunk table, repetition index, dictionary.

    ``page_chunks`` are the numbers of the chunks at which joined pages begin, but the first;
    ``page_items`` tell whose dictionary is which, where joined pages have some.
    """

    table: ChunkTable
    rows: RowIndex | None
    items: DataBlock | None
    page_chunks: Ints | None = None
    page_items: PageItems | None = None


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
    if rows.stops.size == 1 and int(rows.stops[0]) <= int(ended[0]):
        return np.zeros(1, np.int64)  # the first rows of a page, as a preview asks for them
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


def symbols_of_pages(
    layouts: Sequence[encodings21.MiniBlockLayout], num_chunks: Ints
) -> SymbolTables | None:
    """Return the symbol tables of joined pages, None if they have none or share one."""
    if layouts[0].value_compression.WhichOneof("compression") != "fsst":
        return None
    tables = tuple(layout.value_compression.fsst.symbol_table for layout in layouts)
    if tables.count(tables[0]) == len(tables):
        return None
    return SymbolTables(tables, np.repeat(np.arange(len(tables)), num_chunks))


def join_parts(
    pages: Sequence[PageParts],
    layouts: Sequence[encodings21.MiniBlockLayout],
    num_rows: Sequence[int],
    shifts: Sequence[int],
) -> PageParts:
    """Join the index buffers of pages; ``shifts`` are the bytes from the first chunks to theirs."""
    tables = [page.table for page in pages]
    starts = [table.starts + shift for table, shift in zip(tables, shifts, strict=True)]
    counts = np.concatenate([table.num_values for table in tables])
    sizes = np.concatenate([table.sizes for table in tables])
    num_chunks = np.array([table.starts.size for table in tables], np.int64)
    symbols = symbols_of_pages(layouts, num_chunks)
    table = ChunkTable(np.concatenate(starts), sizes, counts, np.cumsum(counts), symbols)
    chunk_ends = np.cumsum(num_chunks)
    rows = None
    if pages[0].rows is not None:
        row_ends = np.cumsum(num_rows)
        first = np.repeat(np.append(0, row_ends[:-1]), np.diff(chunk_ends, prepend=0))
        indices = [page.rows for page in pages if page.rows is not None]
        ended = np.concatenate([index.ended for index in indices]) + first
        started = np.concatenate([index.started for index in indices]) + first
        rows = RowIndex(ended, _within_pages(ended, started, chunk_ends))
    return PageParts(table, rows, None, chunk_ends[:-1])


def check_joints(
    parts: PageParts, begins: Mask, num_levels: Ints, chunks: Ints | None = None
) -> None:
    """Make sure that no page continues the last row of the page before it.

    ``begins`` marks the entries that begin a row, in some ``chunks`` or in all. Raises
    CorruptFileError.
    """
    if parts.page_chunks is None:
        return
    ends = np.cumsum(num_levels)
    if chunks is None:
        firsts = ends[parts.page_chunks - 1]
    else:
        firsts = (ends - num_levels)[np.isin(chunks, parts.page_chunks)]
    is_start = begins[firsts[firsts < begins.size]]
    if not bool(is_start.all()):
        actual = f"entry {int(firsts[is_start.argmin()])}, which continues a row"
        raise corrupt("pages that begin with a new row", actual)


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
    if chunks.size == 1:
        only = int(chunks[0])
        first = int(table.value_ends[only]) - int(table.num_values[only])
        return rows.starts - first
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


@dataclass(frozen=True, slots=True)
class LevelCuts:
    """Which entries belong to each chunk: chunk ``i`` has ``[ends[i - 1], ends[i])``."""

    starts: Ints
    ends: Ints

    @property
    def counts(self) -> Ints:
        """Entries of each chunk."""
        return self.ends - self.starts


def cut_levels(levels: PageLevels, num_values: Ints) -> LevelCuts:
    """Cut after the last value of each chunk; the last chunk takes all trailing entries."""
    ends = np.cumsum(num_values)
    visible = levels.visible
    if visible is not None:
        # The place before the first value counts as -1: no value, no entry.
        positions = np.concatenate((np.full(1, -1), np.flatnonzero(visible)))
        ends = positions[ends] + 1
    ends[-1] = levels.num_entries
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    return LevelCuts(starts, ends)


def row_index(repetition: Levels, cuts: LevelCuts) -> Bytes:
    """Return two u64 per chunk: rows that end in it, and entries after the last row end."""
    top = int(repetition.max()) if repetition.size else 0
    begins = np.flatnonzero(repetition == top)
    low = np.searchsorted(begins, cuts.starts, side="left")
    high = np.searchsorted(begins, cuts.ends, side="left")
    starts_row = repetition[np.minimum(cuts.starts, repetition.size - 1)] == top
    ended = high - low - starts_row
    last_begin = begins[np.maximum(high, 1) - 1]
    leftover = np.where(high > low, cuts.ends - last_begin, cuts.counts)
    # What looks left over was a whole row after all when the next chunk begins with a new one.
    whole = np.append(starts_row[1:], True) & (leftover > 0)
    ended += whole
    leftover[whole] = 0
    pairs = np.stack((ended, leftover), axis=1).astype("<u8")
    return pairs.ravel().view(np.uint8)


def assemble(
    levels: tuple[Parts, ...], level_counts: Ints | None, values: tuple[Parts, ...], large: bool
) -> tuple[Bytes, Ints] | None:
    """Return the chunks back to back and the size of each; None when a chunk is too large.

    ``levels`` are the compressed repetition and definition levels, as far as there are any.
    """
    if not levels and len(values) == 1 and len(values[0].parts) == 1:
        return _assemble_plain(values[0].parts[0], large)
    num_chunks = values[0].parts[0].sizes.size
    head_type = _record_type(len(levels), len(values), large)
    heads = np.zeros(num_chunks, head_type)
    if level_counts is not None:
        if int(level_counts.max()) > _U16_MAX:
            return None
        heads["levels"] = level_counts
    positions = np.full(num_chunks, head_type.itemsize, np.int64)
    placed: list[tuple[Parts, Ints]] = []
    ends: list[Ints] = []
    for number, buffer in enumerate((*levels, *values)):
        sizes = buffer.sizes
        if (number < len(levels) or not large) and int(sizes.max()) > _U16_MAX:
            return None
        heads[f"size{number}"] = sizes
        placed.append((buffer, positions))
        positions = positions + _pad8(sizes)
        ends.append(positions)
    if int(positions.max()) // 8 > _WORD_UNITS[large]:
        return None
    starts = starts_of(positions)
    out = memory.allocate(int(starts[-1]))
    for stop in ends:
        ranges.clear_padding(out, starts[:-1] + stop)
    _write(out, starts[:-1], heads, placed)
    return out, positions


def _assemble_plain(part: ChunkBuffer, large: bool) -> tuple[Bytes, Ints] | None:
    """Assemble chunks of one buffer and no levels, whose headers are one word of 8 bytes.

    Nothing is copied if the codec has placed the chunks already, with room for headers.
    """
    sizes = part.sizes
    most = int(np.maximum.reduce(sizes))
    padded = _pad8(sizes) + _CHUNK_ALIGNMENT
    if (most > _U16_MAX and not large) or _padded_size(most) // 8 > _WORD_UNITS[large]:
        return None
    starts = starts_of(padded)
    total = int(starts[-1])
    starts = starts[:-1]
    places = starts + _CHUNK_ALIGNMENT
    out = part.data
    if (
        part.spare_bytes != _CHUNK_ALIGNMENT
        or out.size != total
        or not np.array_equal(part.starts, places)
    ):
        out = memory.allocate(total)
        if np.bitwise_or.reduce(sizes) & (_CHUNK_ALIGNMENT - 1):
            ranges.clear_padding(out, starts + padded)
        ranges.scatter(part.data, part.starts, sizes, out, places)
    out.view("<i8")[starts // _CHUNK_ALIGNMENT] = sizes << _SIZE_SHIFT  # behind u16 levels, 0
    return out, padded


def _padded_size(size: int) -> int:
    return _CHUNK_ALIGNMENT + (size + 7 & ~7)


def _write(
    out: Bytes, starts: Ints, heads: npt.NDArray[np.void], placed: list[tuple[Parts, Ints]]
) -> None:
    head_bytes = heads.view(np.uint8)
    size = heads.dtype.itemsize
    count = heads.size
    ranges.scatter(head_bytes, np.arange(count) * size, np.full(count, size), out, starts)
    for buffer, position in placed:
        places = starts + position
        for part in buffer.parts:
            ranges.scatter(part.data, part.starts, part.sizes, out, places)
            places = places + part.sizes


def chunk_words(sizes: Ints, num_values: Ints, large: bool) -> Bytes:
    """Return the chunk metadata: size and log2 of the values of each chunk, 0 for the last one."""
    logs = np.frexp(num_values)[1] - 1
    logs[-1] = 0
    words = (sizes // 8 - 1) << 4 | logs
    narrow: Bytes = words.astype("<u4" if large else "<u2").view(np.uint8)
    return narrow


@lru_cache(maxsize=64)
def _record_type(num_levels: int, num_buffers: int, large: bool) -> np.dtype[np.void]:
    """Return the record of a chunk header, padded to 8 bytes."""
    wide = "<u4" if large else "<u2"
    kinds = ["<u2"] * (1 + num_levels) + [wide] * num_buffers
    names = ["levels", *(f"size{number}" for number in range(num_levels + num_buffers))]
    offsets = starts_of(np.array([np.dtype(kind).itemsize for kind in kinds]))
    return np.dtype(
        {
            "names": names,
            "formats": kinds,
            "offsets": offsets[:-1].tolist(),
            "itemsize": int(_pad8(offsets[-1])),
        }
    )
