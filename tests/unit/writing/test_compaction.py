""" """

from __future__ import annotations

import pickle
import tracemalloc

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import Compaction, CompactionPlan, CompactionTask, RewriteResult
from lance_nb.errors import InvalidInputError, NotSupportedError, RetryableCommitConflictError
from lance_nb.storage.local import LocalStore
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.writing import compaction
from tests.support.versions import index


def sizes(made):
    return [one.physical_rows for one in made.get_fragments()]


def test_small_fragments_become_one_and_rows_stay_in_order(make, rows):
    made = make(max_rows_per_file=3)
    done = made.optimize.compact_files()
    assert (done.fragments_removed, done.fragments_added) == (4, 1)
    assert (done.files_removed, done.files_added) == (4, 1)
    assert (made.version, sizes(made)) == (2, [10])
    assert made.to_table().equals(rows)
    assert made.checkout_version(1).to_table().equals(rows)


def test_nothing_to_do_makes_no_version(make, files):
    made = make()
    before = files()
    assert made.optimize.compact_files().fragments_removed == 0
    assert made.version == 1
    assert files() == before


def test_deleted_rows_are_dropped_above_the_threshold(make):
    made = make()
    made.delete("id = 0")
    assert made.optimize.compact_files(materialize_deletions_threshold=0.5).fragments_added == 0
    made.delete("id < 6")
    assert made.optimize.compact_files(materialize_deletions=False).fragments_added == 0
    done = made.optimize.compact_files(materialize_deletions_threshold=0.5)
    assert (done.fragments_added, done.files_removed) == (1, 2)
    assert (sizes(made), made.get_fragments()[0].num_deletions) == ([4], 0)
    assert made.to_table()["id"].to_pylist() == [6, 7, 8, 9]


def test_a_fragment_is_as_large_as_asked_for(make):
    made = make(max_rows_per_file=1)
    made.optimize.compact_files(target_rows_per_fragment=4)
    assert sizes(made) == [4, 6]
    assert [one.fragment_id for one in made.get_fragments()] == [10, 11]


def test_excluded_fragments_stay_and_part_their_neighbours(make, rows):
    made = make(max_rows_per_file=2)
    made.optimize.compact_files(excluded_fragment_ids=[2])
    assert sorted(sizes(made)) == [2, 4, 4]
    assert made.to_table().sort_by("id").equals(rows)


def test_stable_rows_keep_ids_and_versions(make):
    made = make(max_rows_per_file=3, enable_stable_row_ids=True)
    made.update({"name": "'new'"}, where="id = 4")
    made.delete("id = 7")
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = made.to_table(columns=columns)
    made.optimize.compact_files()
    assert sizes(made) == [9]
    assert made.to_table(columns=columns).equals(before)


def test_progress_ends_with_all_rows(make):
    seen = []
    made = make(max_rows_per_file=3)
    made.optimize.compact_files(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (10, 10)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"target_rows_per_fragment": 0}, InvalidInputError),
        ({"materialize_deletions_threshold": 2.0}, InvalidInputError),
        ({"nonsense": 1}, TypeError),
        ({"data_storage_version": "2.3"}, NotSupportedError),
        ({"max_source_rows": 0}, InvalidInputError),
        ({"compaction_mode": "other"}, InvalidInputError),
        ({"materialize_deletions": 1}, InvalidInputError),
        ({"compaction_mode": "force_binary_copy"}, NotSupportedError),
    ],
)
def test_bad_arguments_are_refused(make, options, error):
    with pytest.raises(error):
        make(max_rows_per_file=3).optimize.compact_files(**options)


def test_an_append_during_a_compaction_is_not_lost(make, rows, uri):
    made = make(max_rows_per_file=3)
    lance_nb.dataset(uri).insert(rows)
    made.optimize.compact_files()
    assert made.version == 3
    assert made.count_rows() == 20


def test_a_deletion_during_a_compaction_is_not_undone(make, uri):
    made = make(max_rows_per_file=3)
    lance_nb.dataset(uri).delete("id = 5")
    made.optimize.compact_files()
    assert 5 not in made.to_table()["id"].to_pylist()
    assert made.count_rows() == 9


MB = 1024 * 1024
BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


