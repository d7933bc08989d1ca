from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.refs import merge_preview as previews
from lance_nb.explorer.refs.merge_preview import Refusal, cell_lines, merge_code, merge_preview
from tests.support.fake_dataset import small_dataset

DATASET = small_dataset()
PYTHON = "lance_nb.dataset('data/fake.lance')"


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


def test_choices_as_code() -> None:
    options = {"resolve": ["theirs", '"a b".v:="x"']}
    assert merge_code(DATASET, "merge", "dev", None, options, message="") == {
        "python": (
            f"{PYTHON}.branches.merge('dev', 'main', resolve=['theirs', '\"a b\".v:=\"x\"'], "
            "message='')"
        ),
        "magic": (
            "%lance merge dev --into main --resolve theirs --resolve '\"a b\".v:=\"x\"' -m ''"
        ),
    }


def test_cells_in_conflict_are_lines_of_a_table(dataset: Any) -> None:
    dataset.delete("id = 6")
    found = merge_preview(dataset.branches.plan_merge("dev", resolve=["theirs", "8.v:=70"]))
    assert found.cells == {
        "total": 5, "rows": 5, "deleted_rows": 1, "open": 0, "key": "row id", "hidden": 0,
        "columns": [{"name": "v", "label": "v", "type": "int64", "count": 4}],
    }  # fmt: skip
    assert found.sample["rows"] == []
    plan = dataset.branches.plan_merge("dev", resolve=["8.v:=70"])
    assert merge_preview(plan).cells["open"] == 4  # type: ignore[index]
    lines = cell_lines(plan.cells, 0, 100)
    assert lines[0] == {
        "row": "5", "label": "5", "column": "v", "name": "v", "base": {"text": "0"},
        "ours": {"text": "9"}, "theirs": {"text": "7"}, "take": None, "value": None,
    }  # fmt: skip
    assert (lines[1]["column"], lines[1]["ours"]) == (None, None)
    assert lines[1]["theirs"]["text"] == '{"id": 6, "v": 7, "twice": 12}'
    assert (lines[3]["take"], lines[3]["value"]) == ("value", "70")
    assert cell_lines(plan.cells, 2, 2) == lines[2:4]
    assert cell_lines(plan.cells, 5, 2) == []
    json.dumps(lines)


def test_rows_are_named_by_their_keys(tmp_path: Path) -> None:
    days = [date(2024, 5, day) for day in range(1, 5)]
    table = pa.table({"day": days, "n": [1, 1, 2, 2], "v": [0, 0, 0, 0], "w": [0, 0, 0, 0]})
    made = lance_nb.write_dataset(table, tmp_path / "k.lance")
    dev = made.create_branch("dev")
    for ds, value in ((made, 1), (dev, 2)):
        ds.update({"v": str(value), "w": str(value)}, where="n = 2")
    plan = made.branches.plan_merge("dev", key=["day", "n"], resolve=['["2024-05-03", 2].v=ours'])
    lines = cell_lines(plan.cells, 0, 10)
    assert [(one["row"], one["label"], one["column"], one["take"]) for one in lines] == [
        ('["2024-05-03", 2]', "2024-05-03, 2", "v", "ours"),
        ('["2024-05-03", 2]', "2024-05-03, 2", "w", None),
        ('["2024-05-04", 2]', "2024-05-04, 2", "v", None),
        ('["2024-05-04", 2]', "2024-05-04, 2", "w", None),
    ]


def test_what_is_refused_comes_with_what_would_help(tmp_path: Path) -> None:
    table = pa.table({"name": ["a", "b"], "user_id": [1, 2], "v": [0.0, 0.0]})
    made = lance_nb.write_dataset(table, tmp_path / "k.lance")
    dev = made.create_branch("dev")
    made.update({"v": "1"}, where="user_id = 1")
    dev.update({"v": "2"}, where="user_id = 1")
    found = merge_preview(made.branches.plan_merge("dev"))
    assert [one["label"] for one in found.offers] == ["Match rows by user_id", "Match rows by name"]
    assert found.offers[0]["set"] == {"key": "user_id"}
    assert "resolve" not in found.conflicts[0]["remedy"]
    settings = lance_nb.write_dataset(table, tmp_path / "s.lance")
    other = settings.create_branch("dev")
    settings.update_config({"team": "a"})
    other.update_config({"team": "b"})
    found = merge_preview(settings.branches.plan_merge("dev"))
    assert [(one["label"], one["set"]) for one in found.offers] == [
        ("Keep all of main", {"on_conflict": "ours"}),
        ("Take all of dev", {"on_conflict": "theirs"}),
    ]
    refused = merge_preview(
        settings.branches.plan_merge("dev"), Refusal("no", "Do it", {"strategy": "auto"})
    )
    assert (refused.refusal, refused.offers) == (
        "no", ({"label": "Do it", "set": {"strategy": "auto"}},)
    )  # fmt: skip


def test_the_message_says_what_is_done(dataset: Any) -> None:
    assert merge_preview(dataset.branches.plan_merge("dev")).message == "Merge dev:4 into main"
    dev = dataset.checkout_version(("dev", None))
    plan = dev.branches.plan_merge("main", "dev", on_conflict="ours")
    assert plan.message == "Merge main:3 into dev"
    plan.commit()
    assert dev.checkout_latest().version_info(5).message == "Merge main:3 into dev"
    plan = dataset.branches.plan_merge("dev")
    assert (plan.strategy, plan.message) == ("fast-forward", "Fast-forward main to dev:5")
    plan.commit("")
    assert dataset.checkout_latest().version_info(4).message is None
    dataset.create_branch("other").delete("id = 77")
    assert dataset.revert(2, dry_run=True, on_conflict="theirs").message == "Revert main:2"
    assert dataset.cherry_pick(("other", 5), dry_run=True).message == "Cherry-pick other:5"


def test_pictures_in_conflict_come_with_their_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, ours, theirs = (b"GIF89a" + bytes([size, 0, 1, 0]) + bytes(20) for size in (1, 2, 3))
    table = pa.table({"id": [1, 2], "photo": [base, base]})
    dataset = lance_nb.write_dataset(table, tmp_path / "p.lance", enable_stable_row_ids=True)
    dev = dataset.create_branch("dev")
    for ds, value in ((dataset, ours), (dev, theirs)):
        second = ds.to_table(columns=["_rowid"])["_rowid"][1].as_py()
        ds.stage().edit({second: {"photo": value}}).commit()
    plan = lance_nb.dataset(dataset.uri).branches.plan_merge("dev", resolve=["theirs"])
    [line] = [line for line in cell_lines(plan.cells, 0, 9) if line["column"] == "photo"]
    sides = {name: line[name]["image"]["width"] for name in ("base", "ours", "theirs")}
    assert sides == {"base": 1, "ours": 2, "theirs": 3}
    assert line["ours"]["text"] == "GIF 2 × 1 · 30 B"
    json.dumps(line)
    monkeypatch.setattr(previews, "INLINE_BYTES", 2 * len(line["base"]["image"]["data"]))
    [cut] = cell_lines(plan.cells, 0, 9)
    assert ["image" in cut[name] for name in ("base", "ours", "theirs")] == [True, True, False]
