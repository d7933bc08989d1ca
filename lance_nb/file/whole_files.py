"""Decode all rows of several small data files together.

A page costs about as much to open as twenty thousand values cost to decode, so a dataset of many
small fragments is slow when it is read page by page. Here the column metadata of all files is
parsed in one pass, pages of a column that are described alike are joined, whatever file they come
from, and the joined page is decoded once. The cost grows with bytes and with different
descriptions, not with pages.

``read_files`` returns None for anything out of the ordinary, such as a file of another version, a
packed struct or damage. The caller then reads file by file, and finds what is wrong and where.

Limits: file versions 2.1 and 2.2; files whose bytes are all at hand. Pages that no layout joins
(long texts, text with a symbol table of its own, large pages) are decoded one by one.
Source: messages ColumnMetadata and PageLayout; see ``metadata`` and ``page_reader``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_nb.encodings.base import PageBuffer, PageShape, Rows, WholePage
from lance_nb.encodings.registry import LAYOUTS, codecs, joining_layout_of, layout_of
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.columns import Leaf, LeafPart, leaf_part
from lance_nb.file.footer import FOOTER_BYTES, TABLE_ENTRY_BYTES, parse_footer
from lance_nb.file.metadata import page_layout, page_messages
from lance_nb.file.page_reader import threads_for
from lance_nb.storage import meter
from lance_nb.storage.threads import run_side_by_side
from lance_nb.value_classes import dataclass

FILE_VERSIONS = ((2, 1), (2, 2))
_ENTRY = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A data file: its bytes, and how many rows the manifest says it has."""

    data: memoryview
    num_rows: int


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """Rows of a column: the parts of each leaf, by field id."""

    leaves: dict[int, list[LeafPart]]
    num_rows: int


@dataclass(frozen=True, slots=True)
class ColumnOfFiles:
    """All rows of a column, in parts, and where those of each file are.

    ``places`` has for each run of files the number of a part, the first row there, and the number
    of rows.
    """

    parts: list[ColumnPart]
    places: list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class PageKind:
    """How pages of some description are decoded; those of the same ``number`` together.

    Pages of the number ``ALONE`` are not joined, nor are those of more than ``joined_bytes_max``.
    """

    arm: str
    message: Any
    number: int
    joined_bytes_max: int


ALONE = -1
_Page = tuple[PageKind, int, WholePage]  # the number of its kind, or ALONE


class _Group:
    """The pages of each leaf of a column, in files that describe them alike."""

    def __init__(self, num_leaves: int) -> None:
        self.pages: list[list[_Page]] = [[] for _ in range(num_leaves)]
        self.num_rows = 0


class _ColumnPages:
    """The pages of a column in all files, as groups; ``places`` as in ``ColumnOfFiles``.

    ``entries`` are the places of its leaves in the tables of columns.
    """

    def __init__(self, leaves: Sequence[Leaf], owners: Mapping[int, int]) -> None:
        self.leaves = leaves
        self.entries = [TABLE_ENTRY_BYTES * owners[leaf.field_id] for leaf in leaves]
        self.scales = [leaf.items_per_row for leaf in leaves]
        self.groups: list[_Group] = []
        self.places: list[tuple[int, int, int]] = []
        self._group_numbers: dict[tuple[int, ...], int] = {}

    def add(self, pages: list[list[_Page]], num_rows: int) -> None:
        """Add the pages of each leaf in the next file."""
        if len(pages) == 1 and len(pages[0]) == 1:
            signature: tuple[int, ...] = (pages[0][0][1],)
        else:  # a leaf ends with a number that no page has
            signature = tuple(
                number for leaf in pages for number in (*[page[1] for page in leaf], ALONE - 1)
            )
        number = None if ALONE in signature else self._group_numbers.get(signature)
        if number is None:
            number = self._group_numbers[signature] = len(self.groups)
            self.groups.append(_Group(len(pages)))
        group = self.groups[number]
        for mine, more in zip(group.pages, pages, strict=True):
            mine.extend(more)
        last = self.places[-1] if self.places else (ALONE, 0, 0)
        if last[0] == number:
            self.places[-1] = (number, last[1], last[2] + num_rows)
        else:
            self.places.append((number, group.num_rows, num_rows))
        group.num_rows += num_rows


class PageKinds:
    """The descriptions of pages seen so far, each parsed once, by ``parse``."""

    def __init__(self, parse: Callable[[bytes], tuple[str, Any] | None]) -> None:
        self._parse = parse
        self._kinds: dict[bytes, PageKind | None] = {}
        self._numbers: dict[tuple[str, bytes], int] = {}

    def get(self, encoding: bytes) -> PageKind | None:
        """Return the kind of a page; None for another description than a page layout."""
        kind = self._kinds.get(encoding)
        if kind is None and encoding not in self._kinds:
            kind = self._kinds[encoding] = self._parsed(encoding)
        return kind

    def _parsed(self, encoding: bytes) -> PageKind | None:
        parsed_layout = self._parse(encoding)
        if parsed_layout is None or parsed_layout[0] not in LAYOUTS:
            return None
        arm, own = parsed_layout
        layout = joining_layout_of(arm)
        key = None if layout is None else layout.join_key(own)
        if key is None or layout is None:
            return PageKind(arm, own, ALONE, 0)
        number = self._numbers.setdefault((arm, key), len(self._numbers))
        return PageKind(arm, own, number, layout.joined_bytes_max)


