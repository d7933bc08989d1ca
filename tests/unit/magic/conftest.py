"""A real IPython shell with ``%lance``, and a dataset with a history, on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import lance_nb
from lance_nb.explorer.stage import staging_area

Lance = Callable[[str], Any]


def rows(start: int, stop: int) -> pa.Table:
    """Rows with an id, a label that is null from 40 on, and a price."""
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "label": pa.array([None if one >= 40 else f"l{one % 3}" for one in ids], pa.string()),
            "price": pa.array([float(one) for one in ids]),
        }
    )


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven versions on main, two on branch dev (forked from 3), tags v1 and late."""
    path = tmp_path_factory.mktemp("magic") / "photos.lance"
    dataset = lance_nb.write_dataset(rows(0, 10), str(path))
    for start in (10, 20):
        dataset = lance_nb.write_dataset(rows(start, start + 10), str(path), mode="append")
    dataset.tags.create("v1")
    branch = dataset.create_branch("dev")
    branch.delete("id = 3")
    for start in (30, 40):
        dataset = lance_nb.write_dataset(rows(start, start + 10), str(path), mode="append")
    dataset.delete("id = 41")
    dataset.update({"price": "price + 1"}, where="id < 5")
    dataset.tags.create("late")
    return path


@pytest.fixture
def uri(written: Path, tmp_path: Path) -> Iterator[str]:
    """The same dataset, put back as it was when the test has ended.

    It stays where it is: its branch names the absolute path of the files it shares with main.
    """
    kept = shutil.copytree(written, tmp_path / "kept")
    yield str(written)
    staging_area._AREAS.clear()
    shutil.rmtree(written)
    shutil.copytree(kept, written)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell = InteractiveShell()
    shell.history_manager.enabled = False
    shell.run_line_magic("load_ext", "lance_nb")
    yield shell
    shell.history_manager.end_session()


@pytest.fixture
def lance(shell: InteractiveShell) -> Lance:
    return lambda line: shell.run_line_magic("lance", line)
