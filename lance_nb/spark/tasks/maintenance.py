"""Compaction, indices, clones and storage statistics.

Compaction: a task is one of the compaction tasks of the dataset.

Index: every task writes the index segment of some fragments. All segments share the index's name
and are added by one commit; a search looks into each of them. What a vector index learns
(centroids, codewords, bounds) is learned once, from a sample of all rows, where the plan is made;
all tasks get it. Rows that are written later are found by scanning, until ``optimize_indices`` adds
them.

Clone: tasks copy files; the commit writes the first version of the copy, and until then its folder
is no dataset. A retried task replaces the files that it has copied. Tags, branches and older
versions are not copied, as in ``LanceDataset.deep_clone``.

Source: lance_nb.writing.indexing, lance_nb.writing.cloning,
lance_nb.table.data_statistics.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.building import ProgressCallback
from lance_nb.session.session import open_session
from lance_nb.spark.plan import (
    TASK_BYTES,
    Label,
    Location,
    PinnedVersion,
    Plan,
    commit_write,
    fragment_bytes,
    fragment_groups,
    select_fragments,
)
from lance_nb.storage.registry import open_store, relative_uri
from lance_nb.table.data_statistics import DataStatistics, FieldStatistics, data_statistics
from lance_nb.table.refs import Target
from lance_nb.transactions.checksum_records import CopiedSums
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment
from lance_nb.value_classes import dataclass
from lance_nb.writing import compaction, indexing
from lance_nb.writing.cloning import FileCopy, clone_places, commit_clone, copy_file, files_to_copy
from lance_nb.writing.compaction import CompactionOptions, CompactionTask, Rewritten
from lance_nb.writing.indexing import IndexRequest
from lance_nb.writing.staged import StagedWrite


@dataclass(frozen=True, slots=True)
class RewriteFragments:
    """Rewrite the fragments of one compaction task."""

    pinned: PinnedVersion
    task: CompactionTask
    options: CompactionOptions

    @property
    def size_bytes(self) -> int:
        """The bytes that it reads, and about as many that it writes."""
        return 2 * sum(fragment_bytes(fragment) for fragment in self.task.fragments)

    def run(self) -> Rewritten:
        """Write the new files."""
        session, snapshot = self.pinned.open()
        return compaction.execute(session, snapshot, self.task, self.options)


@dataclass(frozen=True, slots=True)
class CommitRewrites:
    """Commit the rewritten fragments."""

    options: CompactionOptions

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
        """Commit; a concurrent change of these fragments is a conflict.

        The operation is looked for first: if it was committed, its fragments are not there now.
        """
        done = plan.committed()
        if done is not None:
            return done
        session, branch = plan.pinned.session(), plan.pinned.branch
        environment = replace(Environment(), new_uuid=lambda: plan.operation_id)
        commit_options = CommitOptions(
            message=label.message, environment=environment, checks_files=True
        )
        snapshot, _ = compaction.commit(
            session,
            branch,
            results,
            self.options,
            commit_options=commit_options,
            properties=dict(label.properties),
        )
        return LanceDataset.from_opened(session, snapshot)


@dataclass(frozen=True, slots=True)
class StageRewrites:
    """Turn all rewritten fragments into one edit for a stage."""

    options: CompactionOptions

    def __call__(self, plan: Plan, results: Sequence[Any]) -> list[Any]:
        """Return the edit."""
        return [compaction.staged(results, self.options)]


def plan_compaction(dataset: LanceDataset, **options: Any) -> Plan:
    """Plan a compaction; options as those of ``ds.optimize.compact_files``."""
    _, snapshot = dataset.opened
    compaction_options = CompactionOptions.of(options, snapshot.manifest.config)
    pinned = PinnedVersion.of(dataset)
    tasks = tuple(
        RewriteFragments(pinned, task, compaction_options)
        for task in compaction.plan(snapshot, compaction_options)
    )
    finish, as_edits = CommitRewrites(compaction_options), StageRewrites(compaction_options)
    return Plan(
        "compact", f"{len(tasks)} groups", pinned, tasks=tasks, finish=finish, as_edits=as_edits
    )


def in_parts(plan: Plan, parts: int) -> list[Plan]:
    """Split a compaction into at most so many, of about the same bytes; none is empty.

    Raises InvalidInputError for a number below 1.
    """
    if parts < 1:
        raise InvalidInputError(f"parts must be at least 1, not {parts}")
    ends = np.cumsum([task.size_bytes for task in plan.tasks])
    number = ends * parts // (ends[-1] + 1) if len(ends) else ends
    groups = [
        tuple(
            task
            for task, number_of_task in zip(plan.tasks, number, strict=True)
            if number_of_task == part
        )
        for part in range(parts)
    ]
    whole = len(plan.tasks)
    return [
        replace(
            plan, tasks=tasks, detail=f"{len(tasks)} of {whole} groups",
            operation_id=str(uuid.uuid4()),
        )
        for tasks in groups
        if tasks
    ]  # fmt: skip


# Many segments slow down lookups, so a task gets more bytes than other tasks.
SEGMENT_BYTES = 8 * TASK_BYTES


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """A segment whose files are written."""

    index: IndexMetadata
    num_rows: int


@dataclass(frozen=True, slots=True)
class BuildSegment:
    """Build the index segment of some fragments."""

    pinned: PinnedVersion
    index: IndexRequest
    fragment_ids: tuple[int, ...]
    size_bytes: int

    def run(self) -> BuiltSegment:
        """Write the files of the segment."""
        _, snapshot = self.pinned.open()
        fragments = select_fragments(snapshot, self.fragment_ids)
        return BuiltSegment(*indexing.write_segment(snapshot, self.index, fragments))


@dataclass(frozen=True, slots=True)
class CommitSegments:
    """Commit the segments; they replace those that the index had."""

    name: str

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
        """Commit. Raises RetryableCommitConflictError after a concurrent change of the rows."""
        _, snapshot = plan.pinned.open()
        segments = [result.index for result in results]
        operation = indexing.operation_of(snapshot, self.name, segments)
        return commit_write(plan, StagedWrite(plan.pinned.version, operation), label)


def plan_index(
    dataset: LanceDataset,
    column: str,
    index_type: str = "BTREE",
    name: str | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    replace: bool = True,
    task_bytes: int = SEGMENT_BYTES,
    progress: ProgressCallback | None = None,
) -> Plan:
    """Plan an index on a column, by default named ``<column>_idx``.

    A vector index of several segments is trained here; ``progress`` is called with
    ``IndexProgress`` events, and an exception in it ends the work. Raises
    ColumnNotFoundError, InvalidInputError (unsupported column type, or the name exists),
    NotSupportedError (an index type that is not built; a nested column).
    """
    _, snapshot = dataset.opened
    uri, kind = dataset.uri, str(index_type)
    request = indexing.check(
        snapshot, uri, column, kind, name=name, parameters=parameters, replace=replace
    )
    pinned = PinnedVersion.of(dataset)
    groups = list(fragment_groups(snapshot, task_bytes))
    if len(groups) > 1:
        request = indexing.trained(snapshot, request, progress=progress)
    tasks = tuple(BuildSegment(pinned, request, ids, size) for ids, size in groups)
    detail = f"{request.name} on {column}"
    return Plan("create_index", detail, pinned, tasks=tasks, finish=CommitSegments(request.name))


@dataclass(frozen=True, slots=True)
class Copied:
    """The number and bytes of copied files."""

    num_files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CopyFiles:
    """Copy some files; each is the URI of a store, a path in it, and a path below the target.

    An empty URI is that of ``source``. This is the dataset, unless all files are in its bases: then
    it is the first base, whose store tells which of the options are credentials.
    """

    files: tuple[tuple[str, str, str], ...]
    source: Location
    target: Location
    size_bytes: int
    allow_bases: tuple[str, ...] = ()
    checksums: bool = False

    def run(self) -> Copied:
        """Copy the files durably."""
        home = open_store(self.target.opening_uri, self.target.storage_options)
        size = 0
        sums = CopiedSums() if self.checksums else None
        for uri, path, target in self.files:
            store = open_store(
                uri or self.source.opening_uri, self.source.storage_options, self.allow_bases
            )
            size += copy_file(store, path, home, target=target, sums=sums)
        if sums is not None:
            sums.write(home)
        return Copied(len(self.files), size)


@dataclass(frozen=True, slots=True)
class CommitCopy:
    """Commit the first version of the copy."""

    target: Location

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
        """Commit. Raises DatasetAlreadyExistsError."""
        session, _ = plan.pinned.open()
        ref = Target(plan.pinned.branch, plan.pinned.version)
        source, version, destination, clone_session = clone_places(
            session, ref, self.target.opening_uri, dict(self.target.options)
        )
        environment = replace(Environment(), new_uuid=lambda: plan.operation_id)
        options = CommitOptions(message=label.message, environment=environment, checks_files=True)
        done = commit_clone(source, version, destination, options, is_shallow=False)
        return LanceDataset.from_opened(clone_session, clone_session.snapshot(done.manifest, None))


def plan_clone(
    dataset: LanceDataset,
    target: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    task_bytes: int = TASK_BYTES,
) -> Plan:
    """Plan a deep clone. Raises DatasetAlreadyExistsError, InvalidInputError."""
    session, snapshot = dataset.opened
    options = session.storage_options if storage_options is None else storage_options
    ref = Target(snapshot.branch, snapshot.version)
    source, version, destination, _ = clone_places(session, ref, target, options)
    target_session = open_session(target, options)
    shown_uri = target_session.root.uri
    copy = Location.of(target_session.secret_uri or shown_uri, options, is_copy=True)
    root = Location.of(session.secret_uri or session.root.uri, session.storage_options)
    checksums = wants_checksums(snapshot.manifest.config)
    copies = files_to_copy(source, version, destination)
    tasks = tuple(
        CopyFiles(
            files,
            root if any(not uri for uri, *_ in files) else Location(files[0][0], root.options),
            copy,
            size_bytes=size,
            allow_bases=session.trusted_bases,
            checksums=checksums,
        )
        for files, size in _packed(copies, session.root.uri, task_bytes)
    )
    pinned, detail = PinnedVersion.of(dataset), f"to {shown_uri}"
    return Plan(
        "clone", detail, pinned, tasks=tasks, finish=CommitCopy(copy), commits_without_results=True
    )


def _packed(
    copies: Sequence[FileCopy], root_uri: str, task_bytes: int
) -> Iterator[tuple[tuple[tuple[str, str, str], ...], int]]:
    files: list[tuple[str, str, str]] = []
    size = 0
    for file_copy in copies:
        weight = file_copy.store.size(file_copy.path)
        if files and size + weight > task_bytes:
            yield tuple(files), size
            files, size = [], 0
        store_uri = file_copy.store.uri
        inside = relative_uri(store_uri, root_uri)
        if inside is None:
            files.append((store_uri, file_copy.path, file_copy.target))
        else:
            files.append(("", f"{inside}/{file_copy.path}".lstrip("/"), file_copy.target))
        size += weight
    if files:
        yield tuple(files), size


@dataclass(frozen=True, slots=True)
class MeasureFragments:
    """Measure some fragments; reads the metadata of their files and the blob descriptions."""

    pinned: PinnedVersion
    fragment_ids: tuple[int, ...]
    size_bytes: int

    def run(self) -> DataStatistics:
        """Return the bytes of each field."""
        _, snapshot = self.pinned.open()
        return data_statistics(snapshot, among=select_fragments(snapshot, self.fragment_ids))


def plan_statistics(dataset: LanceDataset, *, task_bytes: int = TASK_BYTES) -> Plan:
    """Plan storage statistics; nothing is committed."""
    _, snapshot = dataset.opened
    pinned = PinnedVersion.of(dataset)
    tasks = tuple(
        MeasureFragments(pinned, ids, size) for ids, size in fragment_groups(snapshot, task_bytes)
    )
    return Plan("statistics", dataset.name, pinned, tasks)


def sum_statistics(dataset: LanceDataset, parts: Sequence[DataStatistics]) -> DataStatistics:
    """Sum the statistics of all tasks, in schema order."""
    sizes = {field.id: (0, 0) for field in dataset.lance_schema.tree.walk()}
    for part in parts:
        for field_statistics in part.fields:
            stored, payloads = sizes[field_statistics.id]
            sizes[field_statistics.id] = (
                stored + field_statistics.bytes_on_disk,
                payloads + field_statistics.payload_bytes,
            )
    return DataStatistics([FieldStatistics(key, *pair) for key, pair in sizes.items()])
