from __future__ import annotations

from typing import Any

import pytest

from lance_nb.explorer.refs.ref_list import RefBook
from lance_nb.explorer.refs.ref_preview import (
    MAX_NAMED,
    Consequence,
    change_code,
    list_code,
    of_creating,
    of_deleting_branch,
    of_leaving,
    of_moving,
    undo_of_tag,
)
from lance_nb.table.refs import Target
from lance_nb.writing.branching import BranchDeletion, BranchUsers
from tests.support.explorer_samples import branch, tag
from tests.support.fake_dataset import small_dataset

BOOK = RefBook(
    tags={
        "old": tag(None, 1),
        "twin": tag(None, 2),
        "two": tag(None, 2),
        "fork": tag(None, 3),
        "head": tag(None, 9),
        "merged-a-b-4": tag("a/b", 4),
    },
    branches={"dev": branch(None, 3), "other": branch(None, 5)},
)
DATASET = small_dataset()
PYTHON = "lance_nb.dataset('data/fake.lance')"


def said(found: list[Consequence]) -> list[tuple[str, str]]:
    return [(one.level, one.text) for one in found]


def test_a_version_loses_its_protection_when_its_only_tag_leaves() -> None:
    assert said(of_leaving(BOOK, "old", 9)) == [
        ("warn", "main:1 loses its protection: the next clean-up may delete it.")
    ]


def test_a_version_stays_protected_by_others() -> None:
    assert said(of_leaving(BOOK, "two", 9)) == [("ok", "main:2 stays protected by tag twin.")]
    assert said(of_leaving(BOOK, "fork", 9)) == [
        ("ok", "main:3 stays protected by branch dev, which started there.")
    ]
    ((level, words),) = said(of_leaving(BOOK, "head", 9))
    assert (level, "newest version" in words) == ("ok", True)


def test_a_version_that_does_not_exist_any_more_loses_nothing() -> None:
    words = "main:1 does not exist any more, so nothing loses protection."
    assert said(of_leaving(BOOK, "old", 9, is_missing=True)) == [("ok", words)]
    assert said(of_moving(BOOK, "old", ("dev", 4), 9, is_missing=True))[-1] == ("ok", words)
    undo = undo_of_tag(BOOK.tags["old"], "moves back to", is_missing=True)
    assert said([undo]) == [("warn", "Cannot be undone, because main:1 does not exist any more.")]


def test_the_tag_of_a_merge_says_what_it_is_for() -> None:
    (_, pin) = of_leaving(BOOK, "merged-a-b-4", 9)
    assert pin.level == "warn"
    assert "another branch reads files of a/b:4" in pin.text


def test_moving_to_where_it_is_makes_no_sense() -> None:
    assert said(of_moving(BOOK, "old", (None, 1), 9)) == [("stop", "It is already at main:1.")]
    moved = of_moving(BOOK, "old", ("dev", 4), 9)
    assert [one.level for one in moved] == ["ok", "ok", "warn"]
    assert moved[0].text == "From main:1 to dev:4."


def test_what_is_new_protects_its_version() -> None:
    (kept, already) = of_creating(BOOK, "tag", (None, 2), 10)
    assert "as long as the tag exists" in kept.text
    assert "twin, two" in already.text
    (starts, kept) = of_creating(BOOK, "branch", (None, 4), 1)
    assert starts.text == "Starts at main:4 with its 1 row; no data is copied."
    assert "branch" in kept.text


def deletion(users: BranchUsers, versions: tuple[int, ...] = (3, 4, 5)) -> BranchDeletion:
    return BranchDeletion("dev", Target(None, 3), versions, 7, 2048, users)


def test_deleting_a_branch_takes_its_versions() -> None:
    book = RefBook({}, BOOK.branches)
    found = said(of_deleting_branch(book, deletion(BranchUsers()), 9, stands_here=True))
    assert found == [
        ("warn", "Frees 7 files, 2.0 KB: all 3 versions."),
        ("warn", "2 versions of dev since its fork cannot be restored."),
        ("warn", "main:3 loses its protection: the next clean-up may delete it."),
        ("ok", "This view shows the branch and will switch to main:3."),
    ]


def test_a_branch_that_is_needed_is_refused_with_who_needs_it() -> None:
    names = tuple((f"child{at}", 4) for at in range(MAX_NAMED + 2))
    users = BranchUsers(names, (("t", 4),), ((None, 8), ("other", 6)))
    found = said(of_deleting_branch(BOOK, deletion(users, (3,)), 9, stands_here=False))
    stops = [words for level, words in found if level == "stop"]
    assert stops[0].endswith("and 2 more). Delete them first.")
    assert "(t)" in stops[1]
    assert stops[2] == "Refused: versions that merged it refer to its files (main:8, other:6)."
    assert ("ok", "main:3 stays protected by tag fork.") in found


@pytest.mark.parametrize(
    ("args", "python", "magic"),
    [
        (("tag", "create", "v1", (None, 3)), ".tags.create('v1', 3)", "tag create v1 main:3"),
        (("tag", "move", "v1", ("d", 3)), ".tags.update('v1', ('d', 3))", "tag move v1 d:3"),
        (("tag", "delete", "v1", None), ".tags.delete('v1')", "tag delete v1"),
        (
            ("branch", "create", "dev", (None, 3)),
            ".create_branch('dev', 3)",
            "branch create dev main:3",
        ),
        (("branch", "delete", "a b", None), ".branches.delete('a b')", "branch delete 'a b'"),
    ],
)
def test_changes_as_code(args: tuple[Any, ...], python: str, magic: str) -> None:
    assert change_code(DATASET, *args) == {"python": PYTHON + python, "magic": f"%lance {magic}"}


def test_lists_as_code() -> None:
    assert list_code(DATASET, "tag")["python"] == f"{PYTHON}.tags.list()"
    assert list_code(DATASET, "branch")["magic"] == "%lance branch list"
