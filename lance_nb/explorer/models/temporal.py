"""Dates, times, timestamps and durations in ISO form, exact to the last stored digit.

============  ==========================================================================
timestamp     ``2026-01-01T12:00:00.5``; with a zone it is an instant and ends in ``Z``
date          ``2026-01-01``
time          ``12:00:00.25``
duration      ``3000000 us``: a count of its unit, because seconds would hide it
interval      as Arrow prints it
============  ==========================================================================

A value that no calendar holds is shown as the stored number with its unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_PER_SECOND = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def temporal_text(scalar: Any) -> str:
    """Write one valid temporal value."""
    kind = scalar.type
    if pa.types.is_timestamp(kind):
        return _timestamp(scalar.value, kind.unit) + ("Z" if kind.tz else "")
    if pa.types.is_date32(kind):
        return _calendar(scalar.value, "D")
    if pa.types.is_date64(kind):
        return _calendar(scalar.value, "ms").partition("T")[0]
    if pa.types.is_time(kind):
        return _time(scalar.value, kind.unit)
    if pa.types.is_duration(kind):
        return f"{scalar.value} {kind.unit}"
    return str(scalar.as_py())


def _calendar(value: int, unit: str) -> str:
    moment = np.int64(value).view(f"datetime64[{unit}]")
    return f"{value} {unit}" if np.isnat(moment) else str(moment)


def _timestamp(value: int, unit: str) -> str:
    shown = _calendar(value, unit)
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _time(value: int, unit: str) -> str:
    digits = _PER_SECOND[unit]
    seconds, fraction = divmod(value, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    tail = f"{fraction:0{digits}}".rstrip("0") if fraction else ""
    return f"{hour:02}:{minute:02}:{second:02}" + (f".{tail}" if tail else "")
