"""Text functions over whole columns: cut, pad, join, map, search, replace, split.

Arrow's own text functions take literals only (where to cut, how far to pad), so a column is decoded
to code points: ``codes`` has the code points of all rows back to back, row ``i`` those from
``offsets[i]`` up to ``offsets[i + 1]``. Cutting and mapping is then arithmetic, with another
argument for every row. A pattern that Arrow takes as a literal only is applied once per distinct
pattern; where nearly every row has its own pattern, row by row.

Each function takes arrays of one length without nulls (a literal is repeated) and returns one.

Limits: the values of a dataset decide how long a result would become, so it is bounded before
anything is allocated: ``MADE_MAX`` characters or elements for the rows that are evaluated at a
time, 2**20 characters for one text made by repeat, lpad or rpad, 2 GiB for the text of one result.
Not vectorised: digests, as neither Arrow nor numpy has a function for many texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels import substring
from lance_nb.encodings.kernels.ranges import ragged_indices, starts_of
from lance_nb.table.predicate.expression import Kernel, Value, aligned, per_row
from lance_nb.value_classes import dataclass

MADE_MAX = 1 << 27


def check_amounts(counts: npt.NDArray[np.int64], each: int, subject: str) -> None:
    """Check the length of what each row becomes. Raises ArrowInvalid, a PredicateError then."""
    largest = int(counts.max(initial=0))
    if largest > each:
        raise pa.ArrowInvalid(f"{subject} of {largest:,} is longer than allowed: at most {each:,}")
    total = int(counts.sum())
    if total > MADE_MAX:
        raise pa.ArrowInvalid(
            f"{subject} for each of {counts.size:,} rows makes {total:,} in all, more than "
            f"{MADE_MAX:,}; make it shorter, or look at fewer rows (fragments=)"
        )


Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]

_INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Points:
    """The code points of some rows."""

    codes: Codes
    offsets: Ints

    @property
    def lengths(self) -> Ints:
        """Characters of each row."""
        return np.diff(self.offsets)

    def cut(self, starts: Ints, stops: Ints) -> Points:
        """Keep characters ``[start, stop)`` of each row; places beyond its ends are at its ends."""
        lengths = self.lengths
        first = np.clip(starts, 0, lengths)
        counts = np.maximum(np.minimum(stops, lengths) - first, 0)
        places = ragged_indices(self.offsets[:-1] + first, counts)
        return Points(self.codes[places], starts_of(counts))

    def cycled(self, counts: Ints) -> Points:
        """Repeat the characters of each row, which has some, until it has ``counts`` of them."""
        turn = ragged_indices(np.zeros(counts.size, np.int64), counts)
        turn %= np.repeat(np.maximum(self.lengths, 1), counts)
        return Points(self.codes[turn + np.repeat(self.offsets[:-1], counts)], starts_of(counts))


def points_of(texts: pa.Array) -> Points:
    """Return the code points of an array of text without nulls."""
    if not len(texts):
        return Points(np.zeros(0, np.uint32), np.zeros(1, np.int64))
    raw, ends = text_bytes(texts)
    if not raw.size or int(raw.max()) < 0x80:
        return Points(raw.astype(np.uint32), ends)
    codes = np.frombuffer(raw.tobytes().decode().encode("utf-32-le"), "<u4")
    return Points(codes, starts_of((raw & 0xC0 != 0x80).astype(np.int64))[ends])


def text_bytes(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return the bytes of an array of text that is not empty, and where each row ends in them."""
    width = np.dtype(np.int64 if pt.is_large_string(texts.type) else np.int32)
    _, offsets, data = texts.buffers()
    begin = texts.offset * width.itemsize
    ends = np.frombuffer(offsets, width, len(texts) + 1, begin).astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return raw[int(ends[0]) : int(ends[-1])], ends - ends[0]


def text_of(points: Points) -> pa.Array:
    """Return the rows as text."""
    codes = points.codes
    if not codes.size or int(codes.max()) < 0x80:
        return text_array(codes.astype(np.uint8), points.offsets)
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    data = codes.astype("<u4").tobytes().decode("utf-32-le").encode()
    return text_array(np.frombuffer(data, np.uint8), starts_of(sizes)[points.offsets])


