"""Fragments, and lists of them kept as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import (
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionFileType,
    ExternalSequence,
    Fragment,
    InlineSequence,
)
from tests.support.manifests import fragment

U64 = st.integers(0, 2**64 - 1)
BASE = st.none() | st.integers(0, 5)
FILES = st.builds(
    DataFile,
    st.text(max_size=10),
    st.lists(st.integers(-3, 100), max_size=4).map(tuple),
    st.lists(st.integers(-1, 100), max_size=4).map(tuple),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    U64,
    BASE,
)
DELETIONS = st.builds(DeletionFile, st.sampled_from(DeletionFileType), U64, U64, U64, BASE)
SEQUENCES = (
    st.none()
    | st.builds(InlineSequence, st.binary(max_size=5))
    | st.builds(ExternalSequence, st.text(max_size=5), U64, U64)
)


@given(
    st.builds(
        Fragment,
        U64,
        st.lists(FILES, max_size=3).map(tuple),
        U64,
        st.none() | DELETIONS,
        SEQUENCES | st.just(ColumnSequence(-3)),
        SEQUENCES | st.just(ColumnSequence(-4)),
        SEQUENCES | st.just(ColumnSequence(-5)),
        clustering_id=st.integers(0, 2**32 - 1),
        metadata=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    )
)
def test_every_field_round_trips(one: Fragment):
    assert Fragment.from_bytes(one.to_bytes()) == one


def test_base_id_zero_differs_from_none():
    zero = DataFile("x", (), (), (2, 2), 0, 0)
    assert DataFile.from_pb(zero.to_pb()).base_id == 0
    assert DataFile.from_pb(DataFile("x", (), (), (2, 2)).to_pb()).base_id is None


def test_fields_of_newer_writers_survive_at_every_level():
    new = b"\xfa\x3f\x03abc"
    file = b"\x0a\x01x" + new
    deletion = b"\x18\x05" + new
    raw = b"\x12" + bytes([len(file)]) + file + b"\x1a" + bytes([len(deletion)]) + deletion + new
    one = Fragment.from_bytes(raw)
    assert one.unknown == one.files[0].unknown == one.deletion_file.unknown == new
    assert one.has_unknown_fields
    assert one.to_bytes() == raw


def test_counts_and_places():
    one = fragment(4, 100, 7)
    assert (one.num_rows, one.num_deleted_rows) == (93, 7)
    assert one.files[0].location() == "data/4-0.lance"
    assert one.deletion_file.location(4) == "_deletions/4-3-18446744073709551615.bin"
    with pytest.raises(CorruptFileError, match="leaves the dataset"):
        DataFile("../x", (), (), (2, 2)).location("1.manifest")


def test_overlays_are_carried():
    overlay = pb.DataOverlayFile(committed_version=3).SerializeToString()
    one = Fragment(1, (), 5, overlays=(overlay,))
    assert Fragment.from_bytes(one.to_bytes()).overlays == (overlay,)


def test_bytes_that_are_no_fragment_are_damage():
    with pytest.raises(CorruptFileError, match="DataFragment"):
        Fragment.from_bytes(b"\x0a\xff", "x")
