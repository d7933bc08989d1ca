"""Look up numbers in ascending ones, and add values at places: the loops of posting lists.

How: the compiled loop walks both lists once, and doubles its steps where the longer one has many
numbers between two wanted ones; numpy searches for each number by itself. Both add in the same
order, so that sums are equal.

Limits: numbers of 32 bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels import compiled

U32s = npt.NDArray[np.uint32]


def places_among(wanted: U32s, numbers: U32s) -> npt.NDArray[np.int64]:
    """Return where each wanted number is in ``numbers``, -1 where it is not.

    Both are ascending; numbers are different.
    """
    loops = compiled.loops
    if loops is not None:
        places = np.empty(wanted.size, np.int64)
        loops.places_among(np.ascontiguousarray(wanted), np.ascontiguousarray(numbers), places)
        return places
    if not numbers.size:
        return np.full(wanted.size, -1, np.int64)
    at = np.searchsorted(numbers, wanted)
    np.minimum(at, numbers.size - 1, out=at)
    return np.where(numbers[at] == wanted, at, -1).astype(np.int64)


def add_at(sums: npt.NDArray[np.float32], places: U32s, values: npt.NDArray[np.float32]) -> None:
    """Add a value at each place of ``sums``; places are different."""
    loops = compiled.loops
    places, values = np.ascontiguousarray(places), np.ascontiguousarray(values)
    if loops is None or not loops.add_at(sums, places, values):
        sums[places] += values
