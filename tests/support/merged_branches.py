"""Pairs of branches in memory, and what is done on them before they are merged."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pyarrow as pa

import lance_nb
from lance_nb.dataset import LanceDataset

_NUMBERS = count()


Act = Callable[[LanceDataset], object]


def pair(stable: bool) -> tuple[LanceDataset, LanceDataset]:
    """Return main and a branch of it: three fragments of three rows."""
    table = pa.table({"id": pa.array(range(9), pa.int64()), "v": pa.array(range(9), pa.int64())})
    main = lance_nb.write_dataset(
        table,
        f"memory://three-way/{next(_NUMBERS)}",
        max_rows_per_file=3,
        enable_stable_row_ids=stable,
    )
    return main, main.create_branch("dev")


def deleting(predicate: str) -> Act:
    return lambda made: made.delete(predicate)


def adding(*ids: int) -> Act:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(ids, pa.int64())})
    return lambda made: made.insert(rows)


def both(*acts: Act) -> Act:
    return lambda made: [one(made) for one in acts]
