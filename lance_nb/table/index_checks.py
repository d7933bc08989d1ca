"""Is an index what its version says: its files there and whole, and the right rows in them.

A segment speaks for the fragments of its bitmap that are still there. Every live row of these is
in a B-tree or a bitmap index exactly once; no kind names rows that never were. Rows that have been
deleted since, and fragments that are gone, may stay in the files.

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

Limits: of other kinds the files are opened. Values are not compared with the column. Memory: at
most ``ROWS_AT_ONCE`` rows of the dataset are held as numbers.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.indices import read_indices
from lance_nb.table.row_ids import fragment_row_ids
from lance_nb.table.row_moves import remap_row_addrs
from lance_nb.table.single_file import column_owners
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification_report import Finding

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
_COMPLETE = ("BTree", "Bitmap")  # each live row once
_READABLE = (".lance", ".idx")
_COUNT, _ENTRY = struct.Struct("<I"), struct.Struct("<II")
_SHIFT = np.uint64(32)
_OFFSET = np.uint64(0xFFFFFFFF)
U64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment, in the version in which it is looked at, and the fragments it speaks for."""

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
    name = _FILES.get(index.kind)
    names = [one.path for one in index.files]
    if name is None or name not in names:
        return
    if (index.index_version or 0) > _VERSIONS_KNOWN.get(index.kind, 1 << 30):
        return
    try:
        reader = FileReader(*segment.place(name))
        if index.kind in ("ZoneMap", "BloomFilter"):
            text = _wrong_zone(segment, reader)
            if text:
                yield _finding(segment, "index-rows-unknown", text, name)
            return
        yield from _set_findings(segment, reader, name)
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
    """Yield the live rows that the segment speaks for, ascending, so many at a time.

    Fragments that cannot be read are left out: their own checks tell.
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
    """Return all parts in one, sorted, and forget them."""
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
    """Yield the rows in the file as they are today, in pieces."""
    found = _stored_rows(segment, reader)
    if not segment.by_address:
        yield from found
        return
    for rows in found:
        moved = remap_row_addrs(segment.snapshot, pa.array(rows))
        yield rows if moved is None else moved.drop_null().to_numpy()


def _stored_rows(segment: Segment, reader: FileReader) -> Iterator[U64s]:
    match segment.index.kind:
        case "BTree":
            columns = _column(reader, "ids")
        case "Vector":
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
    for _ in range(count):
        if at + _ENTRY.size > len(data):
            raise CorruptFileError(path, None, f"{count} entries in a set of rows", "fewer")
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
