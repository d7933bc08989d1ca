"""Slow, obvious encoders, written from the description of the format and from nothing else.

They share no code with the package: lists of Python integers and bytes in, bytes out.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    Chunks,
    FixedSizeList,
    FixedWidth,
    VariableWidth,
)

Encoding = encodings21.CompressiveEncoding
LZ4 = encodings21.COMPRESSION_ALGORITHM_LZ4
ZSTD = encodings21.COMPRESSION_ALGORITHM_ZSTD


# --- descriptions ----------------------------------------------------------------------------


def flat(bits: int):
    return Encoding(flat=encodings21.Flat(bits_per_value=bits))


def variable(bits: int = 32):
    return Encoding(variable=encodings21.Variable(offsets=flat(bits)))


def inline_bitpacking(bits: int):
    message = encodings21.InlineBitpacking(uncompressed_bits_per_value=bits)
    return Encoding(inline_bitpacking=message)


def out_of_line_bitpacking(bits: int, width: int):
    message = encodings21.OutOfLineBitpacking(uncompressed_bits_per_value=bits, values=flat(width))
    return Encoding(out_of_line_bitpacking=message)


def fsst(table: bytes, values=None):
    return Encoding(fsst=encodings21.Fsst(symbol_table=table, values=values or variable()))


def rle(bits: int, values=None, lengths=None):
    message = encodings21.Rle(values=values or flat(bits), run_lengths=lengths or flat(8))
    return Encoding(rle=message)


def byte_stream_split(bits: int):
    return Encoding(byte_stream_split=encodings21.ByteStreamSplit(values=flat(bits)))


def general(scheme: int, values):
    compression = encodings21.BufferCompression(scheme=scheme)
    return Encoding(general=encodings21.General(compression=compression, values=values))


def fixed_size_list(dimension: int, values, *, has_validity: bool = False):
    message = encodings21.FixedSizeList(
        items_per_value=dimension, values=values, has_validity=has_validity
    )
    return Encoding(fixed_size_list=message)


def constant(value: bytes | None):
    return Encoding(constant=encodings21.Constant(value=value))


def packed_struct(bits: Sequence[int]):
    message = encodings21.PackedStruct(bits_per_value=bits, values=flat(sum(bits)))
    return Encoding(packed_struct=message)


# --- chunks ----------------------------------------------------------------------------------


def chunks_of(parts: Sequence[Sequence[bytes]], num_values: Sequence[int], seed: int | None = None):
    """Lay out chunks, each a list of buffers; with a seed, apart from each other and unaligned."""
    chance = random.Random(seed)
    buffers = []
    for column in zip(*parts, strict=True):
        data, starts = bytearray(), []
        for part in column:
            if seed is not None:
                data += b"\xa5" * chance.choice([0, 0, 1, 4, 8])
            starts.append(len(data))
            data += part
        sizes = np.array([len(part) for part in column], np.int64)
        raw = np.frombuffer(bytes(data) or b"\0", np.uint8)
        buffers.append(ChunkBuffer(raw, np.array(starts, np.int64), sizes))
    return Chunks(tuple(buffers), np.array(num_values, np.int64))


def split(values: Sequence, counts: Sequence[int]) -> list[list]:
    """Cut ``values`` into runs of the given lengths."""
    parts, position = [], 0
    for count in counts:
        parts.append(list(values[position : position + count]))
        position += count
    return parts


# --- encoders --------------------------------------------------------------------------------


def to_words(values: Sequence[int], bits: int) -> bytes:
    return b"".join(int(value).to_bytes(bits // 8, "little") for value in values)


def pack_block(values: Sequence[int], bits: int, width: int) -> bytes:
    """Pack up to 1024 values in FastLanes order, one bit at a time."""
    padded = [*values, *[0] * (1024 - len(values))]
    lanes = 1024 // bits
    words = [0] * (lanes * width)
    order = [0, 4, 2, 6, 1, 5, 3, 7]
    for row in range(bits):
        for lane in range(lanes):
            value = int(padded[order[row // 8] * 16 + row % 8 * 128 + lane])
            for bit in range(width):
                if value >> bit & 1:
                    place = row * width + bit
                    words[place // bits * lanes + lane] |= 1 << place % bits
    return to_words(words, bits)


def inline_chunk(values: Sequence[int], bits: int, width: int) -> bytes:
    return to_words([width], bits) + pack_block(values, bits, width)


def out_of_line_block(values: Sequence[int], bits: int, width: int, *, raw_tail: bool) -> bytes:
    full = len(values) // 1024 * 1024
    out = b"".join(pack_block(values[i : i + 1024], bits, width) for i in range(0, full, 1024))
    tail = values[full:]
    if not tail:
        return out
    return out + (to_words(tail, bits) if raw_tail else pack_block(tail, bits, width))


def variable_chunk(values: Sequence[bytes], bits: int = 32) -> bytes:
    position = (len(values) + 1) * bits // 8
    offsets = [position]
    for value in values:
        position += len(value)
        offsets.append(position)
    body = to_words(offsets, bits) + b"".join(values)
    return body + b"\x48" * (-len(body) % (bits // 8))


def variable_block(values: Sequence[bytes], bits: int = 32) -> bytes:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    head = to_words([bits, (len(offsets) + 2) * bits // 8], bits)
    return head + to_words(offsets, bits) + b"".join(values)


def runs_of(values: Sequence[int]) -> tuple[list[int], list[int]]:
    kept: list[int] = []
    lengths: list[int] = []
    for value in values:
        if kept and kept[-1] == value and lengths[-1] < 255:
            lengths[-1] += 1
        else:
            kept.append(value)
            lengths.append(1)
    return kept, lengths


def rle_chunk(values: Sequence[int], bits: int) -> list[bytes]:
    kept, lengths = runs_of(values)
    return [to_words(kept, bits), bytes(lengths)]


def rle_block(values: Sequence[int], bits: int) -> bytes:
    kept, lengths = rle_chunk(values, bits)
    return struct.pack("<Q", len(kept)) + kept + lengths


def split_bytes(values: Sequence[int], bits: int) -> bytes:
    rows = [int(value).to_bytes(bits // 8, "little") for value in values]
    return b"".join(bytes(row[j] for row in rows) for j in range(bits // 8))


def symbol_table(symbols: Sequence[bytes], *, on: bool = True) -> bytes:
    header = 0x46535354 << 32 | on << 24 | 1 << 16 | len(symbols)
    out = struct.pack("<Q", header) + b"".join(symbol.ljust(8, b"\0") for symbol in symbols)
    out += bytes(len(symbol) for symbol in symbols)
    return out.ljust(2312, b"\0")


def fsst_encode(value: bytes, symbols: Sequence[bytes]) -> bytes:
    out, position = bytearray(), 0
    while position < len(value):
        fitting = [s for s in symbols if value.startswith(s, position)]
        if fitting:
            best = max(fitting, key=len)
            out.append(symbols.index(best))
            position += len(best)
        else:
            out += bytes([255, value[position]])
            position += 1
    return bytes(out)


def bitmap(bits: Sequence[bool]) -> bytes:
    return bytes(
        sum(bit << i for i, bit in enumerate(bits[k : k + 8])) for k in range(0, len(bits), 8)
    )


# --- looking at results ------------------------------------------------------------------------


def integers(block) -> list[int]:
    size = block.bits_per_value // 8
    raw = block.data.tobytes()
    assert len(raw) == size * block.num_values
    return [int.from_bytes(raw[i : i + size], "little") for i in range(0, len(raw), size)]


def strings(block) -> list[bytes]:
    raw = block.data.tobytes()
    offsets = block.offsets.tolist()
    assert len(offsets) == block.num_values + 1
    assert offsets[0] == 0
    assert offsets[-1] <= len(raw)
    return [raw[a:b] for a, b in pairwise(offsets)]


def booleans(data, count: int) -> list[bool]:
    return [bool(data[i // 8] >> i % 8 & 1) for i in range(count)]


def plain(block) -> list:
    """List the values of any block."""
    match block:
        case FixedWidth(1, count, data):
            return booleans(data, count)
        case FixedWidth():
            return integers(block)
        case VariableWidth():
            return strings(block)
        case FixedSizeList(dimension, count, items, None):
            flat = plain(items)
            return [flat[i * dimension : (i + 1) * dimension] for i in range(count)]
    return list(zip(*(plain(child) for child in block.children), strict=True))
