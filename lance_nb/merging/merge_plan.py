"""A planned merge of branches, cherry-pick or revert; and its commit.

A plan writes nothing; ``branch_merging`` makes it.

A commit makes, in this order, copies and deletion files (which no version names yet), a tag on the
merged version, the version. So a crash leaves both branches as they were, with files that a
clean-up removes and perhaps a tag.

Limits: rows are counted from the manifests and deletion vectors of the outcome. When somebody else
commits in between, the merge is planned again. What was copied stays when a later copy fails; no
version names it, and a clean-up removes it.
Source: commit.py; Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace

import pyarrow as pa

from lance_nb.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidInputError,
    LanceError,
)
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.merge_record import (
    FAST_FORWARD,
    PICK,
    REVERT,
    UP_TO_DATE,
    MergeRecord,
)
from lance_nb.format.transaction_summary import count_of
from lance_nb.merging.choices import CellChoice, choices_of
from lance_nb.merging.conflicts import (
    FAIL,
    MergeConflict,
    check_choice,
    pair_table,
)
from lance_nb.merging.file_locations import FileCopy
from lance_nb.merging.merge_base import (
    Ends,
    History,
)
from lance_nb.merging.outcome import Outcome
from lance_nb.merging.row_merge import NO_CONFLICTS, conflict_table
from lance_nb.merging.row_replay import ConflictCells
from lance_nb.merging.three_way import Merged
from lance_nb.session import provenance
from lance_nb.session.session import Session
from lance_nb.storage.base import Store
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.checksum_records import CopiedSums
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.environment import Environment, retrying
from lance_nb.transactions.operation import operation_name
from lance_nb.transactions.ref_writer import TagWriter
from lance_nb.transactions.transaction import Transaction
from lance_nb.value_classes import dataclass
from lance_nb.writing.cloning import copy_file
from lance_nb.writing.pins import create_pin, pin_name
from lance_nb.writing.progress import Progress
from lance_nb.writing.stage_preview import changed_fragments

DEFAULTS = CommitOptions()


Resolve = str | CellChoice | Sequence[str | CellChoice] | None
STRATEGIES = ("auto", FAST_FORWARD, "replay")


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How to merge; see ``Branches.merge``. ``keys``: columns that identify a row."""

    strategy: str = "auto"
    on_conflict: str = "fail"
    keys: tuple[str, ...] = ()
    copies_files: bool = False
    pin: bool = True
    resolve: tuple[CellChoice, ...] | None = None


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


_SHOWN = 10  # conflicts and versions in the text of a plan


