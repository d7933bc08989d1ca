"""Two people at once: pylance commits, compacts, deletes tags and branches, and cleans up beneath
an explorer that is open; every tab stays right, or says what happened and how to go on."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.version_box import go_to
from tests.ui.waiting import look_for_news

pytestmark = [pytest.mark.ui, pytest.mark.interop]


def rows(first: int) -> pa.Table:
    return pa.table({"id": range(first, first + 40), "price": [1.5] * 40})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Six versions of three fragments, a tag on the third, a branch from the second."""
    lance = require_pylance()
    found = str(tmp_path / "shared.lance")
    for at in range(3):
        lance.write_dataset(rows(40 * at), found, mode="append" if at else "create")
    dataset = lance.dataset(found)
    dataset.delete("id % 10 = 3")
    dataset.update({"price": "2.0"}, where="id < 20")
    dataset.create_branch("dev", 2).insert(rows(900))
    dataset.tags.create("v1", 3)
    return found


def others(uri: str) -> Any:
    """The dataset as somebody else has it."""
    return require_pylance().dataset(uri)


def tab(page: Page, name: str, panel: str) -> Locator:
    page.get_by_role("tab", name=name).click()
    return page.locator(f".lnb-panel-{panel}")


def every_tab_shows(page: Page, fragments: int, uri: str) -> None:
    """Walk through the tabs; none is broken."""
    cell = tab(page, "Rows", "rows").locator(".lnb-cell:visible").first
    expect(cell).not_to_be_empty()
    expect(tab(page, "Changes", "changes").locator(".lnb-ch-badge")).to_contain_text("by")
    storage = tab(page, "Storage", "storage").locator(".lnb-st-summary")
    expect(storage).to_contain_text(f"{fragments} fragment")
    names = tab(page, "Branches & tags", "refs").get_by_role("grid", name="branches")
    expect(names.get_by_role("row").filter(has_text="main").first).to_be_visible()
    stage = tab(page, "Stage", "stage")
    expect(stage.get_by_label("change", exact=True)).to_have_value("append")
    expect(page.locator(".lnb-error:visible")).to_have_count(0)


def test_every_tab_stays_right_while_others_write_compact_and_clean_up(
    open_widget: OpenWidget, screenshot: Screenshot, uri: str
) -> None:
    page = open_widget(Explorer(lance_nb.dataset(uri, version=4))).page
    here, marks = page.locator(".lnb-here-ref"), page.locator(".lnb-marks")
    every_tab_shows(page, 3, uri)
    look_for_news(page)

    others(uri).insert(rows(200))
    others(uri).optimize.compact_files()
    look_for_news(page)
    expect(marks.locator(".lnb-news")).to_contain_text("new version")
    expect(here).to_have_text("main:4")
    every_tab_shows(page, 3, uri)

    others(uri).tags.update("v1", 5)
    look_for_news(page)
    expect(page.get_by_title("tag v1: main:5")).to_be_visible()
    expect(here).to_have_text("main:4")
    others(uri).tags.delete("v1")
    others(uri).branches.delete("dev")
    look_for_news(page)
    expect(page.locator(".lnb-tl-flag")).to_have_count(0)
    names = tab(page, "Branches & tags", "refs")
    expect(names.get_by_role("button", name="1 branch")).to_be_visible()
    expect(names.get_by_role("row").filter(has_text="dev")).to_have_count(0)

    others(uri).cleanup_old_versions(older_than=timedelta(0))
    look_for_news(page)
    expect(marks).to_contain_text("this version was cleaned up")
    screenshot(page, "cleaned")
    go_to(page, "main:2")
    problem = page.locator(".lnb-problem")
    expect(problem.locator(".lnb-error-title")).to_have_text("This version does not exist")
    screenshot(page, "gone")
    problem.get_by_role("button", name="close this message").click()
    tab(page, "Rows", "rows")
    marks.get_by_role("button").click()
    expect(marks).not_to_contain_text("cleaned up")
    expect(page.locator(".lnb-panel-rows .lnb-cell:visible").first).not_to_be_empty()
    expect(page.locator(".lnb-error:visible")).to_have_count(0)


def test_a_branch_and_a_dataset_that_go_away_beneath_their_reader_are_reported(
    open_widget: OpenWidget, screenshot: Screenshot, uri: str
) -> None:
    page = open_widget(Explorer(lance_nb.dataset(uri, version=("dev", None)))).page
    here, marks = page.locator(".lnb-here-ref"), page.locator(".lnb-marks")
    look_for_news(page)
    others(uri).branches.delete("dev")
    look_for_news(page)
    expect(marks).to_contain_text("branch dev was deleted")
    screenshot(page, "branch")
    marks.get_by_role("button", name="go to main:").click()
    expect(here).to_contain_text("main:")
    expect(marks).not_to_contain_text("deleted")
    expect(page.locator(".lnb-panel-rows .lnb-cell:visible").first).not_to_be_empty()

    shutil.rmtree(uri)
    look_for_news(page)
    expect(marks).to_contain_text("the dataset no longer exists")
    screenshot(page, "dataset")
