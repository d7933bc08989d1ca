"""Merge branches, cherry-pick one change, revert one: plans, and their commits.

    plan = ds.branches.plan_merge("dev")
    plan                          # changes, conflicts, the operation that is recorded
    plan.transactions             # every transaction of dev against every one of main
    plan.conflicts, plan.conflict_rows()
    plan.commit("merge dev")

Source: our own; pylance 14.0.2 has branches and no merge. A merge makes an ordinary version with an
ordinary operation, which pylance reads.

Limits: rows are counted from the manifests and deletion vectors of the outcome; transactions are
read ahead in batches of ``_AHEAD``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from lance_nb.errors import (
    CommitConflictError,
    InvalidInputError,
    InvalidRefError,
    RetryableCommitConflictError,
    VersionNotFoundError,
)
from lance_nb.format.merge_record import FAST_FORWARD, PICK, REVERT, UP_TO_DATE
from lance_nb.format.refs import Branch
from lance_nb.format.transaction_summary import count_of
from lance_nb.merging.choices import CellChoice, choices_of
from lance_nb.merging.conflicts import FAIL, MergeConflict, check_choice
from lance_nb.merging.merge_base import Side
from lance_nb.merging.merge_plan import (
    MergeRequest,
    Planned,
    commit_merge,
    divergence,
    plan_change,
    plan_merge,
)
from lance_nb.merging.row_replay import ConflictCells
from lance_nb.session import provenance
from lance_nb.session.session import Session
from lance_nb.storage.base import Store
from lance_nb.table import refs
from lance_nb.table.ref_grammar import resolve
from lance_nb.table.refs import Ref, Target
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment, retrying
from lance_nb.transactions.operation import operation_name
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import VersionSource
from lance_nb.value_classes import dataclass
from lance_nb.writing.pins import pin_name
from lance_nb.writing.progress import Progress, StepCounter
from lance_nb.writing.stage_preview import changed_fragments

Resolve = str | CellChoice | Sequence[str | CellChoice] | None
STRATEGIES = ("auto", FAST_FORWARD, "replay")


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How to merge; see ``Branches.merge``."""

    strategy: str = "auto"
    on_conflict: str = "fail"
    key: tuple[str, ...] = ()
    copies_files: bool = False
    pin: bool = True
    resolve: tuple[CellChoice, ...] | None = None

    @property
    def request(self) -> MergeRequest:
        """The options that the plan depends on."""
        return MergeRequest(self.on_conflict, self.key, self.copies_files, self.resolve)


def options_of(
    *,
    strategy: str = "auto",
    on_conflict: str = FAIL,
    key: str | Sequence[str] | None = None,
    copy: bool = False,
    pin: bool = True,
    resolve: Resolve = None,
) -> MergeOptions:
    """Check the arguments of a merge; see ``Branches.merge``. Raises InvalidInputError."""
    if strategy not in STRATEGIES:
        raise InvalidInputError(
            f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}"
        )
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    if not all(isinstance(name, str) for name in keys):
        raise InvalidInputError(f"key must be a column name or a list of column names, not {key!r}")
    chosen = choices_of(resolve)
    return MergeOptions(
        strategy, check_choice(on_conflict), keys, copies_files=copy, pin=pin, resolve=chosen
    )


Committer = Callable[["MergePlan", str | None, Progress | None], Snapshot]

_SHOWN = 10


