"""The name of an index's type, as pylance shows it: BTree, Inverted, IVF_HNSW_PQ...

Scalar indices say it in the type url of their details; a vector index says in its details how its
vectors are partitioned and compressed.

Not supported: the empty details of vector indices of 2025 and before read as plain "Vector".
Source: message VectorIndexDetails of lance.index.pb; names of pylance 14.0.2.
"""

from __future__ import annotations

from lance_nb._pb import index as pb
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.wire import parse

_COMPRESSIONS = {"pq": "PQ", "sq": "SQ", "rq": "RQ", "flat": "FLAT"}


def index_type(index: IndexMetadata, path: str = "") -> str:
    """Return the name of the index's type. Raises CorruptFileError."""
    if index.kind != "Vector" or not index.details:
        return index.kind
    details = parse(pb.VectorIndexDetails, index.details, path)
    compression = details.WhichOneof("compression")
    if compression is None:
        return index.kind
    graph = "HNSW_" if details.HasField("hnsw_index_config") else ""
    return f"IVF_{graph}{_COMPRESSIONS[compression]}"
