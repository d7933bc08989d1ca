"""Write byte strings as codes of up to 255 symbols that were found in a sample.

Layout: see ``compression.fsst``.
Limits: at least 32 KiB of strings; chosen when a fifth is saved, or where the field asks for it.
Source: message ``Fsst`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    VariableWidth,
)
from lance_nb.encodings.compress_base import CompressedChunks, CompressedValues, Compressors
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import fsst_encode, fsst_symbols
from lance_nb.encodings.statistics import Measured, saving
from lance_nb.errors import InternalError

_LEAST_BYTES = 32 * 1024  # of all strings; less does not pay for the table
_LEAST_LONGEST = 5  # bytes of the longest string
_LEAST_FREQUENT_PAIRS = 0.45  # random letters have 0.38: no symbols will pay, do not look for them
_LEAST_SAVING = 206  # thousandths: less is not worth the time of encoding and decoding
_INT32_MAX = (1 << 31) - 1


class FsstCompressor:
    """Compress; see the module."""

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
        found = saving(plain + offsets, encoded + offsets)
        return found if found > _LEAST_SAVING or options.compression == "fsst" else 0

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


def _message(
    table: bytes, inner: encodings21.CompressiveEncoding
) -> encodings21.CompressiveEncoding:
    return encodings21.CompressiveEncoding(fsst=encodings21.Fsst(symbol_table=table, values=inner))


def _encode(measured: Measured) -> tuple[bytes, VariableWidth]:
    block = measured.block
    if not isinstance(block, VariableWidth):
        raise InternalError(f"FSST of a {type(block).__name__} block")
    symbols = measured.fsst_symbols
    data, ends = fsst_encode.encode(block.data, block.offsets.astype(np.int64), symbols)
    offsets = np.empty_like(block.offsets)
    offsets[:] = ends
    return fsst_symbols.to_bytes(symbols), VariableWidth(block.num_values, offsets, data)
