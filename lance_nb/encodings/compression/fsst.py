"""FSST: byte strings as codes of a table of up to 255 symbols, with 255 as the escape.

Layout: the page description holds the symbol table of 2312 bytes: a header word, ``n`` symbols of 8
bytes, their ``n`` lengths (1 to 8) right behind, zeros. The header is, from its low bits: ``n`` (8
bits), terminator (8), suffix limit (8), the switch (bit 24: compression is on), and the magic
0x46535354 in the high half. The inner encoding holds the codes as byte strings. With the switch off
the bytes are stored as they are.
Limits: a value never ends in an escape; every code has a symbol.
Source: message ``Fsst`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    VariableWidth,
    Wanted,
    corrupt,
)
from lance_nb.encodings.kernels import fsst

_TABLE_BYTES = 2312
_MAGIC = 0x46535354


class Fsst:
    """Decode strings with the symbol table of their page."""

    def num_buffers(self, encoding: encodings21.Fsst, codecs: Codecs) -> int:
        """Return the number of buffers of the codes."""
        return codecs.num_buffers(encoding.values)

    def decode_chunks(
        self, encoding: encodings21.Fsst, chunks: Chunks, codecs: Codecs
    ) -> VariableWidth:
        """Decode the strings of all chunks together."""
        symbols = symbol_table(encoding.symbol_table)
        return _decode(symbols, codecs.decode_chunks(encoding.values, chunks))

    def can_gather(self, encoding: encodings21.Fsst, codecs: Codecs) -> bool:
        """Tell whether the codes can be fetched."""
        return codecs.can_gather(encoding.values)

    def gather(
        self, encoding: encodings21.Fsst, chunks: Chunks, wanted: Wanted, codecs: Codecs
    ) -> VariableWidth:
        """Decode the codes of the wanted strings only."""
        symbols = symbol_table(encoding.symbol_table)
        return _decode(symbols, codecs.gather(encoding.values, chunks, wanted))

    def decode_blocks(
        self, encoding: encodings21.Fsst, blocks: Chunks, codecs: Codecs
    ) -> VariableWidth:
        """Decode the strings of all blocks together."""
        symbols = symbol_table(encoding.symbol_table)
        return _decode(symbols, codecs.decode_blocks(encoding.values, blocks))

    def decode_values(
        self, encoding: encodings21.Fsst, values: FixedWidth | VariableWidth, codecs: Codecs
    ) -> VariableWidth:
        """Decode strings that were compressed one by one, with one table for the page."""
        symbols = symbol_table(encoding.symbol_table)
        return _decode(symbols, codecs.decode_values(encoding.values, values))


@lru_cache(maxsize=64)
def symbol_table(table: bytes) -> fsst.Symbols | None:
    """Parse a symbol table; None when its switch is off. Raises CorruptFileError."""
    if len(table) != _TABLE_BYTES:
        raise corrupt(f"an FSST symbol table of {_TABLE_BYTES} bytes", f"{len(table)} bytes")
    (header,) = struct.unpack_from("<Q", table)
    if header >> 32 != _MAGIC:
        raise corrupt("the magic of an FSST symbol table", f"{header >> 32:#010x}")
    if not header >> 24 & 1:
        return None
    count = header & 255
    words = np.frombuffer(table, "<u8", count, 8).copy()
    lengths = np.frombuffer(table, np.uint8, count, 8 + 8 * count).copy()
    if count and not 1 <= int(lengths.min()) <= int(lengths.max()) <= 8:
        raise corrupt("FSST symbols of 1 to 8 bytes", f"lengths {sorted(set(lengths.tolist()))}")
    # Bytes beyond a symbol's length mean nothing: clear them, the kernels may copy whole words.
    words &= np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (np.uint64(8) * (np.uint64(8) - lengths))
    return fsst.Symbols(words, lengths)


def _decode(symbols: fsst.Symbols | None, codes: DataBlock) -> VariableWidth:
    if not isinstance(codes, VariableWidth):
        raise corrupt("FSST codes of variable width", type(codes).__name__)
    if symbols is None:
        return codes
    offsets, data = fsst.decode(codes.data, codes.offsets, symbols)
    return VariableWidth(codes.num_values, offsets, data)
