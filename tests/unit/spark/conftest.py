"""A dataset of several fragments on disk, which other processes see too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.spark.plan import Plan


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{one % 7}" for one in ids]})


@contextmanager
def at_commit(
    others: Sequence[Callable[[], object]] = (),
    *,
    commits: bool = True,
    error: BaseException | type[BaseException] | None = None,
) -> Iterator[list[Plan]]:
    """Do one thing that others do before each commit, and raise an error after it; list the plans.

    ``others`` may be a list that is filled later.
    """
    commit, plans = Plan.commit, []

    def hooked(plan: Plan, *args: Any) -> LanceDataset:
        plans.append(plan)
        if len(plans) <= len(others):
            others[len(plans) - 1]()
        committed = commit(plan, *args) if commits else plan.pinned.dataset()
        if error is not None:
            raise error
        return committed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Plan, "commit", hooked)
        yield plans


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A journal of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    """A hundred rows in ten fragments."""
    uri = str(tmp_path / "rows.lance")
    return lance_nb.write_dataset(rows(0, 100), uri, max_rows_per_file=10)
