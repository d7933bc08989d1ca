"""Functions that make lists (values beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from tests.support.expressions import values_of

TABLE = pa.table({
    "l": pa.array([[1, 2, 3], None, [], [None, 5]], pa.list_(pa.int64())), "k": [1, 2, None, 3],
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("array_slice(l, 2, 3)", [[2, 3], None, [], [5]]),
        ("array_slice(l, -1, -1)", [[3], None, [], [5]]),
        ("array_append(l, k)", [[1, 2, 3, 1], [2], [None], [None, 5, 3]]),
        ("array_sort(l, 'DESC', 'NULLS LAST')", [[3, 2, 1], None, [], [5, None]]),
        ("array_resize(l, 2, 0)", [[1, 2], None, [0, 0], [None, 5]]),
        ("range(1, k)", [[], [1], None, [1, 2]]),
        ("range(5, k, -2)", [[5, 3], [5, 3], None, [5]]),
        ("make_array(k, 7)", [[1, 7], [2, 7], [None, 7], [3, 7]]),
    ],
)
def test_lists_are_made(text: str, values: list[object]) -> None:
    assert values_of(text, TABLE) == values


@pytest.mark.parametrize(
    "text",
    ["array_slice(k, 1, 2)", "array_sort(l, 'UP')", "range(1, 5, 0)",
     "array_repeat(1, 9999999)", "make_array()", "cardinality(make_array(l))"],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(text: str) -> None:
    with pytest.raises(PredicateError):
        values_of(text, TABLE)


LISTS = pa.table({
    "l": pa.array([[1, 2, 3], [], None, [4]], pa.list_(pa.int64())), "k": [1, 2, 1, None],
    "m": pa.array([[1, 2], [None], [1], [4, 0]], pa.list_(pa.int64())),
    "s": [{"x": 1, "y": [1]}, {"x": None, "y": None}, None, {"x": 2, "y": []}],
})  # fmt: skip


@pytest.mark.parametrize(("text", "values"), [
    ("array_slice(l, 3, 1, -1)", [[3, 2, 1], [], None, []]),
    ("array_slice(l, -1, -2, -1)", [[3, 2], [], None, []]),
    ("array_slice(l, -9, 1, -1)", [[1], [], None, [4]]),
    ("array_slice(l, 1, 3, k)", [[1, 2, 3], [], None, None]),
    ("array_remove_n(l, 1, NULL)", [[1, 2, 3], [], None, [4]]),
    ("array_remove_n(l, 1, k)", [[2, 3], [], None, [4]]),
    ("array_length(l, 1)", [3, 0, None, 1]), ("array_length(l, 2)", [None] * 4),
    ("array_length(l, k)", [3, None, None, None]), ("array_length(l, NULL)", [None] * 4),
    ("array_except(l, NULL)", [None] * 4), ("array_union(NULL, l)", [None] * 4),
    ("l < m", [False, True, None, True]), ("l >= m", [True, False, None, False]),
    ("l < [2]", [True, True, None, False]), ("s <= s", [True, True, None, True]),
    ("s < named_struct('x', 2, 'y', [0])", [True, True, None, True]),
])  # fmt: skip
def test_strides_counts_and_the_order_of_lists(text: str, values: list[object]) -> None:
    assert values_of(text, LISTS) == values


def test_a_stride_of_zero_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="array_slice: the stride is 0"):
        values_of("array_slice(l, 1, 2, 0)", LISTS)


def test_lengths_of_inner_lists_are_refused() -> None:
    table = pa.table({"ll": pa.array([[[1]]])})
    for text in ("array_length(ll, 2)", "array_length(ll, array_length(ll))"):
        with pytest.raises(PredicateError, match="dimension 1"):
            values_of(text, table)
    assert values_of("array_length(ll, 0)", table) == [None]


def test_maps_have_no_order() -> None:
    table = pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    with pytest.raises(PredicateError, match="have no order"):
        values_of("m < m", table)


def _slice(length: int, begin: int, end: int, stride: int) -> list[int]:
    """Slice the list 1, 2, ..., ``length`` as pylance 14.0.2 does."""
    numbers = list(range(1, length + 1))
    first = max(begin - 1 if begin > 0 else length + begin if begin < 0 else 0, 0)
    stop = min(length + end + 1 if end < 0 else end, length)
    if stride > 0:
        return numbers[first : max(stop, 0) : stride]
    if first >= length or stop <= 0:
        return []
    return [numbers[at] for at in range(first, stop - 2, stride)]


def test_slices_of_every_begin_end_and_stride() -> None:
    cases = list(product(range(4), range(-5, 6), range(-5, 6), (-3, -2, -1, 1, 2, 3)))
    lists = [list(range(1, length + 1)) for length, *_ in cases]
    columns = dict(
        zip("bes", (list(one) for one in list(zip(*cases, strict=True))[1:]), strict=True)
    )
    table = pa.table({"l": pa.array(lists, pa.list_(pa.int64())), **columns})
    found = values_of("array_slice(l, b, e, s)", table)
    assert found == [_slice(*case) for case in cases]
