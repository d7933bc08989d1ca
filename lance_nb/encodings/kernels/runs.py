"""Expand runs: each value repeated as often as its run is long.

Layout: values are ``width`` bytes each, back to back; run lengths are 64-bit integers.
Limits: the caller has checked that the lengths add up to what the page allows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_WORDS = (1, 2, 4, 8)


def expand(values: Bytes, width: int, lengths: Ints) -> Bytes:
    """Return the bytes of all values, repeated."""
    if width in _WORDS:
        return np.repeat(values.view(f"u{width}"), lengths).view(np.uint8)
    return np.repeat(values.reshape(-1, width), lengths, axis=0).ravel()


def sums(lengths: Ints, counts: Ints) -> Ints:
    """Add up the run lengths of each chunk; chunk ``i`` has the next ``counts[i]`` runs."""
    ends = np.cumsum(counts)
    total = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=total[1:])
    per_chunk: Ints = total[ends] - total[ends - counts]
    return per_chunk
