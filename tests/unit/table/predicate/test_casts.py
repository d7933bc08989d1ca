from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.casts import cast_value, try_cast_kernel
from lance_nb.table.predicate.coercion import common_type
from lance_nb.table.predicate.filter import compile_column
from tests.support.expressions import values_of

US, UTC_US = pa.timestamp("us"), pa.timestamp("us", "UTC")
NEW_YORK = pa.timestamp("us", "America/New_York")
NAIVE = datetime(2021, 1, 1, 12)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("value", "type_", "wanted"),
    [
        (pa.scalar(2.9), pa.int32(), 2), (pa.scalar(-2.9), pa.int32(), -2),
        (pa.scalar(Decimal("2.99")), pa.int32(), 2), (pa.scalar(Decimal("-2.99")), pa.int32(), -2),
        (pa.scalar(7), pa.decimal128(10, 2), Decimal("7.00")), (pa.scalar(0.5), pa.bool_(), True),
        (pa.scalar(2**62), pa.float32(), float(2**62)), (pa.scalar(True), pa.float64(), 1.0),
        (pa.scalar(1.0), pa.string(), "1.0"), (pa.scalar(float("nan")), pa.string(), "NaN"),
        (pa.scalar(40672, pa.float16()), pa.string(), "40672"),
        (pa.scalar(0.1, pa.float32()), pa.string(), "0.1"),
        (pa.scalar(0.5, pa.float16()), pa.string(), "0.5"),
        (pa.scalar(2**-24, pa.float16()), pa.string(), "0.000000059604645"),
        (pa.scalar(-1.5e12), pa.large_string(), "-1500000000000.0"),
        (pa.scalar(1.5e-6), pa.string(), "1.5e-6"),
        *((pa.scalar(1.5 * 10.0**power, pa.float32()), pa.string(), f"15{'0' * (power - 1)}.0")
          for power in range(9, 13)),
        *((pa.scalar(1.5 * 10.0**power), pa.string(), f"15{'0' * (power - 1)}.0")
          for power in range(9, 16)),
        (pa.scalar(1.5e13, pa.float32()), pa.string(), "1.5e13"),
        (pa.scalar(1.5e16), pa.string(), "1.5e16"),
        (pa.scalar(1e20), pa.string(), "1e20"), (pa.scalar(1e-7), pa.string(), "1e-7"),
        (pa.scalar(NAIVE), pa.string(), "2021-01-01T12:00:00"),
        (pa.scalar(datetime(2021, 1, 1, 0, 0, 0, 5, UTC), UTC_US), pa.string(),
         "2021-01-01T00:00:00.000005Z"),
        (pa.scalar("2021-01-01 12:00:00"), US, NAIVE),
        (pa.scalar("2021-01-01T12:00:00"), US, NAIVE),
        (pa.scalar("2021-01-01T12:00:00+05:00"), US, NAIVE.replace(hour=7)),
        (pa.scalar("2021-01-01T12:00:00Z"), UTC_US, NAIVE.replace(tzinfo=UTC)),
        (pa.scalar("2021-01-01 07:00:00"), NEW_YORK, NAIVE.replace(tzinfo=UTC)),
        (pa.scalar(NAIVE), NEW_YORK, NAIVE.replace(hour=17, tzinfo=UTC)),
        (pa.scalar(NAIVE.replace(tzinfo=UTC), UTC_US), US, NAIVE),
        (pa.scalar(NAIVE), pa.date32(), date(2021, 1, 1)),
        (pa.scalar("2021-01-01"), pa.date32(), date(2021, 1, 1)),
        (pa.scalar("9999-12-31 00:00:00.0000019"), US, datetime(9999, 12, 31, 0, 0, 0, 1)),  # noqa: DTZ001
        (pa.scalar(86_400_001, pa.int64()).cast(pa.date64()), pa.timestamp("s"),
         datetime(1970, 1, 2)),  # noqa: DTZ001
        (pa.scalar("12"), pa.int64(), 12), (pa.scalar(None), pa.int64(), None),
        (pa.scalar(Decimal("2.75")), pa.float64(), 2.75), (pa.scalar(False), pa.float32(), 0.0),
        (pa.scalar(True), pa.float16(), 1.0), (pa.scalar(True), pa.int8(), 1),
        (pa.scalar(None, pa.string()), US, None), (pa.scalar(5), pa.string(), "5"),
    ],
    ids=str,
)  # fmt: skip
def test_values_are_cast_as_sql_casts_them(value, type_, wanted):
    column = pa.chunked_array([pa.array([value.as_py(), None], value.type)])

    assert cast_value(value, type_).as_py() == wanted
    found = cast_value(column, type_)
    assert found.type == type_
    assert found.to_pylist() == [wanted, None]


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (float("nan"), pa.int32()), (1e30, pa.int32()), (300, pa.int8()), ("x", pa.int64()),
        (10**9, pa.decimal128(5, 2)), ("2021-13-01", pa.date32()), ("soon", US),
        ("2300-01-01", pa.timestamp("ns")), (datetime(2300, 1, 1), pa.timestamp("ns")),  # noqa: DTZ001
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_fit_is_an_error_or_null(value, type_):
    with pytest.raises(pa.ArrowInvalid):
        cast_value(pa.scalar(value), type_)

    assert try_cast_kernel(type_)(pa.scalar(value)).as_py() is None
    assert try_cast_kernel(type_)(pa.array([value, None])).to_pylist() == [None, None]


