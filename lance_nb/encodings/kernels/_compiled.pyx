# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=False, binding=False
"""The hot loops, compiled when the package is built; the numpy forms beside their callers agree.

Arguments are one-dimensional, C-contiguous buffers of bytes (words are in the machine's order, which
is little-endian) and plain numbers. A loop allocates nothing, releases the GIL, and checks every
offset and length that comes from a file before it touches what they name: a False or a negative
number says that one is wrong, and the caller raises the error that its numpy form raises.

Limits: little-endian machines. Tested against the numpy forms by tests/property/encodings, and
under AddressSanitizer by ``make fuzz-kernels``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

ctypedef fused word_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused offset_t:
    int32_t
    int64_t

cdef enum:
    VALUES = 1024  # of a block
    ROW_BYTES = 128  # of a packed block, for each bit of width
    ESCAPE = 255  # an FSST code: the next one is a literal byte
    WIDEST = 8  # bytes of an FSST symbol
    HASH_FACTOR_SHIFT = 15
    HASH_MASK = 4095
    ENTRY_LENGTH_SHIFT = 12
    ENTRY_LITERAL = 0x100

cdef int[8] ORDER = [0, 4, 2, 6, 1, 5, 3, 7]


# --- blocks of 1024 integers, FastLanes order (kernels.bitpack has the layout) --------------------


cdef void _unpack_block(const word_t* words, int width, word_t* out, word_t mask) noexcept nogil:
    cdef int bits = sizeof(word_t) * 8
    cdef int lanes = VALUES // bits
    cdef int row, lane, place = 0, shift, left
    cdef const word_t* low
    cdef const word_t* high
    cdef word_t* target
    for row in range(bits):
        target = out + ORDER[row >> 3] * 16 + (row & 7) * 128
        low = words + (place // bits) * lanes
        shift = place % bits
        if shift + width > bits:
            high = low + lanes
            left = bits - shift
            for lane in range(lanes):
                target[lane] = <word_t>((low[lane] >> shift) | (high[lane] << left)) & mask
        else:
            for lane in range(lanes):
                target[lane] = <word_t>(low[lane] >> shift) & mask
        place += width


cdef bint _unpack(
    const uint8_t[::1] data, const int64_t[::1] starts, int width, word_t* out
) noexcept nogil:
    cdef Py_ssize_t block
    cdef int64_t last = data.shape[0] - ROW_BYTES * width
    cdef word_t mask = <word_t>~<word_t>0
    cdef word_t[VALUES] aligned
    cdef const uint8_t* source
    if width < <int>sizeof(word_t) * 8:
        mask = <word_t>((<word_t>1 << width) - 1)
    for block in range(starts.shape[0]):
        if starts[block] < 0 or starts[block] > last:
            return False
        source = &data[0] + starts[block]
        if <size_t>source % sizeof(word_t):
            memcpy(aligned, source, ROW_BYTES * width)
            source = <const uint8_t*>aligned
        _unpack_block[word_t](<const word_t*>source, width, out + block * VALUES, mask)
    return True


def unpack_bits(
    const uint8_t[::1] data, const int64_t[::1] starts, int width, int word_bytes, uint8_t[::1] out
):
    """Unpack the blocks at the bytes ``starts`` into ``out``; False when one is not in ``data``."""
    cdef void* target = &out[0]
    cdef bint done = False
    if (
        not 1 <= width <= 8 * word_bytes
        or out.shape[0] != starts.shape[0] * VALUES * word_bytes
        or <size_t>target % word_bytes
    ):
        return False
    with nogil:
        if word_bytes == 1:
            done = _unpack[uint8_t](data, starts, width, <uint8_t*>target)
        elif word_bytes == 2:
            done = _unpack[uint16_t](data, starts, width, <uint16_t*>target)
        elif word_bytes == 4:
            done = _unpack[uint32_t](data, starts, width, <uint32_t*>target)
        elif word_bytes == 8:
            done = _unpack[uint64_t](data, starts, width, <uint64_t*>target)
    return done


cdef void _pack_block(const word_t* values, int width, word_t* out) noexcept nogil:
    cdef int bits = sizeof(word_t) * 8
    cdef int lanes = VALUES // bits
    cdef int row, lane, place = 0, shift, left
    cdef const word_t* source
    cdef word_t* low
    cdef word_t* high
    for row in range(bits):
        source = values + ORDER[row >> 3] * 16 + (row & 7) * 128
        low = out + (place // bits) * lanes
        shift = place % bits
        if shift == 0:  # the first row of a word is assigned: nothing has to be cleared
            for lane in range(lanes):
                low[lane] = source[lane]
        else:
            for lane in range(lanes):
                low[lane] |= <word_t>(source[lane] << shift)
        if shift + width > bits:
            high = low + lanes
            left = bits - shift
            for lane in range(lanes):
                high[lane] = <word_t>(source[lane] >> left)
        place += width


cdef void _pack(const word_t* values, int width, uint8_t* out, Py_ssize_t blocks,
                Py_ssize_t stride) noexcept nogil:
    cdef Py_ssize_t block
    cdef word_t[VALUES] packed
    for block in range(blocks):
        _pack_block[word_t](values + block * VALUES, width, packed)
        memcpy(out + block * stride, packed, ROW_BYTES * width)


def pack_bits(const uint8_t[::1] values, int width, int word_bytes, uint8_t[:, :] out):
    """Pack blocks of 1024 words into the rows of ``out``; False when the sizes do not fit."""
    cdef const void* source = &values[0]
    cdef uint8_t* target = &out[0, 0]
    cdef Py_ssize_t blocks = out.shape[0], stride = out.strides[0]
    if (
        word_bytes not in (1, 2, 4, 8)
        or not 1 <= width <= 8 * word_bytes
        or values.shape[0] != blocks * VALUES * word_bytes
        or out.shape[1] != ROW_BYTES * width
        or out.strides[1] != 1
        or <size_t>source % word_bytes
    ):
        return False
    with nogil:
        if word_bytes == 1:
            _pack[uint8_t](<const uint8_t*>source, width, target, blocks, stride)
        elif word_bytes == 2:
            _pack[uint16_t](<const uint16_t*>source, width, target, blocks, stride)
        elif word_bytes == 4:
            _pack[uint32_t](<const uint32_t*>source, width, target, blocks, stride)
        else:
            _pack[uint64_t](<const uint64_t*>source, width, target, blocks, stride)
    return True


# --- FSST (kernels.fsst and kernels.fsst_encode have the layout) ----------------------------------


cdef Py_ssize_t _measure(
    const uint8_t* codes, Py_ssize_t size, const uint8_t* lengths
) noexcept nogil:
    """Return the bytes that codes stand for: symbols without escapes in four sums, then the rest."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t a = 0, b = 0, c = 0, d = 0
    while at < size:
        while at + 4 <= size:
            if (codes[at] == ESCAPE) | (codes[at + 1] == ESCAPE) | (
                codes[at + 2] == ESCAPE
            ) | (codes[at + 3] == ESCAPE):
                break
            a += lengths[codes[at]]
            b += lengths[codes[at + 1]]
            c += lengths[codes[at + 2]]
            d += lengths[codes[at + 3]]
            at += 4
        if at < size:
            if codes[at] == ESCAPE:
                total += 1
                at += 2
            else:
                total += lengths[codes[at]]
                at += 1
    return total + a + b + c + d


