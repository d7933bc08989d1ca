"""The tour in a real JupyterLab: what a newcomer sees, clicks and gets."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import NotebookPage
from tests.ui.version_box import version_box
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui
TOUR = "01_tour.ipynb"


@pytest.fixture(scope="module")
def tour(lab: LabServer) -> Iterator[NotebookPage]:
    """The tour, opened and run to its end once."""
    notebook = lab.notebook(TOUR)
    notebook.run_all()
    expect(notebook.page.locator(".lnb-live .lnb-error-title")).to_have_text("No dataset found")
    yield notebook
    notebook.close()


def label_of(explorer: Locator) -> Locator:
    return explorer.locator(".lnb-here-ref")


def bring(notebook: NotebookPage, at: int) -> Locator:
    """Scroll an explorer into sight."""
    explorer = notebook.explorer(at)
    explorer.scroll_into_view_if_needed()
    return explorer


def test_the_tour_runs_and_shows_the_dataset(tour: NotebookPage, screenshot: Screenshot) -> None:
    explorer = bring(tour, 0)
    expect(explorer.locator(".lnb-name")).to_have_text("demo.lance")
    expect(label_of(explorer)).to_have_text("main:26")
    expect(explorer.locator(".lnb-tl-bar")).to_have_count(35)
    expect(explorer.locator(".lnb-tl-flag em")).to_have_text(
        ["raw-import", "training-v1", "week-47", "reviewed"]
    )
    expect(explorer.locator(".lnb-tl-name")).to_have_count(4)
    expect(explorer.locator(".lnb-cell").first).not_to_be_empty()
    expect(explorer.locator(".lnb-badge")).to_be_hidden()
    screenshot(tour.page)


def test_a_click_on_an_older_version_changes_the_rows(
    tour: NotebookPage, screenshot: Screenshot
) -> None:
    explorer = bring(tour, 0)
    ids = explorer.locator(".lnb-grid-row:visible .lnb-cell[aria-colindex='2']")
    explorer.get_by_role("button", name="Large rows").click()  # else six are in sight, all alike
    eventually(tour.page, lambda: len(ids.all_inner_texts()) >= 9)
    now = ids.all_inner_texts()
    explorer.get_by_role("option", name="main version 1,").click()
    expect(label_of(explorer)).to_have_text("main:1")
    expect(explorer.locator(".lnb-grid-status")).to_contain_text("of 10,000")
    expect(explorer.locator(".lnb-detail")).to_contain_text("Import the spring archive")
    eventually(tour.page, lambda: ids.all_inner_texts()[:12] != now[:12])
    screenshot(tour.page)
    version_box(explorer)
    explorer.get_by_role("button", name="newest is 26").click()
    expect(label_of(explorer)).to_have_text("main:26")


def test_tags_and_branches_are_a_click_away(tour: NotebookPage) -> None:
    explorer = bring(tour, 0)
    explorer.locator(".lnb-tl-flag", has_text="training-v1").click()
    expect(label_of(explorer)).to_have_text("main:9")
    explorer.get_by_role("option", name="relabel version 11").click()
    expect(label_of(explorer)).to_have_text("relabel:11")
    expect(explorer.locator(".lnb-tl-name.lnb-here")).to_have_text("relabel")


def test_keys_work_without_reaching_the_notebook(tour: NotebookPage) -> None:
    explorer = bring(tour, 0)
    cells = tour.page.locator(".jp-Notebook .jp-Cell .jp-InputArea-editor").all_inner_texts()
    explorer.get_by_role("option", name="relabel version 11").click()
    expect(label_of(explorer)).to_have_text("relabel:11")
    explorer.locator(".lnb-tl-plane").focus()
    tour.page.keyboard.press("Home")
    expect(label_of(explorer)).to_have_text("relabel:9")
    for _ in range(3):  # over augmented and captions to main
        tour.page.keyboard.press("ArrowUp")
    tour.page.keyboard.press("End")
    expect(label_of(explorer)).to_have_text("main:26")
    grid = explorer.get_by_role("grid")
    grid.focus()
    tour.page.keyboard.press("Control+End")
    expect(explorer.locator(".lnb-grid-status")).to_contain_text("49,589 of 49,590")
    for place in (".lnb-grid", ".lnb-tl-plane", ".lnb-detail", ".lnb-code .lnb-button", "summary"):
        explorer.locator(place).first.focus()
        for key in ("d", "d", "a", "b", "x"):
            tour.page.keyboard.press(key)
    grid.focus()
    tour.page.keyboard.press("Control+Home")
    expect(explorer.locator(".lnb-grid-status")).to_contain_text("rows 0")
    editors = tour.page.locator(".jp-Notebook .jp-Cell .jp-InputArea-editor")
    eventually(tour.page, lambda: editors.all_inner_texts() == cells)
    tour.page.keyboard.press("Escape")
    expect(tour.page.locator(".jp-Notebook :focus")).to_have_class(re.compile("jp-Cell"))


def test_the_dark_theme_is_followed_at_once(tour: NotebookPage, screenshot: Screenshot) -> None:
    explorer = bring(tour, 0)
    tour.theme(dark=False)
    light = explorer.evaluate("(element) => getComputedStyle(element).backgroundColor")
    tour.theme(dark=True)
    expect(explorer).not_to_have_css("background-color", light)
    screenshot(tour.page)
    tour.theme(dark=False)
    expect(explorer).to_have_css("background-color", light)


def test_a_dataset_at_the_end_of_a_cell_is_an_explorer(tour: NotebookPage) -> None:
    explorer = bring(tour, 2)
    expect(label_of(explorer)).to_have_text("relabel:11")


def test_the_magic_shows_explorers_and_lists(tour: NotebookPage, screenshot: Screenshot) -> None:
    expect(label_of(bring(tour, 3))).to_have_text("main:26")
    expect(label_of(bring(tour, 4))).to_have_text("relabel:10")
    listing = tour.page.locator(".jp-OutputArea details:visible", has_text="Versions of demo.lance")
    expect(listing).to_contain_text("26 (shown)")
    listing.scroll_into_view_if_needed()
    screenshot(tour.page)


def test_a_wrong_path_is_an_error_card_with_a_suggestion(
    tour: NotebookPage, screenshot: Screenshot
) -> None:
    card = tour.page.locator(".lnb-live .lnb-error").last
    card.scroll_into_view_if_needed()
    expect(card).to_contain_text("did you mean 'data/demo.lance'")
    screenshot(tour.page)


def test_live_widgets_hide_their_static_pictures(tour: NotebookPage) -> None:
    bring(tour, 0)
    expect(tour.page.locator(".lnb-static:visible")).to_have_count(0)


def test_nothing_left_the_machine_and_nothing_complained(tour: NotebookPage) -> None:
    assert tour.outside == []
    assert tour.problems == []
