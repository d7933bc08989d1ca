""" """

from __future__ import annotations

import itertools
import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap, BitMap64

import lance_nb
from lance_nb import Compaction, CompactionPlan, CompactionTask, RewriteResult
from lance_nb.errors import InvalidInputError, NotSupportedError, RetryableCommitConflictError
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_reuse import REUSE_INDEX, MovedGroup, address_map, moves
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.storage.local import LocalStore
from lance_nb.storage.local_files import Mappings
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.writing import compaction
from lance_nb.writing.compaction import (
    CompactionMetrics,
    CompactionOptions,
    Rewritten,
    plan_compaction,
    recorded_groups,
    run_task,
    with_record,
)
from lance_nb.writing.indexing import unneeded_entries
from tests.support.versions import FIRST, SECOND, THIRD, deleted, details, index, new_fragment


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

    def late(session, branch, staged, *more, **options):
        if isinstance(staged.operation, Rewrite) and once:
            lance_nb.dataset(uri).optimize.commit_compaction([once.pop()])
        return commit_staged(session, branch, staged, *more, **options)

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


_PLACES = itertools.count()


def dataset(*sizes: int, **options: Any) -> lance_nb.LanceDataset:
    uri = f"memory://plan/{next(_PLACES)}"
    for at, size in enumerate(sizes):
        rows = pa.table({"id": range(size)})
        lance_nb.write_dataset(rows, uri, mode="append" if at else "create", **options)
    return lance_nb.dataset(uri)


def planned(
    made: lance_nb.LanceDataset, *indices: IndexMetadata, **options: Any
) -> list[list[int]]:
    tasks = plan_compaction(made.opened[1], indices, CompactionOptions.of(options, {}))
    return [[one.id for one in task.fragments] for task in tasks]


def test_neighbours_join_until_there_are_rows_enough() -> None:
    made = dataset(*[10] * 10)
    assert planned(made, target_rows_per_fragment=30) == [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]
    assert planned(made, target_rows_per_fragment=10) == []


@pytest.mark.parametrize(
    ("limits", "tasks"),
    [
        ({"max_source_fragments": 2}, 0),
        ({"max_source_fragments": 5}, 1),
        ({"max_source_fragments": 6}, 2),
        ({"max_source_rows": 35}, 1),
        ({"max_source_rows": 100}, 3),
        ({"max_source_bytes": 1}, 0),
    ],
)
def test_tasks_are_taken_until_one_would_read_too_much(limits: Any, tasks: int) -> None:
    assert len(planned(dataset(*[10] * 10), target_rows_per_fragment=30, **limits)) == tasks


def test_fragments_that_different_indices_cover_are_not_joined() -> None:
    made = dataset(*[10] * 5)
    assert planned(made, index("i", 0, covers=(0, 1, 2))) == [[0, 1, 2], [3, 4]]
    assert planned(made, index("i", 0, covers=(0, 1)), index("j", 0, covers=(1, 2))) == [[3, 4]]


def test_deleted_rows_that_a_graph_knows_stay() -> None:
    made = dataset(*[10] * 4)
    made.delete("id = 1")
    graph = index("graph", 0, covers=(0, 1, 2, 3), kind="Vector")  # of a release that says no more
    assert planned(made, graph) == []
    assert planned(made, graph, defer_index_remap=False) == [[0, 1, 2, 3]]
    assert planned(made, index("tree", 0, covers=(0, 1, 2, 3))) == [[0, 1, 2, 3]]


def test_versions_that_cannot_be_written_are_refused_at_once() -> None:
    for name in ("stable", "2.1", "0.3"):
        assert planned(dataset(2, 2), data_storage_version=name) == [[0, 1]]
    with pytest.raises(NotSupportedError, match=r"version 2\.3"):
        planned(dataset(2, 2), data_storage_version="next")
    with pytest.raises(InvalidInputError, match=r"files of version 2\.2"):
        planned(dataset(2, 2), data_storage_version="legacy")


