from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.models import merge_preview as previews
from lance_nb.explorer.models.merge_preview import merge_preview


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


def test_the_outcome_is_told_in_rows_fragments_and_columns(dataset: Any) -> None:
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
