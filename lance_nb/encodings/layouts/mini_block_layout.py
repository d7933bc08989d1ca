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

Writing: strings, and from file version 2.2 on values of 64 and 128 bits, become a dictionary and
u32 indices where that is smaller by a margin: ``dict-divisor`` (2: at most half as many items as
values), ``dict-size-ratio`` (0.8 of the size without) and ``dict-max-size`` of the field's metadata
bound it. A sample of 16 thousand values is examined first, because hashing a page of distinct
values costs more than storing it. Arrow dictionary arrays keep their items and key width.

A page that does not fit chunks (too many levels between two values) is left to full-zip, and so is
one that gains nothing from chunks: numbers without levels that no codec makes smaller would only be
copied, while full-zip stores them as they lie in memory.

Limits: at most one repetition index layer, and 2**31 - 1 dictionary items.
Source: message MiniBlockLayout of lance.encodings21, field metadata ``lance-encoding:dict-*``; byte
layout verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    ChunkBuffer,
    Chunks,
    Codecs,
    DataBlock,
    Dictionary,
    FixedWidth,
    Ints,
    PackedStruct,
    PageBuffer,
    PageReader,
    PageShape,
    VariableWidth,
    WholePage,
    corrupt,
    single_chunk,
)
from lance_nb.encodings.compress_base import (
    DICT_VALUES_MIN,
    CompressedChunks,
    Compressors,
    EncodedPage,
    LeafPage,
)
from lance_nb.encodings.distinct_values import Worth, numbered
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.mini_block_chunks import (
    NO_CHUNKS,
    NO_ROWS,
    PageItems,
    PageParts,
    encode_chunks,
    read_chunk_table,
    read_row_index,
)
from lance_nb.encodings.mini_block_page import MiniBlockPage, join_key
from lance_nb.encodings.statistics import (
    BLOCK,
    Measured,
    bits_per_value,
)
from lance_nb.errors import NotSupportedError

_DICTIONARY_ITEMS_MAX = 2**31
_LEVELS_AIMED = 20_000  # in one chunk: three times as many still fit
_OFFSET_BYTES = 4
_PLAIN_BYTES = 1 << 20  # of a page that chunks only copy; smaller ones are copied quickly
_PRIORITY = 10
_PRIORITY_ASKED = 50


