"""FSST: byte strings as codes of a table of up to 255 symbols, with 255 as the escape.

Layout: the page description holds the symbol table of 2312 bytes: a header word, ``n`` symbols of 8
bytes, their ``n`` lengths (1 to 8) right behind, zeros. The header is, from its low bits: ``n`` (8
bits), terminator (8), suffix limit (8), the switch (bit 24: compression is on), and the magic
0x46535354 in the high half. The inner encoding holds the codes as byte strings. With the switch off
the bytes are stored as they are.
Limits: a value never ends in an escape; every code has a symbol. It is written for at least 32 KiB
of strings when a sample shrinks by a fifth, or where the field asks for it.
Source: message ``Fsst`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    Ints,
    ValuePlaces,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import CompressedChunks, CompressedValues, Compressors
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import fsst, memory
from lance_nb.encodings.statistics import Measured, saving
from lance_nb.errors import InternalError

_LEAST_BYTES = 32 * 1024  # of all strings; less does not pay for the table
_LEAST_LONGEST = 5  # bytes of the longest string
_LEAST_FREQUENT_PAIRS = 0.45  # random letters have 0.38: no symbols will pay, do not look for them
_LEAST_SAVING = 206  # thousandths: less is not worth the time of encoding and decoding
_INT32_MAX = (1 << 31) - 1


class Fsst(Codec):
    """Strings with the symbol table of their page, which is trained on a sample."""

    def num_buffers(self, encoding: encodings21.Fsst, codecs: Codecs) -> int:
        """Return the number of buffers of the codes."""
        return codecs.num_buffers(encoding.values)

    def decode_chunks(
        self, encoding: encodings21.Fsst, chunks: Chunks, codecs: Codecs
    ) -> VariableWidth:
        """Decode the strings of all chunks together, those of joined pages page by page."""
        codes = codecs.decode_chunks(encoding.values, chunks)
        if chunks.symbols is not None:
            ends = np.cumsum(chunks.num_values)
            return _decode_pages(chunks.symbols.tables, chunks.symbols.of_chunk, ends, codes)
        return _decode(fsst.symbol_table(encoding.symbol_table), codes)

    def can_gather(self, encoding: encodings21.Fsst, codecs: Codecs) -> bool:
        """Tell whether the codes can be fetched."""
        return codecs.can_gather(encoding.values)

    def gather(
        self, encoding: encodings21.Fsst, chunks: Chunks, request: ValuePlaces, codecs: Codecs
    ) -> VariableWidth:
        """Decode the codes of the wanted strings only."""
        codes = codecs.gather(encoding.values, chunks, request)
        if chunks.symbols is not None:
            owners = chunks.symbols.of_chunk[request.chunk]
            ends = np.arange(1, owners.size + 1)
            return _decode_pages(chunks.symbols.tables, owners, ends, codes)
        return _decode(fsst.symbol_table(encoding.symbol_table), codes)

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

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take strings of which a sample becomes clearly smaller."""
        if options.compression not in {None, "fsst"} or not isinstance(
            measured.block, VariableWidth
        ):
            return 0
        if measured.size_bytes < _LEAST_BYTES or measured.longest < _LEAST_LONGEST:
            return 0
        word = measured.block.offsets.dtype.itemsize
        if word == 4 and 2 * measured.size_bytes > _INT32_MAX:
            return 0  # in the worst case the codes need offsets of 64 bits
        if options.compression is None and measured.frequent_pairs < _LEAST_FREQUENT_PAIRS:
            return 0
        plain, encoded = measured.fsst_sample
        offsets = measured.num_values * word * plain / max(1, measured.size_bytes)
        saved = saving(plain + offsets, encoded + offsets)
        return saved if saved > _LEAST_SAVING or options.compression == "fsst" else 0

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """Encode the strings, then store the codes as strings."""
        table, codes = _encode(measured)
        inner = compressors.compress_chunks(Measured(codes), options.plain)
        encoding = _message(table, inner.encoding)
        return CompressedChunks(encoding, inner.buffers, inner.num_values)

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Take strings of which a sample becomes clearly smaller."""
        return self.nominate_chunks(measured, options)

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Encode the strings, with one table for the page."""
        table, codes = _encode(measured)
        inner = compressors.compress_values(Measured(codes), options.plain)
        return CompressedValues(_message(table, inner.encoding), inner.values)


def _decode(symbols: fsst.Symbols | None, codes: DataBlock) -> VariableWidth:
    if not isinstance(codes, VariableWidth):
        raise corrupt("FSST codes of variable width", type(codes).__name__)
    if symbols is None:
        return codes
    offsets, data = fsst.decode(codes.data, codes.offsets, symbols)
    return VariableWidth(codes.num_values, offsets, data)


def _decode_pages(
    tables: Sequence[bytes], owners: Ints, ends: Ints, codes: DataBlock
) -> VariableWidth:
    """Decode strings of several pages.

    Item ``i`` of ``owners`` is the number of the table of the strings up to ``ends[i]``.
    """
    if not isinstance(codes, VariableWidth):
        raise corrupt("FSST codes of variable width", type(codes).__name__)
    last = np.flatnonzero(np.diff(owners, append=-1))
    pieces = []
    start = 0
    for number, stop in zip(owners[last].tolist(), ends[last].tolist(), strict=True):
        bounds = codes.offsets[start : stop + 1]
        first = int(bounds[0])
        data = codes.data[first : int(bounds[-1])]
        own = bounds.copy()
        own -= first
        piece = VariableWidth(stop - start, own, data)
        pieces.append(_decode(fsst.symbol_table(tables[number]), piece))
        start = stop
    sizes = [int(piece.offsets[-1]) for piece in pieces]
    is_wide = codes.offsets.dtype.itemsize == 8 or sum(sizes) > _INT32_MAX
    offsets: npt.NDArray[np.int32] | Ints = np.zeros(codes.num_values + 1, np.int32)
    if is_wide:
        offsets = offsets.astype(np.int64)
    position = total = 0
    for piece, size in zip(pieces, sizes, strict=True):
        np.add(
            piece.offsets[1:],
            total,
            out=offsets[position + 1 : position + 1 + piece.num_values],
            casting="unsafe",
        )
        position += piece.num_values
        total += size
    data = memory.allocate(total)
    total = 0
    for piece, size in zip(pieces, sizes, strict=True):
        data[total : total + size] = piece.data[:size]
        total += size
    return VariableWidth(codes.num_values, offsets, data)


def _message(
    table: bytes, inner: encodings21.CompressiveEncoding
) -> encodings21.CompressiveEncoding:
    return encodings21.CompressiveEncoding(fsst=encodings21.Fsst(symbol_table=table, values=inner))


def _encode(measured: Measured) -> tuple[bytes, VariableWidth]:
    from lance_nb.encodings.kernels import fsst_encode

    block = measured.block
    if not isinstance(block, VariableWidth):
        raise InternalError(f"FSST of a {type(block).__name__} block")
    symbols = measured.fsst_symbols
    data, ends = fsst_encode.encode(block.data, block.offsets.astype(np.int64), symbols)
    offsets = np.empty_like(block.offsets)
    offsets[:] = ends
    return fsst_encode.to_bytes(symbols), VariableWidth(block.num_values, offsets, data)
