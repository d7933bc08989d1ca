"""Fragments counted in step are counted as one by one, and seldom one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format import fragment_counting
from lance_nb.format.fragment_counting import (
    BYTES,
    DELETED,
    DELETIONS,
    FEW_FRAGMENTS,
    FILES,
    ID,
    NUM_COLUMNS,
    ROUNDS_MAX,
    ROWS,
    count_all,
    count_one,
    varints,
)  # fmt: skip

NUMBERS = [0, 1, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21, 2**28, 2**32 - 1]


def fragment(seed: int) -> tuple[bytes, dict[int, int]]:
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
    parts = [fragment(seed) for seed in range(count)]
    found = count_all([raw for raw, _ in parts], "m")
    assert np.array_equal(found, expected_of(parts))
    for raw, expected in parts[:5]:
        assert count_one(raw, "m") == [expected[row] for row in range(NUM_COLUMNS)]


def test_many_ordinary_fragments_are_not_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [fragment(seed) for seed in range(FEW_FRAGMENTS)]

    def refuse(*_: Any) -> Any:
        raise AssertionError("parsed by itself")

    monkeypatch.setattr(fragment_counting, "count_one", refuse)
    plain = [(raw, one) for raw, one in parts if not one[DELETIONS]] * 4  # 2**63 is a long varint
    assert len(plain) >= FEW_FRAGMENTS
    assert np.array_equal(count_all([raw for raw, _ in plain], "m"), expected_of(plain))


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
    parts = [fragment(seed)[0] for seed in range(FEW_FRAGMENTS)]
    for place in (0, 30, len(parts)):
        found = count_all([*parts[:place], odd, *parts[place:]], "m")
        assert found[:, place].tolist() == count_one(odd, "m")
        assert np.array_equal(np.delete(found, place, 1), count_all(parts, "m"))


@pytest.mark.parametrize(
    "broken",
    [b"\x08", b"\x12\x05ab", b"\x08" + b"\xff" * 10 + b"\x01", b"\x20" + b"\xff" * 9 + b"\x01"],
    ids=["cut off", "too short", "no varint", "2**64 - 1 rows"],
)
@pytest.mark.parametrize("count", [0, FEW_FRAGMENTS])
def test_damage_is_an_error(broken: bytes, count: int) -> None:
    with pytest.raises(CorruptFileError):
        count_all([fragment(seed)[0] for seed in range(count)] + [broken], "m")


@pytest.mark.parametrize("value", [*NUMBERS, 2**35, 2**42, 2**49, 2**56, 2**62, 2**63 - 1])
def test_a_varint_of_up_to_nine_bytes_is_read(value: int) -> None:
    raw = bytearray()
    left = value
    while left >= 128:
        raw.append(left & 127 | 128)
        left >>= 7
    raw.append(left)
    data = np.frombuffer(b"\xff" + bytes(raw) + b"\x05" + bytes(16), np.uint8)
    values, after = varints(data, np.array([1, 1 + len(raw)]))
    assert values.tolist() == [value, 5]
    assert after.tolist() == [1 + len(raw), 2 + len(raw)]


def test_a_longer_varint_is_told() -> None:
    data = np.frombuffer(b"\x80" * 9 + b"\x01" + bytes(16), np.uint8)
    assert varints(data, np.array([0]))[0].tolist() == [-1]
