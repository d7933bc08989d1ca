"""Create, commit and drop indices, and work with their segments; trim the fragment-reuse index.

An index is one segment or several of the same name; a segment covers some fragments. ``create``
makes one of all fragments; ``lance_nb.spark`` writes one segment per task. What is in the files of
a segment is a matter of its kind (``indices.registry``); what is committed is the same for all.

A build whose commit is refused leaves no files; where the outcome of the commit is not known, they
stay until a clean-up.

``optimize`` adds fragments that no segment of an index covers. By default they become one new
segment together with what the last segment covers; the values are read again from the column, and
what a kind has learned (partitions, a tokenizer) is taken from the segments.

A segment can also be built alone, on some fragments, by anybody (``build``), and committed later
with others (``commit``). Until then only its files exist.

An entry of the fragment-reuse index is needed as long as the files of an index may name rows by
the addresses they had before it. They do not when the index was built on a version that had the
entry already, or when it covers nothing that came out of the entry's fragments.

Limits: top-level columns, kinds that ``indices.registry`` builds. ``dataset_version`` of an index
says which version it was built on; pylance's ``optimize_indices`` keeps the old number, so that
entries stay until an index is built anew. If that version was cleaned up, the entry stays.
Source: ``create_scalar_index``, ``optimize_indices``, ``create_index_uncommitted``,
``merge_existing_index_segments``, ``commit_existing_index_segments``, ``prewarm_index`` and
``drop_index`` of pylance 14.0.2; ``cleanup_frag_reuse_index`` of the Rust library, which pylance
does not offer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_reuse import (
    REUSE_INDEX,
    entries,
    inline_details,
    moves_of,
    new_fragment_ids,
    without_entries,
)
from lance_nb.format.index_metadata import Index, IndexFile, IndexMetadata
from lance_nb.indices.building import BuildProgress, ProgressCallback, SegmentFiles, SegmentRows
from lance_nb.indices.index_file import open_file
from lance_nb.indices.registry import KINDS, builder_named, builder_of, builders
from lance_nb.indices.search import scalar_search
from lance_nb.session.session import Session
from lance_nb.table.indices import read_indices, segments_of
from lance_nb.table.projection import ROW_ADDRESS
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.checksum_records import write_record
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.manifest_building import coverage
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import commit_operation, replanned

LoadIndices = Callable[[int], Sequence[IndexMetadata] | None]


def unneeded_entries(indices: Sequence[IndexMetadata], load: LoadIndices) -> set[int]:
    """Return the positions of the entries that can go.

    ``indices`` cover what they cover now; ``load`` returns the indices of a version, None when it
    is not there any more. Raises NotSupportedError.
    """
    reuse = next((index for index in indices if index.name == REUSE_INDEX), None)
    if reuse is None:
        return set()
    known_entries = entries(inline_details(reuse))
    built_on: dict[int, AbstractSet[bytes]] = {}
    on_columns = [index for index in indices if not index.is_system]
    for version in {index.dataset_version for index in on_columns}:
        indices_then = load(version) or ()
        reuse_index = next((index for index in indices_then if index.name == REUSE_INDEX), None)
        built_on[version] = (
            set() if reuse_index is None else set(entries(inline_details(reuse_index)))
        )
    unneeded = set()
    for position, entry in enumerate(known_entries):
        reached = _reached(known_entries, position)
        if not any(_needs(index, entry, reached, built_on) for index in on_columns):
            unneeded.add(position)
    return unneeded


def _reached(known_entries: Sequence[bytes], position: int) -> set[int]:
    """Return the fragments of an entry, and those that came out of them later."""
    reached: set[int] = set()
    for old, new in moves_of(known_entries[position]):
        reached |= old | new
    changed = True
    while changed:
        changed = False
        for entry in known_entries:
            for old, new in moves_of(entry):
                if old & reached and not new <= reached:
                    reached |= new
                    changed = True
    return reached


def _needs(
    index: IndexMetadata,
    entry: bytes,
    reached: AbstractSet[int],
    built_on: dict[int, AbstractSet[bytes]],
) -> bool:
    if entry in built_on[index.dataset_version]:
        return False
    covered = index.fragment_ids()
    return covered is None or any(fragment_id in covered for fragment_id in reached)


_NANOSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class IndexRequest:
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
    *,
    name: str | None,
    parameters: Mapping[str, Any] | None = None,
    replace: bool,
) -> IndexRequest:
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
    return IndexRequest(column, indexed.id, index_name, kind=kind, parameters=dict(checked))


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
    request: IndexRequest,
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
        snapshot,
        request.column,
        fragments,
        row_column=builder.row_column,
        progress=BuildProgress(progress),
    )
    with SegmentFiles(snapshot, uuid or environment.new_uuid()) as files:
        details = builder.write(rows, files, request.parameters, existing)
        write_record(
            snapshot.locations.home, (file_sum for file in files.written for file_sum in file.sums)
        )
    index = IndexMetadata(
        uuid=files.uuid,
        name=request.name,
        fields=(request.field_id,),
        dataset_version=snapshot.version,
        fragment_bitmap=BitMap([fragment.id for fragment in fragments]).serialize(),
        details_url=builder.details_url,
        details=details.details,
        index_version=details.index_version,
        created_at_ms=environment.clock() // _NANOSECONDS,
        files=tuple(
            IndexFile(file.path.rpartition("/")[2], file.size_bytes) for file in files.written
        ),
    )
    return index, rows.num_rows


def trained(
    snapshot: Snapshot, request: IndexRequest, *, progress: ProgressCallback | None = None
) -> IndexRequest:
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
        row_column=builder.row_column,
        progress=BuildProgress(progress),
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
    *,
    name: str | None,
    parameters: Mapping[str, Any] | None = None,
    replace: bool,
    train: bool = True,
    uuid: str | None = None,
    progress: ProgressCallback | None = None,
) -> Snapshot:
    """Build an index on all fragments and commit it; on none of them unless ``train``.

    Raises as ``check`` does.
    """

    def attempt(base: Snapshot) -> Snapshot:
        request = check(
            base, session.uri, column, kind, name=name, parameters=parameters, replace=replace
        )
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


@dataclass(frozen=True, slots=True)
class Extension:
    """A segment to build: its fragments, the segments that it replaces, and those to learn from."""

    index: IndexRequest
    fragments: tuple[Fragment, ...]
    replaced: tuple[IndexMetadata, ...]
    learned_from: tuple[IndexMetadata, ...]


def optimize(
    session: Session,
    snapshot: Snapshot,
    names: Collection[str] | None,
    num_to_merge: int | None,
    *,
    retrain: bool,
    progress: ProgressCallback | None = None,
) -> Snapshot:
    """Extend indices, all of them by default, and commit them together.

    Returns the same version when there is nothing to do. Raises IndexNotFoundError,
    InvalidInputError, NotSupportedError (an index was named that cannot be built).
    """
    if num_to_merge is not None and num_to_merge < 0:
        raise InvalidInputError(f"num_indices_to_merge is not negative, got {num_to_merge}")

    def attempt(base: Snapshot) -> Snapshot:
        plans = _plans(base, names, 1 if num_to_merge is None else num_to_merge, retrain=retrain)
        segments: list[IndexMetadata] = []
        is_complete = False
        try:
            for plan in plans:
                segment, _ = write_segment(
                    base, plan.index, plan.fragments, progress=progress, existing=plan.learned_from
                )
                segments.append(segment)
            is_complete = True
        finally:
            if not is_complete:
                discard(base, segments)
        if not segments:
            return base
        replaced = tuple(index for plan in plans for index in plan.replaced)
        return commit_segments(session, base, CreateIndex(tuple(segments), replaced))

    return replanned(session, snapshot, attempt)


def _plans(
    base: Snapshot, names: Collection[str] | None, num_to_merge: int, *, retrain: bool
) -> list[Extension]:
    segments_by_name: dict[str, list[IndexMetadata]] = {}
    for index in read_indices(base):
        if not index.is_system:
            segments_by_name.setdefault(index.name, []).append(index)
    for name in names or ():
        segments_of(base, name)
    plans = []
    for name in (
        sorted(segments_by_name) if names is None else sorted(set(names) & segments_by_name.keys())
    ):
        try:
            plan = extension(base, segments_by_name[name], num_to_merge, retrain=retrain)
        except NotSupportedError as error:
            if names is not None:
                raise
            warnings.warn(f"an index is left as it is: {str(error)!r}", stacklevel=2)
            continue
        if plan is not None:
            plans.append(plan)
    return plans


def extension(
    base: Snapshot, segments: Sequence[IndexMetadata], num_to_merge: int, *, retrain: bool = False
) -> Extension | None:
    """Plan the segment that extends an index; None when there is nothing to do.

    Raises NotSupportedError for kinds that cannot be built.
    """
    path = base.manifest.path
    covered = [set(segment.fragment_ids(path) or ()) for segment in segments]
    everywhere = set().union(*covered)
    fragments = list(base.manifest.fragments)
    uncovered = {fragment.id for fragment in fragments} - everywhere
    request = _request_like(base, segments[-1])
    merged = len(segments) if retrain else min(num_to_merge, len(segments))
    if uncovered and not all(names_rows_alike(base, segment, request) for segment in segments):
        merged = len(segments)
    if not uncovered and not retrain and merged < 2:
        return None
    first = len(segments) - merged
    mine = uncovered.union(*covered[first:])
    replaced = tuple(segments[first:])
    return Extension(
        request,
        tuple(fragment for fragment in fragments if fragment.id in mine),
        replaced,
        () if retrain else tuple(segments[first:] if merged else segments[-1:]),
    )


def names_rows_alike(base: Snapshot, segment: IndexMetadata, request: IndexRequest) -> bool:
    """Tell whether new segments name rows as this one does; pylance reads no index of both."""
    _, builder = builder_named(request.kind)
    if segment.kind not in KINDS or not base.manifest.reader_feature_flags & STABLE_ROW_IDS:
        return True
    since = KINDS[segment.kind].by_address_from
    by_address = since is not None and (segment.index_version or 0) >= since
    return by_address == (builder.row_column == ROW_ADDRESS)


def _request_like(base: Snapshot, segment: IndexMetadata) -> IndexRequest:
    """Return what a segment was built as. Raises NotSupportedError."""
    kind, builder = builder_of(segment)
    schema = base.manifest.schema
    field = schema.field_by_id(segment.fields[0]) if len(segment.fields) == 1 else None
    if field is None or field.id not in {field.id for field in schema.fields}:
        raise NotSupportedError(f"index {segment.name!r} is not on one top-level column")
    parameters = dict(builder.parameters_of(base, segment))
    return IndexRequest(field.name, field.id, segment.name, kind=kind, parameters=parameters)


def build(
    session: Session,
    snapshot: Snapshot,
    column: str,
    kind: str,
    *,
    name: str | None,
    parameters: Mapping[str, Any],
    fragment_ids: Iterable[int],
    uuid: str | None = None,
    progress: ProgressCallback | None = None,
) -> Index:
    """Write a segment of some fragments; nothing is committed.

    Raises as ``check`` does, and InvalidInputError for fragments that do not exist.
    """
    request = check(
        snapshot, session.uri, column, kind, name=name, parameters=parameters, replace=True
    )
    chosen = set(fragment_ids)
    fragments = [fragment for fragment in snapshot.manifest.fragments if fragment.id in chosen]
    missing = sorted(chosen - {fragment.id for fragment in fragments})
    if missing:
        raise InvalidInputError(f"fragment {missing[0]} does not exist in this version")
    segment, _ = write_segment(snapshot, request, fragments, progress=progress, uuid=uuid)
    return Index.of(segment)


def commit(
    session: Session,
    snapshot: Snapshot,
    name: str,
    column: str,
    segments: Iterable[Index | IndexMetadata],
) -> Snapshot:
    """Commit segments as one index of this name, beside those that it has.

    A segment whose fragments are all covered by the new ones is replaced. Raises
    InvalidInputError for segments of other columns or kinds, that overlap, or whose files miss.
    """
    segments_metadata = [replace(Index.of(segment).metadata, name=name) for segment in segments]

    def attempt(base: Snapshot) -> Snapshot:
        _check_segments(base, column, segments_metadata)
        new = set().union(*(_fragments(segment) for segment in segments_metadata))
        replaced = []
        for index in read_indices(base):
            if index.name != name or index.uuid in {other.uuid for other in segments_metadata}:
                continue
            if (index.fields, index.kind) != (
                segments_metadata[0].fields,
                segments_metadata[0].kind,
            ):
                raise InvalidInputError(
                    f"index {name!r} is another one, of type {index.kind}: pass another name"
                )
            shared = new & _fragments(index)
            if _fragments(index) <= new:
                replaced.append(index)
            elif shared:
                raise InvalidInputError(
                    f"fragment {min(shared)} is covered by segment {index.uuid} of index {name!r} "
                    "already: build the new segment on all fragments of that one, or on others"
                )
        return commit_operation(
            session, base, CreateIndex(tuple(segments_metadata), tuple(replaced))
        )

    return replanned(session, snapshot, attempt)


def _check_segments(base: Snapshot, column: str, segments: Sequence[IndexMetadata]) -> None:
    field = base.manifest.schema.field(column)
    if not segments:
        raise InvalidInputError("there are no segments to commit")
    seen: set[int] = set()
    for segment in segments:
        if segment.fields != (field.id,):
            raise InvalidInputError(f"segment {segment.uuid} is not on column {column!r}")
        if segment.kind != segments[0].kind:
            raise InvalidInputError(
                f"segment {segment.uuid} is of type {segment.kind}, another one of "
                f"{segments[0].kind}"
            )
        if seen & _fragments(segment):
            shared = min(seen & _fragments(segment))
            raise InvalidInputError(f"fragment {shared} is covered by two of the segments")
        seen |= _fragments(segment)
        for file in segment.files:
            place = f"_indices/{segment.uuid}/{file.path}"
            store, path = base.locations.locate(place, segment.base_id)
            if not store.exists(path):
                raise InvalidInputError(f"segment {segment.uuid} has no file {file.path}")


def _fragments(segment: IndexMetadata) -> set[int]:
    return set(segment.fragment_ids() or ())


def merge(
    snapshot: Snapshot,
    segments: Iterable[Index | IndexMetadata],
    progress: ProgressCallback | None = None,
) -> Index:
    """Build one segment of the fragments of several; nothing is committed.

    Raises InvalidInputError for segments of different columns or kinds, or that overlap.
    """
    segments_metadata = [Index.of(segment).metadata for segment in segments]
    if not segments_metadata:
        raise InvalidInputError("there are no segments to merge")
    column = (
        snapshot.manifest.schema.path_of(segments_metadata[0].fields[0])
        if segments_metadata[0].fields
        else None
    )
    _check_segments(snapshot, column or "", segments_metadata)
    mine = set().union(*(_fragments(segment) for segment in segments_metadata))
    fragments = [fragment for fragment in snapshot.manifest.fragments if fragment.id in mine]
    merged, _ = write_segment(
        snapshot,
        _request_like(snapshot, segments_metadata[0]),
        fragments,
        progress=progress,
        existing=segments_metadata,
    )
    return Index.of(merged)


def prewarm(snapshot: Snapshot, name: str, uuids: Iterable[Any] | None = None) -> None:
    """Open the files of an index, or of some of its segments, and read what every search needs.

    Raises IndexNotFoundError, InvalidInputError (no such segment), and LanceError for files that
    cannot be read.
    """
    segments = segments_of(snapshot, name)
    chosen_uuids = None if uuids is None else {str(uuid) for uuid in uuids}
    missing = sorted((chosen_uuids or set()) - {segment.uuid for segment in segments})
    if missing:
        raise InvalidInputError(f"index {name!r} has no segment {missing[0]}")
    for segment in segments:
        if chosen_uuids is None or segment.uuid in chosen_uuids:
            for file in segment.files:
                open_file(snapshot, segment, file.path)
    search = scalar_search(snapshot)
    if search is not None:
        search.prepare(name, chosen_uuids)
