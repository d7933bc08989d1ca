"""A notebook that is read without a kernel shows the branches and tags as a table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer import ref_pictures
from lance_nb.explorer.registry import RefsManager


def test_branches_and_tags_are_pictured_with_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_nb.write_dataset(pa.table({"id": [1]}), "memory://ref-pictures/d.lance")
    dataset.tags.create("v1", 1)
    dataset.create_branch("dev")
    dataset.create_branch("try")
    shown = RefsManager(dataset).picture()
    for words in ("2 beside main, 1 tag", "dev", "from main:1", "v1", "main:1"):
        assert words in shown.text
    assert shown.html.count("<tr>") == 1 + 4
    monkeypatch.setattr(ref_pictures, "MAX_LINES", 1)
    few = RefsManager(dataset).picture().text
    assert "try" not in few
    assert "1 more" in few


def test_an_unfinished_branch_is_pictured_as_such(tmp_path: Path) -> None:
    dataset = lance_nb.write_dataset(pa.table({"id": [1]}), tmp_path)
    dataset.create_branch("half")
    shutil.rmtree(tmp_path / "tree")
    assert "from main:1, unfinished" in RefsManager(dataset).picture().text


def test_without_a_dataset_the_picture_says_why() -> None:
    assert "No dataset here" in RefsManager("memory://ref-pictures/none.lance").picture().text