def measure_fsst(const uint8_t[::1] codes, const uint8_t[::1] lengths):
    """Return the number of bytes that the codes stand for; ``lengths`` has 256 entries."""
    cdef Py_ssize_t total
    if lengths.shape[0] != 256:
        return -1
    with nogil:
        total = _measure(&codes[0], codes.shape[0], &lengths[0])
    return total


cdef Py_ssize_t _decode_fsst(
    const uint8_t* codes, Py_ssize_t size, const uint64_t* words, const uint8_t* lengths,
    const offset_t* offsets, Py_ssize_t count, offset_t* ends, uint8_t* out, Py_ssize_t room,
) noexcept nogil:
    """Write each symbol as a whole word; the next one corrects its end."""
    cdef Py_ssize_t value
    cdef int64_t at = 0, stop
    cdef Py_ssize_t target = 0
    cdef int code
    ends[0] = 0
    if offsets[0] != 0:
        return -1
    for value in range(count):
        stop = offsets[value + 1]
        if stop < at or stop > size:
            return -1
        while at < stop:
            code = codes[at]
            if target + WIDEST > room:
                return -1
            at += 1
            if code == ESCAPE:
                if at == stop:
                    return -1
                out[target] = codes[at]
                at += 1
                target += 1
            elif lengths[code] == 0:
                return -1
            else:
                memcpy(out + target, &words[code], WIDEST)
                target += lengths[code]
        ends[value + 1] = <offset_t>target
    return target


