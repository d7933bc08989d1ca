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
from libc.string cimport memcmp, memcpy

ctypedef fused word_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused offset_t:
    int32_t
    int64_t

ctypedef fused code_t:
    uint8_t
    uint16_t

cdef enum:
    VALUES = 1024  # of a block
    ROW_BYTES = 128  # of a packed block, for each bit of width
    ESCAPE = 255  # an FSST code: the next one is a literal byte
    WIDEST = 8  # bytes of an FSST symbol
    FSST_SLACK = 32  # four symbols are written at once
    MEASURED_AT_ONCE = 1 << 20
    SYMBOLS = 255
    CODES = 512  # symbols, and from 256 on literal bytes
    LITERAL = 256
    SINGLE_BONUS = 8  # a byte without a symbol costs an escape wherever it occurs
    CANDIDATES = 1024  # the best are tried
    HASHES = 4096
    HASH_SHIFT = 15
    LENGTH_SHIFT = 12  # of an entry
    LITERAL_BIT = 8  # of an entry
    PIECE = 256  # bytes
    PIECE_CODES = 2 * PIECE + 8
    AT_ONCE = 32  # pieces
    LANES = 4
    LEVELS_AT_ONCE = 2048
    LEVEL_MAX = 255  # that layers may allow: more than 120 layers are not written
    SEARCHED_AT_ONCE = 64
    SUMMED_AT_ONCE = 2048
    INT32_LARGEST = 0x7FFFFFFF
    PROBES = 8  # of a table of hashes, for each value: those of hostile ones would not end
    TOO_MANY = -1
    CROWDED = -2
    VISIBLE = 1
    BEGINS_BIT = 1
    BEGINS = 2
    SHOWN_BIT = 2
    SHOWN = 4
    VALID_BIT = 3
    VALID = 8

# The size of a code without a symbol: no million of codes adds up to it otherwise.
cdef uint64_t UNKNOWN = <uint64_t>1 << 40

cdef int64_t MOST_BYTES = <int64_t>1 << 61

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


cdef int64_t _measure_words(
    const word_t* words, Py_ssize_t count, int64_t[::1] widths
) noexcept nogil:
    """Note how many bits each block of 1024 words needs, and count runs of equal neighbours."""
    cdef Py_ssize_t first = 0, at, stop, block = 0
    cdef int64_t changes = 0
    cdef word_t merged
    while first < count:
        stop = min(first + VALUES, count)
        merged = words[first]
        if first:
            changes += words[first] != words[first - 1]
        for at in range(first + 1, stop):
            merged |= words[at]
            changes += words[at] != words[at - 1]
        widths[block] = 0
        while merged:
            widths[block] += 1
            merged >>= 1
        first = stop
        block += 1
    return changes + (count > 0)


def measure_words(const uint8_t[::1] data, int word_bytes, int64_t[::1] widths):
    """Return the runs of equal words, and put the width of each block into ``widths``.

    -1 when the sizes do not fit.
    """
    cdef const void* source = &data[0]
    cdef Py_ssize_t count
    cdef int64_t runs
    if word_bytes not in (1, 2, 4, 8):
        return -1
    count = data.shape[0] // word_bytes
    if (
        count * word_bytes != data.shape[0]
        or widths.shape[0] != (count + VALUES - 1) // VALUES
        or <size_t>source % word_bytes
    ):
        return -1
    with nogil:
        if word_bytes == 1:
            runs = _measure_words[uint8_t](<const uint8_t*>source, count, widths)
        elif word_bytes == 2:
            runs = _measure_words[uint16_t](<const uint16_t*>source, count, widths)
        elif word_bytes == 4:
            runs = _measure_words[uint32_t](<const uint32_t*>source, count, widths)
        else:
            runs = _measure_words[uint64_t](<const uint64_t*>source, count, widths)
    return runs


# --- FSST (kernels.fsst and kernels.fsst_encode have the layout) ----------------------------------


cdef Py_ssize_t _measure(
    const uint8_t* codes, Py_ssize_t size, const uint8_t* lengths
) noexcept nogil:
    """Return the bytes that codes stand for, -1 when one has no symbol."""
    cdef Py_ssize_t at = 0, end, index
    cdef uint64_t total = 0, a, b, c, d
    cdef uint32_t four
    cdef uint64_t[256] sizes
    for index in range(256):
        sizes[index] = lengths[index] if lengths[index] else UNKNOWN
    while at < size:
        end = min(size, at + MEASURED_AT_ONCE)
        a = b = c = d = 0
        while at < end:
            while at + 4 <= end:
                memcpy(&four, codes + at, 4)
                if _has_escape(four):
                    break
                a += sizes[four & 0xFF]
                b += sizes[four >> 8 & 0xFF]
                c += sizes[four >> 16 & 0xFF]
                d += sizes[four >> 24]
                at += 4
            if at < end:
                if codes[at] == ESCAPE:
                    a += 1
                    at += 2
                else:
                    a += sizes[codes[at]]
                    at += 1
        a += b + c + d
        if a >= UNKNOWN:
            return -1
        total += a
    return <Py_ssize_t>total


cdef inline bint _has_escape(uint32_t four) noexcept nogil:
    """Tell whether one of four codes is 255."""
    return ((~four - <uint32_t>0x01010101) & four & <uint32_t>0x80808080) != 0


def measure_fsst(const uint8_t[::1] codes, const uint8_t[::1] lengths):
    """Return the number of bytes that the codes stand for, -1 when one has no symbol.

    ``lengths`` has 256 entries, of at most 8, 0 for no symbol.
    """
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
    cdef uint8_t* target = out
    cdef uint8_t* last = out + room - FSST_SLACK  # from here on four words may not fit
    cdef uint32_t four
    cdef int code
    ends[0] = 0
    if offsets[0] != 0 or room < FSST_SLACK:
        return -1
    for value in range(count):
        stop = offsets[value + 1]
        if stop < at or stop > size:
            return -1
        while at < stop:
            if target > last:
                return -1
            if at + 4 <= stop:
                memcpy(&four, codes + at, 4)
                if not _has_escape(four):
                    memcpy(target, &words[four & 0xFF], WIDEST)
                    target += lengths[four & 0xFF]
                    memcpy(target, &words[four >> 8 & 0xFF], WIDEST)
                    target += lengths[four >> 8 & 0xFF]
                    memcpy(target, &words[four >> 16 & 0xFF], WIDEST)
                    target += lengths[four >> 16 & 0xFF]
                    memcpy(target, &words[four >> 24], WIDEST)
                    target += lengths[four >> 24]
                    at += 4
                    continue
            code = codes[at]
            at += 1
            if code == ESCAPE:
                if at == stop:
                    return -1
                target[0] = codes[at]
                at += 1
                target += 1
            else:
                memcpy(target, &words[code], WIDEST)
                target += lengths[code]
        ends[value + 1] = <offset_t>(target - out)
    return target - out


def decode_fsst(
    const uint8_t[::1] codes, offsets, const uint64_t[::1] words, const uint8_t[::1] lengths,
    ends, uint8_t[::1] out,
):
    """Decode values into ``out`` and their bounds into ``ends``; return the bytes written.

    ``words`` and ``lengths`` have 256 entries; ``out`` has 32 bytes more than are written. Offsets
    are int32 or int64, ``ends`` the same. Returns -1 when an escape has no byte, or when offsets
    descend or leave the codes. That each code has a symbol is checked by ``measure_fsst``.
    """
    cdef const int32_t[::1] short_offsets
    cdef const int64_t[::1] long_offsets
    cdef int32_t[::1] short_ends
    cdef int64_t[::1] long_ends
    cdef Py_ssize_t written = -1, index
    cdef Py_ssize_t count = len(offsets) - 1
    if count < 0 or len(ends) != count + 1 or words.shape[0] != 256 or lengths.shape[0] != 256:
        return -1
    for index in range(256):
        if lengths[index] > WIDEST:
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
    # A hash names a symbol of three bytes and more, or none: small tables, which stay in the
    # nearest cache. The last of the symbols stands for none and matches nothing.
    uint16_t[HASHES] numbers
    uint64_t[SYMBOLS + 1] words
    uint64_t[SYMBOLS + 1] masks
    uint64_t[SYMBOLS + 1] entries
    const uint16_t* singles
    const uint16_t* pairs


