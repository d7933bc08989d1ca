"""The chunk table of a mini-block page: where chunks lie, what they hold, how their headers read.

Layout: see ``layouts/mini_block_layout``. The three parts here are the chunk metadata words (buffer
0), the repetition index (last buffer) and the header at the start of every chunk.

Limits: counts and sizes are checked against the page before anything is allocated from them.
Source: message MiniBlockLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    VALUES_MAX,
    Bytes,
    ChunkBuffer,
    Chunks,
    Ints,
    PageBuffer,
    PageShape,
    corrupt,
)
from lance_nb.encodings.kernels import ranges

_WORD_LOG_BITS = 4
_WORD_LOG_MAX = (1 << _WORD_LOG_BITS) - 1
_CHUNK_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """Where each chunk lies in buffer 1 and what it holds. ``value_ends`` is cumulative."""

    starts: Ints
    sizes: Ints
    num_values: Ints
    value_ends: Ints

    def part(self, chunks: Ints) -> ChunkTable:
        """Return the entries of some chunks, in any order, with repeats."""
        return ChunkTable(
            self.starts[chunks],
            self.sizes[chunks],
            self.num_values[chunks],
            self.value_ends[chunks],
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
    rest = num_items - int(counts[:-1].sum())
    # The last word says 0, or what the chunk holds when that is a power of two (flat values).
    fits = not words[-1] & _WORD_LOG_MAX or rest == int(counts[-1])
    if not 0 <= rest <= VALUES_MAX or not fits:
        raise corrupt(f"chunks that hold {num_items} values", "another chunk table")
    counts[-1] = rest
    ends = np.cumsum(sizes)
    if int(ends[-1]) > shape.buffer_sizes[1]:
        raise corrupt(f"{int(ends[-1])} bytes of chunks", f"{shape.buffer_sizes[1]} bytes")
    return ChunkTable(ends - sizes, sizes, counts, np.cumsum(counts))


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
    ends = starts + table.sizes
    if int(ends.max()) > data.size:
        raise corrupt(f"{int(ends.max())} bytes of chunks", f"{data.size} bytes")
    header, least = _header_type(layout)
    if int(table.sizes.min()) < least:  # sizes are whole words, as the padded header is
        raise corrupt(f"chunks of at least {least} bytes", "a smaller chunk")
    raw = np.ascontiguousarray(ranges.rows(data, starts, header.itemsize))
    heads = raw.view(header).ravel()
    position = starts + header.itemsize
    found: dict[str, ChunkBuffer] = {}
    for name in (header.names or ())[1:]:
        sizes = heads[name].astype(np.int64)
        found[name] = ChunkBuffer(data, position, sizes)
        if bool((position + sizes > ends).any()):
            raise corrupt("chunk parts that fit their chunk", "larger parts")
        position = position + _pad8(sizes)
    values = tuple(found[name] for name in (header.names or ()) if name.startswith("value"))
    levels = heads["levels"].astype(np.int64)
    counts = table.num_values
    flat = not layout.repetition_index_depth and ("rep" in found or "def" in found)
    if flat and not np.array_equal(levels, counts):
        raise corrupt("one level per value", "another number of levels")
    return ParsedChunks(levels, found.get("rep"), found.get("def"), Chunks(values, counts))


def _header_type(layout: encodings21.MiniBlockLayout) -> tuple[np.dtype[np.void], int]:
    """Return the header padded to whole words, and its bytes without padding."""
    return _header_of(
        layout.HasField("rep_compression"),
        layout.HasField("def_compression"),
        layout.num_buffers,
        "<u4" if layout.has_large_chunk else "<u2",
    )


@lru_cache(maxsize=64)
def _header_of(
    has_rep: bool, has_def: bool, num_buffers: int, width: str
) -> tuple[np.dtype[np.void], int]:
    fields = [("levels", "<u2")]
    fields += [("rep", "<u2")] * has_rep
    fields += [("def", "<u2")] * has_def
    fields += [(f"value{k}", width) for k in range(num_buffers)]
    exact = np.dtype(fields)
    names, formats = zip(*fields, strict=True)
    padded = -(-exact.itemsize // _CHUNK_ALIGNMENT) * _CHUNK_ALIGNMENT
    return np.dtype({"names": names, "formats": formats, "itemsize": padded}), exact.itemsize


def _pad8(sizes: Ints) -> Ints:
    return (sizes + 7) & ~np.int64(7)
