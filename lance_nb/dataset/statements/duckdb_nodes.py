"""Trees of sqlglot for DuckDB: constants in their types, keys of the order of floats, zones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.dataset.statements.carriers import carrier_of, duckdb_type
from lance_nb.table.predicate.expression import Literal

_ORDER_BITS = "CAST(CAST(CAST(x AS DOUBLE) AS BIT) AS BIGINT)"
_ORDER_KEY = (
    f"CASE WHEN {_ORDER_BITS} < 0 THEN xor({_ORDER_BITS}, 9223372036854775807) "
    f"ELSE {_ORDER_BITS} END"
)


def is_float(type_: pa.DataType | None) -> bool:
    """Whether this is known to be a type of floats."""
    return type_ is not None and bool(pt.is_floating(type_))


def order_key(node: Any) -> Any:
    """Return a whole number that orders floats totally: NaN with its sign, and -0.0 before 0.0."""
    from sqlglot import exp

    def replaced(part: Any) -> Any:
        return node.copy() if isinstance(part, exp.Column) else part

    return exp.Paren(this=_parsed(_ORDER_KEY).transform(replaced))


def typed_node(node: Any, type_: pa.DataType | None) -> Any:
    """Give a result the type that it has in pylance, where DuckDB's differs."""
    if type_ is None:
        return node
    carrier = carrier_of(type_)
    if carrier is None or not (pt.is_integer(type_) or pt.is_decimal(type_) or is_float(type_)):
        return node
    return _cast_to(node, carrier)


def _cast_to(node: Any, carrier: pa.DataType) -> Any:
    from sqlglot import exp

    to = _parsed(f"CAST(x AS {duckdb_type(carrier)})").args["to"]
    return exp.Cast(this=node, to=to.copy())


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    """Parse an expression of DuckDB's; copy it before it becomes a part of another."""
    import sqlglot

    return sqlglot.parse_one(text, read="duckdb")


def literal_node(bound: Literal) -> Any | None:
    """Return a constant in its type; None for those that DuckDB has no text for."""
    from sqlglot import exp

    value, type_ = bound.scalar, bound.type
    if not value.is_valid:
        carrier = None if pt.is_null(type_) else carrier_of(type_)
        return exp.Null() if carrier is None else _cast_to(exp.Null(), carrier)
    if pt.is_boolean(type_):
        return exp.Boolean(this=value.as_py())
    if pt.is_string(type_):
        return exp.Literal.string(value.as_py())
    if pt.is_timestamp(type_):
        value, type_ = value.cast(pa.timestamp(type_.unit)), pa.timestamp(type_.unit)
        text = str(value.cast(pa.string()).as_py())
    elif pt.is_integer(type_) or pt.is_float64(type_) or pt.is_float32(type_):
        text = repr(value.as_py())
    elif pt.is_date32(type_) or pt.is_decimal128(type_):
        text = str(value.as_py())
    elif pt.is_binary(type_):
        text = "".join(f"\\x{byte:02X}" for byte in value.as_py())
    else:
        return None
    return _cast_to(exp.Literal.string(text), type_)


def zoned_node(node: Any) -> Any:
    """Return a moment, which travels without its zone, as DuckDB's zoned timestamp."""
    from sqlglot import exp

    in_utc = exp.Cast(this=node, to=exp.DataType.build("TIMESTAMP"))
    return exp.Anonymous(this="timezone", expressions=[exp.Literal.string("UTC"), in_utc])
