"""Runs that are interrupted, and are finished without repeating the tasks that were done."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    InvalidInputError,
    RetryableCommitConflictError,
    RunCancelledError,
    StorageError,
)
from lance_nb.format.fragment_list import FragmentList
from lance_nb.spark import journal
from lance_nb.spark import plan as plan_module
from lance_nb.spark.journal_json import ResumeOptions, from_json, to_json
from lance_nb.spark.plan import Plan
from lance_nb.spark.run import RunOptions, run_once
from lance_nb.spark.task_log import RecordedTask, TaskLog
from tests.unit.spark.conftest import at_commit, rows
from tests.unit.spark.test_journal_json import PLANS

# Of one task are: compact, upsert, columns by key.
RESUMED = ("append", "backfill", "cast", "clone", "delete whole fragments", "index", "update")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often each recorded task has run."""
    counts: Counter[int] = Counter()
    run = RecordedTask.run

    def counted(task: RecordedTask) -> Any:
        counts[task.number] += 1
        return run(task)

    monkeypatch.setattr(RecordedTask, "run", counted)
    return counts


def interrupted(plan: Plan, after: int, error: type[BaseException] = KeyboardInterrupt) -> str:
    """Run a plan that is interrupted before task ``after``; return its operation id."""
    with pytest.MonkeyPatch.context() as patched:
        run = RecordedTask.run

        def dies(task: RecordedTask) -> Any:
            if task.number >= after:
                raise error
            return run(task)

        patched.setattr(RecordedTask, "run", dies)
        with pytest.raises(error):
            run_once(plan, RunOptions(engine="local", journal=True))
    return plan.operation_id


def records(dataset: LanceDataset) -> list[str]:
    folder = Path(dataset.uri) / "_lance_nb_jobs"
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


def seen(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: json.dumps(row, sort_keys=True))


def dies_at_commit(plan: Plan, *, committed: bool = False, journal: bool = True) -> str:
    """Run a plan whose driver dies before or after the commit; return its operation id."""
    with at_commit(commits=committed, error=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        run_once(plan, RunOptions.of("kept", {"engine": "local", "journal": journal}))
    plan_module._opened.cache_clear()  # as in the process that resumes it
    return plan.operation_id


def clean(dataset: LanceDataset, *, days: int = 0) -> None:
    """Remove older versions, and all files that no version names."""
    newest = lance_nb.dataset(dataset.uri)
    newest.cleanup_old_versions(
        older_than=timedelta(days=days), delete_unverified=True, error_if_tagged_old_versions=False
    )


@pytest.mark.parametrize("name", RESUMED)
def test_only_missing_tasks_run_and_the_outcome_is_that_of_a_whole_run(
    dataset: LanceDataset, tmp_path: Path, ran: Counter[int], name: str
) -> None:
    twin = lance_nb.write_dataset(rows(0, 100), str(tmp_path / "twin.lance"), max_rows_per_file=10)
    expected = run_once(PLANS[name](twin), RunOptions(engine="local"))

    plan = PLANS[name](dataset)
    operation_id = interrupted(plan, len(plan.tasks) - 1)
    (entry,) = spark.unfinished()
    assert (entry.operation_id, entry.num_tasks) == (operation_id, len(plan.tasks))
    assert f"interrupted while it ran {len(plan.tasks)} tasks" in str(entry)
    assert ran.total() == len(records(dataset)) == len(plan.tasks) - 1

    made = spark.resume(operation_id, engine="local")
    assert ran == Counter(range(len(plan.tasks)))
    assert made.version == expected.version
    assert seen(made.to_table()) == seen(expected.to_table())
    assert seen(lance.dataset(made.uri).to_table()) == seen(expected.to_table())
    assert made.list_indices() == [] or len(made.list_indices()) == len(expected.list_indices())
    assert spark.unfinished() == []
    assert records(dataset) == []
    assert lance_nb.verify(made.uri).ok
    with pytest.raises(InvalidInputError, match="no unfinished operation"):
        spark.resume(operation_id)


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_SQ"])
def test_what_a_vector_index_has_learned_is_kept(
    dataset: LanceDataset, ran: Counter[int], kind: str
) -> None:
    values = np.random.default_rng(3).random(400, np.float32)
    vectors = pa.table({"v": pa.FixedSizeListArray.from_arrays(values, 4)})
    dataset.add_columns(vectors.to_reader(), read_columns=[])
    pieces = {"num_sub_vectors": 2, "num_bits": 4} if kind == "IVF_PQ" else {}
    wanted = {"num_partitions": 3, **pieces}
    plan = spark.plan_index(dataset, "v", kind, parameters=wanted, task_bytes=1)
    made = spark.resume(interrupted(plan, 6), engine="local")
    assert ran == Counter(range(10))
    segments = made.index_statistics("v_idx")["segments"]
    assert len(segments) == 10
    assert all(one["centroids"] == segments[0]["centroids"] for one in segments)
    found = made.to_table(["id"], nearest={"column": "v", "q": values[:4], "k": 1, "nprobes": 3})
    assert found["id"].to_pylist() == [0]


def test_a_function_is_asked_for_and_is_never_stored(
    dataset: LanceDataset, cache: Path, ran: Counter[int]
) -> None:
    def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"twice": pa.compute.multiply(batch["id"], 2)})

    plan = spark.plan_columns(dataset, doubled, ["id"], task_bytes=1)
    operation_id = interrupted(plan, 4)
    assert b"doubled" not in (cache / "lance_nb" / "jobs" / f"{operation_id}.tasks").read_bytes()
    with pytest.raises(InvalidInputError, match=r"Pass the same function as function=\.\.\."):
        spark.resume(operation_id)
    made = spark.resume(operation_id, function=doubled, engine="local")
    assert max(ran.values()) == 1
    assert made.to_table()["twice"].to_pylist() == [2 * one for one in range(100)]


