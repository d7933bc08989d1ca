"""The first screen stands still: header, timeline and tabs at any width, whatever is shown."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lance_nb.explorer.app import Explorer
from tests.support.fake_dataset import small_dataset
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.version_box import go_to, version_box
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui

# What must not move: the parts of the frame, the header's, the bars, the tabs, the grid.
BOXES = """
() => Object.fromEntries([...document.querySelectorAll(
  `.lnb-card > div, .lnb-overview-whole > *, .lnb-facts > *, .lnb-lock, .lnb-tl-bar, .lnb-tl-flag,
   .lnb-tl-name, .lnb-tl-bottom > button, .lnb-tab, .lnb-part-bar > button, .lnb-rows-bar,
   .lnb-grid, .lnb-code`)].filter((element) => element.checkVisibility())
  .map((element) => {
    const { x, y, height } = element.getBoundingClientRect();
    const look = element.className.replace(/ lnb-(here|op-\\w+|tagged|thin)\\b/g, "");
    const words = element.matches(".lnb-here-ref, .lnb-pop, dl, div:not(.lnb-tl-name)")
      ? element.querySelector("dt")?.textContent ?? "" : element.textContent;
    return [element.id || `${look} ${words}`.slice(0, 50), [x, y, height].map(Math.round).join()];
  }))
"""
OVERPRINTED = """
(selector) => {
  const boxes = [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility())
    .map((element) => [element.textContent, element.getBoundingClientRect()]);
  return boxes.flatMap(([left, a], index) => boxes.slice(index + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1
      && a.top < b.bottom - 1 && b.top < a.bottom - 1)
    .map(([right]) => [left, right]));
}
"""


def moved(page: Page, before: dict[str, Any]) -> dict[str, Any]:
    """Return what stands elsewhere than before."""
    now = page.evaluate(BOXES)
    return {name: (box, now.get(name)) for name, box in before.items() if now.get(name) != box}


@pytest.mark.parametrize("width", [1440, 1100, 500])
def test_nothing_moves_when_a_version_is_chosen(
    open_widget: OpenWidget, screenshot: Screenshot, width: int
) -> None:
    page = open_widget(Explorer(small_dataset()), width=width).page
    here = page.locator(".lnb-here-ref")
    before = page.evaluate(BOXES)
    assert len(before) > 20
    for ref, label in (
        ("1", "main:1"),
        ("tag:v1", "main:2"),
        ("dev:3", "dev:3"),
        ("main:4", "main:4"),
    ):
        go_to(page, ref)
        expect(here).to_have_text(label)
        expect(page.locator(".lnb-menu").first).to_be_hidden()
        assert moved(page, before) == {}
    screenshot(page, str(width))


@pytest.mark.parametrize("width", [1440, 1100, 500])
def test_no_tab_moves_another_or_is_out_of_reach(open_widget: OpenWidget, width: int) -> None:
    page = open_widget(Explorer(small_dataset()), width=width).page
    more = page.get_by_role("button", name="More ▾")
    names = ["Changes", "Storage", "Branches & tags", "Checks", "Stage", "My actions", "Rows"]
    assert more.is_visible() == (width < 900)
    for name in names:
        tab = page.get_by_role("tab", name=name)
        before = page.evaluate(BOXES)
        if not tab.is_visible():
            more.click()
            page.locator(".lnb-menu").get_by_role("button", name=name).click()
            expect(tab).to_be_focused()
        else:
            tab.click()
            assert {key for key in moved(page, before) if "lnb-tab" in key} == set()
        expect(tab).to_have_attribute("aria-selected", "true")
        box, bar = tab.bounding_box(), page.locator(".lnb-part-bar").bounding_box()
        assert box is not None
        assert bar is not None
        assert box["x"] + box["width"] <= bar["x"] + bar["width"]
        assert page.evaluate(OVERPRINTED, ".lnb-tab, .lnb-part-bar > button") == []


def test_the_menu_of_the_version_is_shut_by_escape_and_by_going_elsewhere(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    page = open_widget(Explorer(small_dataset())).page
    box = version_box(page)
    expect(box).to_be_focused()
    expect(page.get_by_role("option", name="v1 tag")).to_be_visible()
    screenshot(page)
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(page.locator(".lnb-here-ref")).to_be_focused()
    version_box(page)
    page.locator(".lnb-name").click()
    expect(box).to_be_hidden()


def test_full_screen_leaves_nothing_blank(open_widget: OpenWidget, screenshot: Screenshot) -> None:
    page = open_widget(Explorer(small_dataset())).page
    before = page.locator(".lnb-grid").bounding_box()
    page.get_by_role("button", name="Full screen").click()
    page.wait_for_function("() => document.fullscreenElement")
    bottom = (
        "() => innerHeight - document.querySelector('.lnb-card').getBoundingClientRect().bottom"
    )
    eventually(page, lambda: abs(page.evaluate(bottom)) <= 1)
    after = page.locator(".lnb-grid").bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] != before["height"]
    screenshot(page)


def test_details_lead_to_the_changed_rows_and_fold_the_schema(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    detail = page.locator(".lnb-detail")
    expect(detail.locator(".lnb-changed")).to_contain_text("rows")
    expect(detail.get_by_role("tree", name="schema")).to_be_hidden()
    detail.get_by_text("Schema").click()
    expect(detail.get_by_role("tree", name="schema")).to_be_visible()
    page.get_by_role("option", name="main version 3").click()
    expect(detail.get_by_role("tree", name="schema")).to_be_visible()  # as somebody left it
    detail.get_by_role("button", name="See the changed rows").click()
    changes = page.get_by_role("tab", name="Changes")
    expect(changes).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("slider", name="A, the")).to_have_attribute("aria-valuetext", "main:2")
