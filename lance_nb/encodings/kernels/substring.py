"""Search texts for a piece of text, as ``LIKE '%piece%'`` and ``contains`` do.

How: the compiled loop goes through the bytes of all texts together, and leaves a text at its first
match; Arrow's function, which does the work without it, prepares a search for each text. UTF-8
lets bytes stand for characters: no character begins inside of another.

Limits: case counts. Nulls stay null.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels import compiled

_OFFSETS = {pa.string(): np.int32, pa.large_string(): np.int64}


def contains(texts: pa.Array | pa.ChunkedArray, piece: str) -> pa.Array | pa.ChunkedArray:
    """Tell of each text whether it contains the piece."""
    if isinstance(texts, pa.ChunkedArray):
        return pa.chunked_array([contains(chunk, piece) for chunk in texts.chunks], pa.bool_())
    kind = _OFFSETS.get(texts.type)
    loops = compiled.loops
    if loops is None or kind is None or not piece or not len(texts):
        return pc.match_substring(texts, pattern=piece)
    validity, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1]
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    answers = np.zeros(len(texts), np.uint8)
    needle = np.frombuffer(piece.encode(), np.uint8)
    if not loops.find_substring(held, bounds, needle, answers):
        return pc.match_substring(texts, pattern=piece)
    if texts.null_count == 0:
        validity = None
    # Bits begin where those of the texts do: validity is theirs.
    bits = np.packbits(np.pad(answers, (texts.offset % 8, 0)), bitorder="little")
    if validity is not None:
        validity = validity.slice(texts.offset // 8)
    buffers = [validity, pa.py_buffer(bits)]
    return pa.Array.from_buffers(pa.bool_(), len(texts), buffers, offset=texts.offset % 8)
