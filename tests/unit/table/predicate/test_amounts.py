"""What a filter would make is bounded before it is made, however many rows ask for it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.text_kernels import MADE_MAX, check_amounts

ROWS = 2000


def test_the_longest_and_the_sum_are_bounded() -> None:
    check_amounts(np.zeros(0, np.int64), 1, "a text")
    check_amounts(np.array([3, 4]), 4, "a text")
    with pytest.raises(pa.ArrowInvalid, match="a text of 5 is longer than allowed: at most 4"):
        check_amounts(np.array([3, 5]), 4, "a text")
    with pytest.raises(pa.ArrowInvalid, match="for each of 2 rows makes"):
        check_amounts(np.full(2, MADE_MAX // 2 + 1), MADE_MAX, "a text")


@pytest.mark.parametrize(
    "condition",
    [
        "array_length(array_repeat(n, 1000000)) > 1",
        "array_length(array_resize(l, 1000000)) > 1",
        "array_length(range(0, 1000000 + n)) > 1",
        "repeat(t, 1000000) = t",
        "repeat(t, 1000000 + n * 0) = t",
        "lpad(t, 1000000) = t",
        "rpad(t, 1000000, 'ab') = t",
    ],
)
def test_a_filter_that_would_fill_the_memory_is_refused_at_once(condition: str) -> None:
    table = pa.table({"n": range(ROWS), "l": [[1]] * ROWS, "t": ["x"] * ROWS})
    dataset = lance_nb.write_dataset(table, f"memory://amounts/{abs(hash(condition))}.lance")
    tracemalloc.start()
    with pytest.raises(PredicateError, match=r"for each of 2,000 rows makes 2,\d{3},\d{3},\d{3}"):
        dataset.count_rows(condition)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20
