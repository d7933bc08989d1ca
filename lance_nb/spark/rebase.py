"""Move a plan to a newer version after a conflict, and keep the results that still hold.

A task that reads some fragments depends on nothing else: its result holds on a newer version if
these fragments and the schema are unchanged there. Only the other fragments, changed ones and new
ones, get new tasks. Of a compaction, the groups with a changed fragment are grouped anew, without
fragments of other groups and new ones.

Limits: an upsert and a write of files are planned anew, because their tasks depend on the whole
version.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lance_nb.dataset import LanceDataset
from lance_nb.spark.plan import TASK_BYTES, PinnedVersion, Plan, group_fragments
from lance_nb.spark.tasks.columns import CastFragments, FillColumns
from lance_nb.spark.tasks.maintenance import BuildSegment, RewriteFragments
from lance_nb.spark.tasks.rows import DeleteRows, UpdateRows
from lance_nb.table.index_search import among
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.schema_change import next_field_id
from lance_nb.writing import compaction

_BY_FRAGMENT = (BuildSegment, CastFragments, DeleteRows, FillColumns, UpdateRows)


def is_movable(plan: Plan) -> bool:
    """Whether the tasks depend on nothing but the fragments that they read, and the schema."""
    kinds = {type(task) for task in plan.tasks}
    return plan.finalize is None and len(kinds) == 1 and kinds <= {RewriteFragments, *_BY_FRAGMENT}


def rebased(
    plan: Plan, results: Mapping[int, Any], newest: LanceDataset
) -> tuple[Plan, dict[int, Any]] | None:
    """Return the plan for the newest version, and the results by the numbers of its tasks.

    None if the plan cannot be moved, and has to be made anew.
    """
    if not is_movable(plan):
        return None
    before, after = plan.pinned.open()[1], newest.opened[1]
    if not _is_same_schema(before, after):
        return None
    unchanged = _unchanged(before, after)
    pinned = PinnedVersion.of(newest)
    fresh = replace(plan, pinned=pinned, operation_id=str(uuid.uuid4()))
    if isinstance(plan.tasks[0], RewriteFragments):
        rewrites: Any = plan.tasks
        numbers = [
            number
            for number, task in enumerate(rewrites)
            if all(fragment.id in unchanged for fragment in task.task.fragments)
        ]
        remaining = [replace(rewrites[number], pinned=pinned) for number in numbers]
        changed = [task for number, task in enumerate(rewrites) if number not in numbers]
        return _moved(fresh, [*remaining, *_regrouped(changed, pinned, after)], results, numbers)
    tasks: Any = plan.tasks
    numbers = [
        number
        for number, task in enumerate(tasks)
        if number in results and unchanged >= {*task.fragment_ids}
    ]
    covered = np.array(
        sorted(fragment_id for number in numbers for fragment_id in tasks[number].fragment_ids),
        np.int64,
    )
    rewritten = [
        replace(tasks[0], pinned=pinned, fragment_ids=ids, size_bytes=size)
        for ids, size in group_fragments(after, TASK_BYTES, lambda ids: ~among(ids, covered))
    ]
    remaining = [replace(tasks[number], pinned=pinned) for number in numbers]
    return _moved(fresh, [*remaining, *rewritten], results, numbers)


def _regrouped(
    changed: Sequence[RewriteFragments], pinned: PinnedVersion, newest: Snapshot
) -> list[RewriteFragments]:
    """Return new groups of the fragments of some groups, as far as they are still there."""
    if not changed:
        return []
    options = changed[0].options
    ids = {fragment.id for task in changed for fragment in task.task.fragments}
    every = set(newest.manifest.fragments.counts().ids.tolist())
    excluded = options.excluded_fragment_ids | (every - ids)
    restricted = replace(options, excluded_fragment_ids=excluded)
    return [
        RewriteFragments(pinned, group, options) for group in compaction.plan(newest, restricted)
    ]


def _moved(
    plan: Plan, tasks: list[Any], results: Mapping[int, Any], numbers: list[int]
) -> tuple[Plan, dict[int, Any]]:
    done = {new: results[old] for new, old in enumerate(numbers) if old in results}
    return replace(plan, tasks=tuple(tasks)), done


def _is_same_schema(before: Snapshot, after: Snapshot) -> bool:
    return (
        before.manifest.schema == after.manifest.schema
        and next_field_id(before.manifest) == next_field_id(after.manifest)
        and before.manifest.base_paths == after.manifest.base_paths
    )


def _unchanged(before: Snapshot, after: Snapshot) -> set[int]:
    """Return the ids of the fragments that are the same in both versions."""
    fragments_before = {fragment.id: fragment for fragment in before.manifest.fragments}
    return {
        fragment.id
        for fragment in after.manifest.fragments
        if fragments_before.get(fragment.id) == fragment
    }