def test_no_secret_is_kept_and_credentials_are_asked_for(
    dataset: LanceDataset, cache: Path, tmp_path: Path
) -> None:
    secrets = {"key": "TOPSECRET-1", "secret": "TOPSECRET-2"}
    opened = lance_nb.dataset(dataset.uri, storage_options=secrets)
    parquet.write_table(rows(100, 120), tmp_path / "new.parquet", row_group_size=5)
    file = str(tmp_path / "new.parquet")
    for plan in (
        spark.plan_delete(opened, "id < 40", task_bytes=1),
        spark.plan_clone(opened, str(tmp_path / "c.lance"), {"token": "TOPSECRET-3"}, task_bytes=1),
        spark.plan_append(
            opened, file, spark.SourceSettings(options={"token": "TOPSECRET-4"}), task_bytes=1
        ),
    ):
        operation_id = interrupted(plan, 1)
        kept = cache / "lance_nb" / "jobs" / f"{operation_id}.tasks"
        assert b"TOPSECRET" not in kept.read_bytes()
        for name in records(dataset):
            record = Path(dataset.uri) / "_lance_nb_jobs" / name
            assert b"TOPSECRET" not in record.read_bytes()
        with pytest.raises(InvalidInputError, match="storage option 'secret'"):
            spark.resume(operation_id)
        spark.forget(operation_id)


def replaced(path: Path) -> None:
    """Write the record of another task, as somebody who can write the dataset could."""
    path.write_bytes(path.with_name(path.name.replace("-0.json", "-1.json")).read_bytes())


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [replaced, truncated, changed, emptied, removed])
def test_a_record_that_is_not_sound_runs_again(
    dataset: LanceDataset, ran: Counter[int], damage: Callable[[Path], None]
) -> None:
    plan = spark.plan_update(dataset, {"name": "'x'"}, "id < 50", task_bytes=1)
    operation_id = interrupted(plan, 6)
    damage(Path(dataset.uri) / "_lance_nb_jobs" / f"{operation_id}-0.json")
    made = spark.resume(operation_id, engine="local")
    assert ran == Counter({**dict.fromkeys(range(10), 1), 0: 2})
    assert made.count_rows("name = 'x'") == 50
    assert lance.dataset(made.uri).count_rows("name = 'x'") == 50


