"""JSONB and JSON text: how the values of a JSON column are stored.

Layout (integers big endian)::

    u32 header     0x80000000 array, 0x40000000 object, 0x20000000 scalar; low 29 bits: count
    u32 entries    one per item (array), per key then per value (object), one (scalar):
                   top 4 bits the type, low 28 bits the length in bytes
    bytes          the items, or keys then values, back to back

    entry types    0 null, 1 string (UTF-8), 2 number, 3 false, 4 true, 5 array or object
    numbers        no byte or 0x00: zero; 0x40 signed, 0x50 unsigned, followed by 1, 2, 4 or 8
                   bytes; 0x60 double; 0x10 NaN, 0x20 infinity, 0x30 minus infinity

Worked example: ``20000000 20000002 50ff`` is 255.

Writing: keys of an object are sorted by their bytes, the last of equal ones wins. Integers are
signed only when negative, zero is one byte, and integers beyond 64 bits become doubles.

Limits: at most ``DEPTH_MAX`` levels. This is the one codec that visits values one by one in Python:
a document has no shape that numpy could use.
Not supported: decimals and the other extension types of newer writers; NaN and infinities are not
written, because JSON has none.
Source: the bytes pylance 14.0.2 writes for ``pa.json_()`` columns (format of the jsonb crate).
"""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.base import corrupt
from lance_nb.errors import InvalidInputError, NotSupportedError

DEPTH_MAX = 100
_ARRAY, _OBJECT, _SCALAR = 0x80000000, 0x40000000, 0x20000000
_COUNT_MASK = 0x1FFFFFFF
_LENGTH_MASK = 0x0FFFFFFF
_INTEGER_WIDTHS = (1, 2, 4, 8)
_WORDS = {0x10: "NaN", 0x20: "Infinity", 0x30: "-Infinity"}
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _CONTAINER = range(6)


def texts(documents: pa.LargeBinaryArray) -> pa.LargeStringArray:
    """Return the documents as JSON text; nulls stay null. Each distinct document is read once.

    Raises CorruptFileError, NotSupportedError.
    """
    distinct = pc.dictionary_encode(documents)
    distinct_texts = [to_text(memoryview(document)) for document in distinct.dictionary.to_pylist()]
    return pc.take(pa.array(distinct_texts, pa.large_string()), distinct.indices)


def to_text(document: memoryview) -> str:
    """Write one document as compact JSON text. Raises CorruptFileError, NotSupportedError."""
    if not len(document):
        return "null"
    return _container_text(document, DEPTH_MAX)


def _container_text(data: memoryview, depth: int) -> str:
    if not depth:
        raise corrupt(f"JSON of at most {DEPTH_MAX} levels", f"level {DEPTH_MAX + 1}")
    header = _word(data, 0)
    kind, count = header & ~_COUNT_MASK, header & _COUNT_MASK
    entries = 2 * count if kind == _OBJECT else 1 if kind == _SCALAR else count
    start = 4 + 4 * entries
    if kind not in (_ARRAY, _OBJECT, _SCALAR) or start > len(data):
        raise corrupt("a JSON array, object or scalar", f"header {header:#010x}")
    items = []
    for number in range(entries):
        entry = _word(data, 4 + 4 * number)
        stop = start + (entry & _LENGTH_MASK)
        if stop > len(data):
            raise corrupt("JSON items inside their document", f"one up to byte {stop}")
        items.append(_item_text(entry >> 28, data[start:stop], depth))
        start = stop
    if kind == _SCALAR:
        return items[0]
    if kind == _ARRAY:
        return f"[{','.join(items)}]"
    pairs = zip(items[:count], items[count:], strict=True)
    return "{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}"


def _item_text(kind: int, data: memoryview, depth: int) -> str:
    match kind:
        case 0:
            return "null"
        case 1:
            return _string_text(data)
        case 2:
            return _number_text(data)
        case 3:
            return "false"
        case 4:
            return "true"
        case 5:
            return _container_text(data, depth - 1)
    raise NotSupportedError(f"JSON values of type {kind} cannot be read by this release")


