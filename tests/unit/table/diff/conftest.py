"""A history in memory: appended, updated, deleted, a column added, compacted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset

_NUMBERS = count()


def rows(start: int, stop: int) -> pa.Table:
    """Rows with an id, a number and a text."""
    numbers = range(start, stop)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "v": pa.array(map(float, numbers), pa.float64()),
            "t": pa.array([f"t{one}" for one in numbers], pa.string()),
        }
    )


@pytest.fixture
def make() -> Callable[..., LanceDataset]:
    """Write rows into a new dataset of their own; options as for write_dataset."""

    def made(data: pa.Table | None = None, **options: Any) -> LanceDataset:
        uri = f"memory://unit-diff/{next(_NUMBERS)}.lance"
        options = {"max_rows_per_file": 5, **options}
        return lance_nb.write_dataset(rows(0, 10) if data is None else data, uri, **options)

    return made


@pytest.fixture
def past(make: Callable[..., LanceDataset]) -> Callable[..., LanceDataset]:
    """Write a history of seven versions.

    1 ten rows in two fragments, 2 five more, 3 ids 1 and 7 updated, 4 id 3 deleted, 5 column ``w``
    added, 6 ``v`` renamed to ``u``, 7 compacted to one fragment.
    """

    def made(*, stable: bool = True, steps: int = 7) -> LanceDataset:
        ds = make(enable_stable_row_ids=stable)
        done: list[Callable[[], object]] = [
            lambda: lance_nb.write_dataset(rows(10, 15), ds.uri, mode="append"),
            lambda: lance_nb.dataset(ds.uri).update({"v": "v + 100"}, where="id in (1, 7)"),
            lambda: lance_nb.dataset(ds.uri).delete("id = 3"),
            lambda: lance_nb.dataset(ds.uri).add_columns({"w": "id * 2"}),
            lambda: lance_nb.dataset(ds.uri).alter_columns({"path": "v", "name": "u"}),
            lambda: lance_nb.dataset(ds.uri).optimize.compact_files(num_threads=1),
        ]
        for step in done[: steps - 1]:
            step()
        return lance_nb.dataset(ds.uri)

    return made
