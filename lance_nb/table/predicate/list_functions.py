"""Functions of lists: array_has, array_length, list[1], array_resize, array_repeat, range, ...

Elements are counted from 1, from -1 backwards. Searches run over the flat child array, so that a
row costs its own elements only. A null list gives null; null elements are never equal to anything.
Floats inside of lists have the total order of IEEE 754: beside a literal, too, 0.0 is not -0.0.

Limits: a list made here has at most ``ITEMS_MAX`` elements (and see ``amounts``).
Not supported: ``array_dims`` of nested lists.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.casts import cast_kernel, cast_value
from lance_nb.table.predicate.coercion import cast, common_type, fit_literal, plain, text
from lance_nb.table.predicate.comparison import float_bits, identical, is_member, members_of
from lance_nb.table.predicate.expression import (
    Expression,
    Literal,
    Value,
    aligned,
    call,
    one_array,
    only_value,
    per_row,
)
from lance_nb.table.predicate.lists import (
    ITEMS_MAX,
    Ints,
    arrays_kernel,
    closed,
    flattened,
    null_mask,
    opened,
    taken,
)
from lance_nb.table.predicate.string_functions import literal_of
from lance_nb.table.predicate.text_kernels import check_amounts

Binder = Callable[[str, Sequence[Expression]], Expression]
_LIST_DEPTH_MAX = 16


def is_list(type_: pa.DataType) -> bool:
    """Tell whether a type is one of the list types."""
    return bool(pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_))


def list_of(expression: Expression, *, name: str) -> Expression:
    """Return the operand, which must be a list; items of dictionaries become their values."""
    if not is_list(expression.type):
        raise PredicateError(f"{name} needs a list, not {expression.type}")
    items = expression.type.value_type
    if pt.is_dictionary(items):
        type_ = _list_like(expression.type, items.value_type)
        return call(f"elements as {items.value_type}", _widened(type_), expression)
    return expression


def with_elements(
    lists: Expression, *elements: Expression, name: str
) -> tuple[Expression, list[Expression]]:
    """Bring a list and the values that are compared with its elements to one element type.

    A literal takes the type of the elements if that keeps its value; otherwise the elements are
    converted, so that a fraction is not rounded. Raises PredicateError for values of another kind.
    """
    type_ = lists.type.value_type
    values = [_exact_literal(plain(element), type_, name=name) for element in elements]
    wider = pa.float32() if pt.is_float16(type_) else type_
    for value in values:
        is_text = [
            pt.is_string(operand_type) or pt.is_large_string(operand_type)
            for operand_type in (wider, value.type)
        ]
        common = common_type(wider, value.type)
        if common is None or (is_text[0] != is_text[1] and not pt.is_null(value.type)):
            raise PredicateError(f"{name}: a list of {type_} has no elements of {value.type}")
        wider = common
    if wider != type_:
        lists = call(f"elements as {wider}", _widened(_list_like(lists.type, wider)), lists)
    return lists, [cast(value, wider) for value in values]


def _widened(type_: pa.DataType) -> Callable[[Value], Value]:
    def kernel(rows: Value) -> Value:
        return pc.cast(rows, type_, safe=False)  # integers above 2**53 are rounded, as in pylance

    return kernel


def _exact_literal(value: Expression, type_: pa.DataType, *, name: str) -> Expression:
    """Return a literal in the type of the elements if it keeps its value in that."""
    if not isinstance(value, Literal):
        return value
    if pt.is_string(value.type) and not pt.is_string(type_) and not pt.is_large_string(type_):
        raise PredicateError(f"{name}: {value.scalar.as_py()!r} is no element of list<{type_}>")
    fitted = fit_literal(value, type_)
    is_rounded = pt.is_float64(value.type) and fitted.scalar.as_py() != value.scalar.as_py()
    return value if is_rounded else fitted


def _literal_of_text(literal: Literal, type_: pa.DataType) -> Literal:
    """Read a literal in quotes as a value of a list, which pylance does in lists of literals only.

    Raises PredicateError for text that is no value of the type.
    """
    return fit_literal(literal, type_) if pt.is_string(literal.type) else literal


def _list_like(lists: pa.DataType, type_: pa.DataType) -> pa.DataType:
    if pt.is_fixed_size_list(lists):
        return pa.list_(type_, lists.list_size)
    return pa.large_list(type_) if pt.is_large_list(lists) else pa.list_(type_)


def _parents(lists: pa.Array) -> Any:
    """Return for each element of ``list_flatten`` the row that it is of.

    Not by ``list_parent_indices``, which also counts what lies under null lists.
    """
    sizes = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    return np.repeat(np.arange(len(lists)), sizes)


def _rows_with(lists: pa.Array, hits: Any) -> Any:
    """Count the hits (numpy booleans over the flat elements) in each list."""
    return np.bincount(_parents(lists)[hits], minlength=len(lists))


def _hits(value: Value) -> Any:
    array = one_array(pc.fill_null(value, False))
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _answer(result: Any, lists: pa.Array) -> pa.Array:
    lost = np.asarray(pc.is_null(lists).to_numpy(zero_copy_only=False))
    return pa.array(result, mask=lost if lost.any() else None)


def _has(name: str, operands: Sequence[Expression]) -> Expression:
    lists, (element,) = with_elements(list_of(operands[0], name=name), operands[1], name=name)
    literal = element.scalar if isinstance(element, Literal) else None

    def kernel(rows: pa.Array, elements: pa.Array) -> pa.Array:
        flat = pc.list_flatten(rows)
        other = pc.take(elements, pa.array(_parents(rows))) if literal is None else literal
        hits = _hits(identical(flat, other))
        answers = _answer(_rows_with(rows, hits) > 0, rows)
        return pc.if_else(pc.is_valid(elements), answers, scalar_of(None, pa.bool_()))

    return call(name, arrays_kernel(kernel), lists, element)


def _has_several(name: str, operands: Sequence[Expression]) -> Expression:
    lists = list_of(operands[0], name=name)
    every = name.endswith("_all")
    if not isinstance(operands[1], Literal):
        lists, other = _alike(lists, list_of(operands[1], name=name))
        test = set.issuperset if every else (lambda left, right: not left.isdisjoint(right))

        def tested(left: list[Any], right: list[Any]) -> bool:
            return bool(
                test({_hashable(item) for item in left}, {_hashable(item) for item in right})
            )

        return call(name, per_row(tested, pa.bool_()), lists, other)
    literals = (
        [
            _literal_of_text(Literal(value), lists.type.value_type)
            for value in operands[1].scalar.values
        ]
        if is_list(operands[1].type) and operands[1].scalar.is_valid
        else []
    )
    lists, elements = with_elements(lists, *literals, name=name)
    scalars = [literal.scalar for literal in elements if isinstance(literal, Literal)]
    members, has_null = members_of(scalars, lists.type.value_type)
    members = pc.unique(float_bits(members)).view(members.type)
    is_empty = is_list(operands[1].type) and operands[1].scalar.is_valid and not elements

    if is_empty:
        return call(name, arrays_kernel(partial(_constant, value=every)), lists)
    kernel = partial(has_items, members=members, has_null=has_null, every=every)
    return call(name, kernel, lists)


def _alike(*sides: Expression) -> list[Expression]:
    """Bring lists to one type of elements, if there is one."""
    common = common_type(*(side.type.value_type for side in sides))
    return [
        side
        if common in (None, side.type.value_type)
        else call(f"elements as {common}", _widened(_list_like(side.type, common)), side)
        for side in sides
    ]


def _constant(rows: pa.Array, *, value: bool) -> pa.Array:
    """Return one value for each row, also where the list is null."""
    return pa.array(np.full(len(rows), value))


def has_items(value: Value, *, members: pa.Array, has_null: bool, every: bool) -> Value:
    """Tell which lists have one (or every one) of the members; null where the list is null."""
    (rows,) = aligned(value)
    flat = pc.list_flatten(rows)
    nulls = _hits(pc.is_null(flat)) if has_null else np.zeros(len(flat), np.bool_)
    if not every:
        hits = _hits(is_member(flat, members)) | nulls
        answers = _answer(_rows_with(rows, hits) > 0, rows)
    else:
        mask = np.ones(len(rows), np.bool_)
        if has_null:
            mask &= _rows_with(rows, nulls) > 0
        for member in members:
            mask &= _rows_with(rows, _hits(identical(flat, member))) > 0
        answers = _answer(mask, rows)
    return only_value(answers) if isinstance(value, pa.Scalar) else answers


def _hashable(value: Any) -> Any:
    """Return an element as a set can hold it: lists and structs, and floats by their bits."""
    if isinstance(value, float):
        return _total_order(value)
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple((name, _hashable(element)) for name, element in value.items())
    return value


def _length(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind array_length(list, dimension): null for a dimension that there is not."""
    dimension = plain(operands[1]) if len(operands) == 2 else Literal(scalar_of(1))
    is_nested = is_list(list_of(operands[0], name=name).type.value_type)
    number = dimension.scalar.as_py() if isinstance(dimension, Literal) else 2
    if is_nested and isinstance(number, int) and number > 1:
        raise PredicateError(f"{name} counts the elements of the outermost lists, dimension 1")
    if name == "cardinality" and is_list(list_of(operands[0], name=name).type.value_type):
        raise PredicateError("cardinality of nested lists is not supported; use array_length")

    def kernel(rows: Value, numbers: Value) -> Value:
        lengths = pc.cast(pc.list_value_length(rows), pa.uint64())
        return pc.if_else(pc.equal(numbers, 1), lengths, scalar_of(None, pa.uint64()))

    return call(name, kernel, list_of(operands[0], name=name), cast(dimension, pa.int64()))


