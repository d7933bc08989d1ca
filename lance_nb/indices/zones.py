"""Zones: runs of rows of a fragment, of which an index knows something together.

Columns: ``fragment_id``, ``zone_start``, ``zone_length``; the setting ``null_bitmap`` names a
global buffer with the set of rows that are null. Rows are named by address, whatever ids the
dataset has. A zone is built of as many live rows as the settings say, and ends with its fragment;
its length counts deleted rows between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.indices.index_file import IndexFile
from lance_nb.indices.row_sets import (
    NO_ROWS,
    ROWS_MAX,
    U64s,
    ascending,
    joined,
    tree_map_rows,
    tree_maps,
)
from lance_nb.table.index_search import numbers

if TYPE_CHECKING:
    from lance_nb.file.writer import FileWriter

ZONES_MAX = 1 << 22
_OFFSETS = 1 << 32
Mask = npt.NDArray[np.bool_]


class Zones:
    """The zones of one file."""

    def __init__(self, file: IndexFile) -> None:
        file.check_rows(ZONES_MAX)
        columns = file.read_all("fragment_id", "zone_start", "zone_length")
        fragments, starts, self._lengths = (numbers(column, file.path) for column in columns)
        ends = starts + self._lengths
        too_far = (starts >= _OFFSETS) | (self._lengths > _OFFSETS) | (ends > _OFFSETS)
        if bool((too_far | (fragments >= _OFFSETS)).any()):
            zone = int((too_far | (fragments >= _OFFSETS)).argmax())
            where = f"zone {zone} of rows {starts[zone]} to {ends[zone]}"
            in_fragment = f"{where} in fragment {fragments[zone]}"
            raise CorruptFileError(file.path, None, "zones inside of fragments", in_fragment)
        self._starts = (fragments << np.uint64(32)) + starts
        self.fragments = fragments
        self._path = file.path
        nulls = file.buffer("null_bitmap")
        self.nulls: U64s | None = None if nulls is None else tree_map_rows(nulls, file.path)

    def check_counts(self, num_nulls: U64s, num_nans: U64s) -> None:
        """Refuse zones with more nulls and NaN than rows, or other nulls than the set has.

        Raises CorruptFileError.
        """
        is_more = (num_nulls > self._lengths) | (num_nans > self._lengths)
        if bool(is_more.any()):
            zone = int(is_more.argmax())
            expected = f"at most {self._lengths[zone]} nulls and NaN in zone {zone}"
            counts = f"{num_nulls[zone]} nulls and {num_nans[zone]} NaN"
            raise CorruptFileError(self._path, None, expected, counts)
        if self.nulls is not None and int(num_nulls.sum()) != self.nulls.size:
            expected = f"{self.nulls.size} nulls in all zones, as their set has"
            raise CorruptFileError(self._path, None, expected, f"{int(num_nulls.sum())}")

    def count(self, chosen: Mask) -> int:
        """Count the rows of some zones."""
        return int(np.minimum(self._lengths[chosen], ROWS_MAX).sum())

    def offsets_of(self, chosen: Mask) -> tuple[U64s, U64s]:
        """Return the first offset of some zones in their fragment, and the one behind the last."""
        starts = self._starts[chosen] & np.uint64(_OFFSETS - 1)
        return starts, starts + self._lengths[chosen]

    def rows(self, chosen: Mask) -> U64s:
        """Return the addresses of all rows of some zones. Raises NotSupportedError."""
        if self.count(chosen) > ROWS_MAX:
            raise NotSupportedError(f"{self._path}: more than {ROWS_MAX:,} candidates")
        starts, lengths = self._starts[chosen], self._lengths[chosen].astype(np.int64)
        if not starts.size:
            return NO_ROWS
        before = np.cumsum(lengths) - lengths
        inside = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(before, lengths)
        return joined([np.repeat(starts, lengths) + inside.astype(np.uint64)])


# --- building -------------------------------------------------------------------------------------

ZONE_ROWS = 8192
_ZONE_ROWS_MAX = 1 << 24
ZONE_FIELDS = (
    pa.field("fragment_id", pa.uint64(), nullable=False),
    pa.field("zone_start", pa.uint64(), nullable=False),
    pa.field("zone_length", pa.uint64(), nullable=False),
)


class Zone(NamedTuple):
    """A zone, and the values of its live rows."""

    fragment_id: int
    start: int
    length: int
    values: pa.Array


class NullRows:
    """Collect the rows of null values; they are in memory."""

    def __init__(self) -> None:
        self._parts: list[U64s] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the null values of a batch of values and rows."""
        if batch.column(0).null_count:
            null_rows = pc.filter(batch.column(1), pc.is_null(batch.column(0)))
            self._parts.append(np.frombuffer(null_rows.buffers()[1], np.uint64, len(null_rows)))

    def tree_map(self) -> bytes:
        """Return the set of all of them."""
        rows = ascending(np.concatenate(self._parts)) if self._parts else NO_ROWS
        data: bytes = tree_maps(np.zeros(rows.size, np.int64), rows, 1)[0].as_py()
        return data


