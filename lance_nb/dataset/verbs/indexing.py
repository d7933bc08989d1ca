"""Drop indices, and what the fragment-reuse index remembers longer than it has to.

Source: ``LanceDataset.drop_index`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.committing import commit_operation, replanned
from lance_nb.errors import InvalidInputError, VersionNotFoundError
from lance_nb.format.fragment_reuse import (
    REUSE_INDEX,
    entries,
    inline_details,
    new_fragment_ids,
    without_entries,
)
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.table.indices import read_indices, segments_of
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.index_upkeep import coverage
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.reuse_cleanup import unneeded_entries


def drop(session: Session, snapshot: Snapshot, name: str) -> Snapshot:
    """Drop all segments of an index. Raises IndexNotFoundError, InvalidInputError."""

    def attempt(base: Snapshot) -> Snapshot:
        gone = segments_of(base, name)
        others = [one for one in read_indices(base) if not one.is_system]
        if name == REUSE_INDEX and others:
            raise InvalidInputError(
                f"{name!r} says where rows went that index {others[0].name!r} knows by their old "
                "addresses: without it answers would be wrong. "
                "ds.optimize.cleanup_frag_reuse_index() removes what no index needs any more"
            )
        return commit_operation(session, base, CreateIndex((), tuple(gone)))

    return replanned(session, snapshot, attempt)


def cleanup_reuse(session: Session, snapshot: Snapshot) -> tuple[Snapshot, int]:
    """Remove entries that no index needs from the fragment-reuse index; return how many."""

    def attempt(base: Snapshot) -> tuple[Snapshot, int]:
        indices = read_indices(base)
        gone = unneeded_entries(indices, lambda version: _indices_of(session, base, version))
        if not gone:
            return base, 0
        (reuse,) = (one for one in indices if one.name == REUSE_INDEX)
        operation = CreateIndex(tuple(_without(reuse, gone, base.version)), (reuse,))
        return commit_operation(session, base, operation), len(gone)

    return replanned(session, snapshot, attempt)


def _indices_of(session: Session, base: Snapshot, version: int) -> Sequence[IndexMetadata] | None:
    try:
        return read_indices(session.load(Target(base.branch, version)))
    except VersionNotFoundError:
        return None


def _without(reuse: IndexMetadata, gone: set[int], version: int) -> list[IndexMetadata]:
    """Return the index with the entries that stay; none when nothing does."""
    details = inline_details(reuse)
    if len(gone) == len(entries(details)):
        return []
    environment = Environment()
    details = without_entries(details, gone)
    return [
        replace(
            reuse,
            uuid=environment.new_uuid(),
            details=details,
            content=b"",
            dataset_version=version,
            fragment_bitmap=coverage(new_fragment_ids(details)),
            created_at_ms=environment.clock() // 1_000_000,
            base_id=None,
        )
    ]
