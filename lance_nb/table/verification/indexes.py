"""Check indices: their files exist and are whole, and the right rows are in them.

A segment covers the fragments of its bitmap that still exist. Every live row of these is in a
B-tree or a bitmap index exactly once; no kind names rows that never existed. Rows that have been
deleted since, and removed fragments, may stay in the files.

Layout: a segment is the folder ``_indices/<uuid>``. Rows are addresses,
``fragment << 32 | offset``, or row ids where these are stable (but for B-trees of version 1 and for
zones). A set of rows is ``u32 count``, then per fragment ``u32 key | u32 size | portable 32-bit
Roaring bitmap``.

==============  ==============================  =============================================
kind            file                            rows
==============  ==============================  =============================================
BTree           ``page_data.lance``             ``ids``
Bitmap          ``bitmap_page_lookup.lance``    ``bitmaps``, sets
LabelList       ``bitmap_page_lookup.lance``    ``bitmaps``, sets; a row in several or none
ZoneMap         ``zonemap.lance``               ``fragment_id``, ``zone_start``, ``zone_length``
BloomFilter     ``bloomfilter.lance``           the same
Vector          ``auxiliary.idx``               ``_rowid``; rows without a vector are in none
==============  ==============================  =============================================

Every live row is in a zone too. A zone covers the rows ``start`` to ``start + length`` of a
fragment, and every value of these lies between its ``min`` and ``max``. The set of a key holds the
rows that have the value, in a list anywhere. Both are compared with the column.

Limits: of other kinds the files are opened, and values are not compared. Columns at the top level
are compared, by the fragments that the index covers; zones only of numbers, dates and times, and
neither NaN nor null. Memory: at most ``ROWS_AT_ONCE`` rows of the dataset are held as numbers, and
keys of more rows are not compared.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.encodings.base import Rows
from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    LanceError,
    NotFoundError,
    NotSupportedError,
)
from lance_nb.file.columns import assemble, leaves_of
from lance_nb.file.reader import FileReader
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.roaring import check_portable
from lance_nb.storage.base import Store
from lance_nb.table.deletions import read_deletions
from lance_nb.table.filtered_scan import quoted
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.indices import read_indices, remap_row_addrs
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.row_ids import fragment_row_ids
from lance_nb.table.scan_plan import ScanOptions, plan_scan
from lance_nb.table.single_file import column_owners
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.findings import Finding
from lance_nb.value_classes import dataclass

ROWS_AT_ONCE = 4_000_000
_WINDOW_ROWS = 1 << 18
_WINDOW_BYTES = 8 * 1024 * 1024
_VERSIONS_KNOWN = {"BTree": 1, "Bitmap": 0, "LabelList": 1, "ZoneMap": 0, "BloomFilter": 0}
_SETS = "bitmap_page_lookup.lance"
_FILES = {
    "BTree": "page_data.lance",
    "Bitmap": _SETS,
    "LabelList": _SETS,
    "ZoneMap": "zonemap.lance",
    "BloomFilter": "bloomfilter.lance",
    "Vector": "auxiliary.idx",
}
_DOCUMENTS = re.compile(r"(?:part_\d+_)?docs\.lance")
_COMPLETE = ("BTree", "Bitmap")  # each live row once
_KEYED = ("Bitmap", "LabelList")
_READABLE = (".lance", ".idx")
_COUNT, _ENTRY = struct.Struct("<I"), struct.Struct("<II")
_ZONE = ("min", "max", "fragment_id", "zone_start", "zone_length")
_SHIFT = np.uint64(32)
_OFFSET = np.uint64(0xFFFFFFFF)
U64s = npt.NDArray[np.uint64]
Values = tuple[pa.Array, U64s]


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment, in the version in which it is checked, and the fragments that it covers."""

    snapshot: Snapshot
    index: IndexMetadata
    fragments: tuple[Fragment, ...]

    @property
    def by_address(self) -> bool:
        """Whether its rows are addresses."""
        if not self.snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
            return True
        kind, version = self.index.kind, self.index.index_version or 0
        return kind in ("ZoneMap", "BloomFilter") or (kind == "BTree" and version >= 1)

    def place(self, name: str) -> tuple[Store, str]:
        """Return where a file of the segment is."""
        path = f"_indices/{self.index.uuid}/{name}"
        return self.snapshot.locations.locate(path, self.index.base_id)


