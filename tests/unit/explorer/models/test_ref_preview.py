from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.models import ref_preview as previews
from lance_nb.explorer.models.ref_list import RefBook
from lance_nb.explorer.models.ref_preview import (
    MAX_NAMED,
    Consequence,
    change_code,
    list_code,
    merge_code,
    merge_preview,
    of_creating,
    of_deleting_branch,
    of_leaving,
    of_moving,
)
from lance_nb.table.refs import Target
from lance_nb.transactions.branch_writer import BranchDeletion, BranchUsers
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


def test_merges_as_code_name_only_what_is_asked_for() -> None:
    plain = {"on_conflict": "fail", "strategy": "auto"}
    assert merge_code(DATASET, "merge", "dev", None, plain, dry_run=True) == {
        "python": f"{PYTHON}.branches.merge('dev', 'main', dry_run=True)",
        "magic": "%lance merge dev --into main --dry-run",
    }
    options = {"on_conflict": "theirs", "key": ["id", "b"], "strategy": "auto", "copy": True}
    assert merge_code(DATASET, "merge", "dev", "exp", options, message="it's") == {
        "python": (
            f"{PYTHON}.branches.merge('dev', 'exp', on_conflict='theirs', key=['id', 'b'], "
            'copy=True, message="it\'s")'
        ),
        "magic": ('%lance merge dev --into exp --on-conflict theirs --key id,b --copy -m "it\'s"'),
    }


@pytest.mark.parametrize(
    ("kind", "source", "into", "python", "magic"),
    [
        ("revert", (None, 3), None, ".revert(3)", "revert main:3"),
        ("cherry-pick", ("dev", 3), None, ".cherry_pick(('dev', 3))", "cherry-pick dev:3"),
        (
            "cherry-pick",
            (None, 3),
            "dev",
            ".checkout_version(('dev', None)).cherry_pick(('main', 3))",
            "cherry-pick main:3",
        ),
        ("revert", ("dev", 3), "dev", ".checkout_version(('dev', None)).revert(3)", "revert dev:3"),
    ],
)
def test_single_changes_as_code(
    kind: str, source: tuple[str | None, int], into: str | None, python: str, magic: str
) -> None:
    found = merge_code(DATASET, kind, source, into, {"on_conflict": "fail"})
    assert found == {"python": PYTHON + python, "magic": f"%lance {magic}"}


def rows(first: int, count: int, value: int = 0) -> pa.Table:
    return pa.table({"id": range(first, first + count), "v": [value] * count})


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Main and ``dev`` that both updated rows 5 to 9."""
    made = lance_nb.write_dataset(rows(0, 100), tmp_path / "d.lance", enable_stable_row_ids=True)
    dev = made.create_branch("dev")
    dev.update({"v": "7"}, where="id < 10")
    dev.insert(rows(200, 10))
    dev.add_columns({"twice": "id * 2"})
    made.update({"v": "9"}, where="id >= 5 and id < 20")
    made.delete("id = 50")
    return made


def test_each_pair_of_transactions_has_a_verdict(dataset: Any) -> None:
    grid = merge_preview(dataset.branches.plan_merge("dev")).grid
    assert [one["label"] for one in grid["source"]] == ["dev:2", "dev:3", "dev:4"]
    assert [one["operation"] for one in grid["target"]] == ["Update", "Delete"]
    assert len(grid["cells"]) == 6
    first = grid["verdicts"][grid["cells"][0]]
    assert first["outcome"] == "conflict"
    assert "fragment 0" in first["reason"]
    assert grid["verdicts"][grid["cells"][2]]["outcome"] == "replayed"


def test_the_outcome_is_reported_in_rows_fragments_and_columns(dataset: Any) -> None:
    found = merge_preview(dataset.branches.plan_merge("dev", on_conflict="ours"))
    assert (found.strategy, found.base["label"], found.target["label"]) == (
        "replay", "main:1", "main:3"
    )  # fmt: skip
    assert found.rows == (99, 109)
    assert found.columns == ("+ twice: int64",)
    assert found.fragments["new"] >= 1
    assert found.unresolved == 0
    assert found.conflicts[0]["resolution"] == "ours"
    json.dumps(found.to_json())


def test_rows_that_both_changed_are_shown_side_by_side(dataset: Any) -> None:
    sample = merge_preview(dataset.branches.plan_merge("dev")).sample
    assert sample["columns"][:2] == ["id", "v"]
    first = sample["rows"][0]
    assert [first[side][:2] for side in ("base", "source", "target")] == [
        ["5", "0"], ["5", "7"], ["5", "9"]
    ]  # fmt: skip
    assert len(sample["rows"]) == 5


def test_a_row_that_one_side_deleted_is_shown_as_gone(dataset: Any) -> None:
    dataset.delete("id = 3")
    sample = merge_preview(dataset.branches.plan_merge("dev")).sample
    gone = [row for row in sample["rows"] if row["target"] is None]
    assert [row["base"][0] for row in gone] == ["3"]


def test_a_branch_that_can_be_taken_as_it_is(dataset: Any) -> None:
    dataset.create_branch("idle").insert(rows(300, 1))
    found = merge_preview(dataset.branches.plan_merge("idle"))
    assert found.strategy == "fast-forward"
    assert found.grid["target"] == []
    assert found.grid["cells"] == []
    assert found.sample == {"columns": [], "rows": []}
    dataset.branches.merge("idle")
    again = merge_preview(dataset.branches.plan_merge("idle"))
    assert (again.strategy, again.fragments["lines"]) == ("up-to-date", [])


def test_a_long_history_is_cut_to_what_matters(
    dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "MAX_STEPS", 2)
    monkeypatch.setattr(previews, "MAX_ROWS", 3)
    monkeypatch.setattr(previews, "MAX_FRAGMENTS", 1)
    found = merge_preview(dataset.branches.plan_merge("dev"))
    assert [one["label"] for one in found.grid["source"]] == ["dev:2", "dev:4"]
    assert found.grid["hidden_source"] == 1
    assert len(found.grid["cells"]) == 4
    assert len(found.sample["rows"]) == 3
    assert len(found.fragments["lines"]) == 1
    assert found.fragments["hidden"] > 0
