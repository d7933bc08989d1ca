"""The plan of a compaction."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.transactions.compaction import CompactionOptions, plan_compaction
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


def test_files_of_another_version_are_not_made() -> None:
    assert planned(dataset(2, 2), data_storage_version="stable") == [[0, 1]]
    with pytest.raises(NotSupportedError, match=r"version 2\.2"):
        planned(dataset(2, 2), data_storage_version="2.1")