def decode_fsst(
    const uint8_t[::1] codes, offsets, const uint64_t[::1] words, const uint8_t[::1] lengths,
    ends, uint8_t[::1] out,
):
    """Decode values into ``out`` and their bounds into ``ends``; return the bytes written.

    ``words`` and ``lengths`` have 256 entries, 0 for no symbol; ``out`` has 8 bytes more than are
    written. Offsets are int32 or int64, ``ends`` the same. Returns -1 when a code has no symbol, an
    escape no byte, or offsets descend or leave the codes.
    """
    cdef const int32_t[::1] short_offsets
    cdef const int64_t[::1] long_offsets
    cdef int32_t[::1] short_ends
    cdef int64_t[::1] long_ends
    cdef Py_ssize_t written = -1
    cdef Py_ssize_t count = len(offsets) - 1
    if count < 0 or len(ends) != count + 1 or words.shape[0] != 256 or lengths.shape[0] != 256:
        return -1
    if offsets.itemsize == 4:
        short_offsets, short_ends = offsets, ends
        with nogil:
            written = _decode_fsst[int32_t](
                &codes[0], codes.shape[0], &words[0], &lengths[0],
                &short_offsets[0], count, &short_ends[0], &out[0], out.shape[0],
            )
    else:
        long_offsets, long_ends = offsets, ends
        with nogil:
            written = _decode_fsst[int64_t](
                &codes[0], codes.shape[0], &words[0], &lengths[0],
                &long_offsets[0], count, &long_ends[0], &out[0], out.shape[0],
            )
    return written


cdef struct Matcher:
    const uint16_t* singles
    const uint16_t* pairs
    const uint64_t* hash_words
    const uint64_t* hash_masks
    const uint16_t* hash_entries


cdef inline uint64_t _longest(uint64_t word, int64_t room, const Matcher* matcher) noexcept nogil:
    """Return the entry of the longest symbol that begins ``word``, of at most ``room`` bytes."""
    cdef uint64_t slot = ((word & 0xFFFFFF) * <uint64_t>2971215073) >> HASH_FACTOR_SHIFT
    cdef uint64_t entry
    slot &= HASH_MASK
    entry = matcher.hash_entries[slot]
    if (word & matcher.hash_masks[slot]) == matcher.hash_words[slot] and (
        <int64_t>(entry >> ENTRY_LENGTH_SHIFT) <= room
    ):
        return entry
    if room > 1:
        return matcher.pairs[word & 0xFFFF]
    return matcher.singles[word & 0xFF]


cdef inline uint64_t _word_at(const uint8_t* data, int64_t at, int64_t size) noexcept nogil:
    """Read 8 bytes; zeros follow the last byte there is."""
    cdef uint64_t word = 0
    if at + WIDEST <= size:
        memcpy(&word, data + at, WIDEST)
    else:
        memcpy(&word, data + at, size - at)
    return word