def zones_of(batches: Iterable[pa.RecordBatch], zone_rows: int, nulls: NullRows) -> Iterator[Zone]:
    """Cut rows, which come fragment by fragment with their addresses, into zones."""
    waiting: pa.RecordBatch | None = None
    for batch in batches:
        nulls.add(batch)
        for part in _by_fragment(batch):
            if waiting is not None and _fragment(waiting) != _fragment(part):
                yield _zone(waiting)
                waiting = None
            rows = part if waiting is None else pa.concat_batches([waiting, part])
            whole = rows.num_rows - rows.num_rows % zone_rows
            for start in range(0, whole, zone_rows):
                yield _zone(rows.slice(start, zone_rows))
            waiting = rows.slice(whole) if whole < rows.num_rows else None
    if waiting is not None:
        yield _zone(waiting)


def write_zones(
    file: FileWriter,
    schema: pa.Schema,
    records: Iterable[Sequence[Any]],
    nulls: NullRows,
    batch_rows: int,
) -> None:
    """Write what is known of each zone, in batches, and then the rows of null values."""
    remaining = iter(records)
    while batch := list(islice(remaining, batch_rows)):
        columns = [
            pa.array(values, field.type)
            for values, field in zip(zip(*batch, strict=True), schema, strict=True)
        ]
        file.write(pa.RecordBatch.from_arrays(columns, schema=schema))
    number = file.add_global_buffer(nulls.tree_map())
    file.add_schema_metadata({"null_bitmap": str(number).encode()})


def _rows_of(batch: pa.RecordBatch) -> U64s:
    rows = batch.column(1)
    return np.frombuffer(rows.buffers()[1], np.uint64, len(rows), rows.offset * 8)


def _fragment(batch: pa.RecordBatch) -> int:
    return int(_rows_of(batch)[0] >> np.uint64(32))


def _by_fragment(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    fragments = _rows_of(batch) >> np.uint64(32)
    cuts = [0, *(np.flatnonzero(fragments[1:] != fragments[:-1]) + 1).tolist(), batch.num_rows]
    for start, stop in pairwise(cuts):
        if stop > start:
            yield batch.slice(start, stop - start)


def _zone(batch: pa.RecordBatch) -> Zone:
    rows = _rows_of(batch)
    first, last = int(rows[0]), int(rows[-1])
    start = first & (_OFFSETS - 1)
    return Zone(first >> 32, start, last - first + 1, batch.column(0))


def checked_zone_rows(value: object, name: str) -> int:
    """Return a number of rows per zone. Raises InvalidInputError."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not isinstance(value, int) or not is_number or not 0 < value <= _ZONE_ROWS_MAX:
        raise InvalidInputError(f"{name} is a number from 1 to {_ZONE_ROWS_MAX}, not {value!r}")
    return value
