"""Run-length encoding: values and how often each of them repeats.

Layout: mini-block: the value buffers of the child, then one buffer of run lengths (u8; a longer run
is split, 255 first). Block: the byte length of the values (u64), the values, the run lengths.
Limits: the runs of a chunk add up to exactly its values. It is written for integers of 8 to 64
bits, in chunks of 2048 values, as blocks (levels) from file version 2.2 on.
Not supported: run lengths that are themselves compressed: their number would be unknown.
Source: message ``Rle`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    Chunks,
    Codecs,
    FixedWidth,
    Ints,
    corrupt,
)
from lance_nb.encodings.codec import Codec
from lance_nb.encodings.compress_base import (
    RUN_CHUNK_VALUES,
    RUN_LENGTH_MAX,
    RUN_SHARE_MAX,
    CompressedBlocks,
    CompressedChunks,
    Compressors,
    Parts,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import compiled, memory, ranges
from lance_nb.encodings.statistics import Measured, Words, saving
from lance_nb.errors import InternalError, NotSupportedError

_HEADER_BYTES = 8
Bytes = npt.NDArray[np.uint8]
_WORDS = (1, 2, 4, 8)


class Rle(Codec):
    """Integers that come in runs."""

    def num_buffers(self, encoding: encodings21.Rle, codecs: Codecs) -> int:
        """Return the buffers of the values, and one for the run lengths."""
        return codecs.num_buffers(encoding.values) + 1

    def decode_chunks(
        self, encoding: encodings21.Rle, chunks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Expand the runs of all chunks together."""
        word = _checked_length_bits(encoding) // 8
        position = codecs.num_buffers(encoding.values)
        lengths = chunks.buffers[position]
        num_runs = lengths.sizes // word
        if bool((lengths.sizes % word).any()):
            raise corrupt(f"run lengths of {word} bytes each", f"{lengths.sizes.max()} bytes")
        values = codecs.decode_chunks(encoding.values, Chunks(chunks.buffers[:position], num_runs))
        return _expand(values, lengths, word, chunks.num_values)

    def decode_blocks(
        self, encoding: encodings21.Rle, blocks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Split each block into values and run lengths, then expand all together."""
        word = _checked_length_bits(encoding) // 8
        values, lengths = _split(blocks.buffers[0])
        if bool((lengths.sizes % word).any()):
            raise corrupt(f"run lengths of {word} bytes each", f"{lengths.sizes.max()} bytes")
        decoded = codecs.decode_blocks(encoding.values, Chunks((values,), lengths.sizes // word))
        return _expand(decoded, lengths, word, blocks.num_values)

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Take integers that come in runs."""
        words = measured.words
        if words is None or not words.size or options.compression == "none":
            return 0
        if measured.sampled_run_share > RUN_SHARE_MAX:
            return 0
        num_runs = measured.num_runs
        if options.rle_threshold is not None and num_runs >= words.size * options.rle_threshold:
            return 0
        pairs = num_runs + words.size // RUN_LENGTH_MAX
        return saving(words.nbytes, pairs * (words.itemsize + 1))

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """Cut into chunks of 2048 values; no run crosses from one to the next."""
        return self.cut(measured, uniform_counts(measured.num_values, RUN_CHUNK_VALUES))

    def cut(self, measured: Measured, num_values: Ints) -> CompressedChunks:
        """Find the runs of each chunk."""
        values, lengths = _find_runs(measured.words, num_values)
        buffers = (Parts((values,)), Parts((lengths,)))
        return CompressedChunks(_message(measured), buffers, num_values)

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, options: EncodingOptions
    ) -> int:
        """Take levels that come in runs, from file version 2.2 on."""
        words = measured.words
        if words is None or not words.size or not options.has_large_chunks:
            return 0
        if measured.sampled_run_share > RUN_SHARE_MAX:
            return 0
        pairs = measured.num_runs + words.size // RUN_LENGTH_MAX + num_values.size
        heads = _HEADER_BYTES * num_values.size
        return saving(words.nbytes, pairs * (words.itemsize + 1) + heads)

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        options: EncodingOptions,
        compressors: Compressors,
    ) -> CompressedBlocks:
        """Put the byte length of the values before values and lengths."""
        values, lengths = _find_runs(measured.words, num_values)
        heads = values.sizes.astype("<u8").view(np.uint8)
        starts = np.arange(num_values.size, dtype=np.int64) * _HEADER_BYTES
        head = ChunkBuffer(heads, starts, np.full_like(starts, _HEADER_BYTES))
        return CompressedBlocks(_message(measured), Parts((head, values, lengths)))


