"""Bitpacked: whole numbers cut to a few bits, one after the other in a stream of bits.

Layout: value ``i`` occupies the bits ``i * W .. i * W + W - 1`` of the buffer, least significant
bit first (W = ``compressed_bits_per_value``). With ``signed`` the highest of them is the sign.
Limits: 1 <= W <= T; T = ``uncompressed_bits_per_value`` is 8, 16, 32 or 64. Read whole.
Source: message ``Bitpacked`` of lance.encodings (writers of 2024, behind a switch).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings.base import Bytes, FixedWidth, Ints, Rows, corrupt
from lance_nb.encodings.slicing import expand_ranges
from lance_nb.encodings.steps import Steps, read_all
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values

Words = np.ndarray[tuple[int], np.dtype[np.uint64]]


class Bitpacked:
    """Widen packed numbers."""

    def decode(
        self, encoding: encodings.Bitpacked, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Read the buffer and unpack the rows."""
        width, word = encoding.compressed_bits_per_value, encoding.uncompressed_bits_per_value
        if word not in {8, 16, 32, 64} or not 1 <= width <= word:
            raise corrupt("1 to T bits per value, T = 8, 16, 32 or 64", f"{width} of {word} bits")
        count = rows.num_rows
        if not count:
            return Values(FixedWidth(word, 0, np.zeros(0, np.uint8)))
        region = page.region(encoding.buffer)
        if region.size_bytes * 8 < int(rows.stops[-1]) * width:
            raise corrupt(
                f"{int(rows.stops[-1])} values of {width} bits", f"{region.size_bytes} bytes"
            )
        packed = yield from read_all(region)
        values = _unpack(packed, expand_ranges(rows.starts, rows.stops), width)
        if encoding.signed and width < 64:
            sign = np.uint64(1 << (width - 1))
            values = (values ^ sign) - sign  # wraps around: the ones above the sign bit
        narrow: np.ndarray[Any, Any] = values.astype(f"<u{word // 8}")
        return Values(FixedWidth(word, count, narrow.view(np.uint8)))


def _unpack(packed: Bytes, positions: Ints, width: int) -> Words:
    """Return the values at ``positions``, out of windows of 8 bytes that begin at their byte."""
    padded = np.append(packed, np.zeros(8, np.uint8))
    windows = np.ndarray(packed.shape, "<u8", padded, strides=(1,))
    bits = positions * width
    first = bits >> 3
    shift = (bits & 7).astype(np.uint64)
    values: Words = windows[first] >> shift
    if width > 57:  # may reach into a ninth byte
        spill = padded[first + 8].astype(np.uint64)
        # Two shifts, because a shift by 64 would be none.
        values |= (spill << np.uint64(1)) << (np.uint64(63) - shift)
    return values & np.uint64((1 << width) - 1)
