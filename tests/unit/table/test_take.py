from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.table.projection import ROW_ADDRESS, ROW_OFFSET, project
from lance_nb.table.take import ranges_of, take_rows
from tests.golden.copies import expected
from tests.golden.opening import WatchedStore, snapshot_of


def take(snapshot, positions, columns=None, row_columns=()):
    return take_rows(snapshot, project(snapshot.manifest.schema, columns, row_columns), positions)


@pytest.mark.parametrize(
    "positions",
    [[0], [106], [0, 106], [106, 0], [5, 5, 5], [3, 1, 2, 1, 3], list(range(107)),
     list(reversed(range(107))), [66, 65, 67, 36, 35], [0] * 200],
    ids=lambda found: f"{len(found)}-{found[0]}",
)  # fmt: skip
def test_rows_come_in_the_order_asked_for_repeats_included(at, positions):
    wanted = expected("history", 9).take(pa.array(positions))
    assert take(at(9), positions).equals(wanted)


def test_random_positions_agree_with_the_whole_table(at):
    whole = expected("history", 4)
    rng = np.random.default_rng(11)
    for size in (1, 10, 300):
        positions = rng.integers(0, whole.num_rows, size)
        assert take(at(4), positions).equals(whole.take(pa.array(positions)))


@pytest.mark.parametrize(
    "positions",
    [[], (), np.zeros(0, np.int64), pa.array([], pa.uint64()), pa.chunked_array([], pa.int8())],
    ids=["list", "tuple", "numpy", "arrow", "chunked"],
)
def test_no_position_gives_no_row_and_the_whole_schema(at, positions):
    found = take(at(9), positions)
    assert found.num_rows == 0
    assert found.schema == take(at(9), [1]).schema


@pytest.mark.parametrize(
    "positions",
    [(1, 4), np.array([1, 4], np.uint8), pa.array([1, 4], pa.int32()), pa.chunked_array([[1], [4]]),
     range(1, 5, 3)],
    ids=["tuple", "numpy", "arrow", "chunked", "range"],
)  # fmt: skip
def test_positions_may_be_any_sequence_of_whole_numbers(at, positions):
    assert take(at(2), positions, ["id"])["id"].to_pylist() == [1, 4]


@pytest.mark.parametrize(
    ("positions", "row"),
    [([107], 107), ([0, 5000], 5000), ([-1], -1), ([3, -7, 2], -7), ([2**63 - 1], 2**63 - 1)],
)
def test_a_position_that_does_not_exist_is_refused_and_named(at, positions, row):
    with pytest.raises(
        InvalidInputError, match=f"row {row} does not exist; the dataset has 107 rows"
    ):
        take(at(9), positions)


@pytest.mark.parametrize(
    "positions",
    [[1.5], ["1"], [None], [[1]], [True], pa.array([1, None]), [2**70], np.zeros((2, 2), np.int64)],
    ids=["fraction", "text", "none", "list", "bool", "null", "huge", "two axes"],
)
def test_what_is_no_position_is_refused(at, positions):
    with pytest.raises(InvalidInputError):
        take(at(9), positions)


def test_an_empty_dataset_has_no_row_to_take(stores):
    with pytest.raises(InvalidInputError, match="0 rows"):
        take(snapshot_of(stores["empty"]), [0])


def test_row_columns_are_those_of_the_rows_taken(at):
    found = take(at(9), [66, 2, 36], ["id"], [ROW_OFFSET, ROW_ADDRESS])
    assert found[ROW_OFFSET].to_pylist() == [66, 2, 36]
    whole = take(at(9), range(107), ["id"], [ROW_ADDRESS])
    assert found[ROW_ADDRESS].to_pylist() == whole.take([66, 2, 36])[ROW_ADDRESS].to_pylist()


def test_each_fragment_is_read_once(history):
    store = WatchedStore(history)
    snapshot = snapshot_of(store, 2)
    store.forget()
    take(snapshot, [0, 50, 1, 51, 2, 52])
    assert max(store.reads.values()) == 1


@pytest.mark.parametrize(
    ("offsets", "ranges"),
    [
        ([4], [(4, 5)]),
        ([0, 1, 2], [(0, 3)]),
        ([0, 2, 3, 9], [(0, 1), (2, 4), (9, 10)]),
        ([5, 6, 1000], [(5, 6), (6, 7), (1000, 1001)]),  # far apart: not looked for
    ],
)
def test_offsets_are_joined_into_ranges(offsets, ranges):
    found = ranges_of(np.array(offsets, np.int64))
    assert list(zip(found.starts.tolist(), found.stops.tolist(), strict=True)) == ranges
