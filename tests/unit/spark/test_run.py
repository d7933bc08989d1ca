from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CommitStateUnknownError,
    InvalidInputError,
    RetryableCommitConflictError,
    RunCancelledError,
)
from lance_nb.spark import run as run_module
from lance_nb.spark.plan import Plan
from tests.unit.spark.conftest import at_commit, rows


def test_progress_is_reported_and_ends_at_the_total(dataset: LanceDataset) -> None:
    told: list[spark.TaskProgress] = []
    spark.delete(dataset, "id < 5", engine="local", progress=told.append)
    assert told[-1].num_done == told[-1].num_tasks
    assert told[-1].done_bytes == told[-1].total_bytes


def test_a_stop_commits_nothing(dataset: LanceDataset) -> None:
    with pytest.raises(RunCancelledError, match="nothing was committed"):
        spark.delete(dataset, "id < 5", engine="local", stop=lambda: True)
    assert lance_nb.dataset(dataset.uri).version == dataset.version


def test_a_retryable_conflict_plans_again(dataset: LanceDataset) -> None:
    def other() -> None:
        lance_nb.dataset(dataset.uri).insert(rows(0, 1))
        raise RetryableCommitConflictError("another writer")

    with at_commit([other]) as plans:
        made = spark.delete(dataset, "id = 0")
    assert [plan.pinned.version for plan in plans] == [1, 2]
    assert made.count_rows() == 99


@pytest.mark.parametrize("verb", ["delete", "upsert"])
def test_an_unknown_outcome_is_resumed_without_running_again(
    dataset: LanceDataset, verb: str
) -> None:
    lost = CommitStateUnknownError("the answer was lost")
    with at_commit(error=lost), pytest.raises(CommitStateUnknownError):
        if verb == "delete":
            spark.delete(dataset, "id < 50")
        else:
            spark.upsert(dataset, rows(95, 110), "id")
    assert "lance_nb.spark.resume" in lost.__notes__[0]
    (entry,) = spark.unfinished()
    made = spark.resume(entry.operation_id)
    count = 50 if verb == "delete" else 110
    assert (made.version, made.count_rows()) == (dataset.version + 1, count)
    assert spark.unfinished() == []


