"""Read a data file the way the table floor does, and compare Arrow data bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Rows
from lance_nb.errors import LanceError
from lance_nb.file.columns import assemble, leaves_of
from lance_nb.file.reader import FileReader
from lance_nb.format.schema import Schema
from lance_nb.storage.base import ByteRange, Store, check_range


class RemoteLikeStore:
    """A store that cannot map: every read is a range, and the ranges read are remembered."""

    def __init__(self, store: Store, tail_bytes: int = 1 << 30) -> None:
        self._store = store
        self._tail_bytes = tail_bytes
        self.ranges: list[tuple[int, int]] = []
        self.rounds = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def map(self, path: str) -> None:
        return None

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        return self._store.read_tail(path, min(size_bytes, self._tail_bytes))

    def read_range(self, path: str, wanted: ByteRange) -> memoryview:
        self.rounds += 1
        self.ranges.append((wanted.start, wanted.stop))
        return self._store.read_range(path, wanted)

    def read_ranges(self, path: str, wanted: list[ByteRange]) -> list[memoryview]:
        self.rounds += 1
        self.ranges.extend((one.start, one.stop) for one in wanted)
        return self._store.read_ranges(path, wanted)


class BytesStore:
    """One object in memory, served as a mapped file or range by range."""

    uri = "bytes://"

    def __init__(self, data: bytes, *, mapped: bool = True, tail_bytes: int = 256) -> None:
        self._data = memoryview(data)
        self._mapped = mapped
        self._tail_bytes = tail_bytes

    def map(self, path: str) -> memoryview | None:
        return self._data if self._mapped else None

    def read_tail(self, path: str, size_bytes: int) -> tuple[memoryview, int]:
        start = max(0, len(self._data) - min(size_bytes, self._tail_bytes))
        return self._data[start:], len(self._data)

    def read_range(self, path: str, wanted: ByteRange) -> memoryview:
        check_range(path, wanted, len(self._data))
        return self._data[wanted.start : wanted.stop]

    def read_ranges(self, path: str, wanted: list[ByteRange]) -> list[memoryview]:
        return [self.read_range(path, one) for one in wanted]


def rows_of(*ranges: tuple[int, int]) -> Rows:
    """Build Rows from sorted, disjoint, non-empty ranges."""
    pairs = np.array(ranges, np.int64).reshape(-1, 2)
    return Rows(pairs[:, 0].copy(), pairs[:, 1].copy())


def single_rows(indices: Iterable[int]) -> Rows:
    """Build Rows of single rows (sorted, without repeats), adjacent ones not merged."""
    found = np.unique(np.fromiter(indices, np.int64))
    return Rows(found, found + 1)


def positions_of(rows: Rows) -> np.ndarray[Any, np.dtype[np.int64]]:
    """List every row number of the ranges."""
    pieces = [np.arange(a, b) for a, b in zip(rows.starts, rows.stops, strict=True)]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)


class Columns:
    """The columns of a data file that was written with exactly this Arrow schema.

    In ``old`` files (2.0) every field owns a column, not only leaves.
    """

    def __init__(self, schema: pa.Schema, *, old: bool = False) -> None:
        self.schema = Schema.from_arrow(schema)
        self.types = {field.name: field.type for field in self.schema.to_arrow()}
        owning = self.schema.walk() if old else self.schema.leaves()
        self.owners = {field.id: number for number, field in enumerate(owning)}

    def read(self, reader: FileReader, name: str, rows: Rows) -> pa.ChunkedArray:
        """Read rows of one top-level column."""
        field, kind = self.schema.field(f"`{name}`"), self.types[name]
        leaves = list(leaves_of(field, kind, self.owners))
        found = reader.read_leaves(leaves, self.owners, rows)
        return assemble(field, kind, found, rows.num_rows)


def scattered(rng: Any, n: int) -> Rows:
    """Pick ranges here and there."""
    cuts = np.unique(rng.integers(0, n, 21)) if n else np.zeros(0, np.int64)
    pairs = cuts[: cuts.size // 2 * 2].reshape(-1, 2)
    return rows_of(*(tuple(pair) for pair in pairs.tolist()))


def row_sets(rng: Any, n: int) -> Iterator[Rows]:
    """Yield rows to read: none, all, single ones, a range, ranges here and there."""
    yield rows_of()
    if n:
        yield rows_of((0, n))
        yield single_rows(np.append(rng.integers(0, n, 40), [0, n - 1]))
    if n > 10:
        low, high = sorted(rng.choice(n, 2, replace=False).tolist())
        yield rows_of((low, high))
        yield scattered(rng, n)


def file_differences(reader: FileReader, table: pa.Table, rows: Rows) -> Iterator[str]:
    """Yield how columns of a data file differ from those of the table that was written."""
    view = Columns(table.schema, old=reader.footer.file_version < (2, 1))
    expected = table.take(pa.array(positions_of(rows)))
    for name, column in zip(expected.column_names, expected.columns, strict=True):
        place = f"{name}, {rows.num_rows} of {table.num_rows} rows"
        try:
            got = view.read(reader, name, rows)
        except LanceError as error:
            yield f"{place}: {error} {getattr(error, '__notes__', '')}"
            continue
        for chunk in got.chunks:
            chunk.validate(full=True)
        if not same(got, column):
            yield f"{place}: {first_difference(got, column)}"


def first_difference(got: Any, expected: Any) -> str:
    """Say where two columns differ, briefly."""
    if got.type != expected.type:
        return f"type {got.type} instead of {expected.type}"
    try:
        pairs = list(zip(got.to_pylist(), expected.to_pylist(), strict=False))
    except (OverflowError, ValueError) as error:  # a time that Python's classes cannot hold
        return f"{str(got)[:80]} instead of {str(expected)[:80]} ({error})"
    for number, (one, other) in enumerate(pairs):
        if one != other and (one == one or other == other):  # noqa: PLR0124 (NaN)
            return f"row {number}: {str(one)[:80]} instead of {str(other)[:80]}"
    return f"{len(got)} rows instead of {len(expected)}, or bits only"


def same(left: Any, right: Any) -> bool:
    """Tell whether two arrays are equal to the bit: nulls, NaN payloads, signed zeros, types."""
    left, right = _one(left), _one(right)
    if left.type != right.type or len(left) != len(right):
        return False
    if isinstance(left.type, pa.BaseExtensionType):
        return same(left.storage, right.storage)
    if pa.types.is_dictionary(left.type):  # null keys and null items are the same to a reader
        return same(left.dictionary_decode(), right.dictionary_decode())
    if left.null_count != right.null_count or not left.is_valid().equals(right.is_valid()):
        return False
    kind = left.type
    if pa.types.is_struct(kind):
        pairs = zip(left.flatten(), right.flatten(), strict=True)
        return all(same(one, other) for one, other in pairs)
    if pa.types.is_map(kind):
        return same(_lists_of_entries(left), _lists_of_entries(right))
    if pa.types.is_fixed_size_list(kind):
        return same(left.flatten(), right.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = left.value_lengths().equals(right.value_lengths())
        return bool(lengths) and same(left.flatten(), right.flatten())
    if pa.types.is_floating(kind):
        bits = pa.int8() if kind.bit_width == 8 else getattr(pa, f"int{kind.bit_width}")()
        return bool(left.view(bits).equals(right.view(bits)))
    return bool(left.equals(right))


def _lists_of_entries(maps: Any) -> Any:
    """Turn maps into lists of structs; Arrow's cast refuses required fields below null items."""
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], ["key", "value"])
    offsets = pa.array(maps.offsets.to_numpy())  # a copy: a mask goes with no slice
    return pa.ListArray.from_arrays(offsets, entries, mask=maps.is_null())


