"""A data file under construction: pages as they come, then the tail that finds them.

Layout: see footer.py. Every page buffer and global buffer starts at a multiple of ``ALIGNMENT``
(2.1 and 2.2 demand it); what lies between is filler. Columns are described by messages that stay in
memory until the end: about 100 bytes per page.

Limits: buffers are written without copying, small ones together, and must not change meanwhile.
Source: spec page "file format"; messages ColumnMetadata, Page, FileDescriptor of pylance 14.0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np

from lance_nb.encodings.base import Bytes
from lance_nb.encodings.kernels.ranges import scatter, starts_of
from lance_nb.encodings.page_encoder import Learned
from lance_nb.encodings.stacked_pages import StackedPages
from lance_nb.file.footer import MAGIC
from lance_nb.file.metadata import (
    VALUES_ENCODING,
    PageMetadata,
    column_bytes,
    stacked_column_bytes,
)
from lance_nb.file.sidecars import Sidecars
from lance_nb.storage.base import ObjectWriter
from lance_nb.value_classes import dataclass

ALIGNMENT = 64

_FILLER = bytes(ALIGNMENT)
_WRITE_BYTES = 1024 * 1024
_EMPTY = memoryview(b"")
_TAIL = struct.Struct("<QQQIIHH4s")
# What a footer says of a file version, where it is not the version itself.
_FOOTER_VERSIONS = {(2, 0): (0, 3)}

PageBuffer = bytes | memoryview | Bytes


@dataclass(frozen=True, slots=True)
class _Column:
    encoding: bytes
    pages: list[PageMetadata]
    first_rows: list[int]


class FileSink:
    """Takes pages and buffers, knows where they went, and writes the tail.

    ``learned`` is what is known of each column by its number: of the same columns in files before.
    """

    def __init__(
        self, upload: ObjectWriter, sidecars: Sidecars, learned: dict[int, Learned] | None = None
    ) -> None:
        self._upload = upload
        self.sidecars = sidecars
        self.learned = {} if learned is None else learned
        self.size_bytes = 0
        self._columns: list[_Column | bytes | None] = []  # bytes: the message of a column
        self._global: list[tuple[int, int]] = []
        self._is_finished = False
        self._waiting: list[memoryview | bytes] = []
        self._waiting_bytes = 0

    def reserve_column(self) -> int:
        """Return the number of a column whose pages come later, if it has any."""
        self._columns.append(None)
        return len(self._columns) - 1

    def add_column(self, encoding: bytes = VALUES_ENCODING) -> int:
        """Begin a column, with its serialized ColumnEncoding, and return its number."""
        self._columns.append(_Column(encoding, [], []))
        return len(self._columns) - 1

    def add_page(
        self, column: int, buffers: Sequence[PageBuffer], page: PageMetadata, first_row: int
    ) -> None:
        """Write the buffers of a page and note it down; ``page`` does not know their places yet.

        ``first_row`` is the top-level row of the file that the page begins with.
        """
        places = self.add_buffers(buffers)
        starts, sizes = (tuple(place[side] for place in places) for side in (0, 1))
        mine = self._columns[column]
        if not isinstance(mine, _Column):
            mine = self._columns[column] = _Column(VALUES_ENCODING, [], [])
        mine.pages.append(
            PageMetadata(
                starts, sizes, page.num_rows, encoding_url=page.encoding_url, encoding=page.encoding
            )
        )
        mine.first_rows.append(first_row)

    def add_stacked(self, columns: Sequence[int], pages: StackedPages, num_rows: int) -> None:
        """Write the only page of each of these reserved columns, all of one description."""
        sizes = np.zeros((len(columns), len(pages.buffers)), np.int64)
        for number, buffer in enumerate(pages.buffers):
            sizes[:, number] = buffer.sizes
        starts = starts_of((-(-sizes // ALIGNMENT) * ALIGNMENT).ravel())
        data = np.zeros(int(starts[-1]), np.uint8)
        places = starts[:-1].reshape(sizes.shape)
        for number, buffer in enumerate(pages.buffers):
            scatter(buffer.data, buffer.starts, buffer.sizes, out=data, places=places[:, number])
        if data.size:
            places += self.add_buffers([data])[0][0]
        messages = stacked_column_bytes(pages.layout.SerializeToString(), num_rows, places, sizes)
        for column, message in zip(columns, messages, strict=True):
            self._columns[column] = message

    def add_buffers(self, buffers: Sequence[PageBuffer]) -> list[tuple[int, int]]:
        """Write buffers, each aligned; returns where they lie: (position, size) in bytes."""
        places = []
        for buffer in buffers:
            view = _bytes_of(buffer)
            if gap := -self.size_bytes % ALIGNMENT:
                self._append(_FILLER[:gap])
            places.append((self.size_bytes, len(view)))
            self._append(view)
        if self._waiting_bytes >= _WRITE_BYTES:
            self._write()
        return places

    def add_stream(self, pieces: Iterable[memoryview]) -> int:
        """Write one aligned buffer that comes in pieces, each at once; returns its position."""
        if gap := -self.size_bytes % ALIGNMENT:
            self._append(_FILLER[:gap])
        position = self.size_bytes
        for piece in pieces:
            self._append(piece)
            self._write()
        return position

    def _append(self, piece: memoryview | bytes) -> None:
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        self.size_bytes += len(piece)

    def _write(self) -> None:
        """Hand over what waits: small pages go out together."""
        self._upload.write(self._waiting)
        self._waiting, self._waiting_bytes = [], 0

    def add_global_buffer(self, data: PageBuffer) -> int:
        """Write a buffer that belongs to the whole file; returns its number. 0 = descriptor."""
        self._global.append(self.add_buffers([data])[0])
        return len(self._global)

    def finish(self, descriptor: bytes, file_version: tuple[int, int]) -> None:
        """Write descriptor, column metadata, tables and footer, and finish the objects."""
        self.sidecars.finish()
        (place,) = self.add_buffers([descriptor])
        messages = [
            column_bytes(column.encoding, column.pages, column.first_rows)
            if isinstance(column, _Column)
            else column or column_bytes(VALUES_ENCODING, (), ())
            for column in self._columns
        ]
        start = self.size_bytes
        table = []
        for message in messages:
            table.append((self.size_bytes, len(message)))
            self._append(message)
        column_table = self.size_bytes
        global_table = column_table + 16 * len(table)
        table += [place, *self._global]
        counts = len(self._global) + 1, len(self._columns)
        version = _FOOTER_VERSIONS.get(file_version, file_version)
        self._append(
            struct.pack(f"<{2 * len(table)}Q", *(number for pair in table for number in pair))
        )
        self._append(_TAIL.pack(start, column_table, global_table, *counts, *version, MAGIC))
        self._write()
        self._upload.finish()
        self._is_finished = True

    def abort(self) -> None:
        """Drop the file and what lies beside it, unless it is finished."""
        if self._is_finished:
            return
        self._upload.abort()
        self.sidecars.abort()


def _bytes_of(buffer: PageBuffer) -> memoryview:
    if isinstance(buffer, np.ndarray):
        return memoryview(np.ascontiguousarray(buffer).data).cast("B") if buffer.size else _EMPTY
    return memoryview(buffer).cast("B")
