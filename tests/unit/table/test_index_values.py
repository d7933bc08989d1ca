"""Zones and sets of keys against values: what is outside is found, null and NaN are left alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.table.index_values import U64s, Zones, row_under_other_key

SECOND = 1 << 32


def u64(*rows: int) -> U64s:
    return np.array(rows, np.uint64)


@pytest.fixture
def zones() -> Zones:
    """Return rows 5 to 9 of fragment 0 and rows 0 to 3 of fragment 1, in the other order."""
    return Zones.of(
        {
            "fragment_id": pa.array([1, 0], pa.uint64()),
            "zone_start": pa.array([0, 5], pa.uint64()),
            "zone_length": pa.array([4, 5], pa.uint64()),
            "min": pa.array([None, 10]),
            "max": pa.array([None, 20]),
        }
    )


def test_a_row_is_in_the_zone_that_it_lies_in(zones: Zones) -> None:
    rows = u64(4, 5, 9, 10, SECOND, SECOND | 3, SECOND | 4)

    assert zones.at(rows).tolist() == [-1, 0, 0, -1, 1, 1, -1]


@pytest.mark.parametrize(
    ("value", "row", "found"),
    [(10, 5, None), (20, 9, None), (9, 5, 5), (21, 9, 9), (None, 6, None), (99, SECOND, None),
     (99, 4, None)],
)  # fmt: skip
def test_a_value_outside_of_its_zone_is_found(
    zones: Zones, value: int | None, row: int, found: int | None
) -> None:
    assert zones.row_outside(pa.array([15, value], pa.int64()), u64(5, row)) == found


def test_only_numbers_and_times_of_the_same_type_are_compared(zones: Zones) -> None:
    assert zones.compares(pa.int64())
    assert not any(map(zones.compares, (pa.int32(), pa.string(), pa.bool_(), pa.float64())))
    assert not Zones(u64(), u64()).compares(pa.int64())


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (pa.array(["a", "b", "a"]), None),
        (pa.array(["a", "a", "a"]), 8),
        (pa.array(["a", None, "a"]), None),
        (pa.array(["a", "b", "new"]), 9),
        (pa.array([["a"], ["b", "b"], ["a"]]), None),
        (pa.array([["a"], [], ["a", "b"]]), 9),
        (pa.array([["a"], None, [None]]), None),
    ],
)
def test_a_row_that_is_not_in_the_set_of_its_value_is_found(
    values: pa.Array, found: int | None
) -> None:
    keys = {"a": u64(7, 9), "b": u64(8), "gone": u64(1)}

    assert row_under_other_key(keys, values, u64(7, 8, 9)) == found


def test_nan_is_equal_to_nothing_and_left_alone() -> None:
    values = pa.array([float("nan"), 1.0])

    assert row_under_other_key({1.0: u64(4)}, values, u64(3, 4)) is None
    assert row_under_other_key({1.0: u64(3)}, values, u64(3, 4)) == 4
