"""A history in memory: appended, updated, deleted, a column added, compacted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.storage.registry import open_store

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


_WRITTEN: dict[tuple[bool, int], str] = {}


@pytest.fixture
def past() -> Callable[..., LanceDataset]:
    """Write a history of seven versions, or copy one that was written for another test.

    1 ten rows in two fragments, 2 five more, 3 ids 1 and 7 updated, 4 id 3 deleted, 5 column ``w``
    added, 6 ``v`` renamed to ``u``, 7 compacted to one fragment.
    """

    def made(*, stable: bool = True, steps: int = 7) -> LanceDataset:
        if (stable, steps) not in _WRITTEN:
            _WRITTEN[stable, steps] = _write(stable=stable, steps=steps)
        source = open_store(_WRITTEN[stable, steps], None)
        uri = f"memory://unit-diff/{next(_NUMBERS)}.lance"
        target = open_store(uri, None)
        for one in source.list_recursive(""):
            target.write(one.name, source.read(one.name))
        return lance_nb.dataset(uri)

    return made


def _write(*, stable: bool, steps: int) -> str:
    uri = f"memory://unit-diff/{next(_NUMBERS)}.lance"
    options = {"max_rows_per_file": 5, "enable_stable_row_ids": stable}
    lance_nb.write_dataset(rows(0, 10), uri, **options)
    done: list[Callable[[LanceDataset], object]] = [
        lambda ds: lance_nb.write_dataset(rows(10, 15), ds, mode="append"),
        lambda ds: ds.update({"v": "v + 100"}, where="id in (1, 7)"),
        lambda ds: ds.delete("id = 3"),
        lambda ds: ds.add_columns({"w": "id * 2"}),
        lambda ds: ds.alter_columns({"path": "v", "name": "u"}),
        lambda ds: ds.optimize.compact_files(),
    ]
    for step in done[: steps - 1]:
        step(lance_nb.dataset(uri))
    return uri
