"""Comparisons with SQL's three values: =, <, IN, BETWEEN, IS, LIKE and the logical connectives.

Floats have the total order of IEEE 754, as in DataFusion: NaN is above every number, NaN with a
minus sign below every number, and each NaN equals only itself. Compared with a literal zero, -0.0
and 0.0 are the same; between two columns -0.0 is less than 0.0.
A null operand gives null, except where SQL says otherwise (AND, OR, IS, IS DISTINCT FROM).

LIKE and regular expressions run in RE2, in time linear in the text.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import reduce
from math import copysign, isnan
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.encodings.kernels.substring import contains
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.expression import Value, aligned, one_array
from lance_nb.table.predicate.lists import Lists, arrays_kernel, null_mask, opened

PATTERNS_MAX = 10_000
Signs = npt.NDArray[np.int8]
_LOOKED_UP_MIN = 8


def equal(left: Value, right: Value) -> Value:
    """Compare for equality; a literal zero equals both zeros."""
    if _has_ieee_order(left, right):
        return pc.equal(left, right)
    return identical(left, right)


def identical(left: Value, right: Value) -> Value:
    """Compare for equality, zeros by their sign."""
    if pt.is_nested(left.type):
        return _equal_nested(left, right)
    return pc.equal(float_bits(left), float_bits(right))


def not_equal(left: Value, right: Value) -> Value:
    """Compare for inequality."""
    return pc.invert(equal(left, right))


def less(left: Value, right: Value) -> Value:
    """Compare for less; a literal zero is as great as both zeros."""
    is_nested = pt.is_nested(left.type)
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar) and not is_nested:
        return pc.less(left, right) if _has_ieee_order(left, right) else precedes(left, right)
    if is_nested:
        return arrays_kernel(_is_nested_less)(left, right)
    if pt.is_floating(left.type) and isinstance(right, pa.Scalar):
        return _is_below(left, right)
    if pt.is_floating(left.type) and isinstance(left, pa.Scalar):
        return _is_above(right, left)
    return precedes(left, right)


# Read as signed integers, the bits of floats have the order of the floats beside a positive one.
# Read as unsigned integers, they have the opposite order beside a negative one. So one comparison
# of integers places NaNs too. A literal zero stands for -0.0 where a column is below it, and for
# 0.0 where a column is above it: so neither zero is below or above it.


def _is_below(column: Value, literal: pa.Scalar) -> Value:
    value = literal.as_py()
    if value is not None and (value == 0 or copysign(1, value) < 0):
        last = scalar_of(-0.0, literal.type) if value == 0 else literal
        return pc.greater(_unsigned_bits(column), _unsigned_bits(last))
    return pc.less(float_bits(column), float_bits(literal))


def _is_above(column: Value, literal: pa.Scalar) -> Value:
    value = literal.as_py()
    if value is not None and value != 0 and copysign(1, value) < 0:
        return pc.less(_unsigned_bits(column), _unsigned_bits(literal))
    last = scalar_of(0.0, literal.type) if value == 0 else literal
    return pc.greater(float_bits(column), float_bits(last))


def precedes(left: Value, right: Value) -> Value:
    """Compare for less in the total order, zeros by their sign."""
    if not pt.is_floating(left.type):
        return pc.less(left, right)
    left, right = float_bits(left), float_bits(right)
    # The bits of two negative floats have the opposite order.
    both_negative = pc.and_(_is_negative(left), _is_negative(right))
    is_opposite = pc.and_(both_negative, pc.not_equal(left, right))
    return pc.xor(pc.less(left, right), is_opposite)


def greater(left: Value, right: Value) -> Value:
    """Compare for greater."""
    return less(right, left)


def less_equal(left: Value, right: Value) -> Value:
    """Compare for less or equal."""
    return pc.invert(less(right, left))


def greater_equal(left: Value, right: Value) -> Value:
    """Compare for greater or equal."""
    return pc.invert(less(left, right))


def _has_ieee_order(left: Value, right: Value) -> bool:
    """Tell whether Arrow's own comparison is right apart from NaNs in a column.

    It is for everything but floats, and for a float literal that is a number.
    """
    if not pt.is_floating(left.type):
        return not pt.is_nested(left.type)
    literals = [operand for operand in (left, right) if isinstance(operand, pa.Scalar)]
    return bool(literals) and not any(
        literal.is_valid and isnan(literal.as_py()) for literal in literals
    )


_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED_BITS = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}


def float_bits(value: Value) -> Value:
    """View floats as integers that are equal where the floats are the same; leave other types."""
    return _viewed(value, _BITS[value.type.bit_width]) if pt.is_floating(value.type) else value


def _unsigned_bits(value: Value) -> Value:
    return _viewed(value, _UNSIGNED_BITS[value.type.bit_width])


def _viewed(value: Value, type_: pa.DataType) -> Value:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, 1).view(type_)[0]
    if isinstance(value, pa.ChunkedArray):
        return pa.chunked_array([chunk.view(type_) for chunk in value.chunks], type_)
    return value.view(type_)


def float_rank(value: Value) -> Value:
    """Map floats to integers in the total order of IEEE 754; leave other types."""
    bits = float_bits(value)
    if bits is value:
        return value
    magnitude = scalar_of((1 << (bits.type.bit_width - 1)) - 1, bits.type)
    # Of a negative number all bits but the sign are inverted.
    return pc.if_else(_is_negative(bits), pc.bit_wise_xor(bits, magnitude), bits)


def _is_negative(bits: Value) -> Value:
    return pc.less(bits, scalar_of(0, bits.type))


def _equal_nested(left: Value, right: Value) -> Value:
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        both_valid = left.is_valid and right.is_valid
        same = both_valid and _identity(left.as_py()) == _identity(right.as_py())
        return scalar_of(same if both_valid else None, pa.bool_())
    pairs = zip(*(array.to_pylist() for array in aligned(left, right)), strict=True)
    answers = [None if None in (a, b) else _identity(a) == _identity(b) for a, b in pairs]
    return pa.array(answers, pa.bool_())


def _identity(value: Any) -> Any:
    """Make a value of Python that is equal only to the same value, floats by their bits."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, list | tuple):
        return [_identity(element) for element in value]
    if isinstance(value, dict):
        return {name: _identity(element) for name, element in value.items()}
    return value


