"""Fixed-size binary: byte strings of variable type that all happen to have one length.

Layout: ``bytes`` holds ``byte_width`` bytes per value, as single bytes or as values of that width;
null slots included (their nulls are a ``nullable`` outside).
Limits: ``byte_width`` is at least 1.
Source: message ``FixedSizeBinary`` of lance.encodings (unstable writers of 2024).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings.base import Rows, VariableWidth, corrupt
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values, fixed_width, scaled

_DEPTH_MAX = 20


class FixedSizeBinary:
    """Decode byte strings of one length."""

    def decode(
        self, encoding: encodings.FixedSizeBinary, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the bytes of the rows and lay offsets over them."""
        width = encoding.byte_width
        if not width:
            raise corrupt("byte strings of at least one byte", "width 0")
        parts = scaled(rows, width)
        bits = _flat_bits(encoding.bytes)
        whole = bits == 8 * width
        found = yield from codecs.decode(encoding.bytes, rows if whole else parts, page)
        data = fixed_width(found, 8 * width if whole else 8, "bytes")
        offsets = np.arange(rows.num_rows + 1, dtype=np.int64) * width
        return Values(VariableWidth(rows.num_rows, offsets, data))


def _flat_bits(encoding: encodings.ArrayEncoding) -> int:
    """Return the bits per value where the bytes are flat, 0 where they are anything else."""
    for _ in range(_DEPTH_MAX):
        match encoding.WhichOneof("array_encoding"):
            case "flat":
                return encoding.flat.bits_per_value
            case "nullable" if encoding.nullable.WhichOneof("nullability") == "no_nulls":
                encoding = encoding.nullable.no_nulls.values
            case _:
                return 0
    return 0
