"""Compress with one codec and decode with the reader: what the tests of compressors share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import Chunks, DataBlock
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.page_encoder import compressors
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.encodings.statistics import Measured
from tests.property.encodings.reference_encoders import plain

V2_1 = EncodingOptions(file_version=(2, 1))
V2_2 = EncodingOptions(file_version=(2, 2))


def measured(values: Any, type_: pa.DataType | None = None) -> Measured:
    """Return values, or an Arrow array, as a block with statistics."""
    array = values if isinstance(values, pa.Array) else pa.array(values, type_)
    return Measured(from_arrow(array))


def in_chunks(arm: str, block: Measured, options: EncodingOptions = V2_2) -> tuple[Any, list[int]]:
    """Compress into chunks, check that decoding undoes it; return encoding and counts."""
    compressed = codec_of(arm).compress_chunks(block, options, compressors)
    buffers = tuple(buffer.joined() for buffer in compressed.buffers)
    chunks = Chunks(buffers, compressed.num_values)
    same(codecs.decode_chunks(compressed.encoding, chunks), block.block)
    assert len(chunks.buffers) == codecs.num_buffers(compressed.encoding)
    return compressed.encoding, compressed.num_values.tolist()


def in_blocks(
    arm: str, block: Measured, counts: list[int], options: EncodingOptions = V2_2
) -> tuple[Any, list[bytes]]:
    """Compress into blocks, check that decoding undoes it; return encoding and blocks."""
    num_values = np.array(counts, np.int64)
    codec = codec_of(arm)
    compressed = codec.compress_blocks(block, num_values, options, compressors)
    whole = compressed.blocks.joined()
    same(codecs.decode_blocks(compressed.encoding, Chunks((whole,), num_values)), block.block)
    places = zip(whole.starts.tolist(), whole.sizes.tolist(), strict=True)
    return compressed.encoding, [whole.data[at : at + size].tobytes() for at, size in places]


def by_value(arm: str, block: Measured, options: EncodingOptions = V2_2) -> Any:
    """Compress value by value, check that decoding undoes it; return the encoding."""
    codec = codec_of(arm)
    compressed = codec.compress_values(block, options, compressors)
    same(codecs.decode_values(compressed.encoding, compressed.values), block.block)
    return compressed.encoding


def same(found: DataBlock, wanted: DataBlock) -> None:
    assert plain(found) == plain(wanted)
