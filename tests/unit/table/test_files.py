from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lance_nb.storage.base import Store
from lance_nb.table.files import ALL, TRACKED, all_files, tracked_files
from lance_nb.table.snapshot import Snapshot


def test_versions_name_their_files(history: Store, at: Callable[..., Snapshot]) -> None:
    seen: list[tuple[int, int]] = []
    batches = list(tracked_files([1, 5], at, lambda *done: seen.append(done)))
    table = pa.Table.from_batches(batches, TRACKED)

    assert seen == [(1, 2), (2, 2)]
    assert set(table["version"].to_pylist()) == {1, 5}
    assert table["type"].to_pylist().count("manifest") == 2
    there = {one.name for one in history.list_recursive("")}
    assert set(table["path"].to_pylist()) <= there


def test_everything_below_the_root_is_listed(history: Store) -> None:
    (batch,) = all_files(history)

    assert batch.schema.equals(ALL)
    assert batch.num_rows == len(history.list_recursive(""))
    assert min(batch["size_bytes"].to_pylist()) >= 0
