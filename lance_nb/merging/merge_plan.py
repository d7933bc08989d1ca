"""Plan a merge of branches, a cherry-pick or a revert; and commit the plan.

A plan writes nothing. Conflicts that the commit rules call incompatible (everything was replaced on
one side) are decided for the whole content.

A commit makes, in this order, copies and deletion files (which no version names yet), a tag on the
merged version, the version. So a crash leaves both branches as they were, with files that a
clean-up removes and perhaps a tag.

Limits: the version fits the target as it was planned for; a commit of somebody else in between is a
retryable conflict, and the merge has to be planned again. What was copied stays when a later copy
fails; no version names it, and a clean-up removes it.
Source: commit.py; Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from lance_nb.errors import CommitStateUnknownError, InvalidInputError, LanceError
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.field import Field
from lance_nb.format.merge_record import (
    FAST_FORWARD,
    MERGE,
    REPLAY,
    UP_TO_DATE,
    MergeRecord,
    mark_of,
)
from lance_nb.merging.choices import CellChoice
from lance_nb.merging.conflicts import (
    BY_CHOICE,
    CONTENT,
    OURS,
    THEIRS,
    Findings,
    MergeConflict,
    pair_table,
)
from lance_nb.merging.file_locations import FileCopy
from lance_nb.merging.merge_base import (
    ALL_SHARED,
    Base,
    Ends,
    History,
    Merges,
    Repository,
    Shared,
    Side,
    Step,
    base_of,
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
from lance_nb.merging.outcome import Outcome
from lance_nb.merging.row_merge import ConflictingRows, conflict_table
from lance_nb.merging.three_way import MergeChoices, Merged, merge_versions
from lance_nb.storage.base import Store
from lance_nb.table.ancestry import Ancestry, Line, ancestry
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import storage_version
from lance_nb.transactions.checksum_records import CopiedSums
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.transactions.transaction import Transaction
from lance_nb.value_classes import dataclass
from lance_nb.writing.cloning import copy_file
from lance_nb.writing.pins import create_pin
from lance_nb.writing.progress import Progress

DEFAULTS = CommitOptions()
_REPLACING = frozenset({"overwrite", "update_mem_wal_state", "data_overlay"})
_BY_CONTENT = frozenset({"restore", "unknown"})


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """The options of a merge. ``keys``: columns that identify a row. ``resolve``: see choices."""

    on_conflict: str = "fail"
    keys: tuple[str, ...] = ()
    copies_files: bool = False
    resolve: tuple[CellChoice, ...] | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned merge. ``merged`` is None when there is nothing to do."""

    ends: Ends
    record: MergeRecord
    strategy: str
    merged: Merged | None
    conflicts: tuple[MergeConflict, ...]
    notes: tuple[str, ...]
    request: MergeRequest

    @property
    def outcome(self) -> Outcome | None:
        """The next version, None when there is nothing to do."""
        return None if self.merged is None else self.merged.outcome

    def pairs(self) -> pa.Table:
        """Return every transaction of the source against every one of the target."""
        ends = self.ends
        return pair_table(ends.source_history.steps, ends.target_history.steps, self.conflicts)

    def conflicting_rows(self, num_rows: int) -> pa.Table:
        """Return some rows that both sides changed."""
        rows: ConflictingRows | None = None if self.merged is None else self.merged.conflicting_rows
        if rows is None or not len(rows.base):
            return pa.table({"_rowaddr": pa.array([], pa.uint64())})
        return conflict_table(self.ends, rows, num_rows)


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
    merges = Merges.of(records_of(mine)), Merges.of(records_of(theirs))
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


def plan_merge(
    repository: Repository, source: Side, target: Side, request: MergeRequest
) -> Planned:
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
    return _plan(ends, record, request, inherited=inherited, records=merges)


