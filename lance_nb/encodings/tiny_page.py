"""Pages of a few plain values, encoded without statistics or a choice of codecs.

A row appended to a table, or a table of a thousand columns and ten rows, is made of such pages.
``page_encoder`` takes fifty small steps for each of them and ends in the same bytes.

Layout: one mini-block chunk of flat or variable values (see ``layouts/mini_block_layout``)::

    u16 levels | u16 bytes of definition, if any | u16 or u32 bytes of values (u32 from 2.2 on)
    definition levels as u16, values; each part padded to 8 bytes

From file version 2.2 on values that are all the same become a constant page.

Limits: ``VALUES_MAX`` values that need no more room than ``_FIXED_BYTES_MAX`` (numbers) or
``_TEXT_BYTES_MAX`` (strings with 32-bit offsets, each below the width of full-zip), without lists
and without encoding options of the field. ``encode_tiny`` returns None for everything else, which
``page_encoder`` encodes.
Source: bytes of ``page_encoder.encode_leaf_page``, which the tests compare with.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import cast

import numpy as np
import pyarrow as pa

from lance_nb._pb import encodings21
from lance_nb.encodings.base import VariableWidth
from lance_nb.encodings.compress_base import EncodedPage, PageLevels
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.single_value import scalar_buffer

VALUES_MAX = 63  # from 64 on a page may get a dictionary
_FIXED_BYTES_MAX = 128  # the least that a bit-packed chunk takes: up to here it saves nothing
_TEXT_BYTES_MAX = 4096
_LONGEST = 256  # bytes of one string from which on it is wide
_LEVEL_BITS, _OFFSET_BITS = 16, 32
_FIXED = frozenset(
    getattr(pa.lib, f"Type_{name}")
    for name in (
        *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
        *("HALF_FLOAT", "FLOAT", "DOUBLE", "DATE32", "DATE64", "TIME32", "TIME64"),
        *("TIMESTAMP", "DURATION"),
    )
)
_TEXTS = frozenset((pa.lib.Type_STRING, pa.lib.Type_BINARY))
_DEFAULTS = tuple(EncodingOptions(file_version=version) for version in ((2, 2), (2, 1)))


def encode_tiny(leaf: pa.Array, levels: PageLevels, options: EncodingOptions) -> EncodedPage | None:
    """Encode the page if it is tiny and plain; None for any other page."""
    count = len(leaf)
    if not 0 < count <= VALUES_MAX or levels.repetition is not None or options not in _DEFAULTS:
        return None
    definition = levels.definition
    if definition is not None and bool(definition.all()):
        return None
    kind = leaf.type.id
    if kind in _FIXED:
        bits = leaf.type.bit_width
        if count * bits > 8 * _FIXED_BYTES_MAX:
            return None
        values, single = _fixed(leaf, bits // 8)
    elif kind in _TEXTS:
        bits = 0
        encoded = _texts(leaf)
        if encoded is None:
            return None
        values, single = encoded
    else:
        return None
    if single is not None and definition is None and options.has_large_chunks:
        return _constant(single, bits, levels)
    return _chunk(values, bits, levels, options.has_large_chunks)


def _fixed(leaf: pa.Array, size: int) -> tuple[bytes, bytes | None]:
    """Return the values back to back, and the one value if they are all the same."""
    count = len(leaf)
    buffer = leaf.buffers()[1]
    values = (
        bytes(count * size) if buffer is None else _cut(buffer, leaf.offset * size, count * size)
    )
    return values, values[:size] if values == values[:size] * count else None


def _texts(leaf: pa.Array) -> tuple[bytes, bytes | None] | None:
    """Return offsets, counted from their own beginning, and bytes; None for what is too long."""
    count = len(leaf)
    _, offsets_buffer, data_buffer = leaf.buffers()
    if offsets_buffer is None:
        return None
    offsets = np.frombuffer(offsets_buffer, np.int32, count + 1, 4 * leaf.offset)
    first, stop = int(offsets[0]), int(offsets[-1])
    size = stop - first
    if size > _TEXT_BYTES_MAX:
        return None
    if size >= _LONGEST and int((offsets[1:] - offsets[:-1]).max()) >= _LONGEST:
        return None
    data = _cut(data_buffer, first, size) if size else b""
    before = 4 * (count + 1)
    values = (offsets + np.int32(before - first)).tobytes() + data + bytes(-size % 4)
    return values, _single_text(offsets, data, count)


def _single_text(offsets: np.ndarray, data: bytes, count: int) -> bytes | None:
    size, remainder = divmod(len(data), count)
    if remainder or data != data[:size] * count:
        return None
    return data[:size] if bool((offsets[1:] - offsets[:-1] == size).all()) else None


def _cut(buffer: pa.Buffer, start: int, size: int) -> bytes:
    piece: bytes = buffer.slice(start, size).to_pybytes()
    return piece


def _constant(value: bytes, bits: int, levels: PageLevels) -> EncodedPage:
    message = encodings21.ConstantLayout(layers=levels.layer_enums)
    buffers: tuple[np.ndarray, ...] = ()
    if bits:
        message.inline_value = value
    else:
        ends = np.array([0, len(value)], np.int32)
        buffers = (scalar_buffer(VariableWidth(1, ends, np.frombuffer(value, np.uint8))),)
    layout = encodings21.PageLayout(constant_layout=message)
    return EncodedPage(layout, buffers, levels.num_rows)


def _chunk(values: bytes, bits: int, levels: PageLevels, large: bool) -> EncodedPage:
    """Put the one chunk and its word together."""
    definition = levels.definition
    wide = "I" if large else "H"
    if definition is None:
        head = struct.pack(f"<H{wide}", 0, len(values))
        chunk = _padded(head) + _padded(values)
    else:
        marks = definition.tobytes()
        head = struct.pack(f"<HH{wide}", levels.num_entries, len(marks), len(values))
        chunk = _padded(head) + _padded(marks) + _padded(values)
    word = struct.pack(f"<{wide}", len(chunk) // 8 - 1 << 4)
    layout = _layout(
        levels.layers, levels.num_entries, bits, has_nulls=definition is not None, large=large
    )
    return EncodedPage(layout, (word, chunk), levels.num_rows)


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 8)


@lru_cache(maxsize=256)
def _layout(
    layers: tuple[int, ...], count: int, bits: int, has_nulls: bool, large: bool
) -> encodings21.PageLayout:
    """Return the message, which nobody changes: the columns of a table share a few."""
    message = encodings21.MiniBlockLayout(
        value_compression=_flat(bits) if bits else _variable(),
        layers=cast("list[encodings21.RepDefLayer]", list(layers)),
        num_buffers=1,
        num_items=count,
        has_large_chunk=large,
    )
    if has_nulls:
        message.def_compression.CopyFrom(_flat(_LEVEL_BITS))
    return encodings21.PageLayout(mini_block_layout=message)


def _flat(bits: int) -> encodings21.CompressiveEncoding:
    return encodings21.CompressiveEncoding(flat=encodings21.Flat(bits_per_value=bits))


def _variable() -> encodings21.CompressiveEncoding:
    variable = encodings21.Variable(offsets=_flat(_OFFSET_BITS))
    return encodings21.CompressiveEncoding(variable=variable)
