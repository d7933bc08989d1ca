"""Cutting and gathering blocks, against numpy and Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.base import (
    AllNull,
    Constant,
    DataBlock,
    Dictionary,
    FixedSizeList,
    FixedWidth,
    Ints,
    PackedStruct,
    Rows,
    VariableWidth,
)
from lance_nb.encodings.slicing import (
    expand_ranges,
    gather_ranges,
    merged,
    places_in,
    slice_block,
    split_at,
    take_block,
)
from tests.support.reading import positions_of, rows_of

COUNT = 37
RNG = np.random.default_rng(5)


def fixed(bits: int, count: int = COUNT) -> FixedWidth:
    data = RNG.integers(0, 256, -(-count * bits // 8), dtype=np.uint8)
    return FixedWidth(bits, count, data)


def texts(kind: str) -> VariableWidth:
    sizes = RNG.integers(0, 6, COUNT)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(kind)
    return VariableWidth(COUNT, offsets, RNG.integers(65, 90, int(offsets[-1]), dtype=np.uint8))


INDICES = FixedWidth(8, COUNT, RNG.integers(0, 5, COUNT, dtype=np.uint8))
VALIDITY = RNG.integers(0, 256, -(-COUNT * 3 // 8), dtype=np.uint8)
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
BLOCKS: dict[str, tuple[DataBlock, pa.DataType]] = {
    "bits": (fixed(1), pa.bool_()),
    "bytes": (fixed(8), pa.uint8()),
    "words": (fixed(64), pa.int64()),
    "odd width": (fixed(24), pa.binary(3)),
    "texts": (texts("<i4"), pa.string()),
    "large texts": (texts("<i8"), pa.large_string()),
    "vectors": (FixedSizeList(3, COUNT, fixed(32, COUNT * 3), None), pa.list_(pa.int32(), 3)),
    "vectors with nulls": (
        FixedSizeList(3, COUNT, fixed(32, COUNT * 3), VALIDITY),
        pa.list_(pa.int32(), 3),
    ),
    "vectors of bits": (
        FixedSizeList(3, COUNT, fixed(1, COUNT * 3), None),
        pa.list_(pa.bool_(), 3),
    ),
    "packed": (PackedStruct(COUNT, (fixed(32), texts("<i4"))), PAIR),
    "dictionary": (Dictionary(COUNT, INDICES, fixed(32, 5)), pa.int32()),
    "constant": (Constant(COUNT, fixed(32, 1)), pa.int32()),
    "nulls": (AllNull(COUNT), pa.int32()),
}


@pytest.mark.parametrize("name", BLOCKS)
@given(data=st.data())
def test_a_slice_is_that_part_of_the_array(name: str, data: Any) -> None:
    block, kind = BLOCKS[name]
    start = data.draw(st.integers(0, COUNT))
    stop = data.draw(st.integers(start, COUNT))
    cut = to_arrow(slice_block(block, start, stop), kind)
    cut.validate(full=True)
    assert cut.equals(to_arrow(block, kind).slice(start, stop - start))


@pytest.mark.parametrize("name", BLOCKS)
@given(positions=st.lists(st.integers(0, COUNT - 1), max_size=50))
def test_taken_values_are_those_of_the_array(name: str, positions: list[int]) -> None:
    block, kind = BLOCKS[name]
    taken = to_arrow(take_block(block, np.array(positions, np.int64)), kind)
    taken.validate(full=True)
    assert taken.equals(to_arrow(block, kind).take(pa.array(positions, pa.int64())))


@pytest.mark.parametrize("name", BLOCKS)
@given(cuts=st.sets(st.integers(0, COUNT), min_size=2))
def test_gathered_ranges_are_the_slices_in_a_row(name: str, cuts: set[int]) -> None:
    block, kind = BLOCKS[name]
    ordered = sorted(cuts)
    pairs = list(zip(ordered[::2], ordered[1::2], strict=False))
    starts, stops = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    whole = to_arrow(block, kind)
    expected = pa.concat_arrays([whole.slice(start, stop - start) for start, stop in pairs])
    assert to_arrow(gather_ranges(block, starts, stops), kind).equals(expected)


def test_no_ranges_gather_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    for block, kind in BLOCKS.values():
        assert len(to_arrow(gather_ranges(block, nothing, nothing), kind)) == 0


def test_a_whole_slice_is_the_block_itself() -> None:
    for block, _ in BLOCKS.values():
        assert slice_block(block, 0, COUNT) is block


def test_slices_of_bytes_are_views() -> None:
    block = fixed(32)
    cut = slice_block(block, 3, 9)
    assert isinstance(cut, FixedWidth)
    assert np.shares_memory(cut.data, block.data)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 20)), max_size=20))
def test_ranges_expand_to_every_integer(pairs: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in pairs], np.int64)
    stops = starts + np.array([size for _, size in pairs], np.int64)
    expected = [number for start, size in pairs for number in range(start, start + size)]
    assert expand_ranges(starts, stops).tolist() == expected


def test_bits_from_within_a_byte_fill_no_more_bytes_than_they_need() -> None:
    cut = slice_block(FixedWidth(1, 24, np.full(3, 255, np.uint8)), 3, 9)
    assert isinstance(cut, FixedWidth)
    assert cut.data.tolist() == [0b111111]


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def pairs(rows: Rows) -> list[tuple[int, int]]:
    return list(zip(rows.starts.tolist(), rows.stops.tolist(), strict=True))


def test_ranges_that_touch_or_overlap_are_joined() -> None:
    assert pairs(merged(ints(0, 2, 3, 9, 9), ints(2, 4, 5, 9, 10))) == [(0, 5), (9, 10)]
    assert pairs(merged(ints(4, 4), ints(4, 4))) == []
    assert pairs(merged(ints(), ints())) == []


def test_rows_are_found_among_the_ones_that_were_read() -> None:
    rows = rows_of((2, 4), (7, 9))

    assert places_in(rows, ints(2, 3, 7, 8)).tolist() == [0, 1, 2, 3]
    assert places_in(rows, ints(8, 3)).tolist() == [3, 1]


def test_rows_are_cut_at_the_ends_of_pages() -> None:
    found = split_at(rows_of((1, 2), (3, 12)), ints(4, 4, 10, 20))

    assert [(page, pairs(rows)) for page, rows in found] == [
        (0, [(1, 2), (3, 4)]),
        (2, [(0, 6)]),
        (3, [(0, 2)]),
    ]
    assert split_at(rows_of(), ints(4)) == []


def test_cuts_lose_no_row() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        lengths = rng.integers(0, 9, 12)
        ends = np.cumsum(lengths)
        total = int(ends[-1])
        count = int(rng.integers(0, total // 3 + 1))
        borders = np.sort(rng.choice(total + 1, 2 * count, replace=False)).astype(np.int64)
        rows = Rows(borders[::2], borders[1::2])
        found = [
            positions_of(part) + (ends[page] - lengths[page]) for page, part in split_at(rows, ends)
        ]
        joined = np.concatenate([*found, ints()])
        assert joined.tolist() == positions_of(rows).tolist()
