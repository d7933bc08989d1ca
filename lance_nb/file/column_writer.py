"""Columns of a 2.1 or 2.2 file under construction: values wait until they fill a page.

Each leaf of a top-level field has pages of its own, which end when what waits reaches the target
size, at the end of a row. Arrays wait as they came; they are joined when a page is closed.

Limits: an incoming array is cut into runs of rows of about the target size first, so a page holds
at most about twice that, unless single rows are larger.
Source: page sizes of pylance 14.0.2 (8 MiB).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_parts import concatenated
from lance_nb.encodings.page_encoder import EncodedPage, Learned, encode_pages
from lance_nb.encodings.repdef import Entries, Shape, StripedLeaf, page_levels, stripe
from lance_nb.errors import LanceError, NotSupportedError
from lance_nb.file.metadata import PAGE_LAYOUT_URL, PageMetadata
from lance_nb.file.sink import FileSink
from lance_nb.file.write_plan import ColumnPlan, LeafPlan

_DICTIONARY_VALUES = 1024  # dictionaries up to this are kept as they are


class LeafWriter:
    """One column: collects striped values and writes its pages."""

    def __init__(self, plan: LeafPlan, sink: FileSink, page_bytes: int) -> None:
        self.plan = plan
        self.sink = sink
        self.column = sink.add_column()
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
        row = self._first_row
        for page in pages:
            layout = page.layout.SerializeToString()
            metadata = PageMetadata((), (), page.num_rows, PAGE_LAYOUT_URL, layout)
            self.sink.add_page(self.column, page.buffers, metadata, row)
            row += page.num_rows
        self._first_row += self._waiting_rows
        self._values, self.entries = [], []
        self._waiting_rows = self._waiting_bytes = 0

    def encoded(self) -> list[EncodedPage]:
        """Encode what waits."""
        levels = page_levels(self.entries)
        return encode_pages(concatenated(self._values), levels, self.plan.options, self._learned)


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
    kept = array.dictionary_decode().dictionary_encode()
    indices = kept.indices.cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, kept.dictionary)
