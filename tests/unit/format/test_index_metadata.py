"""Index metadata: every field round trips, types and settings as pylance shows them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pyroaring import BitMap

from lance_nb._pb import index as index_pb
from lance_nb._pb import table as pb
from lance_nb.errors import ArgumentError, CorruptFileError, InvalidInputError, LanceError
from lance_nb.format.index_metadata import (
    Index,
    IndexFile,
    IndexMetadata,
    build_index_section,
    index_settings,
    index_type,
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


def test_dates_that_no_calendar_has_are_none():
    last = 253_402_300_799_999  # the end of the year 9999
    assert IndexMetadata("0" * 32, "x", (), 1, created_at_ms=last).created_at == datetime(
        9999, 12, 31, 23, 59, 59, 999000, UTC
    )
    for ms in (None, last + 1, 2**64 - 1):
        assert IndexMetadata("0" * 32, "x", (), 1, created_at_ms=ms).created_at is None
    assert IndexMetadata("0" * 32, "x", (), 1, created_at_ms=0).created_at == datetime(
        1970, 1, 1, tzinfo=UTC
    )


def test_sizes_are_unknown_without_a_list_of_files():
    assert IndexMetadata("0" * 32, "x", (), 1).size_bytes is None
    one = IndexMetadata("0" * 32, "x", (), 1, files=(IndexFile("a", 0),))
    assert one.size_bytes == 0


def test_bookkeeping_of_the_format_is_known_by_its_name():
    assert IndexMetadata("0" * 32, "__lance_frag_reuse", (), 1).is_system
    assert not IndexMetadata("0" * 32, "a_idx", (), 1).is_system


@pytest.mark.parametrize("field", ["index_version", "created_at", "base_id"], ids=str)
def test_zero_is_recorded_and_absence_is_not(field: str):
    name = "created_at_ms" if field == "created_at" else field
    zero = IndexMetadata("0f9c5c8e-7e2b-4b6d-9a46-1d9d5f6f6a11", "x", (), 1, **{name: 0})
    absent = IndexMetadata("0f9c5c8e-7e2b-4b6d-9a46-1d9d5f6f6a11", "x", (), 1)
    assert zero.to_pb().HasField(field)
    assert not absent.to_pb().HasField(field)
    assert IndexMetadata.from_pb(zero.to_pb()) == zero
    assert IndexMetadata.from_pb(absent.to_pb()) == absent


def test_details_are_recorded_when_either_part_is_there():
    uuid = "0f9c5c8e-7e2b-4b6d-9a46-1d9d5f6f6a11"
    for url, data in (("/u", b""), ("", b"d"), ("/u", b"d")):
        one = IndexMetadata(uuid, "x", (), 1, details_url=url, details=data)
        assert one.to_pb().HasField("index_details")
        assert IndexMetadata.from_pb(one.to_pb()) == one
    assert not IndexMetadata(uuid, "x", (), 1).to_pb().HasField("index_details")


# --- as operations name an index ------------------------------------------------------------------

UUID = "d02910da-c60f-48da-9df6-846239884c05"


def test_an_index_that_a_caller_makes_is_the_metadata_it_stands_for():
    made_at = datetime(2026, 1, 2, 3, 4, 5, 678_900, UTC)
    files = [IndexFile("page_data.lance", 10)]
    index = Index(UUID.upper(), "a_idx", [0, 2], 3, {4, 1}, 5, made_at, 6, files, ("/u", b"d"), [7])
    assert (index.uuid, index.name, index.dataset_version) == (UUID, "a_idx", 3)
    assert (index.index_version, index.base_id) == (5, 6)
    assert index.fields == [0, 2]
    assert index.fragment_ids == {1, 4}
    assert index.created_at == datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    assert index.files == files
    assert index.index_details == ("/u", b"d")
    assert index.covering_fields == [7]
    assert index.metadata == IndexMetadata(
        UUID, "a_idx", (0, 2), 3, BitMap([1, 4]).serialize(), "/u", b"d", 5,
        int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()) * 1000 + 678, 6, tuple(files),
        (7,),
    )  # fmt: skip
    assert IndexMetadata.from_pb(index.metadata.to_pb()) == index.metadata
    shown = repr(index)
    assert shown.startswith(f"Index(uuid='{UUID}', name='a_idx', fields=[0, 2], dataset_version=3")
    assert shown.endswith("index_details=('/u', b'd'), covering_fields=[7])")


def test_what_an_index_does_not_say_is_none():
    index = Index(UUID, "a_idx", [0], 1, [], 0)
    assert (index.created_at, index.base_id, index.files, index.index_details) == (None,) * 4
    assert index.fragment_ids == frozenset()
    assert index.covering_fields == []
    assert index.metadata.fragment_ids() == BitMap()  # covers none, and says so
    silent = Index.of(IndexMetadata(UUID, "x", (), 1))
    assert (silent.index_version, silent.fragment_ids) == (0, frozenset())


def test_metadata_and_indices_are_both_taken():
    index = Index.of(INDEX)
    assert index.metadata is INDEX
    assert Index.of(index) is index
    with pytest.raises(ArgumentError, match="an Index, not str"):
        Index.of("a_idx")


@pytest.mark.parametrize("identity", ["short", "", None, 3])
def test_an_id_that_is_no_uuid_is_refused(identity: Any):
    with pytest.raises(InvalidInputError, match="is a UUID, not"):
        Index(identity, "a", [0], 1, [], 0)


def test_equal_indices_have_equal_bytes():
    names = [f"key {number}" for number in range(50)]
    one = replace(INDEX, metadata=dict.fromkeys(names, "v"))
    other = replace(INDEX, metadata=dict.fromkeys(reversed(names), "v"))
    assert build_index_section([one]) == build_index_section([other])


def test_what_pylance_leaves_out_is_zero():
    index = IndexMetadata(INDEX.uuid, "i", (0,), 1)

    assert (index.clustering_id, index.to_pb().clustering_id) == (0, 0)


VECTOR = "/lance.index.index_pb.VectorIndexDetails"


def index(url: str, details: bytes = b"") -> IndexMetadata:
    identity = "00000000-0000-0000-0000-000000000001"
    return IndexMetadata(identity, "i", (0,), 1, details_url=url, details=details)


@pytest.mark.parametrize(
    ("details", "name"),
    [
        (
            index_pb.VectorIndexDetails(
                pq=index_pb.VectorIndexDetails.ProductQuantization(num_bits=8)
            ),
            "IVF_PQ",
        ),
        (index_pb.VectorIndexDetails(flat=index_pb.VectorIndexDetails.Flat()), "IVF_FLAT"),
        (
            index_pb.VectorIndexDetails(
                sq=index_pb.VectorIndexDetails.ScalarQuantization(),
                hnsw_index_config=index_pb.VectorIndexDetails.HnswConfig(max_connections=20),
            ),
            "IVF_HNSW_SQ",
        ),
    ],
)
def test_a_vector_index_is_named_by_its_parts(
    details: index_pb.VectorIndexDetails, name: str
) -> None:
    assert index_type(index(VECTOR, details.SerializeToString())) == name


def test_old_vector_details_are_empty_and_read_as_vector() -> None:
    assert index_type(index("/lance.table.VectorIndexDetails")) == "Vector"


def test_a_scalar_index_is_named_by_its_url() -> None:
    assert index_type(index("/lance.table.BTreeIndexDetails")) == "BTree"


def test_damaged_details_are_refused() -> None:
    for read in (index_type, index_settings):
        with pytest.raises(CorruptFileError):
            read(index(VECTOR, b"\xff\xff"))


def test_a_vector_index_says_how_it_compresses() -> None:
    details = index_pb.VectorIndexDetails(metric_type=2, runtime_hints={"a": "1"})
    details.pq.num_bits, details.pq.num_sub_vectors = 8, 4
    details.hnsw_index_config.max_connections = 20
    assert index_settings(index(VECTOR, details.SerializeToString())) == {
        "metric_type": "Dot",
        "hnsw": {"max_connections": 20, "construction_ef": 0, "max_level": 0},
        "compression": {"type": "pq", "num_bits": 8, "num_sub_vectors": 4},
        "runtime_hints": {"a": "1"},
    }


def test_a_metric_of_a_newer_writer_is_shown_as_its_number() -> None:
    assert index_settings(index(VECTOR, b"\x08\x09")) == {"metric_type": 9}


def test_other_kinds_say_little() -> None:
    assert index_settings(index("/lance.table.BTreeIndexDetails")) == {}
    text = index_settings(index("/lance.table.InvertedIndexDetails"))
    assert (text["base_tokenizer"], text["with_position"]) == (None, False)
