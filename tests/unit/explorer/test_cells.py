from __future__ import annotations

import datetime as dt
import decimal
import time

import pyarrow as pa
import pytest

from lance_nb.explorer.cells import cell_texts, scalar_text, temporal_text


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [
        (["a\nb", "", None, "null"], pa.string(), ["a↵b", "", None, "null"]),
        (["x"], pa.large_string(), ["x"]),
        (["x"], pa.string_view(), ["x"]),
        ([b"abc", None, b""], pa.binary(), ["3 B · 61 62 63", None, "0 B"]),
        ([b"abcd"], pa.binary(4), ["4 B · 61 62 63 64"]),
        ([[1.5, None], None, []], pa.list_(pa.float64()), ["[1.5, null]", None, "[]"]),
        ([[0.1]], pa.list_(pa.float32()), ["[0.1]"]),
        ([{"a": 1, "b": "x"}], None, ['{"a": 1, "b": "x"}']),
        ([[("k", 1)]], pa.map_(pa.string(), pa.int64()), ['{"k": 1}']),
        ([dt.date(2026, 1, 1)], None, ["2026-01-01"]),
        ([43_200_000_000], pa.timestamp("us"), ["1970-01-01T12:00:00"]),
        ([500_000], pa.timestamp("us", "UTC"), ["1970-01-01T00:00:00.5Z"]),
        ([0], pa.timestamp("ns", "Europe/Berlin"), ["1970-01-01T00:00:00Z"]),
        ([2**62], pa.timestamp("us"), ["148108-07-06T14:00:27.387904"]),
        ([dt.timedelta(seconds=3)], None, ["3000000 us"]),
        ([decimal.Decimal("1.20")], None, ["1.20"]),
        ([None], pa.null(), [None]),
        ([[[1], []]], pa.list_(pa.list_(pa.int8())), ["[[1], []]"]),
    ],
)
def test_values_read_as_what_they_are(
    values: list[object], kind: pa.DataType | None, shown: list[str | None]
) -> None:
    assert cell_texts(pa.array(values, kind), 200) == shown


def test_dictionaries_read_as_their_values() -> None:
    assert cell_texts(pa.array(["a", None, "a"]).dictionary_encode(), 20) == ["a", None, "a"]


def test_invalid_utf8_is_replaced_and_not_raised() -> None:
    offsets = pa.py_buffer(b"\0\0\0\0\3\0\0\0")
    broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfea")])
    assert cell_texts(broken, 10) == ["��a"]
    nested = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), broken)
    assert cell_texts(nested, 20) == ['["��a"]']


def test_a_cell_keeps_to_its_budget() -> None:
    assert len(cell_texts(pa.array(["x" * 10_000]), 240)[0] or "") == 240
    assert len(scalar_text(pa.scalar(["y" * 50] * 1000), 4096)) <= 4096
    deep = pa.array([1], pa.int64())
    for _ in range(40):
        deep = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), deep)
    assert "…" in scalar_text(deep[0], 4096)


def test_a_list_of_a_million_costs_as_much_as_a_short_one() -> None:
    column = pa.array([list(range(1_000_000))])
    start = time.thread_time()
    (shown,) = cell_texts(column, 240)
    assert time.thread_time() - start < 0.1  # 0.001 on a quiet machine, 0.3 for the whole list
    assert shown is not None
    assert shown.startswith("[0, 1, 2")


def test_nan_and_null_are_words_inside_lists() -> None:
    assert scalar_text(pa.scalar([float("nan"), None], pa.list_(pa.float64()))) == "[NaN, null]"
    assert scalar_text(pa.scalar(None, pa.int8())) == "null"
    assert scalar_text(pa.scalar(2**63 - 1)) == "9223372036854775807"


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (0, pa.timestamp("s"), "1970-01-01T00:00:00"),
        (1_500, pa.timestamp("ms"), "1970-01-01T00:00:01.5"),
        (1, pa.timestamp("ns", "UTC"), "1970-01-01T00:00:00.000000001Z"),
        (-1, pa.timestamp("us"), "1969-12-31T23:59:59.999999"),
        (0, pa.timestamp("us", "Europe/Berlin"), "1970-01-01T00:00:00Z"),
        (-(2**63), pa.timestamp("us"), "-9223372036854775808 us"),
        (20_454, pa.date32(), "2026-01-01"),
        (86_400_000, pa.date64(), "1970-01-02"),
        (3_723, pa.time32("s"), "01:02:03"),
        (1_250, pa.time32("ms"), "00:00:01.25"),
        (1, pa.time64("ns"), "00:00:00.000000001"),
        (3_000_000, pa.duration("us"), "3000000 us"),
    ],
)
def test_temporal_values_are_written_exactly(value: int, kind: pa.DataType, shown: str) -> None:
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    assert temporal_text(pa.array([value], width).view(kind)[0]) == shown


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("value", [2**62, -(2**62), 2**63 - 1])
def test_years_far_away_are_shown_somehow(unit: str, value: int) -> None:
    assert temporal_text(pa.array([value], pa.int64()).view(pa.timestamp(unit))[0])


def test_intervals_are_shown_as_arrow_prints_them() -> None:
    assert "months=1" in temporal_text(pa.scalar((1, 2, 3), pa.month_day_nano_interval()))
