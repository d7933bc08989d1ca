"""Logical types: the text that names a column's type on disk, and its Arrow type.

One string per field; nested types only have their kind, their children are fields of their own::

    int8 .. uint64  halffloat float double  bool  null  string large_string binary large_binary
    date32:day date64:ms  time32:s|ms  time64:us|ns  duration:<unit>  timestamp:<unit>:<zone or ->
    decimal:128:<precision>:<scale>  decimal:256:...   fixed_size_binary:<bytes>
    dict:<value type>:<key type>:<ordered>     fixed_size_list:<item type>:<dimension>
    struct  list list.struct  large_list large_list.struct  map  fixed_size_list:struct:<dimension>
    json    stored as large_binary (JSONB), an Arrow ``arrow.json`` string outside

Worked example: ``fixed_size_list:timestamp:us:+05:30:2`` is two timestamps: the zone may contain
colons, so the dimension follows the last one.

Limits: fixed-size lists nest at most ``NESTING_MAX`` deep in one string.
Not supported: interval, union, view, run-end-encoded and 32/64-bit decimal types: the format has no
names for them (string and binary views are written as string and binary).
Source: lance-core ``datatypes.rs`` of pylance 14.0.2.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from lance_nb.errors import NotSupportedError

NESTING_MAX = 100
BFLOAT16 = "lance.bfloat16"
STRUCT, MAP, JSON, NULL = "struct", "map", "json", "null"
LISTS = ("list", "list.struct")
LARGE_LISTS = ("large_list", "large_list.struct")
EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"

SIMPLE_TYPES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "json": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    **{f"duration:{unit}": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
}
_NAMES: dict[pa.DataType, str] = {
    **{arrow: name for name, arrow in SIMPLE_TYPES.items() if name != JSON},
    pa.string_view(): "string",
    pa.binary_view(): "binary",
}
_INDEX_TYPES = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def is_nested(logical_type: str) -> bool:
    """Return whether the type's children are fields of their own."""
    return (
        logical_type in (STRUCT, MAP)
        or logical_type in LISTS
        or logical_type in LARGE_LISTS
        or fixed_size_struct_dimension(logical_type) is not None
    )


def fixed_size_struct_dimension(logical_type: str) -> int | None:
    """Return n of ``fixed_size_list:struct:n``, None for every other type."""
    if not logical_type.startswith("fixed_size_list:struct:"):
        return None
    digits = logical_type.rpartition(":")[2]
    return int(digits) if _is_dimension(digits) else None


@lru_cache(maxsize=4096)
def leaf_to_arrow(logical_type: str) -> pa.DataType:
    """Return the Arrow storage type of a field without children.

    Raises NotSupportedError for text that names no type of this format.
    """
    try:
        return _parse(logical_type)
    except (NotSupportedError, ValueError, OverflowError, pa.ArrowException) as error:
        shown = logical_type if len(logical_type) <= 80 else logical_type[:80] + "..."
        raise NotSupportedError(
            f"logical type {shown!r} is not known: the schema is damaged or of a newer Lance"
        ) from error


def _parse(text: str) -> pa.DataType:
    dimensions: list[int] = []
    while text.startswith("fixed_size_list:"):
        text, _, digits = text.removeprefix("fixed_size_list:").rpartition(":")
        if not _is_dimension(digits) or len(dimensions) >= NESTING_MAX:
            raise NotSupportedError(text)
        dimensions.append(int(digits))
    if dimensions and text == BFLOAT16:
        names = {EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""}
        item = pa.field("item", pa.binary(2), metadata=names)
    else:
        item = pa.field("item", _parse_scalar(text))
    for dimension in reversed(dimensions):
        item = pa.field("item", pa.list_(item, dimension))
    return item.type


def _is_dimension(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) <= 10 and 0 < int(digits) < 2**31


def _parse_scalar(text: str) -> pa.DataType:
    simple = SIMPLE_TYPES.get(text)
    if simple is not None:
        return simple
    kind, *rest = text.split(":")
    match kind, rest:
        case "timestamp", [unit, *zone] if zone:
            name = ":".join(zone)
            return pa.timestamp(unit, tz=None if name == "-" else name)
        case "decimal", ["128", precision, scale]:
            return pa.decimal128(_number(precision), _number(scale))
        case "decimal", ["256", precision, scale]:
            return pa.decimal256(_number(precision), _number(scale))
        case "fixed_size_binary", [width]:
            if not 0 <= _number(width) < 2**31:
                raise NotSupportedError(text)
            return pa.binary(_number(width))
        case "dict", [*value, index, ordered] if value[:1] != ["dict"] and index in _INDEX_TYPES:
            values = _parse_scalar(":".join(value))
            return pa.dictionary(SIMPLE_TYPES[index], values, ordered == "true")
    raise NotSupportedError(text)


def _number(text: str) -> int:
    if len(text) > 11:
        raise NotSupportedError(text)
    return int(text)


def arrow_to_logical(arrow: pa.DataType) -> str:
    """Return the logical type of a storage type (not of an extension type).

    Raises NotSupportedError for Arrow types that the format cannot store.
    """
    name = _NAMES.get(arrow)
    if name is not None:
        return name
    name = _parameterised(arrow) or _nested(arrow)
    if name is None:
        raise NotSupportedError(f"Lance cannot store columns of Arrow type {arrow}")
    return name


def _parameterised(arrow: pa.DataType) -> str | None:
    kinds = pa.types
    if kinds.is_timestamp(arrow):
        return f"timestamp:{arrow.unit}:{arrow.tz or '-'}"
    if kinds.is_decimal128(arrow):
        return f"decimal:128:{arrow.precision}:{arrow.scale}"
    if kinds.is_decimal256(arrow):
        return f"decimal:256:{arrow.precision}:{arrow.scale}"
    if kinds.is_fixed_size_binary(arrow):
        return f"fixed_size_binary:{arrow.byte_width}"
    if kinds.is_dictionary(arrow):
        value = arrow_to_logical(arrow.value_type)
        if ":" in value or is_nested(value):
            raise NotSupportedError(f"Lance cannot store dictionaries of {arrow.value_type}")
            # pylance drops the order flag too.
        return f"dict:{value}:{arrow_to_logical(arrow.index_type)}:false"
    return None


def _nested(arrow: pa.DataType) -> str | None:
    kinds = pa.types
    if kinds.is_struct(arrow):
        return STRUCT
    if kinds.is_list(arrow) or kinds.is_large_list(arrow):
        name = "large_list" if kinds.is_large_list(arrow) else "list"
        return f"{name}.struct" if kinds.is_struct(arrow.value_type) else name
    if kinds.is_map(arrow):
        if arrow.keys_sorted:
            raise NotSupportedError("Lance cannot store maps with sorted keys")
        return MAP
    if kinds.is_fixed_size_list(arrow):
        return f"fixed_size_list:{_fixed_size_item(arrow)}:{arrow.list_size}"
    return None


def _fixed_size_item(arrow: pa.FixedSizeListType) -> str:
    if arrow.list_size == 0:
        raise NotSupportedError("Lance cannot store fixed-size lists of dimension 0")
    names = arrow.value_field.metadata or {}
    if isinstance(arrow.value_type, pa.BaseExtensionType):
        name = arrow.value_type.extension_name.encode()
    else:
        name = names.get(EXTENSION_NAME.encode(), b"")
    if name == BFLOAT16.encode():
        return BFLOAT16
    item = arrow_to_logical(arrow.value_type)
    if item in (MAP, *LISTS, *LARGE_LISTS):
        raise NotSupportedError(f"Lance cannot store fixed-size lists of {arrow.value_type}")
    return item
