"""Create, commit and drop indices; trim the fragment-reuse index.

An index is one segment or several of the same name; a segment covers some fragments. Here all
fragments make one; ``lance_nb.spark`` writes one segment per task. What is in the files of a
segment is a matter of its kind (``indices.registry``); what is committed is the same for all.

A build whose commit is refused leaves no files; where the outcome of the commit is not known, they
stay until a clean-up.

Limits: top-level columns only.
Source: ``create_scalar_index``, ``commit_existing_index_segments``, ``drop_index`` of pylance
14.0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lance_nb.code_lines import Python
from lance_nb.errors import (
    CommitConflictError,
    InvalidInputError,
    NotSupportedError,
    RetryableCommitConflictError,
    VersionNotFoundError,
)
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_reuse import (
    REUSE_INDEX,
    entries,
    inline_details,
    new_fragment_ids,
    without_entries,
)
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.indices.building import BuildProgress, ProgressCallback, SegmentFiles, SegmentRows
from lance_nb.indices.registry import builder_named, builders
from lance_nb.session.session import Session
from lance_nb.table.indices import read_indices, segments_of
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.checksum_records import write_record
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.index_upkeep import coverage
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import commit_operation, replanned
from lance_nb.writing.fragment_reuse import unneeded_entries

_NANOSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index on one column, checked against a version; ``kind`` as in ``create_scalar_index``."""

    column: str
    field_id: int
    name: str
    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def check(
    snapshot: Snapshot,
    uri: str,
    column: str,
    kind: str,
    name: str | None,
    parameters: Mapping[str, Any] | None = None,
    *,
    replace: bool,
) -> Wanted:
    """Check what is wanted before anything is read.

    Raises ColumnNotFoundError, InvalidInputError (the type, a parameter, or the name is taken),
    NotSupportedError (another kind; a column inside of a struct).
    """
    schema = snapshot.manifest.schema
    indexed = schema.field(column)
    arrow = schema.to_arrow()
    if column not in arrow.names:
        raise NotSupportedError(not_built(uri, "create_scalar_index", column, kind))
    try:
        kind, builder = builder_named(kind)
    except NotSupportedError as error:
        raise NotSupportedError(not_built(uri, "create_scalar_index", column, kind)) from error
    checked = builder.check(_stored(arrow.field(column)), parameters or {})
    index_name = name or f"{column}_idx"
    for index in read_indices(snapshot):
        if index.name == index_name and (index.fields != (indexed.id,) or not replace):
            hint = "another name" if index.fields != (indexed.id,) else "replace=True"
            raise InvalidInputError(f"index {index_name!r} already exists: pass {hint}")
    return Wanted(column, indexed.id, index_name, kind, dict(checked))


def _stored(column: pa.Field) -> pa.Field:
    """Return a column with the type that an extension type is stored as."""
    if isinstance(column.type, pa.ExtensionType):
        return column.with_type(column.type.storage_type)
    return column


def not_built(uri: str, verb: str, *values: object, **options: object) -> str:
    """Say who builds what is not built here, with which call."""
    call = Python("lance.dataset").call(uri).attribute(verb).call(*values, **options)
    return (
        f"lance_nb builds {', '.join(builders())} indices on top-level columns; scans and filters "
        f"work without an index. With pylance installed, {call.code} builds it, and every "
        "operation of lance_nb keeps it valid"
    )


def write_segment(
    snapshot: Snapshot,
    request: Wanted,
    fragments: Sequence[Fragment],
    *,
    progress: ProgressCallback | None = None,
    existing: Sequence[IndexMetadata] = (),
    uuid: str | None = None,
) -> tuple[IndexMetadata, int]:
    """Write the files of a segment; return what is committed, and its number of rows.

    ``existing`` are the segments that it extends or replaces; ``uuid`` names its folder. After an
    error no file is left.
    """
    environment = Environment()
    _, builder = builder_named(request.kind)
    rows = SegmentRows(
        snapshot, request.column, fragments, builder.row_column, BuildProgress(progress)
    )
    with SegmentFiles(snapshot, uuid or environment.new_uuid()) as files:
        details = builder.write(rows, files, request.parameters, existing)
        write_record(
            snapshot.locations.home, (file_sum for file in files.written for file_sum in file.sums)
        )
    index = IndexMetadata(
        files.uuid,
        request.name,
        (request.field_id,),
        snapshot.version,
        BitMap([fragment.id for fragment in fragments]).serialize(),
        builder.details_url,
        details.details,
        details.index_version,
        environment.clock() // _NANOSECONDS,
        files=tuple(
            IndexFile(file.path.rpartition("/")[2], file.size_bytes) for file in files.written
        ),
    )
    return index, rows.num_rows


