"""Names of index types from their details."""

from __future__ import annotations

import pytest

from lance_nb._pb import index as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.index_details import index_type
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
    with pytest.raises(CorruptFileError):
        index_type(index(VECTOR, b"\xff\xff"))
