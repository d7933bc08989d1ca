"""Constant: every value is the same one, which stands in the page description.

Layout: ``value`` is the little-endian form of the value (one byte for a bool). No buffers.
Limits: fixed-width values of 1 to 32 bytes. No release is known to have written it to a 2.0 file.
Source: message ``Constant`` of lance.encodings.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings import base
from lance_nb.encodings.base import FixedWidth, Rows, corrupt
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values, check_free

_VALUE_BYTES_MAX = 32


class Constant:
    """Repeat one value."""

    def decode(
        self, encoding: encodings.Constant, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Return the value, to be repeated when it becomes Arrow."""
        size = len(encoding.value)
        if not 1 <= size <= _VALUE_BYTES_MAX:
            raise corrupt(f"a constant of 1 to {_VALUE_BYTES_MAX} bytes", f"{size} bytes")
        check_free(rows.num_rows)
        yield from ()
        value = FixedWidth(8 * size, 1, np.frombuffer(encoding.value, np.uint8))
        return Values(base.Constant(rows.num_rows, value))