@dataclass(frozen=True, slots=True, repr=False)
class MergePlan:
    """What a merge would change. ``version`` is what it made, None while it is a plan.

    ``strategy``: "up-to-date" (nothing to do), "fast-forward" (the target has not moved) or
    "replay". ``conflicts`` holds everything that both sides changed, decided or not. ``notes`` say
    what is worth knowing and no conflict.
    """

    kind: str
    base: Target
    source: Target
    target: Target
    strategy: str
    conflicts: tuple[MergeConflict, ...]
    notes: tuple[str, ...]
    properties: Mapping[str, str]
    version: int | None = None
    planned: Planned = field(repr=False, compare=False, kw_only=True)
    committer: Committer = field(repr=False, compare=False, kw_only=True)
    pins: Store | None = field(default=None, repr=False, compare=False, kw_only=True)
    on_commit: Callable[[Snapshot], None] | None = field(
        default=None, repr=False, compare=False, kw_only=True
    )

    @property
    def unresolved(self) -> tuple[MergeConflict, ...]:
        """The conflicts that a commit now would fail on."""
        return tuple(conflict for conflict in self.conflicts if conflict.resolution is None)

    @property
    def transactions(self) -> pa.Table:
        """Each transaction of the source against each of the target, with verdict and outcome.

        Columns: source_version, source_operation, target_version, target_operation, verdict and
        reason (of the commit rules), fragments, fields, outcome ("replayed", "merged" or
        "conflict").
        """
        return self.planned.pairs()

    @property
    def source_transactions(self) -> tuple[str, ...]:
        """What happened on the source since the base, one line per version, oldest first."""
        return _lines(self.planned, by_source=True)

    @property
    def target_transactions(self) -> tuple[str, ...]:
        """What happened on the target since the base, one line per version, oldest first."""
        return _lines(self.planned, by_source=False)

    @property
    def operation(self) -> str | None:
        """The operation that the new version would be recorded as, None if there is none."""
        outcome = self.planned.outcome
        return None if outcome is None else operation_name(outcome.operation().arm)

    @property
    def fragments(self) -> pa.Table:
        """Fragments of the target that come, go or change: id, change, rows before and after."""
        return changed_fragments(*_both(self.planned))

    @property
    def num_rows_before(self) -> int:
        """Rows of the target now."""
        return _num_rows(self.planned.ends.target.snapshot)

    @property
    def num_rows_after(self) -> int:
        """Rows of the target afterwards."""
        return _num_rows(_both(self.planned)[1])

    @property
    def schema_after(self) -> pa.Schema:
        """The schema of the target afterwards."""
        return _both(self.planned)[1].manifest.schema.to_arrow()

    def conflict_rows(self, num_rows: int = 20) -> pa.Table:
        """Read some rows that both sides changed: ``_rowaddr`` in the base, base, source, target.

        The last three are structs, null where a side has no such row.
        """
        return self.planned.conflicting_rows(num_rows)

    @property
    def cells(self) -> ConflictCells | None:
        """The cells that both sides changed, None without ``resolve``: then rows count as a whole.

        ``len(plan.cells)``, ``plan.cells.columns()`` and ``plan.cells.window(0, 20)``, which lists
        ``ConflictCell``: row, column, base, ours, theirs and what was chosen.
        """
        merged = self.planned.merged
        return None if merged is None or self.planned.request.resolve is None else merged.cells

    @property
    def pin(self) -> str | None:
        """The name of the tag that the commit would create, None if it needs none.

        It keeps the files that the target would read in the source's folder (``source_files``), and
        goes once no version reads them. The name is another one if it is taken until then.
        """
        outcome = self.planned.outcome
        if self.pins is None or outcome is None or not outcome.refers_to_source:
            return None
        return pin_name(self.pins, self.source)

    @property
    def source_files(self) -> tuple[int, int]:
        """Data files that the target would read in the source's folder, and their bytes."""
        outcome = self.planned.outcome
        files = () if outcome is None else outcome.foreign_files
        return len(files), sum(file.size_bytes for file in files)

    @property
    def message(self) -> str:
        """The message of the commit if none is given."""
        source, target = self.source.branch or refs.MAIN, self.target.branch or refs.MAIN
        version = max(self.source.version or 0, self.base.version or 0)
        if self.kind == PICK:
            return f"Cherry-pick {source}:{version}"
        if self.kind == REVERT:
            return f"Revert {source}:{version}"
        if self.strategy == FAST_FORWARD:
            return f"Fast-forward {target} to {source}:{self.source.version}"
        return f"Merge {source}:{self.source.version} into {target}"

    def commit(self, message: str | None = None, *, progress: Progress | None = None) -> MergePlan:
        """Commit, and return the plan with the version that it made.

        ``message`` None is ``self.message``, an empty text is none.
        When somebody else has committed to the target since, the merge is planned again. Raises
        CommitConflictError for conflicts that are not decided, TooMuchWriteContentionError,
        CommitStateUnknownError, StorageError; the target is as it was then.
        """
        if self.version is not None:
            raise InvalidInputError(f"this plan was already committed, as version {self.version}")
        self.check()
        if self.strategy == UP_TO_DATE:
            return self
        committed = self.committer(
            self, (self.message if message is None else message) or None, progress
        )
        if self.on_commit is not None:
            self.on_commit(committed)
        return self._with(version=committed.version)

    def followed_by(self, on_commit: Callable[[Snapshot], None] | None) -> MergePlan:
        """Return the plan with what its commit calls with the new version of the target."""
        return self._with(on_commit=on_commit)

    def _with(self, **changes: Any) -> MergePlan:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return MergePlan(**{**values, **changes})

    def check(self) -> None:
        """Raise CommitConflictError if a conflict is not decided."""
        if not self.unresolved:
            return
        shown = "\n".join(f"  - {conflict}" for conflict in self.unresolved[:_SHOWN])
        more = len(self.unresolved) - _SHOWN
        more_line = f"\n  and {more} more" if more > 0 else ""
        conflicts_text = count_of(len(self.unresolved), "conflict")
        raise CommitConflictError(
            f"{self.title} has {conflicts_text}; nothing was changed:\n{shown}{more_line}"
        )

    @property
    def title(self) -> str:
        """What is done, and where: one line."""
        target_label = _label(self.target)
        if self.kind == "merge":
            return f"merging {_label(self.source)} into {target_label}"
        verb = "picking" if self.kind == "cherry-pick" else "reverting"
        version = max(self.source.version or 0, self.base.version or 0)
        return f"{verb} {self.source.branch or 'main'}:{version} on {target_label}"

    def __str__(self) -> str:
        lines = [f"{self.title} (base {_label(self.base)}): {self.strategy}"]
        if self.version is not None:
            lines.append(f"committed as version {self.version}")
        if self.planned.outcome is not None:
            lines.append(
                f"rows: {self.num_rows_before:,} -> {self.num_rows_after:,}, "
                f"{count_of(self.fragments.num_rows, 'fragment')} changed, recorded as "
                f"{self.operation}"
            )
        if self.version is None and self.pin is not None:
            files, size_bytes = self.source_files
            lines.append(
                f"reads {count_of(files, 'file')} ({size_bytes:,} bytes) of "
                f"{self.source.branch or refs.MAIN} in place, kept by tag {self.pin!r}, which goes "
                "once no version reads them"
            )
        lines += self._history_lines()
        return "\n".join(lines)

    def _history_lines(self) -> list[str]:
        """Say what happened on both sides, and what is in the way."""
        lines: list[str] = []
        for name in ("source", "target"):
            done = getattr(self, f"{name}_transactions")
            count = count_of(len(done), "version")
            lines += [f"{name} since the base: {count}", *(f"  {x}" for x in done[:_SHOWN])]
        lines += [f"conflict, {conflict}" for conflict in self.conflicts[:_SHOWN]]
        lines += [f"note: {note}" for note in self.notes]
        return lines

    __repr__ = __str__


