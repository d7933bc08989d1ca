"""Work with the segments of an index: extend and merge them, build and commit single ones.

``optimize`` adds fragments that no segment of an index covers. By default they become one new
segment together with what the last segment covers; the values are read again from the column, and
what a kind has learned (partitions, a tokenizer) is taken from the segments.

A segment can also be built alone, on some fragments, by anybody (``build``), and committed later
with others (``commit``). Until then only its files exist.

Limits: kinds that ``indices.registry`` builds.
Source: ``optimize_indices``, ``create_index_uncommitted``, ``merge_existing_index_segments``,
``commit_existing_index_segments``, ``prewarm_index`` of pylance 14.0.2.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import Index, IndexMetadata
from lance_nb.indices.building import ProgressCallback
from lance_nb.indices.index_file import open_file
from lance_nb.indices.registry import KINDS, builder_named, builder_of
from lance_nb.indices.search import scalar_search
from lance_nb.session.session import Session
from lance_nb.table.indices import read_indices, segments_of
from lance_nb.table.projection import ROW_ADDRESS
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.value_classes import dataclass
from lance_nb.writing import indexing
from lance_nb.writing.committing import commit_operation, replanned
from lance_nb.writing.indexing import Wanted


@dataclass(frozen=True, slots=True)
class Extension:
    """A segment to build: its fragments, the segments that it replaces, and those to learn from."""

    wanted: Wanted
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
                segment, _ = indexing.write_segment(
                    base, plan.wanted, plan.fragments, progress=progress, existing=plan.learned_from
                )
                segments.append(segment)
            is_complete = True
        finally:
            if not is_complete:
                indexing.discard(base, segments)
        if not segments:
            return base
        replaced = tuple(index for plan in plans for index in plan.replaced)
        return indexing.commit_segments(session, base, CreateIndex(tuple(segments), replaced))

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
    request = _wanted(base, segments[-1])
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


def names_rows_alike(base: Snapshot, segment: IndexMetadata, request: Wanted) -> bool:
    """Tell whether new segments name rows as this one does; pylance reads no index of both."""
    _, builder = builder_named(request.kind)
    if segment.kind not in KINDS or not base.manifest.reader_feature_flags & STABLE_ROW_IDS:
        return True
    since = KINDS[segment.kind].by_address_from
    by_address = since is not None and (segment.index_version or 0) >= since
    return by_address == (builder.row_column == ROW_ADDRESS)


def _wanted(base: Snapshot, segment: IndexMetadata) -> Wanted:
    """Return what a segment was built as. Raises NotSupportedError."""
    kind, builder = builder_of(segment)
    schema = base.manifest.schema
    field = schema.field_by_id(segment.fields[0]) if len(segment.fields) == 1 else None
    if field is None or field.id not in {field.id for field in schema.fields}:
        raise NotSupportedError(f"index {segment.name!r} is not on one top-level column")
    parameters = dict(builder.parameters_of(base, segment))
    return Wanted(field.name, field.id, segment.name, kind, parameters)


def build(
    session: Session,
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None,
    parameters: Mapping[str, Any],
    fragment_ids: Iterable[int],
    *,
    uuid: str | None = None,
    progress: ProgressCallback | None = None,
) -> Index:
    """Write a segment of some fragments; nothing is committed.

    Raises as ``indexing.check`` does, and InvalidInputError for fragments that do not exist.
    """
    request = indexing.check(snapshot, session.uri, column, kind, name, parameters, replace=True)
    chosen = set(fragment_ids)
    fragments = [fragment for fragment in snapshot.manifest.fragments if fragment.id in chosen]
    missing = sorted(chosen - {fragment.id for fragment in fragments})
    if missing:
        raise InvalidInputError(f"fragment {missing[0]} does not exist in this version")
    segment, _ = indexing.write_segment(snapshot, request, fragments, progress=progress, uuid=uuid)
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
    merged, _ = indexing.write_segment(
        snapshot,
        _wanted(snapshot, segments_metadata[0]),
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
