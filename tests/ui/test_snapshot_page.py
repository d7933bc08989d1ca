"""The file that ``to_html`` writes, opened from the disk: no kernel, no network, no complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from lance_nb.explorer.app import Explorer
from tests.support.explorer_datasets import worn_dataset
from tests.ui.bare_page import Screenshot

pytestmark = pytest.mark.ui


def test_the_file_is_explored_offline(page: Page, screenshot: Screenshot, tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    target = Explorer(dataset).to_html(tmp_path / "worn.html", rows=20)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(target.as_uri())
    rows = page.locator(".lnb-panel-rows")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 20 kept of 270")
    expect(page.get_by_role("tab", name="Stage")).to_have_count(0)
    screenshot(page, "rows")
    page.get_by_role("tab", name="Storage").click()
    expect(page.locator(".lnb-st-summary")).to_contain_text("3 fragments")
    page.get_by_role("tab", name="Changes").click()
    expect(page.locator(".lnb-panel-changes")).to_contain_text("main:5")
    page.get_by_role("tab", name="Branches & tags").click()
    expect(page.locator(".lnb-panel-refs")).to_contain_text("1 tag")
    main = page.locator(".lnb-panel-refs").get_by_role("row").filter(has_text="main")
    expect(main.get_by_role("gridcell").nth(3)).to_have_text("270")
    expect(page.locator(".lnb-panel-refs .lnb-error")).to_have_count(0)
    screenshot(page, "refs")
    page.get_by_role("tab", name="Rows").click()
    page.get_by_role("option", name="main version 2,").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("kept of 200")
    page.get_by_role("combobox", name="filter of rows").fill("id > 3")
    page.keyboard.press("Enter")
    expect(rows.locator(".lnb-filter-problem")).to_contain_text("Not in this snapshot")
    assert [address for address in asked if not address.startswith("blob:")] == [target.as_uri()]
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_scripts_the_picture_of_the_screen_is_shown(
    browser: Browser, screenshot: Screenshot, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    explorer = Explorer(worn_dataset(tmp_path / "worn.lance"))
    target = explorer.to_html(tmp_path / "worn.html", rows=20)
    context = browser.new_context(java_script_enabled=False, color_scheme=scheme)
    said: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.goto(target.as_uri())
    picture = page.locator("main > svg")
    expect(picture).to_be_visible()
    assert "worn.lance" in (picture.text_content() or "")
    paper = picture.locator("rect").first.evaluate("one => getComputedStyle(one).fill")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 25, 29)"}[scheme]
    screenshot(page, f"picture_{scheme}")
    assert said == []
    context.close()
