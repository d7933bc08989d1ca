from __future__ import annotations

import json
import threading

import pytest

from lance_nb.errors import (
    InvalidInputError,
    InvalidRefError,
    RefConflictError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions.branch_writer import BranchWriter
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.tag_writer import TagWriter, ordered_branches, ordered_tags
from tests.support.committing import START_NS, Table

MAIN_1 = Target(None, 1)


def _table(versions: int = 3) -> Table:
    table = Table()
    table.create()
    for version in range(1, versions):
        table.append(version)
    return table


def _tags(table: Table) -> TagWriter:
    return TagWriter(
        table.root, lambda branch: CommitPlace.of(table.root, branch), table.environment
    )


def test_a_tag_is_written_as_pylance_writes_it():
    table = _table()
    _tags(table).create("v1", Target(None, 2))
    record = json.loads(bytes(table.inner.read("_refs/tags/v1.json")))
    size = table.inner.size("_versions/18446744073709551613.manifest")
    times = record.pop("createdAt"), record.pop("updatedAt")
    assert times[0] == times[1]
    assert times[0].startswith("2023-11-14T22:13:20.")
    assert len(times[0]) == len("2023-11-14T22:13:20.000000000Z")
    assert record == {"branch": None, "version": 2, "manifestSize": size, "metadata": {}}


def test_none_is_the_latest_version():
    table = _table(3)
    assert _tags(table).create("now", Target(None, None)).version == 3


def test_a_name_is_taken_once():
    table = _table()
    _tags(table).create("v1", MAIN_1)
    with pytest.raises(RefConflictError, match="tag 'v1' already exists"):
        _tags(table).create("v1", Target(None, 2))
    assert refs.read_tag(table.inner, "v1").version == 1


def test_moving_a_tag_keeps_its_creation_time_and_metadata():
    table = _table()
    tags = _tags(table)
    created = tags.create("v1", MAIN_1)
    tags.replace_metadata("v1", {"who": "Zoë"})
    tags.update("v1", Target(None, 3))
    found = refs.read_tag(table.inner, "v1")
    assert (found.version, dict(found.metadata)) == (3, {"who": "Zoë"})
    assert found.created_at_ns == created.created_at_ns >= START_NS
    assert found.updated_at_ns > created.updated_at_ns


def test_new_metadata_leaves_the_times():
    table = _table()
    tags = _tags(table)
    created = tags.create("v1", MAIN_1)
    tags.replace_metadata("v1", {"a": "b"})
    tags.replace_metadata("v1", {})
    assert refs.read_tag(table.inner, "v1") == created


@pytest.mark.parametrize("act", ["update", "delete"])
def test_a_tag_is_changed_only_where_it_was_seen(act: str):
    table = _table()
    tags = _tags(table)
    tags.create("v1", Target(None, 1))
    change = (lambda *seen: tags.update("v1", Target(None, 3), *seen)) if act == "update" else (
        lambda *seen: tags.delete("v1", *seen)
    )  # fmt: skip
    with pytest.raises(RefConflictError, match=r"moved meanwhile: it is at main:1, not at main:2"):
        change(Target(None, 2))
    assert refs.read_tag(table.inner, "v1").version == 1
    change(Target(None, 1))
    gone = "v1" not in refs.tag_names(table.inner)
    assert gone == (act == "delete")


@pytest.mark.parametrize("act", ["update", "delete", "replace_metadata"])
def test_a_tag_that_is_not_there_is_told(act: str):
    table = _table()
    tags = _tags(table)
    tags.create("other", MAIN_1)
    more = {"update": (MAIN_1,), "replace_metadata": ({},)}.get(act, ())
    with pytest.raises(RefNotFoundError, match="other"):
        getattr(tags, act)("v1", *more)


@pytest.mark.parametrize("version", [4, 0, 99, 2**63 + 5])
def test_a_version_that_is_not_there_is_told_and_nothing_is_changed(version: int):
    table = _table()
    tags = _tags(table)
    with pytest.raises(VersionNotFoundError):
        tags.create("v1", Target(None, version))
    tags.create("v1", MAIN_1)
    with pytest.raises(VersionNotFoundError):
        tags.update("v1", Target(None, version))
    assert refs.read_tag(table.inner, "v1").version == 1


@pytest.mark.parametrize("name", ["", "a/b", ".a", "a.", "a..b", "x.lock", "a b", "../x", "a\\b"])
def test_names_that_break_the_rules_are_refused(name: str):
    table = _table()
    for act in (lambda t: t.create(name, MAIN_1), lambda t: t.delete(name)):
        with pytest.raises(InvalidRefError):
            act(_tags(table))
    assert table.inner.list_recursive("_refs") == []


def test_metadata_is_text():
    table = _table()
    _tags(table).create("v1", MAIN_1)
    with pytest.raises(InvalidInputError):
        _tags(table).replace_metadata("v1", {"a": 1})


def test_of_16_creators_one_wins_and_nobody_is_overwritten():
    table = _table()
    won, lost = [], []

    def race(version: int) -> None:
        try:
            TagWriter(table.inner, lambda b: CommitPlace.of(table.inner, b)).create(
                "v1", Target(None, version)
            )
            won.append(version)
        except RefConflictError:
            lost.append(version)

    threads = [threading.Thread(target=race, args=(1 + n % 3,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 15)
    assert refs.read_tag(table.inner, "v1").version == won[0]


def test_a_change_by_another_process_in_between_is_not_overwritten():
    table = _table()
    tags = _tags(table)
    tags.create("v1", MAIN_1)
    other = TagWriter(table.inner, lambda b: CommitPlace.of(table.inner, b), table.environment)
    acts = [lambda: other.update("v1", Target(None, 2))]
    table.root.world.plan = lambda step: (
        acts.pop()() and None if step.method == "replace" and acts else None
    )
    with pytest.raises(RefConflictError, match="changed by another process"):
        tags.update("v1", Target(None, 3))
    assert refs.read_tag(table.inner, "v1").version == 2


def test_order_is_by_version_then_name():
    table = _table()
    tags = _tags(table)
    for name, version in (("b", 2), ("a", 3), ("c", 3), ("d", 1), ("e", 3)):
        tags.create(name, Target(None, version))
        BranchWriter(tags.root, tags.place_of, tags.environment).create(name, Target(None, version))
    found = refs.list_tags(table.inner)
    names = [name for name, _ in ordered_tags(found)]
    assert names == [name for name, _ in ordered_tags(found, "desc")] == ["a", "c", "e", "b", "d"]
    assert [name for name, _ in ordered_tags(found, "asc")] == ["d", "b", "a", "c", "e"]
    branches = refs.list_branches(table.inner)
    assert [name for name, _ in ordered_branches(branches)] == names
    with pytest.raises(InvalidInputError):
        ordered_tags(found, "upwards")
