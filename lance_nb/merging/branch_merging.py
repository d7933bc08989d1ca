"""Merge branches, cherry-pick one change, revert one: plans, and their commits.

    plan = ds.branches.plan_merge("dev")
    plan                          # changes, conflicts, the operation that is recorded
    plan.transactions             # every transaction of dev against every one of main
    plan.conflicts, plan.conflict_rows()
    plan.commit("merge dev")

Source: our own; pylance 14.0.2 has branches and no merge. A merge makes an ordinary version with an
ordinary operation, which pylance reads.

Conflicts that the commit rules call incompatible (everything was replaced on one side) are decided
for the whole content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_nb.errors import (
    CommitConflictError,
    InvalidInputError,
    InvalidRefError,
    VersionNotFoundError,
)
from lance_nb.format.field import Field
from lance_nb.format.merge_record import (
    FAST_FORWARD,
    MERGE,
    PICK,
    REPLAY,
    REVERT,
    UP_TO_DATE,
    MergeRecord,
    mark_of,
)
from lance_nb.format.transaction_summary import count_of
from lance_nb.merging.conflicts import (
    BY_CHOICE,
    CONTENT,
    OURS,
    THEIRS,
    Findings,
)
from lance_nb.merging.merge_base import (
    ALL_SHARED,
    Base,
    Ends,
    History,
    Repository,
    Shared,
    Side,
    Step,
    base_of,
    branch_merges,
    fork_of,
    load_line,
    marked_steps,
    own_steps,
    records_of,
    renumbered_by,
    shared_since,
    steps_from,
    uuids_of,
)
from lance_nb.merging.merge_plan import MergeOptions, MergePlan
from lance_nb.merging.three_way import MergeChoices, merge_versions
from lance_nb.session.session import Session
from lance_nb.table import refs
from lance_nb.table.ancestry import Ancestry, Line, ancestry
from lance_nb.table.ref_grammar import resolve
from lance_nb.table.refs import Ref, Target
from lance_nb.table.snapshot import Snapshot, storage_version
from lance_nb.value_classes import dataclass
from lance_nb.writing.progress import Progress, StepCounter

_REPLACING = frozenset({"overwrite", "update_mem_wal_state", "data_overlay"})
_BY_CONTENT = frozenset({"restore", "unknown"})


@dataclass(frozen=True, slots=True)
class Divergence:
    """How two versions diverged; pairs are of the source and of the target.

    ``lines`` are the ancestries of both, ``fork`` is where they part, ``base`` where a merge
    begins; ``since_fork`` are all versions since the fork, ``steps`` those that the other side does
    not hold.
    """

    lines: tuple[Ancestry, Ancestry]
    fork: Line
    base: Base
    since_fork: tuple[tuple[Step, ...], tuple[Step, ...]]
    steps: tuple[tuple[Step, ...], tuple[Step, ...]]


def divergence(
    repository: Repository, source: tuple[str | None, int], target: tuple[str | None, int]
) -> Divergence:
    """Find out how two versions diverged; reads the transactions of both sides since their fork.

    Raises RefNotFoundError, InvalidInputError.
    """
    branches = repository.branches()
    lines = ancestry(branches, *source), ancestry(branches, *target)
    fork = fork_of(*lines)
    mine, theirs = (
        _known_steps(repository, steps_from(repository, side, fork), *end)
        for side, end in zip(lines, (source, target), strict=True)
    )
    merges = branch_merges(records_of(mine)), branch_merges(records_of(theirs))
    base = base_of(*lines, merges)
    steps = (
        own_steps((mine, theirs), lines, base, holds_base=base.in_source),
        own_steps((theirs, mine), lines[::-1], base, holds_base=base.in_target),
    )
    return Divergence(lines, fork, base, since_fork=(mine, theirs), steps=steps)


def _known_steps(
    repository: Repository, steps: tuple[Step, ...], branch: str | None, version: int
) -> tuple[Step, ...]:
    if all(step.transaction is not None for step in steps):
        return steps
    return marked_steps(steps, repository.load(branch, version).manifest.config)


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
    repository = Repository(session, counter)
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
    repository = Repository(session, counter)
    side = repository.load(origin.branch, origin.version)

    def again() -> MergePlan:
        return plan_merge(repository, side, repository.load(branch, None), options)

    plan = again()
    counter.stop()
    if options.strategy == FAST_FORWARD and plan.strategy not in (FAST_FORWARD, UP_TO_DATE):
        done = len(plan.ends.target_history.steps)
        raise CommitConflictError(
            f"{branch or 'main'} has new versions since the merge base "
            f"({count_of(done, 'version')}), so it cannot be fast-forwarded; merge with "
            "strategy='replay'"
        )
    return replace(plan, session=session, again=again)


def plan_pick(
    session: Session,
    snapshot: Snapshot,
    version: Ref,
    options: MergeOptions,
    progress: Progress | None = None,
) -> MergePlan:
    """Plan to do the change that made a version once more, on the newest version here."""
    target = _change(session, snapshot, version)
    repository = Repository(session, StepCounter(progress))
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
    repository = Repository(session, StepCounter(progress))
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
    repository: Repository,
    snapshot: Snapshot,
    sides: tuple[Side, Side],
    options: MergeOptions,
    kind: str,
) -> MergePlan:
    def again() -> MergePlan:
        target = repository.load(snapshot.branch, None)
        return plan_change(repository, sides, target, options=options, kind=kind)

    plan = again()
    repository.progress.stop()
    if plan.outcome is not None and plan.outcome.changes_nothing and not plan.conflicts:
        version = max(side.version for side in sides)
        reason = (
            "is already present here" if kind == PICK else "was already undone, or changed nothing"
        )
        raise InvalidInputError(
            f"the change of version {version} of {sides[0].branch or 'main'} {reason}: there is "
            f"nothing to {'cherry-pick' if kind == PICK else 'revert'}"
        )
    return replace(plan, session=repository.session, again=again)


def _change(session: Session, snapshot: Snapshot, version: Ref) -> Target:
    target = resolve(session.root, version, snapshot.branch)
    if target.version is None:
        raise InvalidRefError(
            "expected the version that made the change, for example 7, ('dev', 7) or a tag"
        )
    return target


def _before(repository: Repository, target: Target) -> Side:
    """Load the version before a change. Raises InvalidInputError for a first version."""
    number = target.version or 0
    transaction = next(repository.transactions(target.branch, [number]))
    if number <= 1 or (transaction is not None and transaction.operation.arm == "clone"):
        raise InvalidInputError(
            f"version {number} of {target.branch or 'main'} is its first version, which has no "
            "change to apply or revert"
        )
    return repository.load(target.branch, number - 1)


def plan_merge(
    repository: Repository, source: Side, target: Side, options: MergeOptions
) -> MergePlan:
    """Plan to merge a version of one branch into another branch. Raises InvalidInputError."""
    if source.branch == target.branch:
        name = source.branch or "main"
        raise InvalidInputError(f"branch {name!r} cannot be merged into itself")
    parted = divergence(
        repository, (source.branch, source.version), (target.branch, target.version)
    )
    lines, fork, base, steps = parted.lines, parted.fork, parted.base, parted.steps
    fork_side = load_line(repository, fork, lines)
    base_side = fork_side if base.line == fork else load_line(repository, base.line, lines)
    shared = shared_since(fork_side)
    histories = [History(side_steps, repository.load) for side_steps in steps]
    ends = Ends(
        base=base_side,
        source=source,
        target=target,
        base_source=ALL_SHARED if base.in_source else shared,
        base_target=ALL_SHARED if base.in_target else shared,
        source_target=shared,
        source_history=histories[0],
        target_history=histories[1],
        untouched_until=base_side.version if base.in_source else fork_side.version,
        source_renumbered=None
        if base.in_source
        else renumbered_by(parted.since_fork[0], steps[0], base.line),
        target_renumbered=None
        if base.in_target
        else renumbered_by(parted.since_fork[1], steps[1], base.line),
    )
    strategy = UP_TO_DATE if not steps[0] else REPLAY if steps[1] else FAST_FORWARD
    record = MergeRecord(
        kind=MERGE,
        source_branch=source.branch,
        source_id=lines[0][0].identity,
        source_version=source.version,
        base_branch=base.line.branch,
        base_version=base.line.version,
        target_version=target.version,
        strategy=strategy,
        transactions=uuids_of(steps[0]),
    )
    inherited = tuple(repository.home_uri(line.branch) for line in lines[1] if not line.is_gone)
    merges = [
        merge for part in parted.since_fork for _, merge in records_of(part) if merge is not None
    ]
    return _plan(ends, record, options, inherited=inherited, records=merges)


def plan_change(
    repository: Repository,
    change: tuple[Side, Side],
    target: Side,
    options: MergeOptions,
    kind: str,
) -> MergePlan:
    """Plan to do to the target what turned one version of a branch into another one.

    For reverting, the first of the two is the version that made the change.
    """
    before, after = change
    _check_one_content(before, after)
    branches = repository.branches()
    lines = (
        ancestry(branches, after.branch, after.version),
        ancestry(branches, target.branch, target.version),
    )
    changed = max(before, after, key=lambda side: side.version)
    start, shared = _since(repository, lines, changed, target)
    done = tuple(
        Step(changed.branch, changed.version, transaction)
        for transaction in repository.transactions(changed.branch, [changed.version])
    )
    later = steps_from(repository, lines[1], start)
    record = MergeRecord(
        kind=kind,
        source_branch=changed.branch,
        source_id=lines[0][0].identity,
        source_version=changed.version,
        base_branch=before.branch,
        base_version=before.version,
        target_version=target.version,
        strategy=REPLAY if later else FAST_FORWARD,
        transactions=uuids_of(done),
    )
    ends = Ends(
        base=before,
        source=after,
        target=target,
        base_source=ALL_SHARED,
        base_target=shared,
        source_target=shared,
        source_history=History(done, repository.load),
        target_history=History(later, repository.load),
        untouched_until=before.version,
    )
    inherited = tuple(repository.home_uri(line.branch) for line in lines[1] if not line.is_gone)
    records = [record for _, record in records_of(later) if record is not None]
    return _plan(ends, record, options, inherited=inherited, records=records)


def _since(
    repository: Repository, lines: tuple[Ancestry, Ancestry], side: Side, target: Side
) -> tuple[Line, Shared]:
    """Return from where on the target went its own way, and which ids mean the same until then."""
    source = lines[0][0]
    is_one_line = any(
        line.identity == source.identity and line.version >= side.version for line in lines[1]
    )
    if is_one_line:
        _check_one_content(side, target)
        return replace(source, version=side.version), ALL_SHARED
    fork = fork_of(*lines)
    return fork, shared_since(load_line(repository, fork, lines))


def _check_one_content(side: Side, other: Side) -> None:
    """Refuse two versions between which an overwrite gave the ids of nested fields anew.

    Only there has a field id another parent, or children in one of them alone; and only there do
    data files get another file version. Raises InvalidInputError.
    """
    nestings = {field.id: _nesting(field) for field in side.manifest.schema.walk()}
    fields = other.manifest.schema.walk()
    is_clash = any(nestings.get(field.id, _nesting(field)) != _nesting(field) for field in fields)
    if is_clash or storage_version(side.manifest) != storage_version(other.manifest):
        first, last = sorted((side.version, other.version))
        raise InvalidInputError(
            f"between versions {first} and {last} the dataset was overwritten with other columns "
            "or another file version: no single change can be done or undone across that; "
            "restore() brings a whole version back"
        )


def _nesting(field: Field) -> tuple[int, bool]:
    return field.parent_id, bool(field.children)


def _plan(
    ends: Ends,
    record: MergeRecord,
    options: MergeOptions,
    inherited: tuple[str, ...],
    records: Sequence[MergeRecord],
) -> MergePlan:
    """Plan; ``records`` are earlier merges, oldest first, which say by what rows are known."""
    findings = Findings(options.on_conflict)
    if record.strategy == UP_TO_DATE:
        return MergePlan(ends, record, None, conflicts=(), notes=(), options=options)
    earlier = [merge.key for merge in records if merge.key is not None]
    keys = _keys(ends, options.keys)
    if not keys and earlier:
        keys = _keys(
            ends, next((columns for columns in reversed(earlier) if columns), ()), is_asked=False
        )
    choices = MergeChoices(
        keys,
        options.copies_files,
        inherited,
        options.resolve,
        has_moved=bool(earlier),
        by_content=tuple(
            not history.operations_of_others().isdisjoint(_BY_CONTENT)
            for history in (ends.source_history, ends.target_history)
        ),
    )
    whole = _replaced_content(ends, findings) if record.strategy != FAST_FORWARD else None
    used = ends
    if whole == OURS:
        used = replace(
            ends, base=ends.source, base_source=ALL_SHARED, base_target=ends.source_target
        )
    elif whole == THEIRS:
        used = replace(
            ends, base=ends.target, base_source=ends.source_target, base_target=ALL_SHARED
        )
    if whole is not None:
        nothing = History((), ends.source_history.load)
        used = replace(used, source_history=nothing, target_history=nothing)
        choices = replace(choices, keys=(), by_content=(False, False))
    merged = merge_versions(used, choices, findings)
    _note_unknown(ends, findings)
    conflicts = tuple(findings.conflicts)
    by_side = any(conflict.resolution in (OURS, THEIRS) for conflict in conflicts)
    decided = options.on_conflict if by_side else None
    chosen = (
        options.resolve if any(conflict.resolution == BY_CHOICE for conflict in conflicts) else None
    )
    record = replace(
        record,
        on_conflict=decided,
        is_copied=bool(merged.outcome.copies),
        choices=tuple(map(str, chosen or ())),
        key=choices.keys if merged.cells is not None else None,
        fields=merged.renumbered if record.kind == MERGE else None,
    )
    merged = replace(merged, outcome=replace(merged.outcome, marks=mark_of(record)))
    return MergePlan(ends, record, merged, conflicts, notes=tuple(findings.notes), options=options)


def _replaced_content(ends: Ends, findings: Findings) -> str | None:
    """Tell which side's content is taken as a whole, because one side replaced all of it."""
    for history, where in ((ends.source_history, "the source"), (ends.target_history, "here")):
        done = history.operations_of_others() & _REPLACING
        if done:
            names = ", ".join(sorted(arm.replace("_", " ") for arm in done))
            text = f"the whole content was replaced on {where} ({names})".replace("on here", "here")
            remedy = "on_conflict='ours' keeps what is here, 'theirs' takes the source as it is"
            return findings.report(CONTENT, text, remedy=remedy)
    return None


