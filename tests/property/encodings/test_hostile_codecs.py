"""Damaged chunks and descriptions: an answer or a LanceError, soon and in bounded memory."""

from __future__ import annotations

import contextlib
import random
import struct
import time

import lz4.block
import numpy as np
import pytest
import zstandard
from google.protobuf.message import DecodeError

from lance_nb._pb import encodings21
from lance_nb.encodings.base import FixedWidth, VariableWidth
from lance_nb.encodings.registry import codecs
from lance_nb.errors import LanceError
from tests.property.encodings import reference_encoders as ref
from tests.support.compiled_forms import Form, forced
from tests.support.damaged_chunks import damaged_bytes, damaged_chunks

ROUNDS = 250
TABLE = ref.symbol_table([b"ab", b"c", b"defgh"])
SECONDS_MAX = 20.0  # of processor time: a busy machine is no finding, nor is compiling a loop


def zstd(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + zstandard.ZstdCompressor().compress(content)


def packed_rows(count: int) -> list[bytes]:
    return [struct.pack("<HI", i, i % 4) + b"x" * (i % 4) for i in range(count)]


STRUCT = ref.Encoding(
    variable_packed_struct=encodings21.VariablePackedStruct(
        fields=[
            {"value": ref.flat(16), "bits_per_value": 16},
            {"value": ref.variable(), "bits_per_length": 32},
        ]
    )
)
CODES = [ref.fsst_encode(b"abcdefghzab"[: i % 11], [b"ab", b"c", b"defgh"]) for i in range(50)]
LISTS = ref.fixed_size_list(3, ref.flat(8), has_validity=True)
# role, encoding, buffers of each chunk, values of each chunk
CHUNKED = {
    "flat": ("chunks", ref.flat(32), [[bytes(400)], [bytes(40)]], [100, 10]),
    "bits": ("chunks", ref.flat(1), [[bytes(4)], [bytes(2)]], [32, 11]),
    "variable": ("chunks", ref.variable(), [[ref.variable_chunk([b"ab", b""] * 9)]] * 2, [18] * 2),
    "strings": ("blocks", ref.variable(), [[ref.variable_block([b"ab", b"", b"c"])]], [3]),
    "inline": (
        "chunks",
        ref.inline_bitpacking(16),
        [[ref.inline_chunk(range(n), 16, 10)] for n in (1024, 1024, 77)],
        [1024, 1024, 77],
    ),
    "out_of_line": (
        "blocks",
        ref.out_of_line_bitpacking(16, 2),
        [[ref.out_of_line_block([1] * n, 16, 2, raw_tail=n % 2 == 0)] for n in (1024, 1500, 33)],
        [1024, 1500, 33],
    ),
    "fsst": ("chunks", ref.fsst(TABLE), [[ref.variable_chunk(CODES)]] * 2, [50, 50]),
    "rle": ("chunks", ref.rle(32), [ref.rle_chunk([5] * 300 + [6], 32)] * 2, [301, 301]),
    "rle_block": ("blocks", ref.rle(16), [[ref.rle_block([5] * 300 + [6], 16)]] * 2, [301, 301]),
    "split": ("chunks", ref.byte_stream_split(32), [[bytes(400)], [bytes(40)]], [100, 10]),
    "lz4": (
        "chunks",
        ref.general(ref.LZ4, ref.inline_bitpacking(16)),
        [[lz4.block.compress(ref.inline_chunk(range(1024), 16, 10))]] * 2,
        [1024, 1024],
    ),
    "zstd": (
        "chunks",
        ref.general(ref.ZSTD, ref.rle(32)),
        [[zstd(ref.to_words([5, 6], 32)), b"\x10\x20"]] * 2,
        [48, 48],
    ),
    "bare_zstd": (
        "blocks",
        ref.general(ref.ZSTD, ref.flat(8)),
        [[zstandard.ZstdCompressor().compress(bytes(range(200)) * 3)]],
        [600],
    ),
    "lists": ("chunks", LISTS, [[b"\xff\x0f", b"a" * 12]] * 2, [4, 4]),
    "constant": ("chunks", ref.constant(b"\1\2"), [[b""]], [100]),
    "packed": ("chunks", ref.packed_struct([32, 16]), [[bytes(60)]] * 2, [10, 10]),
}
VALUES = {
    "lists": (LISTS, FixedWidth(32, 5, b"\7abc" * 5)),
    "packed": (ref.packed_struct([32, 16]), FixedWidth(48, 5, bytes(30))),
    "fsst": (ref.fsst(TABLE), CODES),
    "lz4": (ref.general(ref.LZ4, ref.variable()), [lz4.block.compress(b"x" * 99), b""]),
    "zstd": (ref.general(ref.ZSTD, ref.fsst(TABLE)), [zstd(code) for code in CODES]),
    "struct": (STRUCT, packed_rows(40)),
}


def damaged_message(chance: random.Random, encoding):
    """Flip bits of the description itself; None when it is no message any more."""
    try:
        return type(encoding).FromString(damaged_bytes(chance, encoding.SerializeToString()))
    except DecodeError:
        return None


def survives(call) -> None:
    began = time.process_time()
    with contextlib.suppress(LanceError):
        call()
    assert time.process_time() - began < SECONDS_MAX


@pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])
@pytest.mark.parametrize("name", CHUNKED)
def test_damaged_chunks_are_refused_or_decoded(name: str, form: Form) -> None:
    role, encoding, parts, counts = CHUNKED[name]
    decode = codecs.decode_chunks if role == "chunks" else codecs.decode_blocks
    chance = random.Random(name)
    with forced(form):
        decode(encoding, ref.chunks_of(parts, counts, seed=5))
        for _ in range(ROUNDS):
            chunks = damaged_chunks(chance, ref.chunks_of(parts, counts, seed=5))
            survives(lambda chunks=chunks: decode(encoding, chunks))


@pytest.mark.parametrize("name", CHUNKED)
def test_damaged_descriptions_are_refused_or_decoded(name: str) -> None:
    role, encoding, parts, counts = CHUNKED[name]
    decode = codecs.decode_chunks if role == "chunks" else codecs.decode_blocks
    chance = random.Random(name)
    chunks = ref.chunks_of(parts, counts)
    for _ in range(ROUNDS):
        broken = damaged_message(chance, encoding)
        if broken is not None:
            survives(lambda broken=broken: decode(broken, chunks))


def values_block(raw, parts) -> FixedWidth | VariableWidth:
    data = np.frombuffer(raw or b"\0", np.uint8)
    if isinstance(parts, FixedWidth):
        return FixedWidth(parts.bits_per_value, parts.num_values, data)
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int32)
    return VariableWidth(len(parts), offsets, data)


@pytest.mark.parametrize("name", VALUES)
def test_damaged_values_are_refused_or_decoded(name: str) -> None:
    encoding, parts = VALUES[name]
    raw = parts.data if isinstance(parts, FixedWidth) else b"".join(parts)
    chance = random.Random(name)
    codecs.decode_values(encoding, values_block(raw, parts))
    for _ in range(ROUNDS):
        values = values_block(damaged_bytes(chance, raw), parts)
        survives(lambda values=values: codecs.decode_values(encoding, values))
        broken = damaged_message(chance, encoding)
        if broken is not None:
            values = values_block(raw, parts)
            survives(lambda values=values, broken=broken: codecs.decode_values(broken, values))
