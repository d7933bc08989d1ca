"""The fragment-reuse index: rewrites of fragments that other indices are not remapped for yet.

Each entry ("version") is a rewrite: groups of old and new fragments and the rows that moved. Index
files refer to rows by address; a reader of an index maps old addresses to new ones here. A rewrite
that defers the remapping of indices adds an entry; a cleanup removes entries that no index needs
any more. When both are committed concurrently, their details are merged here.

Layout: ``FragmentReuseIndexDetails``; the content is inline, or, above ``INLINE_BYTES_MAX``, in the
file ``details.binpb`` of the index's folder. The rows of a group are a 64-bit Roaring map of the
addresses they had (u64 count, then per fragment u32 id and a portable 32-bit Roaring bitmap): the
n-th of them is the n-th row of the group's new fragments. Rows of old fragments that are not in the
map have been deleted.

Limits: bitmaps of other indices contain the old fragments until ``follow`` replaces them. A group
that an index covers only in part is left unchanged (except in the fragment-reuse index itself,
whose bitmap contains every fragment that a rewrite created).
Not supported: transitions of newer writers.
Source: lance.index.pb of pylance 14.0.2, measured byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pyroaring import BitMap

from lance_nb._pb import index as pb
from lance_nb.errors import NotSupportedError
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import SYSTEM_NAMES, IndexMetadata
from lance_nb.format.wire import parse, unknown_bytes
from lance_nb.value_classes import dataclass

REUSE_INDEX = SYSTEM_NAMES[0]
DETAILS_URL = "/lance.table.FragmentReuseIndexDetails"
DETAILS_FILE = "details.binpb"
INLINE_BYTES_MAX = 204_800


@dataclass(frozen=True, slots=True)
class MovedGroup:
    """Fragments that were rewritten into others; ``row_addrs`` is the map of the moved rows."""

    row_addrs: bytes
    old_fragments: Sequence[Fragment]
    new_fragments: Sequence[Fragment]


@dataclass(frozen=True, slots=True)
class MovedRows:
    """A parsed group: the map, and (id, physical rows) of the old and the new fragments."""

    row_addrs: bytes
    old_fragments: tuple[tuple[int, int], ...]
    new_fragments: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DetailsFile:
    """The location of details outside of the manifest; the path is below the index's folder."""

    path: str
    offset_bytes: int
    size_bytes: int


# --- content in the manifest and outside of it ----------------------------------------------------


def details_file(index: IndexMetadata) -> DetailsFile | None:
    """Return the location of the details, None if they are in the manifest."""
    if index.name != REUSE_INDEX:
        return None
    message = parse(pb.FragmentReuseIndexDetails, index.details, "")
    if message.WhichOneof("content") != "external":
        return None
    return DetailsFile(message.external.path, message.external.offset, message.external.size)


def inline_details(index: IndexMetadata) -> bytes:
    """Return the details in their inline form."""
    if not index.content:
        return index.details
    message = pb.FragmentReuseIndexDetails()
    message.inline.MergeFromString(index.content)
    return message.SerializeToString()


def outside(index: IndexMetadata) -> tuple[IndexMetadata, bytes] | None:
    """Return the index with details that point to its file, and the file's content.

    None if the details belong in the manifest, or have a file already.
    """
    if index.name != REUSE_INDEX or index.content or len(index.details) <= INLINE_BYTES_MAX:
        return None
    content = _inline(index.details).inline.SerializeToString()
    message = pb.FragmentReuseIndexDetails()
    message.external.path, message.external.size = DETAILS_FILE, len(content)
    details = message.SerializeToString()
    return replace(index, details=details, content=content), content


# --- coverage -------------------------------------------------------------------------------------


def follow(indices: Sequence[IndexMetadata]) -> list[IndexMetadata]:
    """Return the indices with rewritten fragments replaced by their successors in the bitmaps.

    Raises NotSupportedError.
    """
    reuse = next((index for index in indices if index.name == REUSE_INDEX), None)
    if reuse is None:
        return list(indices)
    steps = moves(inline_details(reuse))
    return [_followed(index, steps) for index in indices]


def _followed(
    index: IndexMetadata, steps: Iterable[tuple[AbstractSet[int], AbstractSet[int]]]
) -> IndexMetadata:
    covered = index.fragment_ids()
    if covered is None:
        return index
    after = BitMap(covered)
    for old, new in steps:
        inside = len(after & BitMap(old))
        if inside == len(old) or (inside and index.name == REUSE_INDEX):
            after = (after - BitMap(old)) | BitMap(new)
    return index if after == covered else replace(index, fragment_bitmap=after.serialize())


# --- entries --------------------------------------------------------------------------------------


def address_map(rows: Iterable[tuple[int, BitMap]]) -> bytes:
    """Return the map of the rows that moved: (fragment id, offsets), ids ascending."""
    parts = []
    for fragment_id, offsets in rows:
        offsets.run_optimize()
        parts.append(fragment_id.to_bytes(4, "little") + offsets.serialize())
    return b"".join([len(parts).to_bytes(8, "little"), *parts])


