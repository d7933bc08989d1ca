"""Fetching single values gives what decoding everything gives, in any order."""

from __future__ import annotations

import random
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.base import ValuePlaces
from lance_nb.encodings.registry import codecs
from lance_nb.errors import CorruptFileError, LanceError, NotSupportedError
from tests.property.encodings import reference_encoders as ref
from tests.support.damaged_chunks import damaged_chunks
from tests.support.examples import examples

SYMBOLS = [b"ab", b"c", b"defgh"]
TABLE = ref.symbol_table(SYMBOLS)
COUNTS = [1024, 1024, 700, 1024, 3]
TEXTS = [[string.ascii_letters[i % 9 : i % 17].encode() for i in range(n)] for n in COUNTS]
WIDTHS = [0, 5, 7, 3, 1]


def numbers(bits: int) -> list[list[int]]:
    return [
        [(i * 7919 + 3) % 2 ** min(width, bits) for i in range(n)]
        for n, width in zip(COUNTS, WIDTHS, strict=True)
    ]


def inline(bits: int):
    packed = [
        [ref.inline_chunk(part, bits, width)]
        for part, width in zip(numbers(bits), WIDTHS, strict=True)
    ]
    return ref.inline_bitpacking(bits), packed


def coded(values: list[bytes]) -> bytes:
    return ref.variable_chunk([ref.fsst_encode(value, SYMBOLS) for value in values])


CASES = {
    "flat32": (ref.flat(32), [[ref.to_words(part, 32)] for part in numbers(32)]),
    "flat24": (ref.flat(24), [[ref.to_words(part, 24)] for part in numbers(24)]),
    "bits": (ref.flat(1), [[ref.bitmap([v % 3 == 0 for v in part])] for part in numbers(16)]),
    "inline8": inline(8),
    "inline16": inline(16),
    "inline32": inline(32),
    "inline64": inline(64),
    "variable32": (ref.variable(), [[ref.variable_chunk(part)] for part in TEXTS]),
    "variable64": (ref.variable(64), [[ref.variable_chunk(part, 64)] for part in TEXTS]),
    "fsst": (ref.fsst(TABLE), [[coded(part)] for part in TEXTS]),
    "lists": (
        ref.fixed_size_list(2, ref.fixed_size_list(3, ref.flat(8))),
        [[bytes(i % 251 for i in range(n * 6))] for n in COUNTS],
    ),
    "packed": (
        ref.packed_struct([16, 8]),
        [[bytes(i % 251 for i in range(n * 3))] for n in COUNTS],
    ),
}


@pytest.mark.parametrize("name", CASES)
@examples(20)
@given(data=st.data(), seed=st.one_of(st.none(), st.integers(0, 99)))
def test_gathered_values_are_the_decoded_ones(name: str, data, seed: int | None) -> None:
    encoding, parts = CASES[name]
    chunks = ref.chunks_of(parts, COUNTS, seed)
    place = st.integers(0, len(COUNTS) - 1).flatmap(
        lambda chunk: st.tuples(st.just(chunk), st.integers(0, COUNTS[chunk] - 1))
    )
    places = data.draw(st.lists(place, max_size=30))
    pairs = np.array(places, np.int64).reshape(-1, 2)
    assert codecs.can_gather(encoding)
    found = ref.plain(codecs.gather(encoding, chunks, ValuePlaces(pairs[:, 0], pairs[:, 1])))
    everything = ref.split(ref.plain(codecs.decode_chunks(encoding, chunks)), COUNTS)
    assert found == [everything[chunk][position] for chunk, position in places]


def test_every_value_of_every_width_can_be_fetched() -> None:
    for bits in (8, 16, 32, 64):
        widths = list(range(bits + 1))
        values = [[(i * 0x9E3779B97F4A7C15) % 2**w for i in range(1024)] for w in widths]
        packed = [[ref.inline_chunk(v, bits, w)] for v, w in zip(values, widths, strict=True)]
        chunks = ref.chunks_of(packed, [1024] * len(widths))
        chance = random.Random(bits)
        order = [(chance.randrange(bits + 1), chance.randrange(1024)) for _ in range(5000)]
        pairs = np.array(order, np.int64)
        wanted = ValuePlaces(pairs[:, 0], pairs[:, 1])
        block = codecs.gather(ref.inline_bitpacking(bits), chunks, wanted)
        assert ref.integers(block) == [values[chunk][position] for chunk, position in order]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_every_value_can_be_fetched_where_all_chunks_have_the_same_width(bits: int) -> None:
    for width in sorted({0, 1, bits // 3, bits // 2 + 1, bits - 1, bits}):
        values = [(i * 0x9E3779B97F4A7C15) % 2**width for i in range(1024)]
        packed = [[ref.inline_chunk(values, bits, width)]] * 2
        chunks = ref.chunks_of(packed, [1024, 1024])
        order = np.random.default_rng(width).permutation(1024)
        wanted = ValuePlaces(np.arange(1024) % 2, order)
        block = codecs.gather(ref.inline_bitpacking(bits), chunks, wanted)
        assert ref.integers(block) == [values[position] for position in order]


def test_arms_without_single_values_say_so() -> None:
    wanted = ValuePlaces(np.zeros(1, np.int64), np.zeros(1, np.int64))
    for encoding in (
        ref.rle(8),
        ref.general(ref.LZ4, ref.flat(8)),
        ref.fixed_size_list(2, ref.flat(8), has_validity=True),
        ref.fixed_size_list(2, ref.flat(1)),
        ref.fsst(TABLE, ref.general(ref.LZ4, ref.variable())),
    ):
        assert not codecs.can_gather(encoding)
    with pytest.raises(NotSupportedError, match="single values"):
        codecs.gather(ref.rle(8), ref.chunks_of([[b"a", b"\1"]], [1]), wanted)


@pytest.mark.parametrize("place", [(-1, 0), (1, 0), (0, -1), (0, 4)])
def test_places_that_do_not_exist_are_refused(place: tuple[int, int]) -> None:
    wanted = ValuePlaces(np.array(place[:1]), np.array(place[1:]))
    with pytest.raises(CorruptFileError):
        codecs.gather(ref.flat(8), ref.chunks_of([[b"abcd"]], [4]), wanted)


@pytest.mark.parametrize("name", CASES)
def test_damaged_chunks_are_refused_or_read(name: str) -> None:
    encoding, parts = CASES[name]
    chance = random.Random(name)
    index = np.arange(len(COUNTS), dtype=np.int64).repeat(3)
    for _ in range(100):
        chunks = damaged_chunks(chance, ref.chunks_of(parts, COUNTS))
        most = np.maximum(chunks.num_values[index] - 1, 0)
        wanted = ValuePlaces(
            index, np.minimum(most, np.array([chance.randrange(1024) for _ in index]))
        )
        try:
            codecs.gather(encoding, chunks, wanted)
        except LanceError:
            continue
