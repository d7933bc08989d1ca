"""Times to other values, and intervals (beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.time_functions import interval
from tests.support.expressions import values_of

_NOON = datetime(2021, 2, 3, 12, 30, 1, 500)  # noqa: DTZ001
TABLE = pa.table({"t": pa.array([_NOON, None], pa.timestamp("us")), "k": [28, None]})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("to_char(t, '%d.%m.%Y %H:%M:%S')", "03.02.2021 12:30:01"),
        ("to_char(t, '%T%.3f')", "12:30:01.000"),
        ("to_unixtime(t)", 1612355401),
        ("make_date(2021, 2, k)", date(2021, 2, 28)),
        ("date_bin(interval '6 hours', t)", datetime(2021, 2, 3, 12)),  # noqa: DTZ001
        ("t - interval '500 us'", datetime(2021, 2, 3, 12, 30, 1)),  # noqa: DTZ001
        ("t + interval '2 ms' - interval '2500 us' = t", False),
        ("t + interval '1 day' - interval '24 hours' = t", True),
    ],
)
def test_times(text: str, value: object) -> None:
    assert values_of(text, TABLE) == [value, None]


def test_dates_have_years_of_four_digits() -> None:
    assert values_of("make_date(9999, 12, 31)", TABLE)[0] == date(9999, 12, 31)
    days = values_of("cast(make_date(-9999, 1, 1) as int)", TABLE)
    assert days[0] == int(np.datetime64("-9999-01-01", "D").astype(np.int64))
    for year in (10_000, -10_000):
        with pytest.raises(PredicateError, match=f"{year}-1-1 is no date"):
            values_of(f"make_date({year}, 1, 1)", TABLE)


def test_a_day_that_no_month_has_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="2021-2-29 is no date"):
        values_of("make_date(2021, 2, k + 1)", TABLE)


@pytest.mark.parametrize(
    ("written", "seconds"), [("2 days 3 hours", 183600), ("1.5 min", 90), ("-1 week", -604800)]
)
def test_intervals_are_read(written: str, seconds: int) -> None:
    assert interval(written).scalar.value == seconds * 10**9


@pytest.mark.parametrize(
    ("units", "nanoseconds"),
    [
        ("nanosecond nanoseconds ns", 1), ("microsecond microseconds us", 1_000),
        ("millisecond milliseconds ms", 1_000_000), ("second seconds sec s", 10**9),
        ("minute minutes min m", 60 * 10**9), ("hour hours h", 3600 * 10**9),
        ("day days d", 24 * 3600 * 10**9), ("week weeks", 7 * 24 * 3600 * 10**9),
    ],
)  # fmt: skip
def test_every_unit_of_an_interval_has_its_length(units: str, nanoseconds: int) -> None:
    for unit in units.split():
        assert interval(f"3 {unit}").scalar.value == 3 * nanoseconds
        assert interval("-2", unit).scalar.value == -2 * nanoseconds


def test_intervals_are_bounded() -> None:
    assert interval(f"{2**63 - 1} ns").scalar.value == 2**63 - 1
    assert interval(f"-{2**63 - 1} ns").scalar.value == 1 - 2**63
    for written in (f"{2**63} ns", f"-{2**63} ns", "9223372037 s"):
        with pytest.raises(PredicateError, match="expected a number and a unit"):
            interval(written)


@pytest.mark.parametrize("written", ["1 month", "", "3", "day", "1 day and", "99999999999 weeks"])
def test_other_intervals_are_refused(written: str) -> None:
    with pytest.raises(PredicateError, match="INTERVAL"):
        interval(written)


def test_a_bin_must_have_a_width() -> None:
    with pytest.raises(PredicateError, match="longer than nothing"):
        values_of("date_bin(interval '0 days', t)", TABLE)


@pytest.mark.parametrize(("text", "values"), [
    ("to_char(z, '%Z')", ["+02:00", "-03:30", None]),
    ("to_char(z, '%z')", ["+0200", "-0330", None]),
    ("to_char(z, 'x%:zy%%Z')", ["x+02:00y%Z", "x-03:30y%Z", None]),
    ("date_part('hour', arrow_cast(i, 'Timestamp(Second, Some(\"Asia/Tokyo\"))'))", [9, 9, None]),
])  # fmt: skip
def test_zones_are_written_as_offsets(text: str, values: list[object]) -> None:
    columns = {
        zone: pa.array([1_625_000_000], pa.timestamp("s", zone))
        for zone in ("Europe/Zurich", "-03:30")
    }
    found = []
    for number, zone in enumerate(columns):
        table = pa.table({"z": columns[zone], "i": [number + 1]})
        found += values_of(text, table)
    nothing = pa.table({"z": pa.nulls(1, pa.timestamp("s", "UTC")), "i": pa.nulls(1, pa.int64())})
    assert [*found, *values_of(text, nothing)] == values


@pytest.mark.parametrize("form", ["%Z", "%z", "%:z", "%%%Z"])
def test_a_zone_that_there_is_not_is_refused(form: str) -> None:
    table = pa.table({"t": pa.array([0], pa.timestamp("s"))})
    with pytest.raises(PredicateError, match="writes a time zone, and timestamp"):
        values_of(f"to_char(t, '{form}')", table)
    assert values_of("to_char(t, '%%Z')", table) == ["%Z"]


def test_the_first_row_that_is_no_date_is_named():
    table = pa.table({"m": [1, None, 13, 0], "d": [31, 1, 1, 5]})

    with pytest.raises(pa.ArrowInvalid, match="2021-13-1 is no date"):
        values_of("make_date(2021, m, d)", table)
