"""Engine: runs tasks somewhere and returns their results in order.

All engines are alike to who uses them: tasks in, results out, progress on the way, and a way to
stop. A result is returned once per task, however often the task was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lance_nb.spark.plan import Task


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How far a run is: tasks, and the bytes of their estimates."""

    num_done: int
    num_tasks: int
    done_bytes: int
    total_bytes: int


Report = Callable[[TaskProgress], None]
# Asked between tasks; True ends the run.
Stop = Callable[[], bool]


class Engine(Protocol):
    """Runs tasks. ``name`` is "local", "pool" or "spark"."""

    @property
    def name(self) -> str: ...

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run all tasks and return their edits in the order of the tasks.

        Raises RunCancelledError, and what a task raises.
        """
        ...


def progress_of(tasks: Sequence[Task], done: Sequence[int]) -> TaskProgress:
    """Say how far a run is, ``done`` being the places of finished tasks."""
    return TaskProgress(
        len(done),
        len(tasks),
        sum(tasks[at].size_bytes for at in done),
        sum(task.size_bytes for task in tasks),
    )
