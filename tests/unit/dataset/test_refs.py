from __future__ import annotations

import pickle
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import (
    DatasetNotFoundError,
    RefConflictError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lance_nb.format.layout import manifest_path
from tests.golden.copies import refs


def test_tags_are_shown_as_pylance_shows_them(at):
    found = at().tags.list()
    assert list(found) == ["first", "on-side"]
    assert {
        name: {"branch": tag["branch"], "version": tag["version"]} for name, tag in found.items()
    } == refs("history")["tags"]
    first = found["first"]
    assert set(first) == {
        "branch",
        "version",
        "created_at",
        "updated_at",
        "manifest_size",
        "metadata",
    }
    assert first["created_at"].tzinfo is UTC
    assert first["created_at"] <= datetime.now(UTC)
    assert first["manifest_size"] > 100
    assert first["metadata"] == {}


def test_a_tag_names_its_version(at):
    assert at().tags.get_version("on-side") == 3
    with pytest.raises(RefNotFoundError, match="'nope'"):
        at().tags.get_version("nope")


def test_branches_are_shown_as_pylance_shows_them(at):
    found = at().branches.list()
    assert list(found) == ["side", "team/deep"]
    deep = found["team/deep"]
    assert set(deep) == {
        "parent_branch",
        "branch_identifier",
        "parent_version",
        "create_at",
        "manifest_size",
        "metadata",
    }
    assert (deep["parent_branch"], deep["parent_version"]) == ("side", 3)
    assert [version for version, _ in deep["branch_identifier"]] == [2, 3]
    assert found["side"]["parent_branch"] is None


def test_names_are_listed_without_reading_refs(at):
    assert at().tags.names() == ["first", "on-side"]
    assert at().branches.names() == ["side", "team/deep"]


def test_refs_are_those_of_the_dataset_on_every_branch(at):
    assert at(("team/deep", None)).tags.list() == at().tags.list()
    assert at(("team/deep", None)).branches.list() == at().branches.list()


@pytest.fixture
def unfinished(tmp_path) -> Any:
    """A dataset with a branch, and one whose creation was interrupted after its record."""
    made = lance_nb.write_dataset(pa.table({"a": [1]}), tmp_path)
    made.create_branch("whole")
    made.create_branch("half")
    shutil.rmtree(tmp_path / "tree" / "half")
    return lance_nb.dataset(tmp_path)


def test_an_unfinished_branch_is_marked_and_says_what_to_do(unfinished):
    marks = {name: one.get("is_unfinished") for name, one in unfinished.branches.list().items()}
    assert marks == {"half": True, "whole": None}
    assert dict(unfinished.branches.list_ordered()) == unfinished.branches.list()
    what_to_do = r"'half' is unfinished.*create it again from main:1.*branches\.delete\('half'\)"
    for ref in (("half", None), ("half", 1)):
        with pytest.raises(DatasetNotFoundError, match=what_to_do):
            unfinished.checkout_version(ref)
    with pytest.raises(DatasetNotFoundError, match=what_to_do):
        unfinished.branches.plan_merge("half")


def test_an_unfinished_branch_is_completed_by_creating_it_again(unfinished):
    assert unfinished.create_branch("half").branch == "half"
    assert not any("is_unfinished" in one for one in unfinished.branches.list().values())


def test_an_unfinished_branch_is_removed_by_deleting_it(unfinished):
    unfinished.branches.delete("half")
    assert unfinished.branches.names() == ["whole"]


# --- tags of versions that do not exist any more --------------------------------------------------


@pytest.fixture(params=["version", "branch"])
def dangling(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Tag "old" names dev:2, whose manifest or whole branch somebody has deleted."""
    rows = pa.table({"a": [1]})
    dataset = lance_nb.write_dataset(rows, tmp_path / "d")
    branch = dataset.create_branch("dev")
    for _ in range(2):
        branch.insert(rows)
    dataset.tags.create("old", ("dev", 2))
    if request.param == "version":
        (tmp_path / "d" / "tree" / "dev" / manifest_path(2)).unlink()
    else:
        dataset.branches.delete("dev", force=True)
    return dataset


def test_opening_a_tag_without_a_version_names_the_tag(dangling: Any):
    pattern = "tag 'old' names version 2 of .*tree/dev.*does not exist any more.*tags.delete"
    for call in (
        lambda: dangling.checkout_version("old"),
        lambda: lance_nb.dataset(dangling.uri, version="old"),
        lambda: dangling.tags.create("new", "old"),
        lambda: dangling.tags.update("old", "old"),
        lambda: dangling.create_branch("new", "old"),
    ):
        with pytest.raises(VersionNotFoundError, match=pattern) as caught:
            call()
        again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
        assert (str(again), again.tag) == (str(caught.value), "old")
    assert (dangling.tags.names(), "new" in dangling.branches.names()) == (["old"], False)


def test_a_tag_without_a_version_is_listed_described_moved_and_deleted(dangling: Any):
    assert dangling.tags.list()["old"]["version"] == dangling.tags.get_version("old") == 2
    dangling.tags.replace_metadata("old", {"a": "b"})
    with pytest.raises(RefConflictError, match="it is at dev:2, not at main:1"):
        dangling.tags.delete("old", expected=(None, 1))
    dangling.tags.update("old", 1, expected=("dev", 2))
    assert dangling.checkout_version("old").version == 1
    dangling.tags.delete("old", expected=("main", 1))
    assert not dangling.tags.list()


def test_a_tag_without_a_version_is_deleted_where_it_was_seen(dangling: Any):
    dangling.tags.delete("old", expected=("dev", 2))
    assert not dangling.tags.list()