cdef inline uint64_t _slot(uint64_t word) noexcept nogil:
    """Return the hash of the first three bytes."""
    return ((word & 0xFFFFFF) * <uint64_t>2971215073) >> HASH_SHIFT & (HASHES - 1)


cdef inline uint64_t _entry(uint64_t word, const Matcher* matcher) noexcept nogil:
    """Return the entry of the longest symbol that begins ``word``, without a branch."""
    cdef unsigned int number = matcher.numbers[_slot(word)]
    cdef uint64_t short_entry = matcher.pairs[word & 0xFFFF]
    cdef uint64_t is_longer = (word & matcher.masks[number]) == matcher.words[number]
    return short_entry ^ ((short_entry ^ matcher.entries[number]) & (0 - is_longer))


cdef inline uint64_t _fitting(
    uint64_t entry, uint64_t word, Py_ssize_t room, const Matcher* matcher
) noexcept nogil:
    """Return an entry that ends inside the piece: no symbol reaches over its end."""
    if <Py_ssize_t>(entry >> LENGTH_SHIFT) <= room:
        return entry
    if room > 1:
        return matcher.pairs[word & 0xFFFF]
    return matcher.singles[word & 0xFF]


cdef inline code_t* _write_code(uint64_t entry, code_t* out) noexcept nogil:
    """Write a code; a literal is 256 + byte as a wide one, else an escape and the byte."""
    if code_t is uint8_t:
        out[0] = ESCAPE
        out += entry >> LITERAL_BIT & 1
        out[0] = <uint8_t>entry
    else:
        out[0] = <uint16_t>(entry & 0x1FF)
    return out + 1


cdef Py_ssize_t _encode_piece(
    const uint8_t* at, const uint8_t* stop, const Matcher* matcher, code_t* room
) noexcept nogil:
    """Encode one piece without reading beyond it; return the number of codes."""
    cdef code_t* out = room
    cdef uint64_t word, entry
    while at < stop:
        word = 0
        memcpy(&word, at, min(stop - at, <Py_ssize_t>WIDEST))
        entry = _fitting(_entry(word, matcher), word, stop - at, matcher)
        out = _write_code[code_t](entry, out)
        at += entry >> LENGTH_SHIFT
    return out - room


cdef int64_t _encode_fsst(
    const uint8_t* data, Py_ssize_t size, const int64_t* starts, const int64_t* stops,
    Py_ssize_t count, const Matcher* matcher, code_t* codes, int64_t* ends,
) noexcept nogil:
    """Encode pieces, several at a time: within one, each symbol waits for the one before it.

    Their codes go to rooms of their own, and from there to ``codes`` in order.
    """
    cdef code_t[AT_ONCE][PIECE_CODES] rooms
    cdef Py_ssize_t[AT_ONCE] sizes
    cdef const uint8_t* at[LANES]
    cdef const uint8_t* stop[LANES]
    cdef code_t* out[LANES]
    cdef Py_ssize_t[LANES] owner
    cdef Py_ssize_t first = 0, batch, piece, given
    cdef int64_t used = 0
    cdef int lane, busy
    cdef uint64_t word, entry
    while first < count:
        batch = min(count - first, <Py_ssize_t>AT_ONCE)
        given = 0
        busy = 0
        for lane in range(LANES):
            at[lane] = stop[lane] = data
            owner[lane] = -1
        while True:
            for lane in range(LANES):
                if at[lane] < stop[lane]:
                    continue
                if owner[lane] >= 0:
                    sizes[owner[lane]] = out[lane] - rooms[owner[lane]]
                    owner[lane] = -1
                    busy -= 1
                while given < batch:
                    piece = given
                    given += 1
                    if stops[first + piece] + WIDEST <= size and (
                        starts[first + piece] < stops[first + piece]
                    ):
                        at[lane] = data + starts[first + piece]
                        stop[lane] = data + stops[first + piece]
                        out[lane] = rooms[piece]
                        owner[lane] = piece
                        busy += 1
                        break
                    # Empty, or so near the end of the data that no whole word can be read.
                    sizes[piece] = _encode_piece[code_t](
                        data + starts[first + piece], data + stops[first + piece], matcher,
                        rooms[piece],
                    )
            if busy < LANES:
                break
            while (
                (at[0] < stop[0]) & (at[1] < stop[1]) & (at[2] < stop[2]) & (at[3] < stop[3])
            ):
                for lane in range(LANES):
                    memcpy(&word, at[lane], WIDEST)
                    entry = _fitting(
                        _entry(word, matcher), word, stop[lane] - at[lane], matcher
                    )
                    out[lane] = _write_code[code_t](entry, out[lane])
                    at[lane] += entry >> LENGTH_SHIFT
        for lane in range(LANES):
            if owner[lane] >= 0:
                sizes[owner[lane]] = (
                    out[lane] - rooms[owner[lane]]
                    + _encode_piece[code_t](at[lane], stop[lane], matcher, out[lane])
                )
        for piece in range(batch):
            memcpy(codes + used, rooms[piece], sizes[piece] * sizeof(code_t))
            used += sizes[piece]
            ends[first + piece + 1] = used
        first += batch
    return used


cdef bint _fill(
    Matcher* matcher, const uint64_t* words, const uint64_t* masks, const uint16_t* entries
) noexcept nogil:
    """Copy the symbols in the hash tables to small ones; False when there are too many."""
    cdef int slot, number = 0
    for slot in range(HASHES):
        matcher.numbers[slot] = SYMBOLS
        if not masks[slot]:
            continue
        if number == SYMBOLS or not 1 <= entries[slot] >> LENGTH_SHIFT <= WIDEST:
            return False
        matcher.numbers[slot] = number
        matcher.words[number] = words[slot]
        matcher.masks[number] = masks[slot]
        matcher.entries[number] = entries[slot]
        number += 1
    matcher.words[SYMBOLS], matcher.masks[SYMBOLS], matcher.entries[SYMBOLS] = 1, 0, 0
    return True


cdef bint _pieces_fit(
    const int64_t* starts, const int64_t* stops, Py_ssize_t count, Py_ssize_t size, Py_ssize_t room
) noexcept nogil:
    cdef Py_ssize_t piece
    cdef int64_t total = 0
    for piece in range(count):
        if not 0 <= starts[piece] <= stops[piece] <= size:
            return False
        if stops[piece] - starts[piece] > PIECE:
            return False
        total += stops[piece] - starts[piece]
        if total > room:
            return False
    return True


def encode_fsst(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] stops,
    const uint16_t[::1] singles, const uint16_t[::1] pairs, const uint64_t[::1] hash_words,
    const uint64_t[::1] hash_masks, const uint16_t[::1] hash_entries, codes, int64_t[::1] ends,
):
    """Encode pieces, the longest symbol first; return the number of codes, -1 for wrong sizes.

    A piece has at most 256 bytes. An entry has its code (literals as 256 + byte) and, from bit 12
    on, its length, which is never 0: those of ``singles`` and ``pairs`` are not checked. ``codes``
    of 16 bits have room for a code per byte; of 8 bits they have an escape, 255, before a literal,
    and room for twice as many. ``ends[0]`` stays as it is.
    """
    cdef Matcher matcher
    cdef uint8_t[::1] narrow
    cdef uint16_t[::1] wide
    cdef Py_ssize_t count = starts.shape[0]
    cdef Py_ssize_t room = len(codes)
    cdef int64_t used
    if (
        stops.shape[0] != count or ends.shape[0] != count + 1 or singles.shape[0] != 256
        or pairs.shape[0] != 1 << 16 or hash_words.shape[0] != HASHES
        or hash_masks.shape[0] != HASHES or hash_entries.shape[0] != HASHES
    ):
        return -1
    if codes.itemsize == 1:
        room //= 2
    if not _pieces_fit(&starts[0], &stops[0], count, data.shape[0], room):
        return -1
    if not _fill(&matcher, &hash_words[0], &hash_masks[0], &hash_entries[0]):
        return -1
    matcher.singles, matcher.pairs = &singles[0], &pairs[0]
    if codes.itemsize == 1:
        narrow = codes
        with nogil:
            used = _encode_fsst[uint8_t](
                &data[0], data.shape[0], &starts[0], &stops[0], count, &matcher, &narrow[0],
                &ends[0],
            )
    else:
        wide = codes
        with nogil:
            used = _encode_fsst[uint16_t](
                &data[0], data.shape[0], &starts[0], &stops[0], count, &matcher, &wide[0], &ends[0]
            )
    return used


