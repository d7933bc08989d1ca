"""Functions that return lists: slice, sort, append, concat, remove, replace, distinct, union, ...

Semantics are pylance 14.0.2's: a null list counts as empty where elements or lists are joined, and
makes everything else null; ``array_replace`` and ``array_positions`` match null with null,
``array_remove`` of null is null; of equal elements the first stays.

Limits: functions that compare elements take types that Arrow can number (no structs). Functions
with a length as argument are in ``list_functions``. Not supported: ``arrays_zip``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import cast, plain, text, unify_all
from lance_nb.table.predicate.comparison import float_rank
from lance_nb.table.predicate.expression import Expression, Literal, call
from lance_nb.table.predicate.list_functions import (
    Binder,
    ints,
    is_list,
    list_names,
    list_of,
    whole,
    with_elements,
)
from lance_nb.table.predicate.lists import (
    Ints,
    Lists,
    Mask,
    arrays_kernel,
    closed,
    joined,
    null_mask,
    numbered,
    opened,
    ranks,
    single,
)
from lance_nb.table.predicate.string_functions import literal_of

_EVERY = 1 << 40

# --- elements -------------------------------------------------------------------------------------


def _removed(most: int) -> Binder:
    """Bind the removal of the first elements: as many as the third operand says, none for NULL."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        times = whole(operands[2]) if len(operands) == 3 else Literal(scalar_of(most))
        rows, (element,) = with_elements(list_of(operands[0], name=name), operands[1], name=name)

        def kernel(rows: pa.Array, elements: pa.Array, times: pa.Array) -> pa.Array:
            lists = opened(rows)
            hits = _found(lists, elements)
            hits &= ranks(hits, lists) <= ints(times)[lists.rows]
            lost = lists.lost | null_mask(elements)
            return Lists(lists.values, lists.starts, lists.lengths, lost).filter(~hits)

        return call(name, arrays_kernel(kernel), rows, element, times)

    return bind


def _found(lists: Lists, elements: pa.Array) -> Mask:
    """Tell which values are the element wanted in their row; null is found by null."""
    numbers, element_numbers = numbered(lists.values, elements)
    return np.asarray(numbers == element_numbers[lists.rows])


def _replaced(most: int | None) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        times = literal_of(operands[3], name=name) if len(operands) == 4 else most
        rows, (old, new) = with_elements(list_of(operands[0], name=name), *operands[1:3], name=name)

        def kernel(rows: pa.Array, before: pa.Array, after: pa.Array) -> pa.Array:
            lists = opened(rows)
            hits = _found(lists, before)
            if times is not None:
                hits &= ranks(hits, lists) <= times
            merged = pa.concat_arrays([lists.values, after])
            places = np.where(hits, len(lists.values) + lists.rows, np.arange(hits.size))
            return closed(pc.take(merged, pa.array(places)), lists.lengths, lists.lost)

        return call(name, arrays_kernel(kernel), rows, old, new)

    return bind


