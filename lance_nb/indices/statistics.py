"""What the files of an index say of it, for ``index_statistics``.

The names are pylance's. Settings, numbers of rows and bounds are read, no values and no vectors.
Source: ``index_stats`` of pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lance_nb.errors import LanceError, NotSupportedError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.index_file import open_file
from lance_nb.indices.listing import list_indices
from lance_nb.indices.registry import KINDS, STATISTICS
from lance_nb.indices.texts.partition import read_parameters
from lance_nb.indices.vectors.ivf import IvfSegment
from lance_nb.indices.vectors.search import KIND, opened_segment
from lance_nb.table import indices
from lance_nb.table.snapshot import Snapshot

_PLACES = ("codebook_position", "codebook_tensor")


def statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return the statistics of an index, with what its files say.

    ``not_read`` names what is missing where they are damaged, or of a newer version. Raises
    IndexNotFoundError.
    """
    summary = indices.statistics(snapshot, name)
    if not summary.get("not_read"):
        return summary
    segments = indices.segments_of(snapshot, name)
    kind = segments[0].kind
    try:
        if kind in STATISTICS:
            statistics_by_uuid = {
                segment.uuid: _of_scalars(snapshot, segment) for segment in segments
            }
        elif kind == "Inverted":
            statistics_by_uuid = {
                segment.uuid: _of_texts(snapshot, segment) for segment in segments
            }
        else:
            listed = list_indices(snapshot, (KIND,))
            index = next(
                (listed_index for listed_index in listed if listed_index.name == name), None
            )
            if index is None:
                return summary
            statistics_by_uuid = {
                segment.index.uuid: _of_segment(opened_segment(segment))
                for segment in index.segments
            }
    except LanceError:
        return summary
    parts = [
        {**segment, **statistics_by_uuid.get(str(segment["uuid"]), {})}
        for segment in summary["segments"]
    ]
    if len(statistics_by_uuid) < len(parts):  # a segment without live rows is not opened
        return {**summary, "indices": parts, "segments": parts}
    return {**summary, "indices": parts, "segments": parts, "not_read": []}


def _of_scalars(snapshot: Snapshot, segment: IndexMetadata) -> dict[str, Any]:
    kind = KINDS[segment.kind]
    if (segment.index_version or 0) > kind.newest:
        raise NotSupportedError(f"index {segment.name!r} is of version {segment.index_version}")
    files = [open_file(snapshot, segment, name) for name in kind.files]
    return STATISTICS[segment.kind](*files)


def _of_texts(snapshot: Snapshot, segment: IndexMetadata) -> dict[str, Any]:
    """Count the rows of the parts: a word of two parts counts twice, as in pylance."""
    if not segment.files:
        raise NotSupportedError(f"the files of index {segment.name!r} are not listed")
    counts = {"_invert.lance": 0, "_docs.lance": 0}
    for file in segment.files:
        for ending in counts:
            if file.path.endswith(ending):
                counts[ending] += open_file(snapshot, segment, file.path).num_rows
    return {
        "params": asdict(read_parameters(snapshot, segment)),
        "num_tokens": counts["_invert.lance"],
        "num_docs": counts["_docs.lance"],
    }


def _of_segment(ivf: IvfSegment) -> dict[str, Any]:
    storage = {key: setting for key, setting in ivf.settings.storage.items() if key not in _PLACES}
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
        "partitions": [{"size": length} for length in ivf.lengths.tolist()],
        "centroids": ivf.centroids.tolist(),
        "loss": ivf.loss,
        "index_file_version": "V3",
    }
