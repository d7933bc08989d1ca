"""Tasks and the disk: here, and as a Python worker of Spark's runs them, without Spark."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import NotSupportedError, StorageError
from lance_nb.spark.engine import LocalEngine, TaskProgress, run_task
from lance_nb.spark.spark_engine import RunTasks, SparkJob, pack_groups, unpack_group
from lance_nb.spark.task_log import TaskLog
from lance_nb.storage.local import LocalStore
from tests.unit.spark.conftest import rows


@dataclass(frozen=True)
class PutFile:
    """A task that writes one file."""

    folder: str
    name: str
    size_bytes: int = 4

    def run(self) -> str:
        writer = LocalStore(self.folder).create(self.name)
        writer.write([b"data"])
        writer.finish()
        return self.name


class NoCounter:
    def add(self, num_rows: int) -> None:
        assert num_rows == 0


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, list[str]]]:
    """Hold the disk back until the event is set; lists what it has."""
    gate, done, real = threading.Event(), [], os.fsync

    def sync(descriptor: int) -> None:
        assert gate.wait(20)
        real(descriptor)
        done.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr(os, "fsync", sync)
    yield gate, done
    gate.set()


def worker_of(folder: Path) -> Iterator[Any]:
    """Run two tasks of one group; gives what each returned."""
    tasks = tuple(PutFile(str(folder), name) for name in ("a", "b"))
    counter: Any = NoCounter()
    work = RunTasks(*pack_groups([list(enumerate(tasks))]), counter)
    for batch in work([pa.RecordBatch.from_pydict({"id": [0]})]):
        for one in batch.column("outcome"):
            yield pickle.loads(one.as_py())  # noqa: S301 - our own


def test_the_next_task_does_not_wait_for_the_disk_but_the_end_does(
    disk: tuple[threading.Event, list[str]], tmp_path: Path
) -> None:
    gate, done = disk
    outcomes = worker_of(tmp_path)
    assert [next(outcomes), next(outcomes)] == ["a", "b"]
    assert done == []
    gate.set()
    assert list(outcomes) == []
    assert {"a", "b"} <= set(done)


def test_a_group_whose_files_did_not_become_durable_does_not_end_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageError, match="Input/output error"):
        list(worker_of(tmp_path))
    with pytest.raises(StorageError, match="Input/output error"):
        run_task(PutFile(str(tmp_path), "c"))


def test_tasks_in_this_process_are_durable_when_all_have_run(
    disk: tuple[threading.Event, list[str]], tmp_path: Path
) -> None:
    gate, done = disk
    known = []

    def report(_now: TaskProgress) -> None:
        known.append(list(done))
        if len(known) == 2:
            gate.set()

    tasks = [PutFile(str(tmp_path), name) for name in ("a", "b")]
    assert LocalEngine().run(tasks, report, lambda: False) == ["a", "b"]
    assert known == [[], []]
    assert {"a", "b"} <= set(done)


def test_a_task_by_itself_is_durable_when_it_ends(
    disk: tuple[threading.Event, list[str]], tmp_path: Path
) -> None:
    gate, done = disk
    gate.set()
    assert run_task(PutFile(str(tmp_path), "a")) == "a"
    assert "a" in done


_TRACKER = SimpleNamespace(getJobIdsForGroup=lambda _group: [])
_CONTEXT = SimpleNamespace(setJobGroup=lambda *_, **_more: None, statusTracker=lambda: _TRACKER)


def finish(action: Any) -> Any:
    session: Any = SimpleNamespace(sparkContext=_CONTEXT)
    counter: Any = SimpleNamespace(value=0)
    return SparkJob(session, "work", action).finish(counter, lambda *_: None, lambda: False)


def failing(text: str) -> Any:
    def action() -> None:
        raise RuntimeError(text)

    return action


def test_workers_of_another_python_are_explained_with_what_to_set() -> None:
    assert finish(lambda: [1]) == [1]
    text = "thrown from the Python worker:\nModuleNotFoundError: No module named 'pyarrow'"
    with pytest.raises(NotSupportedError, match=r"cannot import 'pyarrow'.*PYSPARK_PYTHON"):
        finish(failing(text))
    with pytest.raises(RuntimeError, match="disk"):
        finish(failing("no room on the disk"))


def test_a_module_that_only_a_users_function_lacks_is_the_one_that_is_named() -> None:
    text = "ModuleNotFoundError: No module named '{}'\n"
    with pytest.raises(
        NotSupportedError, match=r"'my_tools\.x', which your function uses"
    ) as lacks:
        finish(failing(text.format("my_tools.x")))
    assert "Install my_tools where" in str(lacks.value)
    assert "lance_nb" not in str(lacks.value)
    with pytest.raises(NotSupportedError, match=r"'pytest', .* installed here") as only_there:
        finish(failing(text.format("pytest")))
    assert "install pytest where" in str(only_there.value)
    handled = f"{text.format('pyarrow')}\nDuring handling of the above exception, another:\n"
    with pytest.raises(NotSupportedError, match="'my_tools'"):
        finish(failing(handled + text.format("my_tools")))
    with pytest.raises(RuntimeError, match="ValueError"):
        finish(failing(f"{handled}ValueError: no\n"))


def test_a_group_has_its_own_tasks_and_what_all_share_is_sent_once(dataset: LanceDataset) -> None:
    plan = spark.plan_upsert(dataset, rows(0, 100_000), "id")  # the tasks share the source
    tasks = [*plan.tasks, *spark.plan_update(dataset, {"name": "'x'"}, task_bytes=1).tasks] * 50
    groups = [[(at, task)] for at, task in enumerate(tasks)]
    shared, packed = pack_groups(groups)
    assert max(map(len, packed)) < 400
    assert len(shared) < 2 * 1024**2
    for group, one in zip(groups, packed, strict=True):
        assert unpack_group(shared, one) == group


def test_tasks_of_every_kind_arrive_as_they_were(dataset: LanceDataset) -> None:
    plans = (
        spark.plan_cast(dataset, {"id": pa.int32()}, task_bytes=1),
        spark.plan_columns(dataset, {"twice": "id * 2"}, task_bytes=1),
        spark.plan_compaction(dataset, target_rows_per_fragment=1000),
        spark.plan_count(dataset, "id < 5", task_bytes=1),
        spark.plan_delete(dataset, "id < 5", task_bytes=1),
        spark.plan_index(dataset, "id", "BTREE", task_bytes=1),
    )
    for plan in plans:
        assert plan.tasks
        groups = [[(at, task)] for at, task in enumerate(plan.tasks)]
        shared, packed = pack_groups(groups)
        assert [unpack_group(shared, one)[0][1] for one in packed] == list(plan.tasks)


def test_a_task_inside_of_a_task_shares_too(dataset: LanceDataset, tmp_path: Path) -> None:
    log = TaskLog.of(spark.plan_delete(dataset, "id < 5").pinned, "x", str(tmp_path))
    tasks = log.recorded(spark.plan_delete(dataset, "id < 5", task_bytes=1).tasks, range(10))
    groups = [[(at, task)] for at, task in enumerate(tasks)]
    shared, packed = pack_groups(groups)
    assert max(map(len, packed)) < 400
    assert [unpack_group(shared, one)[0][1] for one in packed] == tasks
