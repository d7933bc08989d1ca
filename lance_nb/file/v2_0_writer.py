"""Write the columns of 2.0 files: each field owns one, depth first.

A list's column says where its lists end; the items are the column after it, without those of null
lists, in pages of their own. A struct's column holds nothing but its number of rows.

Limits: as pylance, null structs are refused and so are maps and fixed-size lists of structs: 2.1
stores null structs, 2.2 all of them.
Source: files of pylance 14.0.2; ``Page.priority`` is 0 in them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import Mask, concatenated, list_ranges, nulls_of
from lance_nb.encodings.base import Ints
from lance_nb.encodings.repdef import used_items
from lance_nb.encodings.v2_0.array_encoder import (
    BLOB_COLUMN,
    EncodedArray,
    encode_array,
    encode_lists,
    encode_places,
    encode_structs,
)
from lance_nb.errors import NotSupportedError
from lance_nb.file.blob_writer import payloads_of, write_payloads
from lance_nb.file.column_writer import row_runs
from lance_nb.file.metadata import ARRAY_ENCODING_URL, VALUES_ENCODING, PageMetadata
from lance_nb.file.sink import FileSink
from lance_nb.format.blob_fields import is_blob_v1, is_blob_v2
from lance_nb.format.logical_types import LARGE_LISTS, LISTS, STRUCT, is_nested
from lance_nb.format.schema import Field

_LIST_ENTRY_BYTES = 8
_PLACE_BYTES = 16


class ArrayColumnWriter:
    """One field of a 2.0 file, with the fields below it."""

    def __init__(self, field: Field, sink: FileSink, page_bytes: int, path: str = "") -> None:
        """Begin the columns of the field and, after it, of its children."""
        self._path = path + field.name
        self._field = field
        self._sink = sink
        self._page_bytes = page_bytes
        self._kind = _kind_of(field, self._path)
        is_blob = self._kind == "blob"
        self.column = sink.add_column(BLOB_COLUMN if is_blob else VALUES_ENCODING)
        self._children: list[ArrayColumnWriter] = []
        if self._kind in ("struct", "list"):
            self._children = [
                ArrayColumnWriter(child, sink, page_bytes, f"{self._path}.")
                for child in field.children
            ]
        self._values: list[pa.Array] = []
        self._counts: list[Ints] = []
        self._nulls: list[Mask | None] = []
        self._places: list[tuple[Ints, Ints]] = []
        self._waiting_bytes = 0
        self._num_rows = 0
        self._num_pages = 0
        self._nothing: pa.Array | None = None  # the values of no row, once any have come

    def write(self, array: pa.Array) -> None:
        """Take the field's values of some rows, in storage form."""
        self._nothing = array.slice(0, 0)
        if self._kind == "struct":
            self._write_structs(array)
        elif self._kind == "list":
            self._write_lists(array)
        elif self._kind == "blob":
            self._write_blobs(array)
        else:
            for rows in row_runs(array, self._page_bytes):
                self._values.append(rows)
                self._waiting_bytes += rows.nbytes
                if self._waiting_bytes >= self._page_bytes:
                    self._flush_values()

    def finish(self) -> None:
        """Close the last pages. Items of lists that are all empty get a page without values."""
        if self._kind == "struct" and self._nothing is not None:
            self._add_page(encode_structs(), self._num_rows)
        elif self._kind == "list":
            if self._nothing is not None and not self._num_pages and not self._counts:
                self._add_page(encode_lists(np.zeros(0, np.int64), None), 0)
            self._flush_lists()
        elif self._kind == "blob":
            self._flush_places()
        elif self._kind == "leaf":
            if self._nothing is not None and not self._num_pages and not self._values:
                self._add_page(encode_array(self._nothing), 0)
            self._flush_values()
        for child in self._children:
            child.finish()

    def owners(self) -> list[tuple[int, int]]:
        """Return (field id, column number) of this field and those below."""
        below = [owner for child in self._children for owner in child.owners()]
        return [(self._field.id, self.column), *below]

    # --- structs and lists ----------------------------------------------------------------------

    def _write_structs(self, array: pa.Array) -> None:
        nulls = nulls_of(array)
        if nulls is not None:
            raise NotSupportedError(
                f"column {self._path!r} has a null struct in row "
                f"{self._num_rows + int(nulls.argmax())}, which file version 2.0 cannot store; "
                "data_storage_version 2.1 and later can"
            )
        self._num_rows += len(array)
        for position, child in enumerate(self._children):
            child.write(array.field(position))

    def _write_lists(self, array: pa.Array) -> None:
        if not len(array):
            self._children[0].write(array.values.slice(0, 0))
        for rows in row_runs(array, self._page_bytes):
            starts, counts = list_ranges(rows)
            nulls = nulls_of(rows)
            if nulls is not None:
                counts[nulls] = 0
            self._counts.append(counts)
            self._nulls.append(nulls)
            self._children[0].write(used_items(rows.values, starts, counts))
            self._waiting_bytes += _LIST_ENTRY_BYTES * len(rows)
            if self._waiting_bytes >= self._page_bytes:
                self._flush_lists()

    def _flush_lists(self) -> None:
        if not self._counts:
            return
        counts = np.concatenate(self._counts)
        nulls = None
        if any(mask is not None for mask in self._nulls):
            pairs = zip(self._nulls, self._counts, strict=True)
            nulls = np.concatenate(
                [np.zeros(rows.size, bool) if mask is None else mask for mask, rows in pairs]
            )
        self._add_page(encode_lists(counts, nulls), counts.size)
        self._counts, self._nulls, self._waiting_bytes = [], [], 0

    # --- blobs ----------------------------------------------------------------------------------

    def _write_blobs(self, array: pa.Array) -> None:
        """Write the payloads; a null one has size 0 at position 1, an empty one at 0."""
        if not len(array):
            return
        payloads = payloads_of(array, self._sink, self._path)
        positions = write_payloads(self._sink, payloads)
        nulls = nulls_of(array)
        if nulls is not None:
            positions[nulls] = 1
        self._places.append((positions, payloads.sizes))
        self._waiting_bytes += _PLACE_BYTES * len(array)
        if self._waiting_bytes >= self._page_bytes:
            self._flush_places()

    def _flush_places(self) -> None:
        if not self._places:
            return
        positions, sizes = (np.concatenate(parts) for parts in zip(*self._places, strict=True))
        self._add_page(encode_places(positions, sizes), positions.size)
        self._places, self._waiting_bytes = [], 0

    # --- leaves ---------------------------------------------------------------------------------

    def _flush_values(self) -> None:
        if not self._values:
            return
        try:
            array = concatenated(self._values)
            page = encode_array(array)
        except NotSupportedError as error:
            error.add_note(f"column {self._path!r} (field id {self._field.id})")
            raise
        self._add_page(page, len(array))
        self._values, self._waiting_bytes = [], 0

    def _add_page(self, page: EncodedArray, num_rows: int) -> None:
        metadata = PageMetadata(
            (), (), num_rows, encoding_url=ARRAY_ENCODING_URL, encoding=page.encoding
        )
        self._sink.add_page(self.column, page.buffers, metadata, 0)
        self._num_pages += 1


def check_fields(field: Field, path: str = "") -> None:
    """Refuse, before a file is begun, what the version cannot hold. Raises NotSupportedError."""
    path += field.name
    if _kind_of(field, path) in ("struct", "list"):
        for child in field.children:
            check_fields(child, f"{path}.")


def _kind_of(field: Field, path: str) -> str:
    if is_blob_v2(field):
        raise NotSupportedError(
            f"column {path!r}: blobs of the second generation need data_storage_version 2.2"
        )
    if field.logical_type == STRUCT:
        packed = [field.metadata.get(key, b"") for key in ("packed", "lance-encoding:packed")]
        return "leaf" if b"true" in [flag.lower() for flag in packed] else "struct"
    if field.logical_type in LISTS or field.logical_type in LARGE_LISTS:
        return "list"
    if field.logical_type == "fixed_size_binary:0":
        raise NotSupportedError(f"column {path!r}: values of zero bytes cannot be stored")
    if is_blob_v1(field) and field.logical_type == "large_binary":
        return "blob"
    if is_nested(field.logical_type):
        raise NotSupportedError(
            f"column {path!r}: file version 2.0 cannot hold {field.logical_type}; "
            "data_storage_version 2.2 can"
        )
    return "leaf"
