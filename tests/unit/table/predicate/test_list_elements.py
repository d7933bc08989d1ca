"""Functions that look for elements (values beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from tests.support.expressions import values_of

TABLE = pa.table({
    "l": pa.array([[1, 2, 1], None, [], [None, 5]], pa.list_(pa.int64())),
    "m": pa.array([[2, 4], [1], [], [5]], pa.list_(pa.int64())),
    "x": pa.array([[{"a": 1}], None, [], []], pa.list_(pa.struct([("a", pa.int64())]))),
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("array_remove(l, 1)", [[2, 1], None, [], [None, 5]]),
        ("array_remove_all(l, 1)", [[2], None, [], [None, 5]]),
        ("array_replace_n(l, 1, 8, 2)", [[8, 2, 8], None, [], [None, 5]]),
        ("array_position(l, 1)", [1, None, None, None]),
        ("array_positions(l, 1)", [[1, 3], None, [], []]),
        ("array_union(l, m)", [[1, 2, 4], None, [], [None, 5]]),
        ("array_intersect(l, m)", [[2], None, [], [5]]),
        ("array_except(l, m)", [[1], None, [], [None]]),
        ("array_distance(m, m)", [0, 0, 0, 0]),
    ],
)
def test_elements_are_found(text: str, values: list[object]) -> None:
    assert values_of(text, TABLE) == values


def test_lists_of_two_lengths_have_no_distance() -> None:
    with pytest.raises(pa.ArrowInvalid, match="one length"):
        values_of("array_distance(l, m)", TABLE)


def test_structs_cannot_be_numbered() -> None:
    with pytest.raises(PredicateError):
        values_of("array_distinct(x)", TABLE)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("array_has(l, 1)", [True, None, False, True]),
        ("array_has(l, x)", [False, None, True, True]),
        ("array_has_any(l, [1, 9])", [True, None, False, True]),
        ("array_has_all(l, [1, 2])", [True, None, False, False]),
        ("array_has_all(l, [1, NULL])", [False, None, False, True]),
    ],
)
def test_elements_under_null_lists_count_for_no_row(
    text: str, values: list[object], large: bool
) -> None:
    items = pa.array([1, 2, 1, 1, 1, 7, 1, None], pa.int64())
    kind, offsets = pa.ListArray, pa.int32()
    if large:
        kind, offsets = pa.LargeListArray, pa.int64()
    starts = pa.array([0, 2, 5, 6, 8], offsets)
    lists = kind.from_arrays(starts, items, mask=pa.array([False, True, False, False]))
    table = pa.table({"l": lists, "x": pa.array([7, 1, 7, 1], pa.int64())})

    assert values_of(text, table) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("array_has(f, 0.3)", [False, False]),
        ("array_has(f, 0.5)", [False, True]),
        ("array_has_any(f, [0.3, 9])", [False, False]),
        ("array_has_any(f, ['0.5'])", [False, True]),
        ("array_position(i, 1.5)", [None, None]),
        ("array_has(i, 300)", [False, False]),
        ("array_has_all(u, [0.5])", [False, False]),
    ],
)
def test_a_value_is_not_rounded_to_the_type_of_the_elements(
    text: str, values: list[object]
) -> None:
    table = pa.table({
        "f": pa.array([[0.3], [0.5]], pa.list_(pa.float32())),
        "i": pa.array([[1], [2]], pa.large_list(pa.int8())),
        "u": pa.array([[2**63 + 1], [0]], pa.list_(pa.uint64(), 1)),
    })  # fmt: skip

    assert values_of(text, table) == values


@pytest.mark.parametrize("text", ["array_has(l, true)", "array_has(l, '1')", "array_has(l, [1])"])
def test_a_value_of_another_kind_is_no_element(text: str) -> None:
    with pytest.raises(PredicateError, match="element"):
        values_of(text, TABLE)


@pytest.mark.parametrize(
    "kind",
    [pa.duration("ns"), pa.time64("ns"), pa.timestamp("ns"), pa.timestamp("ns", "UTC")],
    ids=str,
)
def test_nanoseconds_in_brackets_are_not_rounded(kind: pa.DataType) -> None:
    values = pa.array([5, 17, 5_000, None], pa.int64()).cast(kind)
    table = pa.table({"t": pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), values)})
    names = {"duration": "Duration", "time64": "Time64", "timestamp": "Timestamp"}
    name = next(full for start, full in names.items() if str(kind).startswith(start))
    zone = 'Some("UTC")' if getattr(kind, "tz", None) else "None"
    type_ = f"{name}(Nanosecond, {zone})" if name == "Timestamp" else f"{name}(Nanosecond)"
    first, second = (f"arrow_cast(arrow_cast({number}, 'Int64'), '{type_}')" for number in (5, 17))

    assert values_of(f"array_has_all(t, [{first}, {second}])", table) == [True, False]
    assert values_of(f"array_has_any(t, [{second}, {second}])", table) == [True, False]


def test_numbers_in_brackets_may_need_64_bits_without_a_sign() -> None:
    table = pa.table({"u": pa.array([[2**64 - 1, 5], [7]], pa.list_(pa.uint64()))})

    assert values_of("array_has_any(u, [18446744073709551615, 8])", table) == [True, False]
    assert values_of("array_has_all(u, [18446744073709551615, 5])", table) == [True, False]
    with pytest.raises(PredicateError, match="of one type"):
        values_of("array_has_any(u, [1, 'a'])", table)


@pytest.mark.parametrize("wrap", [pa.list_, pa.large_list])
def test_elements_of_dictionaries_are_their_values(wrap: Callable[..., pa.DataType]) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    lists = pa.array([["a", None], ["b"], None, []], wrap(pa.string())).cast(wrap(kind))
    table = pa.table({"d": lists})

    assert values_of("array_has(d, 'a')", table) == [True, False, None, False]
    assert values_of("array_has_any(d, ['b', 'c'])", table) == [False, True, None, False]
    assert values_of("array_position(d, 'b')", table) == [None, 1, None, None]
