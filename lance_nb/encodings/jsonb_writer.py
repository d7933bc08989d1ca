"""JSON text to JSONB: what is stored for a JSON column.

Layout: see jsonb.py. Keys of an object are sorted by their bytes, the last of equal ones wins;
integers take 1, 2, 4 or 8 bytes, signed only when negative; zero is one byte.

Limits: integers beyond 64 bits become doubles. One document after the other, in Python: a document
has no shape that numpy could use. Nesting as deep as the reader's.
Not supported: NaN and infinities, which are no JSON.
Source: the bytes pylance 14.0.2 writes for ``pa.json_()`` columns.
"""

from __future__ import annotations

import json
import struct
from operator import itemgetter
from typing import Any

import pyarrow as pa

from lance_nb.encodings.jsonb import DEPTH_MAX
from lance_nb.errors import InvalidInputError

_ARRAY, _OBJECT, _SCALAR = 0x80000000, 0x40000000, 0x20000000
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _CONTAINER = range(6)


def documents(texts: pa.Array, path: str) -> pa.Array:
    """Return texts as JSONB (large_binary). Raises InvalidInputError naming column and row."""
    found: list[bytes | None] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            found.append(None if text is None else from_text(text))
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"column {path!r}, row {row}: not JSON: {error}") from error
    return pa.array(found, pa.large_binary())


def from_text(text: str) -> bytes:
    """Encode one document. Raises ValueError (InvalidInputError among them)."""
    kind, body = _item(json.loads(text, parse_constant=_refuse), DEPTH_MAX)
    if kind == _CONTAINER:
        return body
    return struct.pack(">II", _SCALAR, kind << 28 | len(body)) + body


def _refuse(word: str) -> None:
    raise InvalidInputError(f"{word} is no JSON number")


def _item(value: Any, depth: int) -> tuple[int, bytes]:
    if not depth:
        raise InvalidInputError(f"more than {DEPTH_MAX} levels")
    if value is None:
        return _NULL, b""
    if value is True or value is False:
        return (_TRUE if value else _FALSE), b""
    if isinstance(value, str):
        return _STRING, value.encode()
    if isinstance(value, (int, float)):
        return _NUMBER, _number(value)
    if isinstance(value, list):
        return _CONTAINER, _container(_ARRAY, len(value), [_item(one, depth - 1) for one in value])
    pairs = sorted(((key.encode(), one) for key, one in value.items()), key=itemgetter(0))
    items = [(_STRING, key) for key, _ in pairs] + [_item(one, depth - 1) for _, one in pairs]
    return _CONTAINER, _container(_OBJECT, len(pairs), items)


def _container(kind: int, count: int, items: list[tuple[int, bytes]]) -> bytes:
    entries = [item << 28 | len(body) for item, body in items]
    header = struct.pack(f">{1 + len(entries)}I", kind | count, *entries)
    return header + b"".join(body for _, body in items)


def _number(value: float) -> bytes:
    if isinstance(value, int):
        if value == 0:
            return b"\0"
        if -(1 << 63) <= value < 1 << 64:
            return _integer(value)
        value = float(value)
    return b"\x60" + struct.pack(">d", value)


def _integer(value: int) -> bytes:
    signed = value < 0
    bits = (-value - 1).bit_length() + 1 if signed else value.bit_length()
    width = next(size for size in (1, 2, 4, 8) if bits <= 8 * size)
    return (b"\x40" if signed else b"\x50") + value.to_bytes(width, "big", signed=signed)
