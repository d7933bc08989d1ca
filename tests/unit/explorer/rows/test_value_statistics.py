"""Statistics of values are those of numpy; distinct values are estimated within their error."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lance_nb.explorer.rows.value_statistics import (
    QUANTILES,
    DistinctCount,
    OddValues,
    bar_counts,
    odd_values,
    quantiles,
    robust_range,
)

COUNT = 50_000
NUMBERS = np.arange(COUNT)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(NUMBERS),
        pa.array(NUMBERS.astype(np.uint64) * 2**40),
        pa.array(NUMBERS / 7),
        pa.array(NUMBERS.astype(np.float32)),
        pa.array([f"user {at}" for at in NUMBERS]),
        pa.array([f"{at:x}" for at in NUMBERS], pa.large_string()),
        pa.array(NUMBERS, pa.timestamp("us", "UTC")),
        pa.array(NUMBERS.astype(np.int32), pa.date32()),
        pa.array(NUMBERS).cast(pa.decimal128(22, 2)),
    ],
    ids=lambda values: str(values.type),
)
def test_distinct_values_of_every_type(values: pa.Array) -> None:
    sketch = DistinctCount()
    for start in range(0, COUNT, 9_000):
        sketch.add(values.slice(start, 10_000))  # parts overlap
    assert sketch.estimate() == pytest.approx(COUNT, rel=0.03)


@pytest.mark.parametrize("count", [0, 1, 2, 100, 5_000, 40_000, 200_000])
def test_the_error_is_small_at_every_size(count: int) -> None:
    errors = []
    for seed in range(8):
        sketch = DistinctCount()
        sketch.add(pa.array(np.random.default_rng(seed).integers(0, 2**62, count)))
        errors.append(sketch.estimate() - count)
    assert np.abs(errors).mean() <= 0.012 * count
    assert abs(np.mean(errors)) <= 0.01 * count


def test_texts_with_the_same_bytes_elsewhere_differ() -> None:
    sketch = DistinctCount()
    sketch.add(pa.array(["", "a", "b", "ab", "ba", "aa", "aab", "aba", "\0", "\0\0", "a"]))
    assert sketch.estimate() == 10


def test_equal_numbers_count_once() -> None:
    sketch = DistinctCount()
    sketch.add(pa.array([0.0, -0.0, math.nan, math.nan, math.inf]))
    assert sketch.estimate() == 3
    flags = DistinctCount()
    flags.add(pa.array([True, False, True]))
    assert flags.estimate() == 2


def test_odd_values_are_counted() -> None:
    values = pa.array([1.0, math.nan, math.inf, -math.inf, -math.inf])
    assert odd_values(values) == OddValues(1, 1, 2)
    assert odd_values(pa.array([1, 2])) == OddValues()


def test_the_range_of_a_histogram_leaves_out_outliers_only() -> None:
    even = np.arange(1000.0)
    assert robust_range(even) == (0.0, 999.0)
    low, high = robust_range(np.append(even, 1e9))
    assert low == 0.0
    assert 999 <= high < 2000
    assert robust_range(np.array([1.0, 1e9])) == (1.0, 1e9)  # too few
    assert robust_range(np.append(np.zeros(1000), 5.0)) == (0.0, 5.0)  # all are one value


FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(arrays(np.float64, st.integers(1, 60), elements=FINITE))
def test_quantiles_are_those_of_numpy(values: np.ndarray) -> None:
    found = quantiles(np.sort(values))
    expected = np.quantile(values, QUANTILES)
    scale = max(np.abs(values).max(), np.finfo(np.float64).tiny)
    np.testing.assert_allclose(found / scale, expected / scale, rtol=1e-12, atol=1e-12)


@given(arrays(np.float64, st.integers(0, 60), elements=FINITE), st.tuples(FINITE, FINITE))
def test_bars_count_every_value_between_the_edges_once(
    values: np.ndarray, ends: tuple[float, float]
) -> None:
    low, high = min(ends), max(ends)
    found = bar_counts(np.sort(values), (low, high), 20)
    top = high if high > low else low + 1
    assert found.sum() == ((values >= low) & (values <= top)).sum()
    assert found.size == (20 if high > low else 1)


def test_bars_are_those_of_numpy() -> None:
    values = np.random.default_rng(3).normal(size=5000)
    expected = np.histogram(values, 20, (-1.0, 2.0))[0]
    assert bar_counts(np.sort(values), (-1.0, 2.0), 20).tolist() == expected.tolist()
    most = np.finfo(np.float64).max
    assert bar_counts(np.array([-most, 0.0, most]), (-most, most), 4).tolist() == [1, 0, 1, 1]
