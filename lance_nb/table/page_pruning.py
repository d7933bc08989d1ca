"""Page pruning: which rows of 0.1 files can pass a filter, by the statistics of their pages.

Used of a filter: comparisons of a top-level column with a number, date or time, joined by AND;
everything else may pass. A page is skipped only when its smallest or largest value decides it and
it has no nulls, because 0.1 files store some value in the place of a null, which a scan returns.
NaN is greater than every number and no part of the bounds, so that ``>`` and ``>=`` skip no page of
floats; a NaN with a minus sign, the least value, is missed by ``<`` as it is by pylance. Texts are
not used: their bounds may have been truncated.

Limits: without statistics, with damaged ones, or in a fragment of more than ``ROWS_MAX`` rows every
row may pass.
Source: spec page "statistics"; the results are those of a scan that reads all pages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import Fragment
from lance_nb.table.fragment_reader import open_file
from lance_nb.table.predicate import Filter, comparison
from lance_nb.table.predicate.expression import Call, Column, Expression, Literal
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

ROWS_MAX = 1 << 26
Mask = npt.NDArray[np.bool_]
# What remains true of a comparison when its sides change places.
_SWAPPED: dict[Any, Any] = {
    comparison.less: comparison.greater,
    comparison.greater: comparison.less,
    comparison.less_equal: comparison.greater_equal,
    comparison.greater_equal: comparison.less_equal,
    comparison.equal: comparison.equal,
}


@dataclass(frozen=True, slots=True)
class _Pages:
    """Pages of one column of a fragment: rows, nulls, bounds (null where not known)."""

    sizes: npt.NDArray[np.int64]
    null_counts: pa.Array
    lows: pa.Array
    highs: pa.Array


def rows_that_may_pass(snapshot: Snapshot, fragment: Fragment, condition: Filter) -> Mask | None:
    """Return for each physical row whether it may pass; None when nothing is known."""
    if condition.expression is None or not any(file.is_legacy for file in fragment.files):
        return None
    return _judged(condition.expression, lambda column: _pages(snapshot, fragment, column))


def _judged(expression: Expression, pages: Callable[[Column], _Pages | None]) -> Mask | None:
    if not isinstance(expression, Call):
        return None
    if expression.kernel is comparison.all_of:
        parts = [_judged(operand, pages) for operand in expression.operands]
        judged_parts = [part for part in parts if part is not None]
        if not judged_parts or any(part.size != judged_parts[0].size for part in judged_parts):
            return None
        return reduce(np.logical_and, judged_parts)
    kernel = expression.kernel
    if kernel not in _SWAPPED:
        return None
    match expression.operands:
        case (Column() as column, Literal() as literal):
            return _compared(kernel, column, literal, pages)
        case (Literal() as literal, Column() as column):
            return _compared(_SWAPPED[kernel], column, literal, pages)
    return None


def _compared(
    kernel: Any, column: Column, literal: Literal, pages: Callable[[Column], _Pages | None]
) -> Mask | None:
    if literal.type != column.type or not literal.scalar.is_valid or not _has_order(column.type):
        return None
    is_float = pa.types.is_floating(column.type)
    if is_float and (kernel in {comparison.greater, comparison.greater_equal}
                     or np.isnan(literal.scalar.as_py())):  # fmt: skip
        return None
    page_bounds = pages(column)
    if page_bounds is None:
        return None
    settled = pc.and_(
        _hopeless(kernel, page_bounds, literal.scalar), pc.equal(page_bounds.null_counts, 0)
    )
    left_out = pc.fill_null(settled, fill_value=False)
    return np.repeat(~np.asarray(left_out), page_bounds.sizes)


def _hopeless(kernel: Any, pages: _Pages, scalar: pa.Scalar) -> pa.Array:
    """Tell of each page whether its bounds show that no value passes; null if they do not say."""
    if kernel is comparison.less:
        return pc.greater_equal(pages.lows, scalar)
    if kernel is comparison.less_equal:
        return pc.greater(pages.lows, scalar)
    if kernel is comparison.greater:
        return pc.less_equal(pages.highs, scalar)
    if kernel is comparison.greater_equal:
        return pc.less(pages.highs, scalar)
    return pc.or_(pc.greater(pages.lows, scalar), pc.less(pages.highs, scalar))


def _has_order(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(type_) or types.is_date(type_) or types.is_timestamp(type_)
        or types.is_float32(type_) or types.is_float64(type_)
    )  # fmt: skip


def _pages(snapshot: Snapshot, fragment: Fragment, column: Column) -> _Pages | None:
    """Return the statistics of a column, None where there are none that can be used."""
    if len(column.path) != 1:
        return None
    field = next(
        (field for field in snapshot.manifest.schema.fields if field.name == column.path[0]), None
    )
    file = next((file for file in fragment.files if field and field.id in file.fields), None)
    if field is None or file is None or not file.is_legacy:
        return None
    from lance_nb.file.v0_1_reader import LegacyReader

    reader = open_file(snapshot, fragment, file)
    if not isinstance(reader, LegacyReader):
        return None
    try:
        table = reader.statistics()
    except CorruptFileError:
        return None  # whoever reads the pages will do without
    name, sizes = str(reader.own_ids(file.fields)[field.id]), reader.batch_sizes()
    if table is None or name not in table.column_names or table.num_rows != sizes.size:
        return None
    if int(sizes.sum()) > ROWS_MAX:
        return None
    statistics = table.column(name).combine_chunks()
    kind = statistics.type
    bound_types = {"null_count": pa.int64(), "min_value": column.type, "max_value": column.type}
    if any(kind.get_field_index(part) < 0 or kind.field(part).type != type_
           for part, type_ in bound_types.items()):  # fmt: skip
        return None
    return _Pages(sizes, *(statistics.field(part) for part in bound_types))
