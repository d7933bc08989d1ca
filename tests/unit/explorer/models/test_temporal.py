from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.explorer.models.temporal import temporal_text


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
