"""Forty hostile texts in every name and value at once, through every tab: nothing becomes markup.

The page's own policy refuses any request; one that is tried, and any script that is refused, is a
complaint that fails the test (see ``bare_page``).
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.display import widget_of
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.hostile_dataset import EVIL, VALUES, hostile_dataset
from tests.ui.version_box import version_box
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui
FOREIGN = "script, img, iframe, object, embed, link, base, meta, video, math, template, a, style"
HANDLERS = """[...document.querySelectorAll("#here *")].flatMap((one) => [...one.attributes])
  .filter(({ name, value }) => name.startsWith("on") || /^\\s*javascript:/i.test(value)
    && name !== "title").map(({ name, value }) => `${name}=${value}`)"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return hostile_dataset(tmp_path_factory.mktemp("hostile"))


def clean(page: Page) -> None:
    """No element that is not ours, no handler in an attribute, nothing has run."""
    expect(page.locator("#here").locator(FOREIGN)).to_have_count(0)
    assert page.evaluate(HANDLERS) == []
    assert page.evaluate("[window.__x ?? null, window['__x'] ?? null]") == [None, None]


def test_no_name_and_no_value_becomes_markup_anywhere(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_widget(Explorer(dataset), width=1600).page
    expect(page.locator(".lnb-name")).to_have_text(f"{EVIL}.lance")
    rows = page.locator(".lnb-panel-rows")
    detail = page.get_by_role("region", name="details")
    grid = rows.locator(".lnb-grid")
    for keys in (("Control+End",), ("c",), ("Enter", "Escape"), ("Control+Home", "Shift+Enter")):
        grid.focus()
        for key in keys:
            page.keyboard.press(key)
        expect(rows.locator(".lnb-cell:visible").first).not_to_be_empty()
        clean(page)
    screenshot(page, "rows")
    detail.get_by_role("button", name="Row history").click()
    expect(detail.locator(".lnb-bio-step").last).to_contain_text("created")
    version_box(page).fill("<")
    choices = page.get_by_role("listbox", name="versions, tags").get_by_role("option")
    expect(choices.first).to_contain_text("<")
    page.keyboard.press("Escape")
    clean(page)

    page.get_by_role("tab", name="Changes").click()
    box = page.get_by_role("combobox", name="compare with a version")
    box.fill("1")
    box.press("Enter")
    expect(page.locator(".lnb-ch-end-a")).to_contain_text("main:1")
    chips = page.get_by_role("tablist", name="levels of the difference").get_by_role("tab")
    expect(chips).to_have_count(8)
    for chip in chips.all():
        chip.click()
        level = page.locator(".lnb-panel-changes :is(.lnb-cell, .lnb-dr-card, .lnb-empty):visible")
        expect(level.first).not_to_be_empty()
        clean(page)
    screenshot(page, "changes")

    page.get_by_role("tab", name="Storage").click()
    page.get_by_role("slider", name="fragments").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(detail.locator(".lnb-fd-facts").first).to_contain_text("written by")
    detail.get_by_role("button", name="pages").first.click()
    expect(detail.get_by_role("region", name="pages of the file")).to_contain_text("mini_block")
    page.get_by_role("button", name="account for every byte").click()
    expect(page.locator(".lnb-su-legend")).to_contain_text("current")
    expect(page.locator(".lnb-panel-storage")).to_contain_text(EVIL)
    clean(page)
    screenshot(page, "storage")

    page.get_by_role("tab", name="Branches & tags").click()
    refs = page.locator(".lnb-panel-refs")
    refs.get_by_role("button", name=f"{len(set(VALUES)) + 1} tags").click()  # and the plain one
    refs.get_by_role("row").filter(has_text="⚑<body").click()
    expect(detail).to_contain_text("Tag <body")
    clean(page)
    screenshot(page, "refs")

    page.get_by_role("tab", name="Stage").click()
    expect(page.locator(".lnb-panel-stage")).to_be_visible()
    clean(page)


def test_no_value_of_the_engine_becomes_markup(open_widget: OpenWidget, dataset: Any) -> None:
    values = (dataset.version_info(1), dataset.transaction(1), dataset.lance_schema,
              dataset.get_fragments()[1], dataset.stage().delete("id < 9").preview())  # fmt: skip
    bare = open_widget(widget_of(values[0]))
    for value in values:
        widget = widget_of(value)
        text = widget.picture().text.splitlines()[0]
        bare.page.evaluate("window.stop()")
        bare.show(widget)
        bare.page.evaluate("(events) => window.start(events)", bare._traits("screen", "height"))
        expect(bare.page.locator(".lnb-value strong").first).to_have_text(text)
        eventually(bare.page, lambda: bare.page.locator(".lnb-live").count() == 1)
        clean(bare.page)
