"""Tasks and processes of jobs on Spark that fail once, each in its own way, at a stage."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
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
class Killer:
    """Kills the Python worker, the executor or the driver of a task, once, or fails the task.

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
        if self.victim == "task":
            raise StorageError("x", "the network is away")
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


def faulty(plan: Plan, victims: list[str], folder: Path) -> Plan:
    """Let the first tasks of a plan fail after their work, or kill who runs them."""
    (folder / "marks").mkdir()
    tasks: list[Task] = list(plan.tasks)
    for at, victim in enumerate(victims):
        tasks[at] = KilledTask(tasks[at], Killer(victim, "after", str(folder), number=at))
    return replace(plan, tasks=tuple(tasks))


@contextmanager
def replies_lost(replies: Iterable[str]) -> Iterator[None]:
    """Let commits of this process hear nothing: each claim of a version is "made", or "lost"."""
    claim = LocalStore.write_if_absent
    left = iter(replies)

    def unclear(store: LocalStore, path: str, data: Any) -> None:
        reply = next(left, None) if path.endswith(".manifest") else None
        if reply is None:
            return claim(store, path, data)
        if reply == "made":
            claim(store, path, data)
        raise StorageError(path, "the reply was lost", "unknown")

    with mock.patch.object(LocalStore, "write_if_absent", unclear):
        yield


def data_files(uri: str) -> tuple[set[str], set[str]]:
    """Return the data files that are there, and those that the newest version names."""
    there = {path.name for path in (Path(uri) / "data").iterdir()}
    fragments = lance_nb.dataset(uri).get_fragments()
    return there, {Path(file.path).name for one in fragments for file in one.data_files()}


def cleaned(uri: str) -> None:
    """Remove what no version names, however young."""
    lance_nb.dataset(uri).cleanup_old_versions(older_than=timedelta(days=1), delete_unverified=True)