def _checked_length_bits(encoding: encodings21.Rle) -> int:
    arm = encoding.run_lengths.WhichOneof("compression")
    if arm != "flat":
        raise NotSupportedError(f"run lengths in encoding {arm!r} are not supported")
    bits = encoding.run_lengths.flat.bits_per_value
    if bits not in {8, 16, 32}:
        raise corrupt("run lengths of 8, 16 or 32 bits", f"{bits} bits")
    return bits


def _split(blocks: ChunkBuffer) -> tuple[ChunkBuffer, ChunkBuffer]:
    """Return the values and the run lengths of each block, without its header."""
    if bool((blocks.sizes < _HEADER_BYTES).any()):
        raise corrupt("a run-length block of at least 8 bytes", f"{blocks.sizes.min()} bytes")
    heads = np.ascontiguousarray(ranges.rows(blocks.data, blocks.starts, _HEADER_BYTES))
    claimed = heads.view("<u8").ravel()
    room = blocks.sizes - _HEADER_BYTES
    if bool((claimed > room.astype(np.uint64)).any()):
        raise corrupt(f"at most {int(room.max())} bytes of run values", f"{int(claimed.max())}")
    sizes = claimed.astype(np.int64)
    starts = blocks.starts + _HEADER_BYTES
    values = ChunkBuffer(blocks.data, starts, sizes)
    return values, ChunkBuffer(blocks.data, starts + sizes, room - sizes)


def _expand(values: object, lengths: ChunkBuffer, word: int, num_values: Ints) -> FixedWidth:
    if not isinstance(values, FixedWidth) or values.bits_per_value % 8:
        raise corrupt("run values of whole bytes", type(values).__name__)
    raw = ranges.concatenate(lengths.data, lengths.starts, lengths.sizes)
    repeats = raw.view(f"<u{word}").astype(np.int64)
    run_totals = _run_sums(repeats, lengths.sizes // word)
    wrong = np.flatnonzero(run_totals != num_values)
    if wrong.size:
        first = int(wrong[0])
        raise corrupt(
            f"runs of {int(num_values[first])} values", f"{int(run_totals[first])} values"
        )
    data = _repeated(values.data, values.bits_per_value // 8, repeats)
    return FixedWidth(values.bits_per_value, int(num_values.sum()), data)


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
    if int(lengths.max(initial=0)) > RUN_LENGTH_MAX:
        pieces = -(-lengths // RUN_LENGTH_MAX)
        ends = ranges.starts_of(pieces)
        split = np.full(int(ends[-1]), RUN_LENGTH_MAX, np.int64)
        split[ends[1:] - 1] = lengths - RUN_LENGTH_MAX * (pieces - 1)
        values, lengths, first = np.repeat(values, pieces), split, ends[first]
    counts = np.diff(first, append=lengths.size)
    word = words.itemsize
    return (
        ChunkBuffer(values.view(np.uint8), first * word, counts * word),
        ChunkBuffer(lengths.astype(np.uint8), first, counts),
    )


def _repeated(values: Bytes, width: int, lengths: Ints) -> Bytes:
    """Return the bytes of all values, repeated."""
    loops = compiled.loops
    if loops is not None:
        out = memory.allocate(int(lengths.sum()) * width)
        if loops.repeat_runs(values, width, lengths, out):
            return out
    if width in _WORDS:
        return np.repeat(values.view(f"u{width}"), lengths).view(np.uint8)
    return np.repeat(values.reshape(-1, width), lengths, axis=0).ravel()


def _run_sums(lengths: Ints, counts: Ints) -> Ints:
    """Add up the run lengths of each chunk; chunk ``i`` has the next ``counts[i]`` runs."""
    ends = np.cumsum(counts)
    total = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=total[1:])
    per_chunk: Ints = total[ends] - total[ends - counts]
    return per_chunk
