"""Compact a dataset in one call, or step by step: plan, run tasks (anywhere), commit.

The commit takes results of the tasks of one plan, all or some. What others have committed since is
no obstacle unless they changed one of the fragments: then nothing is committed. A rewrite that is
recorded in the fragment-reuse index makes two versions, because the record names the ids of the new
fragments: one sets them aside, one puts them in.

Limits: a result is of the dataset and branch it was made for.
Source: ``lance.optimize.Compaction`` and ``LanceDataset.optimize`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from lance_nb.errors import (
    InvalidInputError,
    RetryableCommitConflictError,
    TooMuchWriteContentionError,
)
from lance_nb.file.versions import file_version_of
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_reuse import MovedGroup
from lance_nb.session.session import Session
from lance_nb.table.indices import read_indices
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot, added_version
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operations.reserve_fragments import ReserveFragments
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import (
    DEFAULTS,
    NO_PROPERTIES,
    commit_operation,
    commit_staged,
    replanned,
)
from lance_nb.writing.compaction_plan import (
    CompactionMetrics,
    CompactionOptions,
    CompactionTask,
    Rewritten,
    plan_compaction,
    run_task,
)
from lance_nb.writing.fragment_reuse import recorded_groups, with_record
from lance_nb.writing.fragment_writer import UncommittedFiles
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.staged import Replacement, StagedWrite

_COMMITS_MAX = 10


def plan(snapshot: Snapshot, options: CompactionOptions) -> list[CompactionTask]:
    """Find the tasks. Raises NotSupportedError."""
    return plan_compaction(snapshot, read_indices(snapshot), options)


def execute(
    session: Session,
    snapshot: Snapshot,
    task: CompactionTask,
    options: CompactionOptions,
    progress: Progress | None = None,
) -> Rewritten:
    """Run one task on the version it was planned on; nothing is committed.

    Raises InvalidInputError for a task of another dataset or branch.
    """
    if snapshot.version != task.read_version:
        snapshot = session.load(Target(snapshot.branch, task.read_version))
    ids = [fragment.id for fragment in task.fragments]
    fragments_by_id = snapshot.manifest.fragments.with_ids(ids)
    for fragment in task.fragments:
        if fragments_by_id.get(fragment.id) != fragment:
            raise InvalidInputError(
                f"this task does not belong to {session.uri!r}: fragment {fragment.id} of version "
                f"{task.read_version} is different there"
            )
    counter = ProgressCounter(task.num_rows, progress)
    version = file_version_of(added_version(snapshot.manifest, options.data_storage_version))
    return run_task(snapshot, task, options, version, counter.add)


def compact(
    session: Session,
    snapshot: Snapshot,
    options: CompactionOptions,
    progress: Progress | None = None,
) -> tuple[Snapshot, CompactionMetrics]:
    """Compact and commit; nothing to do makes no version.

    Raises NotSupportedError, CommitConflictError, TooMuchWriteContentionError.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, CompactionMetrics]:
        with UncommittedFiles(base.locations.home) as files:
            results = run(base, options, progress)
            if not results:
                return base, CompactionMetrics()
            files.add(_files(results))
            return commit(session, base.branch, results, options, files.offer)

    return replanned(session, snapshot, attempt)


def run(
    snapshot: Snapshot, options: CompactionOptions, progress: Progress | None = None
) -> list[Rewritten]:
    """Plan and run all tasks; nothing is committed. After an error no new file remains."""
    tasks = plan(snapshot, options)
    if not tasks:
        return []
    version = file_version_of(added_version(snapshot.manifest, options.data_storage_version))
    counter = ProgressCounter(sum(task.num_rows for task in tasks), progress)
    results: list[Rewritten] = []
    with UncommittedFiles(snapshot.locations.home) as files:
        for task in tasks:
            results.append(run_task(snapshot, task, options, version, counter.add))
            files.add(_files(results[-1:]))
    return results


def _files(results: Iterable[Rewritten]) -> Iterator[DataFile]:
    return (file for result in results for part in result.new_fragments for file in part.files)


def commit(
    session: Session,
    branch: str | None,
    results: Sequence[Rewritten],
    options: CompactionOptions,
    offered: Callable[[], None] = lambda: None,
    *,
    commit_options: CommitOptions = DEFAULTS,
    properties: Mapping[str, str] = NO_PROPERTIES,
) -> tuple[Snapshot, CompactionMetrics]:
    """Put the new fragments in the place of the old ones, on the newest version.

    ``offered`` is called before the new files are offered to a commit. Raises InvalidInputError,
    RetryableCommitConflictError when others changed what was rewritten (plan again),
    TooMuchWriteContentionError.
    """
    base = session.load(Target(branch, None))
    if not results:
        return base, CompactionMetrics()
    numbered: Sequence[RewriteGroup] | None = None
    conflict: RetryableCommitConflictError | None = None
    for _ in range(_COMMITS_MAX):
        _check_unchanged(base, results)
        recorded = recorded_groups(
            read_indices(base), results, defer=options.defer_index_remap,
            has_row_ids=bool(base.manifest.reader_feature_flags & STABLE_ROW_IDS),
        )  # fmt: skip
        if recorded and numbered is None:
            base, numbered = _reserve(session, base, results)
            continue  # others may have come in between
        operation = _operation(base, results, numbered, recorded)
        offered()
        try:
            staged = StagedWrite(base.version, operation)
            snapshot = commit_staged(session, branch, staged, commit_options, properties)
        except RetryableCommitConflictError as error:
            conflict, base = error, session.load(Target(branch, None))
            continue
        return snapshot, sum((result.metrics for result in results), CompactionMetrics())
    raise TooMuchWriteContentionError(
        f"gave up committing a compaction after {_COMMITS_MAX} attempts; the last conflict was: "
        f"{conflict}"
    )


