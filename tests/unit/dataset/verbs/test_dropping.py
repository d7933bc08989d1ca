"""A dataset is deleted whole, and only a dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

import lance_nb
from lance_nb import DatasetNotFoundError, InvalidInputError, LanceDataset


def test_nothing_remains_of_a_dataset(make, uri, files) -> None:
    made = make()
    made.create_branch("dev").insert(made.to_table())
    made.tags.create("t", 1)
    LanceDataset.drop(uri)
    assert files() == {}
    with pytest.raises(DatasetNotFoundError):
        lance_nb.dataset(uri)


def test_no_folder_remains_of_a_local_one(rows, tmp_path: Path) -> None:
    lance_nb.write_dataset(rows, tmp_path / "d").create_branch("dev")
    LanceDataset.drop(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_is_nothing_can_be_dropped(uri) -> None:
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.drop(uri)
    LanceDataset.drop(uri, ignore_not_found=True)


def test_other_folders_are_left_alone(rows, tmp_path: Path) -> None:
    lance_nb.write_dataset(rows, tmp_path / "above" / "d")
    with pytest.raises(InvalidInputError, match="not the root of a dataset"):
        LanceDataset.drop(tmp_path / "above")
    broken = tmp_path / "broken" / "_versions"
    broken.mkdir(parents=True)
    (broken / "1.manifest").write_bytes(b"no manifest")
    with pytest.raises(InvalidInputError, match="not the root of a dataset"):
        LanceDataset.drop(tmp_path / "broken")
    assert lance_nb.dataset(tmp_path / "above" / "d").count_rows() == 10
    assert (broken / "1.manifest").exists()
