"""What stands above the rows, in a bare page: filter, column finder, row ids, profiles, a row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.rows.widget import RowGrid
from tests.support.fake_dataset import FakeDataset, one_table, small_dataset
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui


def nested() -> FakeDataset:
    people = [{"name": f"n{at}", "tags": ["a", "b"]} for at in range(30)]
    return one_table(pa.table({"id": range(30), "who": people, "score": [1.5, None, 2.5] * 10}))


def test_a_filter_narrows_the_rows_and_becomes_code(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    widget = Explorer(small_dataset())
    page = open_widget(widget).page
    box = page.get_by_role("combobox", name="filter of rows")
    names = page.get_by_role("listbox", name="columns for the filter")
    starts = []
    for words in ("te", "id < 7 and te", "id < 7 and " * 40 + "te"):
        box.fill(words)
        expect(names.get_by_role("option")).to_have_text(["textstring"])
        starts.append(names.evaluate("(one) => one.getBoundingClientRect().x"))
        page.keyboard.press("Escape")
    room = box.evaluate(
        "(one) => [one.getBoundingClientRect().x, one.getBoundingClientRect().right]"
    )
    assert room[0] <= starts[0] < starts[0] + 30 < starts[1] < starts[2]  # below the word
    assert starts[2] + 230 <= room[1] + 1  # and not beyond the box
    box.fill("id < 7")
    page.keyboard.press("Enter")
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 7")
    expect(page.locator(".lnb-filter-said")).to_have_text("7 pass")
    expect(page.locator(".lnb-code-line")).to_contain_text(".to_table(filter='id < 7')")
    page.locator(".lnb-panel-rows .lnb-grid-number").nth(6).click()
    expect(page.locator(".lnb-grid-status")).to_contain_text("1 selected")
    eventually(page, lambda: widget.selection.column("id").to_pylist() == [6])
    screenshot(page)
    page.get_by_role("button", name="Export…").click()
    expect(page.get_by_label("rows to export")).to_have_value("selected")
    page.get_by_label("format").select_option("csv")
    expect(page.get_by_label("file name")).to_have_value("fake-4-selected.csv")
    screenshot(page, "export")
    page.keyboard.press("Escape")
    page.get_by_role("option", name="main version 2,").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 7")
    page.get_by_role("button", name="clear the filter").click()
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 30")
    expect(page.locator(".lnb-code-line")).to_contain_text("ds = lance_nb.dataset")


def test_a_grid_that_stands_alone_has_what_is_loaded_later(open_widget: OpenWidget) -> None:
    page = open_widget(RowGrid(small_dataset())).page
    page.get_by_role("button", name="Export…").click()
    expect(page.get_by_label("rows to export")).to_have_value("shown")
    page.get_by_role("button", name="Whole row").click()
    page.get_by_role("button", name="Row history").click()
    expect(page.locator(".lnb-detail-below")).to_contain_text("Biography of a row")


def test_a_wrong_filter_is_explained_in_place_and_changes_nothing(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    page = open_widget(Explorer(small_dataset()), width=600, dark=True).page
    page.get_by_role("combobox", name="filter of rows").fill("id <<< 7")
    page.keyboard.press("Enter")
    problem = page.locator(".lnb-filter-problem")
    expect(problem).to_contain_text("This expression cannot be used")
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 25")
    screenshot(page)
    page.get_by_role("combobox", name="filter of rows").fill("id < 2")
    page.keyboard.press("Enter")
    expect(problem).to_be_hidden()
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 2")


def test_a_column_far_away_is_found_by_its_name(open_widget: OpenWidget) -> None:
    names = [f"column {at}" for at in range(2000)]
    page = open_widget(Explorer(one_table(pa.table({name: [at] for at, name in enumerate(names)}))))
    page = page.page
    page.get_by_role("combobox", name="find a column").fill("1777")
    expect(page.get_by_role("listbox", name="columns").get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".lnb-grid-column.lnb-here b")).to_have_text("column 1777")
    here = page.locator(".lnb-cell.lnb-here")
    expect(here).to_have_text("1777")
    page.locator(".lnb-panel-rows .lnb-grid").focus()
    page.keyboard.press("Shift+Enter")
    expect(page.get_by_role("tree", name="Row 0")).to_be_visible()
    expect(here).to_be_in_viewport(ratio=0.95)  # the pane beside does not push it away
    page.get_by_role("combobox", name="find a column").fill("1500")
    page.keyboard.press("Enter")  # before the list has come
    expect(page.locator(".lnb-grid-column.lnb-here b")).to_have_text("column 1500")
    expect(page.get_by_role("combobox", name="find a column")).to_have_value("")


def test_a_cell_stays_whole_in_sight_when_its_values_make_its_column_wider(
    open_widget: OpenWidget,
) -> None:
    long = "a value that is much longer than those before"
    same = {f"number {at}": range(3000) for at in range(20)}
    texts = ["short"] * 2999 + [long]
    page = open_widget(Explorer(one_table(pa.table({**same, "note": texts})))).page
    here = page.locator(".lnb-cell.lnb-here")
    page.locator(".lnb-panel-rows .lnb-grid").focus()
    page.keyboard.press("End")
    expect(here).to_have_text("short")
    page.keyboard.press("Control+End")
    expect(here).to_have_text(long)
    expect(here).to_be_in_viewport(ratio=0.99)


def test_row_ids_are_shown_on_request(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    toggle = page.get_by_role("button", name="row ids")
    toggle.click()
    grid = page.locator(".lnb-panel-rows")
    expect(grid.get_by_role("columnheader", name="_rowid")).to_be_visible()
    expect(grid.locator(".lnb-grid")).to_have_attribute("aria-colcount", "7")
    toggle.click()
    expect(grid.locator(".lnb-grid")).to_have_attribute("aria-colcount", "3")


def test_a_whole_row_opens_as_a_tree(open_widget: OpenWidget, screenshot: Screenshot) -> None:
    page = open_widget(Explorer(nested())).page
    page.locator(".lnb-panel-rows .lnb-grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Enter")
    tree = page.get_by_role("tree", name="Row 1")
    expect(tree).to_contain_text("n1")
    expect(tree.locator("summary").first).to_contain_text("who")
    expect(tree.locator(".lnb-look-null")).to_have_text("null")
    screenshot(page)
    page.keyboard.press("Escape")
    expect(page.locator(".lnb-operation")).to_be_visible()
    expect(page.locator(".lnb-panel-rows .lnb-grid")).to_be_focused()


def test_a_column_opens_while_its_rows_are_on_their_way(open_widget: OpenWidget) -> None:
    bare = open_widget(Explorer(nested()))
    page = bare.page
    score = page.locator(".lnb-panel-rows").get_by_role("columnheader", name="score")
    expect(score.locator(".lnb-profile-number")).to_have_count(1)
    bare.hold("rows")
    page.get_by_role("combobox", name="filter of rows").fill("id < 7")
    page.keyboard.press("Enter")
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 7")
    score.click(position={"x": 12, "y": 8})
    pane = page.locator(".lnb-column-pane")
    expect(pane).to_contain_text("all 30 rows")
    bare.release(1)
    expect(page.locator(".lnb-panel-rows .lnb-cell").first).not_to_be_empty()
    expect(pane.get_by_role("button", name="Count again")).to_be_visible()


def test_the_head_shows_what_the_values_look_like(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    page = open_widget(Explorer(nested())).page
    head = page.locator(".lnb-panel-rows .lnb-grid-head")
    expect(head.locator(".lnb-profile-number")).to_have_count(2)
    score = head.get_by_role("columnheader", name="score")
    expect(score).to_have_attribute("title", "score: float64\nall 30 rows · 33.3 % null · "
                                    "2 distinct · 1.5 to 2.5")  # fmt: skip
    expect(score.locator(".lnb-profile-null")).to_have_count(1)
    screenshot(page)
