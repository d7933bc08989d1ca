"""Lists of fragments: lazy, counted at once, checked."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format import fragment_list
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import Manifest, WriterVersion, parse_manifest
from lance_nb.format.manifest_history import TotalsMemo
from lance_nb.format.schema import Schema
from lance_nb.format.serialized_fragments import (
    ROUNDS_MAX,
    count_fragment,
    count_fragments,
    largest_field_id,
)
from tests.support.manifest_files import parse_summary
from tests.support.manifests import flipped, fragment

WRITER = WriterVersion("lance", "0.9.0")


def test_it_is_a_sequence_over_bytes():
    fragments = [fragment(n) for n in range(5)]
    found = FragmentList([one.to_bytes() for one in fragments])
    assert list(found) == fragments
    assert found[-1] == fragments[-1]
    assert found[0] is found[0]
    assert list(found[1:3]) == fragments[1:3]
    assert len(found) == 5
    assert found == FragmentList.of(fragments)
    assert found != FragmentList.of(fragments[:4])
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301
    with pytest.raises(IndexError):
        found[5]
    assert found.position_of(3) == 3
    assert found.position_of(99) is None


def test_counts_of_a_small_list():
    counts = FragmentList.of([fragment(4, 100, 7, 2), fragment(2, 50)]).counts()
    assert counts.ids.tolist() == [4, 2]
    assert counts.physical_rows.tolist() == [100, 50]
    assert counts.num_deleted_rows.tolist() == [7, 0]
    assert counts.num_rows.tolist() == [93, 50]
    assert counts.num_data_files.tolist() == [2, 1]
    assert counts.num_deletion_files.tolist() == [1, 0]
    assert counts.size_bytes.tolist() == [2001, 1000]
    assert FragmentList().counts().ids.tolist() == []


@pytest.mark.parametrize(
    ("fragments", "reason"),
    [
        ([fragment(2**40)], "32-bit"),
        ([fragment(1, 10, 11)], "at most 10 deleted rows in fragment 1"),
        ([fragment(1, 100, 2**60)], "at most 100 deleted"),
        ([fragment(1, 2**62), fragment(2, 2**62)], "sums below"),
        ([fragment(1, 2**64 - 1)], r"below 2\*\*63"),
    ],
)
def test_impossible_numbers_are_damage(fragments: list[Fragment], reason: str):
    with pytest.raises(CorruptFileError, match=reason):
        FragmentList.of(fragments).counts()


SMALL = st.integers(0, 2**40)
MESSAGES = st.builds(
    pb.DataFragment,
    id=SMALL,
    physical_rows=SMALL,
    files=st.lists(
        st.builds(
            pb.DataFile,
            path=st.text(max_size=200),
            fields=st.lists(st.integers(-2, 300), max_size=5),
            file_size_bytes=st.integers(0, 2**62),
            base_id=st.none() | st.integers(0, 3),
        ),
        max_size=3,
    ),
    deletion_file=st.none() | st.builds(pb.DeletionFile, id=SMALL, num_deleted_rows=SMALL),
    inline_row_ids=st.none() | st.binary(max_size=200),
    metadata=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


@given(st.lists(MESSAGES, max_size=6))
def test_counting_in_step_equals_counting_one_by_one(messages: list[pb.DataFragment]):
    raw = [one.SerializeToString() for one in messages]
    try:
        expected = [count_fragment(one, "") for one in raw]
    except CorruptFileError:
        with pytest.raises(CorruptFileError):
            count_fragments(raw, "")
        return
    assert count_fragments(raw, "").T.tolist() == expected


def test_counting_damaged_bytes_equals_the_protobuf_parser():
    raw = fragment(5, 1000, 3, 2).to_bytes()
    for what, broken in flipped(raw, 800, seed=7):
        for batch in ([broken], [raw, broken, raw]):
            try:
                expected = [count_fragment(one, "") for one in batch]
            except CorruptFileError:
                continue  # the parser refuses: whatever counting says, decoding will tell
            assert count_fragments(batch, "").T.tolist() == expected, what


def test_unusual_encodings_are_left_to_the_parser():
    many = b"".join(b"\x08" + bytes([n % 100]) for n in range(ROUNDS_MAX + 20))
    twice = b"\x08\x01\x08\x02"
    long_tag = b"\x08\x05\xfa\x3f\x03abc"
    split = b"\x1a\x02\x20\x03\x1a\x02\x18\x07"  # a deletion file in two parts
    raw = [many, twice, long_tag, split, b""]
    assert count_fragments(raw, "").T.tolist() == [count_fragment(one, "") for one in raw]
    for broken in (
        b"\x08",
        b"\x12\x05ab",
        b"\x08" + b"\xff" * 11,
        b"\x0b",
        b"\x12\xff\xff\xff\x7f",
    ):
        with pytest.raises(CorruptFileError):
            count_fragments([b"", broken], "")


@pytest.mark.parametrize("memo", [None, TotalsMemo()])
def test_totals_of_impossible_fragments_are_damage(memo: TotalsMemo | None):
    for one in (fragment(1, 10, 11), fragment(1, 2**62), fragment(1, 2**64 - 1)):
        manifest = Manifest(1, Schema(()), FragmentList.of([one]), writer_version=WRITER)
        data = manifest.to_bytes()
        with pytest.raises(CorruptFileError):
            parse_summary(data, "x", memo)


def test_fragments_are_found_replaced_and_removed_by_id() -> None:
    fragments = FragmentList.of([fragment(one) for one in (4, 7, 9)])
    assert list(fragments.with_ids([9, 5, 4])) == [4, 9]
    changed = fragments.replaced({7: fragment(7, 50, 5), 4: None, 100: None})
    assert [one.id for one in changed] == [7, 9]
    assert changed.counts().physical_rows.tolist() == [50, 100]
    assert changed.counts().num_deleted_rows.tolist() == [5, 0]
    assert [one.id for one in fragments] == [4, 7, 9]


def test_what_is_decoded_stays_so_in_lists_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    fragments = FragmentList([fragment(number, 10).to_bytes() for number in range(4)])
    decoded = list(fragments)
    longer = fragments.appended([fragment(4, 10)])
    changed = fragments.replaced({1: fragment(1, 7)})
    shorter = fragments.replaced({1: None})
    assert list(longer) == [*decoded, fragment(4, 10)]
    assert list(changed) == [decoded[0], fragment(1, 7), *decoded[2:]]
    assert list(shorter) == [decoded[0], *decoded[2:]]
    assert longer[0] is changed[0] is decoded[0]
    assert list(fragments) == decoded
    monkeypatch.setattr(fragment_list, "_CARRIED_MAX", 3)
    assert fragments.appended([])[0] is not decoded[0]


def test_replaced_fragments_are_checked_like_others() -> None:
    fragments = FragmentList.of([fragment(1), fragment(2)])
    with pytest.raises(CorruptFileError, match="at most 10 deleted"):
        fragments.replaced({1: fragment(2, 10, 11)})


def test_fragments_of_one_id_are_read_in_order_and_never_looked_up_by_it() -> None:
    fragments = FragmentList.of([fragment(1, 5), fragment(4), fragment(1, 7)])
    assert fragments.counts().physical_rows.tolist() == [5, 100, 7]
    assert fragments.repeated_id() == 1
    assert list(fragments.places_of(fragments)) == [0, 1, 2]
    assert list(fragments.places_of([fragment(1, 9)])) == [None]
    assert [one.physical_rows for one in fragments.in_order()] == [5, 7, 100]
    assert (fragments.position_of(4), list(fragments.with_ids([4, 9]))) == (1, [4])
    for look_up in (
        lambda: fragments.position_of(1),
        lambda: fragments.with_ids([4, 1]),
        lambda: fragments.replaced({1: None}),
        fragments.check_ids_differ,
    ):
        with pytest.raises(CorruptFileError, match="fragment id 1 twice"):
            look_up()
    assert FragmentList.of([fragment(1), fragment(2)]).repeated_id() is None


def test_many_fragments_of_one_id_are_each_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was compared with all others: 3,000 of them took more than 10 s."""
    fragments = FragmentList.of([fragment(1, at % 3) for at in range(50)])
    listed, decoded = list(fragments), []
    read = FragmentList.__getitem__
    monkeypatch.setattr(
        FragmentList, "__getitem__", lambda self, at: decoded.append(at) or read(self, at)
    )
    assert list(fragments.places_of(listed)) == [at % 3 for at in range(50)]
    assert len(decoded) == 50


