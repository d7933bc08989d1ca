"""Decode posting lists: the documents that have a token, how often, and at which positions.

Layout (little endian)::

    block       f32 bound of the score, u32 first document, u8 b, 128 deltas of b bits (the first
                is 0), u8 b, 128 frequencies of b bits
    last block  f32 bound of the score; n varints: the first document, then deltas; n varints:
                frequencies
    positions   of a block: of each document the first position and then deltas, in one stream; each
                128 of them as u8 b and 128 values of b bits, the rest as varints

128 values of b bits are 16 * b bytes: four lanes of b words of 32 bits, word k of lane j is word
4 * k + j; value i is in lane i mod 4. A list of n documents has one block for each 128; the last
one is short unless n is a multiple. Varints have 7 bits per byte, low ones first.

All blocks of a list are decoded at once, those of one width together.

Not supported: lists of ``format_version`` 1, and blocks of another size.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.ranges import ragged_indices
from lance_nb.errors import CorruptFileError, describe_order

BLOCK = 128
HEAD_BYTES = 9  # of a full block before the deltas
BOUND_BYTES = 4
GROUP_BYTES = 16
"""Bytes of 128 values, for each bit of their width."""
WIDTH_MAX = 32
_LONGEST_VARINT = 5
Bytes = npt.NDArray[np.uint8]
U32s = npt.NDArray[np.uint32]


class Posting(NamedTuple):
    """The documents of a token, ascending, and how often each has it."""

    documents: U32s
    frequencies: U32s

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.documents.nbytes + self.frequencies.nbytes


def decode_posting(blocks: pa.Array, length: int, num_documents: int, path: str) -> Posting:
    """Decode the blocks of a token. Raises CorruptFileError."""
    data, offsets = _bytes_of(blocks)
    sizes = np.diff(offsets)
    if not 0 < length <= num_documents or sizes.size != -(-length // BLOCK):
        raise _corrupt(path, f"{-(-length // BLOCK)} blocks for {length} documents", sizes.size)
    full = length // BLOCK
    documents, frequencies = np.empty(length, np.uint32), np.empty(length, np.uint32)
    if full:
        end = full * BLOCK
        out = Posting(documents[:end].reshape(full, BLOCK), frequencies[:end].reshape(full, BLOCK))
        _decode_blocks(data, offsets[:full], sizes[:full], path=path, out=out)
    num_tail = length - full * BLOCK
    if num_tail:
        tail = data[int(offsets[full]) + BOUND_BYTES : int(offsets[full + 1])]
        values = varints(tail, path)
        if values.size != 2 * num_tail:
            raise _corrupt(path, f"{2 * num_tail} numbers in the last block", values.size)
        documents[full * BLOCK :] = np.cumsum(values[:num_tail], dtype=np.uint64)
        frequencies[full * BLOCK :] = values[num_tail:]
    ascends = bool((documents[1:] > documents[:-1]).all())
    if not ascends or int(documents[-1]) >= num_documents or not frequencies.all():
        ordered = describe_order(documents) if frequencies.all() else "a frequency of 0"
        raise _corrupt(path, f"documents that ascend below {num_documents}", ordered)
    return Posting(documents, frequencies)


def _decode_blocks(data: Bytes, starts: Ints, sizes: Ints, path: str, out: Posting) -> None:
    """Decode full blocks into the rows of two matrices."""
    if int(sizes.min()) <= HEAD_BYTES:
        raise _corrupt(path, "whole blocks", f"one of {int(sizes.min())} bytes")
    heads = data[starts[:, None] + np.arange(BOUND_BYTES, HEAD_BYTES)]
    first = np.ascontiguousarray(heads[:, :4]).view("<u4").ravel()
    widths = heads[:, 4].astype(np.int64)
    second = HEAD_BYTES + GROUP_BYTES * widths
    if int(widths.max()) > WIDTH_MAX or bool((second >= sizes).any()):
        expected = f"blocks with deltas of at most {WIDTH_MAX} bits that fit them"
        raise _corrupt(path, expected, f"deltas of {int(widths.max())} bits")
    counts = data[starts + second].astype(np.int64)
    is_short = second + 1 + GROUP_BYTES * counts != sizes
    if bool(is_short.any()):
        block = int(is_short.argmax())
        filled = int(second[block]) + 1 + GROUP_BYTES * int(counts[block])
        raise _corrupt(path, f"{filled} bytes in a block", int(sizes[block]))
    unpack(data, starts + HEAD_BYTES, widths, out.documents)
    np.cumsum(out.documents, axis=1, dtype=np.uint32, out=out.documents)
    np.add(out.documents, first[:, None], out=out.documents)
    unpack(data, starts + second + 1, counts, out.frequencies)


def unpack(data: Bytes, starts: Ints, widths: Ints, out: U32s) -> None:
    """Unpack groups of 128 values of different widths into the rows of ``out``."""
    for width in np.flatnonzero(np.bincount(widths, minlength=1)).tolist():
        chosen = np.flatnonzero(widths == width)
        if not width:
            out[chosen] = 0
            continue
        size = GROUP_BYTES * width
        packed = data[starts[chosen][:, None] + np.arange(size)]
        words = packed.view("<u4").reshape(chosen.size, width, 4).transpose(1, 0, 2).copy()
        mask = np.uint32((1 << width) - 1)
        values = np.empty((BLOCK // 4, chosen.size, 4), np.uint32)
        for place in range(BLOCK // 4):
            word, shift = divmod(place * width, 32)
            part = words[word] >> np.uint32(shift)
            if shift + width > 32:
                part |= words[word + 1] << np.uint32(32 - shift)
            np.bitwise_and(part, mask, out=values[place])
        rows = values.transpose(1, 0, 2).reshape(chosen.size, BLOCK)
        if chosen.size == widths.size:
            out[:] = rows
        else:
            out[chosen] = rows


def varints(data: Bytes, path: str) -> Ints:
    """Decode numbers of 7 bits per byte, below 2**35. Raises CorruptFileError."""
    ends = np.flatnonzero(data < 0x80)
    if not data.size:
        return np.zeros(0, np.int64)
    if not ends.size or int(ends[-1]) != data.size - 1:
        raise _corrupt(path, "whole numbers at the end of a block", "a part of one")
    starts = np.concatenate(([0], ends[:-1] + 1))
    longest = int((ends - starts).max()) + 1
    if longest > _LONGEST_VARINT:
        raise _corrupt(path, f"numbers of at most {_LONGEST_VARINT} bytes", longest)
    values = (data[starts] & 0x7F).astype(np.int64)
    for number in range(1, longest):
        chosen = np.flatnonzero(ends - starts >= number)
        part = (data[starts[chosen] + number] & 0x7F).astype(np.int64)
        values[chosen] |= part << (7 * number)
    return values


def decode_positions(
    stream: Bytes, offsets: Ints, posting: Posting, chosen: Ints, path: str
) -> tuple[Ints, Ints]:
    """Return positions of some documents: the place of each among the chosen ones, and where.

    ``chosen`` are places in the posting, ascending; ``offsets`` say where each block begins. Only
    blocks with a chosen document are decoded. Raises CorruptFileError.
    """
    length = posting.documents.size
    if offsets.size != -(-length // BLOCK):
        raise _corrupt(path, f"{-(-length // BLOCK)} blocks of positions", offsets.size)
    ends = np.append(offsets[1:], stream.size)
    if int(offsets[0]) or bool((ends < offsets).any()) or int(ends.max()) > stream.size:
        bounds = np.append(offsets, stream.size)
        expected = f"blocks of positions in order within {stream.size} bytes"
        raise _corrupt(path, expected, describe_order(bounds, repeats=True))
    blocks = np.flatnonzero(np.bincount(chosen // BLOCK, minlength=offsets.size))
    frequencies = posting.frequencies.astype(np.int64)
    all_firsts = np.concatenate(([0], np.cumsum(frequencies)))
    begins, stops = blocks * BLOCK, np.minimum((blocks + 1) * BLOCK, length)
    counts = all_firsts[stops] - all_firsts[begins]
    if int(counts.sum()) > 8 * WIDTH_MAX * max(stream.size, 1):
        raise _corrupt(path, f"{int(counts.sum())} positions", f"{stream.size} bytes")
    deltas = _position_deltas(stream, offsets[blocks], ends[blocks], counts=counts, path=path)
    # Sum up within each document: what was summed before its first position is taken off.
    sums = np.cumsum(deltas)
    documents = ragged_indices(begins, stops - begins)
    sizes = frequencies[documents]
    starts = np.cumsum(sizes) - sizes
    before = np.where(starts > 0, sums[starts - 1], 0)
    positions = sums - np.repeat(before, sizes)
    is_first = np.zeros(deltas.size, np.bool_)
    is_first[starts[sizes > 0]] = True
    # Pieces of characters (base tokenizer "ngram") are all at position 0.
    if not bool((is_first | (deltas > 0) | (positions == 0)).all()):
        repeated = ~(is_first | (deltas > 0) | (positions == 0))
        actual = f"position {int(positions[repeated.argmax()])} twice"
        raise _corrupt(path, "different positions in a text", actual)
    places = np.searchsorted(documents, chosen)
    picked = ragged_indices(starts[places], sizes[places])
    owners = np.repeat(np.arange(chosen.size, dtype=np.int64), sizes[places])
    return owners, positions[picked]


def _position_deltas(stream: Bytes, starts: Ints, ends: Ints, counts: Ints, path: str) -> Ints:
    """Decode the streams of some blocks, block after block; all at the same group together."""
    firsts = np.cumsum(counts) - counts
    out = np.empty(int(counts.sum()), np.int64)
    byte_offsets, left, place = starts.copy(), counts.copy(), firsts.copy()
    while True:
        active = np.flatnonzero(left >= BLOCK)
        if not active.size:
            break
        if bool((byte_offsets[active] >= ends[active]).any()):
            raise _corrupt(path, "a group of positions", "the end of the block")
        widths = stream[byte_offsets[active]].astype(np.int64)
        after = byte_offsets[active] + 1 + GROUP_BYTES * widths
        if int(widths.max()) > WIDTH_MAX or bool((after > ends[active]).any()):
            expected = f"groups of positions of at most {WIDTH_MAX} bits that fit their block"
            raise _corrupt(path, expected, f"{int(widths.max())} bits")
        group = np.empty((active.size, BLOCK), np.uint32)
        unpack(stream, byte_offsets[active] + 1, widths, group)
        out[place[active][:, None] + np.arange(BLOCK)] = group
        byte_offsets[active] = after
        left[active] -= BLOCK
        place[active] += BLOCK
    values = varints(stream[ragged_indices(byte_offsets, ends - byte_offsets)], path)
    if values.size != int(left.sum()):
        raise _corrupt(path, f"{int(left.sum())} positions", values.size)
    out[ragged_indices(place, left)] = values
    return out


def _bytes_of(blocks: pa.Array) -> tuple[Bytes, Ints]:
    """Return the bytes of an array of binaries, and where each begins, and the end."""
    width = "<i8" if pa.types.is_large_binary(blocks.type) else "<i4"
    offsets = np.frombuffer(blocks.buffers()[1], width)[
        blocks.offset : blocks.offset + len(blocks) + 1
    ]
    data = blocks.buffers()[2]
    data_bytes = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return data_bytes, offsets.astype(np.int64)


def _corrupt(path: str, expected: str, actual: object) -> CorruptFileError:
    return CorruptFileError(path, None, expected, str(actual))
