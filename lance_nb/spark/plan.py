"""Plan: a pinned version, the tasks that read it, and the commit of their results.

A plan pins a version and divides the work into tasks. A task is a value that can be pickled; it
reads the pinned version, writes only new files, and returns metadata, not data. An engine runs the
tasks. Their results become one transaction with the pinned version as its read version and the
plan's ``operation_id`` as its uuid, which makes the commit idempotent. Concurrent changes are
detected by that commit and nowhere else.

Tasks get neighbouring fragments of about ``TASK_BYTES`` together. A Spark partition costs 10 to
50 ms besides its work, so small tasks share one, as small files do in Spark's own scans: the limits
are those of ``spark.sql.files.maxPartitionBytes`` and ``spark.sql.files.openCostInBytes``.

Files of tasks that failed or lost a race belong to no version; cleanup removes them. Nothing is
deleted after a commit was attempted.

Limits: storage options and URIs are sent to the executors unchanged, credentials included.
Source: lance_nb.writing.staged (edits), lance_nb.transactions.commit (the three outcomes).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lance_nb.dataset import LanceDataset, LanceFragment
from lance_nb.errors import DatasetNotFoundError, VersionNotFoundError
from lance_nb.format.fragment import Fragment
from lance_nb.indices.search import scalar_search
from lance_nb.session.opened import check_stamp, stamp_of
from lance_nb.session.session import Session, open_session
from lance_nb.shown_text import without_url_secrets
from lance_nb.table.index_search import Ids, among, different
from lance_nb.table.predicate import Filter
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit import find_transaction
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operation import BuildOptions
from lance_nb.transactions.stream_mark import StreamMark
from lance_nb.value_classes import dataclass
from lance_nb.writing import deleting
from lance_nb.writing.committing import commit_staged
from lance_nb.writing.staged import StagedWrite, combine

# No build option is set, so those of the dataset are kept.
KEPT = BuildOptions()


class Task(Protocol):
    """One part of an operation: a frozen value that can be pickled."""

    @property
    def size_bytes(self) -> int:
        """The estimated bytes that it reads and writes."""
        ...

    def run(self) -> Any:
        """Run the task; return what is to be committed, None for nothing. Raises LanceError."""
        ...


@dataclass(frozen=True, slots=True)
class Label:
    """The message and properties of a commit."""

    message: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    mark: StreamMark | None = None


UNLABELLED = Label()


class Finish(Protocol):
    """Commit the results of a plan as one transaction."""

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset: ...


def commit_edits(plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
    """Commit row edits: additions, deletions, rewrites."""
    _, snapshot = plan.pinned.open()
    return commit_write(plan, combine(snapshot, results), label)


def commit_write(
    plan: Plan, staged: StagedWrite, label: Label, build: BuildOptions = KEPT
) -> LanceDataset:
    """Commit one staged write under the plan's operation id."""
    session = plan.pinned.session()
    environment = replace(Environment(), new_uuid=lambda: plan.operation_id)
    build = replace(build, mark=label.mark)
    options = CommitOptions(
        message=label.message, environment=environment, build=build, checks_files=True
    )
    properties = dict(label.properties)
    return LanceDataset.from_opened(
        session,
        commit_staged(session, plan.pinned.branch, staged, options=options, properties=properties),
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """An operation as tasks and a commit. ``verb`` names it, ``detail`` describes it in one line.

    ``run_job`` replaces the tasks: it runs a Spark job over a DataFrame and returns the results.
    ``finalize`` runs on the driver after the last task; it may write files, and its return value
    is committed. ``commits_without_results``: commit even if no task returned anything.
    ``as_edits`` turns the results into edits for a stage, where they are not edits already.
    """

    verb: str
    detail: str
    pinned: PinnedVersion
    tasks: tuple[Task, ...]
    finish: Finish = commit_edits
    run_job: Callable[[Any, Any], list[Any]] | None = None
    finalize: Callable[[Plan, Sequence[Any]], list[Any]] | None = None
    commits_without_results: bool = False
    as_edits: Callable[[Plan, Sequence[Any]], list[Any]] | None = None
    operation_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def size_bytes(self) -> int:
        """The estimated bytes that all tasks read and write."""
        return sum(task.size_bytes for task in self.tasks)

    def finalized(self, results: Sequence[Any]) -> list[Any]:
        """Turn the results of all tasks into those to commit."""
        return list(results) if self.finalize is None else self.finalize(self, results)

    def edits(self, results: Sequence[Any]) -> list[Any]:
        """Turn the results of ``run_edits`` into edits for a stage."""
        return (
            list(results) if self.as_edits is None or not results else self.as_edits(self, results)
        )

    def commit(self, results: Sequence[Any], label: Label = UNLABELLED) -> LanceDataset:
        """Commit the results of the tasks as one transaction; return the new version.

        Without results nothing is committed and the pinned version is returned. The call is
        idempotent, also after an unknown outcome. Raises CommitConflictError,
        RetryableCommitConflictError, CommitStateUnknownError, StorageError; NotFoundError if
        the dataset was replaced by another one.
        """
        present = [result for result in results if result is not None]
        if not present and not self.commits_without_results:
            return self.pinned.dataset()
        self.pinned.check()
        return self.finish(self, present, label)

    def committed(self) -> LanceDataset | None:
        """Return the version that an earlier commit of the plan has made; None if none is there."""
        session, branch = self.pinned.session(), self.pinned.branch
        version = find_transaction(session.place(branch), self.operation_id, self.pinned.version)
        if version is None:
            return None
        return LanceDataset.from_opened(session, session.load(Target(branch, version)))


@dataclass(frozen=True, slots=True)
class Location:
    """Where a dataset or a file is, and how its store is opened.

    ``uri`` is shown: one with a password or signature is moved to ``secret_uri``, and masked.
    ``is_copy``: it is in the copy that a clone makes, whose credentials may be others.
    """

    uri: str
    # Options of fsspec may be dictionaries, so they are compared, not hashed.
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False, hash=False)
    is_copy: bool = False
    secret_uri: str = field(default="", repr=False)

    @classmethod
    def of(cls, uri: str, options: Mapping[str, Any] | None, *, is_copy: bool = False) -> Location:
        """Return the location of a URI and its options."""
        return cls(uri, tuple(sorted((options or {}).items())), is_copy)

    def __post_init__(self) -> None:
        shown = without_url_secrets(self.uri)
        if shown != self.uri:
            object.__setattr__(self, "secret_uri", self.uri)
            object.__setattr__(self, "uri", shown)

    @property
    def opening_uri(self) -> str:
        """The URI with its password or signature: to open it with, never to be shown."""
        return self.secret_uri or self.uri

    @property
    def storage_options(self) -> dict[str, Any] | None:
        """The options of the store, None if there are none."""
        return dict(self.options) or None


