from __future__ import annotations

import math
import operator
import time

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import comparison

VALUES = [-math.nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan, None]  # in order
SIGNS = {
    comparison.equal: operator.eq, comparison.not_equal: operator.ne, comparison.less: operator.lt,
    comparison.less_equal: operator.le, comparison.greater: operator.gt,
    comparison.greater_equal: operator.ge,
}  # fmt: skip
PLACES = [None if value is None else place for place, value in enumerate(VALUES)]


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("kernel", SIGNS, ids=lambda kernel: kernel.__name__)
def test_columns_of_floats_are_compared_in_the_total_order(kernel, type_):
    left = pa.array([a for a in VALUES for _ in VALUES], type_)
    right = pa.array(VALUES * len(VALUES), type_)
    pairs = [(a, b) for a in PLACES for b in PLACES]
    wanted = [None if None in pair else SIGNS[kernel](*pair) for pair in pairs]

    assert kernel(left, right).to_pylist() == wanted
    assert kernel(pa.chunked_array([left[:7], left[7:]]), right).to_pylist() == wanted


@pytest.mark.parametrize("kernel", SIGNS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("literal", VALUES, ids=repr)
def test_a_literal_zero_equals_both_zeros_and_other_literals_have_the_total_order(kernel, literal):
    def place(value):
        return PLACES[VALUES.index(0.0)] if value == 0 else PLACES[VALUES.index(value)]

    column = pa.array(VALUES, pa.float64())
    scalar = pa.scalar(literal, pa.float64())
    places = [place(value) for value in VALUES] if literal == 0 else PLACES
    own = place(literal)
    sign = SIGNS[kernel]
    assert kernel(column, scalar).to_pylist() == [
        None if None in (own, one) else sign(one, own) for one in places
    ]
    assert kernel(scalar, column).to_pylist() == [
        None if None in (own, one) else sign(own, one) for one in places
    ]


@pytest.mark.parametrize("literal", VALUES[:-1], ids=repr)
@pytest.mark.parametrize("kernel", SIGNS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()], ids=str)
def test_nans_in_the_last_rows_of_a_sliced_chunk_are_placed_too(type_, kernel, literal):
    rows = [*range(70), None, *range(-70, 0), None, -0.0, 0.0, -math.nan, math.nan]
    array = pa.array(rows, type_)
    values = pa.chunked_array([array[3:50], array[50:50], array[50:]])
    ranks = _ranks(rows[3:], literal)
    own = ranks.pop()
    scalar = pa.scalar(literal, type_)

    sign = SIGNS[kernel]
    expected = [None if one is None else sign(one, own) for one in ranks]
    assert kernel(values, scalar).to_pylist() == expected
    expected = [None if one is None else sign(own, one) for one in ranks]
    assert kernel(scalar, values).to_pylist() == expected


def _ranks(rows, literal):
    """Replace the values, and the literal after them, by numbers in the total order."""

    def rank(value):
        if math.isnan(value):
            return (math.copysign(2, value), 0)
        return (0, value)  # -0.0 and 0.0 are the same

    return [None if one is None else rank(one) for one in [*rows, literal]]


def test_a_nan_equals_only_the_nan_of_the_same_bits():
    bits = pa.array([0x7FF8000000000000, 0x7FF8000000000001], pa.int64())
    nans = bits.view(pa.float64())

    assert comparison.equal(nans, nans).to_pylist() == [True, True]
    assert comparison.equal(nans, nans[0]).to_pylist() == [True, False]
    assert comparison.less(nans[0], nans).to_pylist() == [False, True]
    members = nans[1:]
    assert comparison.in_set(nans, members=members, has_null=False).to_pylist() == [False, True]


def test_lists_and_structs_are_the_same_when_their_floats_are():
    rows = pa.array([[math.nan], [0.0], [None], None])
    other = pa.array([[math.nan], [-0.0], [None], [1.0]])

    assert comparison.equal(rows, other).to_pylist() == [True, False, True, None]
    assert comparison.equal(rows[0], other[0]).as_py() is True
    assert comparison.equal(rows[1], other[1]).as_py() is False


