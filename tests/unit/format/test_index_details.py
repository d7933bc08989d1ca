"""What the details of an index say: its type, its settings."""

from __future__ import annotations

import pytest

from lance_nb._pb import index as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.index_details import index_settings, index_type
from lance_nb.format.index_metadata import IndexMetadata

VECTOR = "/lance.index.pb.VectorIndexDetails"


def index(url: str, details: bytes = b"") -> IndexMetadata:
    identity = "00000000-0000-0000-0000-000000000001"
    return IndexMetadata(identity, "i", (0,), 1, details_url=url, details=details)


@pytest.mark.parametrize(
    ("details", "name"),
    [
        (pb.VectorIndexDetails(pq=pb.VectorIndexDetails.ProductQuantization(num_bits=8)), "IVF_PQ"),
        (pb.VectorIndexDetails(flat=pb.VectorIndexDetails.Flat()), "IVF_FLAT"),
        (
            pb.VectorIndexDetails(
                sq=pb.VectorIndexDetails.ScalarQuantization(),
                hnsw_index_config=pb.VectorIndexDetails.HnswConfig(max_connections=20),
            ),
            "IVF_HNSW_SQ",
        ),
    ],
)
def test_a_vector_index_is_named_by_its_parts(details: pb.VectorIndexDetails, name: str) -> None:
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
    details = pb.VectorIndexDetails(metric_type=2, runtime_hints={"a": "1"})
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
