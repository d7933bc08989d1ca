"""Create, commit and drop scalar indices; trim the fragment-reuse index.

An index is one segment or several of the same name; a segment covers some fragments. Here all
fragments make one; ``lance_nb.spark`` writes one segment per task.

Limits: kind BTREE; top-level columns only. A segment is sorted in memory.
Source: ``create_scalar_index``, ``commit_existing_index_segments``, ``drop_index`` of pylance
14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_nb.code_lines import Python
from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.committing import commit_operation, replanned
from lance_nb.errors import InvalidInputError, NotSupportedError, VersionNotFoundError
from lance_nb.format.fragment import Fragment
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
from lance_nb.table.scan_plan import ScanOptions, plan_scan
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.btree_writer import check_sortable, write_btree
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.fragment_reuse import unneeded_entries
from lance_nb.transactions.index_upkeep import coverage
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.value_classes import dataclass

KIND = "BTREE"


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index on one column, checked against a version."""

    column: str
    field_id: int
    name: str


def check(
    snapshot: Snapshot, uri: str, column: str, kind: str, name: str | None, *, replace: bool
) -> Wanted:
    """Check what is wanted before anything is read.

    Raises ColumnNotFoundError, InvalidInputError (the type, or the name is taken),
    NotSupportedError (another kind; a column inside of a struct).
    """
    schema = snapshot.manifest.schema
    field = schema.field(column)
    if kind.upper() != KIND:
        raise NotSupportedError(not_built(uri, "create_scalar_index", column, kind))
    arrow = schema.to_arrow()
    if column not in arrow.names:
        raise NotSupportedError(not_built(uri, "create_scalar_index", column, kind))
    check_sortable(arrow.field(column))
    wanted = name or f"{column}_idx"
    for one in read_indices(snapshot):
        if one.name == wanted and (one.fields != (field.id,) or not replace):
            hint = "another name" if one.fields != (field.id,) else "replace=True"
            raise InvalidInputError(f"index {wanted!r} already exists: pass {hint}")
    return Wanted(column, field.id, wanted)


def not_built(uri: str, verb: str, *values: object, **options: object) -> str:
    """Say who builds what is not built here, with which call."""
    made = Python("lance.dataset").call(uri).attribute(verb).call(*values, **options)
    return (
        f"lance_nb builds only {KIND} indices on top-level columns; scans and filters work "
        f"without an index. With pylance installed, {made.code} builds it, and every operation "
        "of lance_nb keeps it valid"
    )


def write_segment(
    snapshot: Snapshot, wanted: Wanted, fragments: Sequence[Fragment]
) -> tuple[IndexMetadata, int]:
    """Write the files of a segment; return what is committed, and its number of rows."""
    options = ScanOptions([wanted.column], fragments=tuple(fragments), with_row_id=True)
    rows = plan_scan(snapshot, options).table()
    ids = [one.id for one in fragments]
    return write_btree(snapshot, wanted.field_id, wanted.name, rows, ids), rows.num_rows


def operation_of(snapshot: Snapshot, name: str, segments: Sequence[IndexMetadata]) -> CreateIndex:
    """Return the operation that puts segments in the place of those that the index had."""
    gone = tuple(one for one in read_indices(snapshot) if one.name == name)
    return CreateIndex(tuple(segments), gone)


def create(
    session: Session,
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None,
    *,
    replace: bool,
) -> Snapshot:
    """Build an index on all fragments and commit it. Raises as ``check`` does."""

    def attempt(base: Snapshot) -> Snapshot:
        wanted = check(base, session.uri, column, kind, name, replace=replace)
        made, _ = write_segment(base, wanted, list(base.manifest.fragments))
        return commit_operation(session, base, operation_of(base, wanted.name, [made]))

    return replanned(session, snapshot, attempt)


def drop(session: Session, snapshot: Snapshot, name: str) -> Snapshot:
    """Drop all segments of an index. Raises IndexNotFoundError, InvalidInputError."""

    def attempt(base: Snapshot) -> Snapshot:
        gone = segments_of(base, name)
        others = [one for one in read_indices(base) if not one.is_system]
        if name == REUSE_INDEX and others:
            raise InvalidInputError(
                f"{name!r} cannot be dropped: index {others[0].name!r} needs it to map old row "
                "addresses to new ones. ds.optimize.cleanup_frag_reuse_index() removes the "
                "entries that no index needs"
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