def _where_found(tell: Callable[[Lists, Mask], pa.Array]) -> Binder:
    """Bind what a function tells of the values that are the element wanted in their row."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        rows, (element,) = with_elements(list_of(operands[0], name=name), operands[1], name=name)

        def kernel(rows: pa.Array, elements: pa.Array) -> pa.Array:
            lists = opened(rows)
            return tell(lists, _found(lists, elements))

        return call(name, arrays_kernel(kernel), rows, element)

    return bind


def _positions(lists: Lists, hits: Mask) -> pa.Array:
    counts = np.bincount(lists.rows[hits], minlength=lists.lengths.size)
    return closed(pa.array(lists.places[hits] + 1, pa.uint64()), counts, lists.lost)


def _position(lists: Lists, hits: Mask) -> pa.Array:
    first = hits & (ranks(hits, lists) == 1)
    positions = np.zeros(lists.lengths.size, np.uint64)
    positions[lists.rows[first]] = lists.places[first] + 1
    return pa.array(positions, mask=positions == 0)


def _firsts(keys: Ints) -> Mask:
    """Mark where each number occurs for the first time."""
    first = np.zeros(keys.size, np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _keys(lists: Lists, codes: Ints, num_codes: int) -> Ints:
    return np.asarray(lists.rows * num_codes + codes)


def _distinct(rows: pa.Array) -> pa.Array:
    lists = opened(rows)
    (codes,) = numbered(lists.values)
    return lists.filter(_firsts(_keys(lists, codes, len(codes) + 1)))


def _of_two(choose: Callable[[Lists, Lists], pa.Array]) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        nothing = without_list(operands)
        if nothing is not None:
            return nothing

        def kernel(left: pa.Array, right: pa.Array) -> pa.Array:
            lists, other = opened(left), opened(right)
            lost = lists.lost | other.lost
            return choose(Lists(lists.values, lists.starts, lists.lengths, lost), other)

        return call(name, arrays_kernel(kernel), *alike(name, operands))

    return bind


def _shared(lists: Lists, other: Lists, *, keep_shared: bool) -> pa.Array:
    mine, theirs = numbered(lists.values, other.values)
    num_codes = mine.size + theirs.size + 1
    keys = _keys(lists, mine, num_codes)
    is_shared = np.isin(keys, _keys(other, theirs, num_codes))
    return lists.filter(_firsts(keys) & (is_shared == keep_shared))


def _union(lists: Lists, other: Lists) -> pa.Array:
    return _distinct(joined([lists, other], lists.lost))


def _distance(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(left: pa.Array, right: pa.Array) -> pa.Array:
        left_lists, right_lists = opened(left), opened(right)
        lost = left_lists.lost | right_lists.lost
        if bool((left_lists.lengths != right_lists.lengths)[~lost].any()):
            raise pa.ArrowInvalid(f"{name} needs lists of one length")
        sums = []
        for lists in (left_lists, right_lists):
            mask = ~lost[lists.rows]
            values = pc.filter(lists.values, pa.array(mask))
            sums.append(np.asarray(values.to_numpy(zero_copy_only=False), np.float64))
        rows = left_lists.rows[~lost[left_lists.rows]]
        total = np.bincount(rows, (sums[0] - sums[1]) ** 2, left_lists.lengths.size)
        nulls = null_mask(left_lists.values) if len(left_lists.values) else np.zeros(0, np.bool_)
        lost |= np.bincount(left_lists.rows[nulls], minlength=lost.size) > 0
        lost |= (
            np.bincount(right_lists.rows[null_mask(right_lists.values)], minlength=lost.size) > 0
        )
        return pa.array(np.sqrt(total), mask=lost)

    lists = [cast(list_of(operand, name=name), pa.list_(pa.float64())) for operand in operands]
    return call(name, arrays_kernel(kernel), *lists)


# name -> (binder, fewest operands, most operands)


# --- cut ------------------------------------------------------------------------------------------


def _slice(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(rows: pa.Array, begin: pa.Array, end: pa.Array, strides: pa.Array) -> pa.Array:
        lists, low, high, stride = opened(rows), ints(begin), ints(end), ints(strides)
        lost = lists.lost | null_mask(begin) | null_mask(end) | null_mask(strides)
        if bool(((stride == 0) & ~lost).any()):
            raise pa.ArrowInvalid(f"{name}: the stride is 0")
        stride = np.where(stride == 0, 1, stride)
        first = np.where(low > 0, low - 1, np.where(low < 0, lists.lengths + low, 0))
        stop = np.minimum(np.where(high < 0, lists.lengths + high + 1, high), lists.lengths)
        first = np.maximum(first, 0)
        # Backwards, a begin behind the list or an end before it leaves nothing.
        inside = (first < lists.lengths) & (stop > 0)
        backwards = np.where(inside, (first - stop + 1) // -stride + 1, 0)
        forwards = -((first - stop) // stride)
        counts = np.where(lost, 0, np.where(stride > 0, forwards, backwards))
        lists = Lists(lists.values, lists.starts, lists.lengths, lost)
        return lists.ranges(first, counts, stride)

    numbers = [whole(operand) for operand in operands[1:4]]
    if len(operands) == 3:
        numbers.append(Literal(scalar_of(1)))
    return call(name, arrays_kernel(kernel), list_of(operands[0], name=name), *numbers)


def _pop(at_front: bool) -> Callable[[pa.Array], pa.Array]:
    def kernel(rows: pa.Array) -> pa.Array:
        lists = opened(rows)
        return lists.ranges(np.full(lists.lengths.size, int(at_front)), lists.lengths - 1)

    return kernel


def _reverse(rows: pa.Array) -> pa.Array:
    lists = opened(rows)
    last = np.repeat(lists.starts + lists.lengths - 1, lists.lengths)
    return lists.cut(last - lists.places, lists.lengths)


def _any_value(rows: pa.Array) -> pa.Array:
    lists = opened(rows)
    (valid,) = np.nonzero(~null_mask(lists.values))
    positions = np.searchsorted(valid, lists.starts)
    chosen = valid[np.minimum(positions, max(valid.size - 1, 0))] if valid.size else lists.starts
    inside = (positions < valid.size) & (chosen < lists.starts + lists.lengths)
    return pc.take(lists.values, pa.array(np.where(inside, chosen, 0), mask=~inside))


def _flatten(name: str, operands: Sequence[Expression]) -> Expression:
    rows = list_of(*operands, name=name)
    if not is_list(rows.type.value_type):
        return rows

    def kernel(rows: pa.Array) -> pa.Array:
        outer = opened(rows)
        inner = opened(outer.values)
        counts = np.bincount(outer.rows, inner.lengths, outer.lengths.size).astype(np.int64)
        return closed(inner.values, counts, outer.lost)

    return call(name, arrays_kernel(kernel), rows)


def _sort(name: str, operands: Sequence[Expression]) -> Expression:
    words = [str(literal_of(operand, name=name)).upper() for operand in operands[1:]]
    order, nulls = (*words, *("ASC", "NULLS FIRST")[len(words) :])
    if order not in {"ASC", "DESC"} or nulls not in {"NULLS FIRST", "NULLS LAST"}:
        raise PredicateError(f"{name} takes 'ASC' or 'DESC', and 'NULLS FIRST' or 'NULLS LAST'")

    def kernel(rows: pa.Array) -> pa.Array:
        lists = opened(rows)
        lost = pc.is_null(lists.values)
        table = pa.table({"row": lists.rows, "lost": lost, "value": float_rank(lists.values)})
        first = "descending" if nulls == "NULLS FIRST" else "ascending"
        keys = [("row", "ascending"), ("lost", first), ("value", f"{order.lower()}ending")]
        return lists.cut(pc.sort_indices(table, keys), lists.lengths)

    return call(name, arrays_kernel(kernel), list_of(operands[0], name=name))


# --- join -----------------------------------------------------------------------------------------


def _concat(name: str, operands: Sequence[Expression]) -> Expression:
    lists = alike(name, operands)

    def kernel(*rows: pa.Array) -> pa.Array:
        parts = [opened(array) for array in rows]
        return joined(parts, np.logical_and.reduce([part.lost for part in parts]))

    return call(name, arrays_kernel(kernel), *lists)


def _added(at_front: bool) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        rows = list_of(operands[1 if at_front else 0], name=name)
        rows, (element,) = with_elements(rows, operands[0 if at_front else 1], name=name)

        def kernel(rows: pa.Array, elements: pa.Array) -> pa.Array:
            parts = [opened(rows), single(elements)]
            never = np.zeros(len(rows), np.bool_)
            return joined(parts[::-1] if at_front else parts, never)

        return call(name, arrays_kernel(kernel), rows, element)

    return bind


def make_array(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind make_array: a list of the operands, never null."""
    if not operands:
        raise PredicateError(f"{name} needs at least one element")

    def kernel(*elements: pa.Array) -> pa.Array:
        parts = [single(element) for element in elements]
        return joined(parts, np.zeros(len(elements[0]), np.bool_))

    return call(name, arrays_kernel(kernel), *unify_all([plain(operand) for operand in operands]))


