"""Comparisons with SQL's three values: =, <, IN, BETWEEN, IS, LIKE and the logical connectives.

NaN equals NaN and is greater than every other number, as in DataFusion; -0.0 equals 0.0 (pylance
tells them apart between two columns, and takes a NaN with a minus sign for the least number).
A null operand gives null, except where SQL says otherwise (AND, OR, IS, IS DISTINCT FROM).

LIKE and regular expressions run in RE2, in time linear in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.expression import Value, aligned, one_array

PATTERNS_MAX = 10_000
_LOOKED_UP_MIN = 8


def equal(left: Value, right: Value) -> Value:
    """Compare for equality."""
    import pyarrow.compute as pc

    if pt.is_nested(left.type):
        return _equal_nested(left, right)
    found = pc.equal(left, right)
    if not pt.is_floating(left.type) or _is_finite(left) or _is_finite(right):
        return found
    return pc.or_(found, pc.and_(pc.is_nan(left), pc.is_nan(right)))


def not_equal(left: Value, right: Value) -> Value:
    """Compare for inequality."""
    import pyarrow.compute as pc

    return pc.invert(equal(left, right))


def less(left: Value, right: Value) -> Value:
    """Compare for less."""
    import pyarrow.compute as pc

    found = pc.less(left, right)
    if not pt.is_floating(left.type) or _is_finite(right):
        return found
    # A number is less than NaN.
    return pc.or_(found, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


def greater(left: Value, right: Value) -> Value:
    """Compare for greater."""
    return less(right, left)


def less_equal(left: Value, right: Value) -> Value:
    """Compare for less or equal."""
    import pyarrow.compute as pc

    return pc.invert(less(right, left))


def greater_equal(left: Value, right: Value) -> Value:
    """Compare for greater or equal."""
    import pyarrow.compute as pc

    return pc.invert(less(left, right))


def _is_finite(value: Value) -> bool:
    """Tell whether this is a literal other than NaN, which spares looking for NaN at all."""
    return isinstance(value, pa.Scalar) and value.is_valid and value.as_py() == value.as_py()


def _equal_nested(left: Value, right: Value) -> Value:
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        both = left.is_valid and right.is_valid
        return pa.scalar(left.as_py() == right.as_py() if both else None, pa.bool_())
    pairs = zip(*(array.to_pylist() for array in aligned(left, right)), strict=True)
    return pa.array([None if None in (a, b) else a == b for a, b in pairs], pa.bool_())


def is_distinct(left: Value, right: Value) -> Value:
    """Compare for inequality with null as a value like any other."""
    import pyarrow.compute as pc

    one_null = pc.xor(pc.is_null(left), pc.is_null(right))
    return pc.or_(one_null, pc.coalesce(not_equal(left, right), pa.scalar(False)))


def all_of(*operands: Value) -> Value:
    """Join by AND: false wins over null."""
    import pyarrow.compute as pc

    return reduce(pc.and_kleene, operands)


def any_of(*operands: Value) -> Value:
    """Join by OR: true wins over null."""
    import pyarrow.compute as pc

    return reduce(pc.or_kleene, operands)


def is_truth(value: Value, *, wanted: bool, negated: bool) -> Value:
    """Compute IS [NOT] TRUE and IS [NOT] FALSE, which are never null."""
    import pyarrow.compute as pc

    found = pc.equal(pc.fill_null(value, not wanted), wanted)
    return pc.invert(found) if negated else found


def in_set(value: Value, *, members: pa.Array, has_null: bool) -> Value:
    """Compute IN a list of literals of the value's type (``members`` without nulls)."""
    import pyarrow.compute as pc

    if pt.is_floating(value.type):
        # Arrow's hash tells -0.0 from 0.0; adding zero makes them one.
        zero = pa.scalar(0.0, value.type)
        value, members = pc.add(value, zero), pc.add(members, zero)
    found = _find(value, members)
    lost = pa.scalar(None, pa.bool_())
    if has_null:
        found = pc.if_else(found, found, lost)
    return found if not value_nulls(value) else pc.if_else(pc.is_valid(value), found, lost)


def value_nulls(value: Value) -> int:
    """Count the nulls of a value."""
    return int(not value.is_valid) if isinstance(value, pa.Scalar) else int(value.null_count)


