from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_nb.errors import RefNotFoundError
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
