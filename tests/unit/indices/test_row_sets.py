"""Sets of rows as index files hold them: read, joined, and damaged ones refused."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from pyroaring import BitMap, BitMap64

from lance_nb.errors import LanceError, NotSupportedError
from lance_nb.indices.row_sets import common, joined, set64_rows, tree_map_rows, without

ROWS = [3, 9, 70_000, (5 << 32) + 1, (5 << 32) + 2, (9 << 32) + 4_000_000]


def tree_map(rows):
    fragments = sorted({one >> 32 for one in rows})
    parts = [struct.pack("<I", len(fragments))]
    for key in fragments:
        data = BitMap(one & 0xFFFFFFFF for one in rows if one >> 32 == key).serialize()
        parts += [struct.pack("<II", key, len(data)), data]
    return b"".join(parts)


FORMS = {
    "tree map": (tree_map_rows, tree_map),
    "64-bit set": (set64_rows, lambda rows: BitMap64(rows).serialize()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "rows", [[], [0], ROWS, list(range(70_000)), list(range(0, 300_000, 2))], ids=len
)
def test_sets_are_read(form, rows):
    read, write = FORMS[form]
    assert read(write(rows), "x").tolist() == rows


@pytest.mark.parametrize("form", FORMS)
def test_damaged_sets_are_refused(form):
    read, write = FORMS[form]
    data = write(ROWS)
    chance = random.Random(5)
    for length in range(len(data)):
        with pytest.raises(LanceError):
            read(data[:length], "x")
    with pytest.raises(LanceError):
        read(data + b"\0", "x")
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            found = read(bytes(damaged), "x")
        except LanceError:
            continue
        assert (found[1:] > found[:-1]).all()


def test_a_set_of_a_whole_fragment_is_not_read():
    with pytest.raises(NotSupportedError, match="all rows of a fragment"):
        tree_map_rows(struct.pack("<III", 1, 4, 0), "x")


def test_sets_are_joined_and_compared():
    one, other = np.array([1, 5, 9], np.uint64), np.array([2, 5, 10], np.uint64)
    nothing = np.array([], np.uint64)

    assert joined([one, other, nothing]).tolist() == [1, 2, 5, 9, 10]
    assert common(one, other).tolist() == [5]
    assert common(one, nothing).tolist() == common(nothing, one).tolist() == []
    assert without(one, other).tolist() == [1, 9]
    assert without(one, nothing).tolist() == [1, 5, 9]
    assert joined([np.array([5, 1, 5], np.uint64)]).tolist() == [1, 5]
