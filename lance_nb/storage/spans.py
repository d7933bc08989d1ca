"""Spans: byte ranges of one object, coalesced so that near ones are read by one request.

A request costs as much as reading tens of kilobytes. A span is at most ``SPAN_BYTES_MAX`` unless
one range alone is larger: [0, 10), [20, 30) and [10_000_000, 10_000_010) are the spans [0, 30) and
the last range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lance_nb.errors import CorruptFileError
from lance_nb.storage.base import ByteRange
from lance_nb.storage.threads import run_all
from lance_nb.value_classes import dataclass

GAP_BYTES_MAX = 64 * 1024
SPAN_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SpanPlan:
    """``spans`` to read; range ``i`` lies in span ``span_of[i]`` (-1: the range is empty)."""

    spans: tuple[ByteRange, ...]
    span_of: tuple[int, ...]


def coalesce(
    byte_ranges: Sequence[ByteRange],
    gap_bytes_max: int = GAP_BYTES_MAX,
    span_bytes_max: int = SPAN_BYTES_MAX,
) -> SpanPlan:
    """Return the spans that cover the ranges, sorted by start; near ranges share a span."""
    order = sorted(
        range(len(byte_ranges)),
        key=lambda index: (byte_ranges[index].start, -byte_ranges[index].stop),
    )
    spans: list[ByteRange] = []
    span_of = [-1] * len(byte_ranges)
    for index in order:
        range_ = byte_ranges[index]
        if not range_.size_bytes:
            continue
        if spans and _joins(spans[-1], range_, gap_bytes_max, span_bytes_max):
            spans[-1] = ByteRange(spans[-1].start, max(spans[-1].stop, range_.stop))
        else:
            spans.append(range_)
        span_of[index] = len(spans) - 1
    return SpanPlan(tuple(spans), tuple(span_of))


def _joins(span: ByteRange, range_: ByteRange, gap_bytes_max: int, span_bytes_max: int) -> bool:
    if range_.stop <= span.stop:
        return True
    return range_.start - span.stop <= gap_bytes_max and range_.stop - span.start <= span_bytes_max


def slice_spans(
    path: str, byte_ranges: Sequence[ByteRange], plan: SpanPlan, data: Sequence[bytes | memoryview]
) -> list[memoryview]:
    """Cut the wanted ranges out of the bytes of the spans.

    Raises CorruptFileError if a span came back shorter than asked: the object is shorter than some
    other file says.
    """
    views = [memoryview(piece).toreadonly() for piece in data]
    for span, view in zip(plan.spans, views, strict=True):
        if len(view) != span.size_bytes:
            expected = f"{span.size_bytes} bytes there"
            raise CorruptFileError(path, span.start, expected, f"{len(view)} bytes")
    slices = []
    for range_, span_number in zip(byte_ranges, plan.span_of, strict=True):
        if span_number < 0:
            slices.append(memoryview(b""))
            continue
        start = range_.start - plan.spans[span_number].start
        slices.append(views[span_number][start : start + range_.size_bytes])
    return slices


def read_ranges(
    path: str,
    byte_ranges: Sequence[ByteRange],
    fetch: Callable[[ByteRange], bytes | memoryview],
) -> list[memoryview]:
    """Return the ranges that ``fetch`` reads, in their order; spans are read in parallel."""
    plan = coalesce(byte_ranges)
    data = run_all([lambda span=span: fetch(span) for span in plan.spans])  # type: ignore[misc]
    return slice_spans(path, byte_ranges, plan, data)