def text_array(data: npt.NDArray[np.uint8], offsets: Ints) -> pa.Array:
    """Wrap UTF-8 and where each row begins in it. Raises pa.ArrowInvalid for too much of it."""
    if int(offsets[-1]) > _INT32_MAX:
        raise pa.ArrowInvalid(f"text of {int(offsets[-1]):,} bytes is more than 2 GiB")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), offsets.size - 1, buffers)


TEXT_CHARS_MAX = 1 << 20
_FAR = 1 << 40  # beyond the end of any text, and no overflow when added up


def whole(function: Callable[..., pa.Array], type_: pa.DataType) -> Kernel:
    """Make a kernel of a function of whole arrays; a null operand gives null."""

    def kernel(*values: Value) -> Value:
        arrays = aligned(*values)
        filled = [_filled(array) for array in arrays]
        result = function(*filled)
        result = result if result.type == type_ else pc.cast(result, type_)
        for array in arrays:
            if array.null_count:
                result = pc.if_else(pc.is_valid(array), result, pa.scalar(None, type_))
        return result[0] if all(isinstance(value, pa.Scalar) for value in values) else result

    return kernel


def _filled(array: pa.Array) -> pa.Array:
    """Fill nulls by what no function refuses."""
    if pa.types.is_null(array.type):
        return pa.array([""] * len(array), pa.string())
    return pc.fill_null(array, 1 if pa.types.is_integer(array.type) else "")


def numbers_of(array: pa.Array) -> Ints:
    """Return whole numbers, cut to what no text reaches."""
    numbers: Ints = np.clip(array.to_numpy(zero_copy_only=False).astype(np.int64), -_FAR, _FAR)
    return numbers


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


def _same(points: Points, other: Points) -> pa.Array:
    return pc.equal(text_of(points), text_of(other))


def repeat(texts: pa.Array, counts: pa.Array) -> pa.Array:
    """Write each text ``count`` times."""
    count = np.maximum(numbers_of(counts), 0)
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    # A longer one is refused whatever its length: the product must not overflow before.
    check_amounts(lengths * np.minimum(count, TEXT_CHARS_MAX + 1), TEXT_CHARS_MAX, "a text")
    return pc.binary_repeat(texts, pa.array(np.where(lengths > 0, count, 0)))


def pad(texts: pa.Array, counts: pa.Array, fills: pa.Array, *, at_left: bool) -> pa.Array:
    """Fill each text up to ``count`` characters; cut what is longer."""
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
        [*(character.upper() for character in chars), *(character.lower() for character in chars)],
        pa.string(),
    )
    pieces = pc.take(forms, pa.array(place + np.where(inside, len(chars), 0)))
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
    separator, *texts = values
    between = pc.fill_null(separator, "")
    out = pa.array([""] * len(separator), pa.string())
    begun = pa.array(np.zeros(len(separator), np.bool_))
    for text in texts:
        is_there = pc.is_valid(text)
        gap = pc.if_else(pc.and_(begun, is_there), between, "")
        out = pc.binary_join_element_wise(out, gap, pc.fill_null(text, ""), "")
        begun = pc.or_(begun, is_there)
    return pc.if_else(pc.is_valid(separator), out, pa.scalar(None, pa.string()))


_ROWS_PER_PATTERN = 16  # fewer than so many, and a row at a time is faster