def test_files_that_a_clean_up_removed_are_written_again(
    dataset: LanceDataset, ran: Counter[int]
) -> None:
    plan = spark.plan_append(dataset, dataset, task_bytes=1)
    operation_id = interrupted(plan, 7)
    clean(dataset, days=1)
    made = spark.resume(operation_id, engine="local")
    assert ran.total() == 7 + 10
    assert lance.dataset(made.uri).count_rows() == 200


def test_a_folder_for_the_records_can_be_named(dataset: LanceDataset, tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    runs = iter(range(5))

    def stops() -> bool:
        return next(runs, None) is None

    with pytest.raises(RunCancelledError):
        run_once(
            spark.plan_delete(dataset, "id < 40", task_bytes=1),
            RunOptions(engine="local", journal=folder, stop=stops),
        )
    assert list((folder / "_lance_nb_jobs").iterdir()) == []  # a run that is cancelled is over
    assert records(dataset) == []
    assert spark.unfinished() == []
    with pytest.raises(InvalidInputError, match="must not have a user and password"):
        TaskLog.of(spark.plan_delete(dataset, "id < 1").pinned, "x", "ftp://me:x@host/jobs")


def test_a_run_that_goes_on_elsewhere_is_not_resumed(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation_id = interrupted(spark.plan_delete(dataset, "id < 40", task_bytes=1), 3)
    with monkeypatch.context() as patched:
        patched.setattr(journal, "_RUNNING", {operation_id})
        (entry,) = spark.unfinished()
        assert "running in process" in str(entry)
        with pytest.raises(InvalidInputError, match="wait until it is over"):
            spark.resume(operation_id)
    assert spark.resume(operation_id).count_rows() == 60


def test_a_failing_task_says_how_to_go_on(dataset: LanceDataset) -> None:
    with pytest.MonkeyPatch.context() as patched:
        run = RecordedTask.run

        def fails(task: RecordedTask) -> Any:
            if task.number == 4:
                raise StorageError("x", "the network is away")
            return run(task)

        patched.setattr(RecordedTask, "run", fails)
        with pytest.raises(StorageError) as caught:
            run_once(
                spark.plan_delete(dataset, "id < 40", task_bytes=1),
                RunOptions(engine="local", journal=True),
            )
    (entry,) = spark.unfinished()
    assert f"lance_nb.spark.resume('{entry.operation_id}')" in caught.value.__notes__[0].replace(
        '"', "'"
    )
    assert spark.resume(entry.operation_id).count_rows() == 60


def test_small_plans_are_not_recorded(dataset: LanceDataset, ran: Counter[int]) -> None:
    run_once(spark.plan_delete(dataset, "id < 40", task_bytes=1), RunOptions(engine="local"))
    assert ran == Counter()
    assert not (Path(dataset.uri) / "_lance_nb_jobs").exists()


def test_progress_of_a_resumed_run_counts_what_was_done(dataset: LanceDataset) -> None:
    operation_id = interrupted(spark.plan_delete(dataset, "id < 40", task_bytes=1), 6)
    told: list[Any] = []
    spark.resume(operation_id, engine="local", progress=told.append)
    counts = [(one.num_done, one.num_tasks) for one in told if one.num_tasks]
    assert counts[0] == (6, 10)
    assert counts[-1] == (10, 10)


# --- a conflict -----------------------------------------------------------------------------------


@pytest.fixture
def meets() -> Iterator[list[Callable[[], object]]]:
    """What others do, each before one attempt to commit."""
    others: list[Callable[[], object]] = []
    with at_commit(others) as plans:
        yield others
    assert len(plans) >= len(others)


@pytest.mark.parametrize("resumes", [False, True], ids=["run", "resumed"])
def test_a_conflict_repeats_only_the_fragments_that_others_changed(
    dataset: LanceDataset, meets: list[Callable[[], object]], ran: Counter[int], resumes: bool
) -> None:
    def other() -> None:
        lance.dataset(dataset.uri).update({"name": "'theirs'"}, "id = 5")  # moves a row

    plan = spark.plan_update(dataset, {"name": "'ours'"}, "id < 40", task_bytes=1)
    if resumes:
        operation_id = interrupted(plan, 3)
        meets.append(other)
        made = spark.resume(operation_id, engine="local")
    else:
        meets.append(other)
        made = spark.run.run(dataset, lambda _: plan, RunOptions(engine="local", journal=True))
    # fragment 0 was changed and fragment 10 is new: one task for both
    assert ran.total() == 10 + 1
    for opened in (made, lance.dataset(made.uri)):
        table = opened.to_table().sort_by("id")
        assert table["id"].to_pylist() == list(range(100))
        assert table["name"].to_pylist()[:40] == ["ours"] * 40
        assert table["name"].to_pylist()[40:] == rows(40, 100)["name"].to_pylist()


def test_a_backfill_goes_on_after_an_append(
    dataset: LanceDataset, meets: list[Callable[[], object]], ran: Counter[int]
) -> None:
    meets.append(lambda: lance.write_dataset(rows(100, 110), dataset.uri, mode="append"))
    plan = spark.plan_columns(dataset, {"twice": "id * 2"}, task_bytes=1)
    made = spark.run.run(dataset, lambda _: plan, RunOptions(engine="local", journal=True))
    assert ran.total() == 10 + 1
    table = lance.dataset(made.uri).to_table().sort_by("id")
    assert table["twice"].to_pylist() == [2 * one for one in range(110)]


def test_work_is_kept_when_others_commit_too_often(
    dataset: LanceDataset, meets: list[Callable[[], object]], ran: Counter[int]
) -> None:
    plan = spark.plan_columns(dataset, {"twice": "id * 2"}, task_bytes=1)
    for start in range(100, 140, 10):
        new = rows(start, start + 10)
        meets.append(lambda new=new: lance.write_dataset(new, dataset.uri, mode="append"))
    with pytest.raises(RetryableCommitConflictError) as caught:
        spark.run.run(dataset, lambda _: plan, RunOptions(engine="local", journal=True))
    (entry,) = spark.unfinished()
    assert f"lance_nb.spark.resume({entry.operation_id!r})" in caught.value.__notes__[0]
    assert ran.total() == 10 + 3  # what is new in each attempt is one task
    made = spark.resume(entry.operation_id, engine="local")
    table = lance.dataset(made.uri).to_table().sort_by("id")
    assert table["twice"].to_pylist() == [2 * one for one in range(140)]
    assert spark.unfinished() == []
    assert records(dataset) == []


def test_another_schema_is_planned_anew(
    dataset: LanceDataset, meets: list[Callable[[], object]]
) -> None:
    meets.append(lambda: lance.dataset(dataset.uri).add_columns({"more": "id"}))
    made = spark.backfill(dataset, {"twice": "id * 2"}, engine="local")
    table = lance.dataset(made.uri).to_table().sort_by("id")
    assert table.column_names == ["id", "name", "more", "twice"]
    assert table["twice"].to_pylist() == [2 * one for one in range(100)]


# --- the driver died at the commit ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["append", "backfill", "compact", "index", "update", "upsert"])
def test_results_whose_files_a_clean_up_removed_are_not_committed(
    dataset: LanceDataset, tmp_path: Path, name: str
) -> None:
    twin = lance_nb.write_dataset(rows(0, 100), str(tmp_path / "twin.lance"), max_rows_per_file=10)
    expected = run_once(PLANS[name](twin), RunOptions(engine="local"))
    plan = PLANS[name](dataset)
    operation_id = dies_at_commit(plan)
    clean(dataset, days=1)
    if len(plan.tasks) == 1:  # which is not recorded
        with pytest.raises(
            InvalidInputError, match=r"its file '.*' was removed\. Check the history"
        ):
            spark.resume(operation_id, engine="local")
        assert lance.dataset(dataset.uri).version == 1
        return
    made = spark.resume(operation_id, engine="local")
    assert seen(lance.dataset(made.uri).to_table()) == seen(expected.to_table())
    assert len(made.list_indices()) == len(expected.list_indices())
    assert lance_nb.verify(made.uri).ok
    assert spark.unfinished() == []
    assert records(dataset) == []


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "not recorded"])
def test_kept_results_that_meet_a_conflict(
    dataset: LanceDataset, ran: Counter[int], is_recorded: bool
) -> None:
    plan = spark.plan_update(dataset, {"name": "'ours'"}, "id < 40", task_bytes=1)
    operation_id = dies_at_commit(plan, journal=is_recorded)
    lance.dataset(dataset.uri).update({"name": "'theirs'"}, "id = 5")
    if not is_recorded:
        with pytest.raises(RetryableCommitConflictError) as caught:
            spark.resume(operation_id, engine="local")
        assert f"lance_nb.spark.forget({operation_id!r})" in caught.value.__notes__[0]
        assert lance.dataset(dataset.uri).version == 2
        return
    made = spark.resume(operation_id, engine="local")
    assert ran.total() == 10 + 1
    assert lance.dataset(made.uri).count_rows("name = 'ours'") == 40
    assert lance.dataset(made.uri).count_rows() == 100
    assert spark.unfinished() == []


