from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, NotFoundError, PredicateError, SchemaMismatchError
from lance_nb.spark.engine import LocalEngine
from lance_nb.spark.plan import TASK_BYTES, Location, PinnedVersion, Plan, group_tasks
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.scan import ReadPlan
from tests.unit.spark.conftest import rows


def done(plan: Plan) -> LanceDataset:
    """Run a plan whose tasks travelled, twice each as Spark may, and commit."""
    tasks = [pickle.loads(pickle.dumps(task)) for task in plan.tasks]  # noqa: S301
    for task in tasks:
        task.run()
    results = LocalEngine().run(tasks, lambda _: None, lambda: False)
    return plan.commit(pickle.loads(pickle.dumps(results)))  # noqa: S301


@pytest.fixture
def files(tmp_path: Path) -> str:
    """Sixty more rows, in two Parquet files of three row groups each."""
    for at in range(2):
        more = rows(100 + at * 30, 130 + at * 30)
        parquet.write_table(more, tmp_path / f"more{at}.parquet", row_group_size=10)
    return str(tmp_path / "more*.parquet")


def test_a_delete_is_one_version_whatever_the_number_of_tasks(dataset: LanceDataset) -> None:
    plan = spark.plan_delete(dataset, "id % 10 >= 5 OR id < 20", task_bytes=1)
    assert len(plan.tasks) == 10
    made = done(plan)
    assert made.version == dataset.version + 1
    assert made.to_table()["id"].to_pylist() == [i for i in range(20, 100) if i % 10 < 5]
    made.validate()


def test_an_update_keeps_every_row_once(dataset: LanceDataset) -> None:
    plan = spark.plan_update(dataset, {"name": "'x'"}, "id % 2 = 0", task_bytes=1)
    made = done(plan)
    assert sorted(made.to_table()["id"].to_pylist()) == list(range(100))
    assert made.count_rows("name = 'x'") == 50


def test_files_and_datasets_are_appended_in_parts(dataset: LanceDataset, files: str) -> None:
    plan = spark.plan_append(dataset, files, task_bytes=1)
    assert len(plan.tasks) == 6
    made = done(plan)
    assert made.to_table() == rows(0, 160)
    doubled = done(spark.plan_append(made, made, task_bytes=1))
    assert doubled.count_rows() == 320


def test_arrow_files_are_read_by_batches(dataset: LanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "more.arrow"
    with pa.ipc.new_file(str(path), rows(0, 1).schema) as file:
        for start in (100, 110, 120):
            file.write_table(rows(start, start + 10))
    plan = spark.plan_append(dataset, [str(path)], task_bytes=1)
    assert len(plan.tasks) == 3
    assert done(plan).to_table() == rows(0, 130)


def test_columns_are_filled_fragment_by_fragment(dataset: LanceDataset) -> None:
    dataset.delete("id = 15")
    plan = spark.plan_columns(dataset, {"double": "id * 2"}, task_bytes=1)
    made = done(plan)
    assert made.to_table().column("double").to_pylist() == [2 * i for i in range(100) if i != 15]


def test_a_function_of_a_notebook_travels(dataset: LanceDataset) -> None:
    pytest.importorskip("pyspark")
    offset = 7

    def shifted(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch(
            {"shifted": pa.array([one + offset for one in batch["id"].to_pylist()])}
        )

    made = done(spark.plan_columns(dataset, shifted, ["id"], task_bytes=1))
    assert made.to_table()["shifted"].to_pylist() == [i + 7 for i in range(100)]


def test_a_compaction_runs_by_groups(dataset: LanceDataset) -> None:
    dataset.delete("id < 3")
    made = done(spark.plan_compaction(dataset, target_rows_per_fragment=30))
    assert made.to_table() == rows(3, 100)
    assert len(made.get_fragments()) < 10


def test_nothing_to_do_makes_no_version(dataset: LanceDataset) -> None:
    assert done(spark.plan_delete(dataset, "id > 1000")).version == dataset.version


def test_committing_twice_commits_once(dataset: LanceDataset, files: str) -> None:
    plan = spark.plan_append(dataset, files)
    results = LocalEngine().run(plan.tasks, lambda _: None, lambda: False)
    first = plan.commit(results)
    again = plan.commit(results)
    assert again.version == first.version
    assert lance_nb.dataset(dataset.uri).count_rows() == 160


def test_the_pinned_version_is_read_and_others_commits_are_kept(dataset: LanceDataset) -> None:
    plan = spark.plan_delete(dataset, "id < 50", task_bytes=1)
    other = lance_nb.dataset(dataset.uri)
    other.insert(rows(0, 5))
    other.delete("id = 60")
    made = done(plan)
    assert made.to_table()["id"].to_pylist() == [*(i for i in range(50, 100) if i != 60), *range(5)]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda ds: spark.plan_delete(ds, "nope = 1"), PredicateError),
        (lambda ds: spark.plan_update(ds, {"name": "nope"}), InvalidInputError),
        (lambda ds: spark.plan_append(ds, "nowhere/*.parquet"), InvalidInputError),
        (lambda ds: spark.plan_append(ds, __file__), InvalidInputError),
        (lambda ds: spark.plan_columns(ds, {"id": "1"}), InvalidInputError),
        (lambda ds: spark.plan_columns(ds, 3), InvalidInputError),
    ],
)
def test_what_is_wrong_is_refused_before_any_task(dataset, make, error) -> None:
    with pytest.raises(error):
        make(dataset)