def index_findings(
    snapshot: Snapshot, wanted: Callable[[str], bool], *, contents: Callable[[str], bool]
) -> Iterator[Finding]:
    """Check the segments of a version whose uuid is ``wanted``.

    Where ``contents`` is False for a uuid, its files are opened, and the rows in them not read.
    Raises CorruptFileError for an index section that cannot be read.
    """
    by_id = {one.id: one for one in snapshot.manifest.fragments}
    for index in read_indices(snapshot):
        if not wanted(index.uuid) or index.is_system:
            continue
        numbers = index.fragment_ids(snapshot.manifest.path) or BitMap()
        mine = tuple(by_id[one] for one in numbers if one in by_id)
        segment = Segment(snapshot, index, mine)
        found = list(_file_findings(segment))
        yield from found
        if not found and contents(index.uuid):
            yield from _row_findings(segment)


def _finding(segment: Segment, code: str, text: str, name: str, **more: object) -> Finding:
    index, snapshot = segment.index, segment.snapshot
    path = f"_indices/{index.uuid}/{name}".rstrip("/")
    text = f"index {index.name!r}: {text}"
    return Finding(code, text, path, snapshot.branch, snapshot.version, **more)  # type: ignore[arg-type]


def _file_findings(segment: Segment) -> Iterator[Finding]:
    for file in segment.index.files:
        try:
            store, path = segment.place(file.path)
            size = store.size(path)
            if file.size_bytes not in (0, size):
                text = f"the file has {size} bytes instead of {file.size_bytes}"
                yield _finding(segment, "index-file-size", text, file.path)
            elif file.path.endswith(_READABLE):
                for _ in FileReader(store, path).list_pages():
                    pass
        except NotSupportedError:
            continue  # of an old release
        except NotFoundError as error:
            yield _finding(segment, "index-file-missing", str(error), file.path, error=error)
        except InvalidInputError as error:  # a base that was not allowed, or a name that leaves
            code = "index-damaged" if segment.index.base_id is None else "base-not-allowed"
            yield _finding(segment, code, str(error), file.path, error=error)
        except LanceError as error:
            yield _finding(segment, "index-damaged", str(error), file.path, error=error)


# --- rows -----------------------------------------------------------------------------------------


def _row_findings(segment: Segment) -> Iterator[Finding]:
    index = segment.index
    names = [one.path for one in index.files]
    wanted = _DOCUMENTS.fullmatch if index.kind == "Inverted" else _FILES.get(index.kind, "").__eq__
    if (index.index_version or 0) > _VERSIONS_KNOWN.get(index.kind, 1 << 30):
        return
    for name in filter(wanted, names):
        yield from _content_findings(segment, name)


def _content_findings(segment: Segment, name: str) -> Iterator[Finding]:
    try:
        reader = FileReader(*segment.place(name))
        if segment.index.kind in ("ZoneMap", "BloomFilter"):
            text = _wrong_zone(segment, reader)
            if text:
                yield _finding(segment, "index-rows-unknown", text, name)
            else:
                yield from _zone_findings(segment, reader, name)
            return
        found = list(_set_findings(segment, reader, name))
        yield from found
        if not found and segment.index.kind in _KEYED:
            yield from _key_findings(segment, reader, name)
        elif not found and segment.index.kind == "BTree":
            yield from _sorted_value_findings(segment, reader, name)
    except NotSupportedError:
        return
    except LanceError as error:
        yield _finding(segment, "index-damaged", str(error), name, error=error)


def _set_findings(segment: Segment, reader: FileReader, name: str) -> Iterator[Finding]:
    """Compare the rows that are in the file with those that should be."""
    for row in _unknown_rows(segment, reader):
        yield _finding(segment, "index-rows-unknown", _row_text(segment, row, "never was"), name)
        break
    if segment.index.kind not in _COMPLETE:
        return
    for expected in _expected(segment):
        times = np.zeros(len(expected), np.uint8)
        for rows in _rows(segment, reader):
            at = np.minimum(np.searchsorted(expected, rows), len(expected) - 1)
            at = at[expected[at] == rows]
            again = at[times[at] > 0]
            unique, counts = np.unique(at, return_counts=True)
            times[unique] = np.minimum(times[unique] + counts, 2)
            times[again] = 2
        missing = np.flatnonzero(times == 0)
        if missing.size:
            more = f" ({missing.size:,} rows are missing)" if missing.size > 1 else ""
            text = _row_text(segment, int(expected[missing[0]]), "is not in it") + more
            yield _finding(segment, "index-rows-missing", text, name)
        again = np.flatnonzero(times > 1)
        if again.size and segment.by_address:
            text = _row_text(segment, int(expected[again[0]]), "is in it several times")
            yield _finding(segment, "index-rows-repeated", text, name)


