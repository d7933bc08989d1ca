"""Text as code points: a whole column as one array of numbers, to be cut and mapped at once.

Arrow's own functions of text take literals only (where to cut, how far to fill); over code points
the same is arithmetic, with another answer for every row.

Layout: ``codes`` has the code points of all rows back to back; row ``i`` has those from
``offsets[i]`` up to ``offsets[i + 1]``.
Limits: the text of one result is below 2 GiB. Nulls are the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.encodings.kernels.ranges import ragged_indices, starts_of

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]

_INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Points:
    """The code points of some rows."""

    codes: Codes
    offsets: Ints

    @property
    def lengths(self) -> Ints:
        """Characters of each row."""
        return np.diff(self.offsets)

    def cut(self, starts: Ints, stops: Ints) -> Points:
        """Keep characters ``[start, stop)`` of each row; places beyond its ends are at its ends."""
        lengths = self.lengths
        first = np.clip(starts, 0, lengths)
        counts = np.maximum(np.minimum(stops, lengths) - first, 0)
        places = ragged_indices(self.offsets[:-1] + first, counts)
        return Points(self.codes[places], starts_of(counts))

    def cycled(self, counts: Ints) -> Points:
        """Repeat the characters of each row, which has some, until it has ``counts`` of them."""
        turn = ragged_indices(np.zeros(counts.size, np.int64), counts)
        turn %= np.repeat(np.maximum(self.lengths, 1), counts)
        return Points(self.codes[turn + np.repeat(self.offsets[:-1], counts)], starts_of(counts))


def points_of(texts: pa.Array) -> Points:
    """Return the code points of an array of text without nulls."""
    if not len(texts):
        return Points(np.zeros(0, np.uint32), np.zeros(1, np.int64))
    raw, ends = text_bytes(texts)
    if not raw.size or int(raw.max()) < 0x80:
        return Points(raw.astype(np.uint32), ends)
    codes = np.frombuffer(raw.tobytes().decode().encode("utf-32-le"), "<u4")
    return Points(codes, starts_of((raw & 0xC0 != 0x80).astype(np.int64))[ends])


def text_bytes(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return the bytes of an array of text that is not empty, and where each row ends in them."""
    width = np.dtype(np.int64 if pt.is_large_string(texts.type) else np.int32)
    _, offsets, data = texts.buffers()
    begin = texts.offset * width.itemsize
    ends = np.frombuffer(offsets, width, len(texts) + 1, begin).astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return raw[int(ends[0]) : int(ends[-1])], ends - ends[0]


def text_of(points: Points) -> pa.Array:
    """Return the rows as text."""
    codes = points.codes
    if not codes.size or int(codes.max()) < 0x80:
        return text_array(codes.astype(np.uint8), points.offsets)
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    data = codes.astype("<u4").tobytes().decode("utf-32-le").encode()
    return text_array(np.frombuffer(data, np.uint8), starts_of(sizes)[points.offsets])


def text_array(data: npt.NDArray[np.uint8], offsets: Ints) -> pa.Array:
    """Wrap UTF-8 and where each row begins in it. Raises pa.ArrowInvalid for too much of it."""
    if int(offsets[-1]) > _INT32_MAX:
        raise pa.ArrowInvalid(f"text of {int(offsets[-1]):,} bytes is more than 2 GiB")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), offsets.size - 1, buffers)
