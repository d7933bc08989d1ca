"""Verbs whose tasks are not edits of rows: copies, comparisons, measures, columns by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    ColumnNotFoundError,
    DatasetAlreadyExistsError,
    InvalidInputError,
    MergeInsertError,
    NotSupportedError,
    PredicateError,
    RunCancelledError,
)
from lance_nb.spark.tasks.maintenance import plan_index
from lance_nb.spark.tasks.rows import plan_diff
from tests.unit.spark.conftest import rows


def test_a_clone_stands_alone(dataset: LanceDataset, tmp_path: Path) -> None:
    dataset.delete("id = 5")
    plan = spark.plan_clone(dataset, tmp_path / "never.lance", task_bytes=1)
    assert len(plan.tasks) == 11
    made = spark.clone(dataset, tmp_path / "copy.lance", engine="local", message="kept")
    assert made.version == dataset.version
    assert made.to_table() == dataset.to_table()
    made.validate()
    with pytest.raises(DatasetAlreadyExistsError):
        spark.clone(dataset, tmp_path / "copy.lance")
    with pytest.raises(InvalidInputError, match="its own folder"):
        spark.clone(dataset, dataset.uri)


@pytest.mark.parametrize("key", [None, "id"])
def test_shares_of_a_diff_are_the_whole(dataset: LanceDataset, key: str | None) -> None:
    dataset.delete("id < 10")
    dataset.update({"name": "'new'"}, "id % 4 = 0")
    dataset.insert(rows(100, 130))
    whole = dataset.diff(1, key=key).rows().read_all()
    plan = plan_diff(dataset, 1, key=key, task_rows=20)
    assert len(plan.tasks) > 3
    parts = [task.run() for task in plan.tasks]
    order = [("_change", "ascending"), ("id", "ascending"), ("name", "ascending")]
    assert pa.concat_tables(parts).sort_by(order) == whole.sort_by(order)
    assert spark.diff(dataset, 1, key=key, columns=["name"]).num_rows == whole.num_rows


def test_measures_are_those_of_the_dataset(dataset: LanceDataset) -> None:
    assert spark.statistics(dataset, engine="local") == dataset.stats.data_stats()


def test_rows_that_pass_are_counted_by_tasks(dataset: LanceDataset) -> None:
    dataset.delete("id < 5")
    plan = spark.plan_count(dataset, "id < 50", task_bytes=1)
    assert (len(plan.tasks), sum(task.run().num_rows for task in plan.tasks)) == (10, 45)
    assert (spark.count(dataset), spark.count(dataset, "id < 50", engine="local")) == (95, 45)
    with pytest.raises(PredicateError):
        spark.count(dataset, "nope = 1")


def test_an_index_is_built_by_segments(dataset: LanceDataset) -> None:
    plan = spark.plan_index(dataset, "id", name="by_id", task_bytes=1)
    assert len(plan.tasks) == 10
    made = spark.create_scalar_index(dataset, "id", name="by_id", engine="local", message="why")
    (index,) = made.describe_indices()
    assert (index.name, index.num_rows_indexed, made.version) == ("by_id", 100, 2)
    assert made.history(1)[0].message == "why"
    again = spark.create_scalar_index(made, "id", name="by_id")
    assert (again.version, len(again.list_indices())) == (3, 1)


def test_training_of_a_vector_index_can_be_cancelled(dataset: LanceDataset) -> None:
    values = np.random.default_rng(3).random(400, np.float32)
    vectors = pa.table({"v": pa.FixedSizeListArray.from_arrays(values, 4)})
    dataset.add_columns(vectors.to_reader(), read_columns=[])
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked == 3

    plan = spark.plan_index(dataset, "v", "IVF_FLAT", parameters={"num_partitions": 2})
    (task,) = plan.tasks  # which trains itself
    assert task.run().num_rows == 100
    folder = Path(dataset.uri) / "_indices"
    before = sorted(folder.rglob("*"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(plan_index.__kwdefaults__, "task_bytes", 1)
        with pytest.raises(RunCancelledError):
            spark.create_index(dataset, "v", "IVF_FLAT", num_partitions=2, stop=stop)
        assert asked == 3
        assert sorted(folder.rglob("*")) == before
        made = spark.create_index(dataset, "v", "IVF_FLAT", num_partitions=2, message="near")
    assert made.describe_indices()[0].num_segments == 10
    assert made.history(1)[0].message == "near"
    with pytest.raises(InvalidInputError, match="replace=True"):
        spark.create_index(made, "v", "IVF_FLAT")


def test_indices_that_cannot_be_built_are_refused_before_any_task(dataset: LanceDataset) -> None:
    dataset.create_scalar_index("id")
    wrong: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (NotSupportedError, r"pylance.*create_scalar_index\('id', 'RTREE'\)",
         {"column": "id", "index_type": "RTREE"}),
        (ColumnNotFoundError, "nope", {"column": "nope"}),
        (InvalidInputError, "already exists: pass replace=True",
         {"column": "id", "replace": False}),
        (InvalidInputError, "already exists: pass another name",
         {"column": "name", "name": "id_idx"}),
    ]  # fmt: skip
    for error, message, options in wrong:
        with pytest.raises(error, match=message):
            spark.create_scalar_index(dataset, **options)
    assert lance_nb.dataset(dataset.uri).version == 2


def test_rows_stay_where_columns_are_written(tmp_path: Path) -> None:
    table = rows(0, 40).append_column("price", pa.array(range(40)))
    dataset = lance_nb.write_dataset(table, str(tmp_path / "x.lance"), max_rows_per_file=10)
    changed = pa.table({"id": pa.array([1, 2, 33, 99], pa.int64()), "price": [10, 20, 330, 990]})
    made = spark.update_columns(dataset, changed, "id", message="prices")
    assert made.to_table().column("id") == table.column("id")
    assert made.to_table().column("price").to_pylist()[:4] == [0, 10, 20, 3]
    assert made.to_table().column("price").to_pylist()[33] == 330
    assert len(made.get_fragments()) == 4
    made.validate()
    with pytest.raises(MergeInsertError, match="every column"):
        spark.update_columns(dataset, table, "id")


def test_a_compaction_is_committed_in_parts(dataset: LanceDataset) -> None:
    dataset.delete("id % 10 = 3")
    told: list[spark.RunProgress] = []
    how = {"target_rows_per_fragment": 18}
    made = spark.compact(
        dataset.uri, parts=3, compaction=how, engine="local", message="smaller",
        progress=told.append,
    )  # fmt: skip
    done = [one for one in made.history() if one.operation == "Rewrite"]
    assert len(done) == 3
    assert {made.version_info(one.version).message for one in done} == {"smaller"}
    assert len(made.get_fragments()) == 5
    assert sorted(lance.dataset(made.uri).to_table()["id"].to_pylist()) == [
        one for one in range(100) if one % 10 != 3
    ]
    assert [one.phase for one in told].count("done") == 1
    assert {one.num_tasks for one in told} == {5}
    assert [one.num_done for one in told] == sorted(one.num_done for one in told)
    assert spark.compact(made, parts=3, compaction=how, engine="local").version == made.version
    with pytest.raises(InvalidInputError, match="at least 1"):
        spark.compact(made, parts=0)
    with pytest.raises(InvalidInputError, match="a backfill is committed as a whole"):
        spark.backfill(made, {"twice": "id * 2"}, parts=3, engine="local")


def test_parts_that_are_committed_stay_after_a_cancel(dataset: LanceDataset) -> None:
    stopped: list[bool] = []

    def watch(now: spark.RunProgress) -> None:
        if now.num_done == 3:
            stopped.append(True)

    how: dict[str, Any] = {"compaction": {"target_rows_per_fragment": 20}, "engine": "local"}
    with pytest.raises(RunCancelledError) as caught:
        spark.compact(dataset, parts=5, progress=watch, stop=lambda: bool(stopped), **how)
    assert "of 5 parts are committed" in caught.value.__notes__[0]
    there = lance.dataset(dataset.uri)
    assert 5 < len(there.get_fragments()) < 10
    made = spark.compact(dataset.uri, parts=5, **how)
    assert len(made.get_fragments()) == 5
    assert lance.dataset(dataset.uri).to_table().num_rows == 100
    assert lance_nb.verify(made.uri).ok
