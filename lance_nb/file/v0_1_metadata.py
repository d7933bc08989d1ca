"""What a 0.1 data file says about itself: footer, metadata message, schema, page table.

Layout (integers little endian)::

    ...  pages, at any byte
    ...  page table: for each field id from the smallest on (from 0 on in files of early 2023),
         for each batch, (i64 position, i64 number of values); (0, 0) where there is no page
    ...  pages and page table of the statistics, in the same form
    ...  values of dictionaries
    ...  u32 length | Manifest message, of which only the fields are used
    ...  u32 length | Metadata message
    16   u64 position of the Metadata message | u16 major | u16 minor | "LANC"

Limits: tables and messages must lie inside the file; batches have at most 2**31 - 1 rows together.
Source: messages Metadata of lance.file and Manifest of lance.table; verified against pylance 14.0.2
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message

from lance_nb._pb import file, table
from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, describe_bytes, describe_order
from lance_nb.file.source import FileSource
from lance_nb.format.schema import Schema
from lance_nb.value_classes import dataclass

LEGACY_FOOTER_BYTES = 16
PAGE_ENTRY_BYTES = 16
MessageT = TypeVar("MessageT", bound=Message)


@dataclass(frozen=True, slots=True)
class LegacyPage:
    """Where the values of one field in one batch begin (bytes from file start), and how many."""

    position: int
    num_values: int


@dataclass(frozen=True, slots=True)
class PageTable:
    """Pages by field and batch. ``batch_ends`` are cumulative rows; ids count from ``first_id``."""

    position: int
    first_id: int
    batch_ends: Ints

    def page(self, source: FileSource, field_id: int, batch: int) -> LegacyPage:
        """Read one entry. Raises CorruptFileError."""
        number = (field_id - self.first_id) * self.batch_ends.size + batch
        start = self.position + number * PAGE_ENTRY_BYTES
        raw = source.view(start, start + PAGE_ENTRY_BYTES)
        position, num_values = struct.unpack("<qq", raw)
        if not 0 <= position <= source.size_bytes or num_values < 0:
            stored = f"{num_values} values at {position}"
            raise CorruptFileError(source.path, start, "a page inside the file", stored)
        return LegacyPage(position, num_values)


@dataclass(frozen=True, slots=True)
class LegacyMetadata:
    """The file's fields, its pages and those of its statistics (with a schema of their own)."""

    schema: Schema
    pages: PageTable
    statistics_schema: Schema | None
    statistics: PageTable | None


def read_legacy_metadata(source: FileSource) -> LegacyMetadata:
    """Read the messages at the end of the file. Raises CorruptFileError."""
    tail = source.tail(LEGACY_FOOTER_BYTES)
    if len(tail) < LEGACY_FOOTER_BYTES:
        expected = f"a data file of at least {LEGACY_FOOTER_BYTES} bytes"
        raise CorruptFileError(source.path, None, expected, f"{len(tail)} bytes")
    (position,) = struct.unpack_from("<Q", tail)
    metadata = _read(source, position, file.Metadata)
    manifest = _read(source, metadata.manifest_position, table.Manifest)
    schema = Schema.from_pb(list(manifest.fields), {}, source.path)
    ends = _batch_ends(metadata.batch_offsets, source.path)
    first_id = min((field.id for field in schema.walk() if field.id >= 0), default=0)
    pages = PageTable(metadata.page_table_position, first_id, ends)
    if not metadata.HasField("statistics") or not metadata.statistics.schema:
        stop = metadata.manifest_position
        if pages.first_id and _counts_from_zero(source, pages, schema, stop):
            pages = PageTable(metadata.page_table_position, 0, ends)
        return LegacyMetadata(schema, pages, None, None)
    # Statistics are one batch with a row for each batch of data; their field ids are their own.
    own = Schema.from_pb(list(metadata.statistics.schema), {}, source.path)
    rows = np.array([ends.size], np.int64)
    statistics = PageTable(metadata.statistics.page_table_position, 0, rows)
    return LegacyMetadata(schema, pages, own, statistics)


def _read(source: FileSource, position: int, kind: type[MessageT]) -> MessageT:
    """Read a message that stands behind its length."""
    (length,) = struct.unpack("<I", source.view(position, position + 4))
    message = kind()
    data = bytes(source.view(position + 4, position + 4 + length))
    try:
        message.ParseFromString(data)
    except DecodeError as exc:
        expected = f"a {kind.__name__} message of {length} bytes"
        raise CorruptFileError(source.path, position, expected, describe_bytes(data)) from exc
    return message


def _batch_ends(offsets: Sequence[int], path: str) -> Ints:
    """Turn the offsets of batches (from 0 on) into the row after each."""
    bounds = np.array(offsets, np.int64)
    if bounds.size and (int(bounds[0]) or bool((np.diff(bounds) < 0).any())):
        expected = "batch offsets in ascending order from 0"
        raise CorruptFileError(path, None, expected, describe_order(bounds, repeats=True))
    return bounds[1:]


def _counts_from_zero(source: FileSource, pages: PageTable, schema: Schema, stop: int) -> bool:
    """Tell whether the page table has entries, all empty, for the ids that the file has not."""
    last = max(field.id for field in schema.walk())
    per_field = pages.batch_ends.size * PAGE_ENTRY_BYTES
    if stop - pages.position < (last + 1) * per_field:
        return False
    before = source.view(pages.position, pages.position + pages.first_id * per_field)
    return not bytes(before).strip(b"\0")
