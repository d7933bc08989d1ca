"""Aggregates and window functions: what DuckDB calls them, and the types that their results have.

Sums of whole numbers are whole numbers of 64 bits, those of decimals have ten more digits; ranks
are unsigned. Values of floats are compared in the total order, in which -0.0 is less than 0.0.
Source: behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.table.predicate.expression import Kernel, per_row

Types = Sequence[pa.DataType | None]

_DECIMAL_DIGITS_MAX = 38
_EXACT_DIGITS = 100


def _first(types: Types) -> pa.DataType | None:
    return types[0] if types else None


def _sum(types: Types) -> pa.DataType | None:
    operand = _first(types)
    if operand is None:
        return None
    if pt.is_unsigned_integer(operand):
        return pa.uint64()
    if pt.is_integer(operand) or pt.is_boolean(operand):
        return pa.int64()
    if pt.is_decimal128(operand):
        return pa.decimal128(min(operand.precision + 10, _DECIMAL_DIGITS_MAX), operand.scale)
    return pa.float64() if pt.is_floating(operand) else None


def _listed(types: Types) -> pa.DataType | None:
    operand = _first(types)
    return None if operand is None else pa.list_(operand)


def _average(types: Types) -> pa.DataType | None:
    operand = _first(types)
    if operand is None:
        return None
    if pt.is_decimal128(operand):
        precision = min(operand.precision + 4, _DECIMAL_DIGITS_MAX)
        return pa.decimal128(precision, min(operand.scale + 4, _DECIMAL_DIGITS_MAX))
    return pa.float64() if pt.is_integer(operand) or pt.is_floating(operand) else None


def _middle(types: Types) -> pa.DataType | None:
    operand = _first(types)
    return pa.float64() if operand is not None and pt.is_integer(operand) else None


def _always(type_: pa.DataType) -> Callable[[Types], pa.DataType | None]:
    return lambda _: type_


def average_kernel(total: pa.DataType, result: pa.DataType) -> Kernel:
    """Return the kernel of sums and counts that gives averages, cut off as in pylance."""
    digits = 10 ** (result.scale - total.scale)
    context = Context(prec=_EXACT_DIGITS)

    def average(sum_: Decimal, count: int) -> Decimal | None:
        if not count:
            return None
        whole = int(context.scaleb(sum_, total.scale)) * digits
        quotient = abs(whole) // count
        return context.scaleb(Decimal(quotient if whole >= 0 else -quotient), -result.scale)

    return per_row(average, result)


_FRACTION, _WHOLE = _always(pa.float64()), _always(pa.int64())
_UNSIGNED, _TRUTH = _always(pa.uint64()), _always(pa.bool_())

# name -> (what DuckDB calls it, the type of the result)
AGGREGATES: dict[str, tuple[str, Callable[[Types], pa.DataType | None]]] = {
    "count": ("count", _WHOLE),
    "sum": ("sum", _sum),
    "avg": ("avg", _average),
    "mean": ("avg", _average),
    "min": ("min", _first),
    "max": ("max", _first),
    "median": ("median", _middle),
    "approx_median": ("median", _middle),
    "approx_percentile_cont": ("quantile_cont", _middle),
    "grouping": ("grouping", _always(pa.int32())),
    "stddev": ("stddev_samp", _FRACTION),
    "stddev_samp": ("stddev_samp", _FRACTION),
    "stddev_pop": ("stddev_pop", _FRACTION),
    "var": ("var_samp", _FRACTION),
    "var_samp": ("var_samp", _FRACTION),
    "var_sample": ("var_samp", _FRACTION),
    "var_pop": ("var_pop", _FRACTION),
    "var_population": ("var_pop", _FRACTION),
    "covar": ("covar_samp", _FRACTION),
    "covar_samp": ("covar_samp", _FRACTION),
    "covar_pop": ("covar_pop", _FRACTION),
    "corr": ("corr", _FRACTION),
    "bool_and": ("bool_and", _TRUTH),
    "bool_or": ("bool_or", _TRUTH),
    "bit_and": ("bit_and", _first),
    "bit_or": ("bit_or", _first),
    "bit_xor": ("bit_xor", _first),
    "first_value": ("first", _first),
    "last_value": ("last", _first),
    "array_agg": ("array_agg", _listed),
    "string_agg": ("string_agg", _always(pa.large_string())),
    "approx_distinct": ("approx_count_distinct", _UNSIGNED),
}

WINDOWS: dict[str, tuple[str, Callable[[Types], pa.DataType | None]]] = {
    "row_number": ("row_number", _UNSIGNED),
    "rank": ("rank", _UNSIGNED),
    "dense_rank": ("dense_rank", _UNSIGNED),
    "ntile": ("ntile", _UNSIGNED),
    "percent_rank": ("percent_rank", _FRACTION),
    "cume_dist": ("cume_dist", _FRACTION),
    "lag": ("lag", _first),
    "lead": ("lead", _first),
    "first_value": ("first_value", _first),
    "last_value": ("last_value", _first),
    "nth_value": ("nth_value", _first),
}

# Other aggregates of DuckDB: calls that must not be taken for functions of one row.
OF_DUCKDB = frozenset({
    "any_value", "approx_count_distinct", "approx_quantile", "approx_top_k", "arbitrary",
    "arg_max", "arg_min", "argmax", "argmin", "avg", "bitstring_agg", "count_if", "count_star",
    "countif", "entropy", "favg", "first", "fsum", "geometric_mean", "geomean", "group_concat",
    "histogram", "kahan_sum", "kurtosis", "kurtosis_pop", "last", "list", "listagg", "mad",
    "max_by", "min_by", "mode", "percentile_cont", "percentile_disc", "product", "quantile",
    "quantile_cont", "quantile_disc", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept",
    "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "reservoir_quantile", "sem",
    "skewness", "sumkahan", "variance",
})  # fmt: skip