def without_list(operands: Sequence[Expression]) -> Literal | None:
    """Return the null that a function of lists has of NULL, None where no operand is that."""
    types = [operand.type for operand in operands]
    if not any(map(pa.types.is_null, types)):
        return None
    other = next((type_ for type_ in types if is_list(type_)), pa.list_(pa.null()))
    return Literal(scalar_of(None, pa.list_(other.value_type)))


def alike(name: str, operands: Sequence[Expression]) -> list[Expression]:
    """Bring lists to the type of the first that is no literal."""
    lists = [list_of(operand, name=name) for operand in operands]
    first = next((operand for operand in lists if not isinstance(operand, Literal)), lists[0])
    list_type = pa.list_(first.type.value_type)
    return [cast(operand, list_type) for operand in lists]


def _string_to_array(name: str, operands: Sequence[Expression]) -> Expression:
    separator = literal_of(operands[1], name=name)
    lost = literal_of(operands[2], name=name) if len(operands) == 3 else None
    if not isinstance(separator, str) or not separator:
        raise PredicateError(f"{name} needs a separator in quotes")

    def kernel(rows: pa.Array) -> pa.Array:
        lists = opened(pc.split_pattern(rows, pattern=separator))
        empty = np.asarray(pc.fill_null(pc.equal(rows, ""), False).to_numpy(zero_copy_only=False))
        values = lists.values
        if lost is not None:
            values = pc.if_else(pc.equal(values, lost), scalar_of(None, values.type), values)
        return Lists(values, lists.starts, lists.lengths, lists.lost).filter(~empty[lists.rows])

    return call(name, arrays_kernel(kernel), cast(text(operands[0], name=name), pa.string()))


