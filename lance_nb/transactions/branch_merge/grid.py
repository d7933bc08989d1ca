"""Every transaction of the source against every transaction of the target: a table to look at.

The verdict is that of the commit rules, as if the source's transaction were committed after the
target's. The outcome is what the merge makes of it: "replayed", "merged" (more than the rules
could do: the states of both sides are known here) or "conflict".

Limits: pairs beyond ``PAIRS_MAX`` are left out and counted.
Source: conflicts.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_nb.transactions.branch_merge.ends import Step
from lance_nb.transactions.branch_merge.findings import CONTENT, SETTINGS, MergeConflict
from lance_nb.transactions.conflicts import Circumstances, Verdict, check
from lance_nb.transactions.footprint import Footprint
from lance_nb.transactions.operation import Operation, operation_name

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
        None if one.transaction is None else one.transaction.operation.footprint() for one in target
    ]
    for mine in source:
        ours = None if mine.transaction is None else mine.transaction.operation
        print_ = None if ours is None else ours.footprint()
        for other, known in zip(target, prints, strict=True):
            theirs = None if other.transaction is None else other.transaction.operation
            row: dict[str, object] = {
                "source_version": mine.version,
                "source_operation": _name(ours),
                "target_version": other.version,
                "target_operation": _name(theirs),
            }
            row.update(_judged(ours, theirs, (print_, known), conflicts))
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
    found = check(ours, theirs, Circumstances(knows_rows=True))
    fragments = mine.touched & other.touched
    fields = {f for _, f in mine.replaced & other.replaced}
    outcome = "replayed" if found.verdict is Verdict.COMPATIBLE else "merged"
    if any(_is_about(one, mine, other, fragments, found.verdict) for one in conflicts):
        outcome = "conflict"
    return {
        "verdict": found.verdict.name.lower(),
        "reason": found.overlap,
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
    """Tell whether a pair has a part in a conflict."""
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
