"""Tasks one after the other, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_nb.errors import RunCancelledError
from lance_nb.spark.engine import Report, Stop, progress_of
from lance_nb.spark.plan import Task
from lance_nb.storage.sync_later import synced_together


class InlineEngine:
    """Runs tasks here and now."""

    name = "local"

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run all tasks in their order; all their files are durable at the end."""
        found: dict[int, Any] = {}
        with synced_together():
            for at, task in enumerate(tasks):
                if stop():
                    raise RunCancelledError(at, len(tasks))
                found[at] = task.run()
                report(progress_of(tasks, found))
        return list(found.values())