_CACHED_VERSIONS = 4


@dataclass(frozen=True, slots=True)
class PinnedVersion:
    """A dataset at one version, as a value that can be pickled and sent to workers.

    ``branch`` None is main; version 0 means that there is no dataset yet. ``stamp`` identifies the
    pinned version by number, time and transaction, so that a dataset which was deleted and created
    again in the same folder is refused. It is kept when ``version`` is replaced by another version
    of the dataset, which is then not compared. ``reads_checked``: verify the checksum of each file
    before it is read.
    """

    location: Location
    version: int
    branch: str | None = None
    allow_bases: tuple[str, ...] = ()
    stamp: str = ""
    reads_checked: bool = False

    @classmethod
    def of(cls, dataset: LanceDataset) -> PinnedVersion:
        """Pin the version of an open dataset."""
        return cls.of_snapshot(*dataset.opened)

    @classmethod
    def of_snapshot(cls, session: Session, snapshot: Snapshot | None) -> PinnedVersion:
        """Pin a version, or the folder of a dataset that is to be created."""
        uri = session.opening_uri
        absolute = uri if "://" in uri else str(Path(uri).absolute())
        return cls(
            Location.of(absolute, session.storage_options),
            0 if snapshot is None else snapshot.version,
            None if snapshot is None else snapshot.branch,
            session.trusted_bases,
            stamp="" if snapshot is None else stamp_of(snapshot.manifest),
            reads_checked=session.checks is not None,
        )

    @property
    def uri(self) -> str:
        """The URI of the dataset, as it is shown."""
        return self.location.uri

    def session(self) -> Session:
        """Open the folder without reading anything."""
        uri, options = self.location.opening_uri, self.location.storage_options
        return open_session(uri, options, self.allow_bases, check=self.reads_checked)

    def open(self) -> tuple[Session, Snapshot]:
        """Open the version; the last few are cached, so a worker opens each once.

        Raises DatasetNotFoundError, VersionNotFoundError, StorageError; NotFoundError if the
        dataset was replaced by another one.
        """
        return _opened(self)

    def check(self) -> None:
        """Check that the version is still the one that was pinned, if it exists.

        Raises NotFoundError, StorageError.
        """
        if self.version:
            with suppress(VersionNotFoundError):
                _opened.__wrapped__(self)

    def dataset(self) -> LanceDataset:
        """Open the version as a dataset."""
        return LanceDataset.from_opened(*self.open())

    def newest(self) -> LanceDataset:
        """Open the newest version of the branch. Raises DatasetNotFoundError, StorageError."""
        session = self.session()
        return LanceDataset.from_opened(session, session.load(Target(self.branch, None)))

    def has_all_later_versions(self) -> bool:
        """Whether no version since the pinned one was removed: what it had changed is not known."""
        try:
            numbers = self.newest().version_numbers()
        except DatasetNotFoundError:
            return not self.version
        return sum(number > self.version for number in numbers) == max(numbers) - self.version

    def fragments(self, ids: Collection[int]) -> list[LanceFragment]:
        """Open some fragments of the version."""
        dataset = self.dataset()
        chosen = select_fragments(dataset.opened[1], ids)
        return [LanceFragment(dataset, None, fragment=fragment) for fragment in chosen]


