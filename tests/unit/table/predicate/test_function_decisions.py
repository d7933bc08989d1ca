"""Places, days and patterns: the bounds inside functions that SQL knows by name."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import compile_column
from lance_nb.table.predicate.functions import FUNCTIONS, call_of
from tests.support.expressions import values_of

_SUNDAY = datetime(2021, 1, 3, 5, 6, 7, 123456)  # noqa: DTZ001
TABLE = pa.table({
    "l": pa.array([[1, 2], None, [], [5, 6, 7]], pa.list_(pa.int64())),
    "s": ["x(b", None, "xb", "y(b)"],
})  # fmt: skip
TIMES = pa.table({"t": pa.array([_SUNDAY + timedelta(days=day) for day in range(7)])})


@pytest.mark.parametrize(
    ("place", "values"),
    [
        (1, [1, None, None, 5]), (2, [2, None, None, 6]), (3, [None, None, None, 7]),
        (4, [None] * 4), (0, [None] * 4), (-1, [2, None, None, 7]), (-2, [1, None, None, 6]),
        (-3, [None, None, None, 5]), (-4, [None] * 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "call", ["l[{}]", "array_element(l, {})", "list_element(l, {})", "array_extract(l, {})",
             "list_extract(l, {})"],
)  # fmt: skip
def test_items_are_counted_from_both_ends(call: str, place: int, values: list[object]) -> None:
    assert values_of(call.format(place), TABLE) == values


def test_every_function_takes_a_possible_number_of_arguments() -> None:
    assert not [name for name, (_, fewest, most) in FUNCTIONS.items() if not 0 <= fewest <= most]


@pytest.mark.parametrize(
    "text", ["array_element(l)", "array_element(l, 1, 1)", "array_has(l)", "empty(l, l)",
             "cardinality(l, 1)", "array_length()", "array_max(l, 1)", "array_to_string(l)"],
)  # fmt: skip
def test_other_numbers_of_arguments_are_refused(text: str) -> None:
    with pytest.raises(PredicateError, match="takes"):
        values_of(text, TABLE)


@pytest.mark.parametrize(
    ("pattern", "values"),
    [
        ("[(]b", [["(b"], None, None, ["(b"]]), ("[x(?]b", [["(b"], None, ["xb"], ["(b"]]),
        ("b", [["b"], None, ["b"], ["b"]]), ("[(](b)", [["b"], None, None, ["b"]]),
        ("(x)[^)(]?(b)", [None, None, ["x", "b"], None]),
        (r"(.)\((b)", [["x", "b"], None, None, ["y", "b"]]),
        ("(?:x)[x(](b)", [["b"], None, None, None]), ("(?P<z>.)[(]", [["x"], None, None, ["y"]]),
    ],
)  # fmt: skip
def test_groups_are_those_outside_of_brackets(pattern: str, values: list[object]) -> None:
    assert values_of(f"regexp_match(s, '{pattern}')", TABLE) == values


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("dow", [0, 1, 2, 3, 4, 5, 6]), ("isodow", [7, 1, 2, 3, 4, 5, 6]),
        ("doy", [3, 4, 5, 6, 7, 8, 9]), ("week", [53, 1, 1, 1, 1, 1, 1]), ("second", [7] * 7),
        ("millisecond", [7123] * 7), ("microsecond", [7123456] * 7),
        ("epoch", [1609650367.123456 + 86_400 * day for day in range(7)]),
    ],
)  # fmt: skip
def test_fields_of_a_week_that_begins_on_a_sunday(field: str, values: list[float]) -> None:
    assert values_of(f"date_part('{field}', t)", TIMES) == pytest.approx(values)


@pytest.mark.parametrize("word", ["any", "some", "all"])
def test_operators_that_read_like_functions_say_what_to_write(word: str) -> None:
    with pytest.raises(
        PredicateError,
        match=rf"operator {word.upper()} is not supported; use IN \(...\), or array_has\(",
    ):
        call_of(word, [])
    with pytest.raises(PredicateError, match=r"no function named 'anyy'"):
        call_of("anyy", [])


@pytest.mark.parametrize("call", ["gcd(a, 0)", "lcm(a, 1)"])
def test_a_divisor_or_multiple_of_2_to_the_63_does_not_fit(call: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="outside of int64"):
        values_of(call, pa.table({"a": pa.array([-(2**63)], pa.int64())}))
    assert values_of(call, pa.table({"a": pa.array([1 - 2**63], pa.int64())})) == [2**63 - 1]


def test_a_long_list_and_a_column_are_both_looked_in() -> None:
    table = pa.table({"i": [5, 70, 80], "j": [0, 70, 0]})
    assert values_of(f"i IN ({', '.join(map(str, range(60)))}, j)", table) == [True, True, False]
    assert values_of(f"i IN (j, {', '.join(map(str, range(60)))})", table) == [True, True, False]


def test_a_list_of_literals_that_has_a_column_is_an_in_list() -> None:
    schema = pa.schema([("i", pa.int64())])
    assert compile_column("v", "array_has([1, 2], i)", schema).expression.name == "IN"
    assert values_of("array_has([1, 5], i)", pa.table({"i": [1, 2, None]})) == [True, False, None]
    assert values_of("array_has([1, NULL], i)", pa.table({"i": [1, 2, None]})) == [True, None, None]
    assert values_of("array_has([NULL], i)", pa.table({"i": [1, None]})) == [None, None]
    assert values_of("array_has([], i)", pa.table({"i": [1, None]})) == [False, False]
    assert values_of("array_has(NULL, i)", pa.table({"i": [1, None]})) == [None, None]


@pytest.mark.parametrize(
    ("text", "nullable"),
    [("a + 1", False), ("a > 1 AND a < 3", False), ("cast(a as string)", False), ("b + 1", True),
     ("a + b", True), ("abs(a)", True), ("coalesce(b, a)", False), ("coalesce(b, b)", True)],
)  # fmt: skip
def test_an_operator_of_columns_without_nulls_gives_none(text: str, nullable: bool) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.int64())])
    assert compile_column("v", text, schema).nullable == nullable
