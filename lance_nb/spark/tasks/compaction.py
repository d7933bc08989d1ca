"""Rewrite small fragments together; a task is one of the engine's own compaction tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs import compaction
from lance_nb.spark.packing import fragment_bytes
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Label, Plan
from lance_nb.transactions.compaction import CompactionTask
from lance_nb.transactions.compaction_options import CompactionOptions
from lance_nb.transactions.compaction_run import Rewritten


@dataclass(frozen=True, slots=True)
class RewriteFragments:
    """Rewrite the fragments of one compaction task."""

    place: Place
    task: CompactionTask
    options: CompactionOptions

    @property
    def size_bytes(self) -> int:
        """Bytes that are read; about as many are written."""
        return 2 * sum(fragment_bytes(one) for one in self.task.fragments)

    def run(self) -> Rewritten:
        """Write the new files."""
        session, snapshot = self.place.open()
        return compaction.execute(session, snapshot, self.task, self.options)


@dataclass(frozen=True, slots=True)
class CommitRewrites:
    """Puts the new fragments in the place of the old ones."""

    options: CompactionOptions

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
        """Commit; what others changed meanwhile is a conflict, and nothing is doubled."""
        session, _ = plan.place.open()
        made, _ = compaction.commit(session, plan.place.branch, results, self.options)
        return LanceDataset.from_opened(session, made)


@dataclass(frozen=True, slots=True)
class StageRewrites:
    """Makes one edit of all rewritten fragments."""

    options: CompactionOptions

    def __call__(self, plan: Plan, results: Sequence[Any]) -> list[Any]:
        """Return the edit."""
        return [compaction.staged(results, self.options)]


def plan_compaction(dataset: LanceDataset, **options: Any) -> Plan:
    """Plan a compaction; options as those of ``ds.optimize.compact_files``."""
    _, snapshot = dataset.opened
    wanted = CompactionOptions.of(options, snapshot.manifest.config)
    place = Place.of(dataset)
    tasks = tuple(RewriteFragments(place, one, wanted) for one in compaction.plan(snapshot, wanted))
    finish, as_edits = CommitRewrites(wanted), StageRewrites(wanted)
    return Plan("compact", f"{len(tasks)} groups", place, tasks, finish, as_edits=as_edits)
