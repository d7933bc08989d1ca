"""Functions that make lists (values beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

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
    ["array_slice(l, 1, 2, -1)", "array_slice(k, 1, 2)", "array_sort(l, 'UP')", "range(1, 5, 0)",
     "array_repeat(1, 9999999)", "make_array()", "cardinality(make_array(l))"],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(text: str) -> None:
    with pytest.raises(PredicateError):
        values_of(text, TABLE)
