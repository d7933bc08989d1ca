"""Row ids and row versions: forms, widths, damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb._pb import rowids as pb
from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format import row_sequences
from lance_nb.format.row_sequences import (
    Parts,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    RowIdSegments,
    RowVersionSequence,
    Values,
    choose_segment,
    choose_segments,
    segment_to_pb,
)
from tests.support.manifests import flipped

Segment = pb.U64Segment
Array = pb.EncodedU64Array


def sequence(*segments: pb.U64Segment) -> bytes:
    return pb.RowIdSequence(segments=segments).SerializeToString()


def array(*values: int) -> pb.EncodedU64Array:
    data = np.array(values, "<u8").tobytes()
    return Array(u64_array=Array.U64Array(values=data))


@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=30)
    | st.lists(st.integers(0, 60), max_size=40)
    | st.sets(st.integers(0, 400), max_size=300).map(sorted)
    | st.sets(st.integers(2**63, 2**63 + 40), max_size=40).map(sorted)
    | st.sets(st.sampled_from([0, 70_000, 2**40, 2**64 - 1])).map(sorted)
)
def test_any_ids_round_trip(values: list[int]):
    built = RowIdSegments.from_numpy(np.array(values, np.uint64))
    again = RowIdSegments.from_bytes(built.to_bytes(), physical_rows=len(values))
    assert again.to_numpy().tolist() == values
    assert again.num_rows == built.num_rows == len(values)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (range(100, 200), Range),
        ([one for one in range(1000) if one != 500], RangeWithHoles),
        (range(0, 1000, 2), RangeWithBitmap),
        ([0, 5, 100_000, 10_000_000], Values),
        ([3, 1, 2], Values),
        ([1, 5, 3], Values),
        ([1, 5, 5], Values),
        ([2**64 - 1], Values),
        ([], Range),
    ],
)
def test_the_smallest_kind_is_chosen(values, kind: type):
    built = RowIdSegments.from_numpy(np.array(list(values), np.uint64))
    assert type(built.segments[0]) is kind
    assert built.to_numpy().tolist() == list(values)
    (again,) = RowIdSegments.from_bytes(built.to_bytes(), physical_rows=len(values)).segments
    assert type(again) is kind
    assert len(again) == len(values)
    assert again.to_numpy().tolist() == list(values)


@pytest.mark.parametrize(
    ("span", "arm"),
    [
        (2**16 - 1, "u16_array"),
        (2**16, "u32_array"),
        (2**32 - 1, "u32_array"),
        (2**32, "u64_array"),
    ],
)
@pytest.mark.parametrize("base", [0, 77])
def test_offsets_are_as_narrow_as_the_span_allows(base: int, span: int, arm: str):
    for values in ([base, base + span], [base + span, base]):
        built = RowIdSegments.from_numpy(np.array(values, np.uint64))
        message = pb.RowIdSequence.FromString(built.to_bytes()).segments[0]
        encoded = getattr(message, message.WhichOneof("segment"))
        assert encoded.WhichOneof("array") == arm
        assert message.WhichOneof("segment") == (
            "sorted_array" if values[0] < values[1] else "array"
        )
        assert RowIdSegments.from_bytes(built.to_bytes()).to_numpy().tolist() == values


@pytest.mark.parametrize(
    ("span", "count", "kind"),
    [
        (32, 2, RangeWithBitmap),  # two ids of 16 bits are no smaller
        (33, 2, Values),
        (33, 3, RangeWithBitmap),
        (32, 30, RangeWithHoles),
        (48, 45, RangeWithHoles),
        (49, 45, RangeWithBitmap),
        (2**16, 4096, RangeWithBitmap),
        (2**16, 4095, Values),
        (2**16 + 1, 2049, RangeWithBitmap),
        (2**16 + 1, 2048, Values),
    ],
)
def test_kinds_are_compared_by_their_bytes(span: int, count: int, kind: type):
    ids = np.append(np.arange(count - 1), span - 1).astype(np.uint64)
    built = choose_segment(ids + np.uint64(7))
    assert type(built) is kind
    assert built.to_numpy().tolist() == (ids + np.uint64(7)).tolist()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 100, 2**20, 2**33, 2**62]),
            st.sets(st.integers(0, 70) | st.integers(0, 2**33), min_size=1).map(sorted),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([None, 0, 2**63, 2**64 - 1]),
    st.data(),
)
def test_parts_are_measured_and_built_as_each_by_itself(
    blocks: list[tuple[int, list[int]]], last: int | None, data: st.DataObject
):
    ids = [first + value for first, values in blocks for value in values]
    values = np.array([*ids, *([] if last is None else [last])], np.uint64)
    cuts = data.draw(st.sets(st.integers(1, max(len(values) - 1, 1))).map(sorted))
    places = np.array([cut for cut in cuts if cut < len(values)], np.int64)
    parts = Parts.between(values, places)
    segments = [choose_segment(part) for part in np.split(values, places)]

    assert [segment_to_pb(segment) for segment in parts.segments()] == [
        segment_to_pb(segment) for segment in segments
    ]
    sizes = [segment_to_pb(segment).ByteSize() + 4 for segment in segments]
    assert parts.num_bytes().tolist() == sizes


def test_segments_are_chosen_without_a_call_for_each(monkeypatch: pytest.MonkeyPatch):
    calls: list[int] = []
    monkeypatch.setattr(
        row_sequences,
        "choose_segment",
        lambda values: (calls.append(len(values)), choose_segment(values))[1],
    )
    blocks = np.random.default_rng(1).permutation(2000)
    ids = (blocks[:, None] * 2**24 + np.arange(8)).ravel().astype(np.uint64)

    segments = choose_segments(ids)

    assert calls == [len(ids)]
    assert len(segments) > 1900
    assert np.concatenate([segment.to_numpy() for segment in segments]).tolist() == ids.tolist()


@pytest.mark.parametrize("span", [71, 72, 73])
def test_a_bitmap_has_a_bit_for_every_id_of_its_range(span: int):
    ids = np.append(np.arange(0, span - 1, 2), span - 1).astype(np.uint64)
    built = RowIdSegments.from_numpy(ids)
    assert type(built.segments[0]) is RangeWithBitmap
    assert RowIdSegments.from_bytes(built.to_bytes()).to_numpy().tolist() == ids.tolist()


def test_the_worked_example_is_least_significant_bit_first():
    data = sequence(
        Segment(range_with_bitmap=Segment.RangeWithBitmap(start=5, end=8, bitmap=b"\x05")),
        Segment(range=Segment.Range(start=1001, end=1002)),
    )
    assert RowIdSegments.from_bytes(data).to_numpy().tolist() == [5, 7, 1001]
    forged = Segment.RangeWithBitmap(start=100, end=112, bitmap=b"\xfe\x07")
    found = RowIdSegments.from_bytes(sequence(Segment(range_with_bitmap=forged)))
    assert found.to_numpy().tolist() == list(range(101, 111))


@pytest.mark.parametrize(
    "encoded",
    [
        Array(u16_array=Array.U16Array(base=10, offsets=np.array([0, 3, 9], "<u2").tobytes())),
        Array(u32_array=Array.U32Array(base=10, offsets=np.array([0, 3, 9], "<u4").tobytes())),
        array(10, 13, 19),
    ],
)
def test_every_array_width_is_read(encoded: pb.EncodedU64Array):
    for one in (Segment(sorted_array=encoded), Segment(array=encoded)):
        assert RowIdSegments.from_bytes(sequence(one)).to_numpy().tolist() == [10, 13, 19]
    holes = Segment.RangeWithHoles(start=9, end=15, holes=array(10, 13))
    found = RowIdSegments.from_bytes(sequence(Segment(range_with_holes=holes)))
    assert found.to_numpy().tolist() == [9, 11, 12, 14]


def test_a_length_is_known_without_expanding():
    data = sequence(Segment(range=Segment.Range(start=0, end=2**62)))
    assert RowIdSegments.from_bytes(data).num_rows == 2**62
    with pytest.raises(CorruptFileError, match="100 row ids"):
        RowIdSegments.from_bytes(data, physical_rows=100)


@pytest.mark.parametrize(
    "segment",
    [
        Segment(),
        Segment(range=Segment.Range(start=5, end=4)),
        Segment(range=Segment.Range(start=0, end=2**64 - 1)),
        Segment(range_with_bitmap=Segment.RangeWithBitmap(start=0, end=100, bitmap=b"\x01")),
        Segment(range_with_bitmap=Segment.RangeWithBitmap(start=0, end=2**62, bitmap=b"\x01")),
        Segment(range_with_bitmap=Segment.RangeWithBitmap(start=0, end=3, bitmap=b"\x0f")),
        Segment(range_with_holes=Segment.RangeWithHoles(start=0, end=5, holes=array(7))),
        Segment(range_with_holes=Segment.RangeWithHoles(start=0, end=5, holes=array(2, 1))),
        Segment(sorted_array=array(2, 2)),
        Segment(sorted_array=array(1, 5, 3)),
        Segment(range_with_holes=Segment.RangeWithHoles(start=3, end=5, holes=array(2))),
        Segment(range_with_holes=Segment.RangeWithHoles(start=0, end=5, holes=array(5))),
        Segment(array=Array(u16_array=Array.U16Array(base=0, offsets=b"abc"))),
        Segment(array=Array(u16_array=Array.U16Array(base=2**64 - 1, offsets=b"\x01\x00"))),
        Segment(array=Array(u64_array=Array.U64Array(values=b"1234567"))),
    ],
)
def test_segments_that_do_not_fit_together_are_damage(segment: pb.U64Segment):
    with pytest.raises(CorruptFileError):
        RowIdSegments.from_bytes(sequence(segment), "1.manifest")


def test_any_damage_is_a_lance_error_or_a_sequence_of_the_right_length():
    data = sequence(
        Segment(range=Segment.Range(start=5, end=25)),
        Segment(range_with_bitmap=Segment.RangeWithBitmap(start=100, end=108, bitmap=b"\xf5")),
        Segment(range_with_holes=Segment.RangeWithHoles(start=9, end=15, holes=array(10, 13))),
        Segment(array=array(7, 3, 5)),
    )
    num_rows = RowIdSegments.from_bytes(data).num_rows
    for what, broken in flipped(data, 500, seed=11):
        try:
            found = RowIdSegments.from_bytes(broken, physical_rows=num_rows)
            assert len(found.to_numpy()) == num_rows
        except LanceError:
            continue
        except Exception as error:
            raise AssertionError(f"{what} escaped as {type(error).__name__}") from error


def test_no_segments_are_no_ids():
    assert RowIdSegments(()).to_numpy().tolist() == []
    assert RowIdSegments.from_bytes(b"").num_rows == 0


@given(st.lists(st.integers(1, 4) | st.just(2**63), max_size=50))
def test_any_versions_round_trip(versions: list[int]):
    built = RowVersionSequence.from_numpy(np.array(versions, np.uint64))
    again = RowVersionSequence.from_bytes(built.to_bytes(), physical_rows=len(versions))
    assert again == built
    assert again.to_numpy().tolist() == versions


def test_the_values_of_a_span_mean_nothing():
    bitmap = pb.U64Segment.RangeWithBitmap(start=500, end=504, bitmap=b"\x0d")
    message = pb.RowDatasetVersionSequence(
        runs=[
            pb.RowDatasetVersionRun(span=pb.U64Segment(range_with_bitmap=bitmap), version=3),
            pb.RowDatasetVersionRun(
                span=pb.U64Segment(range=pb.U64Segment.Range(start=0, end=2)), version=7
            ),
        ]
    )
    found = RowVersionSequence.from_bytes(message.SerializeToString())
    assert found.runs == ((3, 3), (2, 7))
    assert found.to_numpy().tolist() == [3, 3, 3, 7, 7]


def test_a_wrong_number_of_rows_is_damage():
    data = RowVersionSequence(((2**40, 1),)).to_bytes()
    with pytest.raises(CorruptFileError, match="10 versions"):
        RowVersionSequence.from_bytes(data, physical_rows=10)


N = 300_000


def updated(ids: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the ids after rows were rewritten at the end, and all rows put into one fragment."""
    return np.concatenate((np.delete(ids, places), ids[places]))


