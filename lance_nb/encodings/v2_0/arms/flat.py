"""Flat: values stored back to back, or the same compressed as a whole.

Layout: ``num_values * bits_per_value`` bits in one buffer; with one bit per value a bitmap, least
significant bit first. With ``compression`` the whole buffer is one block: "zstd" (bare frame, or
u64 size and frame) or "lz4" (u32 size and block); "none" and "" leave it as it is.
Limits: ``bits_per_value`` is 1 or a multiple of 8; a compressed buffer is read whole.
Not supported: other compression schemes.
Source: message ``Flat`` of lance.encodings.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings
from lance_nb.encodings.base import VALUES_MAX, Bytes, FixedWidth, Ints, Rows, corrupt
from lance_nb.encodings.kernels import inflate
from lance_nb.encodings.slicing import gather_ranges
from lance_nb.encodings.steps import Region, Steps, aligned, read_all, read_bits, read_ranges
from lance_nb.encodings.v2_0.base import ArrayCodecs, Page, Values
from lance_nb.errors import NotSupportedError

_SCHEMES = {"zstd": inflate.inflate_zstd, "lz4": inflate.inflate_lz4}
_STORED = ("", "none")


class Flat:
    """Decode raw fixed-width values."""

    def decode(
        self, encoding: encodings.Flat, rows: Rows, page: Page, codecs: ArrayCodecs
    ) -> Steps[Values]:
        """Read the bytes of the rows; all of the buffer where it is compressed."""
        bits = encoding.bits_per_value
        last = int(rows.stops[-1]) if rows.stops.size else 0
        if bits != 1 and (bits == 0 or bits % 8):
            raise corrupt("a flat width of 1 bit or of whole bytes", f"{bits} bits per value")
        if last * bits >= 1 << 60:
            raise corrupt(f"at most {VALUES_MAX} values", f"{last} values of {bits} bits")
        region = page.region(encoding.buffer)
        if encoding.HasField("compression") and encoding.compression.scheme not in _STORED:
            data = yield from _inflated(region, encoding.compression.scheme)
            block = _whole(data, bits, last)
            taken = gather_ranges(block, rows.starts, rows.stops) if last else block
            return Values(taken)
        data = yield from _stored(region, bits, rows)
        return Values(FixedWidth(bits, rows.num_rows, data))


def _stored(region: Region, bits: int, rows: Rows) -> Steps[Bytes]:
    if bits == 1:
        bitmap = yield from read_bits(region, rows.starts, rows.stops)
        return bitmap
    width = bits // 8
    data = yield from read_ranges(region, rows.starts * width, rows.stops * width)
    return aligned(data, width)


def _inflated(region: Region, scheme: str) -> Steps[Bytes]:
    if scheme not in _SCHEMES:
        raise NotSupportedError(f"flat buffers compressed with {scheme[:40]!r} are not supported")
    if not region.size_bytes:
        return np.zeros(0, np.uint8)
    packed = yield from read_all(region)
    start: Ints = np.zeros(1, np.int64)
    data, _ = _SCHEMES[scheme](packed, start, np.array([packed.size], np.int64))
    return data


def _whole(data: Bytes, bits: int, num_values: int) -> FixedWidth:
    """View the first values of a decompressed buffer."""
    needed = (num_values * bits + 7) // 8
    if data.size < needed:
        raise corrupt(f"{needed} bytes of decompressed values", f"{data.size} bytes")
    return FixedWidth(bits, num_values, data[:needed])
