"""Verbs of jobs that run in this process: they are planned, run task by task, committed once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from unittest import mock

from pyarrow import parquet

from lance_nb import spark
from tests.faults.verbs.verb import Verb, rows


def _with_source(path: str) -> None:
    parquet.write_table(rows(100, 40), f"{path}.parquet", row_group_size=20)


def _job(act: Callable[..., Any], between: tuple[str, ...] = ()) -> Verb:
    """Return a verb that calls ``act(path, engine=)``; its journal lies beside the dataset."""

    def run(path: str) -> None:
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": f"{path}-cache"}):
            act(path, engine="local")

    return Verb(run, _with_source, on=None, between=between)


JOBS_VERBS: dict[str, Verb] = {
    "job append": _job(lambda path, **how: spark.append(path, f"{path}.parquet", **how)),
    "job overwrite": _job(
        lambda path, **how: spark.write(f"{path}.parquet", path, "overwrite", **how)
    ),
    "job replace": _job(
        lambda path, **how: spark.write(
            f"{path}.parquet", path, "overwrite", where="id >= 50", **how
        )
    ),
    "job delete": _job(lambda path, **how: spark.delete(path, "id % 3 = 0", **how)),
    "job update": _job(lambda path, **how: spark.update(path, {"text": "'x'"}, "id < 9", **how)),
    "job upsert": _job(lambda path, **how: spark.upsert(path, rows(25, 40), "id", **how)),
    "job backfill": _job(lambda path, **how: spark.backfill(path, {"twice": "id * 2"}, **how)),
    "job compact": _job(spark.compact, ("same rows",)),
    "job index": _job(lambda path, **how: spark.create_scalar_index(path, "id", **how)),
}  # fmt: skip
