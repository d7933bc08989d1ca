"""Columns of a 2.1 or 2.2 file under construction: planned, then written page by page.

A field owns a column if it has no children, or if it is a struct that is stored row by row
(``packed``). Encoding keys of the top-level field hold for its leaves unless these say otherwise.
Each column has pages of its own, which end when the waiting values reach the target size, at the
end of a row. Arrays wait as they came; they are joined when a page is closed.

Limits: an incoming array is cut into runs of rows of about the target size first, so a page holds
at most about twice that, unless single rows are larger. Types that a version cannot hold, or that
no reader can read back, are refused.
Not supported: packed structs inside lists of fixed size.
Source: spec page "file format" (columns and field ids); field metadata and page sizes (8 MiB) of
pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_parts import concatenated
from lance_nb.encodings.compress_base import PageLevels
from lance_nb.encodings.encoding_options import PREFIX, EncodingOptions
from lance_nb.encodings.page_encoder import EncodedPage, Learned, encode_pages
from lance_nb.encodings.repdef import Entries, Shape, StripedLeaf, page_levels, stripe
from lance_nb.errors import LanceError, NotSupportedError
from lance_nb.file.metadata import PAGE_LAYOUT_URL, PageMetadata
from lance_nb.file.sink import FileSink
from lance_nb.file.versions import version_name
from lance_nb.format.arrow_schema import field_to_arrow
from lance_nb.format.blob_fields import is_blob_v1, is_blob_v2
from lance_nb.format.logical_types import (
    LARGE_LISTS,
    LISTS,
    MAP,
    STRUCT,
    fixed_size_struct_dimension,
)
from lance_nb.format.schema import Field
from lance_nb.value_classes import dataclass

_LISTS = (*LISTS, *LARGE_LISTS, MAP)
_OWN_KEYS = ("packed", f"{PREFIX}packed", f"{PREFIX}blob")
_DICTIONARY_VALUES = 1024  # dictionaries up to this are kept as they are


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """One column: the field that owns it and its options."""

    field: Field
    options: EncodingOptions


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """One top-level field: its stored Arrow type, which parts are leaves, and the leaves."""

    field: Field
    type: pa.DataType
    shape: Shape
    leaves: tuple[LeafPlan, ...]


def plan_column(field: Field, file_version: tuple[int, int]) -> ColumnPlan:
    """Plan a top-level field. Raises NotSupportedError, InvalidInputError for its metadata."""
    leaves: list[LeafPlan] = []
    keys = _encoding_keys(field.metadata)
    shape = _shape(field, keys, file_version, leaves)
    return ColumnPlan(field, field_to_arrow(field, storage=True).type, shape, tuple(leaves))


def _shape(
    field: Field,
    keys: Mapping[str, bytes],
    file_version: tuple[int, int],
    leaves: list[LeafPlan],
) -> Shape:
    _check_version(field, file_version)
    options = EncodingOptions.from_metadata({**keys, **field.metadata}, file_version)
    is_packed = options.is_packed and field.logical_type == STRUCT
    if not field.children or is_packed or is_blob_v2(field):
        leaves.append(LeafPlan(field, options))
        return Shape()
    return Shape(tuple(_shape(child, keys, file_version, leaves) for child in field.children))


def _check_version(field: Field, file_version: tuple[int, int]) -> None:
    """Refuse what the version cannot hold, or what no reader takes out of it again."""
    name, kind = field.name, field.logical_type
    is_fixed_list = fixed_size_struct_dimension(kind) is not None
    newer = {
        "blobs of the second generation": is_blob_v2(field),
        "fixed-size lists of structs": is_fixed_list,
        "maps": kind == MAP,
    }
    for feature, applies in newer.items():
        if applies and file_version < (2, 2):
            raise NotSupportedError(
                f"column {name!r}: {feature} need data_storage_version 2.2, not "
                f"{version_name(file_version)}"
            )
    below = [part.logical_type for part in field.walk() if part is not field]
    if is_fixed_list and any(type_name in _LISTS for type_name in below):
        raise NotSupportedError(f"column {name!r}: lists inside fixed-size lists of structs")
    if any(fixed_size_struct_dimension(type_name) is not None for type_name in below):
        raise NotSupportedError(f"column {name!r}: fixed-size lists of structs inside other fields")
    if any(part.logical_type == STRUCT and not part.children for part in field.walk()) and below:
        raise NotSupportedError(
            f"column {name!r}: structs without fields inside other fields need "
            "data_storage_version 2.0"
        )
    if is_blob_v1(field) and kind not in ("large_binary", STRUCT):
        raise NotSupportedError(f"column {name!r}: blobs are large_binary, not {kind}")
    if kind == "fixed_size_binary:0":
        raise NotSupportedError(f"column {name!r}: values of zero bytes cannot be stored")


def _encoding_keys(metadata: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the encoding keys that parts of the field inherit."""
    return {
        key: value
        for key, value in metadata.items()
        if key.startswith(PREFIX) and key not in _OWN_KEYS
    }