@pytest.mark.parametrize(
    ("ids", "size_bytes"),
    [
        (updated(np.arange(N), np.array([777])), 40),
        (np.concatenate((np.arange(10**12, 10**12 + 999), np.arange(999))), 40),
        (updated(np.arange(N), np.arange(1, N, 2)), N // 4 + 100),
        (updated(np.arange(N), np.arange(500, 90_000)), 40),
        (np.arange(N)[::-1], 4 * N + 40),
        (np.random.default_rng(3).permutation(N), 4 * N + 40),
    ],
    ids=["one", "two ranges", "every other", "a block", "descending", "random"],
)
def test_a_sequence_is_cut_where_that_is_smaller(ids: np.ndarray, size_bytes: int) -> None:
    data = RowIdSegments.from_numpy(ids.astype(np.uint64)).to_bytes()
    assert len(data) <= size_bytes
    assert (RowIdSegments.from_bytes(data).to_numpy() == ids.astype(np.uint64)).all()


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 90), st.integers(1, 5)), max_size=9))
def test_pieces_of_any_kind_keep_their_order(pieces: list[tuple[int, int, int]]) -> None:
    parts = [np.arange(start, start + length * step, step) for start, length, step in pieces]
    ids = np.concatenate([np.empty(0, np.int64), *parts]).astype(np.uint64)
    data = RowIdSegments.from_numpy(ids).to_bytes()
    assert (RowIdSegments.from_bytes(data).to_numpy() == ids).all()