def _label(target: Target) -> str:
    return f"{target.branch or 'main'}:{target.version}"


def _lines(planned: Planned, *, by_source: bool) -> tuple[str, ...]:
    history = planned.ends.source_history if by_source else planned.ends.target_history
    return tuple(
        f"{step.label} "
        + ("unknown" if step.transaction is None else step.transaction.operation.describe())
        for step in history.steps
    )


def _num_rows(snapshot: Snapshot) -> int:
    return int(live_counts(snapshot).sum())


def _both(planned: Planned) -> tuple[Snapshot, Snapshot]:
    """Return the target now and afterwards."""
    before = planned.ends.target.snapshot
    outcome = planned.outcome
    return before, before if outcome is None else outcome.preview()


_AHEAD = 64


@dataclass(frozen=True, slots=True)
class SessionRepository:
    """Every version of every branch of a dataset."""

    session: Session
    progress: StepCounter = field(default_factory=lambda: StepCounter(None))

    def branches(self) -> Mapping[str, Branch]:
        """Return all branches by name."""
        return refs.list_branches(self.session.root)

    def load(self, branch: str | None, version: int | None) -> Side:
        """Read a version, None: the newest."""
        self.progress.expect(1)
        source = VersionSource(self.session.place(branch).slots)
        head = source.head(version or 0)
        if head is None:
            missing = VersionNotFoundError(self.home_uri(branch), version or "latest")
            raise self.session.without_versions(branch, missing)
        parsed = source.load(head.version if version is None else version)
        self.progress.step()
        return Side.of(self.session.snapshot(parsed.manifest, branch), parsed.indices)

    def transactions(
        self, branch: str | None, versions: Sequence[int]
    ) -> Iterator[Transaction | None]:
        """Read the transactions of versions, None for what is not known any more."""
        self.progress.expect(len(versions))
        for start in range(0, len(versions), _AHEAD):
            some = versions[start : start + _AHEAD]
            source = VersionSource(self.session.place(branch).slots)
            source.head(some[0])
            source.load_ahead(some)
            for version in some:
                self.progress.step()
                yield _transaction(source, version)

    def home_uri(self, branch: str | None) -> str:
        """Return where the folder of a branch is."""
        return self.session.home(branch).uri