def test_and_and_or_follow_three_valued_logic():
    a = pa.array([True] * 3 + [False] * 3 + [None] * 3)
    b = pa.array([True, False, None] * 3)

    assert comparison.all_of(a, b).to_pylist() == [
        True, False, None, False, False, False, None, False, None,
    ]  # fmt: skip
    assert comparison.any_of(a, b).to_pylist() == [
        True, True, True, True, False, None, True, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "negated", "found"),
    [
        (True, False, [True, False, False]),
        (True, True, [False, True, True]),
        (False, False, [False, True, False]),
        (False, True, [True, False, True]),
    ],
)
def test_is_true_and_is_false_are_never_null(wanted, negated, found):
    values = pa.array([True, False, None])

    assert comparison.is_truth(values, truth=wanted, negated=negated).to_pylist() == found


@pytest.mark.parametrize("has_null", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 50, None, 7, 3, -9, 10**12]),
        pa.chunked_array([pa.array([3]), pa.array([], pa.int64()), pa.array([None, 99])]),
        pa.array([0.0, -0.0, math.nan, None, 3.0]),
        pa.array([None, None], pa.int64()),
        pa.scalar(3),
    ],
)
def test_in_is_null_where_it_cannot_be_known(values, has_null):
    members = [0, 3, *range(40, 60)] if pa.types.is_integer(values.type) else [0.0, math.nan]
    scalar = isinstance(values, pa.Scalar)
    rows = [values.as_py()] if scalar else values.to_pylist()
    found = comparison.in_set(values, members=pa.array(members, values.type), has_null=has_null)

    def answer(row):
        if row is None:
            return None
        known = row in members or (isinstance(row, float) and math.isnan(row))
        return True if known else (None if has_null else False)

    assert ([found.as_py()] if scalar else found.to_pylist()) == [answer(row) for row in rows]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("a%", ["a", "ab", "a%b", "a\nb"]), ("%b", ["ab", "a%b", "a\nb", "a\\b"]),
        ("a_b", ["a%b", "a\nb", "a\\b"]), (r"a\%b", ["a%b"]), (r"a\\b", ["a\\b"]), (r"a\b", ["ab"]),
        ("a\\", []), ("", [""]), ("%", ["a", "ab", "a%b", "a\nb", "", "A", "a\\b"]), ("a.b", []),
    ],
)  # fmt: skip
def test_like_patterns_match_whole_texts(pattern, matches):
    texts = ["a", "ab", "a%b", "a\nb", "", "A", "a\\b"]
    wanted = {*matches, *(["a\\b"] if pattern == "a%" else [])}

    found = comparison.like(pa.array(texts), pa.scalar(pattern), ignore_case=False)
    by_row = comparison.like(pa.array(texts), pa.array([pattern] * 7), ignore_case=False)

    assert {text for text, hit in zip(texts, found.to_pylist(), strict=True) if hit} == wanted
    assert by_row.to_pylist() == found.to_pylist()


@pytest.mark.parametrize(
    ("pattern", "piece"),
    [
        ("%ab%", "ab"), (r"%a\%b%", "a%b"), (r"%a\\%", "a\\"), ("%%", ""), ("%", None),
        ("ab%", None), ("%ab", None), ("%a_b%", None), ("%a%b%", None), ("%ab%%", None),
        ("%ab\\%", None), ("", None), ("%\\", None),
    ],
)  # fmt: skip
def test_a_pattern_that_looks_for_a_piece_is_recognized(pattern, piece):
    assert comparison._contained_piece(pattern) == piece


def test_like_with_a_pattern_per_row_is_bounded(monkeypatch):
    monkeypatch.setattr(comparison, "PATTERNS_MAX", 2)
    texts = pa.array(["a", "b", "c"])

    with pytest.raises(PredicateError, match="different patterns"):
        comparison.like(texts, texts, ignore_case=False)


def test_like_takes_linear_time():
    texts = pa.array(["a" * 20_000] * 20)
    start = time.process_time()

    found = comparison.like(texts, pa.scalar("%a" * 15 + "%b"), ignore_case=False)

    assert found.to_pylist() == [False] * 20
    assert time.process_time() - start < 10
