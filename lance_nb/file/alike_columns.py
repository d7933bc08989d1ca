"""Decode columns of one file together: those whose only pages are described alike.

To open and decode a page costs as much as some thousand values do, so tables of thousands of
columns are slow column by column. Here pages of columns of the same type are decoded as one page,
wherever they lie in a mapped file, and the values are cut into columns again. Chunks are not
copied, and of some rows only the chunks that hold them are decoded.

Limits: mapped files since 2.1; columns of plain values (no lists, structs or dictionary types) with
one page, of which few rows are wanted. All others are read column by column, also to tell what
is wrong.
Source: see ``whole_files``, which does the same with the pages of a column in several files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_nb.encodings.base import PageBuffer, PageReader, Rows, WholePage
from lance_nb.encodings.registry import codecs, joining_layout_of
from lance_nb.encodings.repdef import Level
from lance_nb.errors import CorruptFileError, InternalError, NotSupportedError
from lance_nb.file.columns import Leaf, LeafPart, leaf_part
from lance_nb.file.metadata import PAGE_LAYOUT_URL, PageMetadata, layout_arm
from lance_nb.file.page_reader import RUN_VALUES, Column
from lance_nb.file.source import FileSource
from lance_nb.file.whole_files import ALONE, PageKind, PageKinds
from lance_nb.value_classes import dataclass

# Of each column: 8,000 rows of 500 columns are read in 0.7 of the time, 20,000 in 1.5 times of it.
ALIKE_ROWS_MAX = 1 << 13
UNREADABLE = (CorruptFileError, NotSupportedError, DecodeError)


@dataclass(frozen=True, slots=True)
class AlikeColumns:
    """Columns that are decoded as one: their numbers in a request, the rows of each."""

    numbers: tuple[int, ...]
    leaf: Leaf
    num_rows: int
    size_bytes: int
    reader: PageReader
    buffers: Mapping[int, PageBuffer]

    def read(self, rows: Rows, source: FileSource) -> list[LeafPart]:
        """Decode ``rows`` of each column. Raises CorruptFileError, NotSupportedError."""
        count, columns = rows.num_rows, len(self.numbers)
        total = columns * self.num_rows
        share = self.size_bytes * count // self.num_rows
        source.count_view(self.size_bytes, share, columns)
        if count == self.num_rows:
            joined = Rows(np.zeros(1, np.int64), np.array([total], np.int64))
        else:
            firsts = np.arange(0, total, self.num_rows)[:, np.newaxis]
            joined = Rows((firsts + rows.starts).ravel(), (firsts + rows.stops).ravel())
        page = self.reader.decode(joined, self.buffers)
        part = leaf_part(self.leaf, page, joined.num_rows)
        (level,) = part.levels
        parts = []
        for start in range(0, joined.num_rows, count):
            validity = level.validity
            own = None if validity is None else validity[start : start + count]
            parts.append(LeafPart((Level(count, own, None),), part.values.slice(start, count)))
        return parts


def alike_columns(
    source: FileSource, leaves: Sequence[Leaf], columns: Sequence[Column]
) -> list[AlikeColumns]:
    """Find the columns that can be decoded together, in groups of two or more."""
    if source.mapped is None or len(columns) < 2:
        return []
    kinds = PageKinds(layout_arm)
    members_by_key: dict[tuple[int, int, int, pa.DataType], list[tuple[int, PageKind]]] = {}
    for number, (leaf, column) in enumerate(zip(leaves, columns, strict=True)):
        pages = column.metadata.pages
        if len(pages) != 1 or not pages[0].num_rows or not _is_plain(leaf):
            continue
        page = pages[0]
        with suppress(DecodeError):
            kind = kinds.get(page.encoding) if page.encoding_url == PAGE_LAYOUT_URL else None
            if kind is not None and kind.number != ALONE and _is_joined(kind.arm, page):
                key = (kind.number, page.num_rows, len(page.buffer_sizes), leaf.type)
                members_by_key.setdefault(key, []).append((number, kind))
    groups = []
    for (_, num_rows, *_), members in members_by_key.items():
        step = max(RUN_VALUES // num_rows, 2)
        for start in range(0, len(members), step):
            part = members[start : start + step]
            if len(part) > 1:
                with suppress(*UNREADABLE):
                    groups.append(_opened(source.mapped, part, leaves, columns))
    return groups


def _is_joined(arm: str, page: PageMetadata) -> bool:
    """Tell whether joining saves work: full-zip pages are viewed, which costs less."""
    if arm == "constant_layout":
        return not page.buffer_sizes  # levels and long values differ from page to page
    return arm == "mini_block_layout"


def _is_plain(leaf: Leaf) -> bool:
    return (
        leaf.depth == 1
        and not leaf.encoded
        and not pa.types.is_nested(leaf.type)
        and not pa.types.is_dictionary(leaf.type)
    )


def _opened(
    mapped: memoryview,
    members: Sequence[tuple[int, PageKind]],
    leaves: Sequence[Leaf],
    columns: Sequence[Column],
) -> AlikeColumns:
    """Open the pages of columns as one. Raises CorruptFileError, NotSupportedError."""
    first, kind = members[0]
    pages = []
    for number, member_kind in members:
        page = columns[number].metadata.pages[0]
        starts, sizes = page.buffer_offsets, page.buffer_sizes
        buffers = [mapped[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        pages.append(WholePage(member_kind.message, page.num_rows, buffers, starts))
    joining = joining_layout_of(kind.arm)
    if joining is None:
        raise InternalError(f"pages of layout {kind.arm!r} cannot be joined")
    data = np.frombuffer(mapped, np.uint8)
    version = columns[first].file_version
    reader, joined = joining.open_joined(pages, version, codecs, file_bytes=data)
    return AlikeColumns(
        tuple(number for number, _ in members),
        leaves[first],
        pages[0].num_rows,
        size_bytes=sum(len(buffer) for page in pages for buffer in page.buffers),
        reader=reader,
        buffers=joined,
    )