def _row_text(segment: Segment, row: int, what: str) -> str:
    if not segment.by_address:
        return f"the row with id {row} {what}"
    return f"row {row & 0xFFFFFFFF} of fragment {row >> 32} {what}"


def _expected(segment: Segment) -> Iterator[U64s]:
    """Yield the live rows that the segment covers, ascending, in bounded parts.

    Fragments that cannot be read are skipped: their own checks report them.
    """
    parts: list[U64s] = []
    held = 0
    for fragment in segment.fragments:
        try:
            part = _live_rows(segment, fragment)
        except LanceError:
            continue
        if parts and held + len(part) > ROWS_AT_ONCE:
            yield _ascending(parts)
            held = 0
        parts.append(part)
        held += len(part)
    if held:
        yield _ascending(parts)


def _ascending(parts: list[U64s]) -> U64s:
    """Return all parts in one sorted array, and clear the list."""
    found = np.concatenate(parts)
    parts.clear()
    found.sort()
    return found


def _live_rows(segment: Segment, fragment: Fragment) -> U64s:
    snapshot = segment.snapshot
    count = confirmed_rows(snapshot, fragment)
    vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, count)
    ids = None if segment.by_address else fragment_row_ids(snapshot, fragment)
    if ids is None:
        ids = np.arange(count, dtype=np.uint64) + np.uint64(fragment.id << 32)
    return ids if vector is None else ids[~vector.to_mask(count)]


def _unknown_rows(segment: Segment, reader: FileReader) -> Iterator[int]:
    """Yield rows that no version can have had."""
    manifest = segment.snapshot.manifest
    if not segment.by_address:
        limit = manifest.next_row_id
        for rows in _rows(segment, reader):
            yield from rows[rows >= limit].tolist() if limit else ()
        return
    highest = manifest.max_fragment_id
    known = sorted(segment.fragments, key=lambda one: one.id)
    ids = np.array([one.id for one in known], np.uint64)
    sizes = np.array([one.physical_rows or 1 << 32 for one in known], np.uint64)
    for rows in _rows(segment, reader):
        numbers, offsets = rows >> _SHIFT, rows & _OFFSET
        wrong = np.zeros(len(rows), np.bool_)
        if highest is not None:
            wrong = numbers > highest
        if len(ids):
            at = np.minimum(np.searchsorted(ids, numbers), len(ids) - 1)
            wrong |= (ids[at] == numbers) & (offsets >= sizes[at])
        yield from rows[wrong].tolist()


def _rows(segment: Segment, reader: FileReader) -> Iterator[U64s]:
    """Yield the rows in the file at their present addresses, in pieces."""
    found = _stored_rows(segment, reader)
    if not segment.by_address:
        yield from found
        return
    for rows in found:
        yield _present_addresses(segment, rows)


def _stored_rows(segment: Segment, reader: FileReader) -> Iterator[U64s]:
    match segment.index.kind:
        case "BTree":
            columns = _column(reader, "ids")
        case "Vector" | "Inverted":
            columns = _column(reader, "_rowid")
        case _:
            for sets in _column(reader, "bitmaps"):
                for data in sets.to_pylist():
                    yield from _rows_of_set(segment, data or _COUNT.pack(0), reader.path)
            return
    for column in columns:
        yield column.drop_null().to_numpy().astype(np.uint64, copy=False)