def of_lists(kernel: Callable[[pa.Array], pa.Array]) -> Binder:
    """Make a binder of a function of arrays of lists."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        return call(name, arrays_kernel(kernel), list_of(*operands, name=name))

    return bind


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    **dict.fromkeys(list_names("slice"), (_slice, 3, 4)),
    **dict.fromkeys(list_names("reverse"), (of_lists(_reverse), 1, 1)),
    **dict.fromkeys(list_names("pop_front"), (of_lists(_pop(at_front=True)), 1, 1)),
    **dict.fromkeys(list_names("pop_back"), (of_lists(_pop(at_front=False)), 1, 1)),
    **dict.fromkeys(list_names("any_value"), (of_lists(_any_value), 1, 1)),
    "flatten": (_flatten, 1, 1),
    **dict.fromkeys(list_names("sort"), (_sort, 1, 3)),
    **dict.fromkeys(list_names("concat", "cat"), (_concat, 1, 64)),
    **dict.fromkeys(list_names("append", "push_back"), (_added(at_front=False), 2, 2)),
    **dict.fromkeys(list_names("prepend", "push_front"), (_added(at_front=True), 2, 2)),
    **dict.fromkeys(("make_array", "make_list"), (make_array, 0, 64)),
    **dict.fromkeys(("string_to_array", "string_to_list"), (_string_to_array, 2, 3)),
    **dict.fromkeys(list_names("remove"), (_removed(1), 2, 2)),
    **dict.fromkeys(list_names("remove_n"), (_removed(1), 3, 3)),
    **dict.fromkeys(list_names("remove_all"), (_removed(_EVERY), 2, 2)),
    **dict.fromkeys(list_names("replace"), (_replaced(1), 3, 3)),
    **dict.fromkeys(list_names("replace_n"), (_replaced(1), 4, 4)),
    **dict.fromkeys(list_names("replace_all"), (_replaced(None), 3, 3)),
    **dict.fromkeys(list_names("position", "indexof"), (_where_found(_position), 2, 2)),
    **dict.fromkeys(list_names("positions"), (_where_found(_positions), 2, 2)),
    **dict.fromkeys(list_names("distinct"), (of_lists(_distinct), 1, 1)),
    **dict.fromkeys(list_names("except"), (_of_two(partial(_shared, keep_shared=False)), 2, 2)),
    **dict.fromkeys(list_names("intersect"), (_of_two(partial(_shared, keep_shared=True)), 2, 2)),
    **dict.fromkeys(list_names("union"), (_of_two(_union), 2, 2)),
    **dict.fromkeys(list_names("distance"), (_distance, 2, 2)),
}
