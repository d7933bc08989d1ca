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
rows that have the value, in a list anywhere, and no others. Both are compared with the column.

The work grows with the rows and not with the keys: all sets of a part of the file are decoded at
once, and pairs of row and key are compared as sorted numbers.

Limits: of other kinds the files are opened, and values are not compared. Columns at the top level
are compared, by the fragments that the index covers; zones only of numbers, dates and times, and
neither NaN nor null. Memory: at most ``ROWS_AT_ONCE`` rows of the dataset are held as numbers, and
``PAIRS_AT_ONCE`` pairs of these with a key: lists of more items are not compared. A file is read
once for each part of so many rows.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_nb import arrow_compute as pc
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
from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.tree_maps import parse_tree_maps
from lance_nb.storage.base import Store
from lance_nb.table.deletions import read_deletions
from lance_nb.table.filtered_scan import quoted
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.index_search import different, numbers
from lance_nb.table.indices import follow_addresses, read_indices
from lance_nb.table.predicate.lists import opened
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.row_ids import fragment_row_ids
from lance_nb.table.scan_plan import ScanOptions, plan_scan
from lance_nb.table.single_file import column_owners
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.findings import Finding
from lance_nb.value_classes import dataclass

ROWS_AT_ONCE = 4_000_000
PAIRS_AT_ONCE = 16_000_000
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
_ZONE = ("min", "max", "fragment_id", "zone_start", "zone_length")
_SHIFT = np.uint64(32)
_OFFSET = np.uint64(0xFFFFFFFF)
U64s = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NO_ROWS: U64s = np.zeros(0, np.uint64)
Values = tuple[pa.Array, U64s]


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment, in the version in which it is checked, and the fragments that it covers.

    ``reuse`` is the fragment-reuse index of the version.
    """

    snapshot: Snapshot
    index: IndexMetadata
    fragments: tuple[Fragment, ...]
    reuse: IndexMetadata | None = None

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
    snapshot: Snapshot, is_chosen: Callable[[str], bool], *, contents: Callable[[str], bool]
) -> Iterator[Finding]:
    """Check the segments of a version whose uuid is ``is_chosen``.

    Where ``contents`` is False for a uuid, its files are opened, and the rows in them not read.
    Raises CorruptFileError for an index section that cannot be read.
    """
    fragments, every = snapshot.manifest.fragments, read_indices(snapshot)
    indices = [index for index in every if is_chosen(index.uuid) and not index.is_system]
    reuse = next((index for index in every if index.name == REUSE_INDEX), None)
    if not indices:
        return
    positions = {number: place for place, number in enumerate(fragments.counts().ids.tolist())}
    for index in indices:
        numbers = index.fragment_ids(snapshot.manifest.path) or BitMap()
        covered = tuple(fragments[positions[number]] for number in numbers if number in positions)
        segment = Segment(snapshot, index, covered, reuse)
        findings = list(_file_findings(segment))
        yield from findings
        if not findings and contents(index.uuid):
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
    names = [file.path for file in index.files]
    matches_name = (
        _DOCUMENTS.fullmatch if index.kind == "Inverted" else _FILES.get(index.kind, "").__eq__
    )
    if (index.index_version or 0) > _VERSIONS_KNOWN.get(index.kind, 1 << 30):
        return
    for name in filter(matches_name, names):
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
        findings = list(_set_findings(segment, reader, name))
        yield from findings
        if not findings and segment.index.kind == "BTree":
            yield from _sorted_value_findings(segment, reader, name)
    except NotSupportedError:
        return
    except LanceError as error:
        yield _finding(segment, "index-damaged", str(error), name, error=error)


def _set_findings(segment: Segment, reader: FileReader, name: str) -> Iterator[Finding]:
    """Compare the rows that are in the file with those that should be, and sets with values."""
    keys = _keys_of(segment, reader)
    has_parts = segment.index.kind in _COMPLETE or keys is not None
    is_whole = True
    for number, part in enumerate(_parts(segment) if has_parts else [Part((), _NO_ROWS)]):
        entries = PartEntries(part.rows, keys)
        unknown: list[int] = []
        for sets, rows in _entries(segment, reader, None if number == 0 else part):
            if number == 0 and not unknown:
                unknown = _unknown_rows(segment, rows)
            if has_parts:
                entries.add(sets, rows)
        for row in unknown[:1]:
            is_whole = False
            text = _row_text(segment, row, "never was")
            yield _finding(segment, "index-rows-unknown", text, name)
        if segment.index.kind in _COMPLETE:
            for code, text in _times_findings(segment, entries):
                is_whole = False
                yield _finding(segment, code, text, name)
        if keys is not None and is_whole:
            text = _key_problem(segment, keys, part, entries)
            if text:
                yield _finding(segment, "index-values-wrong", text, name)
                return


def _times_findings(segment: Segment, entries: PartEntries) -> Iterator[tuple[str, str]]:
    """Find live rows that are in the file not at all, or several times."""
    missing = entries.rows[entries.times == 0]
    if missing.size:
        more = f" ({missing.size:,} rows are missing)" if missing.size > 1 else ""
        yield "index-rows-missing", _row_text(segment, int(missing[0]), "is not in it") + more
    repeated = entries.rows[entries.times > 1]
    if repeated.size and segment.by_address:
        text = _row_text(segment, int(repeated[0]), "is in it several times")
        yield "index-rows-repeated", text


def _row_text(segment: Segment, row: int, subject: str) -> str:
    if not segment.by_address:
        return f"the row with id {row} {subject}"
    return f"row {row & 0xFFFFFFFF} of fragment {row >> 32} {subject}"


class Part(NamedTuple):
    """Some of the fragments that a segment covers, and their live rows, ascending."""

    fragments: tuple[Fragment, ...]
    rows: U64s


def _parts(segment: Segment) -> Iterator[Part]:
    """Yield the live rows that the segment covers in bounded parts, at least one.

    Fragments that cannot be read are skipped: their own checks report them.
    """
    fragments: list[Fragment] = []
    parts: list[U64s] = []
    held = 0
    for fragment in segment.fragments:
        try:
            rows = _live_rows(segment, fragment)
        except LanceError:
            continue
        if parts and held + len(rows) > ROWS_AT_ONCE:
            yield Part(tuple(fragments), np.sort(np.concatenate(parts)))
            fragments, parts, held = [], [], 0
        fragments.append(fragment)
        parts.append(rows)
        held += len(rows)
    yield Part(tuple(fragments), np.sort(np.concatenate([_NO_ROWS, *parts])))


def _live_rows(segment: Segment, fragment: Fragment) -> U64s:
    snapshot = segment.snapshot
    count = confirmed_rows(snapshot, fragment)
    vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, count)
    ids = None if segment.by_address else fragment_row_ids(snapshot, fragment)
    if ids is None:
        ids = np.arange(count, dtype=np.uint64) + np.uint64(fragment.id << 32)
    return ids if vector is None else ids[~vector.to_mask(count)]


def _unknown_rows(segment: Segment, rows: U64s) -> list[int]:
    """Return those of the rows that no version can have had."""
    manifest = segment.snapshot.manifest
    if not segment.by_address:
        limit = manifest.next_row_id
        return rows[rows >= np.uint64(limit)].tolist() if limit else []
    covered = sorted(segment.fragments, key=lambda fragment: fragment.id)
    ids = np.array([fragment.id for fragment in covered], np.uint64)
    sizes = np.array([fragment.physical_rows or 1 << 32 for fragment in covered], np.uint64)
    numbers, offsets = rows >> _SHIFT, rows & _OFFSET
    wrong = np.zeros(len(rows), np.bool_)
    if manifest.max_fragment_id is not None:
        wrong = numbers > manifest.max_fragment_id
    if len(ids):
        places = np.minimum(np.searchsorted(ids, numbers), len(ids) - 1)
        wrong |= (ids[places] == numbers) & (offsets >= sizes[places])
    unknown: list[int] = rows[wrong].tolist()
    return unknown


def _entries(
    segment: Segment, reader: FileReader, part: Part | None
) -> Iterator[tuple[Ints, U64s]]:
    """Yield the rows in the file at their present addresses, each with the number of its key.

    With a part, sets that have none of its rows are left out. Of files without keys the numbers
    are 0.
    """
    match segment.index.kind:
        case "BTree":
            columns = _column(reader, "ids")
        case "Vector" | "Inverted":
            columns = _column(reader, "_rowid")
        case _:
            yield from _set_entries(segment, reader, part)
            return
    for column in columns:
        rows = numbers(pc.drop_null(column), reader.path)
        yield _present(segment, np.zeros(len(rows), np.int64), rows)


def _set_entries(
    segment: Segment, reader: FileReader, part: Part | None
) -> Iterator[tuple[Ints, U64s]]:
    low, high = 0, (1 << 64) - 1
    if part is not None and segment.reuse is None and part.rows.size:
        low, high = int(part.rows[0]), int(part.rows[-1])
    first = 0
    for column in _column(reader, "bitmaps"):
        sets = parse_tree_maps(column, reader.path)
        for set_numbers, rows in sets.rows(low, high):
            yield _present(segment, first + set_numbers, rows)
        for number, key in zip(sets.whole_sets.tolist(), sets.whole_keys.tolist(), strict=True):
            for fragment in segment.fragments:
                if fragment.id == key:
                    size = confirmed_rows(segment.snapshot, fragment)
                    rows = np.arange(size, dtype=np.uint64) | np.uint64(key << 32)
                    yield _present(segment, np.full(size, first + number), rows)
        first += len(column)


def _present(segment: Segment, numbers: Ints, rows: U64s) -> tuple[Ints, U64s]:
    """Return the addresses of rows after compactions that the index has not followed."""
    if segment.reuse is None or not segment.by_address:
        return numbers, rows
    addresses, is_deleted = rows.copy(), np.zeros(len(rows), np.bool_)
    follow_addresses(segment.reuse, addresses, is_deleted, segment.snapshot.manifest.path)
    return numbers[~is_deleted], addresses[~is_deleted]


def _column(reader: FileReader, name: str) -> Iterator[pa.Array]:
    """Yield a column of an index file in pieces. Raises CorruptFileError."""
    schema = reader.schema
    field = next((field for field in schema if field.name == name), None)
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
        yield assemble(field, kind, parts, stop - start).combine_chunks()


def _keys_of(segment: Segment, reader: FileReader) -> Keys | None:
    """Return the keys of a file of sets, None where they are not compared with a column."""
    column = column_of(segment.snapshot, segment.index)
    if segment.index.kind not in _KEYED or column is None:
        return None
    keys = _whole(reader, "keys")
    if pa.types.is_nested(keys.type):
        raise CorruptFileError(
            reader.path, None, "keys of a type that is not nested", f"{keys.type}"
        )
    return Keys.of(keys, column, of_lists=segment.index.kind == "LabelList")


def _key_problem(segment: Segment, keys: Keys, part: Part, entries: PartEntries) -> str:
    """Return what is wrong with the sets of the rows of a part, "" if nothing."""
    if not entries.has_pairs:
        return ""
    compared = replace(segment, fragments=part.fragments)
    for values, rows in _values(compared, keys.column):
        row = entries.row_under_other_key(values, rows)
        if row is not None:
            return _row_text(segment, row, "is not under the value that it has")
    surplus = entries.surplus_row() if segment.by_address else None
    if surplus is not None:
        return _row_text(segment, surplus, "is under a value that it has not")
    return ""


def _sorted_value_findings(segment: Segment, reader: FileReader, name: str) -> Iterator[Finding]:
    """Find a row whose value in the index is not the one that it has in the column."""
    column = column_of(segment.snapshot, segment.index)
    if column is None or reader.num_rows > ROWS_AT_ONCE:
        return
    rows = numbers(_whole(reader, "ids"), reader.path)
    held = _whole(reader, "values")
    places, rows = _present(segment, np.arange(len(rows)), rows)
    held = held if len(places) == len(held) else pc.take(held, pa.array(places))
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    for values, present in _values(segment, column):
        positions = np.minimum(np.searchsorted(rows, present), len(rows) - 1)
        matching = (
            np.flatnonzero(rows[positions] == present) if len(rows) else np.empty(0, np.int64)
        )
        indexed = pc.take(held, pa.array(order[positions[matching]]))
        differ = _first_difference(pc.take(values, pa.array(matching)), indexed)
        if differ is not None:
            text = _row_text(segment, int(present[matching[differ]]), "has another value in it")
            yield _finding(segment, "index-values-wrong", text, name)
            return


def _first_difference(values: pa.Array, other_values: pa.Array) -> int | None:
    """Return the first place where two arrays differ; null equals null, and NaN equals NaN."""
    values, other_values = _comparable(values), _comparable(other_values)
    if values.type != other_values.type or pa.types.is_nested(values.type):
        return None  # the column was cast since, and its index is not used
    differ = pc.fill_null(pc.not_equal(values, other_values), fill_value=False)
    if pa.types.is_floating(values.type):
        both_nan = pc.and_(pc.is_nan(values), pc.is_nan(other_values))
        differ = pc.and_(differ, pc.invert(pc.fill_null(both_nan, fill_value=False)))
    differ = pc.or_(differ, pc.xor(values.is_null(), other_values.is_null()))
    places = np.flatnonzero(differ.to_numpy(zero_copy_only=False))
    return int(places[0]) if places.size else None


def _zone_findings(segment: Segment, reader: FileReader, name: str) -> Iterator[Finding]:
    """Find a live row in no zone, or with a value outside of the bounds of its zone."""
    names = [name for name in reader.schema.names if name in _ZONE]
    zones = Zones.of({name: _whole(reader, name) for name in names}, reader.path)
    if segment.reuse is not None:
        return  # compactions have moved rows, and zones do not follow
    for part in _parts(segment):
        missing = part.rows[zones.positions_of(part.rows) < 0]
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
    return pa.concat_arrays(parts)


def _values(segment: Segment, column: str) -> Iterator[tuple[pa.Array, U64s]]:
    """Yield the values of fragments that can be read: other checks report the rest."""
    for fragment in segment.fragments:
        try:
            yield from column_values(
                segment.snapshot, [fragment], column, by_address=segment.by_address
            )
        except LanceError:
            continue


def _wrong_zone(segment: Segment, reader: FileReader) -> str | None:
    """Return what is wrong with the zones: each lies in a fragment of the dataset."""
    sizes = {fragment.id: fragment.physical_rows for fragment in segment.fragments}
    highest = segment.snapshot.manifest.max_fragment_id
    names = ("fragment_id", "zone_start", "zone_length")
    for columns in zip(*(_column(reader, name) for name in names), strict=True):
        zones = (numbers(column, reader.path).tolist() for column in columns)
        for number, start, length in zip(*zones, strict=True):
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
    def of(cls, columns: Mapping[str, pa.Array], path: str = "") -> Zones:
        """Take the columns of the index's file; ``min`` and ``max`` may be missing.

        Raises CorruptFileError for places that are not numbers.
        """
        fragments, firsts, lengths = (
            numbers(columns[name], path) for name in ("fragment_id", "zone_start", "zone_length")
        )
        starts = (fragments << _SHIFT) + firsts
        order = np.argsort(starts)
        low, high = (
            pc.take(columns[name], pa.array(order)) if name in columns else None
            for name in ("min", "max")
        )
        return cls(starts[order], (starts + lengths)[order], low, high)

    def positions_of(self, rows: U64s) -> npt.NDArray[np.int64]:
        """Return the position of the zone of each row, -1 for a row in none."""
        positions = np.searchsorted(self.starts, rows, "right") - 1
        inside = positions >= 0
        inside[inside] = rows[inside] < self.ends[positions[inside]]
        return np.where(inside, positions, -1)

    def compares(self, kind: pa.DataType) -> bool:
        """Tell whether values of a type can be compared with these zones."""
        is_number = pa.types.is_primitive(kind) and not pa.types.is_boolean(kind)
        bounds = (self.lowest, self.highest)
        return is_number and all(bound is not None and bound.type == kind for bound in bounds)

    def row_outside(self, values: pa.Array, rows: U64s) -> int | None:
        """Return a row whose value is not between the bounds of its zone, None if there is none."""
        positions = self.positions_of(rows)
        in_zone = positions >= 0
        values, rows = pc.filter(values, pa.array(in_zone)), rows[in_zone]
        zones = pa.array(positions[in_zone])
        low, high = self.lowest.take(zones), self.highest.take(zones)  # type: ignore[union-attr]
        values, low, high = map(_comparable, (values, low, high))
        outside = pc.or_(pc.less(values, low), pc.greater(values, high))
        outside_rows = rows[pc.fill_null(outside, fill_value=False).to_numpy(zero_copy_only=False)]
        return int(outside_rows[0]) if outside_rows.size else None


def _comparable(values: pa.Array) -> pa.Array:
    """Return values in a form in which Arrow compares and finds them; -0.0 becomes 0.0."""
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if pa.types.is_float16(values.type):
        values = pc.cast(values, pa.float32())
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0, values.type))
    return values


def _has_value(values: pa.Array) -> Mask:
    """Tell which values are neither null nor NaN."""
    mask: Mask = pc.invert(values.is_null(nan_is_null=True)).to_numpy(zero_copy_only=False)
    return mask


class Keys(NamedTuple):
    """The keys of a file of sets: the column, the different keys, and which one each set has.

    ``is_compared`` is False for NaN, and for the null key of lists.
    """

    column: str
    different: pa.Array
    of_sets: Ints
    is_compared: Mask

    @classmethod
    def of(cls, keys: pa.Array, column: str, *, of_lists: bool) -> Keys:
        """Take the keys of a file, two of which may be equal in a damaged one."""
        encoded = pc.dictionary_encode(_comparable(keys), "encode")
        numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        is_null = pc.is_null(encoded.dictionary).to_numpy(zero_copy_only=False)
        is_compared = _has_value(encoded.dictionary) | (is_null & (not of_lists))
        return cls(column, encoded.dictionary, numbers, is_compared)

    def numbers_of(self, values: pa.Array) -> tuple[Ints, Mask] | None:
        """Return the number of the key of each value, -1 for none, and which are compared.

        None for values of another type: the column was cast since, and its index is not used.
        """
        values = _comparable(values)
        if values.type != self.different.type:
            return None
        places = pc.index_in(values, value_set=self.different).fill_null(-1)
        numbers = places.to_numpy(zero_copy_only=False).astype(np.int64)
        is_compared = _has_value(values)
        is_key = numbers >= 0
        is_compared[is_key] = self.is_compared[numbers[is_key]]
        return numbers, is_compared


class PartEntries:
    """What an index has of the rows of a part: how often it has each, and under which keys.

    ``rows`` are ascending. Above ``PAIRS_AT_ONCE`` pairs of row and key these are not kept.
    """

    def __init__(self, rows: U64s, keys: Keys | None) -> None:
        self.rows = rows
        self.times = np.zeros(len(rows), np.uint8)  # 2 for more
        self._keys = keys
        self.has_pairs = keys is not None
        self._parts: list[Ints] = []
        self._num_pairs = 0
        self._num_compared = 0
        self._pairs: Ints | None = None
        self._is_confirmed = np.zeros(0, np.bool_)

    def add(self, sets: Ints, rows: U64s) -> None:
        """Take rows of the file, in any order, and the number of the set that each is in."""
        if not self.rows.size:
            return
        inside = (rows >= self.rows[0]) & (rows <= self.rows[-1])
        places = np.searchsorted(self.rows, rows[inside])
        is_live = self.rows[places] == rows[inside]
        chosen, places = np.flatnonzero(inside)[is_live], places[is_live]
        ordered = np.sort(places)
        self.times[places[self.times[places] == 1]] = 2
        self.times[places] = np.maximum(self.times[places], 1)
        self.times[ordered[1:][ordered[1:] == ordered[:-1]]] = 2
        if self._keys is None or not self.has_pairs:
            return
        self._parts.append(places * len(self._keys.different) + self._keys.of_sets[sets[chosen]])
        self._num_pairs += places.size
        if self._num_pairs > PAIRS_AT_ONCE:
            self.has_pairs, self._parts = False, []

    def row_under_other_key(self, values: pa.Array, rows: U64s) -> int | None:
        """Return a row that is not in the set of its value, None if each is."""
        if self._keys is None:
            return None
        self._num_compared += len(rows)
        if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            lists = opened(values)
            rows, values = rows[lists.rows], lists.values
        numbered = self._keys.numbers_of(values)
        if numbered is None:
            self.has_pairs = False
            return None
        numbers, is_compared = numbered
        pairs = np.searchsorted(self.rows, rows) * len(self._keys.different) + numbers
        if self._pairs is None:
            self._pairs = different(np.concatenate([np.zeros(0, np.int64), *self._parts]))
            self._is_confirmed = np.zeros(self._pairs.size, np.bool_)
            self._parts = []
        places = np.searchsorted(self._pairs, pairs)
        is_held = (numbers >= 0) & (places < self._pairs.size)
        is_held[is_held] = self._pairs[places[is_held]] == pairs[is_held]
        self._is_confirmed[places[is_held]] = True
        lost = rows[is_compared & ~is_held]
        return int(lost[0]) if lost.size else None

    def surplus_row(self) -> int | None:
        """Return a row in the set of a value that it has not.

        None where there is none, or where the values of some rows could not be read.
        """
        if self._keys is None or self._pairs is None or self._num_compared < self.rows.size:
            return None
        surplus = self._pairs[~self._is_confirmed]
        rows, numbers = np.divmod(surplus, max(len(self._keys.different), 1))
        wrong = rows[self._keys.is_compared[numbers]]
        return int(self.rows[wrong[0]]) if wrong.size else None


def column_of(snapshot: Snapshot, index: IndexMetadata) -> str | None:
    """Return the name of the indexed column if it is one, and not part of another."""
    names = [field.name for field in snapshot.manifest.schema.fields if (field.id,) == index.fields]
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
