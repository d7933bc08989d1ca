"""Datasets with branches that were moved or copied: pylance before and after a repair."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
LINES = {"dev": [2, 3, 10], "team/sub": [2, 3, 10, 30]}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture(params=["pylance", "lance_nb"])
def first(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A branch and a branch of it, with deletions of shared rows, written by either library."""
    library: Any = require_pylance() if request.param == "pylance" else lance_nb
    main = library.write_dataset(rows(1, 2, 3), tmp_path / "first")
    dev = main.create_branch("dev")
    dev.insert(rows(10))
    dev.delete("id = 1")
    dev.create_branch("team/sub").insert(rows(30))
    return tmp_path / "first"


def ids(library: Any, place: Path, branch: str | None) -> list[int]:
    found = library.dataset(place).checkout_version((branch, None))
    return sorted(found.to_table()["id"].to_pylist())


def test_pylance_follows_the_path_of_a_moved_dataset_and_we_do_not(first: Path, tmp_path: Path):
    lance = require_pylance()
    there = first.rename(tmp_path / "there")
    for branch, expected in LINES.items():
        assert ids(lance_nb, there, branch) == expected
        with pytest.raises((OSError, ValueError), match=r"first/"):
            ids(lance, there, branch)


def test_pylance_reads_the_original_of_a_copy_and_we_the_copy(first: Path, tmp_path: Path):
    lance = require_pylance()
    copy = shutil.copytree(first, tmp_path / "copy")
    for branch, expected in LINES.items():
        assert ids(lance, copy, branch) == ids(lance_nb, copy, branch) == expected
    shutil.rmtree(first / "data")
    with pytest.raises((OSError, ValueError), match=r"first/data"):
        ids(lance, copy, "dev")
    assert ids(lance_nb, copy, "dev") == LINES["dev"]


def test_pylance_reads_and_writes_what_a_repair_made(first: Path, tmp_path: Path):
    lance = require_pylance()
    there = first.rename(tmp_path / "there")
    assert len(lance_nb.dataset(there).repair_moved()) == len(LINES)
    for branch, expected in LINES.items():
        assert ids(lance, there, branch) == ids(lance_nb, there, branch) == expected
        theirs = lance.dataset(there).checkout_version((branch, None))
        theirs.validate()
        theirs.insert(rows(99))
        theirs = lance.dataset(there).checkout_version((branch, None))
        theirs.delete("id = 2")
        wanted = sorted({*expected, 99} - {2})
        assert ids(lance, there, branch) == ids(lance_nb, there, branch) == wanted


def test_pylance_commits_beside_a_repair(first: Path, tmp_path: Path):
    """Who opened the branch before: its change is made on top of the repaired version."""
    lance = require_pylance()
    there = first.rename(tmp_path / "there")
    early = lance.dataset(there).checkout_version(("dev", None))
    lance_nb.dataset(there).repair_moved()
    early.insert(rows(99))
    assert ids(lance, there, "dev") == ids(lance_nb, there, "dev") == [2, 3, 10, 99]


def test_pylance_reads_main_again_that_has_merged_a_branch(first: Path, tmp_path: Path):
    lance = require_pylance()
    lance_nb.dataset(first).branches.merge("dev", key="id")
    there = first.rename(tmp_path / "there")
    with pytest.raises((OSError, ValueError), match=r"first/"):
        ids(lance, there, None)
    assert ids(lance_nb, there, None) == [2, 3, 10]
    lance_nb.dataset(there).repair_moved()
    assert ids(lance, there, None) == ids(lance_nb, there, None) == [2, 3, 10]


def test_a_branch_that_pylance_makes_in_a_moved_dataset_is_read(first: Path, tmp_path: Path):
    """pylance copies the recorded path into the new branch, and cannot read it itself."""
    lance = require_pylance()
    there = first.rename(tmp_path / "there")
    lance.dataset(there).create_branch("late", ("dev", None))
    with pytest.raises((OSError, ValueError), match=r"first/"):
        ids(lance, there, "late")
    assert ids(lance_nb, there, "late") == LINES["dev"]
    assert "late" in {one.branch for one in lance_nb.dataset(there).repair_moved()}
    assert ids(lance, there, "late") == LINES["dev"]
