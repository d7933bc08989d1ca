"""The grid of rows at scale, in a bare page."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Page, expect

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.rows.column_choice import USUAL_COLUMNS
from lance_nb.explorer.rows.row_page import page_of, page_texts
from lance_nb.explorer.rows.widget import RowGrid
from tests.support.datasets import everything_table
from tests.support.fake_dataset import FakeDataset, FakeVersion, one_table, rows
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui
MANY = 100_000_000


class Endless(FakeDataset):
    """A hundred million rows that are made when they are asked for."""

    def count_rows(self) -> int:
        return MANY

    def to_table(
        self,
        columns: list[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
    ) -> pa.Table:
        first = offset or 0
        return rows(max(0, min(limit or 0, MANY - first)), first).select(columns or ["id", "text"])


def selected_ids(explorer: Explorer) -> list[int]:
    return explorer.selection.column("id").to_pylist()


def endless() -> FakeDataset:
    return Endless({None: {1: FakeVersion(1, rows(1))}})


def cell(page: Page, row: int, column: int) -> Any:
    return page.locator(f'[role=gridcell][id$="-{row}-{column}"]')


def test_every_kind_of_value_reads_in_the_browser_as_in_python(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    table = everything_table(12)
    page = open_widget(RowGrid(one_table(table), height=480), width=1600).page
    expected = page_texts(page_of(table))
    ordered = USUAL_COLUMNS.names(table.column_names, table.schema)
    for at, name in enumerate(ordered):
        page.locator(".lnb-grid").focus()
        page.keyboard.press("Control+Home")
        for _ in range(at):
            page.keyboard.press("ArrowRight")
        for row in range(0, 12, 5):
            value = expected[table.column_names.index(name)][row]
            expect(cell(page, row, at)).not_to_have_class(re.compile("lnb-waiting"))
            shown = cell(page, row, at).get_attribute("title") or cell(page, row, at).inner_text()
            kind = table.schema.field(name).type
            if value is None:
                assert shown == "null"
            elif pa.types.is_floating(kind):
                assert float(shown) == float(value)
            elif not pa.types.is_fixed_size_list(kind):
                assert shown.strip() == (value.strip() or "empty"), name
    screenshot(page)


def test_null_empty_and_the_word_null_look_different(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    texts = [None, "", "null", "line\nbreak", "abc\u202edef", "<b>bold</b>"]
    numbers = [None, float("nan"), float("inf"), -0.0, 1e300, 0.1]
    exact = [None, 2**63 - 1, -(2**63), 0, 1, 2]
    table = pa.table({"text": texts, "number": numbers, "exact": pa.array(exact, pa.int64())})
    page = open_widget(RowGrid(one_table(table))).page
    expect(cell(page, 2, 0)).to_have_text("null")
    classes = [cell(page, row, 0).get_attribute("class") for row in range(3)]
    assert len(set(classes)) == 3
    expect(cell(page, 1, 0)).to_have_text("empty")
    expect(cell(page, 3, 0)).to_have_text("line↵break")
    expect(cell(page, 4, 0)).to_have_text("abc⟨U+202E⟩def")
    expect(cell(page, 5, 0)).to_have_text("<b>bold</b>")
    expect(cell(page, 1, 1)).to_have_text("NaN")
    expect(cell(page, 1, 2)).to_have_text(str(2**63 - 1))
    expect(cell(page, 2, 2)).to_have_text(str(-(2**63)))
    screenshot(page)


def test_a_hundred_million_rows_scroll_to_their_end(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    bare = open_widget(Explorer(endless()))
    page = bare.page
    page.locator(".lnb-grid").focus()
    page.keyboard.press("Control+End")
    expect(cell(page, MANY - 1, 1)).to_have_text(f"row {MANY - 1}")
    eventually(page, lambda: page.locator(".lnb-grid-row").count() < 40)
    screenshot(page)
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    page.mouse.move(300, 450)
    page.mouse.wheel(0, -56)
    expect(page.locator(".lnb-grid-status")).to_contain_text("99,999,9")
    page.keyboard.press("Control+Home")
    expect(cell(page, 0, 0)).to_have_text("0")


def test_scrolling_asks_for_few_windows_and_keeps_three(open_widget: OpenWidget) -> None:
    bare = open_widget(RowGrid(one_table(rows(100_000))))
    page = bare.page
    for top in range(0, 60_000, 500):
        page.locator(".lnb-grid").evaluate("(element, top) => { element.scrollTop = top }", top)
    page.locator(".lnb-grid").evaluate("(element) => { element.scrollTop = 1400000 }")
    expect(cell(page, 50_001, 0)).to_have_text("50001")
    asked = [request for request in bare.requests if request["type"] == "rows"]
    assert len(asked) < 60
    expect(page.locator(".lnb-waiting:visible")).to_have_count(0)


def test_two_thousand_columns_are_fetched_as_they_come_in_sight(open_widget: OpenWidget) -> None:
    wide = one_table(pa.table({f"column {at}": [at, at + 1] for at in range(2000)}))
    bare = open_widget(RowGrid(wide))
    page = bare.page
    assert page.locator(".lnb-grid-column:visible").count() < 20
    page.locator(".lnb-grid").focus()
    page.keyboard.press("End")
    expect(cell(page, 0, 1999)).to_have_text("1999")
    expect(page.locator(".lnb-grid-column.lnb-here b")).to_have_text("column 1999")
    assert all(request["args"].get("num_columns", 0) <= 64 for request in bare.requests)


def test_the_grid_is_walked_with_the_keyboard(open_widget: OpenWidget) -> None:
    page = open_widget(RowGrid(one_table(rows(1000)))).page
    grid = page.locator(".lnb-grid")
    grid.focus()
    for key, place in [
        ("ArrowDown", (1, 0)),
        ("ArrowRight", (1, 1)),
        ("Control+End", (999, 1)),
        ("ArrowUp", (998, 1)),
        ("Home", (998, 0)),
        ("Control+Home", (0, 0)),
        ("ArrowUp", (0, 0)),
    ]:
        page.keyboard.press(key)
        row, column = place
        expect(cell(page, row, column)).to_have_class(re.compile("lnb-here"))
        expect(grid).to_have_attribute("aria-activedescendant", re.compile(f"-{row}-{column}$"))
    page.keyboard.press("PageDown")
    expect(page.locator(".lnb-cell.lnb-here")).not_to_have_attribute("id", re.compile("-0-0$"))
    page.keyboard.press("Escape")
    expect(grid).not_to_be_focused()


def test_aria_tells_where_every_cell_stands(open_widget: OpenWidget) -> None:
    page = open_widget(RowGrid(one_table(rows(1000)))).page
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", "1001")
    expect(grid).to_have_attribute("aria-colcount", "3")
    expect(cell(page, 3, 1)).to_have_attribute("aria-colindex", "3")
    expect(cell(page, 3, 1).locator("xpath=..")).to_have_attribute("aria-rowindex", "5")


def test_rows_are_selected_and_come_back_to_python(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    explorer = Explorer(one_table(rows(100)))
    page = open_widget(explorer).page
    page.locator(".lnb-grid-number").nth(2).click()
    page.locator(".lnb-grid-number").nth(5).click(modifiers=["Shift"])
    expect(page.locator(".lnb-grid-status")).to_contain_text("4 selected")
    eventually(page, lambda: selected_ids(explorer) == [2, 3, 4, 5])
    assert page.evaluate("String(getSelection())") == ""
    screenshot(page)
    page.locator(".lnb-grid").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press(" ")
    expect(page.locator(".lnb-grid-status")).to_contain_text("1 selected")
    eventually(page, lambda: selected_ids(explorer) == [0])


def test_a_whole_cell_opens_over_the_grid(open_widget: OpenWidget, screenshot: Screenshot) -> None:
    long = "The quick brown fox jumps over the lazy dog. " * 40
    table = pa.table({"id": [1, 2], "text": [long, None], "list": [list(range(500)), []]})
    page = open_widget(Explorer(one_table(table))).page
    cell(page, 0, 1).dblclick()
    expect(page.locator(".lnb-peek pre")).to_contain_text(long.strip())
    screenshot(page)
    page.keyboard.press("Escape")
    expect(page.locator(".lnb-peek")).to_be_hidden()
    expect(page.locator(".lnb-grid")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".lnb-peek pre")).to_have_text("null")
    page.get_by_role("button", name="close").click()
    expect(page.locator(".lnb-peek")).to_be_hidden()


def test_columns_are_resized_by_mouse_and_keyboard(open_widget: OpenWidget) -> None:
    page = open_widget(RowGrid(one_table(rows(10)))).page
    head = page.locator(".lnb-grid-column").nth(1)
    before = head.bounding_box()
    assert before is not None
    page.mouse.move(before["x"] + before["width"] - 3, before["y"] + 10)
    page.mouse.down()
    page.mouse.move(before["x"] + before["width"] + 97, before["y"] + 10, steps=4)
    page.mouse.up()
    expect(head).to_have_css("width", f"{before['width'] + 100:g}px")
    page.locator(".lnb-grid").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Alt+ArrowRight")
    expect(head).to_have_css("width", f"{before['width'] + 116:g}px")


def test_rows_that_vanish_while_scrolling_are_explained(open_widget: OpenWidget) -> None:
    class Shrunk(FakeDataset):
        def count_rows(self) -> int:
            return 100_000

    page = open_widget(RowGrid(Shrunk({None: {1: FakeVersion(1, rows(100))}}))).page
    page.locator(".lnb-grid").focus()
    page.keyboard.press("Control+End")
    expect(page.locator(".lnb-error-title")).to_have_text("No rows came back")


def test_rows_so_large_that_a_page_holds_few_of_them_are_all_reached(
    open_widget: OpenWidget,
) -> None:
    wide = pa.list_(pa.float32(), 1_000_000)
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(60_000_000, "f4")), type=wide)
    table = pa.table({"id": pa.array(range(60)), "vector": values})
    bare = open_widget(RowGrid(one_table(table)))
    bare.page.locator(".lnb-grid").focus()
    bare.page.keyboard.press("Control+End")
    expect(cell(bare.page, 59, 0)).to_have_text("59")
    expect(bare.page.locator(".lnb-waiting:visible")).to_have_count(0)
    assert len(bare.requests) < 40


def test_columns_grow_with_the_numbers_that_come_in_sight(open_widget: OpenWidget) -> None:
    page = open_widget(RowGrid(endless())).page
    head = page.locator(".lnb-grid-column").nth(1)
    narrow = head.bounding_box()
    page.locator(".lnb-grid").focus()
    page.keyboard.press("Control+End")
    last = cell(page, MANY - 1, 1)
    expect(last).to_have_text(f"row {MANY - 1}")
    assert narrow is not None
    eventually(page, lambda: (head.bounding_box() or narrow)["width"] > narrow["width"])
    eventually(page, lambda: bool(last.evaluate("(at) => at.scrollWidth <= at.clientWidth")))


SENT = """() => {
  const plain = window.toKernel;
  window.toKernel = (content) => {
    const first = document.querySelector(".lnb-grid-row:not([hidden]) .lnb-grid-number");
    if (content.type === "rows") window.shownThen ??= first.textContent;
    return plain(content);
  };
}"""


def test_rows_are_asked_for_before_the_grid_is_painted(open_widget: OpenWidget) -> None:
    page = open_widget(RowGrid(endless())).page
    expect(cell(page, 0, 0)).to_have_text("0")
    page.evaluate(SENT)
    page.locator(".lnb-grid").evaluate("(grid) => { grid.scrollTop = grid.scrollHeight / 2 }")
    eventually(page, lambda: page.evaluate("window.shownThen !== undefined"))
    assert page.evaluate("window.shownThen") == "0"  # the kernel reads while the page paints
