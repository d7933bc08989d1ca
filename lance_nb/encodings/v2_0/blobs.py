"""Recognise the blob columns of 2.0 files, and read their payloads.

Layout: the ColumnEncoding message of a column says plain values, values with a zone index (pruning
statistics beside the values), or blobs; a zone index and no message at all read as plain values.
Each value of a blob column is (position u64, size u64), the position counted from the start of the
file. Size 0 means an empty payload at position 0, a null one anywhere else.
Limits: wrappers nest at most ``DEPTH_MAX`` deep. Payloads do not overlap, so together they are no
larger than the file.
Source: message ``ColumnEncoding`` of lance.encodings; verified against pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError

from lance_nb._pb import encodings
from lance_nb.encodings.base import FixedWidth, Ints, PackedStruct, VariableWidth, corrupt
from lance_nb.encodings.steps import Region, Steps
from lance_nb.encodings.v2_0.base import Values
from lance_nb.errors import CorruptFileError, NotSupportedError, describe_bytes

DEPTH_MAX = 8


def holds_blobs(raw: bytes) -> bool:
    """Tell whether the pages are positions and sizes of payloads. Raises NotSupportedError."""
    try:
        encoding = encodings.ColumnEncoding.FromString(raw)
    except DecodeError as exc:
        raise corrupt("a ColumnEncoding message", describe_bytes(raw)) from exc
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


def _outside(file: Region, actual: str) -> CorruptFileError:
    return corrupt(f"blobs inside a file of {file.stop} bytes", actual)


def read_payloads(descriptions: Values, file: Region) -> Steps[Values]:
    """Read the payload of every description; ``file`` is the whole file."""
    positions, sizes = _numbers(descriptions)
    if bool((sizes > file.stop).any()) or bool((positions > file.stop).any()):
        raise _outside(file, f"one of {int(sizes.max())} bytes, or at {int(positions.max())}")
    starts, lengths = positions.astype(np.int64), sizes.astype(np.int64)
    ends = starts + lengths
    if bool((ends > file.stop).any()):
        raise _outside(file, f"one that ends at byte {int(ends.max())}")
    if int(lengths.sum()) > file.stop:
        raise _outside(file, f"{int(lengths.sum())} bytes together")
    some = np.flatnonzero(lengths)
    pieces = yield list(zip(starts[some].tolist(), ends[some].tolist(), strict=True))
    offsets: Ints = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)
    valid = (lengths != 0) | (starts == 0)
    return Values(VariableWidth(lengths.size, offsets, data), None if bool(valid.all()) else valid)


def _numbers(descriptions: Values) -> list[np.ndarray[tuple[int], np.dtype[np.uint64]]]:
    block = descriptions.block
    if not isinstance(block, PackedStruct) or len(block.children) != 2:
        raise corrupt("pairs of position and size", type(block).__name__)
    numbers = []
    for child in block.children:
        if not isinstance(child, FixedWidth) or child.bits_per_value != 64:
            raise corrupt("64-bit positions and sizes", type(child).__name__)
        numbers.append(child.data.view(np.uint64))
    return numbers
