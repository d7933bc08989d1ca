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


def places_among(values: U32s, numbers: U32s) -> npt.NDArray[np.int64]:
    """Return where each wanted number is in ``numbers``, -1 where it is not.

    Both are ascending; numbers are different.
    """
    loops = compiled.loops
    if loops is not None:
        places = np.empty(values.size, np.int64)
        loops.places_among(np.ascontiguousarray(values), np.ascontiguousarray(numbers), places)
        return places
    if not numbers.size:
        return np.full(values.size, -1, np.int64)
    positions = np.searchsorted(numbers, values)
    np.minimum(positions, numbers.size - 1, out=positions)
    return np.where(numbers[positions] == values, positions, -1).astype(np.int64)


def add_at(sums: npt.NDArray[np.float32], places: U32s, values: npt.NDArray[np.float32]) -> None:
    """Add a value at each place of ``sums``; places are different."""
    loops = compiled.loops
    places, values = np.ascontiguousarray(places), np.ascontiguousarray(values)
    if loops is None or not loops.add_at(sums, places, values):
        sums[places] += values
