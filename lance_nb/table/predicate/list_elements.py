"""Functions that look for elements of lists: remove, replace, positions, union, distance, ...

Semantics are pylance 14.0.2's: ``array_replace`` and ``array_positions`` find nulls by null,
``array_remove`` of null is null; of equal elements the first stays.

Limits: elements are of types that Arrow can number (no structs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from lance_nb.table.predicate.coercion import cast
from lance_nb.table.predicate.expression import Expression, Literal, call
from lance_nb.table.predicate.list_functions import (
    Binder,
    element_of,
    list_names,
    list_of,
)
from lance_nb.table.predicate.list_results import alike, of_lists, without_list
from lance_nb.table.predicate.list_sizes import ints, whole
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
)
from lance_nb.table.predicate.string_functions import literal_of

_EVERY = 1 << 40

# --- elements -------------------------------------------------------------------------------------


def _removed(most: int) -> Binder:
    """Bind the removal of the first elements: as many as the third operand says, none for NULL."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        times = whole(operands[2]) if len(operands) == 3 else Literal(pa.scalar(most))
        rows = list_of(operands[0], name=name)
        element = element_of(operands[1], rows.type.value_type, name=name)

        def kernel(rows: pa.Array, elements: pa.Array, times: pa.Array) -> pa.Array:
            lists = opened(rows)
            hits = _found(lists, elements)
            hits &= ranks(hits, lists) <= ints(times)[lists.rows]
            lost = lists.lost | null_mask(elements)
            return Lists(lists.values, lists.starts, lists.lengths, lost).kept(~hits)

        return call(name, arrays_kernel(kernel), rows, element, times)

    return bind


def _found(lists: Lists, elements: pa.Array) -> Mask:
    """Tell which values are the element wanted in their row; null is found by null."""
    values, wanted = numbered(lists.values, elements)
    return np.asarray(values == wanted[lists.rows])


def _replaced(most: int | None) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        times = literal_of(operands[3], name=name) if len(operands) == 4 else most
        rows = list_of(operands[0], name=name)
        old, new = (element_of(one, rows.type.value_type, name=name) for one in operands[1:3])

        def kernel(rows: pa.Array, before: pa.Array, after: pa.Array) -> pa.Array:
            lists = opened(rows)
            hits = _found(lists, before)
            if times is not None:
                hits &= ranks(hits, lists) <= times
            both = pa.concat_arrays([lists.values, after])
            places = np.where(hits, len(lists.values) + lists.rows, np.arange(hits.size))
            return closed(both.take(pa.array(places)), lists.lengths, lists.lost)

        return call(name, arrays_kernel(kernel), rows, old, new)

    return bind


def _where_found(tell: Callable[[Lists, Mask], pa.Array]) -> Binder:
    """Bind what a function tells of the values that are the element wanted in their row."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        rows = list_of(operands[0], name=name)
        element = element_of(operands[1], rows.type.value_type, name=name)

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
    found = np.zeros(lists.lengths.size, np.uint64)
    found[lists.rows[first]] = lists.places[first] + 1
    return pa.array(found, mask=found == 0)


def _firsts(keys: Ints) -> Mask:
    """Mark where each number occurs for the first time."""
    first = np.zeros(keys.size, np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _keys(lists: Lists, codes: Ints, many: int) -> Ints:
    return np.asarray(lists.rows * many + codes)


def _distinct(rows: pa.Array) -> pa.Array:
    lists = opened(rows)
    (codes,) = numbered(lists.values)
    return lists.kept(_firsts(_keys(lists, codes, len(codes) + 1)))


def _of_two(choose: Callable[[Lists, Lists], pa.Array]) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        nothing = without_list(operands)
        if nothing is not None:
            return nothing

        def kernel(left: pa.Array, right: pa.Array) -> pa.Array:
            one, other = opened(left), opened(right)
            lost = one.lost | other.lost
            return choose(Lists(one.values, one.starts, one.lengths, lost), other)

        return call(name, arrays_kernel(kernel), *alike(name, operands))

    return bind


def _shared(one: Lists, other: Lists, *, wanted: bool) -> pa.Array:
    mine, theirs = numbered(one.values, other.values)
    many = mine.size + theirs.size + 1
    keys = _keys(one, mine, many)
    found = np.isin(keys, _keys(other, theirs, many))
    return one.kept(_firsts(keys) & (found == wanted))


def _union(one: Lists, other: Lists) -> pa.Array:
    return _distinct(joined([one, other], one.lost))


def _distance(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(left: pa.Array, right: pa.Array) -> pa.Array:
        one, other = opened(left), opened(right)
        lost = one.lost | other.lost
        if bool((one.lengths != other.lengths)[~lost].any()):
            raise pa.ArrowInvalid(f"{name} needs lists of one length")
        sums = []
        for lists in (one, other):
            mask = ~lost[lists.rows]
            values = lists.values.filter(pa.array(mask))
            sums.append(np.asarray(values.to_numpy(zero_copy_only=False), np.float64))
        rows = one.rows[~lost[one.rows]]
        total = np.bincount(rows, (sums[0] - sums[1]) ** 2, one.lengths.size)
        nulls = null_mask(one.values) if len(one.values) else np.zeros(0, np.bool_)
        lost |= np.bincount(one.rows[nulls], minlength=lost.size) > 0
        lost |= np.bincount(other.rows[null_mask(other.values)], minlength=lost.size) > 0
        return pa.array(np.sqrt(total), mask=lost)

    lists = [cast(list_of(one, name=name), pa.list_(pa.float64())) for one in operands]
    return call(name, arrays_kernel(kernel), *lists)


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    **dict.fromkeys(list_names("remove"), (_removed(1), 2, 2)),
    **dict.fromkeys(list_names("remove_n"), (_removed(1), 3, 3)),
    **dict.fromkeys(list_names("remove_all"), (_removed(_EVERY), 2, 2)),
    **dict.fromkeys(list_names("replace"), (_replaced(1), 3, 3)),
    **dict.fromkeys(list_names("replace_n"), (_replaced(1), 4, 4)),
    **dict.fromkeys(list_names("replace_all"), (_replaced(None), 3, 3)),
    **dict.fromkeys(list_names("position", "indexof"), (_where_found(_position), 2, 2)),
    **dict.fromkeys(list_names("positions"), (_where_found(_positions), 2, 2)),
    **dict.fromkeys(list_names("distinct"), (of_lists(_distinct), 1, 1)),
    **dict.fromkeys(list_names("except"), (_of_two(partial(_shared, wanted=False)), 2, 2)),
    **dict.fromkeys(list_names("intersect"), (_of_two(partial(_shared, wanted=True)), 2, 2)),
    **dict.fromkeys(list_names("union"), (_of_two(_union), 2, 2)),
    **dict.fromkeys(list_names("distance"), (_distance, 2, 2)),
}