@pytest.mark.parametrize("name", ["append", "update"])
def test_a_change_that_others_have_cleaned_away_is_not_done_twice(
    dataset: LanceDataset, name: str
) -> None:
    plan = PLANS[name](dataset)
    operation_id = dies_at_commit(plan, committed=True)
    lance.write_dataset(rows(500, 510), dataset.uri, mode="append")
    clean(dataset)  # also the version that has our transaction
    before = lance.dataset(dataset.uri).to_table()
    with pytest.raises((InvalidInputError, RetryableCommitConflictError), match="was removed"):
        spark.resume(operation_id, engine="local")
    assert lance.dataset(dataset.uri).version == 3
    assert lance.dataset(dataset.uri).to_table() == before
    spark.forget(operation_id)
    assert records(dataset) == []


@pytest.mark.parametrize("name", ["append", "backfill", "delete", "update", "upsert"])
def test_a_change_whose_version_alone_was_removed_is_not_done_twice(
    dataset: LanceDataset, name: str
) -> None:
    lance.dataset(dataset.uri).tags.create("kept", 1)
    plan = PLANS[name](dataset)
    operation_id = dies_at_commit(plan, committed=True)
    lance.write_dataset(rows(500, 510).select(["id", "name"]), dataset.uri, mode="append")
    clean(dataset)
    assert [one["version"] for one in lance.dataset(dataset.uri).versions()] == [1, 3]
    before = lance.dataset(dataset.uri).to_table()
    with pytest.raises((InvalidInputError, RetryableCommitConflictError)):
        spark.resume(operation_id, engine="local")
    assert lance.dataset(dataset.uri).version == 3
    assert lance.dataset(dataset.uri).to_table() == before


