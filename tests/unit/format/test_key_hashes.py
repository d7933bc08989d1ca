"""XXH64 of keys, for all rows at once."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import NotSupportedError
from lance_nb.format.key_hashes import hash_keys, is_shared

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