@pytest.mark.slow
@pytest.mark.mutants
@pytest.mark.parametrize(
    ("version", "verb"), [("2.0", "compact"), ("2.1", "update"), ("2.2", "compact")]
)
def test_blobs_are_copied_in_bounded_memory(tmp_path, monkeypatch, version, verb):
    """72 MiB of payloads, one of 40: of them a group of 8 to 16 MiB and a piece of 8 are held."""
    sizes = [2 * MB] * 8 + [40 * MB] + [4 * MB] * 4
    schema = pa.schema([pa.field("id", pa.int64()), BLOB])
    uri = str(tmp_path / "d")
    payloads = pa.array([bytes([at]) * size for at, size in enumerate(sizes)], pa.large_binary())
    table = pa.table([range(len(sizes)), payloads], schema=schema)
    lance_nb.write_dataset(table, uri, max_rows_per_file=10, data_storage_version=version)
    del payloads, table
    # Mapped files cost no memory of the process: count their bytes as those of a remote store.
    for name in ("read_range", "read_ranges"):
        monkeypatch.setattr(LocalStore, name, copied(getattr(LocalStore, name)))
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    made = lance_nb.dataset(uri)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        if verb == "compact":
            made.optimize.compact_files()
        else:
            made.update({"id": "id"}, mode="rows")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert peak + pool.max_memory() < 32 * MB
    assert len(made.get_fragments()) == 1
    files = made.take_blobs("b", indices=range(len(sizes)))
    assert [one.size() for one in files] == sizes
    assert [set(one.readall()) for one in files] == [{at} for at in range(len(sizes))]


def copied(read):
    def copy(*args):
        found = read(*args)
        if isinstance(found, list):
            return [memoryview(bytes(one)) for one in found]
        return memoryview(bytes(found))

    return copy