cdef struct Candidate:
    uint64_t word
    int64_t length
    int64_t gain


cdef enum SortKey:
    BY_WORD
    BY_LENGTH
    BY_GAIN


cdef inline uint64_t _sort_key(const Candidate* candidate, SortKey key) noexcept nogil:
    if key == BY_WORD:
        return candidate.word
    return <uint64_t>(candidate.length if key == BY_LENGTH else candidate.gain)


cdef Candidate* _sorted(
    Candidate* source, Candidate* target, Py_ssize_t count, SortKey key
) noexcept nogil:
    """Sort by one number, ascending and stable, one byte at a time; return where they are then."""
    cdef Py_ssize_t[256] places
    cdef Py_ssize_t at, here, before
    cdef uint64_t differing = 0
    cdef int shift
    cdef uint8_t digit
    cdef Candidate* swapped
    for at in range(1, count):
        differing |= _sort_key(&source[at], key) ^ _sort_key(&source[0], key)
    for shift in range(0, 64, 8):
        if not differing >> shift & 0xFF:
            continue
        for at in range(256):
            places[at] = 0
        for at in range(count):
            places[_sort_key(&source[at], key) >> shift & 0xFF] += 1
        before = 0
        for at in range(256):
            here = places[at]
            places[at] = before
            before += here
        for at in range(count):
            digit = _sort_key(&source[at], key) >> shift & 0xFF
            target[places[digit]] = source[at]
            places[digit] += 1
        swapped = source
        source = target
        target = swapped
    return source


cdef Py_ssize_t _collect(
    const uint16_t* codes, const int64_t* ends, Py_ssize_t strings, const uint64_t* words,
    const uint8_t* lengths, uint32_t* pair_counts, Candidate* found, Py_ssize_t room,
) noexcept nogil:
    """Write the symbols in use and their pairs; return their number, -1 for what does not fit.

    ``pair_counts``, of all pairs, are zero before and after.
    """
    cdef int64_t[CODES] counts
    cdef Py_ssize_t string, count = 0
    cdef int64_t at
    cdef uint32_t pairs
    cdef int code, key, size
    for code in range(CODES):
        counts[code] = 0
    for string in range(strings):
        for at in range(ends[string], ends[string + 1]):
            counts[codes[at]] += 1
            if at > ends[string]:
                pair_counts[codes[at - 1] * CODES + codes[at]] += 1
    for code in range(CODES):
        if not counts[code]:
            continue
        if count == room:
            return -1
        found[count].word = words[code]
        found[count].length = lengths[code]
        found[count].gain = (
            counts[code] * lengths[code] * (SINGLE_BONUS if lengths[code] == 1 else 1)
        )
        count += 1
    for string in range(strings):
        for at in range(ends[string] + 1, ends[string + 1]):
            key = codes[at - 1] * CODES + codes[at]
            pairs = pair_counts[key]
            pair_counts[key] = 0
            size = lengths[codes[at - 1]] + lengths[codes[at]]
            if pairs < 2 or size > WIDEST:
                continue
            if count == room:
                return -1
            found[count].word = (
                words[codes[at - 1]] | words[codes[at]] << (8 * lengths[codes[at - 1]])
            )
            found[count].length = size
            found[count].gain = <int64_t>pairs * size
            count += 1
    return count


cdef Py_ssize_t _united(Candidate* found, Py_ssize_t count) noexcept nogil:
    """Add up the gains of equal neighbours; return how many are left."""
    cdef Py_ssize_t at, kept = -1
    for at in range(count):
        if kept >= 0 and found[kept].word == found[at].word and (
            found[kept].length == found[at].length
        ):
            found[kept].gain += found[at].gain
        else:
            kept += 1
            found[kept] = found[at]
    return kept + 1


cdef Py_ssize_t _choose(
    const Candidate* best, Py_ssize_t count, uint64_t* words, uint8_t* lengths
) noexcept nogil:
    """Take the best, which come first; of those with one hash the first. Return their number."""
    cdef uint8_t[HASHES] is_taken
    cdef Py_ssize_t at, taken = 0
    cdef uint64_t slot
    for at in range(HASHES):
        is_taken[at] = 0
    for at in range(min(count, <Py_ssize_t>CANDIDATES)):
        if taken == SYMBOLS:
            break
        if best[at].length > 2:
            slot = _slot(best[at].word)
            if is_taken[slot]:
                continue
            is_taken[slot] = 1
        words[taken] = best[at].word
        lengths[taken] = <uint8_t>best[at].length
        taken += 1
    return taken


cdef Py_ssize_t _select(
    Candidate* found, Candidate* room, Py_ssize_t count, uint64_t* words, uint8_t* lengths
) noexcept nogil:
    """Write the most useful candidates, then those that are shorter, then by their bytes."""
    cdef Candidate* ordered = _sorted(found, room, count, BY_WORD)
    cdef Py_ssize_t at
    if ordered == room:
        room = found
    found = ordered
    ordered = _sorted(found, room, count, BY_LENGTH)
    if ordered == room:
        room = found
    count = _united(ordered, count)
    for at in range(count):
        ordered[at].gain = -ordered[at].gain  # as an unsigned number, the largest gain is least
    return _choose(_sorted(ordered, room, count, BY_GAIN), count, words, lengths)


def select_symbols(
    const uint16_t[::1] codes, const int64_t[::1] ends, const uint64_t[::1] words,
    const uint8_t[::1] lengths, uint32_t[::1] pair_counts, uint64_t[::1] scratch,
    uint64_t[::1] best_words, uint8_t[::1] best_lengths,
):
    """Write the symbols that would save most into ``best_*``; return their number, at most 255.

    ``codes`` are those of a sample, below 512, ``words`` and ``lengths`` what they stand for, of 1
    to 8 bytes; ``ends[i]`` and ``ends[i + 1]`` bound one string. ``pair_counts`` has 2**18 zeros
    and gets them back, ``scratch`` six words for each candidate. -1 when sizes do not fit, after
    which ``pair_counts`` may hold anything.
    """
    cdef Py_ssize_t strings = ends.shape[0] - 1, count, at
    cdef Py_ssize_t size = codes.shape[0]
    cdef Py_ssize_t room = scratch.shape[0] * sizeof(uint64_t) // (2 * sizeof(Candidate))
    cdef Candidate* found = <Candidate*>&scratch[0]
    if (
        strings < 0 or words.shape[0] != CODES or lengths.shape[0] != CODES
        or pair_counts.shape[0] != CODES * CODES
        or best_words.shape[0] < SYMBOLS or best_lengths.shape[0] < SYMBOLS
        or size > 0xFFFFFFFF
    ):
        return -1
    with nogil:
        count = 0
        if ends[0] < 0 or ends[strings] > size:
            count = -1
        for at in range(strings):
            if ends[at] > ends[at + 1]:
                count = -1
        for at in range(size):
            if codes[at] >= CODES or not 1 <= lengths[codes[at]] <= WIDEST:
                count = -1
        if count == 0:
            count = _collect(
                &codes[0], &ends[0], strings, &words[0], &lengths[0], &pair_counts[0], found, room
            )
        if count > 0:
            count = _select(found, found + room, count, &best_words[0], &best_lengths[0])
    return count


# --- ranges of bytes (kernels.ranges) -------------------------------------------------------------


