"""Expectations in the explorer, in a bare page, over datasets that pylance wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.test_stage_page import Stage
from tests.ui.waiting import look_for_news

pytestmark = [pytest.mark.ui, pytest.mark.interop]
FIRST_BAD = 9


@pytest.fixture(autouse=True)
def cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def rows(first: int, count: int = 4, score: float = 0.5) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": numbers, "score": [score] * count, "note": [f"n{n}" for n in numbers]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return versions of which the ninth brings rows that a later expectation forbids."""
    lance = require_pylance()
    found = str(tmp_path / "shop.lance")
    lance.write_dataset(pa.table({"id": [0]}), found)
    lance.dataset(found).add_columns({"score": "CAST(0.5 AS double)", "note": "'first'"})
    for one in range(1, 13):
        score = 1.5 if one == FIRST_BAD - 2 else 0.5
        lance.write_dataset(rows(one * 4, score=score), found, mode="append")
    lance_nb.dataset(found).update_config(
        {"lance_nb.expectation.range": json.dumps({"kind": "check", "sql": "score <= 1"})}
    )
    return found


def bar(page: Page, version: int) -> Locator:
    return page.locator(f".lnb-tl-bar[aria-label^='main version {version},']")


def marks(page: Page) -> dict[str, Any]:
    """Return the marks of the bars in sight, by version."""
    return page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".lnb-tl-bar")].map((bar) =>
        [bar.id.split("-").at(-1), bar.dataset.check ?? null]))"""
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_versions_are_marked_and_the_first_bad_one_is_explained(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot, *, dark: bool
) -> None:
    page = open_widget(Explorer(lance_nb.dataset(uri)), dark=dark).page
    expect(page.locator(".lnb-tl-failed")).to_have_text("✗ 7 versions failed")
    expected = {str(one): "pass" if one < FIRST_BAD else "fail" for one in range(2, 16)}
    assert marks(page) == {"1": "unknown", **expected}
    bar(page, 11).hover()
    expect(page.locator(".lnb-tl-readout")).to_contain_text("✗ range fails for 4 rows")
    screenshot(page, "marks")
    bar(page, FIRST_BAD).click()
    expect(page.locator(".lnb-here-ref")).to_have_text(f"main:{FIRST_BAD}")
    found = page.get_by_role("region", name="first version at which range fails")
    expect(found).to_contain_text(f"range fails first at main:{FIRST_BAD}")
    expect(found).to_contain_text("it is true at version 8")
    expect(found.locator("tbody tr")).to_have_count(4)
    expect(found.locator("tbody")).to_contain_text("1.5")
    screenshot(page, "bisect")
    found.get_by_role("button", name="Filter the grid for them").click()
    expect(page.locator(".lnb-panel-rows .lnb-filter")).to_have_value("(score <= 1) IS FALSE")
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 4")


def test_a_commit_of_somebody_else_is_marked_by_itself(open_widget: OpenWidget, uri: str) -> None:
    lance = require_pylance()
    bare = open_widget(Explorer(lance_nb.dataset(uri)))
    page = bare.page
    expect(page.locator(".lnb-tl-failed")).to_be_visible()
    lance.dataset(uri).delete("score > 1")
    look_for_news(page)
    expect(bar(page, 16)).to_have_attribute("data-check", "pass")
    expect(page.locator(".lnb-tl-failed")).to_have_text("✗ 7 versions failed")
    asked = [one["args"]["numbers"] for one in bare.requests if one["type"] == "checks.marks"]
    assert asked[-1] == [16]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_expectations_are_added_run_and_removed(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot, *, dark: bool
) -> None:
    lance = require_pylance()
    page = open_widget(Explorer(lance_nb.dataset(uri)), dark=dark).page
    page.get_by_role("tab", name="Checks").click()
    panel = page.locator(".lnb-panel-checks")
    expect(panel.locator("[data-name=range]")).to_contain_text("the condition is false for 4 rows")
    form = panel.get_by_role("group", name="new expectation")
    add = form.get_by_role("button", name="Add")
    form.get_by_label("condition").fill("scor < 1")
    expect(form).to_contain_text("scor")
    expect(form).to_contain_text("open the lock first")
    Stage(page).unlock()
    expect(add).to_be_disabled()
    form.get_by_label("kind of expectation").select_option("unique")
    form.get_by_label("columns of the key").fill("id")
    form.get_by_label("name (optional)").fill("key")
    expect(page.locator(".lnb-code-line")).to_have_text(
        'ds.expectations.add_unique("id", name="key")'.replace('"', "'")
    )
    add.click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:16")
    expect(panel.locator("[data-name=key]")).to_have_class("lnb-ex-one lnb-ex-pass")
    screenshot(page, "list")
    assert "lnb_nb" not in str(lance.dataset(uri).config())
    assert "lance_nb.expectation.key" in lance.dataset(uri).config()
    panel.get_by_role("button", name="Close the gate").click()
    expect(panel).to_contain_text("gate of staging: closed")
    panel.locator("[data-name=range]").get_by_role("button", name="Remove").click()
    expect(panel.locator("[data-name=range]")).to_have_count(0)
    expect(page.locator(".lnb-here-ref")).to_have_text("main:18")
    config = lance.dataset(uri).config()
    assert "lance_nb.expectation.range" not in config
    assert config["lance_nb.expectations.gate"] == "refuse"
    expect(page.locator(".lnb-tl-passed")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_gate_refuses_a_staged_change_and_says_why(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot, *, dark: bool
) -> None:
    lance = require_pylance()
    ours = lance_nb.dataset(uri)
    ours.expectations.set_gate(True)
    bare = open_widget(Explorer(lance_nb.dataset(uri)), dark=dark)
    page = bare.page
    page.get_by_role("tab", name="Stage").click()
    stage = Stage(page)
    stage.unlock()
    card = stage.stage("update", column="score", new_value="3.0", where="id = 5")
    broken = card.get_by_role("region", name="expectations")
    expect(broken).to_contain_text("Would break 1 expectation: the gate is closed")
    expect(broken).to_contain_text("ds.expectations.set_gate(False)")
    expect(broken).to_contain_text("pylance and Spark, are not bound by it")
    expect(broken.locator("tbody")).to_contain_text("3.0")
    commit = card.get_by_role("button", name="Commit", exact=True)
    expect(commit).to_be_disabled()
    expect(commit).to_have_attribute("title", "The gate of the expectations refuses it")
    screenshot(page)
    fine = stage.stage("delete", at=1, where="id = 5")
    expect(fine).to_contain_text("Breaks none of 1 expectation")
    expect(fine.get_by_role("button", name="Commit", exact=True)).to_be_enabled()
    lance_nb.dataset(uri).expectations.set_gate(False)  # the line that the card names
    page.get_by_role("tab", name="Rows").click()
    page.get_by_role("tab", name="Stage").click()
    expect(broken).to_contain_text("The gate is open")
    expect(commit).to_be_enabled()
    commit.click()
    expect(card.locator(".lnb-sg-done")).to_be_visible()
    assert lance.dataset(uri).count_rows("score = 3") == 1