def plan_change(
    repository: Repository,
    change: tuple[Side, Side],
    target: Side,
    request: MergeRequest,
    kind: str,
) -> Planned:
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
    return _plan(ends, record, request, inherited=inherited, records=records)


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
    request: MergeRequest,
    inherited: tuple[str, ...],
    records: Sequence[MergeRecord],
) -> Planned:
    """Plan; ``records`` are earlier merges, oldest first, which say by what rows are known."""
    findings = Findings(request.on_conflict)
    if record.strategy == UP_TO_DATE:
        return Planned(
            ends=ends,
            record=record,
            strategy=UP_TO_DATE,
            merged=None,
            conflicts=(),
            notes=(),
            request=request,
        )
    earlier = [merge.key for merge in records if merge.key is not None]
    keys = _keys(ends, request.keys)
    if not keys and earlier:
        keys = _keys(
            ends, next((columns for columns in reversed(earlier) if columns), ()), is_asked=False
        )
    choices = MergeChoices(
        keys,
        request.copies_files,
        inherited,
        request.resolve,
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
    decided = request.on_conflict if by_side else None
    chosen = (
        request.resolve if any(conflict.resolution == BY_CHOICE for conflict in conflicts) else None
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
    return Planned(
        ends=ends,
        record=record,
        strategy=record.strategy,
        merged=merged,
        conflicts=conflicts,
        notes=tuple(findings.notes),
        request=request,
    )


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


# --- commit ---------------------------------------------------------------------------------------


def copy_files(
    copies: Sequence[FileCopy],
    home: Store,
    progress: Progress | None = None,
    *,
    checksums: bool = False,
) -> int:
    """Copy; return the number of bytes. ``progress`` gets files done and files in all.

    ``checksums``: sums of the copies are recorded. Raises StorageError, CorruptFileError.
    """
    files = [path for copy in copies for path in _files(copy)]
    size_bytes = 0
    sums = CopiedSums() if checksums else None
    for number, (store, source, target) in enumerate(files, 1):
        size_bytes += copy_file(store, source, home, target=target, sums=sums)
        if progress is not None:
            progress(number, len(files))
    if sums is not None:
        sums.write(home)
    return size_bytes


def _files(copy: FileCopy) -> Iterator[tuple[Store, str, str]]:
    """List the files: one and, of a data file, the folder of blobs beside it; or a whole folder."""
    folder, target = copy.source_path, copy.path
    if not copy.is_folder:
        yield copy.store, copy.source_path, copy.path
        folder, target = folder.removesuffix(".lance"), target.removesuffix(".lance")
    for entry in copy.store.list_recursive(folder):
        yield copy.store, f"{folder}/{entry.name}", f"{target}/{entry.name}"


def commit_merge(
    place: CommitPlace,
    planned: Planned,
    tags: TagWriter | None,
    options: CommitOptions = DEFAULTS,
    *,
    properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Committed | None:
    """Commit; None if there is nothing to do. ``tags`` pins the source, None leaves that out.

    Raises as ``commit`` does, and RefConflictError.
    """
    outcome, target = planned.outcome, planned.ends.target
    if outcome is None:
        return None
    config = target.snapshot.manifest.config
    copy_files(outcome.copies, place.home, progress, checksums=wants_checksums(config))
    outcome.pending.write(place.home)
    outcome = outcome.written(place.home)
    pin = None
    if tags is not None and outcome.refers_to_source:
        source = planned.ends.source
        made_for = Target(target.branch, target.version + 1)
        pin = create_pin(tags, Target(source.branch, source.version), made_for)
    record = replace(planned.record, pin=pin)
    options = replace(options, apply=outcome.apply, is_exact=True)
    transaction = Transaction(
        target.version,
        outcome.operation(),
        options.environment.new_uuid(),
        transaction_properties={**(properties or {}), **record.properties()},
    )
    try:
        return commit(place, transaction, options)
    except CommitStateUnknownError:
        raise  # it may have landed, and needs the files then
    except LanceError:
        if tags is not None and pin is not None:
            with suppress(LanceError):  # who won the race may have pruned it; else a later one does
                tags.delete(pin)
        raise