def test_an_interrupt_leaves_no_blob_files(tmp_path):
    blobs = pa.array([bytes(100_000)] * 6, pa.large_binary())
    table = pa.table([blobs], schema=pa.schema([BLOB]))
    made = lance_nb.write_dataset(table, str(tmp_path), max_rows_per_file=2)
    before = sorted(tmp_path.rglob("*"))

    def stop(_done, _total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.optimize.compact_files(progress=stop)
    assert [one for one in sorted(tmp_path.rglob("*")) if one.is_file()] == [
        one for one in before if one.is_file()
    ]


def test_an_interrupt_leaves_no_file_and_no_version(make, files):
    made = make(max_rows_per_file=2)
    before = files()

    def stop(done, _total):
        if done > 4:  # in the second task: the first one is written
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.optimize.compact_files(target_rows_per_fragment=4, progress=stop)
    assert files() == before
    assert made.optimize.compact_files(target_rows_per_fragment=4).fragments_added == 2


def test_moves_are_recorded_for_an_index_and_it_stays_in_use(make, rows):
    made = make(max_rows_per_file=2)
    made.create_scalar_index("id", "BTREE", "tree")
    made.delete("id = 3")
    made.optimize.compact_files(target_rows_per_fragment=4)
    assert made.version == 5  # ids set aside, then the rewrite
    described = {one.name: one for one in made.describe_indices()}
    assert described["tree"].num_unindexed_rows == 0
    assert described["tree"].num_rows_indexed == 9
    made.optimize.compact_files()
    assert {one.name: one.num_rows_indexed for one in made.describe_indices()}["tree"] == 9
    assert sorted(made.to_table()["id"].to_pylist()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_without_a_record_rows_leave_the_index(make):
    made = make(max_rows_per_file=2)
    tree = index("tree", made.lance_schema.field("id").id(), covers=(0, 1, 2, 3, 4))
    made._change(CreateIndex((tree,)))
    made.optimize.compact_files(defer_index_remap=False)
    assert made.version == 3
    assert [one.num_unindexed_rows for one in made.describe_indices()] == [10]


def test_a_record_of_others_in_between_is_kept(make, uri, monkeypatch):
    made = make(max_rows_per_file=2)
    tree = index("tree", made.lance_schema.field("id").id(), covers=(0, 1, 2, 3, 4))
    made._change(CreateIndex((tree,)))
    first, second = (task.execute(made) for task in made.optimize.plan_compaction(
        target_rows_per_fragment=4).tasks)  # fmt: skip
    once = [first]
    commit_staged = compaction.commit_staged

    def late(session, branch, staged, *more):
        if isinstance(staged.operation, Rewrite) and once:
            lance_nb.dataset(uri).optimize.commit_compaction([once.pop()])
        return commit_staged(session, branch, staged, *more)

    monkeypatch.setattr(compaction, "commit_staged", late)
    made.optimize.commit_compaction([second])
    (described,) = (one for one in made.describe_indices() if one.name == "tree")
    assert (described.num_rows_indexed, described.num_unindexed_rows) == (10, 0)
    assert len(made.get_fragments()) == 2


OPTIONS = {"target_rows_per_fragment": 4}


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


@pytest.fixture
def made(make):
    """Ten rows in five fragments."""
    return make(max_rows_per_file=2)


def test_plan_run_and_commit_by_themselves(made, rows):
    plan = Compaction.plan(made, OPTIONS)
    assert (plan.read_version, plan.num_tasks()) == (1, 2)
    assert [len(task.fragments) for task in plan.tasks] == [2, 3]
    results = [task.execute(made) for task in plan.tasks]
    assert made.version == 1
    done = Compaction.commit(made, results)
    assert (done.fragments_removed, done.fragments_added) == (5, 2)
    assert made.version == 2
    assert made.to_table().equals(rows)


def test_tasks_and_results_travel(made, rows, uri):
    plan = Compaction.plan(made, OPTIONS)
    assert CompactionPlan.from_json(plan.json()) == pickled(plan) == plan
    results = []
    for task in plan.tasks:
        assert CompactionTask.from_json(task.json()) == task
        result = pickled(task).execute(lance_nb.dataset(uri))
        assert RewriteResult.from_json(result.json()) == result
        assert result.original_fragments == task.fragments
        results.append(pickled(result))
    Compaction.commit(made, results)
    assert made.to_table().equals(rows)


def test_a_part_of_the_results_can_be_committed_beside_what_others_do(made, rows, uri):
    plan = made.optimize.plan_compaction(**OPTIONS)
    first, second = (task.execute(made) for task in plan.tasks)
    lance_nb.dataset(uri).insert(rows)
    made.optimize.commit_compaction([first])
    assert (made.version, made.count_rows()) == (3, 20)
    lance_nb.dataset(uri).delete("id = 9")
    with pytest.raises(RetryableCommitConflictError, match="changed since"):
        made.optimize.commit_compaction([second])
    with pytest.raises(RetryableCommitConflictError, match="removed since"):
        made.optimize.commit_compaction([first])
    assert lance_nb.dataset(uri).version == 4


def test_a_task_of_an_older_version_reads_that_version(made):
    (task, *_) = Compaction.plan(made, OPTIONS).tasks
    made.delete("id = 0")
    assert task.execute(made).new_fragments[0].physical_rows == 4


def test_nothing_to_commit_makes_no_version(made):
    assert Compaction.commit(made, []).fragments_added == 0
    assert made.version == 1


def test_what_is_not_of_this_dataset_is_refused(made, rows):
    other = lance_nb.write_dataset(rows, f"{made.uri}.other", max_rows_per_file=2)
    (task, *_) = Compaction.plan(other, OPTIONS).tasks
    with pytest.raises(InvalidInputError, match="does not belong to"):
        task.execute(made)
    (mine, *_) = Compaction.plan(made, OPTIONS).tasks
    result = mine.execute(made)
    with pytest.raises(InvalidInputError, match="two of the results"):
        Compaction.commit(made, [result, result])
    with pytest.raises(InvalidInputError, match="nonsense"):
        Compaction.plan(made, {"nonsense": 1})
    for text in ("", "[]", "{}", '{"task": 1, "read_version": 1, "options": {}}'):
        with pytest.raises(InvalidInputError):
            CompactionTask.from_json(text)


def test_everything_at_once_and_with_progress(made):
    seen = []
    (task, *_) = Compaction.plan(made, OPTIONS).tasks
    task.execute(made, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)
    assert Compaction.execute(made, OPTIONS).fragments_added == 2


def test_defaults_stand_in_the_configuration(made):
    made.update_config({"lance.compaction.target_rows_per_fragment": "4"})
    assert made.optimize.plan_compaction().num_tasks() == 2
