"""A bound expression: a tree of Arrow compute calls over the columns of a dataset.

``Column`` and ``Literal`` are the leaves, ``Call`` applies a kernel to its operands. A kernel takes
and returns Arrow values: a ChunkedArray or Array for one value per row, a Scalar for the same value
in every row. The type of a call is found by running its kernel on no rows, so that whatever Arrow
cannot do is refused before a file is opened; a call on literals alone becomes a literal.

A name is resolved literally first; one without backticks also matches a top-level column that
differs in case only, as in pylance. Fields of structs follow after dots or as ``['field']``.

Limits: kernels keep no state and see one window of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.encodings import arrow_parts
from lance_nb.errors import PredicateError
from lance_nb.table.projection import ROW_COLUMNS
from lance_nb.value_classes import dataclass

# pyarrow has no types to check: a ChunkedArray, an Array, or a Scalar.
Value = Any
Path = tuple[str, ...]
Columns = Mapping[Path, pa.ChunkedArray]
Kernel = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Column:
    """The column, or the field of structs, at ``path``."""

    path: Path
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """One value for every row. ``digits`` is the number as it was written, where it was one."""

    scalar: pa.Scalar
    digits: str = ""

    @property
    def type(self) -> pa.DataType:
        """Arrow type of the value."""
        return self.scalar.type


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel applied to the values of its operands. ``name`` is for messages.

    ``folds``: the kernel is associative and takes any number of operands, so that they are joined
    one by one and no more than two of their values are held at a time.
    """

    name: str
    kernel: Kernel
    operands: tuple[Expression, ...]
    type: pa.DataType
    folds: bool = False


Expression = Column | Literal | Call

_DECIDED_BY = {"AND": False, "OR": True}
_BRANCHES = ("CASE", "nvl2")
_FIRST_VALID = ("coalesce", "nvl", "ifnull")
_LAZY_DEPTH_MAX = 100  # calls inside calls; what lies deeper is computed for all rows


def call(name: str, kernel: Kernel, *operands: Expression, folds: bool = False) -> Expression:
    """Apply a kernel. Raises PredicateError when it cannot take operands of these types."""
    if folds and not all(isinstance(operand, Literal) for operand in operands):
        kinds = dict.fromkeys(operand.type for operand in operands)
        probe = call(name, kernel, *(Column((), kind) for kind in kinds))
        return Call(name, kernel, operands, probe.type, folds=True)
    samples = [
        operand.scalar if isinstance(operand, Literal) else pa.chunked_array([], operand.type)
        for operand in operands
    ]
    try:
        result = kernel(*samples)
    except (pa.ArrowException, TypeError, OverflowError) as exc:
        types = ", ".join(str(operand.type) for operand in operands)
        raise PredicateError(f"{name} cannot be applied to ({types}): {first_line(exc)}") from exc
    if operands and all(isinstance(operand, Literal) for operand in operands):
        return Literal(only_value(result))
    return Call(name, kernel, operands, result.type)


def null_of_null(expression: Expression) -> Expression:
    """Return NULL for a call with the literal NULL as operand, so that no other is computed.

    For calls that are null where an operand is: a value of a row that another operand cannot take
    is no error then, as in pylance.
    """
    if isinstance(expression, Call) and any(
        is_null_literal(operand) for operand in expression.operands
    ):
        return Literal(scalar_of(None, expression.type))
    return expression


def is_null_literal(operand: Expression) -> bool:
    """Tell whether an expression is NULL for every row."""
    return isinstance(operand, Literal) and not operand.scalar.is_valid


class _Pending:
    """A call whose operands are being computed: how many are done, and their values."""

    __slots__ = ("call", "num_done", "values")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.num_done = 0
        self.values: list[Value] = []

    def add(self, value: Value) -> None:
        self.num_done += 1
        if self.values and self.call.folds:
            self.values = [self.call.kernel(self.values[0], value)]
        else:
            self.values.append(value)


def evaluate(expression: Expression, columns: Columns) -> Value:
    """Compute an expression over rows, at any depth; Arrow's own errors pass."""
    if not isinstance(expression, Call):
        return _leaf_value(expression, columns)
    stack = [_Pending(expression)]
    while True:
        top = stack[-1]
        if top.num_done < len(top.call.operands):
            operand = top.call.operands[top.num_done]
            if isinstance(operand, Call):
                stack.append(_Pending(operand))
            else:
                top.add(_leaf_value(operand, columns))
            continue
        value = top.values[0] if top.call.folds else top.call.kernel(*top.values)
        stack.pop()
        if not stack:
            return value
        stack[-1].add(value)


