"""Golden datasets in memory, for every test of the table floor."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.storage.base import Store
from lance_nb.table.refs import Ref
from lance_nb.table.snapshot import Snapshot
from tests.golden.copies import NAMES, copy_to_memory
from tests.golden.opening import snapshot_of
from tests.support.written_tables import as_another_process, files, make, rows, uri

__all__ = ["as_another_process", "files", "make", "rows", "uri"]


@pytest.fixture(scope="session")
def stores() -> dict[str, Store]:
    """Every golden dataset in a memory store, by name; not to be changed."""
    return {name: copy_to_memory(name) for name in NAMES}


@pytest.fixture
def history(stores: dict[str, Store]) -> Store:
    """The dataset with a past."""
    return stores["history"]


@pytest.fixture
def at(history: Store) -> Callable[[Ref | None], Snapshot]:
    """Load a version of the history."""
    return lambda ref=None: snapshot_of(history, ref)


@pytest.fixture
def two_fragments() -> lance_nb.LanceDataset:
    """Write four rows into two fragments, with stable row ids."""
    table = pa.table({"id": range(4), "v": [0.0, 1.0, 2.0, 3.0]})
    uri = f"memory://two-fragments-{uuid4().hex}/d.lance"
    return lance_nb.write_dataset(table, uri, max_rows_per_file=2, enable_stable_row_ids=True)