def _column(reader: FileReader, name: str) -> Iterator[pa.ChunkedArray]:
    """Yield a column of an index file in pieces. Raises CorruptFileError."""
    schema = reader.schema
    field = next((one for one in schema if one.name == name), None)
    if field is None:
        raise CorruptFileError(reader.path, None, f"a column {name!r}", ", ".join(schema.names))
    kind = schema.to_arrow(storage=True).field(name).type
    owners = column_owners(schema, reader.file_version)
    leaves = list(leaves_of(field, kind, owners))
    width = max(reader.size_bytes // max(reader.num_rows, 1), 8)
    step = min(_WINDOW_ROWS, max(_WINDOW_BYTES // width, 1))
    for start in range(0, reader.num_rows, step):
        stop = min(start + step, reader.num_rows)
        rows = Rows(np.array([start], np.int64), np.array([stop], np.int64))
        parts = reader.read_leaves(leaves, owners, rows, reader.num_rows)
        yield assemble(field, kind, parts, stop - start)


def _rows_of_set(segment: Segment, data: bytes, path: str) -> Iterator[U64s]:
    """Yield the rows of a set, fragment by fragment. Raises CorruptFileError."""
    if len(data) < _COUNT.size:
        raise CorruptFileError(path, None, "a set of rows", f"{len(data)} bytes")
    (count,) = _COUNT.unpack_from(data)
    at = _COUNT.size
    for number in range(count):
        if at + _ENTRY.size > len(data):
            raise CorruptFileError(path, None, f"{count} entries in a set of rows", f"{number}")
        key, size = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        if at + size > len(data):
            found = f"{len(data) - at} bytes"
            raise CorruptFileError(path, None, f"a bitmap of {size} bytes", found)
        if size:
            bitmap = data[at : at + size]
            check_portable(bitmap, path)
            try:
                offsets = BitMap.deserialize(bitmap)
            except ValueError as error:
                raise CorruptFileError(path, None, "a Roaring bitmap", str(error)) from error
            yield from _in_pieces(offsets, key)
        else:  # all rows of the fragment
            for fragment in segment.fragments:
                if fragment.id == key:
                    rows = confirmed_rows(segment.snapshot, fragment)
                    yield np.arange(rows, dtype=np.uint64) | np.uint64(key << 32)
        at += size


def _in_pieces(offsets: BitMap, key: int) -> Iterator[U64s]:
    for start in range(0, len(offsets), _WINDOW_ROWS):
        piece = np.frombuffer(offsets[start : start + _WINDOW_ROWS].to_array(), np.uint32)
        yield piece.astype(np.uint64) | np.uint64(key << 32)


def _key_findings(segment: Segment, reader: FileReader, name: str) -> Iterator[Finding]:
    """Find a row that is not in the set of its value."""
    column = column_of(segment.snapshot, segment.index)
    if column is None:
        return
    parts: dict[Any, list[U64s]] = {}
    held = 0
    for keys, sets in zip(_column(reader, "keys"), _column(reader, "bitmaps"), strict=True):
        for key, data in zip(keys.to_pylist(), sets.to_pylist(), strict=True):
            for rows in _rows_of_set(segment, data or _COUNT.pack(0), reader.path):
                parts.setdefault(key, []).append(_present_addresses(segment, rows))
                held += len(rows)
                if held > ROWS_AT_ONCE:
                    return
    # Row ids map to addresses in any order, and 0.0 is the key of -0.0 too.
    known = {key: np.sort(np.concatenate(mine)) for key, mine in parts.items()}
    for values, rows in _values(segment, column):
        row = row_under_other_key(known, values, rows)
        if row is not None:
            text = _row_text(segment, row, "is not under the value that it has")
            yield _finding(segment, "index-values-wrong", text, name)
            return


def _sorted_value_findings(segment: Segment, reader: FileReader, name: str) -> Iterator[Finding]:
    """Find a row whose value in the index is not the one that it has in the column."""
    column = column_of(segment.snapshot, segment.index)
    if column is None or reader.num_rows > ROWS_AT_ONCE:
        return
    rows = _whole(reader, "ids").to_numpy(zero_copy_only=False).astype(np.uint64, copy=False)
    held = _whole(reader, "values")
    moved = remap_row_addrs(segment.snapshot, pa.array(rows)) if segment.by_address else None
    if moved is not None:
        held, rows = held.filter(moved.is_valid()), moved.drop_null().to_numpy()
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    for values, present in _values(segment, column):
        at = np.minimum(np.searchsorted(rows, present), len(rows) - 1)
        known = np.flatnonzero(rows[at] == present) if len(rows) else np.empty(0, np.int64)
        indexed = held.take(pa.array(order[at[known]]))
        differ = _first_difference(values.take(pa.array(known)), indexed)
        if differ is not None:
            text = _row_text(segment, int(present[known[differ]]), "has another value in it")
            yield _finding(segment, "index-values-wrong", text, name)
            return


def _first_difference(values: pa.Array, others: pa.Array) -> int | None:
    """Return the first place where two arrays differ; null equals null, and NaN equals NaN."""
    import pyarrow.compute as pc

    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_float16(values.type):
        values, others = values.cast(pa.float32()), others.cast(pa.float32())
    if values.type != others.type:
        return None  # the column was cast since, and its index is not used
    differ = pc.fill_null(pc.not_equal(values, others), fill_value=False)
    if pa.types.is_floating(values.type):
        both = pc.and_(pc.is_nan(values), pc.is_nan(others))
        differ = pc.and_(differ, pc.invert(pc.fill_null(both, fill_value=False)))
    differ = pc.or_(differ, pc.xor(values.is_null(), others.is_null()))
    places = np.flatnonzero(differ.to_numpy(zero_copy_only=False))
    return int(places[0]) if places.size else None


def _zone_findings(segment: Segment, reader: FileReader, name: str) -> Iterator[Finding]:
    """Find a live row in no zone, or with a value outside of the bounds of its zone."""
    wanted = [one for one in reader.schema.names if one in _ZONE]
    zones = Zones.of({one: _whole(reader, one) for one in wanted})
    if remap_row_addrs(segment.snapshot, pa.array(zones.starts)) is not None:
        return  # compactions have moved rows, and zones do not follow
    for expected in _expected(segment):
        missing = expected[zones.at(expected) < 0]
        if missing.size:
            text = _row_text(segment, int(missing[0]), "is in no zone")
            yield _finding(segment, "index-rows-missing", text, name)
            return
    column = column_of(segment.snapshot, segment.index)
    kind = None if column is None else _type_of(segment, column)
    if column is None or kind is None or not zones.compares(kind):
        return
    for values, rows in _values(segment, column):
        row = zones.row_outside(values, rows)
        if row is not None:
            text = _row_text(segment, row, "has a value that its zone leaves out")
            yield _finding(segment, "index-values-wrong", text, name)
            return


def _type_of(segment: Segment, column: str) -> pa.DataType:
    return segment.snapshot.manifest.schema.to_arrow().field(column).type


def _whole(reader: FileReader, name: str) -> pa.Array:
    parts = list(_column(reader, name))
    if not parts:
        return pa.array([], reader.schema.to_arrow(storage=True).field(name).type)
    return pa.concat_arrays([one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one
                             for one in parts])  # fmt: skip


def _values(segment: Segment, column: str) -> Iterator[tuple[pa.Array, U64s]]:
    """Yield the values of fragments that can be read: other checks report the rest."""
    for fragment in segment.fragments:
        try:
            yield from column_values(
                segment.snapshot, [fragment], column, by_address=segment.by_address
            )
        except LanceError:
            continue


def _present_addresses(segment: Segment, rows: U64s) -> U64s:
    """Return the addresses of rows after compactions that the index has not followed."""
    moved = remap_row_addrs(segment.snapshot, pa.array(rows)) if segment.by_address else None
    return rows if moved is None else moved.drop_null().to_numpy()


def _wrong_zone(segment: Segment, reader: FileReader) -> str | None:
    """Return what is wrong with the zones: each lies in a fragment of the dataset."""
    sizes = {one.id: one.physical_rows for one in segment.fragments}
    highest = segment.snapshot.manifest.max_fragment_id
    names = ("fragment_id", "zone_start", "zone_length")
    for columns in zip(*(_column(reader, name) for name in names), strict=True):
        for number, start, length in zip(*(one.to_pylist() for one in columns), strict=True):
            rows = sizes.get(number)
            if rows and start + length > rows:
                return f"a zone ends at row {start + length} of fragment {number} of {rows} rows"
            if highest is not None and number > highest:
                return f"a zone is of fragment {number}, which never was"
    return None


# --- values of the column -------------------------------------------------------------------------


class Zones(NamedTuple):
    """Zones in the order of their rows: addresses of the first row and behind the last, values."""

    starts: U64s
    ends: U64s
    lowest: pa.Array | None = None
    highest: pa.Array | None = None

    @classmethod
    def of(cls, columns: Mapping[str, pa.Array]) -> Zones:
        """Take the columns of the index's file; ``min`` and ``max`` may be missing."""
        numbers, firsts, lengths = (
            columns[name].to_numpy(zero_copy_only=False).astype(np.uint64)
            for name in ("fragment_id", "zone_start", "zone_length")
        )
        starts = (numbers << _SHIFT) + firsts
        order = np.argsort(starts)
        bounds = [columns[name].take(pa.array(order)) for name in ("min", "max") if name in columns]
        return cls(starts[order], (starts + lengths)[order], *bounds)

    def at(self, rows: U64s) -> npt.NDArray[np.int64]:
        """Return the position of the zone of each row, -1 for a row in none."""
        at = np.searchsorted(self.starts, rows, "right") - 1
        inside = at >= 0
        inside[inside] = rows[inside] < self.ends[at[inside]]
        return np.where(inside, at, -1)

    def compares(self, kind: pa.DataType) -> bool:
        """Tell whether values of a type can be compared with these zones."""
        is_number = pa.types.is_primitive(kind) and not pa.types.is_boolean(kind)
        return self.lowest is not None and is_number and self.lowest.type == kind

    def row_outside(self, values: pa.Array, rows: U64s) -> int | None:
        """Return a row whose value is not between the bounds of its zone, None if there is none."""
        import pyarrow.compute as pc

        at = self.at(rows)
        known = at >= 0
        values, rows = values.filter(pa.array(known)), rows[known]
        zones = pa.array(at[known])
        low, high = self.lowest.take(zones), self.highest.take(zones)  # type: ignore[union-attr]
        if pa.types.is_float16(values.type):  # Arrow does not compare these
            values, low, high = (one.cast(pa.float32()) for one in (values, low, high))
        outside = pc.or_(pc.less(values, low), pc.greater(values, high))
        found = rows[pc.fill_null(outside, fill_value=False).to_numpy(zero_copy_only=False)]
        return int(found[0]) if found.size else None


def row_under_other_key(keys: Mapping[Any, U64s], values: pa.Array, rows: U64s) -> int | None:
    """Return a row that is not in the set of its value, None if each is; ``keys`` sorted sets."""
    import pyarrow.compute as pc

    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        rows = rows[pc.list_parent_indices(values).to_numpy(zero_copy_only=False)]
        values = pc.list_flatten(values)
    encoded = values.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    nothing = np.empty(0, np.uint64)
    # Rows are grouped once: a comparison of all rows for each key is quadratic.
    order = np.argsort(indices, kind="stable")
    rows, grouped = rows[order], indices[order]
    starts = np.searchsorted(grouped, np.arange(len(encoded.dictionary) + 1))
    for number, key in enumerate(encoded.dictionary.to_pylist()):
        of_key, expected = rows[starts[number] : starts[number + 1]], keys.get(key, nothing)
        places = np.searchsorted(expected, of_key)
        is_lost = places == expected.size
        is_lost[~is_lost] = expected[places[~is_lost]] != of_key[~is_lost]
        if is_lost.any() and key == key:  # noqa: PLR0124 (NaN is not equal to itself)
            return int(of_key[is_lost][0])
    return None


def column_of(snapshot: Snapshot, index: IndexMetadata) -> str | None:
    """Return the name of the indexed column if it is one, and not part of another."""
    names = [one.name for one in snapshot.manifest.schema.fields if (one.id,) == index.fields]
    return names[0] if names else None


def column_values(
    snapshot: Snapshot, fragments: Sequence[Fragment], name: str, *, by_address: bool
) -> Iterator[Values]:
    """Yield a column of some fragments with the address (or id) of each row, deleted ones left out.

    Raises LanceError for what cannot be read.
    """
    row = ROW_ADDRESS if by_address else ROW_ID
    options = ScanOptions([quoted([name]), row], fragments=tuple(fragments))
    for batch in plan_scan(snapshot, options).batches():
        yield batch.column(name), batch.column(row).to_numpy()
