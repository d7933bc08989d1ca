"""Many sets of rows at once: decoded as a reader of one bitmap decodes them, or refused."""

from __future__ import annotations

import random
import struct

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_nb.errors import CorruptFileError
from lance_nb.format import tree_maps
from lance_nb.format.tree_maps import parse_tree_maps

SETS = [
    [],
    [3, 9, 70_000, (5 << 32) + 1, (5 << 32) + 2, (9 << 32) + 4_000_000],
    [7],
    list(range(70_000)),
    list(range(0, 300_000, 2)),
    [*range(100, 200), *range(65_000, 66_000), *range(1 << 20, (1 << 20) + 9)],
    [(key << 32) + key for key in range(50)],
    [container << 16 for container in range(9)],
]


def serialize(rows: list[int], *, has_runs: bool = False) -> bytes:
    parts = [struct.pack("<I", len({row >> 32 for row in rows}))]
    for key in sorted({row >> 32 for row in rows}):
        bitmap = BitMap(row & 0xFFFFFFFF for row in rows if row >> 32 == key)
        if has_runs:
            bitmap.run_optimize()
        data = bitmap.serialize()
        parts += [struct.pack("<II", key, len(data)), data]
    return b"".join(parts)


def decode(sets: list[bytes | None], kind: pa.DataType | None = None) -> list[list[int]]:
    parsed = parse_tree_maps(pa.array(sets, kind or pa.binary()), "x")
    rows: list[list[int]] = [[] for _ in sets]
    for numbers, values in parsed.rows():
        for number, row in zip(numbers.tolist(), values.tolist(), strict=True):
            rows[number].append(row)
    return [sorted(values) for values in rows]


@pytest.mark.parametrize("round_sets", [0, 32])
@pytest.mark.parametrize("has_runs", [False, True])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_sets_of_every_shape_are_decoded(
    monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, has_runs: bool, round_sets: int
) -> None:
    monkeypatch.setattr(tree_maps, "_ROUND_SETS", round_sets)
    assert decode([serialize(rows, has_runs=has_runs) for rows in SETS], kind) == SETS


def test_no_set_is_empty_or_null() -> None:
    assert decode([None, b"", serialize([4]), None]) == [[], [], [4], []]
    assert decode([]) == []
    sliced = pa.array([serialize([1]), serialize([2]), serialize([3])])[1:2]
    assert [rows.tolist() for _, rows in parse_tree_maps(sliced, "x").rows()] == [[2]]


def test_pieces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_maps, "PIECE_ROWS", 1000)
    column = pa.array([serialize(list(range(number, 900, 7)), has_runs=True) for number in range(7)]
                      + [serialize(list(range(1 << 18)), has_runs=True)])  # fmt: skip
    sizes = [rows.size for _, rows in parse_tree_maps(column, "x").rows()]
    assert sum(sizes) == 900 + (1 << 18)
    assert max(sizes) == 1 << 16


@pytest.mark.parametrize(
    ("low", "high", "num_pieces"),
    [(0xFFFF, 1 << 20, 1), (0x10000, 1 << 20, 0), (0, 0, 1)],
)
def test_bounds_belong_to_the_rows_that_are_yielded(low: int, high: int, num_pieces: int) -> None:
    parsed = parse_tree_maps(pa.array([serialize([0, 0xFFFF])]), "x")
    assert len(list(parsed.rows(low, high))) == num_pieces


def test_containers_outside_of_the_bounds_are_left_out() -> None:
    column = pa.array([serialize([1, 70_000, 5 << 32]), serialize([6 << 32, 7 << 32])])
    parsed = parse_tree_maps(column, "x")
    rows = [row for _, values in parsed.rows(65_536, 6 << 32) for row in values.tolist()]
    assert sorted(rows) == [70_000, 5 << 32, 6 << 32]


def test_entries_of_whole_fragments_are_told_apart() -> None:
    column = pa.array([struct.pack("<III", 1, 4, 0), serialize([1])])
    parsed = parse_tree_maps(column, "x")
    assert (parsed.whole_sets.tolist(), parsed.whole_keys.tolist()) == ([0], [4])
    assert [rows.tolist() for _, rows in parsed.rows()] == [[1]]


@pytest.mark.parametrize("round_sets", [0, 32])
@pytest.mark.parametrize("has_runs", [False, True])
def test_damaged_sets_are_refused_or_ascend(
    monkeypatch: pytest.MonkeyPatch, has_runs: bool, round_sets: int
) -> None:
    monkeypatch.setattr(tree_maps, "_ROUND_SETS", round_sets)
    data = serialize([*SETS[1], *range(200, 300), 9 << 32], has_runs=has_runs)
    for length in range(1, len(data)):
        with pytest.raises(CorruptFileError):
            decode([data[:length]])
    with pytest.raises(CorruptFileError):
        decode([data + b"\0"])
    chance = random.Random(5)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            (rows,) = decode([bytes(damaged)])
        except CorruptFileError:
            refused += 1
            continue
        assert len(set(rows)) == len(rows)
        assert np.array(rows, np.uint64).size == len(rows)
    assert 200 < refused < 1500


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\1", "a set of rows, found 1 bytes"),
        (struct.pack("<III", 2, 1, 0), "2 entries in a set of rows, found 1"),
        (struct.pack("<III", 1, 1, 9) + b"123", "a bitmap of 9 bytes, found 3 bytes"),
        (serialize([1]) + b"..", "the end of a set of rows, found 2 bytes"),
        (struct.pack("<IIIII", 2, 1, 0, 1, 0), "each key of a set of rows once, found 1 twice"),
        (struct.pack("<IIII", 1, 1, 4, 99), "the cookie of a Roaring bitmap, found 99"),
        (struct.pack("<IIIII", 1, 1, 8, 12346, 1 << 17), "at most 65536 containers, found 131072"),
    ],
)
def test_errors_say_what_is_wrong(data: bytes, expected: str) -> None:
    with pytest.raises(CorruptFileError, match=expected):
        decode([data])
    with pytest.raises(CorruptFileError, match=expected):
        decode([data] * 40)
