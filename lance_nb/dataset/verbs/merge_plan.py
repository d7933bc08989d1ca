"""MergePlan: what a merge, a picked change or a reverted one would do, before it does it.

    plan = ds.branches.plan_merge("dev")
    plan                          # what comes, what collides, what it is recorded as
    plan.transactions             # every transaction of dev against every one of main
    plan.conflicts, plan.conflict_rows()
    plan.commit("merge dev")

Limits: rows are counted from the manifests and the deletion vectors of the outcome; conflicting
rows are shown up to the number asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lance_nb.dataset.verbs.stage_preview import changed_fragments
from lance_nb.errors import CommitConflictError, InvalidInputError
from lance_nb.format.operation_details import count_of
from lance_nb.table.refs import Target
from lance_nb.table.scan_plan import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.branch_merge.findings import MergeConflict
from lance_nb.transactions.branch_merge.planning import UP_TO_DATE, Planned
from lance_nb.transactions.operation import operation_name

Progress = Callable[[int, int], object]
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

    @property
    def unresolved(self) -> tuple[MergeConflict, ...]:
        """The conflicts that a commit now would fail on."""
        return tuple(one for one in self.conflicts if one.resolution is None)

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

    def commit(self, message: str | None = None, *, progress: Progress | None = None) -> MergePlan:
        """Commit, and return the plan with the version that it made.

        When somebody else has committed to the target since, the merge is planned again. Raises
        CommitConflictError for conflicts that are not decided, TooMuchWriteContentionError,
        CommitStateUnknownError, StorageError; the target is as it was then.
        """
        if self.version is not None:
            raise InvalidInputError(f"this plan was committed already, as version {self.version}")
        self.check()
        if self.strategy == UP_TO_DATE:
            return self
        made = self.committer(self, message, progress)
        return self._as(made.version)

    def _as(self, version: int) -> MergePlan:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return MergePlan(**{**values, "version": version})

    def check(self) -> None:
        """Raise CommitConflictError if a conflict is not decided."""
        if not self.unresolved:
            return
        shown = "\n".join(f"  - {one}" for one in self.unresolved[:_SHOWN])
        more = len(self.unresolved) - _SHOWN
        rest = f"\n  and {more} more" if more > 0 else ""
        found = count_of(len(self.unresolved), "conflict")
        raise CommitConflictError(f"{self.title} has {found}; nothing was changed:\n{shown}{rest}")

    @property
    def title(self) -> str:
        """What is done, and where: one line."""
        there = _label(self.target)
        if self.kind == "merge":
            return f"merging {_label(self.source)} into {there}"
        verb = "picking" if self.kind == "cherry-pick" else "reverting"
        made = max(self.source.version or 0, self.base.version or 0)
        return f"{verb} {self.source.branch or 'main'}:{made} on {there}"

    def __str__(self) -> str:
        lines = [f"{self.title} (base {_label(self.base)}): {self.strategy}"]
        if self.version is not None:
            lines.append(f"committed as version {self.version}")
        if self.planned.outcome is not None:
            lines.append(
                f"rows: {self.num_rows_before:,} -> {self.num_rows_after:,}, "
                f"{self.fragments.num_rows} fragments touched, recorded as {self.operation}"
            )
        lines += self._told()
        return "\n".join(lines)

    def _told(self) -> list[str]:
        """Say what happened on both sides, and what is in the way."""
        lines: list[str] = []
        for name in ("source", "target"):
            done = getattr(self, f"{name}_transactions")
            count = f"{len(done)} version{'' if len(done) == 1 else 's'}"
            lines += [f"{name} since the base: {count}", *(f"  {x}" for x in done[:_SHOWN])]
        lines += [f"conflict, {one}" for one in self.conflicts[:_SHOWN]]
        lines += [f"note: {one}" for one in self.notes]
        return lines

    __repr__ = __str__


def _label(target: Target) -> str:
    return f"{target.branch or 'main'}:{target.version}"


def _lines(planned: Planned, *, by_source: bool) -> tuple[str, ...]:
    history = planned.ends.source_history if by_source else planned.ends.target_history
    return tuple(
        f"{one.label} "
        + ("unknown" if one.transaction is None else one.transaction.operation.describe())
        for one in history.steps
    )


def _num_rows(snapshot: Snapshot) -> int:
    return int(live_counts(snapshot).sum())


def _both(planned: Planned) -> tuple[Snapshot, Snapshot]:
    """Return the target now and afterwards."""
    before = planned.ends.target.snapshot
    outcome = planned.outcome
    return before, before if outcome is None else outcome.preview()
