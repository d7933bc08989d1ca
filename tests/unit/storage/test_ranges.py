"""Joining near byte ranges: the plan, and that slices always equal direct reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import CorruptFileError, StorageError
from lance_nb.storage.base import ByteRange
from lance_nb.storage.ranges import coalesce, read_ranges

DATA = bytes(range(256)) * 20
RANGES = st.lists(
    st.tuples(st.integers(0, len(DATA)), st.integers(0, 300)).map(
        lambda pair: ByteRange(pair[0], min(pair[0] + pair[1], len(DATA)))
    ),
    max_size=40,
)


@given(RANGES, st.integers(0, 200), st.integers(1, 1000))
def test_every_range_lies_in_its_span_and_spans_are_apart(wanted, gap, largest):
    plan = coalesce(wanted, gap, largest)
    for one, at in zip(wanted, plan.span_of, strict=True):
        if one.size_bytes:
            span = plan.spans[at]
            assert span.start <= one.start
            assert one.stop <= span.stop
        else:
            assert at == -1
    for before, after in zip(plan.spans, plan.spans[1:], strict=False):
        assert before.start < after.start
    for span in plan.spans:
        assert span.size_bytes <= max(largest, *(one.size_bytes for one in wanted))


@given(RANGES)
def test_slices_equal_direct_reads_in_the_order_asked_for(wanted):
    found = read_ranges("x", wanted, lambda span: DATA[span.start : span.stop])
    assert [bytes(one) for one in found] == [DATA[one.start : one.stop] for one in wanted]


def test_near_ranges_share_a_request_and_far_ones_do_not():
    plan = coalesce([ByteRange(20, 30), ByteRange(10_000_000, 10_000_010), ByteRange(0, 10)])
    assert plan.spans == (ByteRange(0, 30), ByteRange(10_000_000, 10_000_010))
    assert plan.span_of == (0, 1, 0)


def test_a_short_answer_is_damage():
    with pytest.raises(CorruptFileError, match="10 bytes"):
        read_ranges("x", [ByteRange(0, 10)], lambda _: b"123")


def test_the_first_error_is_raised():
    def fetch(span: ByteRange) -> bytes:
        raise StorageError("x", f"no bytes at {span.start}")

    wanted = [ByteRange(start, start + 1) for start in range(0, 10_000_000, 1_000_000)]
    with pytest.raises(StorageError, match="no bytes at 0"):
        read_ranges("x", wanted, fetch)
