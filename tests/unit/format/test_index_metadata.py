"""Index metadata: read whole, carried whole."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyroaring import BitMap

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format.index_metadata import (
    IndexFile,
    IndexMetadata,
    build_index_section,
    parse_index_section,
)
from tests.support.manifests import flipped

INDEX = IndexMetadata(
    uuid="0f9c5c8e-7e2b-4b6d-9a46-1d9d5f6f6a11",
    name="id_idx",
    fields=(0,),
    dataset_version=3,
    fragment_bitmap=BitMap([0, 2, 7]).serialize(),
    details_url="/lance.table.BTreeIndexDetails",
    details=b"",
    index_version=0,
    created_at_ms=1_795_230_129_147,
    base_id=0,
    files=(IndexFile("page_data.lance", 10), IndexFile("lookup.lance", 5)),
    covering_fields=(1,),
    clustering_id=2,
    metadata={"a": "b"},
    unknown=b"\xfa\x3f\x03abc",
)


def test_every_field_round_trips():
    other = IndexMetadata("00000000-0000-0000-0000-000000000000", "", (), 0)
    section = build_index_section([INDEX, other])
    assert parse_index_section(section) == (INDEX, other)
    assert build_index_section(parse_index_section(section)) == section


def test_what_it_says_about_itself():
    assert INDEX.kind == "BTree"
    assert INDEX.size_bytes == 15
    assert INDEX.created_at == datetime(2026, 11, 21, 3, 2, 9, 147000, UTC)
    assert list(INDEX.fragment_ids()) == [0, 2, 7]
    assert not INDEX.is_system


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("/lance.table.BitmapIndexDetails", "Bitmap"),
        ("/lance.index.pb.VectorIndexDetails", "Vector"),
        ("/lance.table.VECTORINDEXDETAILS", "Vector"),
        ("type.googleapis.com/lance.table.InvertedIndexDetails", "Inverted"),
        ("/lance.table.FragmentReuseIndexDetails", "FragmentReuse"),
        ("/lance.future.QuantumIndexDetails", "QuantumIndexDetails"),
        ("", ""),
    ],
)
def test_kinds_follow_the_end_of_the_url(url: str, kind: str):
    assert IndexMetadata("0" * 32, "x", (), 1, details_url=url).kind == kind


def test_an_absent_bitmap_differs_from_a_broken_one():
    assert IndexMetadata("0" * 32, "x", (), 1).fragment_ids() is None
    with pytest.raises(CorruptFileError, match="Roaring"):
        IndexMetadata("0" * 32, "x", (), 1, fragment_bitmap=b"\xff" * 9).fragment_ids()


def test_an_id_that_is_no_uuid_is_damage():
    section = pb.IndexSection(indices=[pb.IndexMetadata(uuid=pb.UUID(uuid=b"short"))])
    with pytest.raises(CorruptFileError, match="16 bytes"):
        parse_index_section(section.SerializeToString())


def test_any_damage_is_a_lance_error_or_a_value():
    for what, broken in flipped(build_index_section([INDEX]), 400, seed=5):
        try:
            for one in parse_index_section(broken):
                assert isinstance(one.kind, str)
                assert one.created_at is None or one.created_at.tzinfo
                one.fragment_ids()
        except LanceError:
            continue
        except Exception as error:
            raise AssertionError(f"{what} escaped as {type(error).__name__}") from error
