"""Parse type names to Arrow types: those of SQL (CAST) and of Rust (arrow_cast, arrow_typeof).

SQL: int, tinyint, smallint, bigint (each also unsigned), float, double, string, binary, boolean,
date, timestamp(precision), datetime, decimal(p, s), time, real.

Rust: ``Int64``, ``Utf8``, ``Timestamp(Nanosecond, Some("UTC"))`` or ``Timestamp(ns, "UTC")``,
``List(Int64)``, ``List(non-null Int64, field: 'x')``, ``FixedSizeList(4 x Float32)`` or
``FixedSizeList(4, Float32)``, ``Struct("a": Int64, "b": non-null Utf8)``, ``Dictionary(Int32,
Utf8)``, ``Map("entries": Struct("key": Utf8, "value": Int64), unsorted)``, ``Decimal128(10, 2)``,
``FixedSizeBinary(16)``, ...

Limits: names of at most ``CHARS_MAX`` characters, ``DEPTH_MAX`` levels. Intervals, unions and
run-end encoded types cannot be columns and are not read.
Source: behaviour of pylance 14.0.2, whose parser is that of arrow-rs.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.types as pt

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


def type_of(node: Any, cast: Any, *, nanoseconds: bool = False) -> pa.DataType:
    """Return the Arrow type of a sqlglot DataType.

    ``nanoseconds``: times and timestamps without a precision count these, not microseconds.
    Raises PredicateError for an unknown one, which names the node of the cast.
    """
    name = str(getattr(node.this, "value", node.this)).upper()
    numbers = [_number(expression) for expression in node.expressions or ()]
    if name == "TIME" and not numbers and nanoseconds:
        return pa.time64("ns")
    if name in _TYPES and not numbers:
        return _TYPES[name]
    if name in _TYPES and _TYPES[name] == pa.string():
        return pa.string()
    if name in _TIMESTAMPS:
        precision = numbers[0] if numbers else 9 if nanoseconds else 6
        if precision in _UNIT_OF_PRECISION:
            return pa.timestamp(_UNIT_OF_PRECISION[precision])
    if name == "TIMESTAMPTZ":
        return pa.timestamp("ns" if nanoseconds else "us", "UTC")
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


CHARS_MAX = 10_000
DEPTH_MAX = 32
_NAMES = {
    "Boolean": pa.bool_(), "Int8": pa.int8(), "Int16": pa.int16(), "Int32": pa.int32(),
    "Int64": pa.int64(), "UInt8": pa.uint8(), "UInt16": pa.uint16(), "UInt32": pa.uint32(),
    "UInt64": pa.uint64(), "Float16": pa.float16(), "Float32": pa.float32(),
    "Float64": pa.float64(), "Utf8": pa.string(), "LargeUtf8": pa.large_string(),
    "Utf8View": pa.string_view(), "Binary": pa.binary(), "LargeBinary": pa.large_binary(),
    "BinaryView": pa.binary_view(), "Date32": pa.date32(), "Date64": pa.date64(),
    "Null": pa.null(),
}  # fmt: skip
_OF_TYPES = {type_: name for name, type_ in _NAMES.items()}
_UNITS = {
    "Second": "s", "Millisecond": "ms", "Microsecond": "us", "Nanosecond": "ns",
    "s": "s", "ms": "ms", "us": "us", "\u00b5s": "us", "ns": "ns",
}  # fmt: skip
_SIGNS = {"s": "s", "ms": "ms", "us": "\u00b5s", "ns": "ns"}
_DECIMALS = {"Decimal32": (9, 32), "Decimal64": (18, 64), "Decimal128": (38, 128),
             "Decimal256": (76, 256)}  # fmt: skip
_LISTS = {"List": "list_", "LargeList": "large_list", "ListView": "list_view",
          "LargeListView": "large_list_view"}  # fmt: skip
_TOKEN = re.compile(
    r"""\s+|(?P<text>"(?:[^"\\]|\\.)*")|'(?P<name>[^']*)'|(?P<word>[^\W\d]\w*(?:-null)?)"""
    r"""|(?P<number>-?\d+)|(?P<sign>[(),:])"""
)


