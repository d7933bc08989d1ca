"""The demo dataset as pylance wrote it: the history that the tour promises is there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.house.source import ROOT
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    lance = require_pylance()
    path = tmp_path_factory.mktemp("demo") / "demo.lance"
    subprocess.run(
        [sys.executable, ROOT / "notebooks" / "demo_data.py", path],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return lance.dataset(path)


def test_demo_dataset_has_the_history_that_the_tour_shows(demo: Any) -> None:
    operations = {
        type(demo.read_transaction(version["version"]).operation).__name__
        for version in demo.versions()
    }

    assert {"Append", "Delete", "Update", "Merge", "Project", "Rewrite"} <= operations
    assert len(demo.versions()) >= 12
    assert set(demo.tags.list()) == {"raw-import", "training-v1", "reviewed"}
    assert set(demo.branches.list()) == {"relabel", "augmented"}
    assert 19_000 <= demo.count_rows() <= 22_000


def test_commit_messages_are_kept(demo: Any) -> None:
    properties = demo.read_transaction(2).transaction_properties

    assert properties["__lance_commit_message"] == "Import the summer archive"


def test_branches_went_their_own_way(demo: Any) -> None:
    relabel = demo.checkout_version(("relabel", None)).to_table(columns=["label"])["label"]
    augmented = demo.checkout_version(("augmented", None))

    assert "pet" in relabel.to_pylist()
    assert "cat" not in relabel.to_pylist()
    assert augmented.count_rows() > demo.checkout_version(14).count_rows()


def test_latest_version_still_has_deleted_rows(demo: Any) -> None:
    assert sum(fragment.num_deletions for fragment in demo.get_fragments()) > 0
