"""The page on reliability says what the stored results say; results are added once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import report, results


def test_the_page_says_what_the_stored_results_say() -> None:
    assert report.FILE.read_text() == report.text(), "run python -m tests.faults report"


def test_a_run_is_added_to_the_stored_one_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    first = {"cases": 10, "ends": {"done": 9, "refused": 1}, "failures": [], "seeds": [1, 10]}
    second = {"cases": 5, "ends": {"done": 5, "new": 2}, "failures": ["x"], "seeds": [11, 15]}
    results.keep("rig", "first", first)
    results.add("rig", "second", second)

    stored = results.kept()["rig"]
    assert stored.pop("date")
    assert stored == {
        "cases": 15, "command": "first; second", "ends": {"done": 14, "refused": 1, "new": 2},
        "failures": ["x"], "seeds": [1, 15],
    }  # fmt: skip
    with pytest.raises(ValueError, match="do not follow"):
        results.add("rig", "second", second)
