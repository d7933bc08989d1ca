"""Fixtures for datasets that are written into memory, each test its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.session import base_paths

_NUMBERS = count()

ROWS = pa.table(
    {"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(9)] + [None]}
)


@pytest.fixture
def rows() -> pa.Table:
    """Ten rows: an id, and a name that is null in the last."""
    return ROWS


@pytest.fixture
def uri() -> str:
    """A place in memory where nothing is."""
    return f"memory://written-tables/{next(_NUMBERS)}.lance"


@pytest.fixture
def make(uri: str) -> Callable[..., LanceDataset]:
    """Write the ten rows; options as for write_dataset."""

    def written(data: Any = ROWS, **options: Any) -> LanceDataset:
        return lance_nb.write_dataset(data, uri, **options)

    return written


@pytest.fixture
def files(uri: str) -> Callable[[], dict[str, bytes]]:
    """All objects of the dataset by path."""
    from lance_nb.storage.registry import open_store

    def found() -> dict[str, bytes]:
        store = open_store(uri, None)
        return {one.name: bytes(store.read(one.name)) for one in store.list_recursive("")}

    return found


@pytest.fixture
def as_another_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forget which base paths this process put into datasets."""
    return lambda: monkeypatch.setattr(base_paths, "_created", {})
