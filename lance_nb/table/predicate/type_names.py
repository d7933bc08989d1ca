"""Type names of SQL, as in CAST(x AS int), to Arrow types.

The names are those that pylance accepts: int, tinyint, smallint, bigint (each also unsigned),
float, double, string, binary, boolean, date, timestamp(precision), datetime, decimal(p, s); plus
time, and real.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.sql_text import sql_of

_TYPES = {
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "MEDIUMINT": pa.int32(),
    "BIGINT": pa.int64(), "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "TEXT": pa.string(),
    "VARCHAR": pa.string(), "CHAR": pa.string(), "BINARY": pa.binary(), "VARBINARY": pa.binary(),
    "BLOB": pa.binary(), "BOOLEAN": pa.bool_(), "DATE": pa.date32(), "TIME": pa.time64("us"),
}  # fmt: skip
_TIMESTAMPS = frozenset({"TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"})
_UNIT_OF_PRECISION = {0: "s", 3: "ms", 6: "us", 9: "ns"}


def type_of(node: Any, cast: Any) -> pa.DataType:
    """Return the Arrow type of a sqlglot DataType.

    Raises PredicateError for an unknown one, which names the node of the cast.
    """
    name = str(getattr(node.this, "value", node.this)).upper()
    numbers = [_number(one) for one in node.expressions or ()]
    if name in _TYPES and not numbers:
        return _TYPES[name]
    if name in _TYPES and _TYPES[name] == pa.string():
        return pa.string()
    if name in _TIMESTAMPS:
        precision = numbers[0] if numbers else 6
        if precision in _UNIT_OF_PRECISION:
            return pa.timestamp(_UNIT_OF_PRECISION[precision])
    if name == "TIMESTAMPTZ":
        return pa.timestamp("us", "UTC")
    if name == "DECIMAL":
        precision, scale = (*numbers, 0)[:2] if numbers else (38, 10)
        if 0 < precision <= 76 and 0 <= scale <= precision:
            wide = pa.decimal128 if precision <= 38 else pa.decimal256
            return wide(precision, scale)
    raise PredicateError(
        f"{sql_of(cast)}: no such type; types are int, bigint, float, double, string, "
        "binary, boolean, date, timestamp(0|3|6|9), decimal(p, s), ..."
    )


def _number(node: Any) -> int:
    text = str(node.name or getattr(node.this, "name", ""))
    return int(text) if text.isdigit() else -1
