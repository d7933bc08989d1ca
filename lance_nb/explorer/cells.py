"""Format cells as bounded text: what the grid shows for values that are not plain numbers.

Layout: numbers, booleans and vectors travel as numbers (see ``row_page``). Everything else is text
made here: strings with invisible characters shown, temporal values in ISO form, binary values as
size and first bytes, nested values as JSON that stops when its budget is spent.

============  ==========================================================================
timestamp     ``2026-01-01T12:00:00.5``; with a zone it is an instant and ends in ``Z``
date          ``2026-01-01``
time          ``12:00:00.25``
duration      ``3000000 us``: a count of its unit, because seconds would hide it
interval      as Arrow prints it
blob          its size; a scan returns a description, a struct with ``size`` in bytes
              (``position`` in files of 2.1; ``kind``, ``blob_id`` and ``blob_uri`` in 2.2)
============  ==========================================================================

A temporal value outside the calendar is shown as the stored number with its unit.

Limits: ``budget`` characters per cell; of a list only what fits becomes Python objects, so a list
of a million items costs as much as one of thirty.
Source: lance_nb.table.blob_columns for descriptions of blobs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.explorer import text
from lance_nb.explorer.arrow_buffers import heads_of
from lance_nb.explorer.media import media_of
from lance_nb.shown_text import visible

_PER_SECOND = {"s": 0, "ms": 3, "us": 6, "ns": 9}
MAX_ITEMS = 32
MAX_DEPTH = 12
_HEX_BYTES = 16
_HEX_MOST = 512
_HEAD_BYTES = 64  # enough to know a picture and its size, JPEG's size excepted
_BLOB_KEY = b"lance-encoding:blob"
BLOB_TYPE = "blob"


def temporal_text(scalar: Any) -> str:
    """Write one valid temporal value."""
    kind = scalar.type
    if pa.types.is_timestamp(kind):
        return _timestamp(scalar.value, kind.unit) + ("Z" if kind.tz else "")
    if pa.types.is_date32(kind):
        return _calendar(scalar.value, "D")
    if pa.types.is_date64(kind):
        return _calendar(scalar.value, "ms").partition("T")[0]
    if pa.types.is_time(kind):
        return _time(scalar.value, kind.unit)
    if pa.types.is_duration(kind):
        return f"{scalar.value} {kind.unit}"
    return str(scalar.as_py())


def _calendar(value: int, unit: str) -> str:
    moment = np.int64(value).view(f"datetime64[{unit}]")
    return f"{value} {unit}" if np.isnat(moment) else str(moment)


def _timestamp(value: int, unit: str) -> str:
    shown = _calendar(value, unit)
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _time(value: int, unit: str) -> str:
    digits = _PER_SECOND[unit]
    seconds, fraction = divmod(value, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    tail = f"{fraction:0{digits}}".rstrip("0") if fraction else ""
    return f"{hour:02}:{minute:02}:{second:02}" + (f".{tail}" if tail else "")


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
    """Size and first bytes; of a picture or a sound what it is and its size."""
    if not size_bytes:
        return "0 B"
    media = media_of(head, size_bytes)
    if media.kind != "bytes":
        return f"{media.label} · {text.size(size_bytes)}"
    more = text.ELLIPSIS if size_bytes > hex_bytes else ""
    return f"{text.size(size_bytes)} · {head[:hex_bytes].hex(' ')}{more}"


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
    for index in range(min(len(values), MAX_ITEMS)):
        if index:
            yield ", "
        yield from _tokens(values[index], depth + 1)
    if len(values) > MAX_ITEMS:
        yield f", {text.ELLIPSIS} {text.count(len(values))} items"
    yield "]"


def _struct_tokens(scalar: Any, depth: int) -> Iterator[str]:
    yield "{"
    for index in range(min(scalar.type.num_fields, MAX_ITEMS)):
        if index:
            yield ", "
        yield _quoted(scalar.type.field(index).name)
        yield ": "
        yield from _tokens(scalar[index], depth + 1)
    if scalar.type.num_fields > MAX_ITEMS:
        yield f", {text.ELLIPSIS}"
    yield "}"


def _map_tokens(scalar: Any, depth: int) -> Iterator[str]:
    entries = scalar.values
    yield "{"
    for index in range(min(len(entries), MAX_ITEMS)):
        if index:
            yield ", "
        yield from _tokens(entries[index][0], depth + 1)
        yield ": "
        yield from _tokens(entries[index][1], depth + 1)
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


def is_vector(kind: pa.DataType) -> bool:
    """Whether values are vectors that can be placed: lists of one length of two floats or more."""
    return bool(
        pa.types.is_fixed_size_list(kind)
        and kind.list_size > 1
        and pa.types.is_floating(kind.value_type)
    )


def vector_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of vectors that can be placed."""
    return [field.name for field in schema if is_vector(field.type)]


def text_columns(schema: pa.Schema) -> list[str]:
    """Return the columns whose values are texts, which can be scanned."""
    kinds = {
        field.name: field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in schema
    }
    return [field.name for field in schema if is_text(kinds[field.name])]


def is_blob_field(field: pa.Field) -> bool:
    """Whether the schema says that the values of a column are blobs."""
    return (field.metadata or {}).get(_BLOB_KEY) == b"true"


def is_blob_description(field: pa.Field) -> bool:
    """Tell whether a column of a scan describes blobs."""
    kind = field.type
    marked = (field.metadata or {}).get(_BLOB_KEY) == b"true"
    return bool(marked and pa.types.is_struct(kind) and kind.get_field_index("size") >= 0)


def blob_texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Say how long each blob is; None for null."""
    import pyarrow.compute as pc

    sizes = pc.struct_field(plain(column), "size").to_pylist()
    return [None if size is None else text.size(size) for size in sizes]
