"""The fragment-reuse index: which rewrites are still to be carried over into other indices.

Each entry ("version") is a rewrite: groups of old and new fragments and the rows that moved. A
rewrite that defers the remapping of indices adds an entry; a clean-up takes entries out that every
index has caught up with. When both happen at once, their details are merged here.

Layout: ``FragmentReuseIndexDetails`` with inline content; entries are kept in full.
Not supported: details that lie in a file of their own; transitions of newer writers.
Source: lance.index.pb of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from lance_nb._pb import index as pb
from lance_nb.errors import NotSupportedError
from lance_nb.format.wire import parse, unknown_bytes


def with_newest_entries(details: bytes, others: Iterable[bytes]) -> bytes:
    """Return ``details`` with the newest entry of each of ``others`` added.

    ``others`` come from rewrites that were committed in between. Raises NotSupportedError.
    """
    message = _inline(details)
    for one in others:
        entries = _inline(one).inline.legacy_versions
        if entries:
            newest = max(entries, key=lambda entry: entry.dataset_version)
            message.inline.legacy_versions.add().CopyFrom(newest)
    return message.SerializeToString(deterministic=True)


def without_cleaned_entries(details: bytes, cleaned: Iterable[bytes]) -> bytes:
    """Return ``details`` without the entries that clean-ups have taken out in between.

    ``cleaned`` are the details after each clean-up: what is older than their oldest entry goes. If
    one is empty, only the newest entry stays. Raises NotSupportedError.
    """
    message = _inline(details)
    entries = message.inline.legacy_versions
    if not entries:
        return details
    numbers = [entry.dataset_version for entry in entries]
    oldest = min(numbers)
    for one in cleaned:
        left = [entry.dataset_version for entry in _inline(one).inline.legacy_versions]
        oldest = max(oldest, min(left)) if left else max(numbers)
    kept = [entry for entry in entries if entry.dataset_version >= oldest]
    result = pb.FragmentReuseIndexDetails()
    result.inline.legacy_versions.extend(kept)
    return result.SerializeToString(deterministic=True)


def moves(details: bytes) -> list[tuple[set[int], set[int]]]:
    """Return (old, new) fragment ids of every group, oldest rewrite first.

    Raises NotSupportedError.
    """
    entries = sorted(
        _inline(details).inline.legacy_versions, key=lambda entry: entry.dataset_version
    )
    return [
        ({one.id for one in group.old_fragments}, {one.id for one in group.new_fragments})
        for entry in entries
        for group in entry.groups
    ]


def new_fragment_ids(details: bytes) -> set[int]:
    """Return the ids of all fragments that the rewrites made. Raises NotSupportedError."""
    entries = _inline(details).inline.legacy_versions
    return {one.id for entry in entries for group in entry.groups for one in group.new_fragments}


def _inline(details: bytes) -> pb.FragmentReuseIndexDetails:
    message = parse(pb.FragmentReuseIndexDetails, details, "")
    if unknown_bytes(message) or unknown_bytes(message.inline):
        raise NotSupportedError(
            "the details of the fragment-reuse index do not lie in the manifest, or are of a newer "
            "kind; merging them is not supported"
        )
    return message
