"""Run-length encoding: values and how often each of them repeats.

Layout: mini-block: the value buffers of the child, then one buffer of run lengths (u8; a longer run
is split, 255 first). Block: the byte length of the values (u64), the values, the run lengths.
Limits: the runs of a chunk add up to exactly its values.
Not supported: run lengths that are themselves compressed: their number would be unknown.
Source: message ``Rle`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    ChunkBuffer,
    Chunks,
    Codecs,
    FixedWidth,
    Ints,
    corrupt,
)
from lance_nb.encodings.kernels import ranges, runs
from lance_nb.errors import NotSupportedError

_HEADER_BYTES = 8


class Rle:
    """Decode runs."""

    def num_buffers(self, encoding: encodings21.Rle, codecs: Codecs) -> int:
        """Return the buffers of the values, and one for the run lengths."""
        return codecs.num_buffers(encoding.values) + 1

    def decode_chunks(
        self, encoding: encodings21.Rle, chunks: Chunks, codecs: Codecs
    ) -> FixedWidth:
        """Expand the runs of all chunks together."""
        word = _checked_length_bits(encoding) // 8
        at = codecs.num_buffers(encoding.values)
        lengths = chunks.buffers[at]
        num_runs = lengths.sizes // word
        if bool((lengths.sizes % word).any()):
            raise corrupt(f"run lengths of {word} bytes each", f"{lengths.sizes.max()} bytes")
        values = codecs.decode_chunks(encoding.values, Chunks(chunks.buffers[:at], num_runs))
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
    found = runs.sums(repeats, lengths.sizes // word)
    wrong = np.flatnonzero(found != num_values)
    if wrong.size:
        first = int(wrong[0])
        raise corrupt(f"runs of {int(num_values[first])} values", f"{int(found[first])} values")
    data = runs.expand(values.data, values.bits_per_value // 8, repeats)
    return FixedWidth(values.bits_per_value, int(num_values.sum()), data)
