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

from collections.abc import Mapping

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    Codecs,
    Dictionary,
    FixedWidth,
    PackedStruct,
    PageReader,
    PageShape,
    corrupt,
    single_chunk,
)
from lance_nb.encodings.chunk_assembly import assemble, chunk_words, cut_levels, row_index
from lance_nb.encodings.chunk_table import (
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
from lance_nb.encodings.dictionary_pages import to_dictionary
from lance_nb.encodings.mini_block_page import MiniBlockPage, PageParts
from lance_nb.encodings.statistics import Measured
from lance_nb.errors import NotSupportedError

_PRIORITY = 10
_PRIORITY_ASKED = 50
_DICTIONARY_ITEMS_MAX = 2**31


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
        return MiniBlockPage(layout, shape, codecs, PageParts(table, rows, items))

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
        return _encode_chunks(page, values, dictionary, compressors)


def _encode_chunks(
    page: LeafPage,
    values: CompressedChunks,
    dictionary: Dictionary | None,
    compressors: Compressors,
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
        compressed = compressors.compress_blocks(block, cuts.counts, options.for_levels)
        getattr(message, f"{name}_compression").CopyFrom(compressed.encoding)
        blocks.append(compressed.blocks)
    counts = cuts.counts if blocks else None
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
    # Releases 0.38 to 1.0 wrote 2.2 files with the words of 2.1, before 2.2 was settled.
    if layout.has_large_chunk and not large:
        major, minor = shape.file_version
        raise corrupt(f"u16 chunk words in a {major}.{minor} file", "has_large_chunk = True")
    expected = 2 + layout.HasField("dictionary") + bool(layout.repetition_index_depth)
    if len(shape.buffer_sizes) != expected:
        raise corrupt(f"{expected} mini-block page buffers", str(len(shape.buffer_sizes)))
