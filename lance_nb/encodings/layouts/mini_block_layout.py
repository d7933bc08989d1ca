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

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Bytes,
    Codecs,
    PageShape,
    corrupt,
    single_chunk,
)
from lance_nb.encodings.chunk_rows import PageParts
from lance_nb.encodings.chunk_table import (
    read_chunk_table,
    read_row_index,
)
from lance_nb.encodings.mini_block_page import MiniBlockPage
from lance_nb.encodings.page_roles import PageReader
from lance_nb.errors import NotSupportedError

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