cdef bint _pieces_fit(
    const int64_t* starts, const int64_t* stops, Py_ssize_t count, Py_ssize_t size, Py_ssize_t room
) noexcept nogil:
    cdef Py_ssize_t piece
    cdef int64_t total = 0
    for piece in range(count):
        if not 0 <= starts[piece] <= stops[piece] <= size:
            return False
        total += stops[piece] - starts[piece]
        if total > room:
            return False
    return True


cdef int64_t _encode_bytes(
    const uint8_t* data, int64_t size, const int64_t* starts, const int64_t* stops,
    Py_ssize_t count, const Matcher* matcher, uint8_t* codes, int64_t* ends,
) noexcept nogil:
    cdef Py_ssize_t piece
    cdef int64_t at, stop, used = 0
    cdef uint64_t entry
    for piece in range(count):
        at, stop = starts[piece], stops[piece]
        while at < stop:
            entry = _longest(_word_at(data, at, size), stop - at, matcher)
            if entry & ENTRY_LITERAL:
                codes[used] = ESCAPE
                used += 1
            codes[used] = <uint8_t>entry
            used += 1
            at += <int64_t>(entry >> ENTRY_LENGTH_SHIFT)
        ends[piece + 1] = used
    return used


cdef int64_t _encode_symbols(
    const uint8_t* data, int64_t size, const int64_t* starts, const int64_t* stops,
    Py_ssize_t count, const Matcher* matcher, uint16_t* codes, int64_t* ends,
) noexcept nogil:
    cdef Py_ssize_t piece
    cdef int64_t at, stop, used = 0
    cdef uint64_t entry
    for piece in range(count):
        at, stop = starts[piece], stops[piece]
        while at < stop:
            entry = _longest(_word_at(data, at, size), stop - at, matcher)
            codes[used] = entry & 0x1FF
            used += 1
            at += <int64_t>(entry >> ENTRY_LENGTH_SHIFT)
        ends[piece + 1] = used
    return used


def encode_fsst(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] stops,
    const uint16_t[::1] singles, const uint16_t[::1] pairs, const uint64_t[::1] hash_words,
    const uint64_t[::1] hash_masks, const uint16_t[::1] hash_entries, codes, int64_t[::1] ends,
):
    """Encode pieces, the longest symbol first; return the number of codes, -1 for wrong sizes.

    An entry has its code (literals as 256 + byte) and, from bit 12 on, its length, which is not 0.
    ``codes`` of 16 bits hold codes and as many as there are bytes; of 8 bits they have an escape,
    255, before a literal, so that there are up to twice as many. ``ends[0]`` stays as it is.
    """
    cdef Matcher matcher
    cdef uint8_t[::1] narrow
    cdef uint16_t[::1] wide
    cdef Py_ssize_t count = starts.shape[0]
    cdef Py_ssize_t room = len(codes)
    cdef int64_t used
    if (
        stops.shape[0] != count or ends.shape[0] != count + 1 or singles.shape[0] != 256
        or pairs.shape[0] != 1 << 16 or hash_words.shape[0] != HASH_MASK + 1
        or hash_masks.shape[0] != HASH_MASK + 1 or hash_entries.shape[0] != HASH_MASK + 1
    ):
        return -1
    if codes.itemsize == 1:
        room //= 2
    if not _pieces_fit(&starts[0], &stops[0], count, data.shape[0], room):
        return -1
    matcher.singles, matcher.pairs = &singles[0], &pairs[0]
    matcher.hash_words, matcher.hash_masks = &hash_words[0], &hash_masks[0]
    matcher.hash_entries = &hash_entries[0]
    if codes.itemsize == 1:
        narrow = codes
        with nogil:
            used = _encode_bytes(
                &data[0], data.shape[0], &starts[0], &stops[0], count, &matcher, &narrow[0],
                &ends[0],
            )
    else:
        wide = codes
        with nogil:
            used = _encode_symbols(
                &data[0], data.shape[0], &starts[0], &stops[0], count, &matcher, &wide[0],
                &ends[0],
            )
    return used
