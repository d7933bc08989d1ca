"""Write mini-block pages.

Layout: see ``layouts.mini_block_layout``.
Limits: a page that does not fit chunks (too many levels between two values) is left to full-zip,
and so is one that gains nothing from chunks: numbers without levels that no codec makes smaller
would only be copied, while full-zip stores them as they lie in memory.
Source: message MiniBlockLayout of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    Dictionary,
    FixedWidth,
    PackedStruct,
)
from lance_nb.encodings.chunk_assembly import assemble, chunk_words, cut_levels, row_index
from lance_nb.encodings.compress_base import (
    CompressedChunks,
    Compressors,
    EncodedPage,
    LeafPage,
    Parts,
)
from lance_nb.encodings.dictionary_pages import to_dictionary
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.statistics import Measured, bits_per_value

_LEVELS_AIMED = 20_000  # in one chunk: three times as many still fit
_OFFSET_BYTES = 4
_PLAIN_BYTES = 1 << 20  # of a page that chunks only copy; smaller ones are copied quickly
_PRIORITY = 10
_PRIORITY_ASKED = 50


class MiniBlockLayoutEncoder:
    """Compress; see the module."""

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
        encoded = _encode_chunks(page, values, dictionary, compressors)
        smaller = None if encoded is not None else _smaller_chunks(page, measured)
        if smaller is not None:
            values = compressors.compress_chunks(measured, smaller)
            encoded = _encode_chunks(page, values, dictionary, compressors)
        return encoded


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