def with_entry(details: bytes, version: int, groups: Iterable[MovedGroup]) -> bytes:
    """Return the details (b"" for none) with one more entry. Raises NotSupportedError."""
    message = _inline(details)
    entry = message.inline.legacy_versions.add(dataset_version=version)
    for moved_group in groups:
        group = entry.groups.add(changed_row_addrs=moved_group.row_addrs)
        for digests, fragments in (
            (group.old_fragments, moved_group.old_fragments),
            (group.new_fragments, moved_group.new_fragments),
        ):
            for part in fragments:
                digests.add(
                    id=part.id,
                    physical_rows=part.physical_rows,
                    num_deleted_rows=part.num_deleted_rows,
                )
    return message.SerializeToString()


def without_entries(details: bytes, numbers: AbstractSet[int]) -> bytes:
    """Return the details without the entries at these positions. Raises NotSupportedError."""
    message = _inline(details)
    remaining = [
        legacy_version
        for position, legacy_version in enumerate(message.inline.legacy_versions)
        if position not in numbers
    ]
    result = pb.FragmentReuseIndexDetails()
    result.inline.legacy_versions.extend(remaining)
    return result.SerializeToString()


def entries(details: bytes) -> list[bytes]:
    """Return every entry in its serialized form. Raises NotSupportedError."""
    return [
        legacy_version.SerializeToString()
        for legacy_version in _inline(details).inline.legacy_versions
    ]


def with_newest_entries(details: bytes, concurrent_details: Iterable[bytes]) -> bytes:
    """Return ``details`` with the newest entry of each of ``concurrent_details`` added.

    ``concurrent_details`` are the details of rewrites that were committed concurrently. Raises
    NotSupportedError.
    """
    message = _inline(details)
    for newer_details in concurrent_details:
        entries = _inline(newer_details).inline.legacy_versions
        if entries:
            newest = max(entries, key=lambda entry: entry.dataset_version)
            message.inline.legacy_versions.add().CopyFrom(newest)
    return message.SerializeToString()


def without_cleaned_entries(details: bytes, cleaned: Iterable[bytes]) -> bytes:
    """Return ``details`` without the entries that concurrent cleanups have removed.

    ``cleaned`` are the details after each cleanup: entries older than their oldest one are removed.
    If one is empty, only the newest entry stays. Raises NotSupportedError.
    """
    message = _inline(details)
    entries = message.inline.legacy_versions
    if not entries:
        return details
    numbers = [entry.dataset_version for entry in entries]
    oldest = min(numbers)
    for cleaned_details in cleaned:
        left = [entry.dataset_version for entry in _inline(cleaned_details).inline.legacy_versions]
        oldest = max(oldest, min(left)) if left else max(numbers)
    remaining = [entry for entry in entries if entry.dataset_version >= oldest]
    result = pb.FragmentReuseIndexDetails()
    result.inline.legacy_versions.extend(remaining)
    return result.SerializeToString()


def moves(details: bytes) -> list[tuple[set[int], set[int]]]:
    """Return (old, new) fragment ids of every group, oldest rewrite first.

    Raises NotSupportedError.
    """
    entries = sorted(
        _inline(details).inline.legacy_versions, key=lambda entry: entry.dataset_version
    )
    return [
        (
            {fragment.id for fragment in group.old_fragments},
            {fragment.id for fragment in group.new_fragments},
        )
        for entry in entries
        for group in entry.groups
    ]


def moved_rows(details: bytes) -> list[MovedRows]:
    """Return every group, oldest rewrite first. Raises NotSupportedError."""
    versions = _inline(details).inline.legacy_versions
    return [
        MovedRows(
            group.changed_row_addrs,
            tuple(
                (old_fragment.id, old_fragment.physical_rows)
                for old_fragment in group.old_fragments
            ),
            tuple(
                (new_fragment.id, new_fragment.physical_rows)
                for new_fragment in group.new_fragments
            ),
        )
        for entry in sorted(versions, key=lambda entry: entry.dataset_version)
        for group in entry.groups
    ]


def moves_of(entry: bytes) -> list[tuple[set[int], set[int]]]:
    """Return (old, new) fragment ids of every group of one entry, as ``entries`` returns it."""
    groups = parse(pb.FragmentReuseIndexDetails.Version, entry, "").groups
    return [
        (
            {fragment.id for fragment in group.old_fragments},
            {fragment.id for fragment in group.new_fragments},
        )
        for group in groups
    ]


def new_fragment_ids(details: bytes) -> set[int]:
    """Return the ids of all fragments that the rewrites created. Raises NotSupportedError."""
    entries = _inline(details).inline.legacy_versions
    return {
        new_fragment.id
        for entry in entries
        for group in entry.groups
        for new_fragment in group.new_fragments
    }


def _inline(details: bytes) -> pb.FragmentReuseIndexDetails:
    message = parse(pb.FragmentReuseIndexDetails, details, "")
    is_outside = message.WhichOneof("content") == "external"
    if is_outside or unknown_bytes(message) or unknown_bytes(message.inline):
        raise NotSupportedError(
            "the details of the fragment-reuse index are of a newer kind: they cannot be followed "
            "or merged. Use a newer lance_nb"
        )
    return message