def _one(data: Any) -> Any:
    if isinstance(data, pa.ChunkedArray):
        if not data.num_chunks:
            return pa.nulls(0, data.type)
        return data.combine_chunks() if data.num_chunks != 1 else data.chunk(0)
    return data


def decoded(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace keys by values: pylance keeps some nulls of dictionary columns as null values."""
    if not pa.types.is_dictionary(data.type):
        return data
    chunks = [chunk.dictionary_decode() for chunk in data.chunks]
    return pa.chunked_array(chunks, data.type.value_type)


def check(ours: pa.Table, theirs: pa.Table, place: object) -> None:
    """Compare tables: names, types, metadata, and values to the bit."""
    assert ours.schema.equals(theirs.schema, check_metadata=True), place
    for name, got, expected in zip(ours.column_names, ours.columns, theirs.columns, strict=True):
        got.validate(full=True)
        assert same(got, expected), f"{place}, {name}: {first_difference(got, expected)}"


def check_table(ours: pa.Table, theirs: pa.Table, place: object, *, metadata: bool = True) -> None:
    """Assert that two tables are the same, and that ours is valid."""
    if not metadata:
        ours = ours.replace_schema_metadata(theirs.schema.metadata)
    assert ours.schema.equals(theirs.schema, check_metadata=True), place
    assert ours.num_rows == theirs.num_rows, place
    for name, got, expected in zip(ours.column_names, ours.columns, theirs.columns, strict=True):
        assert same(got, expected), f"{place}, {name}: {first_difference(got, expected)}"
    ours.validate(full=True)