def test_what_is_given_comes_before_what_is_configured() -> None:
    config = {
        "lance.compaction.target_rows_per_fragment": "300",
        "lance.compaction.materialize_deletions": "False",
        "lance.compaction.materialize_deletions_threshold": "0.5",
        "lance.compaction.data_storage_version": "2.2",
        "lance.compaction.later": "1",
        "lance.auto_cleanup.interval": "20",
    }
    given = {"target_rows_per_fragment": 7, "max_source_rows": None, "excluded_fragment_ids": [3]}
    found = CompactionOptions.of(given, config)
    assert found == CompactionOptions(
        7, materialize_deletions=False, materialize_deletions_threshold=0.5,
        excluded_fragment_ids=frozenset({3}), data_storage_version="2.2",
    )  # fmt: skip
    assert CompactionOptions.of({}, config).target_rows_per_fragment == 300


def test_a_configured_value_of_another_kind_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"lance\.compaction\.batch_size: 'abc'"):
        CompactionOptions.of({}, {"lance.compaction.batch_size": "abc"})


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"nonsense": 1}, InvalidInputError),
        ({"batch_size": 0}, InvalidInputError),
        ({"max_source_fragments": -1}, InvalidInputError),
        ({"num_threads": True}, InvalidInputError),
        ({"defer_index_remap": "yes"}, InvalidInputError),
        ({"materialize_deletions_threshold": "much"}, InvalidInputError),
        ({"materialize_deletions_threshold": 1.01}, InvalidInputError),
        ({"materialize_deletions_threshold": -0.01}, InvalidInputError),
        ({"target_rows_per_fragment": 0}, InvalidInputError),
        ({"max_bytes_per_file": 0}, InvalidInputError),
        ({"max_source_rows": 0}, InvalidInputError),
        ({"max_source_bytes": 0}, InvalidInputError),
        ({"compaction_mode": "copy"}, InvalidInputError),
        ({"compaction_mode": []}, InvalidInputError),
        ({"excluded_fragment_ids": ["a"]}, InvalidInputError),
        ({"compaction_mode": "force_binary_copy"}, NotSupportedError),
    ],
)
def test_bad_options_are_refused(given: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        CompactionOptions.of(given, {})


@pytest.mark.parametrize(
    "given",
    [
        {"materialize_deletions_threshold": 0},
        {"materialize_deletions_threshold": 1},
        dict.fromkeys(("target_rows_per_fragment", "batch_size", "max_source_bytes"), 1),
        {"compaction_mode": "try_binary_copy", "defer_index_remap": False},
    ],
)
def test_options_at_their_bounds_are_taken(given: dict[str, Any]) -> None:
    found = CompactionOptions.of(given, {})
    assert {name: getattr(found, name) for name in given} == given


def test_defaults_are_those_of_pylance() -> None:
    options = CompactionOptions()
    assert (options.target_rows_per_fragment, options.max_rows_per_group) == (1_048_576, 1024)
    assert (options.materialize_deletions, options.materialize_deletions_threshold) == (True, 0.1)
    assert options.binary_copy_read_batch_bytes == 16_777_216


def run(uri: str, *, stable: bool = False, **options: Any) -> tuple[Any, Rewritten]:
    made = lance_nb.write_dataset(
        pa.table({"id": range(10)}), uri, max_rows_per_file=4, enable_stable_row_ids=stable
    )
    made.delete("id IN (1, 9)")
    wanted = CompactionOptions(**options)
    snapshot = made.opened[1]
    (task,) = plan_compaction(snapshot, (), wanted)
    return made, run_task(snapshot, task, wanted, (2, 2))


def test_the_result_says_which_rows_moved() -> None:
    _, result = run("memory://run/moved")
    assert result.row_addrs is not None
    moved = [divmod(one, 1 << 32) for one in BitMap64.deserialize(result.row_addrs)]
    assert moved == [(0, 0), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert result.metrics == CompactionMetrics(3, 1, 5, 1)
    assert (result.read_version, result.num_deleted_rows) == (2, 2)
    assert [(one.id, one.physical_rows) for one in result.new_fragments] == [(0, 8)]


def test_small_fragments_are_not_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": np.random.default_rng(1).integers(0, 1 << 62, 40_000)})
    made = lance_nb.write_dataset(rows, str(tmp_path / "ds"), max_rows_per_file=20_000)
    mapped: list[str] = []
    keep = Mappings.get

    def spied(self: Mappings, path: str, *rest: Any) -> memoryview:
        mapped.append(path)
        return keep(self, path, *rest)

    monkeypatch.setattr(Mappings, "get", spied)
    made.optimize.compact_files()
    assert not [path for path in mapped if path.endswith(".lance")]
    made = lance_nb.dataset(made.uri)
    assert len(made.get_fragments()) == 1
    assert made.to_table() == rows
    assert mapped  # the one file is large enough for it


def test_stable_rows_do_not_move() -> None:
    _, result = run("memory://run/stable", stable=True)
    assert result.row_addrs is None
    assert result.new_fragments[0].row_ids is not None


def test_rows_are_shared_out_evenly() -> None:
    _, result = run("memory://run/even", target_rows_per_fragment=5)
    assert [one.physical_rows for one in result.new_fragments] == [8]


def test_a_task_without_rows_writes_no_file() -> None:
    made = lance_nb.write_dataset(pa.table({"id": range(3)}), "memory://run/none")
    snapshot = made.opened[1]
    result = run_task(snapshot, compaction.CompactionTask(1, ()), CompactionOptions(), (2, 2))
    assert result.new_fragments == ()
    assert result.metrics == CompactionMetrics(0, 0, 0, 0)


def test_metrics_add_up() -> None:
    assert CompactionMetrics(1, 2, 3, 4) + CompactionMetrics(1, 1, 1, 1) == CompactionMetrics(
        2, 3, 4, 5
    )


def test_when_it_goes_wrong_no_file_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_nb.writing import compaction

    def stopped(*_args: Any) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(compaction, "_row_addrs", stopped)
    with pytest.raises(KeyboardInterrupt):
        run("memory://run/stopped")
    files = lance_nb.dataset("memory://run/stopped").all_files().read_all()
    assert sum(path.startswith("data/") for path in files["path"].to_pylist()) == 3


@pytest.mark.parametrize("undo", ["restore", "revert"])
def test_a_column_that_came_back_meanwhile_is_compacted_with_its_values(undo: str) -> None:
    made = dataset(5, 5)
    made.add_columns({"twice": "id * 2"})
    made.drop_columns(["twice"])
    stale = lance_nb.dataset(made.uri)
    if undo == "revert":
        made.revert(made.version)
    else:
        made.checkout_version(made.version - 1).restore()
    assert "twice" not in stale.schema.names

    assert stale.optimize.compact_files().fragments_removed == 2

    assert lance_nb.dataset(made.uri).count_rows("twice = id * 2") == 10


def test_a_compaction_of_deleted_rows_alone_leaves_out_no_column() -> None:
    made = dataset(5, 5)
    made.delete("id >= 0")
    made.optimize.compact_files()
    assert made.get_fragments() == []


def rewritten(*ids: int, gone: int = 0) -> Rewritten:
    old = [replace(new_fragment(), id=one) for one in ids]
    if gone:
        old[0] = deleted(old[0], gone)
    rows = address_map((one, BitMap(range(10))) for one in ids)
    return Rewritten(1, tuple(old), (new_fragment(),), rows)


def recorded(
    *groups: Rewritten, covers: tuple[int, ...], kind: str = "BTree", **more: bool
) -> list:
    indices = [index("i", 0, covers=covers, kind=kind), index(REUSE_INDEX, kind="FragmentReuse")]
    options = {"defer": None, "has_row_ids": False} | more
    return recorded_groups(indices, groups, **options)


def test_every_group_is_recorded_when_an_index_covers_one() -> None:
    groups = rewritten(0, 1), rewritten(2, 3)
    assert recorded(*groups, covers=(0, 1)) == [0, 1]
    assert recorded(*groups, covers=(7,)) == []


def test_nothing_is_recorded_that_is_not_wanted_or_cannot_be() -> None:
    assert recorded(rewritten(0), covers=(0,), defer=False) == []
    assert recorded(rewritten(0), covers=(0,), has_row_ids=True) == []
    assert recorded(replace(rewritten(0), row_addrs=None), covers=(0,)) == []
    with pytest.raises(NotSupportedError, match="stable"):
        recorded(rewritten(0), covers=(0,), has_row_ids=True, defer=True)


def test_a_graph_loses_no_rows() -> None:
    groups = rewritten(0, gone=2), rewritten(1)
    assert recorded(*groups, covers=(0, 1), kind="Vector") == [1]
    assert recorded(*groups, covers=(0, 1)) == [0, 1]


def test_an_index_built_meanwhile_on_a_part_of_a_group_is_a_conflict() -> None:
    with pytest.raises(RetryableCommitConflictError, match="covers only"):
        recorded(rewritten(0, 1), covers=(1,))


def test_entries_pile_up_and_the_bitmap_names_all_new_fragments() -> None:
    reuse = replace(index(REUSE_INDEX, kind="FragmentReuse"), details=details(FIRST))
    group = MovedGroup(b"", (Fragment(5, (), 2),), (Fragment(9, (), 2),))
    made = with_record([reuse], 12, [group], uuid="u", created_at_ms=5)
    assert moves(made.details) == [({0, 1}, {5}), ({5}, {9})]
    assert list(made.fragment_ids() or ()) == [5, 9]
    assert (made.uuid, made.dataset_version, made.fields, made.index_version) == ("u", 12, (), 0)
    assert made.kind == "FragmentReuse"
    alone = with_record([], 12, [group], uuid="u", created_at_ms=5)
    assert moves(alone.details) == [({5}, {9})]


def test_an_index_that_does_not_say_what_it_covers_hides_no_other() -> None:
    silent = replace(index("a", 0), fragment_bitmap=b"")
    indices = [silent, index("i", 0, covers=(0,)), index(REUSE_INDEX, kind="FragmentReuse")]
    assert recorded_groups(indices, [rewritten(0)], defer=None, has_row_ids=False) == [0]
    assert recorded_groups([silent], [rewritten(0)], defer=None, has_row_ids=False) == []


ALONE = (4, (20,), (21,))  # of fragments that none of the others came from


def reuse(*entries: tuple[int, tuple[int, ...], tuple[int, ...]]) -> IndexMetadata:
    return replace(index(REUSE_INDEX, kind="FragmentReuse"), details=details(*entries))


def nothing(_version: int) -> None:
    return None


def test_an_index_older_than_the_entries_needs_those_it_covers() -> None:
    old = index("old", 0, covers=(7, 8))
    assert unneeded_entries([old, reuse(FIRST, SECOND, THIRD, ALONE)], nothing) == {3}
    assert unneeded_entries([index("old", 0, covers=(30,)), reuse(FIRST)], nothing) == {0}


def test_an_index_built_after_an_entry_does_not_need_it() -> None:
    new = replace(index("new", 0, covers=(7, 8)), dataset_version=8)
    known = {8: [reuse(FIRST, SECOND)]}
    assert unneeded_entries([new, reuse(FIRST, SECOND, THIRD)], known.get) == {0, 1}
    old = index("old", 1, covers=(7, 8))
    assert unneeded_entries([new, old, reuse(FIRST, SECOND, THIRD)], known.get) == set()


def test_an_index_that_does_not_say_what_it_covers_needs_everything() -> None:
    silent = replace(index("silent", 0), fragment_bitmap=b"")
    assert unneeded_entries([silent, reuse(FIRST)], nothing) == set()


def test_without_other_indices_nothing_is_needed() -> None:
    assert unneeded_entries([reuse(FIRST, SECOND)], nothing) == {0, 1}
    assert unneeded_entries([index("i", 0)], nothing) == set()