def copy_ranges(
    const uint8_t[::1] data, const int64_t[:] starts, const int64_t[:] sizes, uint8_t[::1] out
):
    """Copy ranges back to back and fill ``out``; False when one is not in ``data``, or some is left.

    Where it returns False, ``out`` holds the ranges before the wrong one.
    """
    cdef Py_ssize_t index
    cdef int64_t at = 0, size = data.shape[0], room = out.shape[0]
    if sizes.shape[0] != starts.shape[0]:
        return False
    with nogil:
        for index in range(starts.shape[0]):
            if sizes[index] < 0 or sizes[index] > room - at:
                break
            if starts[index] < 0 or starts[index] > size - sizes[index]:
                break
            memcpy(&out[0] + at, &data[0] + starts[index], sizes[index])
            at += sizes[index]
        else:
            index = starts.shape[0]
    return index == starts.shape[0] and at == room


def scatter_ranges(
    const uint8_t[::1] data, const int64_t[:] starts, const int64_t[:] sizes, uint8_t[::1] out,
    const int64_t[:] places,
):
    """Copy ranges to places in ``out``; False at the first that leaves ``data`` or ``out``."""
    cdef Py_ssize_t index
    cdef int64_t size = data.shape[0], room = out.shape[0]
    if sizes.shape[0] != starts.shape[0] or places.shape[0] != starts.shape[0]:
        return False
    with nogil:
        for index in range(starts.shape[0]):
            if sizes[index] < 0 or sizes[index] > size or sizes[index] > room:
                break
            if starts[index] < 0 or starts[index] > size - sizes[index]:
                break
            if places[index] < 0 or places[index] > room - sizes[index]:
                break
            memcpy(&out[0] + places[index], &data[0] + starts[index], sizes[index])
        else:
            index = starts.shape[0]
    return index == starts.shape[0]


# --- entries of full-zip rows (kernels.zip_entries) -----------------------------------------------


cdef inline uint64_t _little(const uint8_t* at, int width) noexcept nogil:
    cdef uint64_t word = 0
    memcpy(&word, at, width)
    return word


def walk_entries(
    const uint8_t[::1] data, const int64_t[:] starts, const int64_t[:] stops,
    int control_bytes, int definition_bits, uint32_t visible_max, int64_t fixed_bytes,
    int length_bytes, uint32_t[::1] control, int64_t[::1] value_starts, int64_t[::1] value_sizes,
):
    """Walk the entries of rows; return the numbers of entries and of visible ones.

    Where the arrays are too small for them they are filled as far as possible: come again with
    larger ones. Returns None when an entry does not fit its row, or a row ``data``.
    """
    cdef Py_ssize_t row, entries = 0, visible = 0
    cdef Py_ssize_t entry_room = control.shape[0]
    cdef Py_ssize_t value_room = min(value_starts.shape[0], value_sizes.shape[0])
    cdef int64_t at, stop, begin, size
    cdef uint32_t word = 0
    cdef uint32_t definition
    cdef uint32_t mask
    cdef bint seen, fits = True
    if (
        control_bytes not in (0, 1, 2, 4) or not 0 <= definition_bits <= 16 or fixed_bytes < 0
        or (not fixed_bytes and length_bytes not in (4, 8)) or stops.shape[0] != starts.shape[0]
    ):
        return None
    mask = (<uint32_t>1 << definition_bits) - 1
    with nogil:
        for row in range(starts.shape[0]):
            at, stop = starts[row], stops[row]
            if at < 0 or stop < at or stop > data.shape[0]:
                fits = False
            elif stop - at < control_bytes:
                fits = False
            while fits:
                begin = at
                if stop - at < control_bytes:
                    fits = False
                    break
                if control_bytes:
                    word = <uint32_t>_little(&data[0] + at, control_bytes)
                at += control_bytes
                definition = word & mask
                seen = definition <= visible_max
                size = fixed_bytes if seen else 0
                if not fixed_bytes and definition == 0:
                    if stop - at < length_bytes:
                        fits = False
                        break
                    size = <int64_t>_little(&data[0] + at, length_bytes)
                    at += length_bytes
                if size < 0 or size > stop - at:
                    fits = False
                    break
                if entries < entry_room:
                    control[entries] = word
                entries += 1
                if seen:
                    if visible < value_room:
                        value_starts[visible] = at
                        value_sizes[visible] = size
                    visible += 1
                at += size
                if at == begin:
                    fits = False
                if at == stop:
                    break
            if not fits:
                break
    return (entries, visible) if fits else None


# --- repetition and definition levels (repdef) ----------------------------------------------------

ctypedef fused rep_t:
    uint8_t
    uint16_t

ctypedef fused definition_t:
    uint8_t
    uint16_t


cdef void _unpack_level_block(const uint8_t* data, int width, uint8_t* out) noexcept nogil:
    """Unpack 1024 levels of 1, 2, 4 or 8 bits, which never cross a word of 16 bits."""
    cdef uint16_t[64 * 8] words
    cdef uint16_t mask = (1 << width) - 1
    cdef int row, lane, shift
    cdef const uint16_t* source
    cdef uint8_t* target
    memcpy(words, data, ROW_BYTES * width)
    for row in range(16):
        source = words + (row * width >> 4) * 64
        shift = row * width & 15
        target = out + ORDER[row >> 3] * 16 + (row & 7) * 128
        for lane in range(64):
            target[lane] = <uint8_t>(source[lane] >> shift & mask)


def unpack_levels(
    const uint8_t[::1] data, const int64_t[::1] starts, int width, uint8_t[::1] out
):
    """Unpack the blocks at the bytes ``starts`` to bytes; False when one is not in ``data``."""
    cdef Py_ssize_t block
    cdef int64_t last = data.shape[0] - ROW_BYTES * width
    if width not in (1, 2, 4, 8) or out.shape[0] != starts.shape[0] * VALUES:
        return False
    with nogil:
        for block in range(starts.shape[0]):
            if starts[block] < 0 or starts[block] > last:
                break
            _unpack_level_block(&data[0] + starts[block], width, &out[0] + block * VALUES)
        else:
            block = starts.shape[0]
    return block == starts.shape[0]


cdef bint _unpack_level_chunk(
    const uint8_t* data, int64_t size, int64_t count, int width, uint8_t* out
) noexcept nogil:
    """Unpack a chunk: full blocks, then a packed block or words of 16 bits as its tail.

    The last block is written whole, so that ``out`` has 1024 bytes more than the chunk has levels.
    """
    cdef int64_t block, blocks = count // VALUES, tail = count % VALUES, index
    cdef int64_t block_bytes = ROW_BYTES * width
    cdef uint16_t[VALUES] words
    cdef uint16_t seen = 0
    for block in range(blocks):
        _unpack_level_block(data + block * block_bytes, width, out + block * VALUES)
    if not tail:
        return True
    data += blocks * block_bytes
    out += blocks * VALUES
    if size != blocks * block_bytes + 2 * tail:
        _unpack_level_block(data, width, out)
        return True
    memcpy(words, data, 2 * tail)
    for index in range(tail):
        seen |= words[index]
        out[index] = <uint8_t>words[index]
    return seen <= 255


def unpack_level_chunks(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, int width, uint8_t[::1] out,
):
    """Unpack the levels of chunks, back to back; ``out`` has 1024 bytes more than there are levels.

    Returns False for chunks that are not in ``data`` or of another size than their levels have,
    for levels that need more than a byte, and for arrays that do not fit.
    """
    cdef Py_ssize_t chunk, num_chunks = starts.shape[0]
    cdef int64_t room = out.shape[0] - VALUES, blocks, tail, packed, raw
    cdef bint fits = True
    if width not in (1, 2, 4, 8) or sizes.shape[0] != num_chunks or counts.shape[0] != num_chunks:
        return False
    with nogil:
        for chunk in range(num_chunks):
            if counts[chunk] < 0 or counts[chunk] > room or not (
                0 <= starts[chunk] <= data.shape[0]
                and 0 <= sizes[chunk] <= data.shape[0] - starts[chunk]
            ):
                fits = False
                break
            blocks = counts[chunk] // VALUES
            tail = counts[chunk] % VALUES
            raw = blocks * ROW_BYTES * width + 2 * tail
            packed = (blocks + (tail > 0)) * ROW_BYTES * width
            if sizes[chunk] != raw and sizes[chunk] != packed:
                fits = False
                break
            if counts[chunk] and not _unpack_level_chunk(
                &data[0] + starts[chunk], sizes[chunk], counts[chunk], width,
                &out[0] + (out.shape[0] - VALUES - room),
            ):
                fits = False
                break
            room -= counts[chunk]
    return fits and room == 0


