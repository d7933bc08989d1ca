"""Binary: byte strings of any length, as ends and bytes.

Layout: ``indices`` are ends in the bytes (see ``v2_0.ends``), nulls have ``null_adjustment`` added;
``bytes`` is an encoding of 8-bit values. Offset widths of the Arrow type do not matter.
Source: message ``Binary`` of lance.encodings; verified against pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings.base import Ints, Rows, VariableWidth
from lance_nb.encodings.row_ranges import merged
from lance_nb.encodings.steps import Steps
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values, fixed_width
from lance_nb.encodings.v2_0.ends import decode_ends


class Binary:
    """Decode byte strings."""

    def decode(
        self, encoding: encodings.Binary, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Decode the ends, then the bytes that lie between them."""
        found, validity = yield from decode_ends(
            encoding.indices, encoding.null_adjustment, rows, page, codecs
        )
        offsets: Ints = np.zeros(rows.num_rows + 1, np.int64)
        np.cumsum(found.stops - found.starts, out=offsets[1:])
        data = np.zeros(0, np.uint8)
        if int(offsets[-1]):
            wanted = merged(found.starts, found.stops)
            content = yield from codecs.decode(encoding.bytes, wanted, page)
            data = fixed_width(content, 8, "bytes")
        return Values(VariableWidth(rows.num_rows, offsets, data), validity)