def _string_text(data: memoryview) -> str:
    try:
        return json.dumps(str(data, "utf-8"), ensure_ascii=False)
    except UnicodeDecodeError as exc:
        raise corrupt("JSON text in UTF-8", str(exc)) from exc


def _number_text(data: memoryview) -> str:
    if not len(data):
        return "0"
    kind, body = data[0], data[1:]
    if kind == 0x00:
        return "0"
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in (0x40, 0x50) and len(body) in _INTEGER_WIDTHS:
        return str(int.from_bytes(body, "big", signed=kind == 0x40))
    if kind == 0x60 and len(body) == 8:
        (value,) = struct.unpack(">d", body)
        return _double(value)
    if kind in (0x40, 0x50, 0x60):
        raise corrupt("a JSON number of 1, 2, 4 or 8 bytes", f"{len(body)} bytes")
    raise NotSupportedError(f"JSON numbers of kind {kind:#x} cannot be read by this release")


def _double(value: float) -> str:
    """Write the shortest digits, with an exponent where the reference has one: 0.00001, 1e-6."""
    text = repr(value)
    if text.endswith("e-05"):
        return format(Decimal(text), "f")
    return text.replace("e-0", "e-")


def _word(data: memoryview, start: int) -> int:
    if start + 4 > len(data):
        raise corrupt("a JSON document of whole words", f"{len(data)} bytes")
    return int.from_bytes(data[start : start + 4], "big")


def documents(texts: pa.Array, path: str) -> pa.Array:
    """Return texts as JSONB (large_binary). Raises InvalidInputError naming column and row."""
    encoded: list[bytes | None] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            encoded.append(None if text is None else from_text(text))
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"column {path!r}, row {row}: not JSON: {error}") from error
    return pa.array(encoded, pa.large_binary())


def from_text(text: str) -> bytes:
    """Encode one document. Raises ValueError (InvalidInputError among them)."""
    kind, body = _item_bytes(json.loads(text, parse_constant=_refuse), DEPTH_MAX)
    if kind == _CONTAINER:
        return body
    return struct.pack(">II", _SCALAR, kind << 28 | len(body)) + body


def _refuse(word: str) -> None:
    raise InvalidInputError(f"{word} is no JSON number")


def _item_bytes(value: Any, depth: int) -> tuple[int, bytes]:
    if not depth:
        raise InvalidInputError(f"more than {DEPTH_MAX} levels")
    if value is None:
        return _NULL, b""
    if value is True or value is False:
        return (_TRUE if value else _FALSE), b""
    if isinstance(value, str):
        return _STRING, value.encode()
    if isinstance(value, (int, float)):
        return _NUMBER, _number_bytes(value)
    if isinstance(value, list):
        return _CONTAINER, _container_bytes(
            _ARRAY, len(value), [_item_bytes(item, depth - 1) for item in value]
        )
    pairs = sorted(((key.encode(), item) for key, item in value.items()), key=itemgetter(0))
    items = [(_STRING, key) for key, _ in pairs] + [
        _item_bytes(item, depth - 1) for _, item in pairs
    ]
    return _CONTAINER, _container_bytes(_OBJECT, len(pairs), items)


def _container_bytes(kind: int, count: int, items: list[tuple[int, bytes]]) -> bytes:
    entries = [item << 28 | len(body) for item, body in items]
    header = struct.pack(f">{1 + len(entries)}I", kind | count, *entries)
    return header + b"".join(body for _, body in items)


def _number_bytes(value: float) -> bytes:
    if isinstance(value, int):
        if value == 0:
            return b"\0"
        if -(1 << 63) <= value < 1 << 64:
            return _integer_bytes(value)
        value = float(value)
    return b"\x60" + struct.pack(">d", value)


def _integer_bytes(value: int) -> bytes:
    signed = value < 0
    bits = (-value - 1).bit_length() + 1 if signed else value.bit_length()
    width = next(size for size in (1, 2, 4, 8) if bits <= 8 * size)
    return (b"\x40" if signed else b"\x50") + value.to_bytes(width, "big", signed=signed)