def _empty(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(rows: Value) -> Value:
        return pc.equal(pc.list_value_length(rows), 0)

    return call(name, kernel, list_of(operands[0], name=name))


def element_at(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind list[number]: null where the list is too short."""
    lists = list_of(operands[0], name=name)

    def pick(rows: pa.Array, numbers: pa.Array) -> pa.Array:
        places = np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False))
        lengths = np.asarray(
            pc.fill_null(pc.list_value_length(rows), 0).to_numpy(zero_copy_only=False)
        )
        flat = flattened(rows)
        ends = np.cumsum(lengths)
        offsets = np.where(places > 0, places - 1, lengths + places)
        valid = (places != 0) & (offsets >= 0) & (offsets < lengths)
        indices = np.where(valid, ends - lengths + offsets, 0)
        return taken(flat, pa.array(indices, mask=~valid))

    result = call(name, arrays_kernel(pick), lists, cast(plain(operands[1]), pa.int64()))
    # As in pylance, an element loses its extension type; JSON keeps it, for the functions of JSON.
    is_json = getattr(result.type, "extension_name", "") == "arrow.json"
    is_extension = isinstance(result.type, pa.BaseExtensionType)
    return cast(result, result.type.storage_type) if is_extension and not is_json else result


def _bound(name: str, operands: Sequence[Expression]) -> Expression:
    lists = list_of(operands[0], name=name)
    choose = max if name.endswith("_max") else min

    def pick(row: list[Any]) -> Any:
        values = [value for value in row if value is not None]
        return choose(values, key=_total_order) if values else None

    return call(name, per_row(pick, lists.type.value_type), lists)


def _total_order(value: Any) -> Any:
    """Return a float as an integer in the total order of IEEE 754, other values as they are."""
    if not isinstance(value, float):
        return value
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return bits ^ ((1 << 63) - 1) if bits < 0 else bits


def _to_string(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind array_to_string(list, separator, text of nulls), which joins innermost values."""
    lists = list_of(operands[0], name=name)
    element = lists.type.value_type
    while is_list(element):
        element = element.value_type
    if pt.is_nested(element) or pt.is_duration(element):
        raise PredicateError(f"{name} needs lists of plain values, not {lists.type}")

    def join(row: list[Any], separator: str, lost: str | None = None) -> str:
        texts = [lost if value is None else value for value in _leaves(row)]
        return separator.join(text for text in texts if text is not None)

    texts = [text(operand, name=name) for operand in operands[1:]]
    elements = call("elements as text", _element_texts, lists)
    return call(name, per_row(join, pa.string()), elements, *texts)


def _leaves(row: list[Any]) -> Iterator[Any]:
    for value in row:
        if isinstance(value, list):
            yield from _leaves(value)
        else:
            yield value


def _element_texts(value: Value) -> Value:
    """Write the innermost values of lists as text, lists as they are."""
    (rows,) = aligned(value)
    lists = opened(rows)
    values = lists.values
    if is_list(values.type):
        texts = _element_texts(values)
    elif pt.is_floating(values.type):
        texts = _plain_decimals(values)
    else:
        texts = one_array(cast_value(values, pa.string()))
    result = closed(texts, lists.lengths, lists.lost)
    return only_value(result) if isinstance(value, pa.Scalar) else result


def _plain_decimals(values: pa.Array) -> pa.Array:
    """Write floats with the fewest digits that keep them apart, never with an exponent."""
    kind = np.float64 if pt.is_float64(values.type) else np.float32
    texts = [
        None
        if number is None
        else np.format_float_positional(kind(number), trim="-").replace("nan", "NaN")
        for number in values.to_pylist()
    ]
    return pa.array(texts, pa.string())


def literal_list(values: Sequence[Literal]) -> Literal:
    """Bind [a, b, ...] of literals. Raises PredicateError for values of several types."""
    if any(_list_depth(value.type) >= _LIST_DEPTH_MAX for value in values):
        raise PredicateError(f"lists in brackets are nested at most {_LIST_DEPTH_MAX} deep")
    type_ = pa.null()
    for value in values:
        is_text = [pt.is_string(kind) or pt.is_large_string(kind) for kind in (type_, value.type)]
        has_null = pt.is_null(type_) or pt.is_null(value.type)
        common = common_type(type_, value.type)
        if common is None or (is_text[0] != is_text[1] and not has_null):
            raise PredicateError("the values of a list in brackets are of one type")
        type_ = common
    # Not by Python's values: its times stop at microseconds, and its integers have no type.
    kernel = cast_kernel(type_)
    items = [
        one_array(value.scalar if value.type == type_ else kernel(value.scalar)) for value in values
    ]
    flat = pa.concat_arrays(items) if items else pa.nulls(0)
    return Literal(pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)[0])


def _list_depth(type_: pa.DataType) -> int:
    depth = 0
    while is_list(type_):
        type_, depth = type_.value_type, depth + 1
    return depth


def list_names(*endings: str) -> list[str]:
    """Return the names that begin with array_ and with list_."""
    return [prefix + ending for prefix in ("array_", "list_") for ending in endings]


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    **dict.fromkeys(list_names("has", "contains", "element_of"), (_has, 2, 2)),
    **dict.fromkeys([*list_names("has_any", "has_all"), "arrays_overlap"], (_has_several, 2, 2)),
    **dict.fromkeys(list_names("length"), (_length, 1, 2)),
    "cardinality": (_length, 1, 1),
    **dict.fromkeys([*list_names("empty"), "empty"], (_empty, 1, 1)),
    **dict.fromkeys(list_names("element", "extract"), (element_at, 2, 2)),
    **dict.fromkeys(list_names("max", "min"), (_bound, 1, 1)),
    **dict.fromkeys([*list_names("to_string", "join")], (_to_string, 2, 3)),
}