def _operation(
    base: Snapshot,
    results: Sequence[Rewritten],
    numbered: Sequence[RewriteGroup] | None,
    recorded: Sequence[int],
) -> Rewrite:
    if numbered is None:
        groups = tuple(
            RewriteGroup(result.old_fragments, result.new_fragments) for result in results
        )
        return Rewrite(groups)
    moved = [
        MovedGroup(rows, numbered[position].old_fragments, numbered[position].new_fragments)
        for position in recorded
        if (rows := results[position].row_addrs) is not None
    ]
    if not moved:
        return Rewrite(tuple(numbered))
    environment = Environment()
    index = with_record(
        read_indices(base),
        base.version,
        moved,
        uuid=environment.new_uuid(),
        created_at_ms=environment.clock() // 1_000_000,
    )
    return Rewrite(tuple(numbered), frag_reuse_index=index)


def _reserve(
    session: Session, base: Snapshot, results: Sequence[Rewritten]
) -> tuple[Snapshot, list[RewriteGroup]]:
    """Set ids aside for the new fragments, as a version of its own, and give them out."""
    count = sum(len(result.new_fragments) for result in results)
    base = commit_operation(session, base, ReserveFragments(count))
    next_id = (base.manifest.max_fragment_id or 0) - count + 1
    groups = []
    for result in results:
        new = tuple(
            replace(part, id=next_id + position)
            for position, part in enumerate(result.new_fragments)
        )
        groups.append(RewriteGroup(result.old_fragments, new))
        next_id += len(new)
    return base, groups


def _check_unchanged(base: Snapshot, results: Iterable[Rewritten]) -> None:
    """Refuse results whose old fragments are not in the newest version as they were read.

    A column that a restore or a revert brought back makes no other fragment: its values are in the
    old files, but were not read.
    """
    seen: set[int] = set()
    leaves = {field.id: field.name for field in base.manifest.schema.walk() if not field.children}
    for result in results:
        fragments_by_id = base.manifest.fragments.with_ids(
            old_fragment.id for old_fragment in result.old_fragments
        )
        for old_fragment in result.old_fragments:
            if old_fragment.id in seen:
                raise InvalidInputError(
                    f"fragment {old_fragment.id} appears in two of the results to commit"
                )
            seen.add(old_fragment.id)
            if fragments_by_id.get(old_fragment.id) != old_fragment:
                change = "changed" if old_fragment.id in fragments_by_id else "removed"
                raise RetryableCommitConflictError(
                    f"fragment {old_fragment.id} was compacted as it was in version "
                    f"{result.read_version}, "
                    f"but it has been {change} since (the newest version is {base.version}); "
                    "nothing was committed. Plan the compaction again"
                )
        left_out = _fields(result.old_fragments) - _fields(result.new_fragments)
        for number in sorted(left_out & leaves.keys()) if result.new_fragments else ():
            raise RetryableCommitConflictError(
                f"column {leaves[number]!r} of version {base.version} was not there in version "
                f"{result.read_version}, in which fragments were compacted; nothing was committed. "
                "Plan the compaction again"
            )


def _fields(fragments: Iterable[Fragment]) -> set[int]:
    return {number for fragment in fragments for file in fragment.files for number in file.fields}


@dataclass(frozen=True, slots=True)
class StagedCompaction(Replacement):
    """A compaction that is run and not committed; its commit may take two versions."""

    results: tuple[Rewritten, ...] = ()
    options: CompactionOptions = field(default_factory=CompactionOptions)

    def commit(
        self,
        session: Session,
        branch: str | None,
        commit_options: CommitOptions,
        properties: Mapping[str, str],
    ) -> Snapshot:
        """Commit it, as ``Compaction.commit`` does."""
        committed, _ = commit(
            session,
            branch,
            self.results,
            self.options,
            commit_options=commit_options,
            properties=properties,
        )
        return committed


def stage(
    snapshot: Snapshot, options: CompactionOptions, progress: Progress | None
) -> StagedCompaction:
    """Plan and run a compaction. Raises InvalidInputError when there is nothing to do."""
    results = run(snapshot, options, progress)
    if not results:
        raise InvalidInputError("no fragments need compaction with these options")
    return staged(results, options)


def staged(results: Sequence[Rewritten], options: CompactionOptions) -> StagedCompaction:
    """Return what tasks have rewritten as an edit that is not committed."""
    new = tuple(part for result in results for part in result.new_fragments)
    groups = tuple(RewriteGroup(result.old_fragments, result.new_fragments) for result in results)
    return StagedCompaction(Rewrite(groups), new, tuple(results), options)