def by_pattern(
    with_literals: Callable[..., pa.Array], row: Callable[..., Any], type_: pa.DataType, count: int
) -> Callable[..., pa.Array]:
    """Make a function of a text, ``count`` patterns and more of one that takes patterns as str.

    ``row`` is the same for one row.
    """

    def function(texts: pa.Array, *arguments: pa.Array) -> pa.Array:
        coded = [pc.dictionary_encode(argument) for argument in arguments[:count]]
        key: Ints = np.zeros(len(texts), np.int64)
        for encoded in coded:
            key *= max(len(encoded.dictionary), 1)
            key += encoded.indices.to_numpy(zero_copy_only=False)
        different = np.unique(key)
        columns = (texts, *arguments[count:])
        if different.size > 1 and different.size * _ROWS_PER_PATTERN > key.size:
            return pa.chunked_array([per_row(row, type_)(texts, *arguments)]).combine_chunks()
        if different.size <= 1:
            patterns = [
                argument[0].as_py() if len(argument) else "" for argument in arguments[:count]
            ]
            return with_literals(columns[0], *patterns, *columns[1:])
        order = np.argsort(key, kind="stable")
        parts = []
        for places in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
            patterns = [argument[int(places[0])].as_py() for argument in arguments[:count]]
            mine = [pc.take(column, pa.array(places)) for column in columns]
            parts.append(pc.cast(with_literals(mine[0], *patterns, *mine[1:]), type_))
        return pc.take(pa.concat_arrays(parts), pa.array(np.argsort(order)))

    return function


def _strpos(texts: pa.Array, piece: str) -> pa.Array:
    if not piece:
        return pa.array(np.ones(len(texts), np.int32))
    parts = pc.split_pattern(texts, pattern=piece, max_splits=1)
    ends = pc.list_value_length(parts).to_numpy(zero_copy_only=False)
    before = pc.utf8_length(pc.list_element(parts, 0)).to_numpy(zero_copy_only=False)
    return pa.array(np.where(ends > 1, before + 1, 0).astype(np.int32))


def _replace(texts: pa.Array, old: str, new: str) -> pa.Array:
    if old:
        return pc.replace_substring(texts, pattern=old, replacement=new)
    # Nothing is found before and behind every character.
    return pc.replace_substring_regex(texts, pattern="", replacement=new.replace("\\", r"\\"))


def _split_part(texts: pa.Array, delimiter: str, numbers: pa.Array) -> pa.Array:
    number = numbers_of(numbers)
    if bool((number == 0).any()):
        raise pa.ArrowInvalid("split_part counts from 1")
    if delimiter:
        parts = pc.split_pattern(texts, pattern=delimiter)
        ends = parts.offsets.to_numpy().astype(np.int64)
        values = parts.values
    else:
        ends, values = np.arange(len(texts) + 1, dtype=np.int64), texts
    place = np.where(number > 0, number - 1, np.diff(ends) + number)
    inside = (place >= 0) & (place < np.diff(ends))
    positions = pa.array(ends[:-1] + place, mask=~inside)
    return pc.fill_null(pc.take(values, positions), "")


def _split_one(value: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise pa.ArrowInvalid("split_part counts from 1")
    parts = value.split(delimiter) if delimiter else [value]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _translate(texts: pa.Array, source: str, target: str) -> pa.Array:
    table = _translation(source, target)
    if not table:
        return texts
    points = points_of(texts)
    keys = np.array(sorted(table), np.uint32)
    become = np.array([ord(table[key] or "\0") for key in sorted(table)], np.uint32)
    is_kept = np.array([table[key] is not None for key in sorted(table)])
    place = np.minimum(np.searchsorted(keys, points.codes), keys.size - 1)
    hit = keys[place] == points.codes
    is_copied = ~hit | is_kept[place]
    codes = np.where(hit, become[place], points.codes)[is_copied]
    return text_of(Points(codes, starts_of(is_copied.astype(np.int64))[points.offsets]))


def _translation(source: str, target: str) -> dict[int, str | None]:
    return {ord(a): (target[i] if i < len(target) else None) for i, a in enumerate(source)}


strpos = by_pattern(_strpos, lambda value, piece: value.find(piece) + 1, pa.int32(), 1)
contains = by_pattern(substring.contains, lambda value, piece: piece in value, pa.bool_(), 1)
replace = by_pattern(_replace, lambda value, old, new: value.replace(old, new), pa.string(), 2)
split_part = by_pattern(_split_part, _split_one, pa.string(), 1)
translate = by_pattern(
    _translate, lambda value, *pair: value.translate(_translation(*pair)), pa.string(), 2
)
