"""Cells as bounded text: what stands in the grid for values that are not plain numbers.

Layout: numbers, booleans and vectors travel as numbers (see ``row_page``). Everything else is text
made here: strings with invisible characters shown, timestamps in ISO form, binary as size and first
bytes, nested values as JSON that stops when its budget is spent.

Limits: ``budget`` characters per cell; of a list only what fits is ever turned into Python objects,
so a list of a million items costs as much as one of thirty.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lance_nb.explorer.models import text
from lance_nb.explorer.models.arrow_buffers import heads_of
from lance_nb.explorer.models.media import media_of
from lance_nb.explorer.models.temporal import temporal_text
from lance_nb.shown_text import visible

MAX_ITEMS = 32
MAX_DEPTH = 12
_HEX_BYTES = 16
_HEX_MOST = 512
_HEAD_BYTES = 64  # enough to know a picture and its size, JPEG's size excepted


def cell_texts(column: pa.Array | pa.ChunkedArray, budget: int) -> list[str | None]:
    """Every value of ``column`` as text of about ``budget`` characters; ``None`` for null."""
    column = plain(column)
    kind = column.type
    if is_text(kind):
        heads = heads_of(column, budget * 4)
        return [None if head is None else _decoded(head[0], budget) for head in heads]
    if is_binary(kind):
        heads = heads_of(column, _HEAD_BYTES)
        return [None if head is None else _binary(*head, _HEX_BYTES) for head in heads]
    return [scalar_text(scalar, budget) if scalar.is_valid else None for scalar in column]


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One contiguous array of stored values: dictionaries decoded, extension types taken off."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    while isinstance(column, (pa.DictionaryArray, pa.ExtensionArray)):
        dictionary = isinstance(column, pa.DictionaryArray)
        column = column.dictionary_decode() if dictionary else column.storage
    return column


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are strings."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_binary(kind: pa.DataType) -> bool:
    """Whether values of this type are opaque bytes."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def is_nested(kind: pa.DataType) -> bool:
    """Whether values of this type hold other values."""
    return bool(pa.types.is_nested(kind))


def scalar_text(scalar: pa.Scalar, budget: int = text.CELL_BYTES) -> str:
    """One value as text of about ``budget`` characters."""
    kind = scalar.type
    if scalar.is_valid and is_text(kind):
        return _string(scalar, budget)
    if scalar.is_valid and is_binary(kind):
        data = scalar.as_buffer()
        shown = max(_HEX_BYTES, min(budget // 4, _HEX_MOST))
        return _binary(data[:shown].to_pybytes(), len(data), shown)
    return text.cut("".join(_budgeted(_tokens(scalar, 0), budget)), budget)


def _string(scalar: Any, budget: int) -> str:
    return _decoded(scalar.as_buffer()[: budget * 4].to_pybytes(), budget)


def _decoded(raw: bytes, budget: int) -> str:
    """Invalid UTF-8 is shown with replacement characters, never raised."""
    return text.cut(visible(raw.decode("utf-8", "replace")), budget)


def _binary(head: bytes, size_bytes: int, hex_bytes: int) -> str:
    """Size and first bytes; of a picture or a sound what it is as well."""
    if not size_bytes:
        return "0 B"
    found = media_of(head, size_bytes)
    known = "" if found.kind == "bytes" else f"{found.label} · "
    more = text.ELLIPSIS if size_bytes > hex_bytes else ""
    return f"{known}{text.size(size_bytes)} · {head[:hex_bytes].hex(' ')}{more}"


def _budgeted(tokens: Iterator[str], budget: int) -> Iterator[str]:
    """Pass tokens on until ``budget`` characters are spent, then one ellipsis."""
    spent = 0
    for token in tokens:
        spent += len(token)
        if spent > budget:
            yield text.cut(token, max(1, budget - spent + len(token)))
            return
        yield token


def _tokens(scalar: pa.Scalar, depth: int) -> Iterator[str]:
    """One value as pieces of JSON, made only as far as they are asked for."""
    if not scalar.is_valid:
        yield "null"
        return
    kind = scalar.type
    if depth >= MAX_DEPTH:
        yield text.ELLIPSIS
    elif isinstance(scalar, (pa.ExtensionScalar, pa.DictionaryScalar)):
        yield from _tokens(_inner(scalar), depth)
    elif pa.types.is_map(kind):
        yield from _map_tokens(scalar, depth)
    elif pa.types.is_struct(kind):
        yield from _struct_tokens(scalar, depth)
    elif is_nested(kind) and hasattr(scalar, "values"):
        yield from _list_tokens(scalar.values, depth)
    else:
        yield _leaf(scalar, quoted=depth > 0)


def _inner(scalar: Any) -> pa.Scalar:
    return scalar.value


def _list_tokens(values: pa.Array, depth: int) -> Iterator[str]:
    yield "["
    for at in range(min(len(values), MAX_ITEMS)):
        if at:
            yield ", "
        yield from _tokens(values[at], depth + 1)
    if len(values) > MAX_ITEMS:
        yield f", {text.ELLIPSIS} {text.count(len(values))} items"
    yield "]"


def _struct_tokens(scalar: Any, depth: int) -> Iterator[str]:
    yield "{"
    for at in range(min(scalar.type.num_fields, MAX_ITEMS)):
        if at:
            yield ", "
        yield _quoted(scalar.type.field(at).name)
        yield ": "
        yield from _tokens(scalar[at], depth + 1)
    if scalar.type.num_fields > MAX_ITEMS:
        yield f", {text.ELLIPSIS}"
    yield "}"


def _map_tokens(scalar: Any, depth: int) -> Iterator[str]:
    entries = scalar.values
    yield "{"
    for at in range(min(len(entries), MAX_ITEMS)):
        if at:
            yield ", "
        yield from _tokens(entries[at][0], depth + 1)
        yield ": "
        yield from _tokens(entries[at][1], depth + 1)
    if len(entries) > MAX_ITEMS:
        yield f", {text.ELLIPSIS} {text.count(len(entries))} items"
    yield "}"


def _leaf(scalar: pa.Scalar, *, quoted: bool) -> str:
    kind = scalar.type
    if is_text(kind):
        return _quoted(_string(scalar, text.CELL_BYTES))
    if is_binary(kind):
        return f"<{text.size(len(scalar.as_buffer()))}>"
    if pa.types.is_boolean(kind):
        return "true" if scalar.as_py() else "false"
    if pa.types.is_temporal(kind):
        shown = temporal_text(scalar)
        return f'"{shown}"' if quoted else shown
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        return _narrow_float(scalar)
    value = scalar.as_py()
    return "NaN" if isinstance(value, float) and math.isnan(value) else str(value)


def _narrow_float(scalar: pa.Scalar) -> str:
    """Return the shortest digits that give the same value in its own width."""
    import numpy as np

    width = np.float16 if pa.types.is_float16(scalar.type) else np.float32
    value = width(scalar.as_py())
    return "NaN" if np.isnan(value) else str(value)


def _quoted(value: str) -> str:
    return json.dumps(visible(value), ensure_ascii=False)
