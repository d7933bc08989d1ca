"""Whatever the values and however they are cut into chunks, decoding gives the values back."""

from __future__ import annotations

import lz4.block
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.registry import codecs
from tests.property.encodings import reference_encoders as ref
from tests.support.compiled_forms import Form, forced
from tests.support.examples import examples

COUNTS = st.lists(st.integers(0, 40), min_size=1, max_size=8)
SEEDS = st.one_of(st.none(), st.integers(0, 1000))
WORDS = st.sampled_from([8, 16, 32, 64])


@st.composite
def chunked(draw, values, counts=COUNTS):
    """Draw a list of lists of values."""
    sizes = draw(counts)
    if draw(st.booleans()):  # what pages look like: all chunks full but the last
        sizes = [sizes[0]] * len(sizes) + [sizes[0] // 2]
    return [draw(st.lists(values, min_size=n, max_size=n)) for n in sizes]


def lengths(parts) -> list[int]:
    return [len(part) for part in parts]


def joined(parts) -> list:
    return [value for part in parts for value in part]


@given(st.data(), st.sampled_from([8, 16, 24, 64, 128]), SEEDS)
def test_flat_chunks(data, bits: int, seed: int | None) -> None:
    parts = data.draw(chunked(st.integers(0, 2**bits - 1)))
    chunks = ref.chunks_of([[ref.to_words(p, bits)] for p in parts], lengths(parts), seed)
    assert ref.integers(codecs.decode_chunks(ref.flat(bits), chunks)) == joined(parts)


@given(chunked(st.booleans()), SEEDS)
def test_bit_chunks_of_any_length(parts, seed: int | None) -> None:
    chunks = ref.chunks_of([[ref.bitmap(part)] for part in parts], lengths(parts), seed)
    block = codecs.decode_chunks(ref.flat(1), chunks)
    assert ref.booleans(block.data, block.num_values) == joined(parts)


@given(chunked(st.binary(max_size=12)), st.sampled_from([32, 64]), SEEDS)
def test_string_chunks_and_blocks(parts, bits: int, seed: int | None) -> None:
    chunks = ref.chunks_of([[ref.variable_chunk(p, bits)] for p in parts], lengths(parts), seed)
    assert ref.strings(codecs.decode_chunks(ref.variable(bits), chunks)) == joined(parts)
    blocks = ref.chunks_of([[ref.variable_block(p, bits)] for p in parts], lengths(parts), seed)
    assert ref.strings(codecs.decode_blocks(ref.variable(bits), blocks)) == joined(parts)


@pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])
@examples(25)
@given(st.data(), WORDS, SEEDS)
def test_inline_bit_packing(form: Form, data, bits: int, seed: int | None) -> None:
    shape = st.lists(st.tuples(st.integers(0, bits), st.integers(0, 1024)), min_size=1, max_size=4)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    parts, packed = [], []
    for width, count in data.draw(shape):
        values = [int(rng.integers(0, 2**63)) * 3 % 2**width for _ in range(count)]
        parts.append(values)
        packed.append([ref.inline_chunk(values, bits, width)])
    chunks = ref.chunks_of(packed, lengths(parts), seed)
    with forced(form):
        block = codecs.decode_chunks(ref.inline_bitpacking(bits), chunks)
    assert ref.integers(block) == joined(parts)


@pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])
@examples(25)
@given(st.data(), st.integers(0, 16), SEEDS)
def test_out_of_line_bit_packing(form: Form, data, width: int, seed: int | None) -> None:
    shape = st.lists(st.tuples(st.integers(0, 2100), st.booleans()), min_size=1, max_size=4)
    parts, packed = [], []
    for count, raw_tail in data.draw(shape):
        values = [i * 2654435761 % 2**width for i in range(count)]
        block = ref.out_of_line_block(values, 16, width, raw_tail=raw_tail)
        # A packed tail as large as the raw one is read as raw: no writer may produce it.
        as_raw = count // 1024 * 128 * width + count % 1024 * 2
        if not raw_tail and len(block) == as_raw:
            block = ref.out_of_line_block(values, 16, width, raw_tail=True)
        parts.append(values)
        packed.append([block])
    blocks = ref.chunks_of(packed, lengths(parts), seed)
    with forced(form):
        block = codecs.decode_blocks(ref.out_of_line_bitpacking(16, width), blocks)
    assert ref.integers(block) == joined(parts)


@pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])
@given(
    st.lists(st.binary(min_size=1, max_size=8), unique=True, max_size=30),
    chunked(st.one_of(st.binary(max_size=30), st.just(b"\xff" * 9))),
    SEEDS,
)
def test_fsst_with_any_symbols(form: Form, symbols, parts, seed: int | None) -> None:
    coded = [[ref.fsst_encode(value, symbols) for value in part] for part in parts]
    chunks = ref.chunks_of([[ref.variable_chunk(part)] for part in coded], lengths(parts), seed)
    with forced(form):
        block = codecs.decode_chunks(ref.fsst(ref.symbol_table(symbols)), chunks)
    assert ref.strings(block) == joined(parts)


@given(st.data(), st.sampled_from([8, 16, 32, 64, 128]), SEEDS)
def test_runs(data, bits: int, seed: int | None) -> None:
    runs = st.lists(st.tuples(st.integers(0, 2**bits - 1), st.integers(1, 600)), max_size=4)
    parts = [
        [value for value, times in part for _ in range(times)]
        for part in data.draw(st.lists(runs, min_size=1, max_size=4))
    ]
    chunks = ref.chunks_of([ref.rle_chunk(part, bits) for part in parts], lengths(parts), seed)
    assert ref.integers(codecs.decode_chunks(ref.rle(bits), chunks)) == joined(parts)
    blocks = ref.chunks_of([[ref.rle_block(part, bits)] for part in parts], lengths(parts), seed)
    assert ref.integers(codecs.decode_blocks(ref.rle(bits), blocks)) == joined(parts)


@given(st.data(), st.sampled_from([32, 64]), SEEDS)
def test_compressed_byte_streams(data, bits: int, seed: int | None) -> None:
    parts = data.draw(chunked(st.integers(0, 2**bits - 1)))
    packed = []
    for part in parts:
        content = ref.split_bytes(part, bits)
        packed.append([lz4.block.compress(content, store_size=True)])
    chunks = ref.chunks_of(packed, lengths(parts), seed)
    encoding = ref.general(ref.LZ4, ref.byte_stream_split(bits))
    assert ref.integers(codecs.decode_chunks(encoding, chunks)) == joined(parts)


@given(chunked(st.booleans(), st.lists(st.integers(0, 6), min_size=1, max_size=6)), SEEDS)
def test_lists_with_null_items(parts, seed: int | None) -> None:
    dimension = 3
    bits = [[bit for bit in part for bit in (bit, not bit, True)] for part in parts]
    items = [bytes(i % 256 for i in range(len(part) * dimension)) for part in parts]
    chunks = ref.chunks_of(
        [[ref.bitmap(bit), item] for bit, item in zip(bits, items, strict=True)],
        lengths(parts),
        seed,
    )
    encoding = ref.fixed_size_list(dimension, ref.flat(8), has_validity=True)
    block = codecs.decode_chunks(encoding, chunks)
    assert ref.booleans(block.validity, block.num_values * dimension) == joined(bits)
    assert block.items.data.tobytes() == b"".join(items)
