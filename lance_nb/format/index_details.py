"""What the details of an index say: its type as pylance shows it (BTree, IVF_HNSW_PQ...), settings.

Scalar indices say their type in the type url of their details; a vector index says in its details
how its vectors are partitioned and compressed.

Not supported: the empty details of vector indices of 2025 and before read as plain "Vector".
Source: message VectorIndexDetails of lance.index.pb; names of pylance 14.0.2.
"""

from __future__ import annotations

from typing import Any

from lance_nb._pb import index as pb
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.wire import parse

_COMPRESSIONS = {"pq": "PQ", "sq": "SQ", "rq": "RQ", "flat": "FLAT"}
_METRICS = ("L2", "Cosine", "Dot", "Hamming")


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


def index_settings(index: IndexMetadata, path: str = "") -> dict[str, Any]:
    """Return what the details say, as pylance's ``IndexDescription.details``; {} if nothing.

    Raises CorruptFileError.
    """
    if index.kind == "Vector":
        return _vector_settings(parse(pb.VectorIndexDetails, index.details, path))
    if index.kind == "Inverted":
        found = _fields(parse(pb.InvertedIndexDetails, index.details, path))
        return found | {"language": found["language"].strip('"')}  # it is written as JSON
    return {}


def _vector_settings(details: pb.VectorIndexDetails) -> dict[str, Any]:
    known = details.metric_type < len(_METRICS)
    found: dict[str, Any] = {
        "metric_type": _METRICS[details.metric_type] if known else details.metric_type
    }
    if details.HasField("hnsw_index_config"):
        found["hnsw"] = _fields(details.hnsw_index_config)
    kind = details.WhichOneof("compression")
    if kind is not None:
        found["compression"] = {"type": kind, **_fields(getattr(details, kind))}
    if details.runtime_hints:
        found["runtime_hints"] = dict(details.runtime_hints)
    return found


def _fields(message: Any) -> dict[str, Any]:
    """Return the single values of a message, None for an absent one."""
    return {
        one.name: getattr(message, one.name)
        if not one.has_presence or message.HasField(one.name)
        else None
        for one in message.DESCRIPTOR.fields
    }
