"""Functions of structs and types: get_field, named_struct, struct, arrow_cast, arrow_typeof.

Type names of ``arrow_cast`` are Arrow's in Rust: Int64, Utf8, LargeUtf8, Timestamp(Microsecond,
None), Decimal128(10, 2), Date32, ...
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.casts import try_cast_kernel
from lance_nb.table.predicate.coercion import cast, plain
from lance_nb.table.predicate.expression import Expression, call
from lance_nb.table.predicate.list_functions import is_list
from lance_nb.table.predicate.lists import arrays_kernel
from lance_nb.table.predicate.names import child
from lance_nb.table.predicate.string_functions import Binder, literal_of

_UNITS = {"second": "s", "millisecond": "ms", "microsecond": "us", "nanosecond": "ns"}
_NAMES = {
    "Boolean": pa.bool_(), "Int8": pa.int8(), "Int16": pa.int16(), "Int32": pa.int32(),
    "Int64": pa.int64(), "UInt8": pa.uint8(), "UInt16": pa.uint16(), "UInt32": pa.uint32(),
    "UInt64": pa.uint64(), "Float16": pa.float16(), "Float32": pa.float32(),
    "Float64": pa.float64(), "Utf8": pa.string(), "LargeUtf8": pa.large_string(),
    "Utf8View": pa.string(), "Binary": pa.binary(), "LargeBinary": pa.large_binary(),
    "Date32": pa.date32(), "Date64": pa.date64(), "Null": pa.null(),
}  # fmt: skip
_OF_TYPES = {type_: name for name, type_ in _NAMES.items() if name != "Utf8View"}
_SIGNS = {"s": "s", "ms": "ms", "us": "\u00b5s", "ns": "ns"}


def _get_field(name: str, operands: Sequence[Expression]) -> Expression:
    found = operands[0]
    for key in operands[1:]:
        found = child(found, str(literal_of(key, name=name)))
    return found


def _struct(name: str, operands: Sequence[Expression]) -> Expression:
    names = [f"c{number}" for number in range(len(operands))]
    return _made(name, names, operands)


def _named_struct(name: str, operands: Sequence[Expression]) -> Expression:
    if len(operands) % 2:
        raise PredicateError(f"{name} takes pairs of a name and a value")
    return _made(name, [str(literal_of(one, name=name)) for one in operands[::2]], operands[1::2])


def _made(name: str, names: Sequence[str], operands: Sequence[Expression]) -> Expression:
    def kernel(*fields: pa.Array) -> pa.Array:
        return pa.StructArray.from_arrays(fields, list(names))

    return call(name, arrays_kernel(kernel), *operands)


def _type_named(name: str) -> pa.DataType:
    """Read a type name as Rust writes it. Raises PredicateError."""
    if name in _NAMES:
        return _NAMES[name]
    match = re.fullmatch(r"(\w+)\((.*)\)", name.strip())
    kind, inside = match.groups() if match else ("", "")
    parts = [one.strip() for one in inside.split(",")]
    unit = _UNITS.get(parts[0].lower())
    if kind == "Timestamp" and unit and len(parts) == 2:
        zone = re.sub(r'^Some\("(.*)"\)$', r"\1", parts[1])
        return pa.timestamp(unit, None if zone == "None" else zone)
    if kind == "Duration" and unit:
        return pa.duration(unit)
    if kind == "Time32" and unit in {"s", "ms"}:
        return pa.time32(unit)
    if kind == "Time64" and unit in {"us", "ns"}:
        return pa.time64(unit)
    if kind in {"Decimal128", "Decimal256"} and all(one.isdigit() for one in parts[:2]):
        make = pa.decimal128 if kind == "Decimal128" else pa.decimal256
        precision, scale = (int(one) for one in (*parts, "0")[:2])
        if 0 < precision <= (38 if kind == "Decimal128" else 76) and scale <= precision:
            return make(precision, scale)
    raise PredicateError(f"no Arrow type named {name!r}; names are like Int64, Utf8, Date32")


def _arrow_cast(name: str, operands: Sequence[Expression]) -> Expression:
    type_ = _type_named(str(literal_of(operands[1], name=name)))
    if name == "arrow_try_cast":
        return call(name, try_cast_kernel(type_), plain(operands[0]))
    return cast(plain(operands[0]), type_)


def _typeof(name: str, operands: Sequence[Expression]) -> Expression:
    shown = pa.scalar(_shown(operands[0].type, name))
    return call(name, arrays_kernel(lambda rows: pa.repeat(shown, len(rows))), operands[0])


def _shown(type_: pa.DataType, name: str) -> str:
    if type_ in _OF_TYPES:
        return _OF_TYPES[type_]
    if pt.is_timestamp(type_):
        zone = f', "{type_.tz}"' if type_.tz else ""
        return f"Timestamp({_SIGNS[type_.unit]}{zone})"
    if pt.is_decimal(type_):
        return f"Decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if is_list(type_) and not pt.is_fixed_size_list(type_):
        kind = "LargeList" if pt.is_large_list(type_) else "List"
        return f"{kind}({_shown(type_.value_type, name)})"
    raise PredicateError(f"{name} does not name {type_}")


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    "get_field": (_get_field, 2, 16),
    "named_struct": (_named_struct, 2, 128),
    **dict.fromkeys(("struct", "row"), (_struct, 1, 64)),
    **dict.fromkeys(("arrow_cast", "arrow_try_cast"), (_arrow_cast, 2, 2)),
    "arrow_typeof": (_typeof, 1, 1),
}