def _is_nested_less(left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare lists element by element, and structs field by field, for less.

    Inside of them nulls come first; a list comes before a longer one that begins with it.
    """
    is_less = _signs(left, right) < 0
    return pa.array(is_less, mask=null_mask(left) | null_mask(right))


def _signs(left: pa.Array, right: pa.Array) -> Signs:
    """Return for each row -1, 0 or 1: less, equal or greater."""
    type_ = left.type
    if pt.is_struct(type_):
        signs = np.zeros(len(left), np.int8)
        for left_child, right_child in zip(left.flatten(), right.flatten(), strict=True):
            signs = np.where(signs == 0, _signs(left_child, right_child), signs)
    elif pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_):
        signs = _list_signs(opened(left), opened(right))
    elif pt.is_nested(type_):
        raise pa.ArrowNotImplementedError(f"values of type {type_} have no order")
    elif pt.is_null(type_):
        signs = np.zeros(len(left), np.int8)
    else:
        below, above = precedes(left, right), precedes(right, left)
        numbers = (pc.cast(pc.fill_null(answers, False), pa.int8()) for answers in (above, below))
        signs = np.subtract(*(np.asarray(number) for number in numbers))
    nulls = null_mask(right).astype(np.int8) - null_mask(left).astype(np.int8)
    row_signs: Signs = np.where(null_mask(right) | null_mask(left), nulls, signs)
    return row_signs


def _list_signs(left: Lists, right: Lists) -> Signs:
    signs: Signs = np.sign(left.lengths - right.lengths).astype(np.int8)
    counts = np.minimum(left.lengths, right.lengths)
    owner = np.repeat(np.arange(counts.size), counts)
    inside = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
    pairs = [pc.take(side.values, pa.array(side.starts[owner] + inside)) for side in (left, right)]
    pair_signs = _signs(*pairs)
    (differing,) = np.nonzero(pair_signs)
    rows, first = np.unique(owner[differing], return_index=True)
    signs[rows] = pair_signs[differing[first]]
    return signs


def is_distinct(left: Value, right: Value) -> Value:
    """Compare for inequality with null as a value like any other."""
    one_null = pc.xor(pc.is_null(left), pc.is_null(right))
    return pc.or_(one_null, pc.coalesce(not_equal(left, right), scalar_of(False)))


def all_of(*operands: Value) -> Value:
    """Join by AND: false wins over null."""
    return reduce(pc.and_kleene, operands)


def any_of(*operands: Value) -> Value:
    """Join by OR: true wins over null."""
    return reduce(pc.or_kleene, operands)


def is_truth(value: Value, *, truth: bool, negated: bool) -> Value:
    """Compute IS [NOT] TRUE and IS [NOT] FALSE, which are never null."""
    answers = pc.equal(pc.fill_null(value, scalar_of(not truth)), scalar_of(truth))
    return pc.invert(answers) if negated else answers


def in_set(value: Value, *, members: pa.Array, has_null: bool) -> Value:
    """Compute IN a list of literals of the value's type (``members`` without nulls)."""
    if pt.is_floating(value.type):
        zeros = array_of([0.0, -0.0], members.type)
        if pc.any(pc.equal(members, zeros[0])).as_py():
            members = pa.concat_arrays([members, zeros])
    matches = is_member(value, members)
    lost = scalar_of(None, pa.bool_())
    if has_null:
        matches = pc.if_else(matches, matches, lost)
    return matches if not value_nulls(value) else pc.if_else(pc.is_valid(value), matches, lost)


def is_member(value: Value, members: pa.Array) -> Value:
    """Look values up in a set without nulls, zeros by their sign; a null is no member."""
    return _find(float_bits(value), float_bits(members))


def value_nulls(value: Value) -> int:
    """Count the nulls of a value."""
    return int(not value.is_valid) if isinstance(value, pa.Scalar) else int(value.null_count)


def _find(value: Value, members: pa.Array) -> Value:
    """Look the values up; integers far from all members are not looked up at all."""
    bounds = pt.is_integer(value.type) and len(members) >= _LOOKED_UP_MIN
    if not bounds or isinstance(value, pa.Scalar):
        return pc.is_in(value, value_set=members)
    ends = pc.min_max(members)
    near = pc.and_(pc.greater_equal(value, ends["min"]), pc.less_equal(value, ends["max"]))
    near = pc.fill_null(near, scalar_of(False))
    if 2 * (pc.sum(near).as_py() or 0) > len(value):
        return pc.is_in(value, value_set=members)
    array, near = aligned(value, near)
    return pc.replace_with_mask(near, near, pc.is_in(pc.filter(array, near), value_set=members))


def like(value: Value, pattern: Value, *, ignore_case: bool) -> Value:
    r"""Match SQL patterns: % is any text, _ one character, \ takes what follows literally."""
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pc.if_else(pc.is_null(value), None, scalar_of(None, pa.bool_()))
        text = pattern.as_py()
        piece = None if ignore_case or isinstance(value, pa.Scalar) else _contained_piece(text)
        if piece and value.type in {pa.string(), pa.large_string()}:
            return contains(value, piece)
        return pc.match_like(value, pattern=_escaped(text), ignore_case=ignore_case)
    values, patterns = aligned(value, pattern)
    codes = pc.dictionary_encode(patterns)
    if len(codes.dictionary) > PATTERNS_MAX:
        raise PredicateError(f"LIKE has more than {PATTERNS_MAX:,} different patterns")
    answers = pa.nulls(len(values), pa.bool_())
    for number, pattern_text in enumerate(codes.dictionary.to_pylist()):
        rows_with_pattern = pc.equal(codes.indices, number)
        matched = pc.match_like(
            pc.filter(values, rows_with_pattern),
            pattern=_escaped(pattern_text),
            ignore_case=ignore_case,
        )
        answers = pc.replace_with_mask(answers, pc.fill_null(rows_with_pattern, False), matched)
    return answers


def _contained_piece(pattern: str) -> str | None:
    """Return the text that %text% looks for, None for other patterns."""
    if not pattern.startswith("%"):
        return None
    out: list[str] = []
    chars = iter(pattern[1:])
    for char in chars:
        if char == "%":
            return "".join(out) if next(chars, None) is None else None
        if char == "_":
            return None
        out.append(next(chars, char) if char == "\\" else char)
    return None


def _escaped(pattern: str) -> str:
    r"""Write a pattern as Arrow takes it: a backslash makes any character stand for itself."""
    out: list[str] = []
    chars = iter(pattern)
    for char in chars:
        if char != "\\":
            out.append(char)
            continue
        taken = next(chars, "\\")
        out.append(f"\\{taken}" if taken in "%_\\" else taken)
    return "".join(out)


def extreme(*values: Value, largest: bool) -> Value:
    """Compute GREATEST or LEAST of each row in the total order; nulls are passed over."""

    def pick(best: Value, other: Value) -> Value:
        wins = precedes(best, other) if largest else precedes(other, best)
        take = pc.or_(pc.is_null(best), pc.fill_null(wins, False))
        return pc.if_else(pc.and_(take, pc.is_valid(other)), other, best)

    return reduce(pick, values)


def as_mask(value: Value, num_rows: int) -> np.ndarray[Any, Any]:
    """Turn a predicate's value into a numpy mask: null counts as false."""
    if isinstance(value, pa.Scalar):
        return np.full(num_rows, bool(value.as_py()))
    array = one_array(value)
    if array.null_count:
        array = pc.fill_null(array, scalar_of(False))
    return _unpacked(array)


def _unpacked(bits: pa.BooleanArray) -> np.ndarray[Any, Any]:
    """Return bits without nulls as bools; Arrow's own ``to_numpy`` imports pandas."""
    if not len(bits):
        return np.zeros(0, np.bool_)
    stop = bits.offset + len(bits)
    packed = np.frombuffer(bits.buffers()[1], np.uint8)
    return np.unpackbits(packed, count=stop, bitorder="little")[bits.offset :].view(np.bool_)


def as_bits(value: Value, num_rows: int) -> pa.BooleanArray:
    """Turn a predicate's value into an array without nulls: null counts as false."""
    if isinstance(value, pa.Scalar):
        return pa.array(np.full(num_rows, bool(value.as_py())))
    array = one_array(value)
    return pc.fill_null(array, scalar_of(False)) if array.null_count else array


def count_true(value: Value, num_rows: int) -> int:
    """Count the rows in which a predicate's value is true."""
    if isinstance(value, pa.Scalar):
        return num_rows if value.as_py() else 0
    chunks = value.chunks if isinstance(value, pa.ChunkedArray) else [value]
    return sum(int(chunk.true_count) for chunk in chunks)


def members_of(scalars: Sequence[pa.Scalar], type_: pa.DataType) -> tuple[pa.Array, bool]:
    """Return the values of an IN list without its nulls, and whether it had one."""
    if pt.is_temporal(type_):
        # Python's times stop at microseconds: go through the integers below.
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        whole = [pc.cast(scalar, width).as_py() for scalar in scalars if scalar.is_valid]
        return pc.cast(pa.array(whole, width), type_), len(whole) < len(scalars)
    values = [scalar.as_py() for scalar in scalars if scalar.is_valid]
    return array_of(values, type_), len(values) < len(scalars)


def array_of(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Return ``pa.array(values, type_)``, which imports pandas, of common types without it."""
    if pt.is_integer(type_) or type_ in {pa.float32(), pa.float64()}:
        name = str(type_)  # not to_pandas_dtype(), which imports pandas before pyarrow 25
        data = np.array(values, {"float": "float32", "double": "float64"}.get(name, name))
        return pa.Array.from_buffers(type_, data.size, [None, pa.py_buffer(data)])
    if type_ == pa.string():
        pieces = [value.encode() for value in values]
        ends = np.cumsum([0, *map(len, pieces)])
        if int(ends[-1]) < 1 << 31:
            buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(pieces))]
            return pa.Array.from_buffers(type_, len(values), buffers)
    return pa.array(values, type_)