@lru_cache(maxsize=_CACHED_VERSIONS)
def _opened(pinned: PinnedVersion) -> tuple[Session, Snapshot]:
    session = pinned.session()
    snapshot = session.load(Target(pinned.branch, pinned.version))
    if pinned.stamp.startswith(f"{pinned.version} "):
        check_stamp(snapshot, pinned.stamp, pinned.uri)
    return session, snapshot


TASK_BYTES = 128 * 1024**2
OPEN_BYTES = 4 * 1024**2
_LEAST_BYTES = 2 * OPEN_BYTES  # of a partition, even if cores stay idle


def fragment_bytes(fragment: Fragment) -> int:
    """Return the bytes of the data files of a fragment, as far as recorded."""
    return sum(file.size_bytes or 0 for file in fragment.files)


def fragment_groups(
    snapshot: Snapshot, task_bytes: int = TASK_BYTES
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Group the fragments of a version for tasks of about ``task_bytes``: ids and total bytes."""
    return group_fragments(snapshot, task_bytes, may_pass(snapshot, None))


# Tells by their ids which fragments are wanted.
RowSelection = Callable[[Ids], npt.NDArray[np.bool_]]


def group_fragments(
    snapshot: Snapshot, task_bytes: int, selects: RowSelection
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Group adjacent fragments of those wanted: their ids and total bytes; none is decoded."""
    counts = snapshot.manifest.fragments.counts()
    is_wanted = selects(counts.ids)
    group: list[int] = []
    size = 0
    weights = counts.size_bytes[is_wanted].tolist()
    for fragment_id, weight in zip(counts.ids[is_wanted].tolist(), weights, strict=True):
        if group and size + weight > task_bytes:
            yield tuple(group), size
            group, size = [], 0
        group.append(fragment_id)
        size += weight
    if group:
        yield tuple(group), size


def may_pass(snapshot: Snapshot, condition: Filter | None) -> RowSelection:
    """Tell which fragments may have rows that pass a filter: all, unless an index knows better.

    The index is searched once, here, so that tasks for fragments without such rows are not made.
    """
    search = None if condition is None else scalar_search(snapshot)
    answer = None if search is None or condition is None else search.answer(condition)
    if answer is None:
        return lambda ids: np.ones(len(ids), np.bool_)
    touched = different(answer.rows >> np.uint64(32)).astype(np.int64)
    return lambda ids: ~among(ids, answer.covered) | among(ids, touched)


def select_fragments(snapshot: Snapshot, ids: Collection[int]) -> list[Fragment]:
    """Return the fragments with these ids; only they are decoded."""
    return list(snapshot.manifest.fragments.with_ids(ids).values())


def group_tasks(
    sizes: Sequence[int] | npt.NDArray[np.int64], num_cores: int, open_bytes: int = OPEN_BYTES
) -> list[tuple[int, ...]]:
    """Group adjacent tasks into Spark partitions; return the task numbers of each.

    With enough tasks the number of partitions is a multiple of ``num_cores``. A partition is not
    much larger than ``TASK_BYTES`` unless a single task is. ``open_bytes``: what a task costs
    besides its bytes.
    """
    weights = np.asarray(sizes, np.float64) + open_bytes
    total = weights.sum()
    rounds = max(-(-total // (TASK_BYTES * num_cores)), 1)
    count = int(min(rounds * num_cores, max(total // _LEAST_BYTES, 1), len(sizes)))
    middles = np.cumsum(weights) - weights / 2
    groups = (middles * (count / total)).astype(np.int64)
    ends = np.flatnonzero(np.diff(groups)) + 1
    return [tuple(group.tolist()) for group in np.split(np.arange(len(sizes)), ends)]


# Called with the pinned version, fragment ids, the filter, and the bytes of these fragments.
MakeTask = Callable[[PinnedVersion, tuple[int, ...], str, int], Task]


def plan_where(
    verb: str, task: MakeTask, dataset: LanceDataset, predicate: str, task_bytes: int
) -> Plan:
    """Plan an operation on the rows that pass a filter. Raises PredicateError."""
    _, snapshot = dataset.opened
    selects = may_pass(snapshot, deleting.check(snapshot, predicate))
    pinned = PinnedVersion.of(dataset)
    tasks = tuple(
        task(pinned, ids, predicate, size)
        for ids, size in group_fragments(snapshot, task_bytes, selects)
    )
    return Plan(verb, f"where {predicate}", pinned, tasks)
