"""Tasks that fail once, each in its own way, after they have done their work."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

import lance_nb
from lance_nb.errors import StorageError
from lance_nb.spark.merge_insert import MergeBucket
from lance_nb.spark.plan import Plan, Task
from lance_nb.storage.local import LocalStore
from lance_nb.storage.local_writer import LocalObjectWriter


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


@dataclass(frozen=True)
class Killer:
    """Kills the Python worker, the executor or the driver of a task, once.

    ``stage`` is "before", "while it writes" (when the first file would get its name) or "after".
    A mark in ``folder/marks`` holds victim and stage.
    """

    victim: str
    stage: str
    folder: str
    driver: int = 0
    number: int = 0

    def of(self, number: int) -> Killer:
        """Return the killer of another task."""
        return replace(self, number=number)

    def kill(self, stage: str) -> None:
        """Kill if this is the stage and it did not happen yet."""
        if stage != self.stage:
            return
        try:
            with (Path(self.folder) / "marks" / str(self.number)).open("x") as mark:
                mark.write(f"{self.victim}\n{stage}")
        except FileExistsError:
            return
        process = {"worker": os.getpid, "executor": executor_of_this, "driver": lambda: self.driver}
        os.kill(process[self.victim](), signal.SIGKILL)
        os._exit(1)

    def run(self, work: Any) -> Any:
        """Do the work, and kill at the stage; after it if it writes nothing."""
        self.kill("before")
        with self._killing_writes():
            made = work()
        self.kill(self.stage)
        return made

    def _killing_writes(self) -> Any:
        finish, write = LocalObjectWriter.finish, LocalStore.write

        def finished(writer: LocalObjectWriter) -> None:
            self.kill("while it writes")
            finish(writer)

        def written(store: LocalStore, path: str, data: Any) -> None:
            self.kill("while it writes")
            write(store, path, data)

        patches = ExitStack()
        patches.enter_context(mock.patch.object(LocalObjectWriter, "finish", finished))
        patches.enter_context(mock.patch.object(LocalStore, "write", written))
        return patches


@dataclass(frozen=True)
class KilledTask:
    """A task during which somebody is killed."""

    task: Task
    killer: Killer

    @property
    def size_bytes(self) -> int:
        return self.task.size_bytes

    def run(self) -> Any:
        return self.killer.run(self.task.run)


@dataclass(frozen=True)
class KilledBucket(MergeBucket):
    """A bucket of a shuffled upsert during which somebody is killed."""

    killer: Killer | None = None

    def merged(self, source: pa.Table, target: pa.Table) -> Any:
        assert self.killer is not None
        return self.killer.run(lambda: MergeBucket.merged(self, source, target))


def killing_frame(frame: Any, killer: Killer) -> Any:
    """Return a DataFrame whose first partition that has rows kills, at a stage of its reading."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        here = killer.of(1)
        here.kill("before")
        for batch in batches:
            yield batch
            here.kill("while it writes")
        here.kill("after")

    return frame.mapInArrow(rows, frame.schema)


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