cdef void _count_lists(
    const rep_t* rep, const definition_t* definition, Py_ssize_t count, int number, int upper,
    bint has_definition, Py_ssize_t* starts, Py_ssize_t* lists,
) noexcept nogil:
    cdef Py_ssize_t index, num_starts = 0, num_lists = 0
    for index in range(count):
        num_starts += rep[index] >= number
    if has_definition:
        for index in range(count):
            num_lists += (rep[index] >= number) & (definition[index] <= upper)
    starts[0] = num_starts
    lists[0] = num_lists if has_definition else num_starts


cdef Py_ssize_t _fold_lists(
    const rep_t* rep, const definition_t* definition, Py_ssize_t count, int number,
    int visible_max, int upper, int base, int empty, bint has_definition, rep_t* rep_out,
    definition_t* definition_out, int64_t* offsets, uint8_t* validity,
) noexcept nogil:
    """Fold one layer: flags of some entries, all at once, then one entry after the other.

    There is no branch: what begins no list is overwritten by what does.
    """
    cdef uint8_t[LEVELS_AT_ONCE + 1] flags
    cdef uint8_t flag, wrong = 0, is_last_shown = 1
    cdef Py_ssize_t first = 0, index, size, start = 0, place = 0, num_valid = 0
    cdef int64_t children = 0
    if count and rep[0] < number:
        return -1
    while first < count:
        size = min(count - first, <Py_ssize_t>LEVELS_AT_ONCE)
        if has_definition:
            _set_flags(
                rep + first, definition + first, size, number, visible_max, upper, base, empty,
                flags,
            )
        else:
            for index in range(size):
                flags[index] = VISIBLE | VALID | (BEGINS | SHOWN) * (rep[first + index] >= number)
        flags[size] = BEGINS if first + size == count or rep[first + size] >= number else 0
        for index in range(size):
            # What has no slot begins a list, and one without a slot of its own has one entry.
            flag = flags[index]
            wrong |= ((flag & (VISIBLE | BEGINS)) == 0) | (
                ((flag & (BEGINS | SHOWN)) == BEGINS) & ((flags[index + 1] & BEGINS) == 0)
            )
        for index in range(size):
            num_valid += (flags[index] & (VALID | SHOWN)) == (VALID | SHOWN)
        for index in range(size):
            flag = flags[index]
            offsets[place] = children
            validity[place] = flag >> VALID_BIT & 1
            place += flag >> SHOWN_BIT & 1
            children += flag & VISIBLE
        if rep_out != NULL and definition_out != NULL:
            for index in range(size):
                rep_out[start] = rep[first + index]
                definition_out[start] = definition[first + index]
                start += flags[index] >> BEGINS_BIT & 1
        elif rep_out != NULL:
            for index in range(size):
                rep_out[start] = rep[first + index]
                start += flags[index] >> BEGINS_BIT & 1
        elif definition_out != NULL:
            for index in range(size):
                definition_out[start] = definition[first + index]
                start += flags[index] >> BEGINS_BIT & 1
        first += size
    offsets[place] = children
    return -1 if wrong else num_valid


cdef void _set_flags(
    const rep_t* rep, const definition_t* definition, Py_ssize_t count, int number,
    int visible_max, int upper, int base, int empty, uint8_t* flags,
) noexcept nogil:
    """Compare in the width of the levels, many at a time."""
    cdef Py_ssize_t index
    cdef rep_t least = <rep_t>number
    cdef definition_t most_visible = <definition_t>visible_max
    cdef definition_t most_shown = <definition_t>upper
    cdef definition_t most_valid = <definition_t>base
    cdef definition_t valid_too = <definition_t>empty if empty >= 0 else 0
    cdef uint8_t begins
    for index in range(count):
        begins = rep[index] >= least
        flags[index] = (
            (definition[index] <= most_visible)
            | begins << BEGINS_BIT
            | (begins & (definition[index] <= most_shown)) << SHOWN_BIT
            | ((definition[index] <= most_valid) | (definition[index] == valid_too)) << VALID_BIT
        )


cdef bint _are_levels(const uint8_t[::1] levels, int word_bytes):
    return (
        word_bytes in (1, 2) and levels.shape[0] % word_bytes == 0
        and <size_t>&levels[0] % word_bytes == 0
    )


def count_lists(
    const uint8_t[::1] rep, int rep_bytes, const uint8_t[::1] definition, int definition_bytes,
    int number, int upper,
):
    """Count the entries that begin a list of layer ``number``, and those of them that have a slot.

    Levels have one or two bytes; ``definition`` none, and then every list has a slot. Returns None
    for arrays that do not fit.
    """
    cdef Py_ssize_t starts = 0, lists = 0
    cdef bint has_definition = definition_bytes != 0
    cdef Py_ssize_t count
    cdef const void* reps = &rep[0]
    cdef const void* definitions = &definition[0]
    if not _are_levels(rep, rep_bytes):
        return None
    count = rep.shape[0] // rep_bytes
    if has_definition and (
        not _are_levels(definition, definition_bytes)
        or definition.shape[0] != count * definition_bytes
    ):
        return None
    with nogil:
        if rep_bytes == 1 and definition_bytes == 2:
            _count_lists[uint8_t, uint16_t](
                <const uint8_t*>reps, <const uint16_t*>definitions, count, number, upper,
                has_definition, &starts, &lists,
            )
        elif rep_bytes == 1:
            _count_lists[uint8_t, uint8_t](
                <const uint8_t*>reps, <const uint8_t*>definitions, count, number, upper,
                has_definition, &starts, &lists,
            )
        elif definition_bytes == 2:
            _count_lists[uint16_t, uint16_t](
                <const uint16_t*>reps, <const uint16_t*>definitions, count, number, upper,
                has_definition, &starts, &lists,
            )
        else:
            _count_lists[uint16_t, uint8_t](
                <const uint16_t*>reps, <const uint8_t*>definitions, count, number, upper,
                has_definition, &starts, &lists,
            )
    return starts, lists


def fold_lists(
    const uint8_t[::1] rep, int rep_bytes, const uint8_t[::1] definition, int definition_bytes,
    int number, int visible_max, int upper, int base, int empty, uint8_t[::1] rep_out,
    uint8_t[::1] definition_out, int64_t[::1] offsets, uint8_t[::1] validity,
):
    """Fold one list layer of a page; return how many lists are valid.

    An entry with a definition up to ``visible_max`` has a slot in the layer inside this one. A list
    with one up to ``upper`` has a slot itself, and is valid with one up to ``base``, or ``empty``.
    The levels of entries that begin a list go to ``rep_out`` and ``definition_out``, unless those
    are empty; all that is written has one item more than ``count_lists`` says. Returns -1 for levels that no writer could
    have meant, and for arrays that do not fit.
    """
    cdef Py_ssize_t valid = -1, count
    cdef bint has_definition = definition_bytes != 0
    cdef const void* reps = &rep[0]
    cdef const void* definitions = &definition[0]
    cdef void* reps_out = &rep_out[0] if rep_out.shape[0] else NULL
    cdef void* definitions_out = &definition_out[0] if definition_out.shape[0] else NULL
    counted = count_lists(rep, rep_bytes, definition, definition_bytes, number, upper)
    if counted is None:
        return -1
    if (
        rep_out.shape[0] not in (0, (counted[0] + 1) * rep_bytes)
        or definition_out.shape[0] not in (0, (counted[0] + 1) * definition_bytes)
        or offsets.shape[0] != counted[1] + 1 or validity.shape[0] != counted[1] + 1
        or not 1 <= number <= LEVEL_MAX or not 0 <= visible_max <= LEVEL_MAX
        or not 0 <= upper <= LEVEL_MAX or not 0 <= base <= LEVEL_MAX or empty > LEVEL_MAX
        or <size_t>reps_out % rep_bytes
        or has_definition and <size_t>definitions_out % definition_bytes
    ):
        return -1
    count = rep.shape[0] // rep_bytes
    with nogil:
        if rep_bytes == 1 and definition_bytes == 2:
            valid = _fold_lists[uint8_t, uint16_t](
                <const uint8_t*>reps, <const uint16_t*>definitions, count, number, visible_max,
                upper, base, empty, has_definition, <uint8_t*>reps_out,
                <uint16_t*>definitions_out, &offsets[0], &validity[0],
            )
        elif rep_bytes == 1:
            valid = _fold_lists[uint8_t, uint8_t](
                <const uint8_t*>reps, <const uint8_t*>definitions, count, number, visible_max,
                upper, base, empty, has_definition, <uint8_t*>reps_out,
                <uint8_t*>definitions_out, &offsets[0], &validity[0],
            )
        elif definition_bytes == 2:
            valid = _fold_lists[uint16_t, uint16_t](
                <const uint16_t*>reps, <const uint16_t*>definitions, count, number, visible_max,
                upper, base, empty, has_definition, <uint16_t*>reps_out,
                <uint16_t*>definitions_out, &offsets[0], &validity[0],
            )
        else:
            valid = _fold_lists[uint16_t, uint8_t](
                <const uint16_t*>reps, <const uint8_t*>definitions, count, number, visible_max,
                upper, base, empty, has_definition, <uint16_t*>reps_out,
                <uint8_t*>definitions_out, &offsets[0], &validity[0],
            )
    return valid