class MiniBlockLayout:
    """Small values in chunks: which buffers to read first, and how to open and encode a page."""

    joined_bytes_max = 1 << 19  # copying more costs more than it saves

    def index_buffers(
        self, layout: encodings21.MiniBlockLayout, shape: PageShape
    ) -> tuple[int, ...]:
        """Chunk metadata, dictionary and repetition index are needed before any chunk."""
        _check_buffer_count(layout, shape)
        buffer_numbers = [0]
        if layout.HasField("dictionary"):
            buffer_numbers.append(2)
        if layout.repetition_index_depth:
            buffer_numbers.append(len(shape.buffer_sizes) - 1)
        return tuple(buffer_numbers)

    def open(
        self,
        layout: encodings21.MiniBlockLayout,
        shape: PageShape,
        buffers: Mapping[int, Bytes],
        codecs: Codecs,
    ) -> PageReader:
        """Check the chunk table, decode the dictionary, and return the page's reader."""
        has_rows = bool(layout.repetition_index_depth)
        table, rows, items = NO_CHUNKS, NO_ROWS if has_rows else None, None
        if buffers[0].size or layout.num_items or shape.num_rows:
            table, ends = read_chunk_table([layout], [buffers[0].data], [shape.buffer_sizes[1]])
            num_values = int(table.value_ends[-1])
            if has_rows:
                index = buffers[len(shape.buffer_sizes) - 1]
                rows = read_row_index([index.data], [shape.num_rows], ends)
            elif num_values != shape.num_rows:
                raise corrupt(f"{shape.num_rows} values in the page", str(num_values))
        if layout.HasField("dictionary"):
            count = layout.num_dictionary_items
            if count > _DICTIONARY_ITEMS_MAX:
                raise corrupt(f"at most {_DICTIONARY_ITEMS_MAX} dictionary items", str(count))
            items = codecs.decode_blocks(layout.dictionary, single_chunk(count, buffers[2]))
        return MiniBlockPage(layout, shape, codecs, PageParts(table, rows, items))

    def join_key(self, layout: encodings21.MiniBlockLayout) -> bytes | None:
        """Return the message without its counts; None for a page of many values."""
        return join_key(layout)

    def open_joined(
        self,
        pages: Sequence[WholePage],
        file_version: tuple[int, int],
        codecs: Codecs,
        file_bytes: Bytes | None = None,
    ) -> tuple[PageReader, Mapping[int, PageBuffer]]:
        """Lay the chunks of the pages end to end, and their dictionaries."""
        layout = pages[0].layout
        for page in pages:
            _check_buffer_count(
                layout,
                PageShape(page.num_rows, tuple(map(len, page.buffers)), file_version),
            )
        table, ends = read_chunk_table(
            [page.layout for page in pages],
            [page.buffers[0] for page in pages],
            [len(page.buffers[1]) for page in pages],
        )
        rows = None
        counts = np.array([page.num_rows for page in pages], np.int64)
        value_ends = table.value_ends[ends - 1]
        if layout.repetition_index_depth:
            indices = [page.buffers[-1] for page in pages]
            rows = read_row_index(indices, [page.num_rows for page in pages], ends)
        elif not np.array_equal(value_ends, np.cumsum(counts)):
            row_ends = np.cumsum(counts)
            wrong = int((value_ends != row_ends).argmax())
            raise corrupt(f"a page that ends at value {row_ends[wrong]}", f"{value_ends[wrong]}")
        items = page_items = None
        if layout.HasField("dictionary"):
            num_items = [page.layout.num_dictionary_items for page in pages]
            page_items = PageItems(np.array(num_items, np.int64))
            numbers = np.arange(len(pages)).repeat(np.diff(ends, prepend=0))
            table = replace(table, pages=numbers)
            items = _joined_items(layout, page_items.num_items, pages, codecs)
        shape = PageShape(int(counts.sum()), (), file_version)
        firsts = np.append(0, ends[:-1])
        if file_bytes is None:
            sizes = np.add.reduceat(table.sizes, firsts).tolist()
            chunks = [page.buffers[1][:size] for page, size in zip(pages, sizes, strict=True)]
            data = np.frombuffer(b"".join(chunks), np.uint8)
        else:
            begins = np.array([page.buffer_offsets[1] for page in pages], np.int64)
            shifts = (begins - table.starts[firsts]).repeat(np.diff(ends, prepend=0))
            table, data = replace(table, starts=table.starts + shifts), file_bytes
        parts = PageParts(table, rows, items, page_chunks=ends[:-1], page_items=page_items)
        return MiniBlockPage(layout, shape, codecs, parts), {1: PageBuffer(data)}

    def nominate(self, page: LeafPage) -> int:
        """Take everything, best if asked for; wide values prefer another layout."""
        block = page.measured.block
        if isinstance(block, AllNull) or (
            isinstance(block, PackedStruct)
            and not all(isinstance(child, FixedWidth) for child in block.children)
        ):
            return 0
        return _PRIORITY_ASKED if page.options.structural == "miniblock" else _PRIORITY

    def encode(self, page: LeafPage, compressors: Compressors) -> EncodedPage | None:
        """Compress values and levels and put the chunks together; None if a chunk is too large."""
        dictionary = to_dictionary(page.measured, page.options)
        measured = page.measured if dictionary is None else Measured(dictionary.indices)
        values = compressors.compress_chunks(measured, page.options)
        if dictionary is None and _is_plain(page, values):
            return None
        encoded = encode_chunks(page, values, dictionary, compressors)
        smaller = None if encoded is not None else _smaller_chunks(page, measured)
        if smaller is not None:
            values = compressors.compress_chunks(measured, smaller)
            encoded = encode_chunks(page, values, dictionary, compressors)
        return encoded