MOMENT = pa.scalar(1_609_502_399_500_000, pa.timestamp("us", "UTC"))  # 2021-01-01 11:59:59.5


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "2021-01-01T11:59:59.500Z"), ("+02:30", "2021-01-01T14:29:59.500+02:30"),
        ("America/New_York", "2021-01-01T06:59:59.500-05:00"),
        ("Europe/London", "2021-01-01T11:59:59.500Z"),
    ],
)  # fmt: skip
def test_a_moment_is_written_in_its_zone_and_becomes_naive_in_utc(zone, text):
    moment = MOMENT.cast(pa.timestamp("us", zone))

    assert cast_value(moment, pa.string()).as_py() == text
    assert cast_value(moment, pa.timestamp("us")).value == MOMENT.value


def test_numbers_of_any_kind_become_timestamps_and_an_empty_text_is_no_amount():
    for number in (pa.scalar(7, pa.int8()), pa.scalar(7, pa.uint32()), pa.scalar(Decimal("7.90"))):
        assert cast_value(number, pa.timestamp("us")).value == 7
    assert cast_value(pa.scalar(""), pa.decimal128(5, 1)).as_py() == 0


@pytest.mark.parametrize(("units", "wanted"), [
    (("s", "ms"), pa.time32("ms")), (("s", "us"), pa.time64("us")), (("us", "ns"), pa.time64("ns")),
    (("s", "s"), pa.time32("s")),
])  # fmt: skip
def test_times_of_day_meet_in_the_finer_unit(units: tuple[str, str], wanted: pa.DataType) -> None:
    one, other = (pa.time32(u) if u in {"s", "ms"} else pa.time64(u) for u in units)
    assert common_type(one, other) == common_type(other, one) == wanted


@pytest.mark.parametrize(("written", "type_"), [
    ("decimal", pa.decimal128(38, 10)), ("decimal(7)", pa.decimal128(7, 0)),
    ("decimal(7, 2)", pa.decimal128(7, 2)), ("decimal(38, 38)", pa.decimal128(38, 38)),
    ("decimal(39, 1)", pa.decimal256(39, 1)), ("decimal(76, 0)", pa.decimal256(76, 0)),
    ("timestamp(0)", pa.timestamp("s")), ("timestamp(3)", pa.timestamp("ms")),
    ("timestamp(6)", pa.timestamp("us")), ("timestamp(9)", pa.timestamp("ns")),
    ("timestamp", pa.timestamp("us")), ("varchar(9)", pa.string()),
])  # fmt: skip
def test_names_of_types_may_have_numbers(written: str, type_: pa.DataType) -> None:
    found = compile_column("c", f"cast(n as {written})", pa.schema([("n", pa.null())]))
    assert found.field.type == type_


@pytest.mark.parametrize("written", ["decimal(77, 0)", "decimal(5, 6)", "decimal(0)",
                                     "timestamp(8)", "timestamp(1)"])  # fmt: skip
def test_numbers_that_no_type_has_are_refused(written: str) -> None:
    with pytest.raises(PredicateError, match="no such type"):
        compile_column("c", f"cast(n as {written})", pa.schema([("n", pa.null())]))


def test_a_time_is_compared_with_time_literals() -> None:
    table = pa.table({"t": pa.array([3723, 14700, None], pa.time32("s"))})

    assert values_of("t > time '02:00:00'", table) == [False, True, None]
    assert values_of("t IN (time '01:02:03', time '00:00')", table) == [True, False, None]
    assert values_of("CAST(t AS string)", table) == ["01:02:03", "04:05:00", None]
    with pytest.raises(PredicateError, match="25:00:00"):
        values_of("t = time '25:00:00'", table)
    with pytest.raises(PredicateError, match="write time '12:00:00'"):
        values_of("t = '01:02:03'", table)