def read_files(
    files: Sequence[WholeFile], columns: Sequence[Sequence[Leaf]], owners: Mapping[int, int]
) -> list[ColumnOfFiles] | None:
    """Decode all rows of each column, given by its leaves, in all files.

    ``owners`` maps field ids to column numbers, the same ones in every file. None if the files have
    to be read one by one; also if they are damaged.
    """
    if any(
        leaf.encoded or leaf.children or pa.types.is_dictionary(leaf.type)
        for leaves in columns
        for leaf in leaves
    ):
        return None
    try:
        columns_of_files = [_ColumnPages(leaves, owners) for leaves in columns]
        version, size_bytes = _collect(files, columns_of_files)
        if version is None:
            return None
        meter.count(size_bytes, len(files))
        tasks = [
            partial(_decode, column.leaves, group, version)
            for column in columns_of_files
            for group in column.groups
        ]
        parts = run_side_by_side(tasks, threads_for(size_bytes, len(tasks)))
        return [
            ColumnOfFiles([next(parts) for _ in column.groups], column.places)
            for column in columns_of_files
        ]
    except (CorruptFileError, NotSupportedError, DecodeError):
        return None


def _collect(
    files: Sequence[WholeFile], columns: Sequence[_ColumnPages]
) -> tuple[tuple[int, int] | None, int]:
    """Parse the metadata of the columns in all files and list their pages.

    Returns the version of all files and the bytes of the pages; no version for an unusual file.
    """
    kinds = PageKinds(page_layout)
    version: tuple[int, int] | None = None
    most = max((entry for column in columns for entry in column.entries), default=-1)
    total = 0
    for file in files:
        data, size = file.data, len(file.data)
        footer = parse_footer(data[-FOOTER_BYTES:], size, "")
        version = version or footer.file_version
        if footer.file_version != version or version not in FILE_VERSIONS:
            return None, 0
        if most >= footer.num_columns * TABLE_ENTRY_BYTES:
            return None, 0
        for column in columns:
            pages: list[list[_Page]] = []
            for entry, scale in zip(column.entries, column.scales, strict=True):
                position, length = _ENTRY.unpack_from(data, footer.column_table_start + entry)
                if position + length > size:
                    return None, 0
                mine: list[_Page] = []
                raw = data[position : position + length]
                size_bytes = _pages_of(raw, data, kinds, pages=mine, num_rows=file.num_rows * scale)
                if size_bytes < 0:
                    return None, 0
                total += size_bytes
                pages.append(mine)
            column.add(pages, file.num_rows)
    return version, total


def _pages_of(
    raw: memoryview, data: memoryview, kinds: PageKinds, pages: list[_Page], num_rows: int
) -> int:
    """List the pages of a column of one file; return their bytes, -1 for an unusual column."""
    listed = page_messages(raw)
    if listed is None:
        return -1
    total = 0
    for page in listed:
        kind = kinds.get(page.encoding.direct.encoding)
        if kind is None:
            return -1
        starts, sizes = page.buffer_offsets, page.buffer_sizes
        if len(starts) != len(sizes):
            return -1
        buffers = [data[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        if [len(buffer) for buffer in buffers] != sizes:
            return -1
        size_bytes = sum(sizes)
        total += size_bytes
        count = page.length
        num_rows -= count
        if count:
            number = kind.number if size_bytes <= kind.joined_bytes_max else ALONE
            pages.append((kind, number, WholePage(kind.message, count, buffers)))
    return -1 if num_rows else total


def _decode(leaves: Sequence[Leaf], group: _Group, version: tuple[int, int]) -> ColumnPart:
    """Decode the pages of a group, neighbours of the same kind as one."""
    parts_by_leaf: dict[int, list[LeafPart]] = {}
    for leaf, pages in zip(leaves, group.pages, strict=True):
        parts = parts_by_leaf[leaf.field_id] = []
        start = 0
        while start < len(pages):
            stop = start + 1
            number = pages[start][1]
            while number != ALONE and stop < len(pages) and pages[stop][1] == number:
                stop += 1
            kind = pages[start][0]
            parts.append(_decoded(leaf, kind.arm, [page[2] for page in pages[start:stop]], version))
            start = stop
    return ColumnPart(parts_by_leaf, group.num_rows)


def _decoded(
    leaf: Leaf, arm: str, pages: Sequence[WholePage], version: tuple[int, int]
) -> LeafPart:
    page = pages[0]
    joining = joining_layout_of(arm) if len(pages) > 1 else None
    if joining is not None:
        reader, buffers = joining.open_joined(pages, version, codecs)
    else:
        arrays = [np.frombuffer(buffer, np.uint8) for buffer in page.buffers]
        shape = PageShape(page.num_rows, tuple(map(len, page.buffers)), version)
        layout = layout_of(arm)
        index = {number: arrays[number] for number in layout.index_buffers(page.layout, shape)}
        reader = layout.open(page.layout, shape, index, codecs)
        buffers = {number: PageBuffer(array) for number, array in enumerate(arrays)}
    count = sum(page.num_rows for page in pages)
    rows = Rows(np.zeros(1, np.int64), np.array([count], np.int64))
    return leaf_part(leaf, reader.decode(rows, buffers), count)
