"""Mini-block pages: small values in chunks of a few KiB, levels and values side by side.

Layout (page buffers)::

    0  chunk metadata   one word per chunk: ((chunk bytes / 8 - 1) << 4) | log2(values)
                        u16 in file version 2.1, u32 in 2.2 (``has_large_chunk``)
    1  chunks           u16 num_levels, [u16 rep bytes], [u16 def bytes], u16 | u32 bytes per value
                        buffer; rep; def; value buffers; every part padded to 8 bytes
    2  dictionary       only when ``dictionary`` is set, block-compressed
    -  repetition index only when ``repetition_index_depth`` is 1, always last: two u64 per chunk,
                        rows that end in the chunk and levels after the last row end

Every chunk but the last holds a power of two of leaf values; the last one holds the rest and says
log2 = 0 (or, for flat values, its own log2 if it is a power of two). A chunk may hold more levels
than values.

Limits: at most one repetition index layer. Source: message MiniBlockLayout of lance.encodings21;
byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    ChunkBuffer,
    Chunks,
    Codecs,
    DataBlock,
    DecodedPage,
    Dictionary,
    FixedWidth,
    Ints,
    Levels,
    PageBuffer,
    PageReader,
    PageShape,
    Rows,
    Span,
    Wanted,
    corrupt,
    single_chunk,
)
from lance_nb.encodings.chunk_assembly import assemble, chunk_words, cut_levels, row_index
from lance_nb.encodings.chunk_table import (
    ChunkTable,
    RowIndex,
    parse_chunks,
    read_chunk_table,
    read_row_index,
)
from lance_nb.encodings.compress_base import (
    CompressedChunks,
    Compressors,
    EncodedPage,
    LeafPage,
    Parts,
)
from lance_nb.encodings.repdef import (
    check_layers,
    check_levels,
    num_list_layers,
    visible_entries,
)
from lance_nb.encodings.slicing import expand_ranges, gather_ranges
from lance_nb.errors import NotSupportedError

_PRIORITY = 10
_PRIORITY_ASKED = 50
_DICTIONARY_ITEMS_MAX = 2**31
_SPARSE_SHARE = 8  # values are fetched one by one when at most one in eight is wanted


class MiniBlockLayout:
    """The layout arm: which buffers to read first, and how to open the page."""

    def index_buffers(
        self, layout: encodings21.MiniBlockLayout, shape: PageShape
    ) -> tuple[int, ...]:
        """Chunk metadata, dictionary and repetition index are needed before any chunk."""
        _check_buffer_count(layout, shape)
        wanted = [0]
        if layout.HasField("dictionary"):
            wanted.append(2)
        if layout.repetition_index_depth:
            wanted.append(len(shape.buffer_sizes) - 1)
        return tuple(wanted)

    def open(
        self,
        layout: encodings21.MiniBlockLayout,
        shape: PageShape,
        buffers: Mapping[int, Bytes],
        codecs: Codecs,
    ) -> PageReader:
        """Check the chunk table, decode the dictionary, and return the page's reader."""
        table = read_chunk_table(layout, shape, buffers[0])
        rows = None
        if layout.repetition_index_depth:
            last = len(shape.buffer_sizes) - 1
            rows = read_row_index(buffers[last], table.starts.size, shape.num_rows)
        elif table.value_ends.size and int(table.value_ends[-1]) != shape.num_rows:
            raise corrupt(f"{shape.num_rows} values in the page", str(int(table.value_ends[-1])))
        items = None
        if layout.HasField("dictionary"):
            count = layout.num_dictionary_items
            if count > _DICTIONARY_ITEMS_MAX:
                raise corrupt(f"at most {_DICTIONARY_ITEMS_MAX} dictionary items", str(count))
            items = codecs.decode_blocks(layout.dictionary, single_chunk(count, buffers[2]))
        return MiniBlockPage(layout, shape, codecs, _PageParts(table, rows, items))

    def nominate(self, page: LeafPage) -> int:
        """Take everything, best if asked for; wide values prefer another layout."""
        return _PRIORITY_ASKED if page.options.structural == "miniblock" else _PRIORITY

    def encode(self, page: LeafPage, compressors: Compressors) -> EncodedPage | None:
        """Compress values and levels and put the chunks together; None if a chunk is too large."""
        if isinstance(page.measured.block, AllNull):
            return None
        values = compressors.compress_chunks(page.measured, page.options)
        return _encode_chunks(page, values, compressors)


