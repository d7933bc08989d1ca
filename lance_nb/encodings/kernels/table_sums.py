"""Add up what a table says of each code of a vector: distances of product-quantized vectors.

How: one row of the table after the other, so that what is looked up stays in the cache; the
compiled loop does blocks of vectors. Both add in the same order, so that sums are equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.kernels import compiled

_LOW = 15


def table_sums(
    table: npt.NDArray[np.float32], codes: npt.NDArray[np.uint8], bits: int
) -> npt.NDArray[np.float32]:
    """Return the sum for each column of ``codes``.

    ``table`` has a row for each code of a vector, with 256 numbers if codes have 8 ``bits`` and 16
    if they have 4. ``codes`` has a row for each byte; one of 4-bit codes holds two, the first one
    in its low half.
    """
    sums = np.zeros(codes.shape[1], np.float32)
    if compiled.loops is not None and sums.size:
        flat = np.ascontiguousarray(codes).reshape(-1)
        compiled.loops.table_sums(np.ascontiguousarray(table).reshape(-1), flat, bits, sums)
        return sums
    for place, row in enumerate(codes):
        if bits == 8:
            sums += table[place].take(row)
        else:
            sums += table[2 * place].take(row & _LOW)
            sums += table[2 * place + 1].take(row >> 4)
    return sums
