"""Values of single cells: text and Python values in the types of columns, without loss."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.writing.editing import given_values, hand_value

LOCAL = datetime(2024, 5, 1)  # noqa: DTZ001 - without a time zone
BERLIN = pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [
        ("12", pa.int8(), 12),
        (" 12 ", pa.int64(), 12),
        ("1.5", pa.float16(), 1.5),
        ("nan", pa.float64(), "nan"),
        ("inf", pa.float32(), float("inf")),
        ("true", pa.bool_(), True),
        (" a ", pa.string(), " a "),
        ("", pa.string(), ""),
        ("a", pa.large_string(), "a"),
        ("a", pa.dictionary(pa.int8(), pa.string()), "a"),
        ("5", pa.dictionary(pa.int8(), pa.int64()), 5),
        ("1.23", pa.decimal128(5, 2), Decimal("1.23")),
        ("2024-05-01", pa.date32(), date(2024, 5, 1)),
        ("10:30:01", pa.time32("s"), time(10, 30, 1)),
        ("10:30:01.5", pa.time64("us"), time(10, 30, 1, 500_000)),
        ("2024-05-01 10:00", pa.timestamp("us"), LOCAL.replace(hour=10)),
        ("2024-05-01 10:00", BERLIN, datetime(2024, 5, 1, 8, tzinfo=UTC)),
        ("2024-05-01 10:00+05:00", BERLIN, datetime(2024, 5, 1, 5, tzinfo=UTC)),
        ("2024-05-01T10:00Z", BERLIN, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("[1, null]", pa.list_(pa.int32()), [1, None]),
        ('{"a": {"b": [1]}}', pa.struct([("a", pa.struct([("b", pa.list_(pa.int8()))]))]),
         {"a": {"b": [1]}}),
    ],
)  # fmt: skip
def test_text_is_read_as_the_type_has_it(written: str, kind: pa.DataType, value: object) -> None:
    made = hand_value(written, pa.field("c", kind))
    assert made.type == kind
    found = made[0].as_py()
    assert (str(found) == "nan") if value == "nan" else found == value


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("1.5", pa.int64()),
        ("300", pa.int8()),
        ("", pa.int64()),
        ("yes", pa.bool_()),
        ("1e400", pa.float64()),
        ("3.4e39", pa.float32()),
        ("1.234", pa.decimal128(5, 2)),
        ("2024-13-01", pa.date32()),
        ("25:00:00", pa.time32("s")),
        ("10:30:01.5", pa.time32("s")),
        ("2024-05-01 10:00Z", pa.timestamp("us")),
        ("2024-05-01 10:00:00.5", pa.timestamp("s")),
        ("2024-03-31 02:30", BERLIN),  # the clock skips this hour
        ("[1.5]", pa.list_(pa.int32())),
        ("[1", pa.list_(pa.int32())),
        ('{"b": 1}', pa.struct([("a", pa.int8())])),
        ("[" * 100_000, pa.list_(pa.int32())),
        ("[1, 2, 3]", pa.list_(pa.float32(), 2)),
        ("a", pa.binary()),
        ("5", pa.duration("s")),
    ],
)
def test_text_that_is_no_value_is_refused(written: str, kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="column 'c'"):
        hand_value(written, pa.field("c", kind))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (2**40, pa.int32()),
        (1e300, pa.float32()),
        (2**53 + 1, pa.float64()),
        ("1", pa.int64()),
        (1, pa.string()),
        (True, pa.int64()),
        (LOCAL.replace(microsecond=5), pa.timestamp("s")),
        (LOCAL, BERLIN),
        (datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("us")),
        ({"a": 1, "z": 2}, pa.struct([("a", pa.int8())])),
        ([1.5], pa.list_(pa.int8())),
        ([{"z": 1}], pa.list_(pa.struct([("a", pa.int8())]))),
        (pa.scalar(1.5), pa.int64()),
    ],
)
def test_a_python_value_that_would_change_is_refused(value: object, kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="no value of column 'c'"):
        given_values([None, value], pa.field("c", kind))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2.0, pa.int64()),
        (0.1, pa.float32()),
        (pa.scalar(7), pa.float64()),
        (pa.scalar("a", pa.dictionary(pa.int8(), pa.string())),
         pa.dictionary(pa.int8(), pa.string())),
        ({"a": None}, pa.struct([("a", pa.int8())])),
        (b"x", pa.binary()),
        ([0.5, 1.5], pa.list_(pa.float32(), 2)),
    ],
)  # fmt: skip
def test_a_python_value_that_the_column_holds_is_taken(value: Any, kind: pa.DataType) -> None:
    made = given_values([value], pa.field("c", kind))
    assert made.type == kind
    assert made[0].is_valid


@pytest.mark.parametrize("null", [None, pa.scalar(None, pa.int64())])
def test_a_null_needs_a_column_that_takes_it(null: object) -> None:
    assert not given_values([null], pa.field("c", pa.int64()))[0].is_valid
    with pytest.raises(InvalidInputError, match="takes no nulls"):
        given_values([null], pa.field("c", pa.int64(), nullable=False))
