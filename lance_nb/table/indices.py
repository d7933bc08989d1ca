"""The secondary indices of a version: what they are, and which fragments and rows they cover.

Everything comes from the index section of the manifest file, no index file is read, except for the
details of a fragment-reuse index, which may lie in a file of their own (``with_content``). An index
may consist of several segments (deltas) of one name. Fragments that an index names but that no
longer exist do not count as covered; those that a compaction replaced, as the fragment-reuse index
records, count as their replacements.

``remap_row_addrs`` follows row addresses through the fragment-reuse index: row n of the map of a
group is row n of its new fragments, and a row of an old fragment that is not in the map was
deleted. Rewrites are followed one after the other, oldest first.

Limits: a file of details is as long as the manifest says, and no longer than a protobuf file may
be; both are checked. Memory holds the addresses of a group at a time; a map that names more or
fewer rows than the new fragments hold is damage.
What only the files of an index say (``NOT_READ``) is added by lance_nb.indices.statistics.
Source: message IndexSection of lance.table; format/fragment_reuse.py;
``LanceDataset.remap_row_addrs`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from lance_nb import arrow_compute as pc
from lance_nb.errors import CorruptFileError, IndexNotFoundError, InvalidInputError
from lance_nb.format import layout
from lance_nb.format.fragment_reuse import (
    REUSE_INDEX,
    MovedRows,
    details_file,
    entries,
    follow,
    inline_details,
    moved_rows,
)
from lance_nb.format.frozen_list import FrozenList
from lance_nb.format.index_metadata import (
    IndexMetadata,
    index_settings,
    index_type,
    parse_index_section,
)
from lance_nb.format.wire import FILE_BYTES_MAX
from lance_nb.storage.base import ByteRange, Store
from lance_nb.table.scan_tasks import counts_of
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.versions import read_section
from lance_nb.value_classes import dataclass

Locate = Callable[[str, int | None], tuple[Store, str]]
Addresses = npt.NDArray[np.uint64]

NOT_READ: Mapping[str, tuple[str, ...]] = {
    "BTree": ("min", "max", "num_pages"),
    "Bitmap": ("num_bitmaps",),
    "LabelList": ("num_bitmaps",),
    "NGram": ("num_ngrams",),
    "ZoneMap": ("num_zones", "rows_per_zone"),
    "BloomFilter": ("num_blocks", "number_of_items", "probability"),
    "Inverted": ("num_tokens", "num_docs"),
    "Vector": ("num_partitions", "sub_index", "partitions", "centroids", "loss"),
}
"""Statistics of a segment that pylance reads from the files of an index, by kind of index."""

COVERAGE = pa.schema(
    [
        pa.field("index", pa.string(), nullable=False),
        pa.field("fragment_id", pa.int64(), nullable=False),
        pa.field("num_rows", pa.int64(), nullable=False),
        pa.field("is_covered", pa.bool_(), nullable=False),
        pa.field("segments", pa.list_(pa.string()), nullable=False),
    ]
)
"""What ``coverage`` returns: per index and fragment, live rows and the segments that cover it."""


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """One segment (delta) of an index. ``fragment_ids`` may name fragments that are gone."""

    uuid: str
    fragment_ids: frozenset[int]
    dataset_version_at_last_update: int
    index_version: int | None
    created_at: datetime | None
    size_bytes: int | None
    base_id: int | None
    covering_fields: FrozenList[int]


@dataclass(frozen=True, slots=True)
class IndexDescription:
    """One index with all its segments.

    ``fragment_ids`` are the live fragments it covers, ``num_unindexed_rows`` the live rows of the
    others. ``total_size_bytes`` is None when a segment does not list its files. ``details`` are the
    settings that the manifest knows (of vector and full-text indices).
    """

    name: str
    index_type: str
    type_url: str
    fields: FrozenList[int]
    field_names: FrozenList[str]
    num_rows_indexed: int
    num_unindexed_rows: int
    fragment_ids: frozenset[int]
    num_unindexed_fragments: int
    total_size_bytes: int | None
    segments: FrozenList[IndexSegment]
    details: dict[str, Any]

    @property
    def num_segments(self) -> int:
        """Number of segments (deltas)."""
        return len(self.segments)


def read_indices(snapshot: Snapshot) -> tuple[IndexMetadata, ...]:
    """Return the segments of all indices, none when the manifest has no index section."""
    manifest = snapshot.manifest
    section = manifest.index_section
    if section is None:
        return ()
    data = bytes(read_section(snapshot.locations.home, manifest.path, section))
    indices = parse_index_section(data, manifest.path)
    return tuple(follow(with_content(indices, snapshot.locations.locate, manifest.path)))


def segments_of(snapshot: Snapshot, name: str) -> list[IndexMetadata]:
    """Return the segments of one index. Raises IndexNotFoundError."""
    indices = read_indices(snapshot)
    mine = [index for index in indices if index.name == name]
    if not mine:
        raise IndexNotFoundError(name, tuple(sorted({index.name for index in indices})))
    return mine


def describe_indices(snapshot: Snapshot) -> list[IndexDescription]:
    """Describe every index, sorted by name, the bookkeeping indices of the format included."""
    segments: dict[str, list[IndexMetadata]] = {}
    for index in read_indices(snapshot):
        segments.setdefault(index.name, []).append(index)
    return [_describe(snapshot, name, segments[name]) for name in sorted(segments)]


def list_indices(snapshot: Snapshot) -> list[dict[str, Any]]:
    """List the segments as pylance's ``list_indices`` does, sorted by name."""
    schema = snapshot.manifest.schema
    return [
        {
            "name": index.name,
            "type": index_type(index, snapshot.manifest.path) or "Unknown",  # before 0.20
            "uuid": index.uuid,
            "fields": [schema.path_of(field_id) for field_id in index.fields],
            "version": index.dataset_version,
            "fragment_ids": set(index.fragment_ids(snapshot.manifest.path) or ()),
            "base_id": index.base_id,
        }
        for index in sorted(read_indices(snapshot), key=lambda index: index.name)
    ]


def statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return pylance's ``index_stats`` as far as the manifest tells.

    Each of the ``segments`` (also called ``indices``) says what is known of it, and ``not_read``
    names what pylance would read from the files of the index. Raises IndexNotFoundError.
    """
    segments = segments_of(snapshot, name)
    path = snapshot.manifest.path
    if segments[0].name == REUSE_INDEX:
        return {"num_versions": len(entries(inline_details(segments[0])))}
    described = _describe(snapshot, name, segments)
    counts = counts_of(snapshot)
    parts = [_segment_statistics(segment, path) for segment in segments]
    rows = [
        int(counts.num_rows[_covered(counts.ids, [segment], path)].sum()) for segment in segments
    ]
    return {
        "index_type": described.index_type,
        "name": name,
        "num_indices": len(segments),
        "num_segments": len(segments),
        "indices": parts,
        "segments": parts,
        "num_indexed_fragments": len(described.fragment_ids),
        "num_indexed_rows": described.num_rows_indexed,
        "num_unindexed_fragments": described.num_unindexed_fragments,
        "num_unindexed_rows": described.num_unindexed_rows,
        "num_indexed_rows_per_delta": rows,
        "updated_at_timestamp_ms": max(segment.created_at_ms or 0 for segment in segments) or None,
        "not_read": list(NOT_READ.get(segments[0].kind, ())),
    }


def coverage(snapshot: Snapshot, name: str | None = None) -> pa.Table:
    """Tell for every index (or one) and fragment whether it is covered, and by which segments.

    Raises IndexNotFoundError.
    """
    path = snapshot.manifest.path
    indices = read_indices(snapshot) if name is None else segments_of(snapshot, name)
    counts = counts_of(snapshot)
    parts = []
    shown = {index.name for index in indices if not index.is_system or name is not None}
    for index_name in sorted(shown):
        segments = [index for index in indices if index.name == index_name]
        masks = [_covered(counts.ids, [segment], path) for segment in segments]
        uuids = np.array([segment.uuid for segment in segments], object)
        columns = [
            pa.array([index_name] * len(counts.ids), pa.string()),
            pa.array(counts.ids.astype(np.int64)),
            pa.array(counts.num_rows.astype(np.int64)),
            pa.array(np.logical_or.reduce(masks)),
            pa.array([uuids[row].tolist() for row in np.stack(masks, 1)], pa.list_(pa.string())),
        ]
        parts.append(pa.table(columns, schema=COVERAGE))
    return pa.concat_tables(parts) if parts else COVERAGE.empty_table()


def _segment_statistics(segment: IndexMetadata, path: str) -> dict[str, Any]:
    return {
        "uuid": segment.uuid,
        "index_type": index_type(segment, path),
        "index_version": segment.index_version,
        "dataset_version": segment.dataset_version,
        "size_bytes": segment.size_bytes,
        **index_settings(segment, path),
    }


def _covered(
    ids: npt.NDArray[Any], segments: Sequence[IndexMetadata], path: str
) -> npt.NDArray[np.bool_]:
    """Tell for each fragment whether one of the segments covers it."""
    named = sorted({number for segment in segments for number in segment.fragment_ids(path) or ()})
    return np.isin(ids, np.array(named, np.int64))


def _describe(snapshot: Snapshot, name: str, segments: Sequence[IndexMetadata]) -> IndexDescription:
    path = snapshot.manifest.path
    counts = counts_of(snapshot)
    covered = _covered(counts.ids, segments, path)
    sizes = [segment.size_bytes for segment in segments]
    first = segments[0]
    names = [snapshot.manifest.schema.path_of(field_id) for field_id in first.fields]
    return IndexDescription(
        name=name,
        index_type=index_type(first, path),
        type_url=first.details_url,
        fields=FrozenList(first.fields),
        field_names=FrozenList(name for name in names if name is not None),
        num_rows_indexed=int(counts.num_rows[covered].sum()),
        num_unindexed_rows=int(counts.num_rows[~covered].sum()),
        fragment_ids=frozenset(counts.ids[covered].tolist()),
        num_unindexed_fragments=int((~covered).sum()),
        total_size_bytes=None if None in sizes else sum(size for size in sizes if size is not None),
        segments=FrozenList(_segment(segment, path) for segment in segments),
        details=index_settings(first, path),
    )


def _segment(segment: IndexMetadata, path: str) -> IndexSegment:
    return IndexSegment(
        uuid=segment.uuid,
        fragment_ids=frozenset(segment.fragment_ids(path) or ()),
        dataset_version_at_last_update=segment.dataset_version,
        index_version=segment.index_version,
        created_at=segment.created_at,
        size_bytes=segment.size_bytes,
        base_id=segment.base_id,
        covering_fields=FrozenList(segment.covering_fields),
    )


def with_content(
    indices: Iterable[IndexMetadata], locate: Locate, manifest: str = ""
) -> tuple[IndexMetadata, ...]:
    """Return the indices with the details that lie in files of their own.

    ``locate`` turns a path and a base id into a store and a path (table/locations). Raises
    CorruptFileError, ObjectNotFoundError.
    """
    return tuple(_with_content(index, locate, manifest) for index in indices)


def _with_content(index: IndexMetadata, locate: Locate, manifest: str) -> IndexMetadata:
    file = details_file(index)
    if file is None or index.content:
        return index
    if not 0 < file.size_bytes <= FILE_BYTES_MAX:
        limit = f"details of at most {FILE_BYTES_MAX} bytes"
        raise CorruptFileError(manifest, None, limit, f"{file.size_bytes} bytes")
    name = layout.check_relative_path(file.path, manifest)
    place = f"{layout.index_folder(index.uuid, manifest)}/{name}"
    store, path = locate(place, index.base_id)
    stop = file.offset_bytes + file.size_bytes
    data = bytes(store.read_range(path, ByteRange(file.offset_bytes, stop)))
    if len(data) != file.size_bytes:
        where = f"{store.uri}/{path}"
        raise CorruptFileError(where, None, f"{file.size_bytes} bytes", f"{len(data)} bytes")
    return replace(index, content=data)


def remap_row_addrs(snapshot: Snapshot, addresses: pa.Array) -> pa.Array | None:
    """Return the present addresses of rows, null for deleted ones; None without a reuse index.

    Raises InvalidInputError, CorruptFileError, NotSupportedError.
    """
    reuse = [index for index in read_indices(snapshot) if index.name == REUSE_INDEX]
    if not reuse:
        return None
    try:
        old_addresses = pa.array(addresses, pa.uint64())
    except (pa.ArrowException, TypeError) as error:
        raise InvalidInputError(
            f"row addresses are an array of uint64, as scans return with_row_address=True: {error}"
        ) from error
    is_deleted = pc.is_null(old_addresses).to_numpy(zero_copy_only=False)
    current = pc.fill_null(old_addresses, 0).to_numpy(zero_copy_only=False).copy()
    follow_addresses(reuse[0], current, is_deleted, snapshot.manifest.path)
    return pa.array(current, mask=is_deleted)


def follow_addresses(
    reuse: IndexMetadata, addresses: Addresses, is_deleted: npt.NDArray[np.bool_], path: str
) -> None:
    """Replace, in place, addresses by those of today; mark the rows that compactions dropped.

    Raises CorruptFileError, NotSupportedError.
    """
    for group in moved_rows(inline_details(reuse)):
        _follow(addresses, is_deleted, group, path)


def _follow(
    addresses: Addresses, is_deleted: npt.NDArray[np.bool_], group: MovedRows, path: str
) -> None:
    """Replace, in place, the addresses of rows that a group moved."""
    mine = _inside(addresses, group.old_fragments) & ~is_deleted
    if not mine.any():
        return
    try:
        before = np.array(BitMap64.deserialize(group.row_addrs), np.uint64)
    except (ValueError, IndexError) as error:  # the latter for no bytes at all
        raise CorruptFileError(path, None, "a map of row addresses", str(error)) from error
    rows = sum(count for _, count in group.new_fragments)
    if len(before) != rows:
        raise CorruptFileError(path, None, f"a map of {rows} rows", f"{len(before)} rows")
    after = [
        np.arange(size, dtype=np.uint64) + (fragment_id << 32)
        for fragment_id, size in group.new_fragments
    ]
    moved = np.concatenate(after) if after else before
    where = np.searchsorted(before, addresses[mine])
    is_there = where < len(before)
    is_there[is_there] = before[where[is_there]] == addresses[mine][is_there]
    places = np.flatnonzero(mine)
    addresses[places[is_there]] = moved[where[is_there]]
    is_deleted[places[~is_there]] = True


def _inside(addresses: Addresses, fragments: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Tell which addresses are of rows that the fragments have."""
    fragment_sizes = np.array(sorted(fragments), np.uint64).reshape(-1, 2)
    number, offset = addresses >> 32, addresses & 0xFFFFFFFF
    positions = np.minimum(
        np.searchsorted(fragment_sizes[:, 0], number), max(len(fragment_sizes) - 1, 0)
    )
    if not len(fragment_sizes):
        return np.zeros(len(addresses), np.bool_)
    inside: npt.NDArray[np.bool_] = (fragment_sizes[positions, 0] == number) & (
        offset < fragment_sizes[positions, 1]
    )
    return inside
