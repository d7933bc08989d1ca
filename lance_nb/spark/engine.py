"""Engine: runs tasks somewhere and returns their results in order.

All engines are alike to who uses them: tasks in, results out, progress on the way, and a way to
stop. A result is returned once per task, however often the task was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lance_nb.encodings.kernels.compiled import pays
from lance_nb.spark.plan import Task
from lance_nb.storage.sync_later import synced_together

# Bytes of a task for which compiled loops save about a second, where half of them is text.
COMPILED_SAVES = 200_000_000


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How far tasks are: how many, the bytes of their estimates, the rows they report."""

    num_done: int = 0
    num_tasks: int = 0
    done_bytes: int = 0
    total_bytes: int = 0
    num_rows: int = 0


Report = Callable[[TaskProgress], None]
# Asked between tasks; True ends the run.
Stop = Callable[[], bool]


class Engine(Protocol):
    """Runs tasks. ``name`` is "local" or "spark"."""

    @property
    def name(self) -> str: ...

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run all tasks and return their results in the order of the tasks.

        Raises RunCancelledError, and what a task raises.
        """
        ...


def run_task(task: Task) -> Any:
    """Run a task in a process that has just begun, as workers have.

    Loops are compiled when the work pays for it; here it is known beforehand how much comes. The
    disk has the files of a task while the next ones are made, and all of them at its end.
    """
    pays(task.size_bytes / COMPILED_SAVES)
    with synced_together():
        return task.run()


def progress_of(tasks: Sequence[Task], results: Mapping[int, Any]) -> TaskProgress:
    """Say how far a run is; ``results`` are those of finished tasks, by their places."""
    return TaskProgress(
        len(results),
        len(tasks),
        sum(tasks[at].size_bytes for at in results),
        sum(task.size_bytes for task in tasks),
        sum(rows_of(one) for one in results.values()),
    )


def counted(tasks: Sequence[Task], num_done: int, num_rows: int) -> TaskProgress:
    """Say how far a run is of which only the number of finished tasks is known."""
    total = sum(task.size_bytes for task in tasks)
    share = num_done / max(len(tasks), 1)
    return TaskProgress(num_done, len(tasks), int(total * share), total, num_rows)


def rows_of(result: Any) -> int:
    """Return how many rows a result stands for, 0 if it does not say."""
    return int(getattr(result, "num_rows", 0))