@dataclass(frozen=True, slots=True, repr=False)
class MergePlan:
    """What a merge would change. ``version`` is what it made, None while it is a plan.

    ``strategy``: "up-to-date" (nothing to do), "fast-forward" (the target has not moved) or
    "replay". ``conflicts`` holds everything that both sides changed, decided or not. ``notes`` say
    what is worth knowing and no conflict.
    """

    ends: Ends = field(repr=False, compare=False)
    record: MergeRecord
    merged: Merged | None = field(repr=False, compare=False)
    conflicts: tuple[MergeConflict, ...]
    notes: tuple[str, ...]
    options: MergeOptions = field(repr=False, compare=False)
    version: int | None = None
    session: Session | None = field(default=None, repr=False, compare=False)
    again: Callable[[], MergePlan] | None = field(default=None, repr=False, compare=False)
    on_commit: Callable[[Snapshot], None] | None = field(default=None, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """What is planned: "merge", "cherry-pick" or "revert"."""
        return self.record.kind

    @property
    def strategy(self) -> str:
        """How: "up-to-date", "fast-forward" or "replay"."""
        return self.record.strategy

    @property
    def base(self) -> Target:
        """The version from which both sides are compared."""
        return Target(self.record.base_branch, self.record.base_version)

    @property
    def source(self) -> Target:
        """The version whose changes are taken."""
        return Target(self.ends.source.branch, self.ends.source.version)

    @property
    def target(self) -> Target:
        """The version that they are made to."""
        return Target(self.ends.target.branch, self.ends.target.version)

    @property
    def properties(self) -> Mapping[str, str]:
        """What the transaction records of the merge."""
        return self.record.properties()

    @property
    def outcome(self) -> Outcome | None:
        """The next version, None when there is nothing to do."""
        return None if self.merged is None else self.merged.outcome

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
        ends = self.ends
        return pair_table(ends.source_history.steps, ends.target_history.steps, self.conflicts)

    @property
    def source_transactions(self) -> tuple[str, ...]:
        """What happened on the source since the base, one line per version, oldest first."""
        return _lines(self.ends.source_history)

    @property
    def target_transactions(self) -> tuple[str, ...]:
        """What happened on the target since the base, one line per version, oldest first."""
        return _lines(self.ends.target_history)

    @property
    def operation(self) -> str | None:
        """The operation that the new version would be recorded as, None if there is none."""
        return None if self.outcome is None else operation_name(self.outcome.operation().arm)

    @property
    def fragments(self) -> pa.Table:
        """Fragments of the target that come, go or change: id, change, rows before and after."""
        return changed_fragments(self.ends.target.snapshot, self._snapshot_after)

    @property
    def num_rows_before(self) -> int:
        """Rows of the target now."""
        return _num_rows(self.ends.target.snapshot)

    @property
    def num_rows_after(self) -> int:
        """Rows of the target afterwards."""
        return _num_rows(self._snapshot_after)

    @property
    def schema_after(self) -> pa.Schema:
        """The schema of the target afterwards."""
        return self._snapshot_after.manifest.schema.to_arrow()

    @property
    def _snapshot_after(self) -> Snapshot:
        return self.ends.target.snapshot if self.outcome is None else self.outcome.preview()

    def conflict_rows(self, num_rows: int = 20) -> pa.Table:
        """Read some rows that both sides changed: ``_rowaddr`` in the base, base, source, target.

        The last three are structs, null where a side has no such row.
        """
        rows = NO_CONFLICTS if self.merged is None else self.merged.conflicting_rows
        if not len(rows.base):
            return pa.table({"_rowaddr": pa.array([], pa.uint64())})
        return conflict_table(self.ends, rows, num_rows)

    @property
    def cells(self) -> ConflictCells | None:
        """The cells that both sides changed, None without ``resolve``: then rows count as a whole.

        ``len(plan.cells)``, ``plan.cells.columns()`` and ``plan.cells.window(0, 20)``, which lists
        ``ConflictCell``: row, column, base, ours, theirs and what was chosen.
        """
        merged = self.merged
        return None if merged is None or self.options.resolve is None else merged.cells

    @property
    def pin(self) -> str | None:
        """The name of the tag that the commit would create, None if it needs none.

        It keeps the files that the target would read in the source's folder (``source_files``), and
        goes once no version reads them. The name is another one if it is taken until then.
        """
        outcome = self.outcome
        if self.session is None or not self.options.pin:
            return None
        if outcome is None or not outcome.refers_to_source:
            return None
        return pin_name(self.session.root, self.source)

    @property
    def source_files(self) -> tuple[int, int]:
        """Data files that the target would read in the source's folder, and their bytes."""
        files = () if self.outcome is None else self.outcome.foreign_files
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
        text = (self.message if message is None else message) or None
        plans = [self]

        def attempt() -> Snapshot:
            plan = plans.pop() if plans or self.again is None else self.again()
            plan.check()
            return self._committed(plan, text, progress)

        committed = retrying(attempt, Environment())
        if self.on_commit is not None:
            self.on_commit(committed)
        return replace(self, version=committed.version)

    def followed_by(self, on_commit: Callable[[Snapshot], None] | None) -> MergePlan:
        """Return the plan with what its commit calls with the new version of the target."""
        return replace(self, on_commit=on_commit)

    def _committed(
        self, plan: MergePlan, message: str | None, progress: Progress | None
    ) -> Snapshot:
        session, target = self.session, self.ends.target
        if session is None:
            raise InvalidInputError("a plan without a session is committed by commit_merge")
        done = commit_merge(
            session.place(target.branch),
            plan,
            TagWriter(session.root, session.place) if self.options.pin else None,
            CommitOptions(message=message),
            properties=provenance.properties(),
            progress=progress,
        )
        if done is None:
            return plan.ends.target.snapshot
        return session.snapshot(done.manifest, target.branch)

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
        target_label = self.ends.target.label
        if self.kind == "merge":
            return f"merging {self.ends.source.label} into {target_label}"
        verb = "picking" if self.kind == "cherry-pick" else "reverting"
        version = max(self.source.version or 0, self.base.version or 0)
        return f"{verb} {self.source.branch or 'main'}:{version} on {target_label}"

    def __str__(self) -> str:
        lines = [f"{self.title} (base {self.ends.base.label}): {self.strategy}"]
        if self.version is not None:
            lines.append(f"committed as version {self.version}")
        if self.outcome is not None:
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


def _lines(history: History) -> tuple[str, ...]:
    return tuple(
        f"{step.label} "
        + ("unknown" if step.transaction is None else step.transaction.operation.describe())
        for step in history.steps
    )


def _num_rows(snapshot: Snapshot) -> int:
    return int(live_counts(snapshot).sum())


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
    plan: MergePlan,
    tags: TagWriter | None,
    options: CommitOptions = DEFAULTS,
    *,
    properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Committed | None:
    """Commit; None if there is nothing to do. ``tags`` pins the source, None leaves that out.

    Raises as ``commit`` does, and RefConflictError.
    """
    outcome, target = plan.outcome, plan.ends.target
    if outcome is None:
        return None
    config = target.snapshot.manifest.config
    copy_files(outcome.copies, place.home, progress, checksums=wants_checksums(config))
    outcome.pending.write(place.home)
    outcome = outcome.written(place.home)
    pin = None
    if tags is not None and outcome.refers_to_source:
        source = plan.ends.source
        made_for = Target(target.branch, target.version + 1)
        pin = create_pin(tags, Target(source.branch, source.version), made_for)
    record = replace(plan.record, pin=pin)
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
