"""Golden datasets in memory and on disk, for every test of the façade."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.storage.base import Store
from lance_nb.table.refs import Ref
from tests.golden.copies import NAMES, copy_to_folder, copy_to_memory
from tests.support.written_tables import ROWS, as_another_process, files, make, rows, uri

__all__ = ["ROWS", "as_another_process", "files", "make", "rows", "uri"]


@pytest.fixture(scope="session")
def stores() -> dict[str, Store]:
    """Every golden dataset in a memory store, by name; not to be changed."""
    return {name: copy_to_memory(name) for name in NAMES}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history on disk; not to be changed."""
    return copy_to_folder("history", tmp_path_factory.mktemp("golden"))


@pytest.fixture
def at(stores: dict[str, Store]) -> Callable[[Ref | None], LanceDataset]:
    """Open a version of the history."""
    return lambda ref=None: lance_nb.dataset(stores["history"].uri, ref)
