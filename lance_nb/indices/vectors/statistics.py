"""What the files of a vector index say of it, for ``index_statistics``.

The names are pylance's. Nothing is read of the vectors.
Source: ``index_stats`` of pylance 14.0.2.
"""

from __future__ import annotations

from typing import Any

from lance_nb.errors import LanceError
from lance_nb.indices.vectors.ivf import IvfSegment
from lance_nb.indices.vectors.search import VectorIndex, indices_of, opened_segment
from lance_nb.table import indices
from lance_nb.table.snapshot import Snapshot

_PLACES = ("codebook_position", "codebook_tensor")


def statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return the statistics of an index, of a vector index with what its files say.

    ``not_read`` names what is missing where they are damaged, or of a newer version. Raises
    IndexNotFoundError.
    """
    found = indices.statistics(snapshot, name)
    index = next((one for one in indices_of(snapshot) if one.name == name), None)
    if index is None:
        return found
    try:
        said = _of_files(index)
    except LanceError:
        return found
    parts = [{**one, **said.get(str(one["uuid"]), {})} for one in found["segments"]]
    if len(said) < len(parts):  # a segment without live rows is not opened
        return {**found, "indices": parts, "segments": parts}
    return {**found, "indices": parts, "segments": parts, "not_read": []}


def _of_files(index: VectorIndex) -> dict[str, dict[str, Any]]:
    return {one.index.uuid: _of_segment(opened_segment(one)) for one in index.segments}


def _of_segment(ivf: IvfSegment) -> dict[str, Any]:
    storage = {key: one for key, one in ivf.settings.storage.items() if key not in _PLACES}
    kind = ivf.kind.removeprefix("IVF_")
    return {
        "index_type": ivf.kind,
        "uri": ivf.index_path,
        "metric_type": ivf.metric,
        "num_partitions": ivf.num_partitions,
        "sub_index": {
            **storage,
            "index_type": "HNSW" if kind.startswith("HNSW") else kind,
            "metric_type": ivf.metric,
        },
        "partitions": [{"size": one} for one in ivf.lengths.tolist()],
        "centroids": ivf.centroids.tolist(),
        "loss": ivf.loss,
        "index_file_version": "V3",
    }
