"""Read a 0.1 data file ("legacy"): open it once, then any rows of any leaf.

Pages are found by field id, in a table that says where the page of each field and batch begins.
The ids are those that the fields had when the file was written; ``own_ids`` leads there from the
ids that a manifest gives them now, which differ where pylance has repaired ids given out twice.

Limits: see the floors below; the file's own schema says which fields it has.
Source: verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints, Rows
from lance_nb.errors import CorruptFileError
from lance_nb.file.columns import Leaf, LeafPart
from lance_nb.file.legacy_metadata import read_legacy_metadata
from lance_nb.file.legacy_pages import LegacyPages
from lance_nb.file.legacy_statistics import read_statistics
from lance_nb.file.page_listing import PageListing
from lance_nb.file.source import FileSource
from lance_nb.format.field import Field
from lance_nb.format.logical_types import is_nested, leaf_to_arrow
from lance_nb.format.schema import Schema

_ENCODINGS = {1: "plain", 2: "var_binary", 3: "dictionary", 4: "rle"}


class LegacyReader:
    """An open 0.1 data file. Safe to share between threads for reading."""

    file_version = (0, 1)

    def __init__(self, source: FileSource) -> None:
        """Read the messages at the end. Raises CorruptFileError."""
        self.path = source.path
        self._source = source
        self._metadata = read_legacy_metadata(source)
        self._pages = LegacyPages(source, self._metadata.schema, self._metadata.pages)

    @property
    def size_bytes(self) -> int:
        """Size of the file."""
        return self._source.size_bytes

    @property
    def metadata_bytes(self) -> int:
        """Bytes of the metadata that is held in memory: the ends of batches."""
        return int(self._metadata.pages.batch_ends.nbytes)

    @property
    def num_rows(self) -> int:
        """Rows of all batches."""
        ends = self._metadata.pages.batch_ends
        return int(ends[-1]) if ends.size else 0

    @property
    def schema(self) -> Schema:
        """The fields of the file, with the places of dictionaries."""
        return self._metadata.schema

    def read_leaves(
        self,
        leaves: Sequence[Leaf],
        owners: Mapping[int, int],
        rows: Rows,
        num_rows: int | None = None,
    ) -> dict[int, list[LeafPart]]:
        """Decode ``rows`` of each leaf; see ``FileReader.read_leaves``.

        ``owners`` are ids of this file by field id (``own_ids``).
        """
        last = int(rows.stops[-1]) if rows.stops.size else 0
        if last > self.num_rows or num_rows not in {None, self.num_rows}:
            expected = f"{last if num_rows is None else num_rows} rows"
            raise CorruptFileError(self.path, None, expected, f"{self.num_rows} rows")
        own = [_renamed(leaf, owners) for leaf in leaves]
        found = self._pages.read_leaves(own, rows)
        return {leaf.field_id: found[one.field_id] for leaf, one in zip(leaves, own, strict=True)}

    def own_ids(self, fields: Sequence[int]) -> dict[int, int]:
        """Map the field ids that a manifest lists for this file to those in the file.

        An id that the file does not know stands where the field does in the file's schema.
        """
        known = [one.id for one in self.schema.walk()]
        own = {one: one for one in fields}
        if not own.keys() <= set(known) and len(fields) == len(known):
            pairs = zip(fields, sorted(known), strict=True)
            own.update((one, mine) for one, mine in pairs if one not in known)
        return own

    def batch_sizes(self) -> Ints:
        """Return the rows of each batch: every field has one page per batch."""
        return np.diff(self._metadata.pages.batch_ends, prepend=np.int64(0))

    def statistics(self) -> pa.Table | None:
        """Null count, smallest and largest value by field id, one row per batch (None: none)."""
        return read_statistics(self._source, self._metadata)

    def list_pages(self) -> Iterator[PageListing]:
        """List the pages of every field; their statistics are read as well."""
        statistics = self.statistics()
        table = self._metadata.pages
        for field in self.schema.walk():
            if field.logical_type == "struct":
                continue
            for batch in range(table.batch_ends.size):
                page = table.page(self._source, field.id, batch)
                row = _statistics_of(statistics, field.id, batch)
                yield PageListing(
                    field.id,
                    batch,
                    page.num_values,
                    _size_bytes(field, page.num_values),
                    page.position,
                    _ENCODINGS.get(field.encoding, "none"),
                    row.get("null_count"),
                    _text(row.get("min_value")),
                    _text(row.get("max_value")),
                )


def _renamed(leaf: Leaf, owners: Mapping[int, int]) -> Leaf:
    """Return the leaf with the field ids of the file."""
    if owners.get(leaf.field_id, leaf.field_id) == leaf.field_id and not leaf.ancestors:
        return leaf
    ancestors = tuple((owners.get(field, field), type_) for field, type_ in leaf.ancestors)
    return replace(leaf, field_id=owners.get(leaf.field_id, leaf.field_id), ancestors=ancestors)


def _statistics_of(statistics: pa.Table | None, field_id: int, batch: int) -> dict[str, Any]:
    if statistics is None or str(field_id) not in statistics.column_names:
        return {}
    found: dict[str, Any] = statistics.column(str(field_id))[batch].as_py() or {}
    return found


def _text(bound: object) -> str | None:
    return None if bound is None else str(bound)


def _size_bytes(field: Field, num_values: int) -> int | None:
    """Return the bytes of a page of fixed-width values; None where only the page could tell."""
    if is_nested(field.logical_type):
        return num_values * (8 if field.logical_type.startswith("large") else 4)
    type_ = leaf_to_arrow(field.logical_type)
    if pa.types.is_dictionary(type_):
        type_ = type_.index_type
    while pa.types.is_fixed_size_list(type_):
        num_values *= type_.list_size
        type_ = type_.value_type
    try:
        return (num_values * int(type_.bit_width) + 7) // 8
    except ValueError:
        return 0 if pa.types.is_null(type_) else None
