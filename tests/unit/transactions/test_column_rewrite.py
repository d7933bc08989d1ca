"""Columns written anew: new values in their places, files removed when something goes wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.registry import open_store
from lance_nb.transactions.column_rewrite import ColumnRewrite, Touched, rewrite_columns
from lance_nb.transactions.fragment_writer import WriteOptions

URI = "memory://column-rewrite.lance"


@pytest.fixture
def opened() -> lance_nb.LanceDataset:
    table = pa.table({"id": range(10), "v": [[n] for n in range(10)]})
    return lance_nb.write_dataset(table, URI, mode="overwrite", max_rows_per_file=6)


def rewritten(made: lance_nb.LanceDataset, rows: dict[int, list[int]], fails: int) -> ColumnRewrite:
    _, snapshot = made.opened
    part = Schema((snapshot.manifest.schema.field("v"),), {})
    fragments = list(snapshot.manifest.fragments)
    touched: list[Touched] = [
        (fragments[place], np.array(offsets, np.int64)) for place, offsets in rows.items()
    ]

    def values(fragment: Fragment, first: int, last: int) -> pa.Table:
        if fragment.id == fragments[fails].id if fails >= 0 else False:
            raise KeyboardInterrupt
        return pa.table({"v": pa.array([[-1]] * (last - first), pa.list_(pa.int64()))})

    return rewrite_columns(snapshot, part, touched, values, WriteOptions())


def test_new_values_lie_in_their_places(opened: lance_nb.LanceDataset) -> None:
    made = rewritten(opened, {0: [1, 5], 1: [0, 1, 2, 3]}, -1)
    assert (made.num_rows, len(made.files), made.offsets) == (6, 2, {})
    assert made.fields == (1, 2)
    after = lance_nb.LanceDataset.commit(opened, made.operation(), read_version=opened.version)
    expected = [[0], [-1], [2], [3], [4], [-1], [-1], [-1], [-1], [-1]]
    assert after.to_table(["v"]).to_pydict()["v"] == expected


def test_an_interrupt_removes_what_was_written(opened: lance_nb.LanceDataset) -> None:
    store = open_store(URI, None)
    before = {one.name for one in store.list_recursive("")}
    with pytest.raises(KeyboardInterrupt):
        rewritten(opened, {0: [0], 1: [1]}, 1)
    assert {one.name for one in store.list_recursive("")} == before


def test_an_interrupt_leaves_the_other_files_of_a_fragment(opened: lance_nb.LanceDataset) -> None:
    opened.add_columns({"w": "id + 1", "x": "id + 2"})
    opened.add_columns({"y": "id + 3"})
    store = open_store(URI, None)
    before = {one.name for one in store.list_recursive("")}
    with pytest.raises(KeyboardInterrupt):
        rewritten(opened, {0: [0], 1: [1]}, 1)
    assert {one.name for one in store.list_recursive("")} == before
