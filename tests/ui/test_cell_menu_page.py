"""The menu of a cell, by a right click and by the keyboard, in a bare page."""

from __future__ import annotations

import pyarrow as pa
import pytest
from playwright.sync_api import expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.ui.bare_page import OpenWidget, Screenshot

pytestmark = pytest.mark.ui


def test_a_right_click_and_a_key_open_the_menu_of_the_cell(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    table = pa.table({"id": range(30), "label": ["cat", "dog", "bird"] * 10})
    dataset = lance_nb.write_dataset(table, "memory://cell-menu.lance")
    page = open_widget(Explorer(dataset)).page
    rows = page.locator(".lnb-panel-rows")
    grid, status = rows.locator(".lnb-grid"), rows.locator(".lnb-grid-status")
    rows.locator('[role=gridcell][id$="-1-1"]').click(button="right")
    menu = page.get_by_role("menu", name="actions of the cell")
    expect(menu).to_be_visible()
    expect(menu.get_by_role("menuitem", name="Only this value")).to_be_focused()
    screenshot(page)
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(grid).to_be_focused()
    page.keyboard.press("Shift+F10")
    expect(menu).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # without this value
    expect(status).to_contain_text("of 20")
    rows.locator('[role=gridcell][id$="-0-1"]').click(button="right")
    menu.get_by_role("menuitem", name="Hide column").click()
    expect(rows.get_by_role("columnheader", name="label")).to_have_count(0)
    rows.locator('[role=gridcell][id$="-3-0"]').click()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    expect(status).to_contain_text("3 selected")  # from the cell that was clicked
    page.keyboard.press("Escape")
    expect(status).not_to_contain_text("selected")