def _transaction(source: VersionSource, version: int) -> Transaction | None:
    try:
        return source.transaction(version)
    except RetryableCommitConflictError:
        return None


@dataclass(frozen=True, slots=True)
class BranchComparison:
    """How a branch stands to another one. Created by ``branches.compare``.

    ``ahead`` counts the versions of the source that the target lacks, ``behind`` those of the
    target that the source lacks; merges of what the other side has do not count. ``base`` is where
    a merge would begin, ``merged`` the newest version of the source that was merged into the
    target, None if none was.
    """

    source: Target
    target: Target
    base: Target
    ahead: int
    behind: int
    merged: Target | None = None

    @property
    def status(self) -> str:
        """Return "identical", "ahead", "behind" or "diverged"."""
        if self.ahead and self.behind:
            return "diverged"
        return "ahead" if self.ahead else "behind" if self.behind else "identical"


def compare_branches(
    session: Session, source: Target, into: Target, progress: Progress | None = None
) -> BranchComparison:
    """Compare two branches. Raises RefNotFoundError, VersionNotFoundError."""
    counter = StepCounter(progress)
    repository = SessionRepository(session, counter)
    ends = tuple(
        (side.branch, session.load(side).version if side.version is None else side.version)
        for side in (source, into)
    )
    parted = divergence(repository, ends[0], ends[1])
    counter.stop()
    base = Target(parted.base.line.branch, parted.base.line.version)
    is_merged = not parted.base.in_target and not parted.base.line.is_gone
    ahead, behind = map(len, parted.steps)
    merged = base if is_merged else None
    return BranchComparison(
        Target(*ends[0]), Target(*ends[1]), base, ahead=ahead, behind=behind, merged=merged
    )


# --- plans ----------------------------------------------------------------------------------------


