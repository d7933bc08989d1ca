"""Serialized fragments: counts, plain ones, the field that holds them, base ids."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format import serialized_fragments
from lance_nb.format.fragment import Fragment
from lance_nb.format.manifest import parse_manifest
from lance_nb.format.serialized_fragments import (
    BYTES,
    DELETED,
    DELETIONS,
    FEW_FRAGMENTS,
    FILES,
    ID,
    NUM_COLUMNS,
    REUSED_FRAGMENTS_MIN,
    ROUNDS_MAX,
    ROWS,
    FragmentWire,
    Joined,
    count_fragment,
    count_fragments,
    decode_varints,
    field_entry,
    fragments_slice,
    largest_field_id,
    with_bases,
)  # fmt: skip
from tests.support.manifests import fragment, manifest

NUMBERS = [0, 1, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21, 2**28, 2**32 - 1]


def random_fragment(seed: int) -> tuple[bytes, dict[int, int]]:
    """Return a random fragment and what counts in it."""
    chance = random.Random(seed)
    made = pb.DataFragment(id=chance.choice(NUMBERS), physical_rows=chance.choice(NUMBERS))
    for number in range(chance.randrange(4)):
        file = made.files.add(path=f"{'x' * chance.choice([1, 150])}{number}.lance")
        file.fields.extend(range(chance.randrange(20)))
        file.file_major_version = 2
        file.file_size_bytes = chance.choice([*NUMBERS, 2**40])
    if chance.random() < 0.5:
        made.deletion_file.num_deleted_rows = chance.choice(NUMBERS)
        made.deletion_file.id = 2**63
    expected = {
        ID: made.id, ROWS: made.physical_rows, FILES: len(made.files),
        BYTES: sum(one.file_size_bytes for one in made.files),
        DELETIONS: int(made.HasField("deletion_file")),
        DELETED: made.deletion_file.num_deleted_rows,
    }  # fmt: skip
    return made.SerializeToString(), expected


def expected_of(parts: list[tuple[bytes, dict[int, int]]]) -> Any:
    return np.array([[one[row] for _, one in parts] for row in range(NUM_COLUMNS)])


@pytest.mark.parametrize("count", [1, FEW_FRAGMENTS - 1, FEW_FRAGMENTS, 3 * FEW_FRAGMENTS])
def test_every_number_is_counted(count: int) -> None:
    parts = [random_fragment(seed) for seed in range(count)]
    found = count_fragments([raw for raw, _ in parts], "m")
    assert np.array_equal(found, expected_of(parts))
    for raw, expected in parts[:5]:
        assert count_fragment(raw, "m") == [expected[row] for row in range(NUM_COLUMNS)]


def test_many_ordinary_fragments_are_not_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [random_fragment(seed) for seed in range(FEW_FRAGMENTS)]

    def refuse(*_: Any) -> Any:
        raise AssertionError("parsed by itself")

    monkeypatch.setattr(serialized_fragments, "count_fragment", refuse)
    plain = [(raw, one) for raw, one in parts if not one[DELETIONS]] * 4  # 2**63 is a long varint
    assert len(plain) >= FEW_FRAGMENTS
    assert np.array_equal(count_fragments([raw for raw, _ in plain], "m"), expected_of(plain))


@pytest.mark.parametrize(
    "odd",
    [
        pb.DataFragment(id=7).SerializeToString() + b"\x82\x01\x01x",  # field 16
        pb.DataFragment(id=7).SerializeToString() + b"\x4d\x00\x00\x00\x00",  # 32 bits
        b"\x08\x07" * (ROUNDS_MAX + 1),
        pb.DataFragment(id=7, files=[pb.DataFile(file_size_bytes=2**48)] * 3).SerializeToString(),
        pb.DataFragment(
            id=7, files=[pb.DataFile(path="x", fields=[1] * 3)] + [pb.DataFile()] * 50
        ).SerializeToString(),
        b"\x08\x01\x08\x07",  # the last value counts
        b"",
    ],
    ids=["field 16", "32 bits", "many fields", "large sizes", "many files", "twice", "empty"],
)
def test_unusual_fragments_are_counted_among_others(odd: bytes) -> None:
    parts = [random_fragment(seed)[0] for seed in range(FEW_FRAGMENTS)]
    for place in (0, 30, len(parts)):
        found = count_fragments([*parts[:place], odd, *parts[place:]], "m")
        assert found[:, place].tolist() == count_fragment(odd, "m")
        assert np.array_equal(np.delete(found, place, 1), count_fragments(parts, "m"))


@pytest.mark.parametrize(
    "broken",
    [b"\x08", b"\x12\x05ab", b"\x08" + b"\xff" * 10 + b"\x01", b"\x20" + b"\xff" * 9 + b"\x01"],
    ids=["cut off", "too short", "no varint", "2**64 - 1 rows"],
)
@pytest.mark.parametrize("count", [0, FEW_FRAGMENTS])
def test_damage_is_an_error(broken: bytes, count: int) -> None:
    with pytest.raises(CorruptFileError):
        count_fragments([random_fragment(seed)[0] for seed in range(count)] + [broken], "m")


@pytest.mark.parametrize("value", [*NUMBERS, 2**35, 2**42, 2**49, 2**56, 2**62, 2**63 - 1])
def test_a_varint_of_up_to_nine_bytes_is_read(value: int) -> None:
    raw = bytearray()
    left = value
    while left >= 128:
        raw.append(left & 127 | 128)
        left >>= 7
    raw.append(left)
    data = np.frombuffer(b"\xff" + bytes(raw) + b"\x05" + bytes(16), np.uint8)
    values, after = decode_varints(data, np.array([1, 1 + len(raw)]))
    assert values.tolist() == [value, 5]
    assert after.tolist() == [1 + len(raw), 2 + len(raw)]


def test_a_longer_varint_is_reported() -> None:
    data = np.frombuffer(b"\x80" * 9 + b"\x01" + bytes(16), np.uint8)
    assert decode_varints(data, np.array([0]))[0].tolist() == [-1]


RAW = [fragment(n, 1000 + n).to_bytes() for n in range(3 * REUSED_FRAGMENTS_MIN)]


def _message(raw, **fields) -> bytes:
    return pb.Manifest(fragments=raw, **fields).SerializeToString()


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000])
def test_an_entry_is_what_protobuf_writes(size: int):
    assert field_entry(b"x" * size) == _message([b"x" * size])


def test_the_slice_between_schema_and_version_is_found():
    built = replace(manifest(200), unknown=b"").to_pb()
    data = built.SerializeToString(deterministic=True)
    found = fragments_slice(memoryview(data))
    assert bytes(found) == _message(list(built.fragments))
    assert data.count(bytes(found)) == 1


@pytest.mark.parametrize(
    ("count", "shared"), [(REUSED_FRAGMENTS_MIN - 1, False), (REUSED_FRAGMENTS_MIN, True)]
)
def test_many_fragments_are_taken_from_the_message_as_they_lie(count: int, shared: bool):
    data = _message(RAW[:count], version=7)
    first, tail = FragmentWire(RAW[:count], data).pieces()
    assert bytes(first) == _message(RAW[:count])
    assert (isinstance(first, memoryview) and first.obj is data) is shared
    assert tail == b""


def test_offsets_that_are_zero_do_not_hide_it():
    data = _message(RAW, version=3, index_section=0, transaction_section=0)
    assert bytes(fragments_slice(memoryview(data))) == _message(RAW)


def test_a_message_in_another_order_is_serialized_fragment_by_fragment():
    data = pb.Manifest(version=3).SerializeToString() + _message(RAW) + _message([], tag="t")
    assert fragments_slice(memoryview(data)) is None
    assert b"".join(FragmentWire(RAW, data).pieces()) == _message(RAW)


def test_fragments_in_two_slices_are_not_mistaken_for_one():
    data = _message(RAW[:100]) + _message([], version=9) + _message(RAW[100:])
    assert b"".join(FragmentWire(RAW, data).pieces()) == _message(RAW)


@pytest.mark.parametrize("count", [0, 1, REUSED_FRAGMENTS_MIN, len(RAW)])
def test_others_follow(count: int):
    data = _message(RAW[:count], version=7)
    wire = FragmentWire(RAW[:count], data).followed_by([b"a"]).followed_by([b"b", b"c"])
    assert b"".join(wire.pieces()) == _message([*RAW[:count], b"a", b"b", b"c"])


def test_the_slice_is_searched_once_however_often_others_follow(
    monkeypatch: pytest.MonkeyPatch,
):
    wire = FragmentWire(RAW, _message(RAW, version=7))
    wire.pieces()
    monkeypatch.setattr("lance_nb.format.serialized_fragments.fragments_slice", None)
    for name in (b"a", b"b"):
        wire = wire.followed_by([name])
        wire.pieces()
    assert b"".join(wire.pieces()) == _message([*RAW, b"a", b"b"])


def test_a_manifest_grown_by_appending_is_written_as_if_built_anew():
    data = replace(manifest(300), unknown=b"").to_bytes()
    read = parse_manifest(data, "x")
    more = [fragment(n, 10) for n in range(301, 304)]
    grown = read.fragments.appended(more)
    anew = replace(read, fragments=type(grown)(list(grown.raw)))
    assert replace(read, fragments=grown).to_bytes() == anew.to_bytes()
    assert grown == anew.fragments
    assert [one.id for one in grown[-2:]] == [302, 303]
    assert grown.counts().ids.tolist() == anew.fragments.counts().ids.tolist()


def test_a_list_that_grows_by_every_commit_does_not_grow_deeper():
    grown = parse_manifest(replace(manifest(3), unknown=b"").to_bytes(), "x").fragments
    for n in range(4, 3000):
        grown = grown.appended([fragment(n, 10)])
    assert len(grown) == 3000
    assert [one.id for one in grown[-2:]] == [2998, 2999]
    assert b"".join(grown.wire()) == _message(list(grown.raw))


def test_joined_is_a_sequence():
    joined = Joined([b"a", b"b"], [b"c"])
    assert (len(joined), list(joined), joined[2], joined[-1], joined[0]) == (
        3,
        [b"a", b"b", b"c"],
        b"c",
        b"c",
        b"a",
    )
    assert list(joined[1:]) == [b"b", b"c"]
    with pytest.raises(IndexError):
        joined[3]


def _with(one: Fragment, base_id: int | None) -> Fragment:
    files = tuple(replace(file, base_id=base_id) for file in one.files)
    deletion = one.deletion_file and replace(one.deletion_file, base_id=base_id)
    return replace(one, files=files, deletion_file=deletion)


def test_ids_are_set_exchanged_and_taken_away() -> None:
    rich = fragment(7, rows=10, deleted=2, files=2)
    bare, zero, other = (_with(rich, number) for number in (None, 0, 5))

    assert with_bases([bare.to_bytes()], {None: 0}) == [zero.to_bytes()]
    assert with_bases([zero.to_bytes()], {0: None}) == [bare.to_bytes()]
    assert with_bases([zero.to_bytes(), other.to_bytes()], {0: 5}) == [other.to_bytes()] * 2
    assert with_bases([bare.to_bytes()], {0: 5}) == [bare.to_bytes()]


def by_parser(raw: list[bytes]) -> int:
    messages = map(pb.DataFragment.FromString, raw)
    return max((max(file.fields, default=-1) for one in messages for file in one.files), default=-1)


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_field_id_is_found_without_decoding(seed: int) -> None:
    chance = random.Random(seed)
    raw = []
    for at in range(chance.choice((0, 1, 5, 200))):
        message = pb.DataFragment(id=at, physical_rows=chance.choice(NUMBERS[:5]))
        for _ in range(chance.randrange(3)):
            ids = [
                chance.choice((-2, 0, 1, 127, 128, 300 + seed)) for _ in range(chance.randrange(5))
            ]
            message.files.append(pb.DataFile(path="x" * chance.randrange(300), fields=ids))
        raw.append(message.SerializeToString())
    assert largest_field_id(raw, "") == by_parser(raw)


def test_field_ids_in_unusual_bytes_are_found() -> None:
    file = pb.DataFile(path="a", fields=[3]).SerializeToString()
    single = b"\x10\x05\x10" + b"\xfe" + b"\xff" * 8 + b"\x01"  # not packed: 5 and -2
    unknown = b"\xf2\x07\x01z"  # a field of two tag bytes, which the walk leaves to the parser
    later = b"\x12\x01\x09"  # a second packed list
    for tail, expected in ((b"", 3), (single, 5), (unknown, 3), (later, 9), (unknown + later, 9)):
        inner = file + tail
        raw = [b"\x08\x01\x12" + bytes([len(inner)]) + inner]
        assert largest_field_id(raw, "") == by_parser(raw) == expected
    for broken in (b"\x12\x05a", b"\x12\x03\x12\x05a"):
        with pytest.raises(CorruptFileError):
            largest_field_id([broken], "m.manifest")
