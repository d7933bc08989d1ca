from __future__ import annotations

import datetime as dt
import decimal
import math
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError
from lance_nb.explorer.rows.filter_conditions import (
    column_sql,
    null_condition,
    odd_condition,
    range_condition,
    stored_time,
    value_condition,
)
from tests.support.markup_payloads import PAYLOADS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("id", "id"), ("a b", "`a b`"), ("a`b", "`a``b`"), ("Order", "`Order`"),
        ("distinct", "`distinct`"), ("For", "`For`"), ("current_date", "`current_date`"),
    ],
)  # fmt: skip
def test_a_name_is_quoted_where_it_must_be(name: str, words: str) -> None:
    assert column_sql(name) == words
    assert null_condition(name) == f"{words} IS NULL"


@pytest.mark.parametrize(
    ("kind", "low", "high", "closed", "words"),
    [
        (pa.int64(), 2.5, 7.5, False, "x >= 3 AND x < 8"),
        (pa.int64(), 2.5, 7.5, True, "x >= 3 AND x <= 7"),
        (pa.float32(), 0.123456, 0.5123, False, "x >= 0.12 AND x < 0.51"),
        (pa.float64(), None, 1e300, False, "x < 1e+300"),
        (pa.float64(), None, None, False, "NOT isnan(x)"),
        (pa.decimal128(9, 3), 1.25, None, False, "x >= 1.25"),
        (pa.date32(), 20454.2, 20460, False, "x >= date '2026-01-02' AND x < date '2026-01-07'"),
        (pa.timestamp("s"), 1767225600, None, False, "x >= timestamp '2026-01-01 00:00:00'"),
    ],
)
def test_a_range_is_written_as_a_person_would(
    kind: pa.DataType, low: float | None, high: float | None, closed: bool, words: str
) -> None:
    assert range_condition(pa.field("x", kind), low, high, closed=closed) == words


def test_a_range_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="binary"):
        range_condition(pa.field("x", pa.binary()), 1, 2, closed=False)
    with pytest.raises(NotSupportedError, match="finite"):
        range_condition(pa.field("x", pa.float64()), float("nan"), 2, closed=False)
    with pytest.raises(NotSupportedError, match="years"):
        range_condition(pa.field("x", pa.timestamp("s")), 1e15, None, closed=False)


def test_times_come_from_milliseconds() -> None:
    assert stored_time(pa.timestamp("us"), 1000.0) == 1_000_000
    assert stored_time(pa.date32(), 86_400_000.0) == 1
    assert stored_time(pa.date64(), 5.0) == 5
    assert stored_time(pa.date32(), None) is None
    with pytest.raises(NotSupportedError):
        stored_time(pa.int64(), 1.0)


def test_every_value_is_found_by_its_own_condition() -> None:
    values = {
        "flag": [True, False, None],
        "text": ["it's", "", None],
        "number": [1, -5, None],
        "a `b": [7, 8, 9],
    }
    dataset = lance_nb.write_dataset(pa.table(values), "memory://predicate-words")
    for name, some in values.items():
        for value in some:
            where = value_condition(name, pa.scalar(value, dataset.schema.field(name).type))
            assert dataset.to_table([name], filter=where)[name].to_pylist() == [value]


def test_hostile_texts_stay_one_text_of_the_condition() -> None:
    texts = [text for text in PAYLOADS if "\0" not in text]
    dataset = lance_nb.write_dataset(pa.table({"x": texts}), "memory://predicate-payloads")
    for text in texts:
        where = value_condition("x", pa.scalar(text))
        assert dataset.to_table(filter=where)["x"].to_pylist() == [text]


def test_what_cannot_be_a_condition_is_none() -> None:
    assert value_condition("x", pa.scalar("y" * 5000)) == ""
    assert value_condition("x", pa.scalar(1.5)) == ""
    assert value_condition("x", pa.scalar(decimal.Decimal("1.5"))) == ""
    assert value_condition("x", pa.scalar(dt.date(2026, 1, 1))) == ""
    broken = pa.array([b"\xff"]).cast(pa.string(), safe=False)[0]
    assert value_condition("x", broken) == ""


@pytest.mark.parametrize(
    ("kind", "odd", "place", "condition"),
    [
        (pa.int64(), "null", None, "x IS NULL"),
        (pa.float32(), "nan", None, "isnan(x)"),
        (pa.float64(), "inf", None, "x = CAST('inf' AS DOUBLE)"),
        (pa.float64(), "-inf", None, "x = CAST('-inf' AS DOUBLE)"),
        (pa.float64(), "below", -2.5, "x < -2.5"),
        (pa.float64(), "above", 2.5, "x > 2.5 AND NOT isnan(x)"),
        (pa.int32(), "above", 2.5, "x > 2"),
        (pa.int32(), "below", 2.5, "x < 3"),
        (pa.date32(), "below", 1.0, "x < date '1970-01-02'"),
    ],
)
def test_values_beside_a_histogram_have_conditions(
    kind: pa.DataType, odd: str, place: float | None, condition: str
) -> None:
    assert odd_condition(pa.field("x", kind), odd, place) == condition


@pytest.mark.parametrize(
    ("kind", "odd"), [(pa.int8(), "nan"), (pa.float64(), "x"), (pa.int8(), "below")]
)
def test_other_groups_of_values_are_refused(kind: pa.DataType, odd: str) -> None:
    with pytest.raises(NotSupportedError, match="no group of values"):
        odd_condition(pa.field("x", kind), odd, None)


def test_conditions_of_a_histogram_find_the_rows_that_it_counts() -> None:
    values = [1.0, 2.0, 3.0, math.nan, math.inf, -math.inf, None]
    dataset = lance_nb.write_dataset(pa.table({"x": values}), f"memory://odd-{uuid4().hex}/d.lance")
    field = dataset.schema.field("x")
    wanted = {
        range_condition(field, None, None, closed=False): 5,
        range_condition(field, 2.0, None, closed=False): 3,
        range_condition(field, 2.0, 3.0, closed=True): 2,
        odd_condition(field, "nan", None): 1,
        odd_condition(field, "inf", None): 1,
        odd_condition(field, "-inf", None): 1,
        odd_condition(field, "below", 1.0): 1,
        odd_condition(field, "above", 3.0): 1,
        odd_condition(field, "null", None): 1,
    }
    assert {where: dataset.count_rows(where) for where in wanted} == wanted
