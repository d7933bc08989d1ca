"""Clean-ups through the façade: rules, dry runs, branches, tags."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CleanupError, InvalidInputError

NOW = timedelta(0)


@pytest.fixture
def grown(make: Callable[..., LanceDataset], rows: Any) -> LanceDataset:
    """Return five versions: rows, three overwrites, an append."""
    found = make()
    for _ in range(3):
        found.insert(rows, mode="overwrite")
    found.insert(rows)
    return found


def test_old_versions_go_with_what_only_they_need(grown: LanceDataset, files: Any):
    before = files()
    planned = grown.cleanup_old_versions(NOW, dry_run=True)
    assert files() == before
    stats = grown.cleanup_old_versions(NOW)
    gone = {path: data for path, data in before.items() if path not in files()}
    assert {one.path for one in planned.candidate_files} == set(gone)
    assert planned.stats == stats
    assert stats.bytes_removed == sum(map(len, gone.values()))
    assert stats.old_versions == 4
    assert grown.version_numbers() == [5]
    assert grown.count_rows() == grown.to_table().num_rows == 20


def test_rules_hold_together(grown: LanceDataset):
    assert grown.cleanup_old_versions().old_versions == 0
    assert grown.cleanup_old_versions(timedelta(days=1), 1).old_versions == 0
    assert grown.cleanup_old_versions(NOW, 4, versions=[1, 2, 5]).old_versions == 1
    assert grown.version_numbers() == [2, 3, 4, 5]
    assert grown.cleanup_old_versions(retain_versions=2).old_versions == 2
    assert grown.version_numbers() == [4, 5]


def test_versions_after_the_one_that_is_open_stay(grown: LanceDataset):
    assert grown.checkout_version(3).cleanup_old_versions(retain_versions=1).old_versions == 2
    assert grown.version_numbers() == [3, 4, 5]


def test_tagged_versions_are_reported_or_left(grown: LanceDataset, files: Any):
    grown.tags.create("kept", 2)
    before = files()
    with pytest.raises(CleanupError, match="'kept' \\(version 2\\)") as caught:
        grown.cleanup_old_versions(NOW)
    assert files() == before
    assert isinstance(caught.value, OSError)
    grown.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert grown.version_numbers() == [2, 5]
    assert grown.checkout_version("kept").to_table().num_rows == 10


def test_a_branch_protects_the_version_it_started_from_and_is_cleaned_alone(
    grown: LanceDataset, rows: Any, files: Any
):
    branch = grown.create_branch("a/data", 3)  # its folder looks like data of a branch "a"
    other = grown.create_branch("a", 4)
    for one in (branch, other):
        one.insert(rows, mode="overwrite")
        one.insert(rows)
    inner = {path: data for path, data in files().items() if path.startswith("tree/a/data/")}
    outer = {path: data for path, data in files().items() if not path.startswith("tree/")}
    other.cleanup_old_versions(NOW, delete_unverified=True)
    assert inner.items() <= files().items()
    assert outer.items() <= files().items()
    assert other.version_numbers() == [6]
    found = grown.cleanup_old_versions(NOW, dry_run=True)
    assert [(one.name, one.referenced_version) for one in found.referenced_branches] == [
        ("a/data", 3),
        ("a", 4),
    ]
    grown.cleanup_old_versions(NOW, delete_unverified=True)
    assert grown.version_numbers() == [3, 4, 5]
    assert branch.checkout_version(3).to_table().num_rows == 10
    assert branch.to_table().num_rows == 20
    assert grown.verify().ok


@pytest.mark.parametrize(
    "wrong",
    [
        {"older_than": 5},
        {"older_than": timedelta(-1)},
        {"retain_versions": 0},
        {"retain_versions": 1.5},
        {"versions": []},
        {"versions": ["1"]},
        {"delete_rate_limit": 0},
        {"delete_concurrency": 0},
        {"delete_concurrency": 2**61},
    ],
)
def test_wrong_rules_change_nothing(grown: LanceDataset, files: Any, wrong: dict[str, Any]):
    before = files()
    with pytest.raises(CleanupError):
        grown.cleanup_old_versions(**wrong)
    assert files() == before


def test_an_explanation_lists_files_when_asked(grown: LanceDataset):
    assert grown.explain_cleanup_old_versions(NOW).candidate_files == []
    found = grown.explain_cleanup_old_versions(NOW, include_files=True, max_files=2)
    assert (len(found.candidate_files), found.candidate_file_limit) == (2, 2)
    with pytest.raises(InvalidInputError, match="max_files"):
        grown.explain_cleanup_old_versions(max_files=0)


def test_a_handle_whose_version_is_gone_cleans_up_what_is_older(grown: LanceDataset):
    old = grown.checkout_version(2)
    grown.cleanup_old_versions(NOW, versions=[2])
    newest = grown.version
    assert old.cleanup_old_versions(NOW).old_versions == 1
    assert grown.version_numbers() == list(range(3, newest + 1))


def test_files_under_another_base_path_are_never_deleted(grown: LanceDataset, uri: str, rows: Any):
    clone = grown.shallow_clone(f"{uri}-clone")
    clone.insert(rows, mode="overwrite")
    before = set(grown.space().files["path"].to_pylist())
    opened = lance_nb.dataset(f"{uri}-clone", allow_bases=[uri])
    opened.cleanup_old_versions(NOW, delete_unverified=True)
    assert opened.version_numbers() == [6]
    assert before == set(grown.space().files["path"].to_pylist())
    assert grown.verify().ok


def test_folders_of_indices_go_once_they_are_empty(rows: Any, tmp_path: Path):
    place = tmp_path / "indexed.lance"
    ds = lance_nb.write_dataset(rows, place)
    branch = ds.create_branch("dev")
    branch.create_scalar_index("id", "BTREE")
    names = []
    for _ in range(3):
        ds.create_scalar_index("id", "BTREE", replace=True)
        names.append(str(ds.list_indices()[0]["uuid"]))
    indices = place / "_indices"
    (indices / names[1] / "of-another-process").mkdir()
    (indices / "new").mkdir()  # another process is about to write into it
    ds.cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    assert {one.name for one in indices.iterdir()} == {names[1], names[2], "new"}
    assert [one.name for one in (indices / names[1]).iterdir()] == ["of-another-process"]
    (folder,) = (place / "tree" / "dev" / "_indices").iterdir()
    assert list(folder.iterdir())
    branch.drop_index("id_idx")
    branch.cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    assert not folder.exists()