def _find(value: Value, members: pa.Array) -> Value:
    """Look the values up; integers far from all members are not looked up at all."""
    import pyarrow.compute as pc

    bounds = pt.is_integer(value.type) and len(members) >= _LOOKED_UP_MIN
    if not bounds or isinstance(value, pa.Scalar):
        return pc.is_in(value, value_set=members)
    ends = pc.min_max(members)
    near = pc.and_(pc.greater_equal(value, ends["min"]), pc.less_equal(value, ends["max"]))
    near = pc.fill_null(near, False)
    if 2 * (pc.sum(near).as_py() or 0) > len(value):
        return pc.is_in(value, value_set=members)
    array, near = aligned(value, near)
    return pc.replace_with_mask(near, near, pc.is_in(array.filter(near), value_set=members))


def like(value: Value, pattern: Value, *, ignore_case: bool) -> Value:
    r"""Match SQL patterns: % is any text, _ one character, \ takes what follows literally."""
    import pyarrow.compute as pc

    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pc.if_else(pc.is_null(value), None, pa.scalar(None, pa.bool_()))
        return pc.match_like(value, pattern=_escaped(pattern.as_py()), ignore_case=ignore_case)
    values, patterns = aligned(value, pattern)
    codes = patterns.dictionary_encode()
    if len(codes.dictionary) > PATTERNS_MAX:
        raise PredicateError(f"LIKE has more than {PATTERNS_MAX:,} different patterns")
    found = pa.nulls(len(values), pa.bool_())
    for number, one in enumerate(codes.dictionary.to_pylist()):
        here = pc.equal(codes.indices, number)
        matched = pc.match_like(values.filter(here), pattern=_escaped(one), ignore_case=ignore_case)
        found = pc.replace_with_mask(found, pc.fill_null(here, False), matched)
    return found


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


def regexp(value: Value, *, pattern: str, ignore_case: bool) -> Value:
    """Look for a regular expression anywhere in the text."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(value, pattern=pattern, ignore_case=ignore_case)


def extreme(*values: Value, largest: bool) -> Value:
    """Compute GREATEST or LEAST of each row; nulls are passed over, NaN is the greatest."""
    import pyarrow.compute as pc

    def pick(best: Value, other: Value) -> Value:
        wins = greater(other, best) if largest else less(other, best)
        take = pc.or_(pc.is_null(best), pc.fill_null(wins, False))
        return pc.if_else(pc.and_(take, pc.is_valid(other)), other, best)

    return reduce(pick, values)


def as_mask(value: Value, num_rows: int) -> np.ndarray[Any, Any]:
    """Turn a predicate's value into a numpy mask: null counts as false."""
    import pyarrow.compute as pc

    if isinstance(value, pa.Scalar):
        return np.full(num_rows, bool(value.as_py()))
    array = one_array(value)
    if array.null_count:
        array = pc.fill_null(array, False)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def as_bits(value: Value, num_rows: int) -> pa.BooleanArray:
    """Turn a predicate's value into an array without nulls: null counts as false."""
    import pyarrow.compute as pc

    if isinstance(value, pa.Scalar):
        return pa.array(np.full(num_rows, bool(value.as_py())))
    array = one_array(value)
    return pc.fill_null(array, False) if array.null_count else array


def count_true(value: Value, num_rows: int) -> int:
    """Count the rows in which a predicate's value is true."""
    if isinstance(value, pa.Scalar):
        return num_rows if value.as_py() else 0
    chunks = value.chunks if isinstance(value, pa.ChunkedArray) else [value]
    return sum(int(chunk.true_count) for chunk in chunks)


def members_of(scalars: Sequence[pa.Scalar], type_: pa.DataType) -> tuple[pa.Array, bool]:
    """Return the values of an IN list without its nulls, and whether it had one."""
    values = [scalar.as_py() for scalar in scalars if scalar.is_valid]
    if pt.is_temporal(type_):
        # Python's times stop at microseconds: go through the integers below.
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        whole = [scalar.cast(width).as_py() for scalar in scalars if scalar.is_valid]
        return pa.array(whole, width).cast(type_), len(whole) < len(scalars)
    return pa.array(values, type_), len(values) < len(scalars)
