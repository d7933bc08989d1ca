"""What is said of a whole column of a 2.0 file: plain values, values with a zone index, or blobs.

Layout: a ColumnEncoding message; a zone index (pruning statistics beside the values) and nothing at
all read as plain values.
Limits: wrappers nest at most ``DEPTH_MAX`` deep.
Source: message ``ColumnEncoding`` of lance.encodings.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from lance_nb._pb import encodings
from lance_nb.encodings.base import corrupt
from lance_nb.errors import NotSupportedError

DEPTH_MAX = 8


def holds_blobs(raw: bytes) -> bool:
    """Tell whether the pages are positions and sizes of payloads. Raises NotSupportedError."""
    try:
        encoding = encodings.ColumnEncoding.FromString(raw)
    except DecodeError as exc:
        raise corrupt("a ColumnEncoding message", "other bytes") from exc
    blobs = False
    for _ in range(DEPTH_MAX):
        match encoding.WhichOneof("column_encoding"):
            case "values":
                return blobs
            case "zone_index":
                encoding = encoding.zone_index.inner
            case "blob":
                blobs = True
                encoding = encoding.blob.inner
            case None if not raw or not encoding.ByteSize():
                return blobs
            case _:
                break
    raise NotSupportedError("a column uses a column encoding that is not known")
