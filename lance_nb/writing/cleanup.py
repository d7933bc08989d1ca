"""Delete old versions of a branch, and files that no version needs: mark, then sweep.

Mark: every version that is kept is read, of every branch; of those that are deleted, only what is
needed to tell their recent files from files of a running write. Sweep, in this order::

    1  refs once more: a version that was tagged, forked or merged meanwhile is kept
    2  the manifests of the deleted versions, the oldest first
    3  versions once more: what was committed meanwhile, or could not be deleted, is read too
    4  the files that no version needs then

Why manifests first: a reader finds a version whole or not at all, also when the process ends in
between. An interrupted clean-up leaves files without a version, which a later one deletes when they
are seven days old; the other order would leave versions without their files. Why step 3: a commit
that brings an old version back (restore) may land while its manifest is deleted.

Nothing is deleted when a manifest that is needed cannot be read, or has features this release does
not know. Entries of an external manifest store stay: numbers are never used again.

A plan that was shown is pinned: ``CleanupExplanation.run`` takes the survey again, with the clock
of the first one, and deletes only if exactly the same versions and files would go.

A dataset that is dropped must hold a version that can be read: a mistyped path is refused, not
emptied. Manifests of main go last, so that what was interrupted can be done again. Files under
other base paths stay, as in pylance.

Limits: a restore, or a new branch, that read its source before step 2 and commits after step 3 is
not seen; a clone outside of the dataset is not known. A file that cannot be deleted is counted and
left.
Source: ``cleanup_old_versions``, ``explain_cleanup_old_versions`` and ``drop`` of pylance 14.0.2;
lance#9438 (why not every manifest is read). ``CleanupStats``, ``CleanupExplanation`` and the others
of pylance 14.0.2, with the same fields; ``reason``, ``version`` and ``to_table`` are ours. Paths
are below the dataset's root (there they begin at the root of the store).
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa

from lance_nb.errors import (
    CleanupError,
    CommitConflictError,
    DatasetNotFoundError,
    FormatError,
    InvalidInputError,
    LanceError,
    NotFoundError,
    NotSupportedError,
    ObjectNotFoundError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.format.layout import DETACHED_BIT, HINT_PATH, VERSIONS, ManifestName, branch_root
from lance_nb.format.manifest_history import DATA, DELETION, INDEX, TRANSACTION, ManifestFiles
from lance_nb.session.session import Session, open_session
from lance_nb.shown_text import visible
from lance_nb.storage.base import Store, prune, remove_empty_folder, sync_folder
from lance_nb.storage.registry import StorageOptions
from lance_nb.storage.threads import THREADS_MAX, run_side_by_side
from lance_nb.table.cleanup_plan import Candidate, CleanupPlan, Rule, make_plan
from lance_nb.table.file_references import References, check_complete
from lance_nb.table.merge_bases import merged_versions
from lance_nb.table.retention import (
    Age,
    Protection,
    RetentionPolicy,
    auto_cleanup_policy,
    is_settled,
    removable,
)
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.survey import (
    MANIFEST,
    LineOfVersions,
    Survey,
    branch_folders,
    line_of,
    refs_of,
    take_survey,
)
from lance_nb.table.versions import load_manifest, version_names
from lance_nb.transactions.checksum_records import merge_records
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.transactions.version_slots import forget_versions
from lance_nb.value_classes import dataclass
from lance_nb.writing.pins import prune_pins
from lance_nb.writing.progress import Progress, StepCounter

CANDIDATES = pa.schema(
    [
        ("path", pa.string()),
        ("kind", pa.string()),
        ("size_bytes", pa.uint64()),
        ("unverified", pa.bool_()),
        ("version", pa.uint64()),
        ("reason", pa.string()),
    ]
)
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class CleanupStats:
    """What was deleted. Manifests count as old versions; blobs as data files.

    Examples:
        >>> ds.insert(rows)
        >>> ds.cleanup_old_versions(retain_versions=1).old_versions
        1
    """

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    failed_deletes: int = 0


@dataclass(frozen=True, slots=True)
class CleanupCandidateFile:
    """One file that would be deleted, and why.

    ``unverified``: no version that was read refers to it. ``version``: the newest version that
    does.

    Examples:
        >>> ds.insert(rows)
        >>> plan = ds.explain_cleanup_old_versions(retain_versions=1, include_files=True)
        >>> [(file.kind, file.version) for file in plan.candidate_files]
        [('manifest', 1), ('transaction', 1)]
    """

    path: str
    kind: str
    unverified: bool
    size_bytes: int
    version: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CleanupReferencedBranch:
    """A branch that started from a version of this one, which therefore stays.

    Examples:
        >>> _ = ds.create_branch("experiment")
        >>> ds.insert(rows)
        >>> plan = ds.explain_cleanup_old_versions(retain_versions=1)
        >>> [(branch.name, branch.referenced_version) for branch in plan.referenced_branches]
        [('experiment', 1)]
    """

    name: str
    referenced_version: int
    cleanup_candidate: bool


@dataclass(frozen=True, slots=True, repr=False)
class CleanupExplanation:
    """What a clean-up would delete. ``stats`` counts all of it, listed or not.

    Created by ``LanceDataset.explain_cleanup_old_versions`` and by
    ``cleanup_old_versions(dry_run=True)``. ``versions`` are the numbers of the versions that would
    be deleted, oldest first (ours).

    Examples:
        >>> ds.insert(rows)
        >>> plan = ds.explain_cleanup_old_versions(retain_versions=1, include_files=True)
        >>> plan.stats.old_versions, plan.versions, plan.to_table().num_rows
        (1, (1,), 2)
    """

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile] = field(default_factory=list)
    candidate_files_truncated: bool = False
    candidate_file_limit: int | None = None
    referenced_branches: list[CleanupReferencedBranch] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    versions: tuple[int, ...] = ()
    _pinned: PinnedCleanup | None = field(default=None, repr=False, compare=False)

    def run(self, *, progress: Progress | None = None) -> CleanupStats:
        """Delete exactly what this explanation counts. Not in pylance.

        The dataset is surveyed again first. If anything else would be deleted now, because somebody
        has committed, tagged, restored or cleaned up since, nothing is deleted.

        Args:
            progress: called with things done (manifests read, files deleted) and to do.

        Raises CommitConflictError when the dataset has changed; InvalidInputError for an
        explanation that was not made by a dataset; else as ``cleanup_old_versions``.

        Examples:
            >>> ds.insert(rows)
            >>> plan = ds.cleanup_old_versions(retain_versions=1, dry_run=True)
            >>> plan.run().old_versions
            1
        """
        if self._pinned is None:
            raise InvalidInputError(
                "this explanation has no plan: make it with cleanup_old_versions(dry_run=True)"
            )
        return self._pinned.run(progress)

    def to_table(self) -> pa.Table:
        """Return the listed files as Arrow: path, kind, bytes, unverified, version, reason."""
        rows = [
            {name: getattr(file, name) for name in CANDIDATES.names}
            for file in self.candidate_files
        ]
        return pa.Table.from_pylist(rows, schema=CANDIDATES)

    def __repr__(self) -> str:
        stats = self.stats
        files = sum(
            (
                stats.data_files_removed,
                stats.transaction_files_removed,
                stats.index_files_removed,
                stats.deletion_files_removed,
            )
        )
        freed = f"{stats.bytes_removed:,} bytes: {stats.old_versions} versions and {files} files"
        lines = [f"cleanup seen from version {self.read_version} would free {freed}"]
        lines += [
            f"  {file.size_bytes:>14,}  {file.path}  ({file.reason})"
            for file in self.candidate_files[:_SHOWN]
        ]
        left = len(self.candidate_files) - _SHOWN
        lines += [f"  ... and {left} more: to_table() lists them"] if left > 0 else []
        lines += [
            f"  version {branch.referenced_version} stays: branch {branch.name!r} started from it"
            for branch in self.referenced_branches
        ]
        return "\n".join([*lines, *(f"  {text}" for text in self.warnings)])


def stats_of(deleted: Iterable[Candidate], num_failed: int = 0) -> CleanupStats:
    """Count what was deleted."""
    kinds: Counter[str] = Counter()
    size_bytes = 0
    for candidate in deleted:
        kinds[candidate.file.kind] += 1
        size_bytes += candidate.file.size_bytes
    return CleanupStats(
        bytes_removed=size_bytes,
        old_versions=kinds[MANIFEST],
        data_files_removed=kinds[DATA],
        transaction_files_removed=kinds[TRANSACTION],
        index_files_removed=kinds[INDEX],
        deletion_files_removed=kinds[DELETION],
        failed_deletes=num_failed,
    )


def explanation_of(
    plan: CleanupPlan,
    survey: Survey,
    read_version: int,
    *,
    max_files: int | None = None,
    include_files: bool = True,
    pinned: PinnedCleanup | None = None,
) -> CleanupExplanation:
    """Describe a plan, with at most ``max_files`` files (None: all of them).

    ``pinned`` is what deletes exactly that later.
    """
    candidates = plan.candidates
    listed = candidates[:max_files] if include_files else ()
    is_truncated = include_files and len(listed) < len(candidates)
    forks = survey.fork_versions(survey.lines[plan.folder].branch)
    branches = [
        CleanupReferencedBranch(name, version, False)
        for version, names in sorted(forks.items())
        for name in names
    ]
    return CleanupExplanation(
        read_version,
        stats_of(candidates),
        [
            CleanupCandidateFile(
                candidate.file.path,
                candidate.file.kind,
                candidate.unverified,
                size_bytes=candidate.file.size_bytes,
                version=candidate.version,
                reason=candidate.reason,
            )
            for candidate in listed
        ],
        is_truncated,
        max_files,
        branches,
        [f"candidate_files truncated to {max_files} entries"] if is_truncated else [],
        tuple(name.version for name in plan.names),
        pinned,
    )


_LOCAL = ("file", "memory")


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """How to delete: at most so many at once, and so many in a second.

    ``afterwards`` is called when files were deleted, without an argument.
    """

    delete_concurrency: int | None = None
    delete_rate_limit: int | None = None
    environment: Environment = field(default_factory=Environment)
    progress: Progress | None = None
    afterwards: Callable[[], object] | None = None


class Cleanup:
    """One clean-up of the branch in ``folder``, seen from version ``current`` of it."""

    def __init__(
        self,
        root: Store,
        folder: str,
        current: int,
        policy: RetentionPolicy,
        options: CleanupOptions,
        *,
        now: datetime | None = None,
    ) -> None:
        if current & DETACHED_BIT:
            raise InvalidInputError(
                "old versions are cleaned up on a branch; this is a detached version, check out "
                "the branch"
            )
        self._root, self._folder, self._current = root, folder, current
        self._policy, self._options = policy, options
        self._steps = StepCounter(options.progress)
        self._now = now or datetime.fromtimestamp(options.environment.clock() / 1e9, UTC)
        self._rule = Rule(self._now, policy.delete_unverified)

    # --- marking ----------------------------------------------------------------------------------

    def explain(self) -> tuple[CleanupPlan, Survey]:
        """Return exactly what ``run`` would delete now, with reasons; reads all manifests.

        Raises CleanupError, CorruptFileError, NotSupportedError, VersionNotFoundError.
        """
        plan, survey, _ = self._explained()
        return plan, survey

    def _explained(self) -> tuple[CleanupPlan, Survey, References]:
        survey = take_survey(self._root)
        names = self._choose(survey)
        references = self._read(survey, names, names)
        plan = make_plan(survey, references, self._folder, names=names, rule=self._rule)
        return plan, survey, references

    def pinned(self, plan: CleanupPlan) -> PinnedCleanup:
        """Return what deletes exactly this plan later."""
        place = (self._root, self._folder, self._current)
        return PinnedCleanup(*place, self._policy, self._options, self._now, _losses(plan))

    def run_pinned(self, losses: Losses) -> CleanupStats:
        """Delete if exactly ``losses`` would be deleted now.

        Raises CommitConflictError if not, and as ``explain`` does, before anything is deleted.
        """
        plan, survey, references = self._explained()
        if _losses(plan) != losses:
            raise CommitConflictError(
                "nothing was deleted: the dataset changed after this clean-up was planned, and "
                "other versions or files would be deleted now; plan it again"
            )
        return self._sweep(survey, references, plan)

    def run(self) -> CleanupStats:
        """Delete. Raises as ``explain`` does, before anything is deleted."""
        survey = take_survey(self._root)
        names = self._choose(survey)
        references = self._read(survey, names, ())
        recent = [name for name in names if not self._is_settled(survey, name)]
        if recent and self._has_recent_unreferenced_files(survey, references):
            self._steps.expect(len(recent))
            references.read(self._store(survey), self._folder, recent, self._steps.step)
        plan = make_plan(survey, references, self._folder, names=names, rule=self._rule)
        return self._sweep(survey, references, plan)

    def _choose(self, survey: Survey) -> list[ManifestName]:
        line = survey.lines.get(self._folder)
        if line is None:
            raise VersionNotFoundError(self._store(survey).uri, self._current, "none")
        return removable(
            self._policy,
            line.names,
            self._current,
            age=self._age(survey),
            protection=self._protection(survey, line),
        )

    def _protection(self, survey: Survey, line: LineOfVersions) -> Protection:
        return Protection(
            survey.tagged_versions(line.branch),
            survey.fork_versions(line.branch),
            merged_versions(survey, line.branch),
        )

    def _age(self, survey: Survey) -> Age:
        commit_times: dict[int, datetime | None] = {}

        def committed(name: ManifestName) -> datetime | None:
            if name.version not in commit_times:
                commit_times[name.version] = _commit_time(self._store(survey), name)
            return commit_times[name.version]

        def stored(name: ManifestName) -> datetime | None:
            file = survey.manifest(self._folder, name)
            return None if file is None else file.modified

        return Age(self._now, committed, stored)

    def _read(
        self, survey: Survey, going: Sequence[ManifestName], needed: Sequence[ManifestName]
    ) -> References:
        """Read the versions that stay, and ``needed`` of those that go."""
        left_out = {name.version for name in going} - {name.version for name in needed}
        chosen = {
            folder: [
                name
                for name in (*line.names, *line.detached)
                if folder != self._folder or name.version not in left_out
            ]
            for folder, line in survey.lines.items()
        }
        references = References()
        self._steps.expect(sum(map(len, chosen.values())))
        for folder, names in chosen.items():
            references.read(survey.store(folder), folder, names, self._steps.step)
        check_complete(references)
        return references

    def _is_settled(self, survey: Survey, name: ManifestName) -> bool:
        """Return whether all files that a version refers to are old enough to be judged by age."""
        file = survey.manifest(self._folder, name)
        return file is not None and is_settled(file.modified, self._now)

    def _has_recent_unreferenced_files(self, survey: Survey, references: References) -> bool:
        """Return whether there are recent files that no version that was read refers to."""
        return any(
            file.identity is not None
            and file.home == self._folder
            and not references.knows(file.identity)
            and not self._rule.allows(file)
            for file in survey.files
        )

    # --- sweeping ---------------------------------------------------------------------------------

    def _sweep(self, survey: Survey, references: References, plan: CleanupPlan) -> CleanupStats:
        plan = self._look_at_refs(survey, references, plan)
        self._steps.expect(len(plan.candidates))
        failed: list[Candidate] = []
        done = self._delete(plan.manifests, failed)
        if done:
            sync_folder(self._store(survey), VERSIONS)
        again = self._look_at_versions(survey, references, plan)
        other_candidates = make_plan(
            survey, references, self._folder, names=again.names, rule=self._rule
        ).other_files
        planned = {candidate.file.path for candidate in plan.other_files}
        done += self._delete(
            [candidate for candidate in other_candidates if candidate.file.path in planned], failed
        )
        self._remove_folders_of_indices(done)
        merge_records(self._store(survey))
        if self._options.afterwards is not None:
            self._options.afterwards()
        return stats_of(done, len(failed))

    def _look_at_refs(
        self, survey: Survey, references: References, plan: CleanupPlan
    ) -> CleanupPlan:
        """Leave out versions that were tagged, forked or merged since the survey."""
        if not plan.names:
            return plan
        branches, tags = refs_of(self._root)
        lines = {folder: line_of(self._root, folder, []) for folder in survey.lines}
        fresh = replace(survey, branches=branches, tags=tags, lines=lines)
        line = survey.lines[self._folder]
        protection = self._protection(fresh, line)
        stay = {*protection.tags, *protection.forks, *protection.merged}
        names = [name for name in plan.names if name.version not in stay]
        if len(names) == len(plan.names):
            return plan
        referenced = [name for name in plan.names if name.version in stay]
        references.read(self._store(survey), self._folder, referenced)
        return make_plan(survey, references, self._folder, names=names, rule=self._rule)

    def _look_at_versions(
        self, survey: Survey, references: References, plan: CleanupPlan
    ) -> CleanupPlan:
        """Read what was committed since the survey, and what was not deleted after all."""
        deleted_versions = {name.version for name in plan.names}
        for folder in sorted({*survey.lines, *branch_folders(self._root)}):
            line = survey.lines.get(folder, LineOfVersions(folder, None, (), ()))
            now = line_of(self._root, folder, [])
            before = set(line.numbers)
            new = [name for name in now.names if name.version not in before]
            new += [name for name in now.detached if name not in line.detached]
            if folder == self._folder:
                left = [name for name in now.names if name.version in deleted_versions]
                deleted_versions -= {name.version for name in left}
                new = left + new
            references.read(survey.store(folder), folder, new)
        names = tuple(name for name in plan.names if name.version in deleted_versions)
        return replace(plan, names=names)

    def _delete(self, candidates: Sequence[Candidate], failed: list[Candidate]) -> list[Candidate]:
        """Delete files; return those that are gone."""
        limit = self._options.delete_rate_limit
        local = self._root.scheme in _LOCAL
        threads = 1 if limit or local else self._options.delete_concurrency or THREADS_MAX
        tasks = (
            partial(self._delete_one, candidate, 1 / limit if limit else 0)
            for candidate in candidates
        )
        done: list[Candidate] = []
        for candidate, is_gone in zip(candidates, run_side_by_side(tasks, threads), strict=True):
            (done if is_gone else failed).append(candidate)
            self._steps.step()
        return done

    def _remove_folders_of_indices(self, deleted: Sequence[Candidate]) -> None:
        """Remove the folders that the deletions left empty: each index has one of its own."""
        files = (candidate.file.path for candidate in deleted if candidate.file.kind == INDEX)
        for folder in sorted({path.rpartition("/")[0] for path in files}):
            remove_empty_folder(self._root, folder)

    def _delete_one(self, candidate: Candidate, wait_s: float) -> bool:
        if wait_s:
            self._options.environment.sleep(wait_s)
        try:
            self._root.delete(candidate.file.path)
        except StorageError:
            return False
        return True

    def _store(self, survey: Survey) -> Store:
        return survey.store(self._folder)


Losses = frozenset[tuple[str, int, datetime | None]]


def _losses(plan: CleanupPlan) -> Losses:
    """Return what identifies the files that a plan deletes: path, bytes, time of storing."""
    files = (candidate.file for candidate in plan.candidates)
    return frozenset((file.path, file.size_bytes, file.modified) for file in files)


@dataclass(frozen=True, slots=True)
class PinnedCleanup:
    """A clean-up with its plan: seen from the same version, by the same rules and clock."""

    root: Store
    folder: str
    current: int
    policy: RetentionPolicy
    options: CleanupOptions
    now: datetime
    losses: Losses

    def run(self, progress: Progress | None = None) -> CleanupStats:
        """Delete exactly the plan. Raises CommitConflictError; see ``Cleanup.run_pinned``."""
        options = replace(self.options, progress=progress)
        place = (self.root, self.folder, self.current)
        return Cleanup(*place, self.policy, options, now=self.now).run_pinned(self.losses)


def _commit_time(home: Store, name: ManifestName) -> datetime | None:
    """Return when a version was committed, None if it does not say or is gone."""
    try:
        data = home.read(name.path)
    except NotFoundError:
        return None
    moment = ManifestFiles().read(data, f"{home.uri}/{name.path}", name.version).timestamp_ns
    return None if moment is None else datetime.fromtimestamp(moment / 1e9, UTC)


_log = logging.getLogger(__name__)
CONCURRENCY_MAX = 2**61 - 1


def rules(
    older_than: timedelta | None,
    retain_versions: int | None,
    versions: Collection[int] | None,
    **flags: bool,
) -> RetentionPolicy:
    """Return the rules by which versions go. Raises CleanupError."""
    return RetentionPolicy.of(older_than, retain_versions, versions, **flags)


def deleting(
    rate_limit: int | None, concurrency: int | None, progress: Progress | None
) -> CleanupOptions:
    """Return how files are deleted. Raises CleanupError."""
    if rate_limit is not None and rate_limit < 1:
        raise CleanupError(f"delete_rate_limit must be at least 1, not {rate_limit}")
    if concurrency is not None and not 1 <= concurrency <= CONCURRENCY_MAX:
        raise CleanupError(
            f"delete_concurrency must be between 1 and {CONCURRENCY_MAX}, not {concurrency}"
        )
    return CleanupOptions(concurrency, rate_limit, progress=progress)


def clean(
    session: Session, snapshot: Snapshot, policy: RetentionPolicy, options: CleanupOptions
) -> CleanupStats:
    """Delete what the policy lets go."""
    return _cleanup(
        session, snapshot.branch, snapshot.version, policy=policy, options=options
    ).run()


def clean_after(session: Session, snapshot: Snapshot, read_version: int) -> None:
    """Clean up after a commit if the configuration asks for it now; as pylance does.

    The commit has landed: that cleaning up failed is logged, and undoes nothing. Versions from the
    one on that the commit was planned on stay.
    """
    try:
        policy = auto_cleanup_policy(snapshot.version, snapshot.manifest.config)
        if policy is not None:
            first_kept = min(read_version or snapshot.version, snapshot.version)
            _cleanup(
                session, snapshot.branch, first_kept, policy=policy, options=CleanupOptions()
            ).run()
    except LanceError as error:
        _log.warning(
            "version %d of %s was committed, but the automatic cleanup that its configuration "
            "requests (lance.auto_cleanup) failed: %s",
            snapshot.version,
            visible(session.root.uri),
            visible(str(error)),
        )


def explain(
    session: Session,
    snapshot: Snapshot,
    policy: RetentionPolicy,
    options: CleanupOptions,
    *,
    max_files: int | None = None,
    include_files: bool = True,
) -> CleanupExplanation:
    """Say what ``clean`` would delete, listing at most ``max_files`` files (None: all)."""
    cleanup = _cleanup(session, snapshot.branch, snapshot.version, policy=policy, options=options)
    plan, survey = cleanup.explain()
    return explanation_of(
        plan,
        survey,
        snapshot.version,
        max_files=max_files,
        include_files=include_files,
        pinned=cleanup.pinned(plan),
    )


def _cleanup(
    session: Session,
    branch: str | None,
    version: int,
    policy: RetentionPolicy,
    options: CleanupOptions,
) -> Cleanup:
    """Return a clean-up; tags of merges that nothing needs any more go after it."""
    folder = "" if branch is None else branch_root(branch)
    tags = TagWriter(session.root, session.place)
    options = replace(options, afterwards=partial(prune_pins, tags))
    return Cleanup(session.root, folder, version, policy=policy, options=options)


_TREE = "tree/"


def drop(
    base_uri: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    *,
    ignore_not_found: bool = False,
) -> None:
    """Delete the dataset at ``base_uri``.

    Raises InvalidInputError where there is something else, DatasetNotFoundError where there is
    nothing, StorageError.
    """
    root = open_session(base_uri, storage_options).root
    files = sorted(entry.name for entry in root.list_recursive(""))
    if not files:
        prune(root)
        if ignore_not_found:
            return
        raise DatasetNotFoundError(root.uri, "the folder is empty or does not exist")
    if not _has_a_version(root):
        raise InvalidInputError(
            f"{root.uri!r} is not the root of a dataset: {VERSIONS!r} has no readable manifest, "
            "so nothing was deleted. Check that the path is not a folder above the dataset. "
            "Remove files that belong to no version with the tools of the store"
        )
    branches = {_branch_folder(file) for file in files if file.startswith(_TREE)}
    manifests = [file for file in files if file.startswith(f"{VERSIONS}/") and file != HINT_PATH]
    _delete(root, sorted({*files} - {*manifests}))
    for folder in branches - {""}:
        forget_versions(root.child(folder))
    forget_versions(root)  # before the manifests, else their store would call for them again
    _delete(root, manifests)
    prune(root)


def _delete(root: Store, files: Sequence[str]) -> None:
    """Delete files durably: what is deleted after them may not be lost to a power failure first."""
    for file in files:
        root.delete(file)
    for folder in sorted({file.rpartition("/")[0] for file in files}):
        with suppress(ObjectNotFoundError):  # somebody else drops it too
            sync_folder(root, folder)


def _has_a_version(root: Store) -> bool:
    try:
        names = version_names(root)
    except (DatasetNotFoundError, FormatError):
        return False
    for name in reversed(names):
        try:
            load_manifest(root, name)
        except (FormatError, NotSupportedError, ObjectNotFoundError):
            continue
        return True
    return False


def _branch_folder(path: str) -> str:
    folder, separator, _ = path.partition(f"/{VERSIONS}/")
    return branch_root(folder.removeprefix(_TREE)) if separator else ""