def plan_branch(
    session: Session,
    current: str | None,
    source: Ref,
    into: str | None,
    options: MergeOptions,
    *,
    progress: Progress | None = None,
) -> MergePlan:
    """Plan a merge of a branch into another one.

    Raises RefNotFoundError, InvalidInputError, VersionNotFoundError; CommitConflictError when a
    fast-forward is asked for and the target has moved.
    """
    origin = resolve(session.root, source, None)
    branch = current if into is None else resolve(session.root, (into, None), None).branch
    counter = StepCounter(progress)
    repository = SessionRepository(session, counter)
    side = repository.load(origin.branch, origin.version)

    def again() -> Planned:
        return plan_merge(repository, side, repository.load(branch, None), options.request)

    planned = again()
    counter.stop()
    if options.strategy == FAST_FORWARD and planned.strategy not in (FAST_FORWARD, UP_TO_DATE):
        done = len(planned.ends.target_history.steps)
        raise CommitConflictError(
            f"{branch or 'main'} has new versions since the merge base "
            f"({count_of(done, 'version')}), so it cannot be fast-forwarded; merge with "
            "strategy='replay'"
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
    repository = SessionRepository(session, StepCounter(progress))
    before = _before(repository, target)
    after = repository.load(target.branch, target.version)
    return _change_plan(repository, snapshot, (before, after), options=options, kind=PICK)


def plan_revert(
    session: Session,
    snapshot: Snapshot,
    version: Ref,
    options: MergeOptions,
    progress: Progress | None = None,
) -> MergePlan:
    """Plan to undo the change that made a version, on the newest version here."""
    target = _change(session, snapshot, version)
    repository = SessionRepository(session, StepCounter(progress))
    transaction = next(repository.transactions(target.branch, [target.version or 0]))
    if transaction is not None and transaction.operation.arm == "rewrite":
        raise InvalidInputError(
            f"version {target.version} rewrote files and changed no rows: there is nothing to "
            "revert"
        )
    before = repository.load(target.branch, target.version)
    after = _before(repository, target)
    return _change_plan(repository, snapshot, (before, after), options=options, kind=REVERT)


def _change_plan(
    repository: SessionRepository,
    snapshot: Snapshot,
    sides: tuple[Side, Side],
    options: MergeOptions,
    kind: str,
) -> MergePlan:
    def again() -> Planned:
        target = repository.load(snapshot.branch, None)
        return plan_change(repository, sides, target, request=options.request, kind=kind)

    planned = again()
    repository.progress.stop()
    outcome = planned.outcome
    if outcome is not None and outcome.changes_nothing and not planned.conflicts:
        version = max(side.version for side in sides)
        reason = (
            "is already present here" if kind == PICK else "was already undone, or changed nothing"
        )
        raise InvalidInputError(
            f"the change of version {version} of {sides[0].branch or 'main'} {reason}: there is "
            f"nothing to {'cherry-pick' if kind == PICK else 'revert'}"
        )
    return _plan_of(repository.session, planned, again, options)


def _change(session: Session, snapshot: Snapshot, version: Ref) -> Target:
    target = resolve(session.root, version, snapshot.branch)
    if target.version is None:
        raise InvalidRefError(
            "expected the version that made the change, for example 7, ('dev', 7) or a tag"
        )
    return target


def _before(repository: SessionRepository, target: Target) -> Side:
    """Load the version before a change. Raises InvalidInputError for a first version."""
    number = target.version or 0
    transaction = next(repository.transactions(target.branch, [number]))
    if number <= 1 or (transaction is not None and transaction.operation.arm == "clone"):
        raise InvalidInputError(
            f"version {number} of {target.branch or 'main'} is its first version, which has no "
            "change to apply or revert"
        )
    return repository.load(target.branch, number - 1)


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
        pins=session.root if options.pin else None,
    )


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
            self.session.place(target.branch),
            planned,
            TagWriter(self.session.root, self.session.place) if self.options.pin else None,
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

    Every one is planned before the first is committed, so that a conflict or a version that is gone
    leaves the target as it was. What is merged before a later error (a commit of somebody else in
    between) stays merged, and the next merge goes on from there.
    """
    plan.check()
    alone = replace(options, strategy="auto")
    sources = [
        (step.branch or refs.MAIN, step.version) for step in plan.planned.ends.source_history.steps
    ]
    try:
        for source in sources:
            plan_branch(session, plan.target.branch, source, into=None, options=alone).check()
    except VersionNotFoundError as error:
        if error.reason:
            raise
        reason = (
            "squash=False merges each version by itself, and this one was removed by a clean-up; "
            "nothing was changed. Merge all at once, with squash=True"
        )
        raise VersionNotFoundError(error.uri, error.version, reason=reason) from error
    last = plan
    for number, source in enumerate(sources, 1):
        try:
            step_plan = plan_branch(session, plan.target.branch, source, into=None, options=alone)
            last = step_plan.followed_by(plan.on_commit).commit(message)
        except (CommitConflictError, VersionNotFoundError) as error:
            if number == 1:
                raise
            raise CommitConflictError(
                f"{count_of(number - 1, 'version')} of {len(sources)} were merged into "
                f"{_label(last.target)}, the last as version {last.version}, and stay merged; "
                f"{source[0]}:{source[1]} was not: {error}"
            ) from error
        if progress is not None:
            progress(number, len(sources))
    return last
