"""Functions of whole columns of text: cut, fill, join, write characters as others.

Each takes arrays of one length without nulls (a literal is repeated) and returns one. Those that
look for a pattern: ``text_patterns``.

Limits: a text made by repeat, lpad or rpad has at most 2**20 characters.
Not vectorised: digests, for which neither Arrow nor numpy has a function of many texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.kernels.ranges import starts_of
from lance_nb.table.predicate.amounts import check_amounts
from lance_nb.table.predicate.expression import Kernel, Value, aligned
from lance_nb.table.predicate.text_points import (
    Ints,
    Points,
    points_of,
    text_array,
    text_of,
)

TEXT_CHARS_MAX = 1 << 20
_FAR = 1 << 40  # beyond the end of any text, and no overflow when added up


def whole(function: Callable[..., pa.Array], type_: pa.DataType) -> Kernel:
    """Make a kernel of a function of whole arrays; a null operand gives null."""

    def kernel(*values: Value) -> Value:
        import pyarrow.compute as pc

        arrays = aligned(*values)
        filled = [_filled(one) for one in arrays]
        found = function(*filled)
        found = found if found.type == type_ else found.cast(type_)
        for one in arrays:
            if one.null_count:
                found = pc.if_else(one.is_valid(), found, pa.scalar(None, type_))
        return found[0] if all(isinstance(value, pa.Scalar) for value in values) else found

    return kernel


def _filled(array: pa.Array) -> pa.Array:
    """Fill nulls by what no function refuses."""
    if pa.types.is_null(array.type):
        return pa.array([""] * len(array), pa.string())
    return array.fill_null(1 if pa.types.is_integer(array.type) else "")


def numbers_of(array: pa.Array) -> Ints:
    """Return whole numbers, cut to what no text reaches."""
    found: Ints = np.clip(array.to_numpy(zero_copy_only=False).astype(np.int64), -_FAR, _FAR)
    return found


# --- places ---------------------------------------------------------------------------------------


def substr(texts: pa.Array, starts: pa.Array, counts: pa.Array | None = None) -> pa.Array:
    """Cut from character ``start`` (from 1) on, ``count`` of them."""
    first = numbers_of(starts) - 1
    stop = np.full(first.size, _FAR, np.int64)
    if counts is not None:
        count = numbers_of(counts)
        if bool((count < 0).any()):
            raise pa.ArrowInvalid(f"substr cannot have a negative length, {int(count.min())}")
        stop = first + count
    return text_of(points_of(texts).cut(first, stop))


def left(texts: pa.Array, counts: pa.Array) -> pa.Array:
    """Keep the first characters, or all but the last ``-count``."""
    points, count = points_of(texts), numbers_of(counts)
    stops = np.where(count < 0, points.lengths + count, count)
    return text_of(points.cut(np.zeros_like(count), stops))


def right(texts: pa.Array, counts: pa.Array) -> pa.Array:
    """Keep the last characters, or all but the first ``-count``."""
    points, count = points_of(texts), numbers_of(counts)
    starts = np.where(count < 0, -count, points.lengths - count)
    return text_of(points.cut(starts, points.lengths))


def starts_with(texts: pa.Array, pieces: pa.Array) -> pa.Array:
    """Tell whether each text begins with its piece."""
    points, piece = points_of(texts), points_of(pieces)
    return _same(points.cut(np.zeros_like(piece.lengths), piece.lengths), piece)


def ends_with(texts: pa.Array, pieces: pa.Array) -> pa.Array:
    """Tell whether each text ends with its piece."""
    points, piece = points_of(texts), points_of(pieces)
    return _same(points.cut(points.lengths - piece.lengths, points.lengths), piece)


def _same(one: Points, other: Points) -> pa.Array:
    import pyarrow.compute as pc

    return pc.equal(text_of(one), text_of(other))


def repeat(texts: pa.Array, counts: pa.Array) -> pa.Array:
    """Write each text ``count`` times."""
    import pyarrow.compute as pc

    count = np.maximum(numbers_of(counts), 0)
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    # A longer one is refused whatever its length: the product must not overflow before.
    check_amounts(lengths * np.minimum(count, TEXT_CHARS_MAX + 1), TEXT_CHARS_MAX, "a text")
    return pc.binary_repeat(texts, pa.array(np.where(lengths > 0, count, 0)))


def pad(texts: pa.Array, counts: pa.Array, fills: pa.Array, *, at_left: bool) -> pa.Array:
    """Fill each text up to ``count`` characters; cut what is longer."""
    import pyarrow.compute as pc

    points, fill, count = points_of(texts), points_of(fills), np.maximum(numbers_of(counts), 0)
    check_amounts(count, TEXT_CHARS_MAX, "a text")
    missing = np.where(fill.lengths > 0, np.maximum(count - points.lengths, 0), 0)
    parts = [text_of(points.cut(np.zeros_like(count), count)), text_of(fill.cycled(missing))]
    return pc.binary_join_element_wise(*(reversed(parts) if at_left else parts), "")


# --- characters -----------------------------------------------------------------------------------


def initcap(texts: pa.Array) -> pa.Array:
    """Write the first letter of each word large and the others small."""
    points = points_of(texts)
    codes, place = np.unique(points.codes, return_inverse=True)
    chars = [chr(code) for code in codes.tolist()]
    goes_on = np.array([char.isalnum() for char in chars], np.bool_)
    inside = np.zeros(points.codes.size, np.bool_)
    inside[1:] = goes_on[place[:-1]]
    inside[points.offsets[:-1][points.lengths > 0]] = False
    forms = pa.array(
        [*(one.upper() for one in chars), *(one.lower() for one in chars)], pa.string()
    )
    pieces = forms.take(pa.array(place + np.where(inside, len(chars), 0)))
    if not len(pieces):
        return text_of(points)
    _, ends, data = pieces.buffers()
    offsets = np.frombuffer(ends, np.int32, len(pieces) + 1).astype(np.int64)
    return text_array(np.frombuffer(data, np.uint8), offsets[points.offsets])


def ascii_(texts: pa.Array) -> pa.Array:
    """Return the number of each first character, 0 for an empty text."""
    points = points_of(texts)
    codes = np.append(points.codes, np.uint32(0))
    return pa.array(np.where(points.lengths > 0, codes[points.offsets[:-1]], 0).astype(np.int32))


def chr_(numbers: pa.Array) -> pa.Array:
    """Return the character of each number."""
    codes = numbers_of(numbers)
    wrong = (codes <= 0) | (codes >= 0x110000) | ((codes >= 0xD800) & (codes < 0xE000))
    if bool(wrong.any()):
        raise pa.ArrowInvalid(f"chr: there is no character {int(codes[wrong][0])}")
    return text_of(Points(codes.astype(np.uint32), np.arange(codes.size + 1)))


def to_hex(numbers: pa.Array) -> pa.Array:
    """Write each number with hexadecimal digits, as two's complement."""
    values = numbers.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    shifts = np.arange(60, -4, -4, dtype=np.uint64)
    digits = (values[:, None] >> shifts & np.uint64(15)).astype(np.uint8)
    shown: npt.NDArray[np.bool_] = np.logical_or.accumulate(digits > 0, axis=1)
    shown[:, -1:] = True
    letters = np.frombuffer(b"0123456789abcdef", np.uint8)[digits]
    return text_array(letters[shown], starts_of(shown.sum(axis=1, dtype=np.int64)))


def md5(value: str) -> str:
    """Return the digest of one text."""
    return hashlib.md5(value.encode(), usedforsecurity=False).hexdigest()


def concat_ws(values: Sequence[pa.Array]) -> pa.Array:
    """Join the texts of each row that are not null by the first one; null where that is."""
    import pyarrow.compute as pc

    separator, *texts = values
    between = pc.fill_null(separator, "")
    out = pa.array([""] * len(separator), pa.string())
    begun = pa.array(np.zeros(len(separator), np.bool_))
    for one in texts:
        is_there = one.is_valid()
        gap = pc.if_else(pc.and_(begun, is_there), between, "")
        out = pc.binary_join_element_wise(out, gap, pc.fill_null(one, ""), "")
        begun = pc.or_(begun, is_there)
    return pc.if_else(separator.is_valid(), out, pa.scalar(None, pa.string()))
