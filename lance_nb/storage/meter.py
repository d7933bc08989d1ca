"""Count the requests and bytes of all stores in this process since it started.

To measure an action, read the meter before and after it. Stores count each read, listing, and
lookup of an object; a mapped file counts the ranges that are requested.

Limits: one meter per process, so concurrent actions are counted together.
"""

from __future__ import annotations

import threading
from typing import NamedTuple


class Reading(NamedTuple):
    """Requests of any kind, and the bytes that they transferred."""

    requests: int
    size_bytes: int


class Totals(NamedTuple):
    """Reads (including listings and lookups of objects) and writes."""

    read_requests: int
    read_bytes: int
    write_requests: int
    written_bytes: int


class _Meter:
    """Counters that threads share."""

    __slots__ = ("lock", "read_bytes", "read_requests", "write_requests", "written_bytes")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.read_requests = self.read_bytes = 0
        self.write_requests = self.written_bytes = 0


_meter = _Meter()


def count(size_bytes: int = 0, requests: int = 1) -> None:
    """Add requests that read, and the bytes that they returned."""
    with _meter.lock:
        _meter.read_requests += requests
        _meter.read_bytes += size_bytes


def count_write(size_bytes: int) -> None:
    """Add a request that wrote, and the bytes that it sent."""
    with _meter.lock:
        _meter.write_requests += 1
        _meter.written_bytes += size_bytes


def totals() -> Totals:
    """Return the counts so far, reads and writes separately."""
    with _meter.lock:
        return Totals(
            _meter.read_requests, _meter.read_bytes, _meter.write_requests, _meter.written_bytes
        )


def reading() -> Reading:
    """Return the counts so far."""
    now = totals()
    return Reading(now.read_requests + now.write_requests, now.read_bytes + now.written_bytes)