def test_a_commit_is_found_although_the_version_that_was_read_is_gone(
    dataset: LanceDataset,
) -> None:
    plan = spark.plan_delete(dataset, "id < 40", task_bytes=1)
    operation_id = dies_at_commit(plan, committed=True)
    clean(dataset)
    assert spark.resume(operation_id, engine="local").version == 2
    assert spark.unfinished() == []


def test_tasks_whose_version_was_removed_say_what_to_do(dataset: LanceDataset) -> None:
    operation_id = interrupted(spark.plan_delete(dataset, "id < 40", task_bytes=1), 3)
    plan_module._opened.cache_clear()
    lance.write_dataset(rows(500, 510), dataset.uri, mode="append")
    clean(dataset)
    with pytest.raises(InvalidInputError, match="version 1, which it reads, was removed") as caught:
        spark.resume(operation_id, engine="local")
    assert f"lance_nb.spark.forget({operation_id!r})" in str(caught.value)
    assert lance.dataset(dataset.uri).count_rows() == 110


# --- how tasks are kept ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_tasks_survive_and_shared_values_are_written_once(dataset: LanceDataset, name: str) -> None:
    plan = PLANS[name](dataset)
    data = to_json(plan.tasks)
    assert to_json(from_json(data, ResumeOptions())) == data
    assert data.count(b'"is":"PinnedVersion"') <= 2  # a clone copies files, which name no version