def evaluate_needed(expression: Expression, columns: Columns) -> Value:
    """Compute an expression, but of AND, OR, CASE and COALESCE only what decides.

    As in pylance, a value that cannot be computed then matters only in a row that needs it. Rows
    are looked at again only where that is so, because Arrow computes all of them faster than some.
    """
    try:
        return evaluate(expression, columns)
    except (pa.ArrowException, OverflowError):
        lazy = (*_DECIDED_BY, *_BRANCHES, *_FIRST_VALID)
        decides = any(isinstance(part, Call) and part.name in lazy for part in nodes_of(expression))
        if not decides or not columns:
            raise
    return _needed(expression, columns, _LAZY_DEPTH_MAX)


def _needed(expression: Expression, columns: Columns, depth: int) -> Value:
    if not isinstance(expression, Call) or not depth:
        return evaluate(expression, columns)
    operands = expression.operands
    if expression.name in _BRANCHES and len(operands) == 3 and columns:
        return _needed_branches(expression, columns, depth)
    if expression.name in _FIRST_VALID and columns:
        return _needed_until_valid(expression, columns, depth)
    if expression.name not in _DECIDED_BY or not columns:
        return expression.kernel(*(_needed(operand, columns, depth - 1) for operand in operands))
    decided_by = _DECIDED_BY[expression.name]
    result = one_array(_needed(operands[0], columns, depth), len(next(iter(columns.values()))))
    for operand in operands[1:]:
        is_open = pc.fill_null(pc.not_equal(result, decided_by), True)
        if not is_open.true_count:
            break
        result = expression.kernel(result, _at_rows(operand, is_open, columns, depth))
    return result


def _needed_branches(expression: Call, columns: Columns, depth: int) -> Value:
    """Compute each branch of a CASE for the rows that take it."""
    test, value, otherwise = expression.operands
    num_rows = len(next(iter(columns.values())))
    is_true = pc.fill_null(one_array(_needed(test, columns, depth - 1), num_rows), False)
    chosen = _at_rows(value, is_true, columns, depth)
    return expression.kernel(
        is_true, chosen, _at_rows(otherwise, pc.invert(is_true), columns, depth)
    )


def _needed_until_valid(expression: Call, columns: Columns, depth: int) -> Value:
    """Compute each operand of COALESCE for the rows in which those before are null."""
    num_rows = len(next(iter(columns.values())))
    result = one_array(_needed(expression.operands[0], columns, depth - 1), num_rows)
    for operand in expression.operands[1:]:
        is_open = pc.is_null(result)
        if not is_open.true_count:
            break
        result = pc.coalesce(result, _at_rows(operand, is_open, columns, depth))
    return result


def _at_rows(operand: Expression, is_open: pa.BooleanArray, columns: Columns, depth: int) -> Value:
    """Compute an operand for the open rows; the others are null."""
    if not is_open.true_count:
        return pa.nulls(len(is_open), operand.type)
    rows = {path: pc.filter(column, is_open) for path, column in columns.items()}
    value = one_array(_needed(operand, rows, depth - 1), is_open.true_count)
    place = pc.cumulative_sum(pc.cast(is_open, pa.int64()))
    return pc.take(value, pc.if_else(is_open, pc.subtract(place, 1), pa.scalar(None, pa.int64())))


