"""Just enough of the data file container to get at the pages of a file that pylance wrote.

Independent of the package's own reader on purpose: struct and the messages, nothing else. Reads
columns without lists; the caller looks at values and levels of each page.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lance_nb._pb import encodings21, file2
from lance_nb.encodings.base import ChunkBuffer, Chunks

FOOTER = "<QQQIIHH4s"


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its layout, its buffers, its rows."""

    layout: encodings21.PageLayout
    buffers: list[np.ndarray]
    num_rows: int


@dataclass(frozen=True, slots=True)
class MiniBlocks:
    """The chunks of a mini-block page: levels (if any) as blocks, and the values."""

    rep: Chunks | None
    definition: Chunks | None
    values: Chunks


def read_columns(path: Path) -> list[list[Page]]:
    """Return the pages of every column."""
    raw = path.read_bytes()
    _, table, _, _, num_columns, _, _, magic = struct.unpack(FOOTER, raw[-40:])
    assert magic == b"LANC"
    columns = []
    for i in range(num_columns):
        position, size = struct.unpack_from("<QQ", raw, table + 16 * i)
        column = file2.ColumnMetadata.FromString(raw[position : position + size])
        columns.append([_page(raw, page) for page in column.pages])
    return columns


def _page(raw: bytes, page: file2.ColumnMetadata.Page) -> Page:
    # Encoding.direct.encoding is an Any: field 1 is the type's name, field 2 the layout itself.
    wrapped = page.encoding.direct.encoding
    name_size = wrapped[1]
    assert wrapped[2 : 2 + name_size] == b"/lance.encodings21.PageLayout"
    size, at = _varint(wrapped, 2 + name_size + 1)
    layout = encodings21.PageLayout.FromString(wrapped[at : at + size])
    bounds = zip(page.buffer_offsets, page.buffer_sizes, strict=True)
    buffers = [np.frombuffer(raw, np.uint8, size, start) for start, size in bounds]
    return Page(layout, buffers, page.length)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (raw[at] & 127) << shift
        shift += 7
        at += 1
        if raw[at - 1] < 128:
            return value, at


def mini_blocks(page: Page) -> MiniBlocks:
    """Walk over the chunks of a mini-block page, one after the other."""
    layout = page.layout.mini_block_layout
    word = 4 if layout.has_large_chunk else 2
    words = page.buffers[0].view(f"<u{word}").tolist()
    has = [layout.HasField("rep_compression"), layout.HasField("def_compression")]
    data = page.buffers[1]
    places: list[list[tuple[int, int]]] = [[] for _ in range(sum(has) + layout.num_buffers)]
    levels, counts, start, left = [], [], 0, layout.num_items
    for i, entry in enumerate(words):
        count = left if i == len(words) - 1 else 1 << (entry & 15)
        left -= count
        counts.append(count)
        head = "<H" + "H" * sum(has) + ("I" if word == 4 else "H") * layout.num_buffers
        num_levels, *sizes = struct.unpack_from(head, data, start)
        levels.append(num_levels)
        position = start + struct.calcsize(head)
        for place, size in zip(places, sizes, strict=True):
            position += -(position - start) % 8
            place.append((position, size))
            position += size
        start += ((entry >> 4) + 1) * 8
    buffers = [_chunk_buffer(data, place) for place in places]
    parts = iter(buffers)
    rep = Chunks((next(parts),), np.array(levels)) if has[0] else None
    definition = Chunks((next(parts),), np.array(levels)) if has[1] else None
    return MiniBlocks(rep, definition, Chunks(tuple(parts), np.array(counts, np.int64)))


def _chunk_buffer(data: np.ndarray, places: list[tuple[int, int]]) -> ChunkBuffer:
    starts, sizes = zip(*places, strict=True) if places else ((), ())
    return ChunkBuffer(data, np.array(starts, np.int64), np.array(sizes, np.int64))


def arms(encoding: encodings21.CompressiveEncoding) -> Iterator[str]:
    """Name the arms of an encoding from the outside in, along its values."""
    arm = encoding.WhichOneof("compression")
    yield arm
    inner = getattr(encoding, arm)
    if "values" in inner.DESCRIPTOR.fields_by_name and arm not in {"variable", "inline_bitpacking"}:
        yield from arms(inner.values)
