"""A driver that dies: before its commit, after it, and while another one works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from tests.house.source import ROOT

pytestmark = pytest.mark.slow  # each starts processes that import everything

DIES = """
import os, sys
from lance_nb import spark
from lance_nb.spark.plan import Plan

commit, uri, when = Plan.commit, sys.argv[1], sys.argv[2]

def dies(plan, *args):
    if when == "after":
        commit(plan, *args)
    os._exit(9)

Plan.commit = dies
spark.append(uri, uri, engine="local")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_next_kernel_finishes_the_commit_once(dataset: LanceDataset, when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DIES, dataset.uri, when], cwd=ROOT, check=False, timeout=300
    )
    assert done.returncode == 9
    lance_nb.dataset(dataset.uri).delete("id = 7")  # others go on meanwhile
    (entry,) = spark.unfinished()
    assert "append" in str(entry)
    made = spark.resume(entry.operation_id)
    assert spark.unfinished() == []
    newest = lance_nb.dataset(dataset.uri)
    assert newest.version == 3
    assert made.version == (3 if when == "before" else 2)
    expected = 200 - (1 if when == "before" else 2)
    assert newest.count_rows() == expected
    newest.validate()


def test_work_that_is_given_up_is_removed_by_cleanup(dataset: LanceDataset) -> None:
    subprocess.run(
        [sys.executable, "-c", DIES, dataset.uri, "before"], cwd=ROOT, check=False, timeout=300
    )
    (entry,) = spark.unfinished()
    spark.forget(entry.operation_id)
    folder = Path(dataset.uri) / "data"
    assert len(list(folder.iterdir())) == 11
    from datetime import timedelta

    dataset.cleanup_old_versions(older_than=timedelta(days=1), delete_unverified=True)
    assert len(list(folder.iterdir())) == 10
    assert lance_nb.dataset(dataset.uri).count_rows() == 100