cdef Py_ssize_t _item_validity(
    const definition_t* definition, Py_ssize_t count, int visible_max, int base, uint8_t* validity,
    Py_ssize_t slots,
) noexcept nogil:
    cdef Py_ssize_t index, place = 0, valid = 0
    cdef int is_visible, is_valid
    for index in range(count):
        place += definition[index] <= visible_max
    if place != slots:
        return -1
    place = 0
    for index in range(count):
        is_visible = definition[index] <= visible_max
        is_valid = definition[index] <= base
        validity[place] = is_valid
        place += is_visible
        valid += is_visible & is_valid
    return valid


def item_validity(
    const uint8_t[::1] definition, int definition_bytes, int visible_max, int base,
    uint8_t[::1] validity,
):
    """Tell of every entry with a slot whether its definition is at most ``base``; count those.

    ``validity`` has one item more than there are slots. Returns -1 for another number of slots.
    """
    cdef Py_ssize_t valid, slots = validity.shape[0] - 1
    cdef const void* definitions = &definition[0]
    if not _are_levels(definition, definition_bytes) or slots < 0:
        return -1
    with nogil:
        if definition_bytes == 1:
            valid = _item_validity[uint8_t](
                <const uint8_t*>definitions, definition.shape[0], visible_max, base, &validity[0],
                slots,
            )
        else:
            valid = _item_validity[uint16_t](
                <const uint16_t*>definitions, definition.shape[0] // 2, visible_max, base,
                &validity[0], slots,
            )
    return valid


# --- runs, and bytes that were split (compression.rle, compression.byte_stream_split) --------------


cdef bint _repeat(
    const word_t* values, const int64_t* repeats, Py_ssize_t count, word_t* out, Py_ssize_t room
) noexcept nogil:
    cdef Py_ssize_t run, index
    cdef int64_t at = 0, length
    cdef word_t value
    for run in range(count):
        length = repeats[run]
        if length < 0 or length > room - at:
            return False
        value = values[run]
        for index in range(length):
            out[at + index] = value
        at += length
    return at == room


def repeat_runs(
    const uint8_t[::1] values, int word_bytes, const int64_t[::1] repeats, uint8_t[::1] out
):
    """Repeat each word, filling ``out``; False when the runs do not fill it exactly."""
    cdef const void* source = &values[0]
    cdef void* target = &out[0]
    cdef Py_ssize_t count = repeats.shape[0], room
    cdef bint done
    if (
        word_bytes not in (1, 2, 4, 8) or values.shape[0] != count * word_bytes
        or out.shape[0] % word_bytes or <size_t>source % word_bytes or <size_t>target % word_bytes
    ):
        return False
    room = out.shape[0] // word_bytes
    with nogil:
        if word_bytes == 1:
            done = _repeat[uint8_t](
                <const uint8_t*>source, &repeats[0], count, <uint8_t*>target, room
            )
        elif word_bytes == 2:
            done = _repeat[uint16_t](
                <const uint16_t*>source, &repeats[0], count, <uint16_t*>target, room
            )
        elif word_bytes == 4:
            done = _repeat[uint32_t](
                <const uint32_t*>source, &repeats[0], count, <uint32_t*>target, room
            )
        else:
            done = _repeat[uint64_t](
                <const uint64_t*>source, &repeats[0], count, <uint64_t*>target, room
            )
    return done


cdef void _join(const uint8_t* data, int64_t count, int width, uint8_t* out) noexcept nogil:
    cdef int64_t index
    cdef int place
    cdef uint64_t word
    for index in range(count):
        word = 0
        for place in range(width):
            word |= <uint64_t>data[place * count + index] << 8 * place
        memcpy(out + index * width, &word, width)


def join_bytes(
    const uint8_t[::1] data, const int64_t[:] starts, const int64_t[:] counts, int width,
    uint8_t[::1] out,
):
    """Join the bytes of values of 4 or 8 bytes, whose chunks hold all first bytes first.

    Returns False when a chunk is not in ``data``, or the chunks do not fill ``out``.
    """
    cdef Py_ssize_t chunk, chunks = starts.shape[0]
    cdef int64_t at = 0, size = data.shape[0], room = out.shape[0]
    if width not in (4, 8) or counts.shape[0] != chunks:
        return False
    with nogil:
        for chunk in range(chunks):
            if counts[chunk] < 0 or counts[chunk] > (room - at) // width:
                break
            if starts[chunk] < 0 or starts[chunk] > size - counts[chunk] * width:
                break
            if width == 4:
                _join(&data[0] + starts[chunk], counts[chunk], 4, &out[0] + at)
            else:
                _join(&data[0] + starts[chunk], counts[chunk], 8, &out[0] + at)
            at += counts[chunk] * width
        else:
            chunk = chunks
    return chunk == chunks and at == room


# --- numbers of different values (distinct_values) -------------------------------------------------


cdef inline uint64_t _mixed(uint64_t hashed, uint64_t word) noexcept nogil:
    hashed = (hashed ^ word) * <uint64_t>0x9E3779B97F4A7C15
    return hashed ^ (hashed >> 32)


cdef inline uint64_t _few(const uint8_t* data, int64_t size, const uint8_t* end) noexcept nogil:
    """Return up to 8 bytes as a word; ``end`` is that of the memory."""
    cdef uint64_t word = 0
    if end - data >= 8:
        memcpy(&word, data, 8)
        return word if size >= 8 else word & ((<uint64_t>1 << 8 * size) - 1)
    memcpy(&word, data, size)
    return word


cdef inline uint64_t _hash(const uint8_t* data, int64_t size, const uint8_t* end) noexcept nogil:
    cdef uint64_t hashed = size, word
    while size > 8:
        memcpy(&word, data, 8)
        hashed = _mixed(hashed, word)
        data += 8
        size -= 8
    return _mixed(hashed, _few(data, size, end))


cdef inline bint _are_equal(
    const uint8_t* one, const uint8_t* other, int64_t size, const uint8_t* end
) noexcept nogil:
    if size <= 8:
        return _few(one, size, end) == _few(other, size, end)
    return memcmp(one, other, size) == 0