def test_a_kernel_that_dies_before_the_commit_loses_no_work(dataset: LanceDataset) -> None:
    with at_commit(commits=False, error=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        spark.update(dataset, {"name": "'x'"}, "id < 10")
    (entry,) = spark.unfinished()
    assert "update" in str(entry)
    assert spark.resume(entry.operation_id).count_rows("name = 'x'") == 10
    with pytest.raises(InvalidInputError, match="no unfinished operation"):
        spark.resume(entry.operation_id)


def test_what_is_committed_is_not_kept(dataset: LanceDataset, cache: Path) -> None:
    spark.delete(dataset, "id = 1")
    assert list((cache / "lance_nb" / "jobs").iterdir()) == []


@dataclass(frozen=True)
class Weight:
    size_bytes: int

    def run(self) -> None: ...


@pytest.mark.parametrize(
    ("megabytes", "tasks", "engine", "chosen"),
    [
        (1, 4, "auto", "local"),
        (900, 1, "auto", "local"),
        (900, 8, "auto", "local"),
        (9000, 70, "auto", "local"),
        (1, 4, "spark", "spark"),
    ],
)
@pytest.mark.usefixtures("no_session")
def test_the_engine_is_chosen_by_size(
    dataset: LanceDataset, megabytes: int, tasks: int, engine: str, chosen: str
) -> None:
    empty = spark.plan_delete(dataset, "id = 1")
    plan = Plan("delete", "x", empty.pinned, (Weight(megabytes * 2**20 // tasks),) * tasks)
    assert spark.choose(plan, engine).name == chosen
    said = spark.explain(plan, engine)
    assert f"engine: {chosen}" in said
    assert f"read version: main:{dataset.version}" in said


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.spark.run.find_session", lambda: None)


@pytest.mark.parametrize(
    ("megabytes", "master", "chosen"),
    [(100, "local[2]", "local"), (200, "local[2]", "spark"), (200, "spark://host", "spark")],
)
def test_a_session_that_is_there_is_used(
    dataset: LanceDataset,
    monkeypatch: pytest.MonkeyPatch,
    megabytes: int,
    master: str,
    chosen: str,
) -> None:
    session = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    monkeypatch.setattr("lance_nb.spark.run.find_session", lambda: session)
    empty = spark.plan_delete(dataset, "id = 1")
    plan = replace(empty, tasks=(Weight(megabytes * 2**20 // 2),) * 2)
    assert spark.choose(plan).name == chosen


@pytest.mark.usefixtures("no_session")
def test_a_server_that_is_named_is_taken_for_very_large_work(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = spark.plan_delete(dataset, "id = 1")
    plan = Plan("delete", "x", empty.pinned, (Weight(2**30),) * 5)
    assert spark.choose(plan).name == "local"
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    assert "SPARK_REMOTE names a server" in spark.explain(plan)
    assert spark.choose(replace(plan, tasks=plan.tasks[:3])).name == "local"


def test_wrong_names_are_refused(dataset: LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="not one of auto, local, spark"):
        spark.delete(dataset, "id = 1", engine="dask")
    with pytest.raises(InvalidInputError, match="unknown option 'engin'"):
        spark.delete(dataset, "id = 1", engin="local")


def test_missing_java_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "Spark needs Java 17" in (spark.why_not() or "")
    with pytest.raises(NotImplementedError, match="install a JRE"):
        spark.start_session()
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")  # Java is there, not here
    assert spark.why_not() is None


def test_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for text, is_fine in (('"1.8.0_412"', False), ('"11.0.2"', False), ('"17.0.1"', True)):
        (tmp_path / "release").write_text(f"IMPLEMENTOR=x\nJAVA_VERSION={text}\n")
        assert ("bin/java is Java" not in (spark.why_not() or "")) == is_fine


def test_a_run_is_cancelled_while_its_session_starts(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(*_: Any, **_more: Any) -> Any:
        started.set()
        assert go_on.wait(20)
        raise AssertionError("nobody waits for this session")

    monkeypatch.setattr(run_module, "start_session", slow)
    monkeypatch.setattr(run_module, "find_session", lambda: None)
    told: list[spark.RunProgress] = []
    with pytest.raises(RunCancelledError):
        spark.delete(dataset, "id < 3", engine="spark", progress=told.append, stop=started.is_set)
    assert (told[-1].phase, told[-1].num_tasks, told[-1].num_done) == ("starting spark", 1, 0)
    assert lance_nb.dataset(dataset.uri).version == dataset.version
    go_on.set()


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("change", ["delete rows", "delete a fragment", "update", "append"])
def test_a_compaction_beside_a_change_groups_the_changed_fragments_anew(
    dataset: LanceDataset, change: str, parts: int
) -> None:
    other = lance.dataset(dataset.uri)
    changes = {
        "append": lambda: other.insert(rows(100, 110)),
        "update": lambda: other.update({"name": "'x'"}, "id = 25"),
        "delete rows": lambda: other.delete("id = 25"),
        "delete a fragment": lambda: other.delete("id >= 20 AND id < 30"),
    }
    how = {"target_rows_per_fragment": 50}
    with at_commit([changes[change]]) as tried:
        made = spark.compact(dataset, compaction=how, engine="local", parts=parts)
    newest = lance.dataset(dataset.uri)
    assert newest.version == made.version
    before = lance.dataset(dataset.uri, version=2).to_table()
    assert newest.to_table().sort_by("id") == before.sort_by("id")
    # Rewritten are the ten fragments of the plan, without those that the other writer added.
    num_added = 1 if change in {"append", "update"} else 0
    assert len(made.get_fragments()) <= 2 + num_added + (change == "delete rows")
    assert len(tried) == parts + (change != "append")
    made.validate()
