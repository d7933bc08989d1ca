"""The secondary indices of a version: what they are, and which fragments and rows they cover.

Everything comes from the index section of the manifest file; no index file is read. An index may
consist of several segments (deltas) of one name. Fragments that an index names but that are gone do
not count as covered; those that became others, as the fragment-reuse index says, count as these.

Source: message IndexSection of lance.table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lance_nb.format.fragment_reuse import follow
from lance_nb.format.index_details import index_type
from lance_nb.format.index_metadata import IndexMetadata, parse_index_section
from lance_nb.storage.base import ByteRange
from lance_nb.table.reuse_content import with_content
from lance_nb.table.snapshot import Snapshot

_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class IndexDescription:
    """One index with all its segments.

    ``fragment_ids`` are the live fragments it covers, ``num_unindexed_rows`` the live rows of the
    others. ``total_size_bytes`` is None when a segment does not list its files.
    """

    name: str
    index_type: str
    type_url: str
    fields: tuple[int, ...]
    field_names: tuple[str, ...]
    num_rows_indexed: int
    num_unindexed_rows: int
    fragment_ids: frozenset[int]
    num_unindexed_fragments: int
    total_size_bytes: int | None
    segments: tuple[IndexMetadata, ...]

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
    data = section.data
    if data is None:
        home = snapshot.locations.home
        path = manifest.path.removeprefix(f"{home.uri}/")
        start = section.offset_bytes
        size = home.read_range(path, ByteRange(start, start + _LENGTH_BYTES))
        start += _LENGTH_BYTES
        stop = start + int.from_bytes(size, "little")
        data = bytes(home.read_range(path, ByteRange(start, stop)))
    found = parse_index_section(data, manifest.path)
    return tuple(follow(with_content(found, snapshot.locations.locate, manifest.path)))


def describe_indices(snapshot: Snapshot) -> list[IndexDescription]:
    """Describe every index on columns, sorted by name; bookkeeping indices are left out."""
    segments: dict[str, list[IndexMetadata]] = {}
    for one in read_indices(snapshot):
        if not one.is_system:
            segments.setdefault(one.name, []).append(one)
    return [_describe(snapshot, name, segments[name]) for name in sorted(segments)]


def list_indices(snapshot: Snapshot) -> list[dict[str, Any]]:
    """List the segments as pylance's ``list_indices`` does, sorted by name."""
    schema = snapshot.manifest.schema
    return [
        {
            "name": one.name,
            "type": index_type(one, snapshot.manifest.path),
            "uuid": one.uuid,
            "fields": [schema.path_of(field_id) for field_id in one.fields],
            "version": one.dataset_version,
            "fragment_ids": set(one.fragment_ids(snapshot.manifest.path) or ()),
            "base_id": one.base_id,
        }
        for one in sorted(read_indices(snapshot), key=lambda one: one.name)
        if not one.is_system
    ]


def _describe(snapshot: Snapshot, name: str, segments: Sequence[IndexMetadata]) -> IndexDescription:
    path = snapshot.manifest.path
    counts = snapshot.manifest.fragments.counts()
    named = sorted({number for one in segments for number in one.fragment_ids(path) or ()})
    covered = np.isin(counts.ids, np.array(named, np.int64))
    sizes = [one.size_bytes for one in segments]
    first = segments[0]
    names = [snapshot.manifest.schema.path_of(field_id) for field_id in first.fields]
    return IndexDescription(
        name,
        index_type(first, path),
        first.details_url,
        first.fields,
        tuple(one for one in names if one is not None),
        int(counts.num_rows[covered].sum()),
        int(counts.num_rows[~covered].sum()),
        frozenset(counts.ids[covered].tolist()),
        int((~covered).sum()),
        None if None in sizes else sum(size for size in sizes if size is not None),
        tuple(segments),
    )
