"""The demo dataset has the history that the notebooks promise, in pylance's eyes as in ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.magic.demo import BAD_ROWS
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
BAD_VERSION = 16  # the import of week 45
TAGS = {"raw-import": 2, "training-v1": 9, "week-47": 20, "reviewed": 26}
BRANCHES = {"relabel": 9, "augmented": 13, "captions": 22}


@pytest.fixture(scope="module")
def theirs(demo: Path) -> Any:
    return require_pylance().dataset(str(demo))


@pytest.fixture(scope="module")
def ours(demo: Path) -> lance_nb.LanceDataset:
    return lance_nb.dataset(str(demo))


def test_it_counts_what_the_notebooks_say(theirs: Any, ours: lance_nb.LanceDataset) -> None:
    for one in (theirs, ours):
        assert one.version == len(one.versions()) == 26
        assert {name: tag["version"] for name, tag in one.tags.list().items()} == TAGS
        forks = {name: about["parent_version"] for name, about in one.branches.list().items()}
        assert forks == BRANCHES
        assert one.count_rows() == 49_590
    assert ours.verify(values=False).ok


def test_every_kind_of_change_is_there(ours: lance_nb.LanceDataset) -> None:
    operations = {one.operation for one in ours.history()}

    assert operations == {
        "Overwrite", "Append", "Delete", "Update", "Merge", "Project", "Rewrite", "UpdateConfig",
    }  # fmt: skip
    assert ours.stats().num_deleted_rows > 1_000
    assert len(ours.get_fragments()) >= 5


def test_every_commit_says_who_and_why(theirs: Any, ours: lance_nb.LanceDataset) -> None:
    assert all(one.message for one in ours.history())
    properties = theirs.read_transaction(BAD_VERSION).transaction_properties
    assert properties["__lance_commit_message"] == "Import week 45 with the new script"
    assert properties["lance_nb.provenance.author"] == "Tom"


def test_one_ingest_went_wrong(theirs: Any) -> None:
    before, after = theirs.checkout_version(BAD_VERSION - 1), theirs.checkout_version(BAD_VERSION)

    assert after.count_rows() - before.count_rows() == BAD_ROWS
    assert before.count_rows("score > 1") == before.count_rows("label IS NULL") == 0
    assert after.count_rows("score > 1") > 3_000
    assert after.count_rows("label IS NULL") > 500
    assert theirs.count_rows("score > 1") == after.count_rows("score > 1")


def test_branches_went_their_own_way(theirs: Any) -> None:
    relabel = theirs.checkout_version(("relabel", None)).to_table(columns=["label"])["label"]
    augmented = theirs.checkout_version(("augmented", None))
    captions = theirs.checkout_version(("captions", None))

    assert {"pet"} <= set(relabel.to_pylist())
    assert "cat" not in relabel.to_pylist()
    assert augmented.count_rows() == theirs.checkout_version(13).count_rows() + 1_000
    assert "caption_length" in captions.schema.names


def test_both_engines_read_the_same(theirs: Any, ours: lance_nb.LanceDataset) -> None:
    columns = ["id", "caption", "label", "score", "meta", "tags", "embedding"]

    assert ours.to_table(columns=columns).equals(theirs.to_table(columns=columns))
