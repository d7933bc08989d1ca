"""One local session for all tests: starting one takes ten seconds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lance_nb import spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def bytecode() -> dict[str, str]:
    """The environment of Spark's Python processes: they keep, and find, what has been compiled.

    With a cache that begins empty in each run, the imports of a process take 3.9 s of processor
    instead of 0.9.
    """
    return {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """A session with two cores that tries each task three times."""
    problem = spark.why_not()
    if problem is not None:
        pytest.skip(problem)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter("ignore")
        patched.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        made = spark.start_session(
            spark__master="local[2,3]",
            spark__driver__memory="1g",
            spark__sql__shuffle__partitions="4",
            spark__sql__session__timeZone="UTC",
        )
    spark.register(made)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
