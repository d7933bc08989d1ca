"""The main flows in hosts that load only what they display, and in hosts that lose buffers."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.widget import LanceWidget
from tests.support.explorer_datasets import worn_dataset
from tests.ui.bare_page import Screenshot
from tests.ui.host_page import HostPage
from tests.ui.tabs import open_tab

pytestmark = pytest.mark.ui


@pytest.mark.parametrize("drops_buffers", [False, True], ids=["plain", "without buffers"])
def test_the_main_flows_work_where_only_the_widget_is_loaded(
    page: Page,
    screenshot: Screenshot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drops_buffers: bool,
) -> None:
    monkeypatch.setattr(LanceWidget, "jobs_beside", False)
    dataset = worn_dataset(tmp_path / "flow.lance")
    newest = dataset.version
    host = HostPage(page, Explorer(dataset), drops_buffers=drops_buffers).open()
    host.hold("views.send")
    expect(page.get_by_role("status").first).to_contain_text("Waiting for the views of lance_nb")
    host.release(1)
    root = page.locator(".lnb-live")
    expect(root.locator(".lnb-here-ref")).to_have_text(f"main:{newest}")
    expect(page.get_by_text("Waiting for the views")).to_have_count(0)
    rows = root.locator(".lnb-panel-rows")
    expect(rows.locator(".lnb-cell").first).not_to_be_empty()
    screenshot(page)
    root.get_by_role("combobox", name="filter of rows").fill("id < 5")
    page.keyboard.press("Enter")
    expect(root.locator(".lnb-filter-said")).to_contain_text("pass")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 5")
    expect(rows.locator(".lnb-cell").first).not_to_be_empty()
    root.get_by_role("option", name="main version 2,").click()
    expect(root.locator(".lnb-here-ref")).to_have_text("main:2")
    open_tab(root, "Storage")
    expect(root.locator(".lnb-st-summary")).to_contain_text("fragment")
    open_tab(root, "Changes")
    expect(root.locator(".lnb-ch-badge")).to_contain_text("by")
    root.get_by_role("button", name="allow changes").click()
    open_tab(root, "Stage")
    panel = root.locator(".lnb-panel-stage")
    panel.get_by_label("change", exact=True).select_option("delete")
    panel.get_by_label("where", exact=True).fill("id < 3")
    panel.get_by_label("where", exact=True).press("Escape")
    panel.get_by_role("button", name="Stage", exact=True).click()
    card = panel.locator(".lnb-sg-card")
    expect(card.locator(".lnb-sg-facts")).to_contain_text("deleted")
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text(f"main:{newest + 1}")
    assert lance_nb.dataset(tmp_path / "flow.lance").version == newest + 1
    asked = [one["type"] for one in host.requests]
    assert asked.count("views.send") == 1
    assert asked.count("buffers") == (1 if drops_buffers else 0)
    assert host.problems == []