def _note_unknown(ends: Ends, findings: Findings) -> None:
    for history, where in (
        (ends.source_history, "the source"),
        (ends.target_history, "the target"),
    ):
        unknown = [step.label for step in history.steps if step.transaction is None]
        if unknown:
            shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
            findings.note(f"what versions {shown} of {where} did is not recorded any more")


def _keys(ends: Ends, given_columns: Sequence[str], *, is_asked: bool = True) -> tuple[str, ...]:
    """Return the columns that identify a row: those asked for, else the primary key.

    Columns of an earlier merge, which were not requested now, count if every side has them.
    """
    sides = (ends.base, ends.source, ends.target)
    if given_columns and not is_asked:
        names = [set(side.manifest.schema.names) for side in sides]
        return (
            tuple(given_columns)
            if all(set(given_columns) <= column_names for column_names in names)
            else ()
        )
    if given_columns:
        for side in sides:
            for name in given_columns:
                side.manifest.schema.field(name)
        return tuple(given_columns)
    primary = [field for field in ends.base.manifest.schema.fields if field.keys.primary]
    ordered = sorted(primary, key=lambda field: field.keys.primary_position)
    columns = [field.name for field in ordered]
    everywhere = all(name in side.manifest.schema.names for side in sides[1:] for name in columns)
    return tuple(columns) if everywhere else ()


def merge_one_by_one(
    session: Session,
    plan: MergePlan,
    message: str | None,
    progress: Progress | None,
) -> MergePlan:
    """Merge each version of the source by itself, oldest first; return the last plan.

    Every one is planned before the first is committed, so that a conflict or a version that is gone
    leaves the target as it was. What is merged before a later error (a commit of somebody else in
    between) stays merged, and the next merge goes on from there.
    """
    plan.check()
    alone = replace(plan.options, strategy="auto")
    sources = [(step.branch or refs.MAIN, step.version) for step in plan.ends.source_history.steps]
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
                f"{last.ends.target.label}, the last as version {last.version}, and stay merged; "
                f"{source[0]}:{source[1]} was not: {error}"
            ) from error
        if progress is not None:
            progress(number, len(sources))
    return last