class LeafWriter:
    """One column: collects striped values and writes its pages."""

    def __init__(self, plan: LeafPlan, sink: FileSink, page_bytes: int) -> None:
        self.plan = plan
        self.sink = sink
        self.column = sink.reserve_column()
        self.entries: list[Entries] = []
        self._values: list[pa.Array] = []
        self._learned = sink.learned.setdefault(self.column, Learned())
        self._page_bytes = page_bytes
        self._waiting_bytes = 0
        self._first_row = 0
        self._waiting_rows = 0

    def add(self, leaf: StripedLeaf, num_rows: int) -> None:
        """Take the leaf's part of ``num_rows`` rows; closes a page when there is enough."""
        values = leaf.values
        if isinstance(values, pa.DictionaryArray):
            values = without_surplus(values)
        self._values.append(values)
        self.add_entries(leaf.entries, num_rows, values.nbytes)

    def add_entries(self, entries: Entries, num_rows: int, size_bytes: int) -> None:
        """Take the levels of rows whose values have been taken, and count both."""
        self.entries.append(entries)
        self._waiting_rows += num_rows
        self._waiting_bytes += size_bytes
        if entries.depths is not None:
            self._waiting_bytes += entries.num_entries // 4
        if self._waiting_bytes >= self._page_bytes:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one page, or several where one cannot hold it."""
        if not self._waiting_rows:
            return
        try:
            pages = self.encoded()
        except LanceError as error:
            error.add_note(f"column {self.plan.field.name!r} (field id {self.plan.field.id})")
            raise
        add_pages(self.sink, self.column, pages, self._first_row)
        self._first_row += self._waiting_rows
        self._values, self.entries = [], []
        self._waiting_rows = self._waiting_bytes = 0

    def encoded(self) -> list[EncodedPage]:
        """Encode what waits."""
        values, levels = self.waiting()
        return encode_pages(values, levels, self.plan.options, self._learned)

    def has_one_page(self, options: EncodingOptions) -> bool:
        """Tell whether all rows wait for one page of plain values, encoded by these options."""
        is_first = not self._first_row and self._waiting_rows > 0
        return is_first and type(self) is LeafWriter and self.plan.options == options

    def waiting(self) -> tuple[pa.Array, PageLevels]:
        """Return what waits, at least one row, as the values and levels of a page."""
        return concatenated(self._values), page_levels(self.entries)


def add_pages(
    sink: FileSink, column: int, pages: Sequence[EncodedPage], first_row: int = 0
) -> None:
    """Write encoded pages of a column, the first of which begins with ``first_row``."""
    for page in pages:
        layout = page.layout.SerializeToString()
        metadata = PageMetadata(
            (), (), page.num_rows, encoding_url=PAGE_LAYOUT_URL, encoding=layout
        )
        sink.add_page(column, page.buffers, metadata, first_row)
        first_row += page.num_rows


class EmptyStructWriter(LeafWriter):
    """The column of a struct without fields: it tells the number of rows, as one that is null."""

    def add(self, leaf: StripedLeaf, num_rows: int) -> None:
        """Take rows. Raises NotSupportedError for null ones."""
        if leaf.values.null_count:
            raise NotSupportedError(
                f"column {self.plan.field.name!r} has null structs without fields, which cannot be "
                "stored"
            )
        nulls = pa.nulls(num_rows)
        (striped,) = stripe(nulls, Shape())
        super().add(striped, num_rows)


class ColumnWriter:
    """A top-level field: cuts arrays into runs of rows, and those into leaves."""

    def __init__(
        self,
        plan: ColumnPlan,
        leaves: Sequence[LeafWriter],
        page_bytes: int,
    ) -> None:
        self.leaves = leaves
        self._plan = plan
        self._page_bytes = page_bytes

    def write(self, array: pa.Array) -> None:
        """Take the field's values of some rows, in storage form."""
        for rows in row_runs(array, self._page_bytes):
            for leaf, writer in zip(stripe(rows, self._plan.shape), self.leaves, strict=True):
                writer.add(leaf, len(rows))

    def finish(self) -> None:
        """Close the last pages."""
        for leaf in self.leaves:
            leaf.flush()

    def owners(self) -> list[tuple[int, int]]:
        """Return (field id, column number) of every column."""
        return [(leaf.plan.field.id, leaf.column) for leaf in self.leaves]


def row_runs(array: pa.Array, target_bytes: int) -> Iterator[pa.Array]:
    """Cut an array into equal runs of rows of at least ``target_bytes``: each fills a page.

    A little more than that, because rows do not divide evenly, and a run that is short by a byte
    would wait to be joined with the next.
    """
    is_dictionary = isinstance(array, pa.DictionaryArray)
    size_bytes = array.indices.nbytes if is_dictionary else array.nbytes
    count = min(max(size_bytes // (target_bytes + target_bytes // 16), 1), max(len(array), 1))
    if count == 1:
        if len(array):
            yield array
        return
    bounds = np.linspace(0, len(array), count + 1).astype(np.int64).tolist()
    for start, stop in pairwise(bounds):
        yield array.slice(start, stop - start)


def without_surplus(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Leave out what a few rows do not use of a large dictionary: every page stores its own."""
    if len(array.dictionary) <= max(2 * len(array), _DICTIONARY_VALUES):
        return array
    encoded = pc.dictionary_encode(array.dictionary_decode())
    indices = pc.cast(encoded.indices, array.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)
