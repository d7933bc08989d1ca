"""How much this process has asked of its stores: requests and bytes, since it began.

Whoever wants to know what an action cost reads the meter before and after it. Stores count each
read, listing, and question about an object; a mapped file counts the ranges that are looked at.

Limits: one meter per process, so actions that run side by side are counted together. Writes count
as requests with the bytes they send.
"""

from __future__ import annotations

import threading
from typing import NamedTuple


class Reading(NamedTuple):
    """What the meter shows."""

    requests: int
    size_bytes: int


class _Meter:
    """Two counters that threads share."""

    __slots__ = ("lock", "requests", "size_bytes")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests = 0
        self.size_bytes = 0


_meter = _Meter()


def count(size_bytes: int = 0, requests: int = 1) -> None:
    """Add requests, and the bytes that they moved."""
    with _meter.lock:
        _meter.requests += requests
        _meter.size_bytes += size_bytes


def reading() -> Reading:
    """Return what has been counted so far."""
    with _meter.lock:
        return Reading(_meter.requests, _meter.size_bytes)
