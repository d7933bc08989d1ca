"""A dataset in memory, a staging area for it and a session of Spark, each test its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.explorer.stage.card import Card, ProgressReporter
from lance_nb.explorer.stage.edit_forms import EditForm
from lance_nb.explorer.stage.staging_area import StagingArea, staging_area_of
from lance_nb.spark import run
from lance_nb.spark.engine import LocalEngine

_NUMBERS = count()
MORE = pa.table({"id": [100, 101], "price": [1.0, 2.0]})


@pytest.fixture
def dataset() -> LanceDataset:
    data = pa.table({"id": range(20), "price": [float(one) for one in range(20)]})
    uri = f"memory://staging/{next(_NUMBERS)}.lance"
    return lance_nb.write_dataset(data, uri, max_rows_per_file=10)


@pytest.fixture
def area(dataset: LanceDataset) -> StagingArea:
    return staging_area_of(dataset)


@pytest.fixture
def add(dataset: LanceDataset, area: StagingArea) -> Callable[..., Card]:
    def staged(verb: str, engine: str = "auto", **args: Any) -> Card:
        return area.add(
            dataset, EditForm.of(verb, args, engine), {"more": MORE}, ProgressReporter()
        )

    return staged


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> object:
    """A session of Spark's whose tasks run in this process."""
    found = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"), version="4")

    class Here(LocalEngine):
        name = "spark"

        def __init__(self, session: object) -> None:
            assert session is found

    monkeypatch.setattr(spark, "find_session", lambda *_: found)
    monkeypatch.setattr(run, "find_session", lambda: found)
    monkeypatch.setattr(run, "SparkEngine", Here)
    return found


@pytest.fixture
def newest(dataset: LanceDataset) -> Callable[[], LanceDataset]:
    return lambda: lance_nb.dataset(dataset.uri)
