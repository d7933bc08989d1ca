"""Write runs: values and how often each repeats.

Layout: see ``compression.rle``; run lengths are u8, chunks hold 2048 values.
Limits: integers of 8 to 64 bits; as blocks (levels) from file version 2.2 on.
Source: message ``Rle`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    Ints,
)
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    Compressors,
    Parts,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import ranges
from lance_nb.encodings.statistics import Measured, Words, saving
from lance_nb.errors import InternalError

_CHUNK_VALUES = 2048
_LONGEST_RUN = 255
_SAMPLED_SHARE = 0.6  # of sampled neighbours that differ: from here on runs are not counted
_HEADER_BYTES = 8


class RleCompressor:
    """Compress; see the module."""

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take integers that come in runs."""
        words = measured.words
        if words is None or not words.size or options.compression == "none":
            return 0
        if measured.sampled_run_share > _SAMPLED_SHARE:
            return 0
        num_runs = measured.num_runs
        if options.rle_threshold is not None and num_runs >= words.size * options.rle_threshold:
            return 0
        pairs = num_runs + words.size // _LONGEST_RUN
        return saving(words.nbytes, pairs * (words.itemsize + 1))

    def compress_chunks(
        self, measured: Measured, _options: EncodingOptions, _compressors: Compressors
    ) -> CompressedChunks:
        """Cut into chunks of 2048 values; no run crosses from one to the next."""
        counts = uniform_counts(measured.num_values, _CHUNK_VALUES)
        values, lengths = _find_runs(measured.words, counts)
        buffers = (Parts((values,)), Parts((lengths,)))
        return CompressedChunks(_message(measured), buffers, counts)

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take levels that come in runs, from file version 2.2 on."""
        words = measured.words
        if words is None or not words.size or not options.has_large_chunks:
            return 0
        if measured.sampled_run_share > _SAMPLED_SHARE:
            return 0
        pairs = measured.num_runs + words.size // _LONGEST_RUN + num_values.size
        heads = _HEADER_BYTES * num_values.size
        return saving(words.nbytes, pairs * (words.itemsize + 1) + heads)

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        _options: EncodingOptions,
        _compressors: Compressors,
    ) -> CompressedBlocks:
        """Put the byte length of the values before values and lengths."""
        values, lengths = _find_runs(measured.words, num_values)
        heads = values.sizes.astype("<u8").view(np.uint8)
        starts = np.arange(num_values.size, dtype=np.int64) * _HEADER_BYTES
        head = ChunkBuffer(heads, starts, np.full_like(starts, _HEADER_BYTES))
        return CompressedBlocks(_message(measured), Parts((head, values, lengths)))


def _message(measured: Measured) -> encodings21.CompressiveEncoding:
    if measured.words is None:
        raise InternalError(f"runs of a {type(measured.block).__name__} block")
    bits = 8 * measured.words.itemsize
    message = encodings21.Rle(
        values=encodings21.CompressiveEncoding(flat=encodings21.Flat(bits_per_value=bits)),
        run_lengths=encodings21.CompressiveEncoding(flat=encodings21.Flat(bits_per_value=8)),
    )
    return encodings21.CompressiveEncoding(rle=message)


def _find_runs(words: Words | None, num_values: Ints) -> tuple[ChunkBuffer, ChunkBuffer]:
    """Return values and lengths of the runs of every chunk; long runs are split, 255 first."""
    if words is None:
        raise InternalError("runs of a block that is not of integers")
    chunk_starts = np.cumsum(num_values) - num_values
    begins = np.empty(words.size, np.bool_)
    begins[:1] = True
    np.not_equal(words[1:], words[:-1], out=begins[1:])
    begins[chunk_starts[chunk_starts < words.size]] = True
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=words.size)
    first = np.searchsorted(starts, chunk_starts)
    values = words[starts]
    if int(lengths.max(initial=0)) > _LONGEST_RUN:
        pieces = -(-lengths // _LONGEST_RUN)
        ends = ranges.starts_of(pieces)
        split = np.full(int(ends[-1]), _LONGEST_RUN, np.int64)
        split[ends[1:] - 1] = lengths - _LONGEST_RUN * (pieces - 1)
        values, lengths, first = np.repeat(values, pieces), split, ends[first]
    counts = np.diff(first, append=lengths.size)
    word = words.itemsize
    return (
        ChunkBuffer(values.view(np.uint8), first * word, counts * word),
        ChunkBuffer(lengths.astype(np.uint8), first, counts),
    )