def whole(expression: Expression) -> Expression:
    """Return an operand as whole numbers."""
    return cast(plain(expression), pa.int64())


def ints(array: pa.Array) -> Ints:
    """Return whole numbers, cut to what no list reaches; 0 at nulls."""
    numbers = np.asarray(pc.fill_null(array, 0).to_numpy(zero_copy_only=False))
    return np.asarray(np.clip(numbers, -(1 << 40), 1 << 40), np.int64)


def _resize(name: str, operands: Sequence[Expression]) -> Expression:
    rows = list_of(operands[0], name=name)
    fill: Expression = Literal(scalar_of(None, rows.type.value_type))
    if len(operands) == 3:
        rows, (fill,) = with_elements(rows, operands[2], name=name)

    def kernel(rows: pa.Array, sizes: pa.Array, fills: pa.Array) -> pa.Array:
        lists, counts = opened(rows), list_lengths(sizes, name)
        counts = np.where(lists.lost, 0, counts)
        owner = np.repeat(np.arange(counts.size), counts)
        inside = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
        old = lists.starts[owner] + inside
        places = np.where(inside < lists.lengths[owner], old, len(lists.values) + owner)
        merged = pa.concat_arrays([lists.values, fills])
        return closed(pc.take(merged, pa.array(places)), counts, lists.lost)

    return call(name, arrays_kernel(kernel), rows, whole(operands[1]), fill)


