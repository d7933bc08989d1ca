"""Filters of inserted keys, and the XXH64 of many keys at once."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import NotSupportedError
from lance_nb.format.bfloat16 import BFloat16Type
from lance_nb.format.key_filter import KeyFilter, hash_keys, is_shared


def bloom(*blocks: int) -> KeyFilter:
    """Return a filter of four blocks; one bit is set in each word of the given ones."""
    words = np.zeros((4, 8), "<u4")
    for block in blocks:
        words[block] = 1 << block
    return KeyFilter((0,), bitmap=words.tobytes(), parameters=(1024, 10, 0.01))


def test_exact_hashes_overlap_if_one_is_in_both() -> None:
    assert KeyFilter((0,), (1, 2)).may_overlap(KeyFilter((0,), (2, 3)))
    assert not KeyFilter((0,), (1, 2)).may_overlap(KeyFilter((0,), (3,)))


def test_bloom_filters_overlap_if_all_words_of_a_block_do() -> None:
    assert bloom(0, 1).may_overlap(bloom(1, 2))
    assert not bloom(0, 1).may_overlap(bloom(2, 3))
    words = np.frombuffer(bloom(1).bitmap, "<u4").copy()
    words[8] = 0  # a key sets a bit in every word of its block, so none can be here
    assert not bloom(1).may_overlap(replace(bloom(1), bitmap=words.tobytes()))


def test_what_cannot_be_compared_may_overlap() -> None:
    exact = KeyFilter((0,), (1,))
    for other in (
        KeyFilter((1,), (2,)),
        KeyFilter((0,)),
        bloom(3),
        replace(bloom(3), parameters=(1024, 11, 0.01)),
        replace(bloom(3), bitmap=b"odd"),
    ):
        assert exact.may_overlap(other)
    assert bloom(0).may_overlap(replace(bloom(3), parameters=(1024, 11, 0.01)))
    assert bloom(0).may_overlap(replace(bloom(3), bitmap=b""))
    odd = replace(bloom(0), bitmap=b"odd")
    assert odd.may_overlap(odd)


def test_both_forms_are_read_back() -> None:
    for one in (KeyFilter((0, 3), (5, 6)), KeyFilter((), ()), bloom(2), KeyFilter((1,))):
        assert KeyFilter.from_pb(one.to_pb()) == one


def test_keys_set_the_bits_that_pylance_sets() -> None:
    made = KeyFilter.of_keys([0], [pa.array([5], pa.int64())])
    bits = np.flatnonzero(np.unpackbits(np.frombuffer(made.bitmap, np.uint8), bitorder="little"))
    assert bits.tolist() == [140815, 140843, 140872, 140923, 140936, 140974, 140998, 141046]
    assert made.parameters == (262144, 8192, 0.00057)
    texts = KeyFilter.of_keys([1], [pa.array(["x"])])
    bits = np.flatnonzero(np.unpackbits(np.frombuffer(texts.bitmap, np.uint8), bitorder="little"))
    assert len(bits) == 8


def test_filters_of_keys_overlap_where_a_key_is_in_both() -> None:
    def made(*keys: int) -> KeyFilter:
        return KeyFilter.of_keys([0], [pa.array(keys, pa.int64())])

    assert made(1, 2).may_overlap(made(2, 3))
    assert not made(1, 2).may_overlap(made(3, 4))
    assert not made().may_overlap(made(1))


def test_keys_that_pylance_does_not_hash_overlap_with_every_filter_of_its() -> None:
    def times(*keys: int) -> KeyFilter:
        return KeyFilter.of_keys([0], [pa.array(keys, pa.timestamp("us"))])

    assert times(1, 2).may_overlap(times(2))
    assert not times(1, 2).may_overlap(times(3))
    empty = KeyFilter.of_keys([0], [pa.array([], pa.int64())])
    assert empty.bitmap is not None
    assert times(1).may_overlap(empty)


def test_equal_words_of_dictionaries_are_one_key() -> None:
    one = pa.array(["a", "b"]).dictionary_encode()
    other = pa.array(["b", "c"]).dictionary_encode()
    assert KeyFilter.of_keys([0], [one]).may_overlap(KeyFilter.of_keys([0], [other]))
    fresh = pa.array(["c"]).dictionary_encode()
    assert not KeyFilter.of_keys([0], [one]).may_overlap(KeyFilter.of_keys([0], [fresh]))


def test_too_many_keys_of_such_types_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.format.key_filter.EXACT_MAX", 2)
    many = KeyFilter.of_keys([0], [pa.array([1.0, 2.0, 3.0])])
    few = KeyFilter.of_keys([0], [pa.array([7.0])])
    assert many.hashes is None
    assert many.may_overlap(few)
    assert KeyFilter.from_pb(many.to_pb()) == many


@pytest.mark.parametrize(("count", "exact"), [(100_000, True), (100_001, False)])
def test_a_hundred_thousand_keys_are_reported_exactly(count: int, exact: bool) -> None:
    made = KeyFilter.of_keys([0], [pa.array(range(count), pa.timestamp("us"))])
    assert (made.hashes is not None) is exact
    half = KeyFilter((0,), tuple(range(count // 2)))
    rest = KeyFilter((0,), tuple(range(count // 2, count)))
    assert (KeyFilter.united([half, rest]).hashes is not None) is exact


def test_united_filters_hold_the_keys_of_all() -> None:
    one, other = bloom(0), bloom(2, 3)
    both = KeyFilter.united([one, other])
    assert both == bloom(0, 2, 3)
    assert KeyFilter.united([one]) == one
    exact = KeyFilter.united([KeyFilter((0,), (5, 1)), KeyFilter((0,), (3, 5))])
    assert exact == KeyFilter((0,), (1, 3, 5))


@pytest.mark.parametrize(
    "filters",
    [
        [bloom(0), KeyFilter((0,), (1,))],
        [bloom(0), replace(bloom(1), parameters=(1024, 11, 0.01))],
        [bloom(0), replace(bloom(1), field_ids=(1,))],
        [bloom(0), replace(bloom(1), bitmap=bytes(64))],
        [KeyFilter((0,), (1,)), KeyFilter((1,), (1,))],
        [KeyFilter((0,), (1,)), KeyFilter((0,))],
        [KeyFilter((0,))],
    ],
    ids=["two kinds", "two parameters", "two keys", "two lengths", "two exact keys", "one silent",
         "silent"],
)  # fmt: skip
def test_filters_that_do_not_fit_together_say_nothing(filters: list[KeyFilter]) -> None:
    made = KeyFilter.united(filters)
    assert made == KeyFilter(filters[0].field_ids)
    assert made.may_overlap(KeyFilter((0,), (99,)))


@pytest.mark.parametrize(("limit", "hashes"), [(3, (1, 2, 3)), (2, None)])
def test_too_many_united_keys_say_nothing(
    monkeypatch: pytest.MonkeyPatch, limit: int, hashes: tuple[int, ...] | None
) -> None:
    monkeypatch.setattr("lance_nb.format.key_filter.EXACT_MAX", limit)
    made = KeyFilter.united([KeyFilter((0,), (1, 2)), KeyFilter((0,), (3,))])
    assert made.hashes == hashes


def test_values_behind_an_extension_type_are_the_keys() -> None:
    plain = pa.array([b"ab", b"cd"], pa.binary(2))
    wrapped = pa.ExtensionArray.from_storage(BFloat16Type(), plain)
    made = KeyFilter.of_keys([0], [wrapped])
    assert made.hashes is not None
    again = pa.ExtensionArray.from_storage(BFloat16Type(), plain[1:])
    assert made.may_overlap(KeyFilter.of_keys([0], [again]))


def test_keys_of_lists_say_nothing() -> None:
    assert KeyFilter.of_keys([0], [pa.array([[1]])]) == KeyFilter((0,))


# From the xxHash specification's reference implementation, seed 0.
KNOWN = {
    "": 0xEF46DB3751D8E999,
    "a": 0xD24EC4F1A98C6E5B,
    "abc": 0x44BC2CF5AD770999,
    "Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


def test_texts_of_any_length_hash_as_the_reference_does() -> None:
    texts = list(KNOWN)
    for type_ in (pa.string(), pa.large_string(), pa.binary()):
        assert hash_keys([pa.array(texts, type_)]).tolist() == list(KNOWN.values())
    one_by_one = [hash_keys([pa.array([text])])[0] for text in texts]
    assert one_by_one == list(KNOWN.values())


def test_a_slice_hashes_like_its_values() -> None:
    texts = [f"{'x' * n}{n}" for n in range(70)]
    whole = hash_keys([pa.array(texts)])
    assert hash_keys([pa.array(texts).slice(31, 9)]).tolist() == whole[31:40].tolist()
    numbers = pa.array(range(50), pa.int32())
    assert hash_keys([numbers.slice(7)]).tolist() == hash_keys([numbers])[7:].tolist()


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint32(), pa.uint64()], ids=str)
def test_integers_are_eight_bytes_whatever_their_width(kind: pa.DataType) -> None:
    numbers = [0, 1, 2**31 - 1]
    raw = pa.array([struct.pack("<q", one) for one in numbers], pa.binary())
    assert hash_keys([pa.array(numbers, kind)]).tolist() == hash_keys([raw]).tolist()


def test_parts_of_a_key_are_followed_by_a_zero_byte() -> None:
    columns = [pa.array(["k", ""]), pa.array([5, 6], pa.int64())]
    joined = [b"k\0" + struct.pack("<q", 5) + b"\0", b"\0" + struct.pack("<q", 6) + b"\0"]
    assert hash_keys(columns).tolist() == hash_keys([pa.array(joined)]).tolist()


def test_no_rows_have_no_hashes() -> None:
    assert not hash_keys([pa.array([], pa.string())]).size
    assert not hash_keys([pa.array([], pa.int64()), pa.array([], pa.string())]).size


def test_other_types_hash_by_their_bytes() -> None:
    times = pa.array([1, 2, 1], pa.timestamp("us"))
    hashes = hash_keys([times])
    assert hashes[0] == hashes[2] != hashes[1]
    assert len(np.unique(hash_keys([pa.array([True, False])]))) == 2
    with pytest.raises(NotSupportedError, match="list"):
        hash_keys([pa.array([[1]])])


def test_only_some_types_are_hashed_by_pylance() -> None:
    assert all(map(is_shared, (pa.int32(), pa.uint64(), pa.string(), pa.large_binary())))
    others = (pa.int16(), pa.float64(), pa.timestamp("us"), pa.decimal128(10, 2), pa.date32())
    assert not any(map(is_shared, others))


def _reference(data: bytes) -> int:
    """Return the XXH64 of some bytes with seed 0, step by step as the specification has it."""
    mask = 2**64 - 1
    p1, p2, p3, p4, p5 = (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )  # fmt: skip

    def turn(value: int, bits: int) -> int:
        value &= mask
        return (value << bits | value >> 64 - bits) & mask

    def mix(lane: int, word: int) -> int:
        return turn(lane + word * p2, 31) * p1 & mask

    at, value = 0, p5
    if len(data) >= 32:
        lanes = [p1 + p2, p2, 0, -p1]
        while len(data) - at >= 32:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [mix(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        value = sum(map(turn, lanes, (1, 7, 12, 18)))
        for lane in lanes:
            value = (value ^ mix(0, lane)) * p1 + p4
    value += len(data)
    while len(data) - at >= 8:
        value = turn(value ^ mix(0, *struct.unpack_from("<Q", data, at)), 27) * p1 + p4
        at += 8
    if len(data) - at >= 4:
        value = turn(value ^ struct.unpack_from("<I", data, at)[0] * p1, 23) * p2 + p3
        at += 4
    for one in data[at:]:
        value = turn(value ^ one * p5, 11) * p1
    value &= mask
    value = (value ^ value >> 33) * p2 & mask
    value = (value ^ value >> 29) * p3 & mask
    return value ^ value >> 32


def test_every_length_takes_each_part_of_the_bytes_once() -> None:
    assert [_reference(text.encode()) for text in KNOWN] == list(KNOWN.values())
    random = np.random.default_rng(3)
    items = [random.bytes(length) for length in range(110)]
    expected = [_reference(one) for one in items]
    assert hash_keys([pa.array(items, pa.binary())]).tolist() == expected
    assert hash_keys([pa.array(items[:0:-1], pa.binary())]).tolist() == expected[:0:-1]


def test_one_column_of_narrow_numbers_is_hashed_without_a_separator() -> None:
    values = [0.0, 1.5, -7.0]
    texts = [struct.pack("<f", value) for value in values]

    hashes = hash_keys([pa.array(values, pa.float32())])

    assert hashes.tolist() == hash_keys([pa.array(texts, pa.binary())]).tolist()