def _encode_chunks(
    page: LeafPage, values: CompressedChunks, compressors: Compressors
) -> EncodedPage | None:
    levels, options = page.levels, page.options
    message = encodings21.MiniBlockLayout(
        value_compression=values.encoding,
        layers=levels.layer_enums,
        num_buffers=len(values.buffers),
        repetition_index_depth=int(levels.repetition is not None),
        num_items=page.measured.num_values,
        has_large_chunk=options.has_large_chunks,
    )
    cuts = cut_levels(levels, values.num_values)
    blocks: list[Parts] = []
    for name, found in (("rep", levels.repetition), ("def", levels.definition)):
        if found is None:
            continue
        block = FixedWidth(16, found.size, found.view(np.uint8))
        compressed = compressors.compress_blocks(block, cuts.counts, options)
        getattr(message, f"{name}_compression").CopyFrom(compressed.encoding)
        blocks.append(compressed.blocks)
    counts = cuts.counts if blocks else None
    assembled = assemble(tuple(blocks), counts, values.buffers, options.has_large_chunks)
    if assembled is None:
        return None
    chunks, sizes = assembled
    buffers = [chunk_words(sizes, values.num_values, options.has_large_chunks), chunks]
    if levels.repetition is not None:
        buffers.append(row_index(levels.repetition, cuts))
    layout = encodings21.PageLayout(mini_block_layout=message)
    return EncodedPage(layout, tuple(buffers), levels.num_rows)


def _check_buffer_count(layout: encodings21.MiniBlockLayout, shape: PageShape) -> None:
    if layout.repetition_index_depth > 1:
        raise NotSupportedError(
            f"a repetition index of depth {layout.repetition_index_depth}; lance_nb reads depth 1"
        )
    large = shape.file_version >= (2, 2)
    if layout.has_large_chunk != large:
        major, minor = shape.file_version
        raise corrupt(
            f"{'u32' if large else 'u16'} chunk words in a {major}.{minor} file",
            f"has_large_chunk = {layout.has_large_chunk}",
        )
    expected = 2 + layout.HasField("dictionary") + bool(layout.repetition_index_depth)
    if len(shape.buffer_sizes) != expected:
        raise corrupt(f"{expected} mini-block page buffers", str(len(shape.buffer_sizes)))


@dataclass(frozen=True, slots=True)
class _PageParts:
    table: ChunkTable
    rows: RowIndex | None
    items: DataBlock | None