def test_a_task_costs_few_bytes(dataset: LanceDataset) -> None:
    plan = spark.plan_update(dataset, {"name": "'x'"}, "id < 15", task_bytes=1)
    few = len(to_json(plan.tasks))
    many = len(to_json(plan.tasks * 100))
    assert (many - few) / (len(plan.tasks) * 99) < 400


def test_a_compaction_that_was_committed_is_not_committed_again(dataset: LanceDataset) -> None:
    plan = spark.plan_compaction(dataset)
    dies_at_commit(plan, committed=True)
    there = lance_nb.dataset(dataset.uri)
    assert len(there.get_fragments()) == 1
    assert there.version_info(there.version).message == "kept"
    lance_nb.dataset(dataset.uri).update_config({"other": "writer"})
    made = spark.resume(plan.operation_id)
    assert made.version == there.version
    assert lance.dataset(dataset.uri).version == there.version + 1
    assert spark.unfinished() == []


def test_tasks_of_a_backfill_do_not_look_at_other_fragments(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = spark.plan_columns(dataset, {"twice": "id * 2"}, task_bytes=1)
    decoded: Counter[int] = Counter()
    plan_module._opened.cache_clear()  # as in a worker, which has decoded nothing
    read = FragmentList.__getitem__

    def counted(found: FragmentList, at: Any) -> Any:
        decoded[at] += 1
        return read(found, at)

    monkeypatch.setattr(FragmentList, "__getitem__", counted)
    plan.tasks[3].run()
    assert set(decoded) == {3}


def test_orphans_are_listed_with_their_job(dataset: LanceDataset) -> None:
    assert spark.orphans(dataset).num_rows == 0
    plan = spark.plan_update(dataset, {"name": "'x'"}, "id < 35", task_bytes=1)
    spark.plan_update(dataset, {"name": "'y'"}, "id = 99", task_bytes=1).tasks[-1].run()
    operation_id = interrupted(plan, 2)
    found = spark.orphans(dataset.uri).to_pylist()
    assert len(found) == 3
    ours = [one for one in found if one["job"] is not None]
    assert {(one["job"], one["operation"]) for one in ours} == {
        (operation_id, "update name where id < 35")
    }
    assert len(ours) == 2
    data = Path(dataset.uri)
    assert all((data / one["path"]).stat().st_size == one["size_bytes"] for one in found)
    made = spark.resume(operation_id, engine="local")
    (left,) = spark.orphans(made).to_pylist()
    assert (left["job"], left["path"]) == (None, next(
        one["path"] for one in found if one["job"] is None
    ))  # fmt: skip
    made.cleanup_old_versions(older_than=timedelta(days=1), delete_unverified=True)
    assert spark.orphans(made).num_rows == 0
    assert lance.dataset(dataset.uri).count_rows("name = 'x'") == 35