def list_lengths(array: pa.Array, name: str) -> Ints:
    """Return the lengths of lists to make."""
    counts = np.maximum(ints(array), 0)
    check_amounts(counts, ITEMS_MAX, f"{name}: a list")
    return counts


def _repeat(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(elements: pa.Array, sizes: pa.Array) -> pa.Array:
        counts = list_lengths(sizes, name)
        return closed(
            pc.take(elements, pa.array(np.repeat(np.arange(counts.size), counts))), counts
        )

    return call(name, arrays_kernel(kernel), plain(operands[0]), whole(operands[1]))


def _range(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind range(stop), range(start, stop, step), and generate_series, which has its stop."""
    numbers = [whole(operand) for operand in operands]
    if len(numbers) == 1:
        numbers = [Literal(scalar_of(0)), *numbers]
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
    depth = scalar_of(_depth(rows.type), pa.uint64())

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
FUNCTIONS |= {
    **dict.fromkeys(list_names("resize"), (_resize, 2, 3)),
    **dict.fromkeys(list_names("repeat"), (_repeat, 2, 2)),
    **dict.fromkeys(("range", "generate_series"), (_range, 1, 3)),
    **dict.fromkeys(list_names("ndims"), (_ndims, 1, 1)),
    **dict.fromkeys(list_names("dims"), (_dims, 1, 1)),
}