class MiniBlockPage:
    """One opened mini-block page."""

    def __init__(
        self,
        layout: encodings21.MiniBlockLayout,
        shape: PageShape,
        codecs: Codecs,
        parts: _PageParts,
    ) -> None:
        self._layout = layout
        self._shape = shape
        self._codecs = codecs
        self._table = parts.table
        self._rows = parts.rows
        self._items = parts.items
        self._layers = check_layers(layout.layers)
        self._num_value_buffers = codecs.num_buffers(layout.value_compression)
        if layout.num_buffers != self._num_value_buffers:
            raise corrupt(
                f"{self._num_value_buffers} value buffers per chunk", str(layout.num_buffers)
            )
        if num_list_layers(self._layers) and parts.rows is None:
            raise corrupt("a repetition index on a page of lists", "none")

    def spans(self, rows: Rows) -> Sequence[Span]:
        """Ask for the runs of chunks that hold the rows."""
        chunks = self._chunks_of(rows)
        if not chunks.size:
            return ()
        breaks = np.flatnonzero(np.diff(chunks) != 1)
        firsts = chunks[np.concatenate(([0], breaks + 1))]
        lasts = chunks[np.concatenate((breaks, [chunks.size - 1]))]
        starts = self._table.starts[firsts]
        stops = self._table.starts[lasts] + self._table.sizes[lasts]
        return [Span(1, int(a), int(b)) for a, b in zip(starts, stops, strict=True)]

    def decode(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Decode the chunks that hold the rows and cut out the rows."""
        chunks = self._chunks_of(rows)
        if not chunks.size:
            return self._decode_nothing()
        parsed = parse_chunks(self._layout, self._table, chunks, buffers[1])
        rep = self._decode_levels("rep_compression", parsed.rep, parsed.num_levels)
        definition = self._decode_levels("def_compression", parsed.definition, parsed.num_levels)
        check_levels(rep, definition, self._layers)
        if self._rows is None:
            return self._cut_flat(rows, chunks, parsed.values, definition)
        levels = _LevelRun(rep, definition, parsed.num_levels)
        return self._cut_nested(rows, chunks, parsed.values, levels)

    def _decode_nothing(self) -> DecodedPage:
        zero = np.zeros(0, np.int64)
        none = Chunks(
            tuple(
                ChunkBuffer(np.zeros(0, np.uint8), zero, zero)
                for _ in range(self._num_value_buffers)
            ),
            zero,
        )
        values = self._codecs.decode_chunks(self._layout.value_compression, none)
        empty = np.zeros(0, np.uint16)
        rep = empty if self._layout.HasField("rep_compression") else None
        return DecodedPage(self._with_dictionary(values), rep, None, self._layers)

    def _chunks_of(self, rows: Rows) -> Ints:
        """List the chunks that hold the rows, ascending, without repeats."""
        if not rows.starts.size or not self._table.starts.size:
            return np.zeros(0, np.int64)
        started = self._table.value_ends if self._rows is None else self._rows.started
        ended = self._table.value_ends if self._rows is None else self._rows.ended
        first = np.searchsorted(started, rows.starts, side="right")
        last = np.searchsorted(ended, rows.stops - 1, side="right")
        if first.size == 1:
            return np.arange(int(first[0]), int(last[0]) + 1)
        np.maximum(first[1:], last[:-1], out=first[1:])
        chunks = expand_ranges(first, last + 1)
        keep = np.ones(chunks.size, bool)
        keep[1:] = np.diff(chunks) > 0
        return chunks[keep]

    def _decode_levels(
        self, name: str, buffer: ChunkBuffer | None, num_levels: Ints
    ) -> Levels | None:
        if buffer is None:
            return None
        block = self._codecs.decode_blocks(
            getattr(self._layout, name), Chunks((buffer,), num_levels)
        )
        if not isinstance(block, FixedWidth) or block.bits_per_value != 16:
            raise corrupt("16-bit levels", type(block).__name__)
        levels = block.data.view("<u2")
        if levels.size != int(num_levels.sum()):
            raise corrupt(f"{int(num_levels.sum())} levels", str(levels.size))
        return levels

    def _decode_values(self, chunks: Chunks, starts: Ints, stops: Ints) -> DataBlock:
        """Decode the values at these positions of the chunks, counted through all of them.

        Few values are fetched one by one where the encoding allows it; else whole chunks are
        decoded and cut.
        """
        encoding = self._layout.value_compression
        ends = np.cumsum(chunks.num_values)
        total = int(ends[-1])
        wanted = int((stops - starts).sum())
        if wanted * _SPARSE_SHARE <= total and self._codecs.can_gather(encoding):
            positions = expand_ranges(starts, stops)
            owner = np.searchsorted(ends, positions, side="right")
            inside = positions - (ends - chunks.num_values)[owner]
            fetched = self._codecs.gather(encoding, chunks, Wanted(owner, inside))
            return self._with_dictionary(fetched)
        values = self._codecs.decode_chunks(encoding, chunks)
        if values.num_values != total:
            raise corrupt(f"{total} values", str(values.num_values))
        return self._with_dictionary(gather_ranges(values, starts, stops))

    def _with_dictionary(self, values: DataBlock) -> DataBlock:
        if self._items is None:
            return values
        if not isinstance(values, FixedWidth):
            raise corrupt("fixed-width dictionary indices", type(values).__name__)
        return Dictionary(values.num_values, values, self._items)

    def _cut_flat(
        self, rows: Rows, chunks: Ints, values: Chunks, definition: Levels | None
    ) -> DecodedPage:
        """Without repetition one row is one value: translate rows into decoded positions."""
        counts = self._table.num_values[chunks]
        decoded_starts = np.cumsum(counts) - counts
        page_starts = self._table.value_ends[chunks] - counts
        chunk = np.searchsorted(page_starts, rows.starts, side="right") - 1
        starts = rows.starts - page_starts[chunk] + decoded_starts[chunk]
        stops = starts + (rows.stops - rows.starts)
        return DecodedPage(
            self._decode_values(values, starts, stops),
            None,
            _cut_levels(definition, starts, stops),
            self._layers,
        )

    def _cut_nested(
        self, rows: Rows, chunks: Ints, values: Chunks, levels: _LevelRun
    ) -> DecodedPage:
        """With repetition a row is a run of entries: number the rows, then cut."""
        rep, definition = levels.rep, levels.definition
        if rep is None or self._rows is None:
            raise corrupt("repetition levels on a page of lists", "none")
        if rows.num_rows == self._shape.num_rows:
            # The whole page: nothing to cut. Its rows are counted when the levels are unravelled.
            whole = np.array([0]), np.array([int(values.num_values.sum())])
            return DecodedPage(self._decode_values(values, *whole), rep, definition, self._layers)
        begins = rep == num_list_layers(self._layers)
        row_of_entry = self._number_rows(chunks, begins, levels.num_levels)
        starts = np.searchsorted(row_of_entry, rows.starts, side="left")
        stops = np.searchsorted(row_of_entry, rows.stops, side="left")
        visible = visible_entries(definition, self._layers)
        if visible is None:
            value_starts, value_stops, total = starts, stops, rep.size
        else:
            before = np.zeros(rep.size + 1, np.int64)
            np.cumsum(visible, out=before[1:])
            value_starts, value_stops, total = before[starts], before[stops], int(before[-1])
        if total != int(values.num_values.sum()):
            raise corrupt(f"{int(values.num_values.sum())} levels with a value", str(total))
        cut_rep = _cut_levels(rep, starts, stops)
        if (
            cut_rep is None
            or int((cut_rep == num_list_layers(self._layers)).sum()) != rows.num_rows
        ):
            raise corrupt(f"{rows.num_rows} rows in these chunks", "another number of row starts")
        return DecodedPage(
            self._decode_values(values, value_starts, value_stops),
            cut_rep,
            _cut_levels(definition, starts, stops),
            self._layers,
        )

    def _number_rows(self, chunks: Ints, begins: np.ndarray, num_levels: Ints) -> Ints:
        """Return the page row of every decoded entry (non-decreasing)."""
        if self._rows is None:
            raise corrupt("a repetition index on a page of lists", "none")
        if not begins.size:
            return np.zeros(0, np.int64)
        started = self._rows.started
        before_chunk = np.where(chunks > 0, started[np.maximum(chunks - 1, 0)], 0)
        seen = np.cumsum(begins)
        chunk_first = np.cumsum(num_levels) - num_levels
        seen_before = np.where(chunk_first > 0, seen[np.maximum(chunk_first - 1, 0)], 0)
        rows: Ints = seen - 1
        rows += np.repeat(before_chunk - seen_before, num_levels)
        return rows


@dataclass(frozen=True, slots=True)
class _LevelRun:
    rep: Levels | None
    definition: Levels | None
    num_levels: Ints


def _cut_levels(levels: Levels | None, starts: Ints, stops: Ints) -> Levels | None:
    if levels is None:
        return None
    if starts.size == 1:
        return levels[int(starts[0]) : int(stops[0])]
    return levels[expand_ranges(starts, stops)]