def trained(
    snapshot: Snapshot, request: Wanted, *, progress: ProgressCallback | None = None
) -> Wanted:
    """Return an index with what its kind learns from a sample of all rows.

    Segments that are written apart with it have the same partitions and codes, and can be merged.
    """
    _, builder = builder_named(request.kind)
    if builder.train is None:
        return request
    rows = SegmentRows(
        snapshot,
        request.column,
        snapshot.manifest.fragments,
        builder.row_column,
        BuildProgress(progress),
    )
    return replace(request, parameters=dict(builder.train(rows, request.parameters)))


def operation_of(snapshot: Snapshot, name: str, segments: Sequence[IndexMetadata]) -> CreateIndex:
    """Return the operation that puts segments in the place of those that the index had."""
    replaced = tuple(index for index in read_indices(snapshot) if index.name == name)
    return CreateIndex(tuple(segments), replaced)


def commit_segments(session: Session, base: Snapshot, operation: CreateIndex) -> Snapshot:
    """Commit new segments; where the commit is refused, their files are deleted.

    Raises CommitConflictError, RetryableCommitConflictError, CommitStateUnknownError.
    """
    try:
        return commit_operation(session, base, operation)
    except (CommitConflictError, RetryableCommitConflictError):
        discard(base, operation.added)
        raise


def discard(base: Snapshot, segments: Sequence[IndexMetadata]) -> None:
    """Delete the files of segments that were built here and are not committed."""
    for segment in segments:
        for file in segment.files:
            base.locations.home.delete(f"_indices/{segment.uuid}/{file.path}")


def create(
    session: Session,
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None,
    parameters: Mapping[str, Any] | None = None,
    *,
    replace: bool,
    train: bool = True,
    uuid: str | None = None,
    progress: ProgressCallback | None = None,
) -> Snapshot:
    """Build an index on all fragments and commit it; on none of them unless ``train``.

    Raises as ``check`` does.
    """

    def attempt(base: Snapshot) -> Snapshot:
        request = check(base, session.uri, column, kind, name, parameters, replace=replace)
        fragments = list(base.manifest.fragments) if train else []
        index, _ = write_segment(base, request, fragments, progress=progress, uuid=uuid)
        return commit_segments(session, base, operation_of(base, request.name, [index]))

    return replanned(session, snapshot, attempt)


def drop(session: Session, snapshot: Snapshot, name: str) -> Snapshot:
    """Drop all segments of an index. Raises IndexNotFoundError, InvalidInputError."""

    def attempt(base: Snapshot) -> Snapshot:
        removed = segments_of(base, name)
        remaining = [index for index in read_indices(base) if not index.is_system]
        if name == REUSE_INDEX and remaining:
            raise InvalidInputError(
                f"{name!r} cannot be dropped: index {remaining[0].name!r} needs it to map old row "
                "addresses to new ones. ds.optimize.cleanup_frag_reuse_index() removes the "
                "entries that no index needs"
            )
        return commit_operation(session, base, CreateIndex((), tuple(removed)))

    return replanned(session, snapshot, attempt)


def cleanup_reuse(session: Session, snapshot: Snapshot) -> tuple[Snapshot, int]:
    """Remove entries that no index needs from the fragment-reuse index; return how many."""

    def attempt(base: Snapshot) -> tuple[Snapshot, int]:
        indices = read_indices(base)
        unneeded = unneeded_entries(indices, lambda version: _indices_of(session, base, version))
        if not unneeded:
            return base, 0
        (reuse,) = (index for index in indices if index.name == REUSE_INDEX)
        operation = CreateIndex(tuple(_without(reuse, unneeded, base.version)), (reuse,))
        return commit_operation(session, base, operation), len(unneeded)

    return replanned(session, snapshot, attempt)


def _indices_of(session: Session, base: Snapshot, version: int) -> Sequence[IndexMetadata] | None:
    try:
        return read_indices(session.load(Target(base.branch, version)))
    except VersionNotFoundError:
        return None


def _without(reuse: IndexMetadata, unneeded: set[int], version: int) -> list[IndexMetadata]:
    """Return the index with the entries that stay; none when nothing does."""
    details = inline_details(reuse)
    if len(unneeded) == len(entries(details)):
        return []
    environment = Environment()
    details = without_entries(details, unneeded)
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
