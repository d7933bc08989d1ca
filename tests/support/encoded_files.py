"""Write a data file around encoded pages, for pylance to read: one page per column and batch.

Independent of the package's own file writer: the container is packed here, the schema is what
pylance itself puts into an empty file. Levels are built from Python lists, slowly and obviously.
"""

from __future__ import annotations

import itertools
import struct
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb._pb import encodings21 as pb
from lance_nb._pb import file as file_pb
from lance_nb._pb import file2
from lance_nb.encodings import arrow_arrays, repdef
from lance_nb.encodings.base import PageBuffer, PageShape, Rows
from lance_nb.encodings.page_encoder import (
    EncodedPage,
    EncodingOptions,
    PageLevels,
    encode_page,
)
from lance_nb.encodings.registry import codecs, layout_of

ALL_VALID, NULLABLE = pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULLABLE_ITEM
FOOTER = "<QQQIIHH4s"


# --- levels --------------------------------------------------------------------------------------


def flat_levels(array: pa.Array) -> PageLevels:
    """Return the levels of a column without nesting."""
    count = len(array)
    if not array.null_count:
        return PageLevels((ALL_VALID,), None, None, count, 0, count)
    definition = np.array([not valid for valid in array.is_valid().to_pylist()], np.uint16)
    return PageLevels((NULLABLE,), None, definition, count, 1, count)


def list_page(array: pa.Array) -> tuple[pa.Array, PageLevels]:
    """Return leaf and levels of a column of lists, with null and empty lists and null items."""
    offsets = array.offsets.to_numpy()
    items = array.values
    rep: list[int] = []
    definition: list[int] = []
    slots: list[int] = []
    for row, valid in enumerate(array.is_valid().to_pylist()):
        low, high = int(offsets[row]), int(offsets[row + 1])
        if not valid or low == high:
            rep.append(1)
            definition.append(2 if not valid else 3)
            continue
        slots += range(low, high)
        rep += [1] + [0] * (high - low - 1)
        definition += [0] * (high - low)
    leaf = items.take(pa.array(slots, pa.int64()))
    levels = np.array(definition, np.uint16)
    levels[levels == 0] = np.array([not ok for ok in leaf.is_valid().to_pylist()], np.uint16)
    layers = (NULLABLE, pb.REPDEF_NULL_AND_EMPTY_LIST)
    return leaf, PageLevels(layers, np.array(rep, np.uint16), levels, len(rep), 1, len(array))


def encode_column(array: pa.Array, options: EncodingOptions) -> EncodedPage:
    """Encode a column as one page."""
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        leaf, levels = list_page(array)
        return encode_page(leaf, levels, options)
    return encode_page(array, flat_levels(array), options)


# --- reading back with our reader ----------------------------------------------------------


def decode_column(
    page: EncodedPage,
    type_: pa.DataType,
    version: tuple[int, int],
    rows: Sequence[tuple[int, int]] | None = None,
) -> pa.Array:
    """Decode rows (ranges) of an encoded page with the package's reader."""
    arm = page.layout.WhichOneof("layout")
    message = getattr(page.layout, arm)
    buffers = [np.frombuffer(bytes(buffer), np.uint8) for buffer in page.buffers]
    shape = PageShape(page.num_rows, tuple(buffer.size for buffer in buffers), version)
    layout = layout_of(arm)
    wanted = layout.index_buffers(message, shape)
    reader = layout.open(message, shape, {n: buffers[n] for n in wanted}, codecs)
    starts, stops = zip(*(rows or [(0, page.num_rows)]), strict=True)
    decoded = reader.decode(
        Rows(np.array(starts), np.array(stops)),
        {number: PageBuffer(buffer) for number, buffer in enumerate(buffers)},
    )
    levels = repdef.unravel(decoded)
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    leaf_type = type_.value_type if is_list else type_
    leaf = arrow_arrays.to_arrow(decoded.values, leaf_type, levels[-1].validity)
    if not is_list:
        return leaf
    kind = np.int64 if pa.types.is_large_list(type_) else np.int32
    return pa.Array.from_buffers(
        type_,
        levels[0].length,
        [
            arrow_arrays.validity_buffer(levels[0].validity),
            pa.py_buffer(levels[0].offsets.astype(kind)),
        ],
        children=[leaf],
    )


# --- files ---------------------------------------------------------------------------------------


def write_file(
    path: Path, schema: pa.Schema, columns: Iterable[Sequence[EncodedPage]], version: str
) -> None:
    """Write pages, column by column, into a file that pylance opens."""
    columns = list(columns)
    descriptor = _descriptor(schema, version)
    descriptor.length = sum(page.num_rows for page in columns[0])
    out = bytearray()
    metadata = [_column(pages, out) for pages in columns]
    align(out)
    descriptor_at, body = len(out), descriptor.SerializeToString()
    out += body
    places = []
    for column in metadata:
        places.append((len(out), len(column)))
        out += column
    table = len(out)
    for place in places:
        out += struct.pack("<QQ", *place)
    globals_at = len(out)
    out += struct.pack("<QQ", descriptor_at, len(body))
    major, minor = map(int, version.split("."))
    first = places[0][0]
    out += struct.pack(FOOTER, first, table, globals_at, 1, len(places), major, minor, b"LANC")
    path.write_bytes(out)


def align(out: bytearray) -> None:
    out += b"\0" * (-len(out) % 64)


def _column(pages: Sequence[EncodedPage], out: bytearray) -> bytes:
    encoding = _any("/lance.encodings.ColumnEncoding", b"\x0a\x00")
    message = file2.ColumnMetadata(encoding=encoding)
    row = 0
    for page in pages:
        offsets, sizes = [], []
        for buffer in page.buffers:
            align(out)
            offsets.append(len(out))
            out += bytes(buffer)
            sizes.append(len(out) - offsets[-1])
        message.pages.add(
            buffer_offsets=offsets,
            buffer_sizes=sizes,
            length=page.num_rows,
            encoding=_any("/lance.encodings21.PageLayout", page.layout.SerializeToString()),
            priority=row,
        )
        row += page.num_rows
    return message.SerializeToString()


def _any(url: str, value: bytes) -> Any:
    head = b"\x0a" + _varint(len(url)) + url.encode()
    wrapped = head + b"\x12" + _varint(len(value)) + value
    return file2.Encoding(direct=file2.Encoding.Direct(encoding=wrapped))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _descriptor(schema: pa.Schema, version: str) -> file_pb.FileDescriptor:
    """Let pylance translate the schema: write no rows, and take its file descriptor."""
    from lance.file import LanceFileWriter

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.lance"
        with LanceFileWriter(str(path), schema, version=version) as writer:
            writer.write_batch(schema.empty_table().combine_chunks())
        raw = path.read_bytes()
    *_, table, _, _, _, _, _ = struct.unpack(FOOTER, raw[-40:])
    position, size = struct.unpack_from("<QQ", raw, table)
    return file_pb.FileDescriptor.FromString(raw[position : position + size])


def row_ranges(count: int, seed: int) -> list[tuple[int, int]]:
    """Return a few sorted, disjoint, non-empty ranges of rows."""
    bounds = np.random.default_rng(seed).choice(count + 1, min(count + 1, 8), replace=False)
    bounds.sort()
    pairs = itertools.pairwise(bounds.tolist())
    return [(low, high) for number, (low, high) in enumerate(pairs) if number % 2 == 0]
