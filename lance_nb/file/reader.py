"""Read a .lance data file: open it once, then any rows of any leaf.

Nothing but the tail is read until rows are asked for; column metadata is parsed for the columns
that are asked for.

Limits: see the floors below. Not supported: file version 2.3; 0.1 has a reader of its own (see
``opening``).
Source: spec page "file format"; verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.alike_columns import ALIKE_ROWS_MAX, UNREADABLE, AlikeColumns, alike_columns
from lance_nb.file.columns import Leaf, LeafPart, as_written, leaf_part, narrowed
from lance_nb.file.footer import FOOTER_BYTES, TABLE_ENTRY_BYTES, Footer, parse_footer, parse_table
from lance_nb.file.metadata import (
    ColumnMetadata,
    PageListing,
    describe_page,
    parse_column,
    parse_descriptor,
)
from lance_nb.file.page_reader import Column, decode_columns, split_rows, threads_for
from lance_nb.file.source import FileSource
from lance_nb.format.schema import Schema
from lance_nb.storage.base import Store
from lance_nb.storage.threads import run_side_by_side

if TYPE_CHECKING:
    from lance_nb.file.v2_0_reader import ArrayReader

_ALIKE_MAX = 8  # requests whose groups of columns are kept
READABLE_VERSIONS = ((2, 0), (2, 1), (2, 2))


class FileReader:
    """An open data file. Safe to share between threads for reading."""

    def __init__(
        self, store: Store, path: str, size_bytes: int = 0, source: FileSource | None = None
    ) -> None:
        """Read the tail. ``size_bytes`` is what the manifest says (0 = not known).

        ``source`` is the file if it is open already. Raises ObjectNotFoundError, CorruptFileError,
        NotSupportedError.
        """
        self._source = FileSource(store, path) if source is None else source
        self.path = path = self._source.path
        if size_bytes and size_bytes != self._source.size_bytes:
            raise CorruptFileError(
                path, None, f"{size_bytes} bytes as the manifest says", f"{self.size_bytes} bytes"
            )
        self.footer: Footer = parse_footer(
            self._source.tail(FOOTER_BYTES), self._source.size_bytes, path
        )
        if self.footer.file_version not in READABLE_VERSIONS:
            major, minor = self.footer.file_version
            raise NotSupportedError(
                f"{path}: data file version {major}.{minor} cannot be read by this release; "
                "it reads 0.1 and 2.0 to 2.2"
            )
        self._column_table = self._table(self.footer.column_table_start, self.footer.num_columns)
        self._columns: dict[int, Column] = {}
        self._alike: dict[int, tuple[Sequence[Leaf], list[AlikeColumns]]] = {}
        self._num_rows: int | None = None
        self._arrays: ArrayReader | None = None
        if self.file_version < (2, 1):
            file_buffers = [(start, start + size) for start, size in self.global_buffers()]
            from lance_nb.file.v2_0_reader import ArrayReader

            self._arrays = ArrayReader(self._source, self._column, file_buffers)

    @property
    def size_bytes(self) -> int:
        """Size of the file."""
        return self._source.size_bytes

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the metadata that is held in memory: columns that have been asked for."""
        held = sum(self._column_table[number][1] for number in list(self._columns))
        return held + len(self._column_table) * TABLE_ENTRY_BYTES

    @property
    def file_version(self) -> tuple[int, int]:
        """Version of the file format, (2, 2) for example."""
        return self.footer.file_version

    @property
    def num_columns(self) -> int:
        """Physical columns in the file."""
        return self.footer.num_columns

    @property
    def num_rows(self) -> int:
        """Rows in the file, from its descriptor."""
        if self._num_rows is None:
            _, self._num_rows = parse_descriptor(self.global_buffer(0))
        return self._num_rows

    @property
    def schema(self) -> Schema:
        """The file's own fields, from its descriptor."""
        fields, _ = parse_descriptor(self.global_buffer(0))
        return Schema.from_pb(fields.fields, fields.metadata, self.path)

    def global_buffers(self) -> list[tuple[int, int]]:
        """List (position, size) of the global buffers; the first one is the descriptor."""
        return self._table(self.footer.global_table_start, self.footer.num_global_buffers)

    def global_buffer(self, number: int) -> memoryview:
        """Return a global buffer. Raises CorruptFileError when there is no such buffer."""
        table = self.global_buffers()
        if not 0 <= number < len(table):
            raise CorruptFileError(
                self.path, None, f"more than {number} global buffers", str(len(table))
            )
        position, size = table[number]
        return self._source.view(position, position + size)

    def column_metadata(self, column: int) -> ColumnMetadata:
        """Return what the file says about column ``column``, parsed on first use."""
        return self._column(column, f"#{column}").metadata

    def read_leaves(
        self,
        leaves: Sequence[Leaf],
        owners: Mapping[int, int],
        rows: Rows,
        num_rows: int | None = None,
    ) -> dict[int, list[LeafPart]]:
        """Decode ``rows`` of each leaf; returns its parts in row order, by field id.

        ``owners`` maps field ids to column numbers of this file. Raises CorruptFileError when a
        column is shorter than the rows asked for, or has not ``num_rows`` rows (None: not known).
        """
        if not any(leaf.children for leaf in leaves):
            return self._read_leaves(leaves, owners, rows, num_rows)
        written = [self._as_written(leaf) for leaf in leaves]
        parts_by_leaf = self._read_leaves(written, owners, rows, num_rows)
        return {
            leaf.field_id: [
                LeafPart(part.levels, narrowed(part.values, stored, leaf))
                for part in parts_by_leaf[leaf.field_id]
            ]
            for stored, leaf in zip(written, leaves, strict=True)
        }

    def _as_written(self, leaf: Leaf) -> Leaf:
        """Return a leaf as the file holds it: of a packed struct all fields."""
        if not leaf.children:
            return leaf
        field = self.schema.field_by_id(leaf.field_id)
        type_ = leaf.type if field is None else Schema((field,), {}).to_arrow().field(0).type
        return as_written(leaf, field, type_)

    def _read_leaves(
        self, leaves: Sequence[Leaf], owners: Mapping[int, int], rows: Rows, num_rows: int | None
    ) -> dict[int, list[LeafPart]]:
        if self._arrays is not None:
            return self._arrays.read_leaves(leaves, owners, rows, num_rows)
        joined = self._read_alike(leaves, owners, rows, num_rows)
        single = [leaf for leaf in leaves if leaf.field_id not in joined] if joined else leaves
        requests = []
        for leaf in single:
            column = self._column(owners[leaf.field_id], leaf.name)
            requests.append(split_rows(column, self._entries(leaf, column, rows, num_rows)))
        decoded = decode_columns(
            self._source,
            requests,
            lambda number, page, count: leaf_part(single[number], page, count),
        )
        joined |= {leaf.field_id: parts for leaf, parts in zip(single, decoded, strict=True)}
        return joined

    def _read_alike(
        self, leaves: Sequence[Leaf], owners: Mapping[int, int], rows: Rows, num_rows: int | None
    ) -> dict[int, list[LeafPart]]:
        """Decode columns together that are described alike; none of them where one is damaged."""
        if len(leaves) < 2 or not 0 < rows.num_rows <= ALIKE_ROWS_MAX:
            return {}
        cached = self._alike.get(id(leaves))
        if cached is None or cached[0] is not leaves:
            columns = [self._column(owners[leaf.field_id], leaf.name) for leaf in leaves]
            cached = leaves, alike_columns(self._source, leaves, columns)
            if len(self._alike) >= _ALIKE_MAX:
                self._alike.clear()
            self._alike[id(leaves)] = cached
        last = int(rows.stops[-1])
        groups = [
            group
            for group in cached[1]
            if num_rows in (None, group.num_rows) and last <= group.num_rows
        ]
        sizes = sum(group.size_bytes * rows.num_rows // group.num_rows for group in groups)
        tasks = [partial(group.read, rows, self._source) for group in groups]
        read: dict[int, list[LeafPart]] = {}
        with suppress(*UNREADABLE):
            done = run_side_by_side(tasks, threads_for(sizes, len(tasks)))
            for group, parts in zip(groups, done, strict=True):
                for number, part in zip(group.numbers, parts, strict=True):
                    read[leaves[number].field_id] = [part]
        return read

    def _entries(self, leaf: Leaf, column: Column, rows: Rows, num_rows: int | None) -> Rows:
        """Return the rows as the column's pages count them, after checking that they are there."""
        scale = leaf.items_per_row
        num_rows_stored = column.metadata.num_rows
        last = int(rows.stops[-1]) if rows.stops.size else 0
        place = f"column {leaf.name!r}"
        if num_rows is not None and num_rows_stored != num_rows * scale:
            expected_text = f"{num_rows * scale} rows, as the manifest says"
            raise CorruptFileError(self.path, None, expected_text, f"{num_rows_stored} rows", place)
        if num_rows_stored < last * scale:
            raise CorruptFileError(
                self.path, None, f"{last * scale} rows", f"{num_rows_stored} rows", place
            )
        return rows if scale == 1 else Rows(rows.starts * scale, rows.stops * scale)

    def list_pages(self) -> Iterator[PageListing]:
        """List the pages of every column, from the metadata alone."""
        for column in range(self.num_columns):
            for number, page in enumerate(self.column_metadata(column).pages):
                yield PageListing(
                    column,
                    number,
                    page.num_rows,
                    size_bytes=sum(page.buffer_sizes),
                    offset_bytes=min(page.buffer_offsets, default=None),
                    encoding=describe_page(page),
                )

    def _table(self, start: int, count: int) -> list[tuple[int, int]]:
        return parse_table(self._source.view(start, start + count * TABLE_ENTRY_BYTES), count)

    def _column(self, number: int, name: str) -> Column:
        if number not in self._columns:
            if not 0 <= number < len(self._column_table):
                raise CorruptFileError(
                    self.path,
                    None,
                    f"a column number below {len(self._column_table)}",
                    str(number),
                    f"column {name!r}",
                )
            position, size = self._column_table[number]
            try:
                metadata = parse_column(
                    self._source.view(position, position + size),
                    self.footer.file_version,
                    self._source.size_bytes,
                )
            except CorruptFileError as exc:
                raise exc.located(self.path, position, f"column {name!r}") from exc
            except NotSupportedError as exc:
                exc.add_note(f"{self.path}, column {name!r}")
                raise
            self._columns[number] = Column(name, self.footer.file_version, metadata)
        return self._columns[number]
