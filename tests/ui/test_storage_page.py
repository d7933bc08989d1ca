"""The storage tab in a bare page, over datasets in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lance_nb.explorer.app import Explorer
from tests.support.explorer_datasets import worn_dataset
from tests.support.fake_dataset import small_dataset
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return worn_dataset(tmp_path_factory.mktemp("storage") / "worn.lance")


def open_storage(open_widget: OpenWidget, dataset: Any, **how: Any) -> Page:
    page = open_widget(Explorer(dataset), **how).page
    page.get_by_role("tab", name="Storage").click()
    return page


def drawn(page: Page, canvas: str) -> int:
    """Count the pixels of a canvas that are not empty."""
    return page.locator(canvas).evaluate(
        """(canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
        .data.filter((value, at) => at % 4 === 3 && value > 0).length"""
    )


def test_the_map_shows_every_fragment_and_what_is_deleted(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_storage(open_widget, dataset)
    panel = page.locator(".lnb-panel-storage")
    expect(panel.locator(".lnb-st-summary")).to_contain_text("3 fragments · 300 stored rows")
    expect(panel.locator(".lnb-st-summary")).to_contain_text("10.0 % deleted")
    bars = panel.get_by_role("slider", name="fragments")
    expect(bars).to_have_attribute("aria-valuemax", "2")
    bars.focus()
    page.keyboard.press("ArrowRight")
    expect(bars).to_have_attribute("aria-valuenow", "1")
    expect(panel.locator(".lnb-st-readout")).to_contain_text("fragment 1 · 100 rows · 30.0 %")
    expect(page.locator(".lnb-code-line")).to_contain_text(".inspect.fragments()")
    eventually(page, lambda: drawn(page, ".lnb-fm-canvas") > 10_000)
    screenshot(page)


def test_a_fragment_shows_its_deletions_files_and_pages(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_storage(open_widget, dataset, width=1600)
    bars = page.get_by_role("slider", name="fragments")
    expect(bars).to_have_attribute("aria-valuemax", "2")
    bars.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    detail = page.get_by_role("region", name="details")
    expect(detail.locator(".lnb-detail-title")).to_have_text("Fragment 1")
    expect(detail.get_by_role("img", name="30.0 % of 100 rows deleted")).to_be_visible()
    expect(detail.locator(".lnb-fd-facts").first).to_contain_text("written by main:2")
    expect(detail.locator(".lnb-fd-lost")).to_contain_text("1 field dropped")
    detail.get_by_role("button", name="pages").first.click()
    table = detail.get_by_role("region", name="pages of the file")
    expect(table).to_contain_text("mini_block")
    expect(page.locator(".lnb-code-line")).to_contain_text(".get_fragment(1)")
    screenshot(page)
    detail.get_by_role("button", name="back to the version").click()
    expect(page.locator(".lnb-operation")).to_be_visible()


def test_advice_comes_with_code_and_leads_to_its_fragment(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_storage(open_widget, dataset, dark=True)
    cards = page.locator(".lnb-st-card")
    expect(cards).to_have_count(2)
    expect(cards.first.locator("code")).to_contain_text("materialize_deletions_threshold=0.1")
    cards.first.get_by_role("button", name="see fragment 1").click()
    expect(page.locator(".lnb-pane .lnb-detail-title")).to_have_text("Fragment 1")
    screenshot(page)


@pytest.mark.parametrize("width", [600, 1600])
def test_every_byte_is_accounted_for_when_asked(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any, width: int
) -> None:
    page = open_storage(open_widget, dataset, width=width)
    page.get_by_role("button", name="account for every byte").click()
    legend = page.locator(".lnb-su-legend")
    expect(legend).to_contain_text("current")
    expect(page.locator(".lnb-su-table").nth(1)).to_contain_text("v1")
    legend.scroll_into_view_if_needed()
    too_wide = "document.documentElement.scrollWidth - window.innerWidth"
    eventually(page, lambda: page.evaluate(too_wide) <= 0)
    screenshot(page)
    page.locator(".lnb-su-table").nth(1).get_by_role("button", name="main:2").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(page.locator(".lnb-st-summary")).to_contain_text("2 fragments")


def test_a_dataset_whose_files_are_unknown_says_so_in_place(open_widget: OpenWidget) -> None:
    page = open_storage(open_widget, small_dataset())
    problem = page.locator(".lnb-panel-storage .lnb-st-problem")
    expect(problem).to_contain_text("gives no access to its files")


def test_a_damaged_deletion_file_is_explained_beside_the_rest(
    open_widget: OpenWidget, tmp_path: Path
) -> None:
    damaged = worn_dataset(tmp_path / "damaged.lance")
    (deletions,) = (tmp_path / "damaged.lance" / "_deletions").iterdir()
    deletions.write_bytes(b"no deletion vector")
    page = open_storage(open_widget, damaged.checkout_version(damaged.version))
    page.locator(".lnb-st-card").first.get_by_role("button", name="see fragment 1").click()
    detail = page.get_by_role("region", name="details")
    expect(detail.locator(".lnb-dm .lnb-error-title")).to_have_text("A file is damaged")
    expect(detail.locator(".lnb-fd-file")).to_have_count(2)