def type_named(name: str) -> pa.DataType:
    """Read the name of a type. Raises PredicateError, which tells what is wrong."""
    return _Parser(name).parse()


class _Parser:
    """Reads one name, token by token."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._place = 0
        self._depth = 0
        if len(name) > CHARS_MAX:
            self._refuse(f"it has more than {CHARS_MAX:,} characters")
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(name):
            match = _TOKEN.match(name, place)
            if match is None:
                self._refuse(f"unexpected {name[place]!r} at character {place}")
            if match.lastgroup is not None:
                self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()

    def parse(self) -> pa.DataType:
        data_type = self._type()
        if self._place < len(self._tokens):
            self._refuse(f"unexpected {self._tokens[self._place][1]!r} after the type")
        return data_type

    def _refuse(self, problem: str) -> NoReturn:
        shown = self._name if len(self._name) <= 80 else self._name[:79] + "…"
        raise PredicateError(
            f"no Arrow type named {shown!r}: {problem}; names are like Int64, Utf8, Date32, "
            "Timestamp(Microsecond, None), List(Int64), FixedSizeList(4, Float32)"
        )

    # Tokens.

    def _peek(self) -> str:
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    def _next(self, kind: str = "") -> str:
        if self._place >= len(self._tokens):
            self._refuse("it ends too early")
        token_kind, text = self._tokens[self._place]
        if kind and token_kind != kind:
            self._refuse(f"expected a {kind}, not {text!r}")
        self._place += 1
        return text

    def _expect(self, text: str) -> None:
        token = self._next()
        if token != text:
            self._refuse(f"expected {text!r}, not {token!r}")

    def _takes(self, text: str) -> bool:
        if self._peek() != text:
            return False
        self._place += 1
        return True

    def _number(self) -> int:
        text = self._next("number")
        if len(text) > 10:
            self._refuse(f"{text} is too large")
        return int(text)

    def _quoted(self) -> str:
        return re.sub(r"\\(.)", r"\1", self._next("text")[1:-1])

    # Types.

    def _type(self) -> pa.DataType:
        word = self._next("word")
        if word in _NAMES:
            return _NAMES[word]
        method: Any = getattr(self, f"_{word.lower()}", None) if word in _PARSED else None
        if word in _LISTS:
            method = self._list
        elif word in _DECIMALS:
            method = self._decimal
        if method is None:
            self._refuse(f"unknown type {word!r}")
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._refuse(f"it is nested more than {DEPTH_MAX} deep")
        self._expect("(")
        data_type: pa.DataType = method(word)
        self._expect(")")
        self._depth -= 1
        return data_type

    def _field(self, name: str) -> pa.Field:
        nullable = not self._takes("non-null")
        if nullable:
            self._takes("nullable")
        return pa.field(name, self._type(), nullable)

    def _item(self) -> pa.Field:
        """Read the type of a list's elements, and the name of their field if it is given."""
        item = self._field("item")
        if self._takes(","):
            self._expect("field")
            self._expect(":")
            item = item.with_name(self._next("name"))
        return item

    def _list(self, word: str) -> pa.DataType:
        make = getattr(pa, _LISTS[word])
        return make(self._item())

    def _fixedsizelist(self, _word: str) -> pa.DataType:
        size = self._number()
        if not self._takes("x"):
            self._expect(",")
        item = self._item()
        if not 0 < size < 1 << 31:
            self._refuse(f"a list of {size} elements")
        return pa.list_(item, size)

    def _fixedsizebinary(self, _word: str) -> pa.DataType:
        size = self._number()
        if not 0 <= size < 1 << 31:
            self._refuse(f"{size} bytes")
        return pa.binary(size)

    def _decimal(self, word: str) -> pa.DataType:
        most, bits = _DECIMALS[word]
        precision = self._number()
        self._expect(",")
        scale = self._number()
        if not 0 < precision <= most or not -128 <= scale <= most:
            self._refuse(f"{word} has 1 to {most} digits")
        return getattr(pa, f"decimal{bits}")(precision, scale)

    def _unit(self, units: str) -> str:
        text = self._next()
        unit = _UNITS.get(text)
        if unit is None or unit not in units.split():
            self._refuse(f"no unit {text!r} here")
        return unit

    def _timestamp(self, _word: str) -> pa.DataType:
        unit = self._unit("s ms us ns")
        if not self._takes(","):
            return pa.timestamp(unit)
        if self._takes("None"):
            return pa.timestamp(unit)
        is_some = self._takes("Some")
        if is_some:
            self._expect("(")
        zone = self._quoted()
        if is_some:
            self._expect(")")
        if not zone:
            self._refuse("the time zone is empty")
        return pa.timestamp(unit, zone)

    def _time32(self, _word: str) -> pa.DataType:
        return pa.time32(self._unit("s ms"))

    def _time64(self, _word: str) -> pa.DataType:
        return pa.time64(self._unit("us ns"))

    def _duration(self, _word: str) -> pa.DataType:
        return pa.duration(self._unit("s ms us ns"))

    def _dictionary(self, _word: str) -> pa.DataType:
        index = self._type()
        self._expect(",")
        values = self._type()
        if not pt.is_integer(index):
            self._refuse(f"a dictionary has integers as indices, not {index}")
        return pa.dictionary(index, values)

    def _struct(self, _word: str) -> pa.DataType:
        fields: list[pa.Field] = []
        while self._peek() != ")":
            if fields:
                self._expect(",")
            name = self._quoted()
            self._expect(":")
            fields.append(self._field(name))
        return pa.struct(fields)

    def _map(self, _word: str) -> pa.DataType:
        self._quoted()
        self._expect(":")
        entries = self._field("entries").type
        self._expect(",")
        order = self._next("word")
        if order not in {"sorted", "unsorted"} or not pt.is_struct(entries):
            self._refuse('a map is Map("entries": Struct("key": ..., "value": ...), unsorted)')
        if entries.num_fields != 2:
            self._refuse("the entries of a map have a key and a value")
        key, value = entries.field(0).with_nullable(False), entries.field(1)
        return pa.map_(key, value, keys_sorted=order == "sorted")


