"""Functions about the sizes of lists: resize, repeat, range, ndims, dims.

Limits: a list made here has at most ``ITEMS_MAX`` elements (and see ``amounts``).
Not supported: ``array_dims`` of nested lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import cast, plain
from lance_nb.table.predicate.expression import Expression, Literal, call
from lance_nb.table.predicate.list_functions import (
    Binder,
    is_list,
    list_names,
    list_of,
    with_elements,
)
from lance_nb.table.predicate.lists import (
    ITEMS_MAX,
    Ints,
    arrays_kernel,
    closed,
    null_mask,
    opened,
)
from lance_nb.table.predicate.string_functions import literal_of
from lance_nb.table.predicate.text_kernels import check_amounts


def whole(expression: Expression) -> Expression:
    """Return an operand as whole numbers."""
    return cast(plain(expression), pa.int64())


def ints(array: pa.Array) -> Ints:
    """Return whole numbers, cut to what no list reaches; 0 at nulls."""
    found = np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False))
    return np.asarray(np.clip(found, -(1 << 40), 1 << 40), np.int64)


def _resize(name: str, operands: Sequence[Expression]) -> Expression:
    rows = list_of(operands[0], name=name)
    fill: Expression = Literal(pa.scalar(None, rows.type.value_type))
    if len(operands) == 3:
        rows, (fill,) = with_elements(rows, operands[2], name=name)

    def kernel(rows: pa.Array, sizes: pa.Array, fills: pa.Array) -> pa.Array:
        lists, counts = opened(rows), list_lengths(sizes, name)
        counts = np.where(lists.lost, 0, counts)
        owner = np.repeat(np.arange(counts.size), counts)
        inside = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
        old = lists.starts[owner] + inside
        places = np.where(inside < lists.lengths[owner], old, len(lists.values) + owner)
        both = pa.concat_arrays([lists.values, fills])
        return closed(both.take(pa.array(places)), counts, lists.lost)

    return call(name, arrays_kernel(kernel), rows, whole(operands[1]), fill)


def list_lengths(array: pa.Array, name: str) -> Ints:
    """Return the lengths of lists to make."""
    counts = np.maximum(ints(array), 0)
    check_amounts(counts, ITEMS_MAX, f"{name}: a list")
    return counts


def _repeat(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(elements: pa.Array, sizes: pa.Array) -> pa.Array:
        counts = list_lengths(sizes, name)
        return closed(elements.take(pa.array(np.repeat(np.arange(counts.size), counts))), counts)

    return call(name, arrays_kernel(kernel), plain(operands[0]), whole(operands[1]))


def _range(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind range(stop), range(start, stop, step), and generate_series, which has its stop."""
    numbers = [whole(one) for one in operands]
    if len(numbers) == 1:
        numbers = [Literal(pa.scalar(0)), *numbers]
    step = literal_of(numbers[2], name=name) if len(numbers) == 3 else 1
    if not step:
        raise PredicateError(f"{name} needs a step that is not 0")
    closes = name == "generate_series"

    def kernel(low: pa.Array, high: pa.Array) -> pa.Array:
        lost = null_mask(low) | null_mask(high)
        first, stop = ints(low), ints(high) + (np.sign(step) if closes else 0)
        counts = np.where(lost, 0, np.maximum(-((first - stop) // step), 0))
        list_lengths(pa.array(counts), name)
        inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return closed(pa.array(np.repeat(first, counts) + inside * step), counts, lost)

    return call(name, arrays_kernel(kernel), *numbers[:2])


def _depth(type_: pa.DataType) -> int:
    return 1 + _depth(type_.value_type) if is_list(type_) else 0


def _ndims(name: str, operands: Sequence[Expression]) -> Expression:
    rows = list_of(operands[0], name=name)
    depth = pa.scalar(_depth(rows.type), pa.uint64())

    def kernel(rows: pa.Array) -> pa.Array:
        return pa.array(np.full(len(rows), depth.as_py()), pa.uint64(), mask=null_mask(rows))

    return call(name, arrays_kernel(kernel), rows)


def _dims(name: str, operands: Sequence[Expression]) -> Expression:
    rows = list_of(operands[0], name=name)
    if is_list(rows.type.value_type):
        raise PredicateError(f"{name} of nested lists is not supported; use array_length")

    def kernel(rows: pa.Array) -> pa.Array:
        lists = opened(rows)
        lost = lists.lost | (lists.lengths == 0)
        counts = (~lost).astype(np.int64)
        return closed(pa.array(lists.lengths[~lost], pa.uint64()), counts, lost)

    return call(name, arrays_kernel(kernel), rows)


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    **dict.fromkeys(list_names("resize"), (_resize, 2, 3)),
    **dict.fromkeys(list_names("repeat"), (_repeat, 2, 2)),
    **dict.fromkeys(("range", "generate_series"), (_range, 1, 3)),
    **dict.fromkeys(list_names("ndims"), (_ndims, 1, 1)),
    **dict.fromkeys(list_names("dims"), (_dims, 1, 1)),
}