def nodes_of(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all that it is computed from, without recursion."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.operands if isinstance(node, Call) else ()


def _leaf_value(leaf: Column | Literal, columns: Columns) -> Value:
    return columns[leaf.path] if isinstance(leaf, Column) else leaf.scalar


def paths_of(expression: Expression) -> Iterator[Path]:
    """Yield the path of every column that the expression reads, repeats included."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Column):
            yield node.path
        elif isinstance(node, Call):
            waiting += reversed(node.operands)


def only_value(value: Value) -> pa.Scalar:
    """Return a scalar, or the one value of an array."""
    return value if isinstance(value, pa.Scalar) else value[0]


def one_array(value: Value, num_rows: int | None = None) -> pa.Array:
    """Return the value as one Array; a scalar is repeated ``num_rows`` times."""
    if isinstance(value, pa.Scalar):
        count = 1 if num_rows is None else num_rows
        return pa.repeat(value, count) if count else pa.nulls(0, value.type)
    return arrow_parts.one_array(value) if isinstance(value, pa.ChunkedArray) else value


def aligned(*values: Value) -> list[pa.Array]:
    """Return every value as an Array of the same length."""
    lengths = [len(value) for value in values if not isinstance(value, pa.Scalar)]
    count = lengths[0] if lengths else 1
    return [one_array(value, count) for value in values]


def per_row(function: Callable[..., Any], type_: pa.DataType) -> Kernel:
    """Make a kernel of a Python function of one row's values; a null operand gives null.

    For functions that Arrow lacks and that few filters use: it costs about a microsecond per row.
    """

    def kernel(*values: Value) -> Value:
        if all(isinstance(value, pa.Scalar) for value in values):
            row = [value.as_py() for value in values]
            return pa.scalar(None if None in row else function(*row), type_)
        rows = zip(*(array.to_pylist() for array in aligned(*values)), strict=True)
        answers = [None if None in row else function(*row) for row in rows]
        return pa.array(answers, type_)

    return kernel


def per_distinct(function: Callable[..., Any], type_: pa.DataType) -> Kernel:
    """Make a kernel of a Python function that is called once for each distinct value of one column.

    A null gives null. For functions that Arrow lacks.
    """

    def kernel(value: Value) -> Value:
        if isinstance(value, pa.Scalar):
            return pa.scalar(function(value.as_py()) if value.is_valid else None, type_)
        encoded = pc.dictionary_encode(one_array(value))
        values = [
            None if text is None else function(text) for text in encoded.dictionary.to_pylist()
        ]
        return pc.take(pa.array(values, type_), encoded.indices)

    return kernel


def to_numpy(array: pa.Array) -> np.ndarray[Any, Any]:
    """Return numbers as numpy sees them; what stands at a null is not defined."""
    if array.null_count:
        array = pc.fill_null(array, 0)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def with_nulls_of(values: np.ndarray[Any, Any], *arrays: pa.Array) -> pa.Array:
    """Turn numpy values into an Array that is null wherever one of ``arrays`` is."""
    mask = np.zeros(len(values), np.bool_)
    for array in arrays:
        if array.null_count:
            mask |= np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False))
    return pa.array(values, mask=mask if mask.any() else None)


def first_line(exc: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(exc) or type(exc).__name__).splitlines()[0]


_SHOWN_MAX = 12


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that an expression may use: those of a schema, and the row columns."""

    schema: pa.Schema

    def resolve(self, parts: Sequence[str], *, quoted: bool, place: str = "") -> Expression:
        """Return the column of a dotted name. Raises PredicateError with the nearest name."""
        name = self._top(parts[0], quoted=quoted, place=place)
        if name in ROW_COLUMNS and name not in self.schema.names:
            expression: Expression = Column((name,), pa.uint64())
        else:
            expression = Column((name,), self.schema.field(name).type)
        for part in parts[1:]:
            expression = child(expression, part, place=place)
        return expression

    def _top(self, name: str, *, quoted: bool, place: str) -> str:
        names = self.schema.names
        if name in names or name in ROW_COLUMNS:
            return name
        near = [candidate for candidate in names if candidate.lower() == name.lower()]
        if near and not quoted:
            return str(near[0])
        close = near or _closest(name, names)
        hint = f"; did you mean {close[0]!r}?" if close else f"; columns: {_listed(names)}"
        raise PredicateError(f"no column named {name!r}{place}{hint}")


def _closest(name: str, names: Sequence[str]) -> list[str]:
    from difflib import get_close_matches  # for messages only

    return get_close_matches(name, names, 1, 0.5)


def child(parent: Expression, name: str, *, place: str = "") -> Expression:
    """Return the field of a struct. Raises PredicateError with the nearest name."""
    type_ = parent.type
    if not pt.is_struct(type_):
        shown = ".".join(parent.path) if isinstance(parent, Column) else "the value"
        raise PredicateError(f"{shown!r} is {type_} and has no field {name!r}{place}")
    names = [type_.field(number).name for number in range(type_.num_fields)]
    if name not in names:
        near = [candidate for candidate in names if candidate.lower() == name.lower()]
        close = near or _closest(name, names)
        hint = f"; did you mean {close[0]!r}?" if close else f"; fields: {_listed(names)}"
        raise PredicateError(f"no field {name!r} in the struct{place}{hint}")
    number = names.index(name)
    if isinstance(parent, Column):
        return Column((*parent.path, name), type_.field(number).type)

    def kernel(value: Value) -> Value:
        return pc.struct_field(value, [number])

    return call(f"field {name!r}", kernel, parent)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(repr(name) for name in names[:_SHOWN_MAX]) + more