_PARSED = frozenset({
    "FixedSizeList", "FixedSizeBinary", "Timestamp", "Time32", "Time64", "Duration", "Dictionary",
    "Struct", "Map",
})  # fmt: skip


def shown_type(type_: pa.DataType) -> str:
    """Return the name of a type. Raises PredicateError for one that has none here."""
    if type_ in _OF_TYPES:
        return _OF_TYPES[type_]
    if pt.is_timestamp(type_):
        zone = f', "{type_.tz}"' if type_.tz else ""
        return f"Timestamp({_SIGNS[type_.unit]}{zone})"
    if pt.is_time(type_):
        return f"Time{type_.bit_width}({_SIGNS[type_.unit]})"
    if pt.is_duration(type_):
        return f"Duration({_SIGNS[type_.unit]})"
    if pt.is_decimal(type_):
        return f"Decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if pt.is_fixed_size_binary(type_):
        return f"FixedSizeBinary({type_.byte_width})"
    if pt.is_dictionary(type_):
        return f"Dictionary({shown_type(type_.index_type)}, {shown_type(type_.value_type)})"
    if pt.is_struct(type_):
        fields = (type_.field(number) for number in range(type_.num_fields))
        shown = (f"{_quote(field.name)}: {_shown_field(field)}" for field in fields)
        return f"Struct({', '.join(shown)})"
    if pt.is_map(type_):
        entries = (
            f'"key": {_shown_field(type_.key_field)}, "value": {_shown_field(type_.item_field)}'
        )
        order = "sorted" if type_.keys_sorted else "unsorted"
        return f'Map("entries": non-null Struct({entries}), {order})'
    if pt.is_fixed_size_list(type_):
        return f"FixedSizeList({type_.list_size} x {_shown_item(type_.value_field)})"
    if pt.is_list(type_) or pt.is_large_list(type_):
        kind = "LargeList" if pt.is_large_list(type_) else "List"
        return f"{kind}({_shown_item(type_.value_field)})"
    raise PredicateError(f"arrow_typeof does not name {type_}")


def _quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _shown_field(field: pa.Field) -> str:
    return ("" if field.nullable else "non-null ") + shown_type(field.type)


def _shown_item(field: pa.Field) -> str:
    name = "" if field.name == "item" else f", field: '{field.name}'"
    return _shown_field(field) + name
