"""Tasks in this process: on threads where they are large, and never in another process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, RunCancelledError
from lance_nb.spark import engine
from lance_nb.spark.engine import LocalEngine, TaskProgress
from lance_nb.spark.plan import Plan
from lance_nb.spark.run import RunOptions, run_once
from tests.house.source import ROOT
from tests.support.plain_script import PLAIN
from tests.unit.spark.conftest import rows


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "cpu_count", lambda: 2)


def never() -> bool:
    return False


def unheard(_: TaskProgress) -> None: ...


def large(plan: Plan) -> Plan:
    """Say of all tasks that they are large."""
    tasks = tuple(replace(one, size_bytes=engine.LARGE_BYTES) for one in plan.tasks)  # type: ignore[type-var]
    return replace(plan, tasks=tasks)


@dataclass(frozen=True)
class Meets:
    """A task that ends when another one runs at the same time, or fails."""

    barrier: threading.Barrier
    name: str
    size_bytes: int = engine.LARGE_BYTES

    def run(self) -> str:
        self.barrier.wait(20)
        return self.name


def test_large_tasks_run_side_by_side_and_keep_their_order() -> None:
    tasks = [Meets(threading.Barrier(2), "a")] * 2
    told: list[TaskProgress] = []
    assert LocalEngine().run([*tasks, replace(tasks[0], name="b")] * 2, told.append, never) == [
        "a", "a", "b", "a", "a", "b",
    ]  # fmt: skip
    assert told[-1].num_done == told[-1].num_tasks == 6


@dataclass(frozen=True)
class Where:
    """A task that tells which thread runs it."""

    size_bytes: int = engine.LARGE_BYTES
    calls_user_code: bool = False

    def run(self) -> threading.Thread:
        return threading.current_thread()


def test_small_tasks_and_those_of_the_user_run_one_after_the_other_here() -> None:
    here = threading.current_thread()
    for one in (Where(1), Where(calls_user_code=True)):
        assert LocalEngine().run([one] * 3, unheard, never) == [here] * 3
    assert here not in LocalEngine().run([Where()] * 3, unheard, never)


def test_a_backfill_by_a_function_is_the_users_code(dataset: LanceDataset) -> None:
    pytest.importorskip("pyspark")
    by_sql = spark.plan_columns(dataset, {"twice": "id * 2"}).tasks[0]
    by_function = spark.plan_columns(
        dataset, lambda batch: batch.select(["id"]).rename_columns(["x"])
    )
    assert not by_sql.calls_user_code  # type: ignore[attr-defined]
    assert by_function.tasks[0].calls_user_code  # type: ignore[attr-defined]


@dataclass(frozen=True)
class FailsOnce:
    """A task of which the first run fails, while the others take some time."""

    started: list[int]
    size_bytes: int = engine.LARGE_BYTES

    def run(self) -> None:
        self.started.append(1)
        if len(self.started) == 1:
            raise InvalidInputError("this task cannot be done")
        threading.Event().wait(0.05)


def test_an_error_or_a_stop_begins_no_further_task() -> None:
    task = FailsOnce([])
    with pytest.raises(InvalidInputError, match="cannot be done"):
        LocalEngine().run([task] * 50, unheard, never)
    assert len(task.started) < 50
    with pytest.raises(RunCancelledError, match="0 of 50"):
        LocalEngine().run([FailsOnce([])] * 50, unheard, lambda: True)


def test_changes_on_threads_are_the_same(dataset: LanceDataset, tmp_path: Path) -> None:
    other = lance_nb.write_dataset(rows(0, 100), str(tmp_path / "b.lance"), max_rows_per_file=10)
    how = RunOptions(engine="local")
    for one, sized in ((dataset, large), (other, lambda plan: plan)):
        made = run_once(sized(spark.plan_delete(one, "id % 3 = 0", task_bytes=1)), how)
        update = spark.plan_update(made, {"name": "'x'"}, "id % 2 = 0", task_bytes=1)
        made = run_once(sized(update), how)
        fill = spark.plan_columns(made, {"twice": "id * 2"}, task_bytes=1)
        run_once(sized(fill), how).validate()
    assert lance_nb.dataset(dataset.uri).to_table() == lance_nb.dataset(other.uri).to_table()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "local"])
def test_a_script_without_a_guard_commits_once(
    dataset: LanceDataset, tmp_path: Path, engine: str
) -> None:
    parquet.write_table(rows(100, 110), tmp_path / "small.parquet")
    for name in ("a", "b"):
        parquet.write_table(rows(110, 150), tmp_path / f"big-{name}.parquet")
    script = tmp_path / "script.py"
    script.write_text(PLAIN)
    done = subprocess.run(
        [sys.executable, script, dataset.uri, tmp_path, engine],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False, timeout=300, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "190 rows, version 3\n"
