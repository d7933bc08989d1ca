"""Merge branches, pick one change, revert one.

Source: our own; pylance 14.0.2 has branches and no merge. What a merge leaves behind is an ordinary
version with an ordinary operation, which pylance reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lance_nb.dataset import provenance
from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.branch_repository import ReadingProgress, SessionRepository
from lance_nb.dataset.verbs.branching import tag_writer
from lance_nb.dataset.verbs.committing import place_of
from lance_nb.dataset.verbs.merge_options import MergeOptions
from lance_nb.dataset.verbs.merge_plan import MergePlan, Progress
from lance_nb.errors import CommitConflictError, InvalidInputError, InvalidRefError
from lance_nb.table import refs
from lance_nb.table.refs import Ref, Target, resolve
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.backoff import retrying
from lance_nb.transactions.branch_merge.committing import commit_merge
from lance_nb.transactions.branch_merge.ends import Side
from lance_nb.transactions.branch_merge.planning import (
    FAST_FORWARD,
    UP_TO_DATE,
    Planned,
    plan_change,
    plan_merge,
)
from lance_nb.transactions.branch_merge.records import PICK, REVERT
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment

MergeSource = str | tuple[str | None, int | None]


# --- plans ----------------------------------------------------------------------------------------


def plan_branch(
    session: Session,
    current: str | None,
    source: MergeSource,
    into: str | None,
    options: MergeOptions,
    *,
    progress: Progress | None = None,
) -> MergePlan:
    """Plan a merge of a branch into another one.

    Raises RefNotFoundError, InvalidInputError, VersionNotFoundError; CommitConflictError when a
    fast-forward is asked for and the target has moved.
    """
    there = source_of(session, source)
    branch = current if into is None else _branch(session, into)
    told = ReadingProgress(progress)
    repository = SessionRepository(session, told)
    side = repository.load(there.branch, there.version)

    def again() -> Planned:
        return plan_merge(repository, side, repository.load(branch, None), options.request)

    planned = again()
    told.stop()
    if options.strategy == FAST_FORWARD and planned.strategy not in (FAST_FORWARD, UP_TO_DATE):
        done = len(planned.ends.target_history.steps)
        raise CommitConflictError(
            f"{branch or 'main'} has moved since the base ({done} versions), so that it cannot be "
            "fast-forwarded; merge with strategy='replay'"
        )
    return _plan_of(session, planned, again, options)


def plan_pick(
    session: Session,
    snapshot: Snapshot,
    version: Ref,
    options: MergeOptions,
    progress: Progress | None = None,
) -> MergePlan:
    """Plan to do the change that made a version once more, on the newest version here."""
    target = _change(session, snapshot, version)
    repository = SessionRepository(session, ReadingProgress(progress))
    before = _before(repository, target)
    after = repository.load(target.branch, target.version)
    return _change_plan(repository, snapshot, (before, after), options, PICK)


def plan_revert(
    session: Session,
    snapshot: Snapshot,
    version: Ref,
    options: MergeOptions,
    progress: Progress | None = None,
) -> MergePlan:
    """Plan to undo the change that made a version, on the newest version here."""
    target = _change(session, snapshot, version)
    repository = SessionRepository(session, ReadingProgress(progress))
    made = next(repository.transactions(target.branch, [target.version or 0]))
    if made is not None and made.operation.arm == "rewrite":
        raise InvalidInputError(
            f"version {target.version} rewrote files and changed no row: there is nothing to revert"
        )
    before = repository.load(target.branch, target.version)
    after = _before(repository, target)
    return _change_plan(repository, snapshot, (before, after), options, REVERT)


def _change_plan(
    repository: SessionRepository,
    snapshot: Snapshot,
    sides: tuple[Side, Side],
    options: MergeOptions,
    kind: str,
) -> MergePlan:
    def again() -> Planned:
        target = repository.load(snapshot.branch, None)
        return plan_change(repository, sides, target, options.request, kind)

    planned = again()
    repository.told.stop()
    outcome = planned.outcome
    if outcome is not None and outcome.changes_nothing and not planned.conflicts:
        version = max(one.version for one in sides)
        what = "done here already" if kind == PICK else "undone already, or changed nothing"
        raise InvalidInputError(
            f"what version {version} of {sides[0].branch or 'main'} did is {what}: there is nothing"
            f" to {'pick' if kind == PICK else 'revert'}"
        )
    return _plan_of(repository.session, planned, again, options)


def _change(session: Session, snapshot: Snapshot, version: Ref) -> Target:
    target = resolve(session.root, version, snapshot.branch)
    if target.version is None:
        raise InvalidRefError("name the version whose change is meant: 7, ('dev', 7) or a tag")
    return target


def _before(repository: SessionRepository, target: Target) -> Side:
    """Load the version before a change. Raises InvalidInputError for a first version."""
    number = target.version or 0
    made = next(repository.transactions(target.branch, [number]))
    if number <= 1 or (made is not None and made.operation.arm == "clone"):
        raise InvalidInputError(
            f"version {number} of {target.branch or 'main'} is its first one: no change led to it"
        )
    return repository.load(target.branch, number - 1)


def source_of(session: Session, source: MergeSource) -> Target:
    """Return what to merge: a branch, a tag, or (branch, version). Raises InvalidRefError."""
    if isinstance(source, str) and (
        source == refs.MAIN or source in refs.branch_names(session.root)
    ):
        return resolve(session.root, (source, None), None)
    return resolve(session.root, source, None)


def _branch(session: Session, name: str) -> str | None:
    return resolve(session.root, (name, None), None).branch


def _plan_of(
    session: Session, planned: Planned, again: Callable[[], Planned], options: MergeOptions
) -> MergePlan:
    ends, record = planned.ends, planned.record
    return MergePlan(
        record.kind,
        Target(record.base_branch, record.base_version),
        Target(ends.source.branch, ends.source.version),
        Target(ends.target.branch, ends.target.version),
        planned.strategy,
        planned.conflicts,
        planned.notes,
        record.properties(),
        planned=planned,
        committer=_Committer(session, again, options),
    )


def newest(session: Session, snapshot: Snapshot, plan: MergePlan) -> Snapshot:
    """Return the version that a plan made, or the one that is open if it made none."""
    if plan.version is None:
        return snapshot
    return session.load(Target(plan.target.branch, plan.version))


# --- commits --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Committer:
    """Commits a plan, or plans anew when the target has moved meanwhile."""

    session: Session
    again: Callable[[], Planned]
    options: MergeOptions

    def __call__(self, plan: MergePlan, message: str | None, progress: Progress | None) -> Snapshot:
        waiting = [plan.planned]

        def attempt() -> Snapshot:
            planned = waiting.pop() if waiting else self.again()
            renewed = _plan_of(self.session, planned, self.again, self.options)
            renewed.check()
            return self._commit(planned, message, progress)

        return retrying(attempt, Environment())

    def _commit(self, planned: Planned, message: str | None, progress: Progress | None) -> Snapshot:
        target = planned.ends.target
        done = commit_merge(
            place_of(self.session, target.branch),
            planned,
            tag_writer(self.session) if self.options.pin else None,
            CommitOptions(message=message),
            properties=provenance.properties(),
            progress=progress,
        )
        if done is None:
            return target.snapshot
        return self.session.snapshot(done.manifest, target.branch)


def merge_one_by_one(
    session: Session,
    plan: MergePlan,
    options: MergeOptions,
    message: str | None,
    progress: Progress | None,
) -> MergePlan:
    """Merge each version of the source by itself, oldest first; return the last plan.

    What is merged before an error stays merged, and the next merge goes on from there.
    """
    plan.check()
    steps = plan.planned.ends.source_history.steps
    last = plan
    alone = replace(options, strategy="auto")
    for number, step in enumerate(steps, 1):
        source = (step.branch or refs.MAIN, step.version)
        one = plan_branch(session, plan.target.branch, source, None, alone)
        last = one.commit(message)
        if progress is not None:
            progress(number, len(steps))
    return last
