"""Tasks that fail once, each in its own way, after they have done their work."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance_nb
from lance_nb.errors import StorageError
from lance_nb.spark.plan import Plan, Task


@dataclass(frozen=True)
class Faulty:
    """A task whose first attempt writes its files and then ends badly: "error", "crash", "kill".

    A crash ends the Python worker, a kill the executor around it.
    """

    task: Task
    fault: str
    mark: str

    @property
    def size_bytes(self) -> int:
        return self.task.size_bytes

    def run(self) -> Any:
        found = self.task.run()
        mark = Path(self.mark)
        if mark.exists():
            return found
        mark.touch()
        if self.fault == "error":
            raise StorageError("x", "the network is away")
        os.kill(os.getpid() if self.fault == "crash" else executor_of_this(), signal.SIGKILL)
        return None


def executor_of_this() -> int:
    """Return the process of the JVM that this Python worker works for."""
    daemon = os.getppid()
    stat = Path(f"/proc/{daemon}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def faulty(plan: Plan, faults: list[str], folder: Path) -> Plan:
    """Give the first tasks of a plan faults."""
    tasks: list[Task] = list(plan.tasks)
    for at, fault in enumerate(faults):
        tasks[at] = Faulty(tasks[at], fault, str(folder / f"tried-{at}"))
    return replace(plan, tasks=tuple(tasks))


def data_files(uri: str) -> tuple[set[str], set[str]]:
    """Return the data files that are there, and those that the newest version names."""
    there = {path.name for path in (Path(uri) / "data").iterdir()}
    fragments = lance_nb.dataset(uri).get_fragments()
    return there, {Path(file.path).name for one in fragments for file in one.data_files()}


def cleaned(uri: str) -> None:
    """Remove what no version names, however young."""
    lance_nb.dataset(uri).cleanup_old_versions(older_than=timedelta(days=1), delete_unverified=True)