cdef int64_t _number(
    const uint8_t* data, const uint8_t* end, const offset_t* offsets, int64_t fixed,
    const int64_t* starts, Py_ssize_t runs, Py_ssize_t run, uint64_t* table, uint64_t mask,
    int32_t* numbers, int64_t* firsts, int64_t most,
) noexcept nogil:
    """Number values of ``fixed`` bytes, or between ``offsets`` if there are any, by appearance.

    An entry of the table is the upper half of a hash and, below it, one more than a number.
    """
    cdef Py_ssize_t part, at, index, place = 0
    cdef int64_t count = 0, begin, size = fixed, other, patience = PROBES * (runs * run + VALUES)
    cdef uint64_t hashed, entry, slot
    for part in range(runs):
        for index in range(run):
            at = starts[part] + index
            if offsets != NULL:
                begin = offsets[at]
                size = offsets[at + 1] - begin
            else:
                begin = at * fixed
            hashed = _hash(data + begin, size, end)
            slot = hashed & mask
            while True:
                entry = table[slot]
                if not entry:
                    if count == most:
                        return TOO_MANY
                    firsts[count] = at
                    count += 1
                    table[slot] = (hashed & <uint64_t>0xFFFFFFFF00000000) | <uint64_t>count
                    numbers[place] = <int32_t>(count - 1)
                    break
                if entry >> 32 == hashed >> 32:
                    other = firsts[(entry & <uint64_t>0xFFFFFFFF) - 1]
                    if offsets == NULL:
                        other *= fixed
                    elif offsets[other + 1] - offsets[other] == size:
                        other = offsets[other]
                    else:
                        other = -1
                    if other >= 0 and _are_equal(data + other, data + begin, size, end):
                        numbers[place] = <int32_t>((entry & <uint64_t>0xFFFFFFFF) - 1)
                        break
                patience -= 1
                if patience < 0:
                    return CROWDED
                slot = (slot + 1) & mask
            place += 1
    return count


def number_values(
    const uint8_t[::1] data, offsets, int64_t fixed, const int64_t[::1] starts, Py_ssize_t run,
    uint64_t[::1] table, int32_t[::1] numbers, int64_t[::1] firsts,
):
    """Number the values of runs of ``run`` values from each start by their first appearance.

    Values have ``fixed`` bytes, or lie between ``offsets`` (int32 or int64) where these are not
    None. ``table`` is zero, a power of two long and longer than ``firsts``, which takes the place
    of the first value of each number. Returns how many values differ, -1 when they are more than
    ``firsts`` holds, -2 when sizes do not fit or their hashes collide too often.
    """
    cdef const int32_t[::1] short_offsets
    cdef const int64_t[::1] long_offsets
    cdef Py_ssize_t number, count, runs = starts.shape[0], slots = table.shape[0]
    cdef int64_t most = firsts.shape[0], found
    cdef const uint8_t* end = &data[0] + data.shape[0]
    if (
        run < 1 or not runs or most < 1 or slots <= most or slots & (slots - 1)
        or most >= <int64_t>1 << 31 or numbers.shape[0] != runs * run
    ):
        return CROWDED
    if offsets is None:
        if fixed < 1:
            return CROWDED
        count = data.shape[0] // fixed
    else:
        count = len(offsets) - 1
    for number in range(runs):
        if starts[number] < 0 or starts[number] > count - run:
            return CROWDED
    if offsets is None:
        with nogil:
            found = _number[int64_t](
                &data[0], end, NULL, fixed, &starts[0], runs, run, &table[0], slots - 1,
                &numbers[0], &firsts[0], most,
            )
    elif offsets.itemsize == 4:
        short_offsets = offsets
        with nogil:
            found = CROWDED
            if _ascends[int32_t](&short_offsets[0], count, data.shape[0]):
                found = _number[int32_t](
                    &data[0], end, &short_offsets[0], 0, &starts[0], runs, run, &table[0],
                    slots - 1, &numbers[0], &firsts[0], most,
                )
    else:
        long_offsets = offsets
        with nogil:
            found = CROWDED
            if _ascends[int64_t](&long_offsets[0], count, data.shape[0]):
                found = _number[int64_t](
                    &data[0], end, &long_offsets[0], 0, &starts[0], runs, run, &table[0],
                    slots - 1, &numbers[0], &firsts[0], most,
                )
    return found


cdef bint _ascends(const offset_t* offsets, Py_ssize_t count, int64_t size) noexcept nogil:
    cdef Py_ssize_t index
    cdef bint falls = False
    for index in range(count):
        falls |= offsets[index + 1] < offsets[index]
    return not falls and offsets[0] >= 0 and offsets[count] <= size


# --- strings of chunks (compression.variable) -----------------------------------------------------


cdef int64_t _bounds(
    const uint8_t* data, int64_t size, int64_t at, int64_t origin, int64_t limit, int64_t first,
    int64_t count, int word, int64_t* low,
) noexcept nogil:
    """Return the bytes of the strings of a chunk, and where they begin; -1 when they do not fit."""
    cdef uint64_t begin, end
    if count < 0 or at < 0 or at > size or count >= (size - at) // word:
        return -1
    if origin < 0 or limit < origin or limit > size:
        return -1
    begin = _little(data + at, word)
    end = _little(data + at + count * word, word)
    if begin != <uint64_t>first or end < begin or end > <uint64_t>(limit - origin):
        return -1
    low[0] = <int64_t>begin
    return <int64_t>(end - begin)


cdef bint _join_strings(
    const uint8_t* data, int64_t size, const int64_t[:] offsets_at, const int64_t[:] origins,
    const int64_t[:] limits, const int64_t[:] first, const int64_t[:] counts, int word,
    offset_t* offsets, int64_t rows, uint8_t* out, int64_t room,
) noexcept nogil:
    cdef Py_ssize_t chunk
    cdef int64_t low = 0, length, index, used = 0, row = 0, before, offset, shift
    cdef bint falls = False
    cdef uint32_t narrow
    cdef const uint8_t* at
    offsets[0] = 0
    for chunk in range(counts.shape[0]):
        length = _bounds(
            data, size, offsets_at[chunk], origins[chunk], limits[chunk], first[chunk],
            counts[chunk], word, &low,
        )
        if length < 0 or length > room - used or counts[chunk] > rows - row:
            return False
        at = data + offsets_at[chunk]
        before = low
        shift = used - low
        if word == 4:
            for index in range(1, counts[chunk] + 1):
                memcpy(&narrow, at + 4 * index, 4)
                offset = narrow
                falls |= offset < before
                offsets[row + index] = <offset_t>(<uint64_t>offset + <uint64_t>shift)
                before = offset
        else:
            for index in range(1, counts[chunk] + 1):
                memcpy(&offset, at + 8 * index, 8)
                falls |= offset < before
                offsets[row + index] = <offset_t>(<uint64_t>offset + <uint64_t>shift)
                before = offset
        memcpy(out + used, data + origins[chunk] + low, length)
        used += length
        row += counts[chunk]
    return not falls and used == room and row == rows


def measure_strings(
    const uint8_t[::1] data, const int64_t[:] offsets_at, const int64_t[:] origins,
    const int64_t[:] limits, const int64_t[:] first, const int64_t[:] counts, int word,
):
    """Return the bytes of the strings of chunks, -1 when some lie outside of their chunk.

    Chunk ``i`` has ``counts[i] + 1`` offsets of ``word`` (4 or 8) bytes from ``offsets_at[i]`` on,
    of which the first is ``first[i]``; they count from ``origins[i]`` and end before ``limits[i]``.
    """
    cdef Py_ssize_t chunk, chunks = counts.shape[0]
    cdef int64_t total = 0, length = 0, low = 0
    if (
        offsets_at.shape[0] != chunks or origins.shape[0] != chunks or limits.shape[0] != chunks
        or first.shape[0] != chunks or word not in (4, 8)
    ):
        return -1
    with nogil:
        for chunk in range(chunks):
            length = _bounds(
                &data[0], data.shape[0], offsets_at[chunk], origins[chunk], limits[chunk],
                first[chunk], counts[chunk], word, &low,
            )
            if length < 0 or total > MOST_BYTES:
                total = -1
                break
            total += length
    return total