def test_columns_of_nulls_need_no_files(dataset: LanceDataset) -> None:
    before = dataset.get_fragments()
    filled = done(spark.plan_columns(dataset, {"none": "CAST(NULL AS INT)"}, task_bytes=1))
    assert [one.metadata.files for one in filled.get_fragments()] == [
        one.metadata.files for one in before
    ]
    assert filled.schema.field("none").type == pa.int32()
    assert filled.count_rows("none IS NULL") == dataset.count_rows()


def test_a_file_of_other_columns_is_refused_before_any_task(
    dataset: LanceDataset, tmp_path: Path
) -> None:
    parquet.write_table(pa.table({"other": [1]}), tmp_path / "x.parquet")
    with pytest.raises(SchemaMismatchError):
        spark.plan_append(dataset, str(tmp_path / "x.parquet"))


def test_a_dataset_made_anew_is_another_one(dataset: LanceDataset) -> None:
    old = PinnedVersion.of(dataset)
    assert old.dataset().count_rows() == 100
    shutil.rmtree(dataset.uri)
    made = lance_nb.write_dataset(rows(0, 7), dataset.uri)
    for number in range(2, dataset.version + 1):
        made.update_config({"version": str(number)})
    assert made.version == old.version
    new = pickle.loads(pickle.dumps(PinnedVersion.of(made)))  # noqa: S301
    assert new.dataset().to_table() == rows(0, 7)
    with pytest.raises(NotFoundError, match=r"deleted and created again.*repeat the planning"):
        old.check()


def test_what_was_planned_is_not_committed_to_a_dataset_made_anew(dataset: LanceDataset) -> None:
    plan = spark.plan_delete(dataset, "id < 50")
    results = spark.run_edits(plan, engine="local")
    shutil.rmtree(dataset.uri)
    made = lance_nb.write_dataset(rows(0, 7), dataset.uri)
    for number in range(2, dataset.version + 1):
        made.update_config({"version": str(number)})
    with pytest.raises(NotFoundError, match="deleted and created again"):
        plan.commit(results)
    assert lance_nb.dataset(dataset.uri).to_table() == rows(0, 7)


MB = 1024**2


def weights(groups: list[tuple[int, ...]], sizes: list[int]) -> list[int]:
    return [sum(sizes[at] for at in one) for one in groups]


@pytest.mark.parametrize(
    ("sizes", "num_cores", "wanted"),
    [
        ([22 * MB] * 4, 2, [2, 2]),  # one round for each core
        ([22 * MB] * 4, 4, [1, 1, 1, 1]),
        ([21 * MB, 23 * MB, 22 * MB, 22 * MB], 2, [2, 2]),  # files are never quite alike
        ([MB] * 1000, 2, [25] * 40),  # many small files: 128 MB each, with what opening costs
        ([TASK_BYTES] * 5, 2, [1] * 5),
        ([0] * 3, 64, [3]),  # too little for more
        ([5], 8, [1]),
    ],
)
def test_small_tasks_share_a_partition(sizes: list[int], num_cores: int, wanted: list[int]) -> None:
    found = group_tasks(sizes, num_cores)
    assert [len(one) for one in found] == wanted


@given(
    st.lists(st.integers(0, 10**10), min_size=1, max_size=200),
    st.integers(1, 1024),
)
def test_every_task_is_in_one_partition_in_order(sizes: list[int], num_cores: int) -> None:
    found = group_tasks(sizes, num_cores)
    assert [at for one in found for at in one] == list(range(len(sizes)))
    assert all(found)


@given(st.lists(st.integers(MB, TASK_BYTES), min_size=1, max_size=300), st.integers(1, 32))
def test_no_partition_is_much_larger_than_a_task_may_be(sizes: list[int], num_cores: int) -> None:
    found = group_tasks(sizes, num_cores)
    assert max(weights(found, sizes)) <= 2 * TASK_BYTES


def test_fragments_that_an_index_rules_out_get_no_task(dataset: LanceDataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    newer = dataset.insert(rows(100, 120)) or lance_nb.dataset(dataset.uri)
    made = lance_nb.dataset(newer.uri)
    scanned = [one.fragment_id for one in made.get_fragments()][-1:]
    for plan in (
        spark.plan_delete(made, "id IN (5, 6, 71)", task_bytes=1),
        spark.plan_count(made, "id IN (5, 6, 71)", task_bytes=1),
        spark.plan_update(made, {"name": "'x'"}, "id IN (5, 6, 71)", task_bytes=1),
    ):
        ids: list[Any] = [one for task in plan.tasks for one in task.fragment_ids]
        assert ids[:2] == [0, 7]
        assert set(ids) >= set(scanned)  # no index covers it
        assert len(ids) < 10
    options = SourceOptions.of({"path": made.uri, "filter": "id = 71"})
    (part,) = ReadPlan.of(options).parts()
    assert set(part) == {7, *scanned}
    assert spark.count(made, "id = 71", engine="local") == 1
    changed = spark.update(made, {"name": "'x'"}, "id IN (5, 6, 71, 110)", engine="local")
    assert lance.dataset(made.uri).count_rows("name = 'x'") == 4
    gone = spark.delete(changed, "id IN (5, 999)", engine="local")
    assert lance.dataset(made.uri).count_rows() == 119
    assert spark.delete(gone, "id = 999", engine="local").version == gone.version


def test_options_of_fsspec_may_be_dictionaries(tmp_path: Path) -> None:
    """Found on S3: a task could not open the dataset, because its options cannot be hashed."""
    lance_nb.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t.lance")
    options = (("client_kwargs", {"region_name": "us-east-1"}),)
    pinned = PinnedVersion(Location(str(tmp_path / "t.lance"), options), 1)
    assert {pinned, replace(pinned, version=2)} == {pinned, replace(pinned, version=2)}
    assert pinned != replace(pinned, location=Location(pinned.uri))
    assert pinned.dataset().count_rows() == 2
