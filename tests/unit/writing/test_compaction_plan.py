"""Compaction: plans, options, runs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.storage.local_files import Mappings
from lance_nb.writing.compaction import (
    CompactionMetrics,
    CompactionOptions,
    CompactionTask,
    Rewritten,
    plan_compaction,
    run_task,
)
from tests.support.versions import index

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
    result = run_task(snapshot, CompactionTask(1, ()), CompactionOptions(), (2, 2))
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