def join_strings(
    const uint8_t[::1] data, const int64_t[:] offsets_at, const int64_t[:] origins,
    const int64_t[:] limits, const int64_t[:] first, const int64_t[:] counts, int word,
    offsets, uint8_t[::1] out,
):
    """Join the strings of chunks as ``measure_strings`` describes them, and their offsets.

    ``offsets`` are int32 or int64, one more than there are strings. Returns False when offsets
    descend, or when the strings do not fill ``out``, or do not fit.
    """
    cdef int32_t[::1] short_offsets
    cdef int64_t[::1] long_offsets
    cdef Py_ssize_t chunks = counts.shape[0]
    cdef int64_t rows = len(offsets) - 1
    cdef bint done
    if (
        offsets_at.shape[0] != chunks or origins.shape[0] != chunks or limits.shape[0] != chunks
        or first.shape[0] != chunks or word not in (4, 8) or rows < 0
    ):
        return False
    if offsets.itemsize == 4:
        if out.shape[0] > INT32_LARGEST:
            return False
        short_offsets = offsets
        with nogil:
            done = _join_strings[int32_t](
                &data[0], data.shape[0], offsets_at, origins, limits, first, counts, word,
                &short_offsets[0], rows, &out[0], out.shape[0],
            )
    else:
        long_offsets = offsets
        with nogil:
            done = _join_strings[int64_t](
                &data[0], data.shape[0], offsets_at, origins, limits, first, counts, word,
                &long_offsets[0], rows, &out[0], out.shape[0],
            )
    return done


# --- search in texts (kernels.substring) ----------------------------------------------------------


cdef bint _find(
    const uint8_t* data, Py_ssize_t size, const offset_t* offsets, Py_ssize_t rows,
    const uint8_t* piece, Py_ssize_t length, uint8_t* found,
) noexcept nogil:
    """Look for the first two bytes and the last at many places at once, through all texts together.

    One match in a text is enough: the search goes on in the next one.
    """
    cdef uint8_t[SEARCHED_AT_ONCE] flags
    cdef uint8_t first = piece[0], second = piece[min(1, length - 1)], last = piece[length - 1]
    cdef uint8_t is_any
    cdef uint64_t eight
    cdef int64_t at, stop, place, after
    cdef Py_ssize_t row, index, group, count, next_byte = min(1, length - 1)
    if rows and (offsets[0] < 0 or offsets[rows] > size):
        return False
    for row in range(rows):
        if offsets[row + 1] < offsets[row]:
            return False
    row = 0
    at = offsets[0]
    stop = offsets[rows] - length  # where the last match may begin
    while at <= stop:
        count = min(<int64_t>SEARCHED_AT_ONCE, stop - at + 1)
        is_any = 0
        if count == SEARCHED_AT_ONCE:
            for index in range(SEARCHED_AT_ONCE):
                flags[index] = (
                    (data[at + index] == first) & (data[at + index + next_byte] == second)
                    & (data[at + index + length - 1] == last)
                )
                is_any |= flags[index]
        else:
            for index in range(SEARCHED_AT_ONCE):
                flags[index] = 0
            for index in range(count):
                flags[index] = (
                    (data[at + index] == first) & (data[at + index + next_byte] == second)
                    & (data[at + index + length - 1] == last)
                )
                is_any |= flags[index]
        after = at + count
        if is_any:
            for group in range(0, SEARCHED_AT_ONCE // 8):
                memcpy(&eight, flags + 8 * group, 8)
                index = 8 * group
                while eight and after == at + count:
                    place = at + index
                    if eight & 1 and not memcmp(data + place, piece, length):
                        while offsets[row + 1] <= place:
                            row += 1
                        if place + length <= offsets[row + 1]:
                            found[row] = 1
                            after = offsets[row + 1]
                            break
                    eight >>= 8
                    index += 1
        at = after
    return True


def find_substring(
    const uint8_t[::1] data, offsets, const uint8_t[::1] piece, uint8_t[::1] found
):
    """Set ``found``, which is zero, for each text that has the piece, of at least one byte.

    Offsets are int32 or int64. Returns False when they descend or leave the data.
    """
    cdef const int32_t[::1] short_offsets
    cdef const int64_t[::1] long_offsets
    cdef Py_ssize_t rows = found.shape[0], length = piece.shape[0]
    cdef bint done
    if not length or len(offsets) != rows + 1:
        return False
    if offsets.itemsize == 4:
        short_offsets = offsets
        with nogil:
            done = _find[int32_t](
                &data[0], data.shape[0], &short_offsets[0], rows, &piece[0], length, &found[0]
            )
    else:
        long_offsets = offsets
        with nogil:
            done = _find[int64_t](
                &data[0], data.shape[0], &long_offsets[0], rows, &piece[0], length, &found[0]
            )
    return done


# --- distances of product-quantized vectors (kernels.table_sums) ----------------------------------


cdef void _table_sums(
    const float* table, const uint8_t* codes, Py_ssize_t rows, Py_ssize_t count, int bits,
    float* sums,
) noexcept nogil:
    """Add up a block of vectors at a time: its sums stay in the cache."""
    cdef Py_ssize_t start, stop, row, index
    cdef const float* low
    cdef const float* high
    cdef const uint8_t* line
    start = 0
    while start < count:
        stop = min(start + <Py_ssize_t>SUMMED_AT_ONCE, count)
        row = 0
        while bits == 8 and row + 4 <= rows:  # four at once: sums are loaded and stored less often
            line = codes + row * count
            low = table + 256 * row
            for index in range(start, stop):
                sums[index] = (
                    sums[index] + low[line[index]] + low[256 + line[count + index]]
                    + low[512 + line[2 * count + index]] + low[768 + line[3 * count + index]]
                )
            row += 4
        while row < rows:
            line = codes + row * count
            if bits == 8:
                low = table + 256 * row
                for index in range(start, stop):
                    sums[index] += low[line[index]]
            else:
                low = table + 32 * row
                high = low + 16
                for index in range(start, stop):
                    sums[index] = sums[index] + low[line[index] & 15] + high[line[index] >> 4]
            row += 1
        start = stop


def table_sums(const float[::1] table, const uint8_t[::1] codes, int bits, float[::1] sums):
    """Add to ``sums`` what the table says of the codes, which have a row for each byte.

    Returns False when the sizes do not fit.
    """
    cdef Py_ssize_t count = sums.shape[0], rows
    if not count or codes.shape[0] % count or bits not in (4, 8):
        return False
    rows = codes.shape[0] // count
    if table.shape[0] != rows * (256 if bits == 8 else 32):
        return False
    if rows:
        with nogil:
            _table_sums(&table[0], &codes[0], rows, count, bits, &sums[0])
    return True


# --- posting lists (kernels.sorted_numbers) -------------------------------------------------------


cdef void _places_among(
    const uint32_t* wanted, Py_ssize_t count, const uint32_t* numbers, Py_ssize_t size,
    int64_t* places,
) noexcept nogil:
    cdef Py_ssize_t index, at = 0, step, low, high, middle
    cdef uint32_t value
    for index in range(count):
        value = wanted[index]
        if at and numbers[at - 1] >= value:
            at = 0  # the wanted numbers descend
        step = 1
        low = at
        high = at
        while high < size and numbers[high] < value:
            low = high + 1
            high += step
            step *= 2
        high = min(high, size)
        while low < high:
            middle = low + (high - low) // 2
            if numbers[middle] < value:
                low = middle + 1
            else:
                high = middle
        at = low
        places[index] = at if at < size and numbers[at] == value else -1


def places_among(const uint32_t[::1] wanted, const uint32_t[::1] numbers, int64_t[::1] places):
    """Write where each wanted number is in ``numbers``, which are ascending, or -1.

    Returns False when the sizes do not fit.
    """
    cdef Py_ssize_t count = wanted.shape[0], size = numbers.shape[0]
    if places.shape[0] != count:
        return False
    if not count:
        return True
    if not size:
        places[:] = -1
        return True
    with nogil:
        _places_among(&wanted[0], count, &numbers[0], size, &places[0])
    return True


def add_at(float[::1] sums, const uint32_t[::1] places, const float[::1] values):
    """Add a value at each place.

    Returns False when the sizes do not fit, or a place is not there; nothing is added then.
    """
    cdef Py_ssize_t count = places.shape[0], size = sums.shape[0], index
    cdef uint32_t largest = 0
    if values.shape[0] != count:
        return False
    with nogil:
        for index in range(count):
            largest = max(largest, places[index])
        if count and largest < size:
            for index in range(count):
                sums[places[index]] += values[index]
    return not count or largest < size