def test_counts_that_are_not_trusted_are_left_out_and_the_bytes_stay() -> None:
    """A manifest without a writer: 90 of 100 rows are counted, and 10 deleted ones twice."""
    raw = [fragment(1, 90, 10).to_bytes(), fragment(2, 4, 12).to_bytes(), fragment(3).to_bytes()]
    manifest = Manifest(1, Schema(()), FragmentList(raw))
    assert manifest.to_bytes() == replace(manifest, writer_version=None).to_bytes()
    read = parse_manifest(manifest.to_bytes(), "m").fragments
    named = parse_manifest(replace(manifest, writer_version=WRITER).to_bytes(), "m").fragments

    with pytest.raises(CorruptFileError, match="at most 4 deleted"):
        named.counts()
    for one in (
        read, pickle.loads(pickle.dumps(read)), read[:], read.appended([]), read.replaced({}),  # noqa: S301
        read.in_order(),
    ):  # fmt: skip
        assert not one.has_counts
        assert list(one.raw) == raw
        assert [(f.physical_rows, f.num_deleted_rows) for f in one] == [(0, 0)] * 3
        assert [f.deletion_file is not None for f in one] == [True, True, False]
        assert one.counts().num_rows.tolist() == [0, 0, 0]
        assert one.counts().num_deletion_files.tolist() == [1, 1, 0]


def test_a_list_in_order_is_itself() -> None:
    ordered = FragmentList.of([fragment(1), fragment(2)])
    assert ordered.in_order() is ordered
    mixed = FragmentList.of([fragment(2), fragment(1)])
    assert mixed.in_order() == ordered


def test_fragments_in_any_order_are_found_after_sorting_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [9, 2, 7, 4, 0]
    found = FragmentList.of([fragment(n) for n in ids])
    found.counts()
    sorts = []
    argsort = np.argsort
    monkeypatch.setattr(
        np, "argsort", lambda *args, **how: sorts.append(1) or argsort(*args, **how)
    )
    for n in (4, 9, 0):
        assert found.position_of(n) == ids.index(n)
    assert found.positions_of([7, 9, 9, 5]) == [0, 2]
    assert [one.id for one in found.with_ids([0, 2]).values()] == [2, 0]
    assert list(found.places_of([fragment(7), fragment(5)])) == [2, None]
    assert found.positions_of([]) == []
    assert len(sorts) == 1


def test_field_ids_that_are_not_packed_count_and_negative_ones_do_not() -> None:
    minus_two = b"\xfe" + b"\xff" * 8 + b"\x01"
    for ids, largest in ((b"\x10\x09\x10\x07", 9), (b"\x10\x07\x10" + minus_two, 7), (b"", -1)):
        raw = b"\x12" + bytes([len(ids)]) + ids
        assert largest_field_id([raw, raw], "a manifest") == largest
