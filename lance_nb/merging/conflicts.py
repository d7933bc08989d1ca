"""Conflicts of a merge: where two lines of history changed the same thing, and how it was decided.

A conflict that is decided (``ours``: the target's side stays, ``theirs``: the source's is taken)
does not stop a merge; one that is not decided does, and so does one that cannot be decided.

The table of pairs shows every transaction of the source against every transaction of the target.
The verdict is that of the commit rules, as if the source's transaction were committed after the
target's. The outcome is what the merge makes of it: "replayed", "merged" (more than the rules
could do: the states of both sides are known here) or "conflict".

Limits: pairs beyond ``PAIRS_MAX`` are left out and counted.
Source: none; Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.merging.merge_base import Step
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Circumstances, Verdict
from lance_nb.transactions.operation import Footprint, Operation, operation_name
from lance_nb.value_classes import dataclass

FAIL, OURS, THEIRS = "fail", "ours", "theirs"
CHOICES = (FAIL, OURS, THEIRS)
BOTH = (OURS, THEIRS)

BY_CHOICE = "by choice"

ROWS, KEYS, COLUMNS = "rows", "keys", "columns"
FRAGMENTS, SETTINGS, CONTENT = "fragments", "settings", "content"


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One thing that both sides changed.

    ``kind``: "rows" (the same row), "keys" (a row with the same key was added on both sides),
    "columns", "fragments" (rewritten on one side, changed on the other), "settings", "content" (all
    of it was replaced on one side). ``fragments`` are ids of the base, ``fields`` of the target.
    ``resolution`` is what was decided ("ours", "theirs", or "by choice"), None if nothing was.
    ``choices`` are the sides that can be taken as a whole; ``needs_key``: it can be decided once
    columns that identify a row are named.
    """

    kind: str
    text: str
    remedy: str
    fragments: tuple[int, ...] = ()
    fields: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    num_rows: int = 0
    resolution: str | None = None
    choices: tuple[str, ...] = ()
    needs_key: bool = False

    def __str__(self) -> str:
        decided = f" [{self.resolution}]" if self.resolution else f". {self.remedy}"
        return f"{self.kind}: {self.text}{decided}"


def check_choice(on_conflict: str) -> str:
    """Return how conflicts are decided. Raises InvalidInputError."""
    if on_conflict not in CHOICES:
        raise InvalidInputError(f"on_conflict is one of {', '.join(CHOICES)}, not {on_conflict!r}")
    return on_conflict


class Findings:
    """The conflicts of one merge, in the order in which they were found, and notes for people."""

    def __init__(self, on_conflict: str = FAIL) -> None:
        self.on_conflict = check_choice(on_conflict)
        self.conflicts: list[MergeConflict] = []
        self.notes: list[str] = []

    def report(
        self,
        kind: str,
        text: str,
        *,
        choices: Iterable[str] = BOTH,
        remedy: str = "",
        fragments: Iterable[int] = (),
        fields: Iterable[int] = (),
        keys: Iterable[str] = (),
        num_rows: int = 0,
        needs_key: bool = False,
    ) -> str:
        """Take note of a conflict; return the side to go on with ("ours" when undecided)."""
        possible = tuple(choices)
        decided = self.on_conflict if self.on_conflict in possible else None
        if not remedy and possible:
            shown = " or ".join(f"on_conflict={side_name!r}" for side_name in possible)
            remedy = f"Decide with {shown}"
        conflict = MergeConflict(
            kind=kind,
            text=text,
            remedy=remedy,
            fragments=tuple(fragments),
            fields=tuple(fields),
            keys=tuple(keys),
            num_rows=num_rows,
            resolution=decided,
            choices=possible,
            needs_key=needs_key,
        )
        self.conflicts.append(conflict)
        return decided or OURS

    def report_decided(self, kind: str, text: str, fragments: Iterable[int], num_rows: int) -> None:
        """Take note of a conflict that was decided cell by cell."""
        self.conflicts.append(
            MergeConflict(kind, text, "", tuple(fragments), num_rows=num_rows, resolution=BY_CHOICE)
        )

    def extend(self, other: Findings) -> None:
        """Add the conflicts and notes of other findings."""
        self.conflicts += other.conflicts
        for text in other.notes:
            self.note(text)

    @property
    def open(self) -> tuple[MergeConflict, ...]:
        """The conflicts without a decision."""
        return tuple(conflict for conflict in self.conflicts if conflict.resolution is None)

    def note(self, text: str) -> None:
        """Add a note that is no conflict, unless it is there already."""
        if text not in self.notes:
            self.notes.append(text)


