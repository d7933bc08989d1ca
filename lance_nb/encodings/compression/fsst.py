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


class Fsst:
    """Decode strings with the symbol table of their page."""

    def num_buffers(self, encoding: encodings21.Fsst, codecs: Codecs) -> int:
        """Return the number of buffers of the codes."""
        return codecs.num_buffers(encoding.values)

    def decode_chunks(
        self, encoding: encodings21.Fsst, chunks: Chunks, codecs: Codecs
    ) -> VariableWidth:
        """Decode the strings of all chunks together."""
        symbols = fsst.symbol_table(encoding.symbol_table)
        return _decode(symbols, codecs.decode_chunks(encoding.values, chunks))

    def can_gather(self, encoding: encodings21.Fsst, codecs: Codecs) -> bool:
        """Tell whether the codes can be fetched."""
        return codecs.can_gather(encoding.values)

    def gather(
        self, encoding: encodings21.Fsst, chunks: Chunks, wanted: Wanted, codecs: Codecs
    ) -> VariableWidth:
        """Decode the codes of the wanted strings only."""
        symbols = fsst.symbol_table(encoding.symbol_table)
        return _decode(symbols, codecs.gather(encoding.values, chunks, wanted))

    def decode_blocks(
        self, encoding: encodings21.Fsst, blocks: Chunks, codecs: Codecs
    ) -> VariableWidth:
        """Decode the strings of all blocks together."""
        symbols = fsst.symbol_table(encoding.symbol_table)
        return _decode(symbols, codecs.decode_blocks(encoding.values, blocks))

    def decode_values(
        self, encoding: encodings21.Fsst, values: FixedWidth | VariableWidth, codecs: Codecs
    ) -> VariableWidth:
        """Decode strings that were compressed one by one, with one table for the page."""
        symbols = fsst.symbol_table(encoding.symbol_table)
        return _decode(symbols, codecs.decode_values(encoding.values, values))


def _decode(symbols: fsst.Symbols | None, codes: DataBlock) -> VariableWidth:
    if not isinstance(codes, VariableWidth):
        raise corrupt("FSST codes of variable width", type(codes).__name__)
    if symbols is None:
        return codes
    offsets, data = fsst.decode(codes.data, codes.offsets, symbols)
    return VariableWidth(codes.num_values, offsets, data)
