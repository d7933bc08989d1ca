"""Processes that insert the same keys at the same time: every key ends up once.

The key is the unenforced primary key. With pylance among the writers each side reads the filters of
inserted keys that the other one wrote.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.requirements import require_pylance

MARK = {"lance-schema:unenforced-primary-key": "true"}
SCHEMA = pa.schema([pa.field("k", pa.string(), False, MARK), pa.field("worker", pa.int64())])
KEYS, AT_ONCE = 40, 5
ATTEMPTS = 50


def rows_of(keys: list[int], worker: int) -> pa.Table:
    names = [f"key {one}" for one in keys]
    return pa.table([names, [worker] * len(names)], schema=SCHEMA)


def work(task: tuple[str, int, int, bool]) -> set[int]:
    """Insert random keys again and again; return those that were acknowledged."""
    uri, worker, rounds, ours = task
    module: Any
    if ours:
        import lance_nb as module
    else:
        import lance as module
    chance, done, parent = random.Random(worker), set(), os.getppid()
    for _ in range(rounds):
        if os.getppid() != parent:  # the test was killed
            break
        keys = chance.sample(range(KEYS), AT_ONCE)
        _insert(module, uri, rows_of(keys, worker))
        done.update(keys)
    return done


def _insert(module: Any, uri: str, rows: pa.Table) -> None:
    for attempt in range(ATTEMPTS):
        try:
            module.dataset(uri).merge_insert().when_not_matched_insert_all().execute(rows)
        except OSError:  # too many writers at once: nothing was inserted
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


def race(uri: str, rounds: int, engines: list[bool]) -> None:
    import lance_nb

    lance_nb.write_dataset(rows_of([], 0), uri, schema=SCHEMA)
    tasks = [(uri, number, rounds, ours) for number, ours in enumerate(engines)]
    with multiprocessing.get_context("spawn").Pool(len(tasks)) as pool:
        done = set().union(*pool.map(work, tasks, chunksize=1))
    found = lance_nb.dataset(uri).to_table()["k"].to_pylist()
    assert sorted(found) == sorted(f"key {one}" for one in done)


@pytest.mark.slow
def test_processes_of_ours_never_insert_a_key_twice(tmp_path: Path) -> None:
    race(str(tmp_path / "t.lance"), 12, [True] * 3)


@pytest.mark.interop
@pytest.mark.slow
def test_processes_of_ours_and_of_pylance_never_insert_a_key_twice(tmp_path: Path) -> None:
    require_pylance()
    race(str(tmp_path / "t.lance"), 12, [True, False, True, False])