PAIRS_MAX = 10_000
UNKNOWN = "Unknown"

SCHEMA = pa.schema(
    [
        ("source_version", pa.uint64()),
        ("source_operation", pa.string()),
        ("target_version", pa.uint64()),
        ("target_operation", pa.string()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("fragments", pa.list_(pa.uint64())),
        ("fields", pa.list_(pa.int32())),
        ("outcome", pa.string()),
    ]
)


def pair_table(
    source: Sequence[Step], target: Sequence[Step], conflicts: Sequence[MergeConflict]
) -> pa.Table:
    """Return one row per pair, oldest first."""
    rows = []
    for row in _pairs(source, target, conflicts):
        rows.append(row)
        if len(rows) == PAIRS_MAX:
            break
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _pairs(
    source: Sequence[Step], target: Sequence[Step], conflicts: Sequence[MergeConflict]
) -> Iterator[dict[str, object]]:
    prints = [
        None if step.transaction is None else step.transaction.operation.footprint()
        for step in target
    ]
    for mine in source:
        ours = None if mine.transaction is None else mine.transaction.operation
        our_footprint = None if ours is None else ours.footprint()
        for other, their_footprint in zip(target, prints, strict=True):
            theirs = None if other.transaction is None else other.transaction.operation
            row: dict[str, object] = {
                "source_version": mine.version,
                "source_operation": _name(ours),
                "target_version": other.version,
                "target_operation": _name(theirs),
            }
            row.update(_judged(ours, theirs, (our_footprint, their_footprint), conflicts))
            yield row


def _judged(
    ours: Operation | None,
    theirs: Operation | None,
    prints: tuple[Footprint | None, Footprint | None],
    conflicts: Sequence[MergeConflict],
) -> dict[str, object]:
    mine, other = prints
    if ours is None or theirs is None or mine is None or other is None:
        reason = "what this version changed is not recorded any more"
        return {"verdict": "unknown", "reason": reason, "outcome": "merged"}
    judgement = check(ours, theirs, Circumstances(knows_rows=True))
    fragments = mine.touched & other.touched
    fields = {f for _, f in mine.replaced & other.replaced}
    outcome = "replayed" if judgement.verdict is Verdict.COMPATIBLE else "merged"
    if any(
        _is_about(conflict, mine, other, fragments=fragments, verdict=judgement.verdict)
        for conflict in conflicts
    ):
        outcome = "conflict"
    return {
        "verdict": judgement.verdict.name.lower(),
        "reason": judgement.overlap,
        "fragments": sorted(fragments),
        "fields": sorted(fields),
        "outcome": outcome,
    }


def _is_about(
    conflict: MergeConflict,
    mine: Footprint,
    other: Footprint,
    fragments: frozenset[int],
    verdict: Verdict,
) -> bool:
    """Return whether a pair has a part in a conflict."""
    if conflict.kind == SETTINGS:
        keys = set(conflict.keys)
        left = {key for _, _, key in mine.settings.keys}
        right = {key for _, _, key in other.settings.keys}
        return bool(keys & left & right)
    if conflict.kind == CONTENT:
        return verdict is Verdict.INCOMPATIBLE
    if conflict.fragments:
        return not fragments.isdisjoint(conflict.fragments) and verdict is not Verdict.COMPATIBLE
    if conflict.fields:
        return mine.field_ids is not None and other.field_ids is not None
    return mine.supplies_values and other.supplies_values


def _name(operation: Operation | None) -> str:
    return UNKNOWN if operation is None else operation_name(operation.arm)
