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

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    VALUES_MAX,
    Bytes,
    ChunkBuffer,
    Chunks,
    DataBlock,
    Dictionary,
    FixedWidth,
    Ints,
    Levels,
    PageBuffer,
    Rows,
    Span,
    SymbolTables,
    corrupt,
)
from lance_nb.encodings.compress_base import (
    CompressedChunks,
    Compressors,
    EncodedPage,
    LeafPage,
    PageLevels,
    Parts,
)
from lance_nb.encodings.kernels import memory, ranges
from lance_nb.encodings.kernels.ranges import starts_of
from lance_nb.encodings.slicing import expand_ranges
from lance_nb.value_classes import dataclass

_WORD_LOG_BITS = 4
_WORD_LOG_MAX = (1 << _WORD_LOG_BITS) - 1
_CHUNK_ALIGNMENT = 8
Mask = npt.NDArray[np.bool_]
_U16_MAX = (1 << 16) - 1
_SIZE_SHIFT = 16  # bits of the levels before the size, in the header of a chunk
_U32_MAX = (1 << 32) - 1
_WORD_UNITS = {False: 1 << 12, True: 1 << 28}  # a chunk's size in units of 8 bytes


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """Where each chunk lies in buffer 1 and what it holds. ``value_ends`` is cumulative.

    ``symbols`` and ``pages`` as in ``Chunks``.
    """

    starts: Ints
    sizes: Ints
    num_values: Ints
    value_ends: Ints
    symbols: SymbolTables | None = None
    pages: Ints | None = None

    def part(self, chunks: Ints) -> ChunkTable:
        """Return the entries of some chunks, in any order, with repeats."""
        chosen_chunks: Ints | slice = chunks
        if chunks.size == 1:  # a view of each costs a third of a copy
            chosen_chunks = slice(int(chunks[0]), int(chunks[0]) + 1)
        return ChunkTable(
            self.starts[chosen_chunks],
            self.sizes[chosen_chunks],
            self.num_values[chosen_chunks],
            value_ends=self.value_ends[chosen_chunks],
            symbols=None if self.symbols is None else self.symbols.part(chunks),
            pages=None if self.pages is None else self.pages[chunks],
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


_NONE: Ints = np.zeros(0, np.int64)
NO_CHUNKS = ChunkTable(_NONE, _NONE, _NONE, _NONE)
NO_ROWS = RowIndex(_NONE, _NONE)


def read_chunk_table(
    layouts: Sequence[encodings21.MiniBlockLayout],
    metadata: Sequence[memoryview],
    chunk_bytes: Sequence[int],
) -> tuple[ChunkTable, Ints]:
    """Read the chunk metadata (buffer 0) of pages that are opened as one.

    ``chunk_bytes`` are the bytes in the buffer 1 of each page. Returns the table of all chunks,
    which lie back to back, and the number of the chunk at which each page ends. Raises
    CorruptFileError.
    """
    width = 4 if layouts[0].has_large_chunk else 2
    for page_words in metadata:
        if not len(page_words) or len(page_words) % width:
            raise corrupt(f"chunk metadata in {width}-byte words", f"{len(page_words)} bytes")
    raw = metadata[0] if len(metadata) == 1 else b"".join(metadata)
    words = np.frombuffer(raw, f"<u{width}").astype(np.int64)
    page_ends = list(accumulate(len(page_words) // width for page_words in metadata))
    page_starts = [0, *page_ends[:-1]]
    sizes = ((words >> _WORD_LOG_BITS) + 1) * _CHUNK_ALIGNMENT
    stops = np.cumsum(sizes)
    counts = np.left_shift(1, words & _WORD_LOG_MAX)
    sums = np.add.reduceat(counts, page_starts).tolist()
    before = 0
    for layout, end, num_values, room in zip(layouts, page_ends, sums, chunk_bytes, strict=True):
        last = int(counts[end - 1])
        last_count = layout.num_items - num_values + last
        # The last word says 0, or what the chunk holds when that is a power of two (flat values).
        if not 0 <= last_count <= VALUES_MAX or last not in {1, last_count}:
            word = int(words[end - 1])
            actual = f"{num_values - last} values before the last chunk, with word {word}"
            raise corrupt(f"chunks that hold {layout.num_items} values", actual)
        counts[end - 1] = last_count
        stop = int(stops[end - 1])
        if stop - before > room:
            raise corrupt(f"{stop - before} bytes of chunks", f"{room} bytes")
        before = stop
    ends = np.array(page_ends)
    symbols = symbols_of_pages(layouts, np.diff(ends, prepend=0)) if len(layouts) > 1 else None
    return ChunkTable(
        stops - sizes, sizes, counts, value_ends=np.cumsum(counts), symbols=symbols
    ), ends


def read_row_index(
    indices: Sequence[memoryview], num_rows: Sequence[int], chunk_ends: Ints
) -> RowIndex:
    """Read the repetition indices (last buffers) of pages that are opened as one.

    Raises CorruptFileError.
    """
    lengths = np.array([len(index) for index in indices], np.int64)
    if not np.array_equal(np.cumsum(lengths), 16 * chunk_ends):
        expected = f"a repetition index of 16 bytes for each of {int(chunk_ends[-1])} chunks"
        raise corrupt(expected, f"{int(lengths.sum())} bytes (pages: {lengths.size})")
    pairs = np.frombuffer(b"".join(indices), "<u8").reshape(-1, 2)
    row_ends = np.cumsum(num_rows)
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


def parse_chunks(
    layout: encodings21.MiniBlockLayout, table: ChunkTable, buffer: PageBuffer
) -> ParsedChunks:
    """Read the headers of the chunks, all at once, and locate levels and value buffers."""
    data, counts = buffer.data, table.num_values
    starts = buffer.locate(table.starts)
    ends = starts + table.sizes
    last, smallest = int(np.maximum.reduce(ends)), int(np.minimum.reduce(table.sizes))
    if last > data.size:
        raise corrupt(f"{last} bytes of chunks", f"{data.size} bytes")
    has_rep, has_def = layout.HasField("rep_compression"), layout.HasField("def_compression")
    header, least = _header_type(has_rep, has_def, layout.num_buffers, layout.has_large_chunk)
    if smallest < least:  # sizes are whole words, as the padded header is
        raise corrupt(f"chunks of at least {least} bytes", f"{smallest} bytes")
    if starts.size == 1:  # the first rows of a page need no more
        heads = np.frombuffer(data, header, 1, int(starts[0]))
    else:
        rows = ranges.rows(data, starts, header.itemsize)
        heads = np.ascontiguousarray(rows).view(header).ravel()
    num_levels = heads["levels"].astype(np.int64)
    if (has_rep or has_def) and not layout.repetition_index_depth:
        differs = num_levels != counts
        if np.logical_or.reduce(differs):
            wrong = int(differs.argmax())
            raise corrupt(f"{int(counts[wrong])} levels in a chunk", f"{int(num_levels[wrong])}")
    position, sizes = starts + header.itemsize, None
    parts: list[ChunkBuffer] = []
    for name in (header.names or ())[1:]:
        if sizes is not None:
            position = position + _pad8(sizes)
        sizes = heads[name].astype(np.int64)
        is_outside = position + sizes > ends
        if np.logical_or.reduce(is_outside):
            wrong = int(is_outside.argmax())
            room = int(ends[wrong] - position[wrong])
            raise corrupt(f"a chunk part within {room} bytes", f"{int(sizes[wrong])} bytes")
        parts.append(ChunkBuffer(data, position, sizes))
    rep = parts.pop(0) if has_rep else None
    definition = parts.pop(0) if has_def else None
    return ParsedChunks(
        num_levels, rep, definition, Chunks(tuple(parts), counts, table.symbols, table.pages)
    )


@lru_cache(maxsize=64)
def _header_type(
    has_rep: bool, has_def: bool, num_buffers: int, large: bool
) -> tuple[np.dtype[np.void], int]:
    """Return the header of a chunk, padded to whole words, and its bytes without padding."""
    names = ["levels", *["rep"] * has_rep, *["def"] * has_def]
    kinds = ["<u2"] * len(names) + ["<u4" if large else "<u2"] * num_buffers
    names += [f"value{number}" for number in range(num_buffers)]
    num_bytes = sum(np.dtype(kind).itemsize for kind in kinds)
    padded = num_bytes + 7 & ~7
    return np.dtype({"names": names, "formats": kinds, "itemsize": padded}), num_bytes


def _pad8(sizes: Ints) -> Ints:
    return (sizes + 7) & ~np.int64(7)


@dataclass(frozen=True, slots=True)
class PageItems:
    """The dictionaries of joined pages, which lie end to end: items of each page."""

    num_items: Ints

    def shifted(self, indices: FixedWidth, pages: Ints) -> FixedWidth:
        """Turn indices into the dictionary of their page into indices into all dictionaries.

        ``pages`` are those of the indices. An index that its page does not have becomes one that no
        page has, which is refused where its value is not null.
        """
        if indices.bits_per_value not in (8, 16, 32, 64):
            raise corrupt("dictionary indices of whole bytes", f"{indices.bits_per_value} bits")
        own = indices.data.view(f"<u{indices.bits_per_value // 8}")
        ends = np.cumsum(self.num_items)
        first = (ends - self.num_items).astype(np.uint32)[pages]
        most = self.num_items.astype(np.uint32)[pages]
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
    nothing = ChunkBuffer(np.zeros(0, np.uint8), _NONE, _NONE)
    return Chunks((nothing,) * num_buffers, _NONE)


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
    table = ChunkTable(
        np.concatenate(starts), sizes, counts, value_ends=np.cumsum(counts), symbols=symbols
    )
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


def encode_chunks(
    page: LeafPage,
    values: CompressedChunks,
    dictionary: Dictionary | None,
    compressors: Compressors,
) -> EncodedPage | None:
    """Put compressed values, levels and dictionary together; None if a chunk is too large."""
    levels, options = page.levels, page.options
    message = encodings21.MiniBlockLayout(
        value_compression=values.encoding,
        layers=levels.layer_enums,
        num_buffers=len(values.buffers),
        repetition_index_depth=int(levels.repetition is not None),
        num_items=page.measured.num_values,
        has_large_chunk=options.has_large_chunks,
    )
    has_levels = levels.repetition is not None or levels.definition is not None
    cuts = cut_levels(levels, values.num_values) if has_levels else None
    blocks: list[Parts] = []
    for name, level_values in (("rep", levels.repetition), ("def", levels.definition)):
        if level_values is None or cuts is None:
            continue
        block = FixedWidth(16, level_values.size, level_values.view(np.uint8))
        compressed = compressors.compress_blocks(block, cuts.counts, options.for_levels)
        getattr(message, f"{name}_compression").CopyFrom(compressed.encoding)
        blocks.append(compressed.blocks)
    counts = None if cuts is None else cuts.counts
    assembled = assemble(tuple(blocks), counts, values.buffers, options.has_large_chunks)
    if assembled is None:
        return None
    chunks, sizes = assembled
    buffers = [chunk_words(sizes, values.num_values, options.has_large_chunks), chunks]
    if dictionary is not None:
        items, count = dictionary.items, dictionary.items.num_values
        whole = compressors.compress_blocks(items, np.array([count]), options.for_dictionary)
        message.dictionary.CopyFrom(whole.encoding)
        message.num_dictionary_items = count
        joined = whole.blocks.joined()
        first, size = int(joined.starts[0]), int(joined.sizes[0])
        buffers.append(joined.data[first : first + size])
    if levels.repetition is not None and cuts is not None:
        buffers.append(row_index(levels.repetition, cuts))
    layout = encodings21.PageLayout(mini_block_layout=message)
    return EncodedPage(layout, tuple(buffers), levels.num_rows)


def assemble(
    levels: tuple[Parts, ...], level_counts: Ints | None, values: tuple[Parts, ...], large: bool
) -> tuple[Bytes, Ints] | None:
    """Return the chunks back to back and the size of each; None when a chunk is too large.

    ``levels`` are the compressed repetition and definition levels, as far as there are any.
    """
    if not levels and len(values) == 1 and len(values[0].parts) == 1:
        return _assemble_plain(values[0].parts[0], large)
    num_chunks = values[0].parts[0].sizes.size
    head_type, _ = _header_type(len(levels) == 2, bool(levels), len(values), large)
    heads = np.zeros(num_chunks, head_type)
    if level_counts is not None:
        if int(level_counts.max()) > _U16_MAX:
            return None
        heads["levels"] = level_counts
    positions = np.full(num_chunks, head_type.itemsize, np.int64)
    placed: list[tuple[Parts, Ints]] = []
    ends: list[Ints] = []
    names = (head_type.names or ())[1:]
    for number, (name, buffer) in enumerate(zip(names, (*levels, *values), strict=True)):
        sizes = buffer.sizes
        if (number < len(levels) or not large) and int(sizes.max()) > _U16_MAX:
            return None
        heads[name] = sizes
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
    units = 1 + (most + 7) // 8  # with the header
    if (most > _U16_MAX and not large) or units > _WORD_UNITS[large]:
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
