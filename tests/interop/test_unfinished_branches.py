"""Branches whose creation or deletion was interrupted: what pylance says, and what we do."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import DatasetNotFoundError, RefConflictError
from tests.interop.matrix import SCALE
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop


@pytest.fixture(params=["pylance", "lance_nb"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Two versions and a branch from the second, written by either library."""
    library: Any = require_pylance() if request.param == "pylance" else lance_nb
    made = library.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d")
    made.insert(pa.table({"a": [3]}))
    made.create_branch("dev", 2)
    return str(tmp_path / "d")


def without_versions(place: str) -> None:
    shutil.rmtree(f"{place}/tree")


def without_record(place: str) -> None:
    Path(place, "_refs", "branches", "dev.json").unlink()


def rows(place: str, library: Any) -> list[int]:
    found = library.dataset(place).checkout_version(("dev", None))
    return found.to_table()["a"].to_pylist()


def test_pylance_lists_a_record_without_versions_and_deletes_it(dataset: str):
    lance = require_pylance()
    without_versions(dataset)
    found = lance.dataset(dataset)
    assert list(found.branches.list()) == ["dev"]
    with pytest.raises(ValueError, match="Not found"):
        found.checkout_version(("dev", None))
    with pytest.raises(OSError, match="already exists"):
        found.create_branch("dev", 1)  # and leaves a version 1 there
    found.branches.delete("dev")
    assert not lance_nb.dataset(dataset).branches.list()


def test_a_record_without_versions_is_marked_and_says_what_to_do(dataset: str):
    without_versions(dataset)
    found = lance_nb.dataset(dataset)
    assert found.branches.list()["dev"]["is_unfinished"]
    for ref in (("dev", None), ("dev", 2)):
        with pytest.raises(DatasetNotFoundError, match=r"unfinished.*main:2.*delete\('dev'\)"):
            found.checkout_version(ref)
    with pytest.raises(RefConflictError, match="unfinished"):
        found.create_branch("dev", 1)


def test_a_branch_that_we_complete_is_one_that_pylance_reads_and_writes(dataset: str):
    lance = require_pylance()
    without_versions(dataset)
    made = lance_nb.dataset(dataset).create_branch("dev", 2)
    assert made.to_table()["a"].to_pylist() == rows(dataset, lance) == [1, 2, 3]
    lance.dataset(dataset).checkout_version(("dev", None)).insert(pa.table({"a": [4]}))
    assert rows(dataset, lance_nb) == rows(dataset, lance) == [1, 2, 3, 4]
    assert lance.dataset(dataset).branches.list() == lance_nb.dataset(dataset).branches.list()


def test_a_branch_that_we_delete_is_free_for_pylance(dataset: str):
    lance = require_pylance()
    without_versions(dataset)
    lance_nb.dataset(dataset).branches.delete("dev")
    lance.dataset(dataset).create_branch("dev", 1)
    assert rows(dataset, lance_nb) == [1, 2]


def test_pylance_cannot_create_over_a_version_without_a_record(dataset: str):
    """Its own way: the version first, then the record."""
    lance = require_pylance()
    without_record(dataset)
    for version in (1, 2):
        with pytest.raises(OSError, match=r"not found|internal error"):
            lance.dataset(dataset).create_branch("dev", version)
    with pytest.raises(ValueError, match="does not exist"):
        lance.dataset(dataset).branches.delete("dev")


def test_we_complete_a_version_without_a_record(dataset: str):
    lance = require_pylance()
    without_record(dataset)
    found = lance_nb.dataset(dataset)
    with pytest.raises(RefConflictError, match="force=True"):
        found.create_branch("dev", 1)
    found.create_branch("dev", 2)
    assert list(lance.dataset(dataset).branches.list()) == ["dev"]
    lance.dataset(dataset).checkout_version(("dev", None)).insert(pa.table({"a": [4]}))
    assert rows(dataset, lance_nb) == [1, 2, 3, 4]


def test_what_is_left_without_a_record_is_removed_when_forced(dataset: str):
    lance = require_pylance()
    without_record(dataset)
    lance_nb.dataset(dataset).branches.delete("dev", force=True)
    lance.dataset(dataset).create_branch("dev", 1)
    assert rows(dataset, lance_nb) == rows(dataset, lance) == [1, 2]


def created_at_once(place: Path, theirs: int, ours: int) -> tuple[bool, bool]:
    """Create a branch by both libraries at the same time; return who reports success."""
    lance = require_pylance()
    handles = [
        (lance.dataset(place), theirs, (OSError, ValueError)),
        (lance_nb.dataset(place), ours, (RefConflictError,)),
    ]
    start = threading.Barrier(len(handles))

    def create(handle: Any, version: int, refusals: tuple[type[Exception], ...]) -> bool:
        start.wait()
        try:
            handle.create_branch("dev", version)
        except refusals:
            return False
        return True

    with ThreadPoolExecutor(len(handles)) as pool:
        futures = [pool.submit(create, *handle) for handle in handles]
        by_pylance, by_us = (future.result() for future in futures)
    return by_pylance, by_us


RACES = round(20 * max(1, SCALE))


def test_one_of_both_creates_a_branch_that_both_create_at_once(tmp_path: Path):
    """Before, both gave up in a third of the races."""
    outcomes = Counter()
    for number in range(RACES):
        made = lance_nb.write_dataset(pa.table({"a": [1, 2]}), tmp_path / str(number))
        made.insert(pa.table({"a": [3]}))
        outcomes[created_at_once(tmp_path / str(number), 1, 1)] += 1
        for library in (require_pylance(), lance_nb):
            assert list(library.dataset(tmp_path / str(number)).branches.list()) == ["dev"]
            assert rows(str(tmp_path / str(number)), library) == [1, 2]
    print(outcomes)
    assert (False, False) not in outcomes


@pytest.mark.parametrize(("theirs", "ours"), [(1, 2), (2, 1)])
def test_a_branch_that_both_create_from_other_versions_is_never_wrong_in_secret(
    tmp_path: Path, theirs: int, ours: int
):
    outcomes = Counter()
    for number in range(RACES):
        place = str(tmp_path / str(number))
        lance_nb.write_dataset(pa.table({"a": [1]}), place).insert(pa.table({"a": [2]}))
        by_pylance, by_us = created_at_once(Path(place), theirs, ours)
        found = {finding.code for finding in lance_nb.verify(place).findings}
        is_mixed = bool({"branch-mixed", "branch-without-record"} & found)
        outcomes[by_pylance, by_us, is_mixed] += 1
        assert not (by_pylance and by_us)
        if (by_pylance or by_us) and not is_mixed:
            assert len(rows(place, lance_nb)) == (ours if by_us else theirs)
        lance_nb.dataset(place).branches.delete("dev", force=True)
        lance_nb.dataset(place).create_branch("dev", 1)
        assert rows(place, lance_nb) == rows(place, require_pylance()) == [1]
    print(outcomes)
