"""Read many byte ranges of one object with few requests.

Ranges that lie close together are joined into one *span*: a request costs as much as reading tens
of kilobytes. A span is never larger than ``SPAN_BYTES_MAX`` unless one range alone is.

Worked example: [0, 10), [20, 30) and [10_000_000, 10_000_010) are two spans, [0, 30) and the last.

Limits: the order of the answer is the order of the question; repeated and overlapping ranges share
one span. Empty ranges cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lance_nb.errors import CorruptFileError
from lance_nb.storage.base import ByteRange
from lance_nb.storage.threads import run_all

GAP_BYTES_MAX = 64 * 1024
SPAN_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """``spans`` to read; range ``i`` lies in span ``span_of[i]`` (-1: the range is empty)."""

    spans: tuple[ByteRange, ...]
    span_of: tuple[int, ...]


def coalesce(
    wanted: Sequence[ByteRange],
    gap_bytes_max: int = GAP_BYTES_MAX,
    span_bytes_max: int = SPAN_BYTES_MAX,
) -> Plan:
    """Join near ranges into spans, sorted by start."""
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index].start, -wanted[index].stop))
    spans: list[ByteRange] = []
    span_of = [-1] * len(wanted)
    for index in order:
        one = wanted[index]
        if not one.size_bytes:
            continue
        if spans and _joins(spans[-1], one, gap_bytes_max, span_bytes_max):
            spans[-1] = ByteRange(spans[-1].start, max(spans[-1].stop, one.stop))
        else:
            spans.append(one)
        span_of[index] = len(spans) - 1
    return Plan(tuple(spans), tuple(span_of))


def _joins(span: ByteRange, one: ByteRange, gap_bytes_max: int, span_bytes_max: int) -> bool:
    if one.stop <= span.stop:
        return True
    return one.start - span.stop <= gap_bytes_max and one.stop - span.start <= span_bytes_max


def slice_spans(
    path: str, wanted: Sequence[ByteRange], plan: Plan, data: Sequence[bytes | memoryview]
) -> list[memoryview]:
    """Cut the wanted ranges out of the bytes of the spans.

    Raises CorruptFileError if a span came back shorter than asked: the object is shorter than some
    other file says.
    """
    views = [memoryview(one).toreadonly() for one in data]
    for span, view in zip(plan.spans, views, strict=True):
        if len(view) != span.size_bytes:
            expected = f"{span.size_bytes} bytes there"
            raise CorruptFileError(path, span.start, expected, f"{len(view)} bytes")
    found = []
    for one, at in zip(wanted, plan.span_of, strict=True):
        if at < 0:
            found.append(memoryview(b""))
            continue
        start = one.start - plan.spans[at].start
        found.append(views[at][start : start + one.size_bytes])
    return found


def read_ranges(
    path: str,
    wanted: Sequence[ByteRange],
    fetch: Callable[[ByteRange], bytes | memoryview],
) -> list[memoryview]:
    """Read ranges with ``fetch``, spans at the same time on the shared pool."""
    plan = coalesce(wanted)
    data = run_all([lambda span=span: fetch(span) for span in plan.spans])  # type: ignore[misc]
    return slice_spans(path, wanted, plan, data)