def _joined_items(
    layout: encodings21.MiniBlockLayout, counts: Ints, pages: Sequence[WholePage], codecs: Codecs
) -> DataBlock:
    """Decode the dictionaries of all pages into one."""
    if int(counts.max()) > _DICTIONARY_ITEMS_MAX or int(counts.sum()) > _DICTIONARY_ITEMS_MAX:
        raise corrupt(f"at most {_DICTIONARY_ITEMS_MAX} dictionary items", str(int(counts.sum())))
    sizes = np.array([len(page.buffers[2]) for page in pages], np.int64)
    data = np.frombuffer(b"".join([page.buffers[2] for page in pages]), np.uint8)
    blocks = Chunks((ChunkBuffer(data, np.cumsum(sizes) - sizes, sizes),), counts)
    items = codecs.decode_blocks(layout.dictionary, blocks)
    if items.num_values != int(counts.sum()):
        raise corrupt(f"{int(counts.sum())} dictionary items", str(items.num_values))
    return items


def _check_buffer_count(layout: encodings21.MiniBlockLayout, shape: PageShape) -> None:
    if layout.repetition_index_depth > 1:
        raise NotSupportedError(
            f"a repetition index of depth {layout.repetition_index_depth}; lance_nb reads depth 1"
        )
    large = shape.file_version >= (2, 2)
    # Releases 0.38 to 1.0 wrote 2.2 files with the words of 2.1, before 2.2 was settled.
    if layout.has_large_chunk and not large:
        major, minor = shape.file_version
        raise corrupt(f"u16 chunk words in a {major}.{minor} file", "has_large_chunk = True")
    expected = 2 + layout.HasField("dictionary") + bool(layout.repetition_index_depth)
    if len(shape.buffer_sizes) != expected:
        raise corrupt(f"{expected} mini-block page buffers", str(len(shape.buffer_sizes)))


def _is_plain(page: LeafPage, values: CompressedChunks) -> bool:
    """Tell whether the page would be its values, cut into chunks and nothing else."""
    block, levels, options = page.measured.block, page.levels, page.options
    return (
        options.structural is None
        and options.minichunk_size_bytes is None
        and levels.repetition is None
        and levels.definition is None
        and isinstance(block, FixedWidth)
        and block.bits_per_value % 8 == 0
        and block.data.size >= _PLAIN_BYTES
        and values.encoding.HasField("flat")
    )


def _smaller_chunks(page: LeafPage, measured: Measured) -> EncodingOptions | None:
    """Return options for chunks of so few values that their levels fit, for sparse lists."""
    levels, count = page.levels, measured.num_values
    if levels.repetition is None or not count:
        return None
    per_chunk = _LEVELS_AIMED * count // levels.num_entries
    if per_chunk < 2:
        return None
    bits = bits_per_value(measured.block)
    if bits is None:
        bits = 8 * (measured.size_bytes // count + _OFFSET_BYTES)
    return replace(page.options.plain, minichunk_size_bytes=max(1, per_chunk * bits // 8))


def to_dictionary(measured: Measured, options: EncodingOptions) -> Dictionary | None:
    """Return the values as a dictionary if they are one, or should become one."""
    block = measured.block
    if isinstance(block, Dictionary):
        return block
    plain = _plain_bytes(measured, options)
    if plain is None or measured.num_values < DICT_VALUES_MIN:
        return None
    if options.compression == "none":
        return None
    return numbered(block, Worth(measured.num_values, plain, options))


def _plain_bytes(measured: Measured, options: EncodingOptions) -> float | None:
    """Estimate the size without a dictionary; None for values that never get one."""
    block = measured.block
    if isinstance(block, VariableWidth):
        return float(measured.size_bytes + block.offsets.itemsize * block.num_values)
    if not isinstance(block, FixedWidth):
        return None
    if block.bits_per_value == 128:
        return float(block.data.size)
    if block.bits_per_value != 64 or options.file_version < (2, 2):
        return None
    widths = None if measured.is_wide else measured.block_widths
    packed = block.data.size if widths is None else int(widths.sum()) * BLOCK // 8
    runs = measured.sampled_run_share * block.num_values * 9
    return float(min(packed, runs))
