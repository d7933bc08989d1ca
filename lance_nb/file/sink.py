"""A data file under construction: pages as they come, then the tail that finds them.

Layout: see footer.py. Every page buffer and global buffer starts at a multiple of ``ALIGNMENT``
(2.1 and 2.2 demand it); what lies between is filler. Columns are described by messages that stay in
memory until the end: about 100 bytes per page.

Limits: buffers are written as they are handed over, without copying, and must not change meanwhile.
Source: spec page "file format"; messages ColumnMetadata, Page, FileDescriptor of pylance 14.0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from lance_nb._pb import encodings, file2
from lance_nb.encodings.base import Bytes
from lance_nb.file.footer import MAGIC
from lance_nb.storage.base import ObjectWriter

ALIGNMENT = 64
COLUMN_ENCODING_URL = "/lance.encodings.ColumnEncoding"

_FILLER = bytes(ALIGNMENT)
_EMPTY = memoryview(b"")
_TAIL = struct.Struct("<QQQIIHH4s")
_VALUES = encodings.ColumnEncoding(values=encodings.ColumnEncoding.Values())
# What a footer says of a file version, where it is not the version itself.
_FOOTER_VERSIONS = {(2, 0): (0, 3)}

PageBuffer = bytes | memoryview | Bytes


def wrapped(type_url: str, message: bytes) -> file2.Encoding:
    """Put a serialized message into the wrapper that columns and pages name their encoding by."""
    inner = encodings.Any(type_url=type_url, value=message).SerializeToString()
    return file2.Encoding(direct=file2.Encoding.Direct(encoding=inner))


class FileSink:
    """Takes pages and buffers, knows where they went, and writes the tail."""

    def __init__(self, upload: ObjectWriter) -> None:
        self._upload = upload
        self.size_bytes = 0
        self._columns: list[file2.ColumnMetadata] = []
        self._global: list[tuple[int, int]] = []

    def add_column(self, encoding: encodings.ColumnEncoding = _VALUES) -> int:
        """Begin a column and return its number."""
        message = wrapped(COLUMN_ENCODING_URL, encoding.SerializeToString())
        self._columns.append(file2.ColumnMetadata(encoding=message))
        return len(self._columns) - 1

    def add_page(
        self,
        column: int,
        buffers: Sequence[PageBuffer],
        encoding: file2.Encoding,
        *,
        num_rows: int,
        first_row: int,
    ) -> None:
        """Write the buffers of one page and note it down. ``first_row`` counts from the file."""
        places = self.add_buffers(buffers)
        self._columns[column].pages.append(
            file2.Page(
                buffer_offsets=[start for start, _ in places],
                buffer_sizes=[size for _, size in places],
                length=num_rows,
                encoding=encoding,
                priority=first_row,
            )
        )

    def add_buffers(self, buffers: Sequence[PageBuffer]) -> list[tuple[int, int]]:
        """Write buffers, each aligned; returns where they lie: (position, size) in bytes."""
        pieces: list[memoryview | bytes] = []
        places = []
        for buffer in buffers:
            view = _bytes_of(buffer)
            if gap := -self.size_bytes % ALIGNMENT:
                pieces.append(_FILLER[:gap])
                self.size_bytes += gap
            places.append((self.size_bytes, len(view)))
            pieces.append(view)
            self.size_bytes += len(view)
        self._upload.write(pieces)
        return places

    def add_global_buffer(self, data: PageBuffer) -> int:
        """Write a buffer that belongs to the whole file; returns its number. 0 = descriptor."""
        self._global.append(self.add_buffers([data])[0])
        return len(self._global)

    def finish(self, descriptor: bytes, file_version: tuple[int, int]) -> None:
        """Write descriptor, column metadata, tables and footer, and finish the object."""
        (place,) = self.add_buffers([descriptor])
        messages = [column.SerializeToString() for column in self._columns]
        start = self.size_bytes
        table = []
        for message in messages:
            table.append((self.size_bytes, len(message)))
            self.size_bytes += len(message)
        column_table = self.size_bytes
        global_table = column_table + 16 * len(table)
        table += [place, *self._global]
        counts = len(self._global) + 1, len(self._columns)
        version = _FOOTER_VERSIONS.get(file_version, file_version)
        tail = struct.pack(f"<{2 * len(table)}Q", *(number for pair in table for number in pair))
        tail += _TAIL.pack(start, column_table, global_table, *counts, *version, MAGIC)
        self._upload.write([*messages, tail])
        self.size_bytes = column_table + len(tail)
        self._upload.finish()

    def abort(self) -> None:
        """Drop the file."""
        self._upload.abort()


def _bytes_of(buffer: PageBuffer) -> memoryview:
    if isinstance(buffer, np.ndarray):
        return memoryview(np.ascontiguousarray(buffer).data).cast("B") if buffer.size else _EMPTY
    return memoryview(buffer).cast("B")
