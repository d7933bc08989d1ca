"""Columns of a wide dataset chosen, hidden and pinned, and rows in the order of several columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.version_box import go_to
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui


@pytest.fixture
def wide(tmp_path: Path) -> Any:
    """Two thousand columns: a few of them are a person's, the others numbered features."""
    count = 60
    table = pa.table({
        "id": range(count),
        "label": [["cat", "dog", "eel"][at % 3] for at in range(count)],
        "score": [(at * 7) % 20 for at in range(count)],
        **{f"feature_{at:04}": pa.array([at + row for row in range(count)], pa.int16())
           for at in range(1_997)},
    })  # fmt: skip
    return lance_nb.write_dataset(table, tmp_path / "wide.lance")


def test_two_thousand_columns_are_reduced_to_those_of_interest(
    open_widget: OpenWidget, screenshot: Screenshot, wide: Any
) -> None:
    widget = Explorer(wide, height=520)
    page = open_widget(widget, width=1200).page
    rows = page.locator(".lnb-panel-rows")
    grid = rows.locator(".lnb-grid")
    heads = rows.locator(".lnb-grid-column:visible b")
    grid.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("p")
    pinned = page.locator(".lnb-grid-column.lnb-pinned:visible b")
    expect(pinned).to_have_text(["id", "label"])  # the key is pinned from the beginning
    page.keyboard.press("Control+ArrowRight")
    expect(heads.last).to_have_text("feature_1996")
    expect(pinned).to_have_text(["id", "label"])
    expect(rows.locator(".lnb-cell.lnb-pinned:visible").nth(1)).to_have_text("cat")
    screenshot(page, "pinned")
    page.keyboard.press("v")
    pane = page.locator(".lnb-column-chooser")
    expect(pane).to_contain_text("2,000 of 2,000 columns shown")
    pane.get_by_role("checkbox", name="feature_").uncheck()
    expect(pane).to_contain_text("3 of 2,000 columns shown")
    expect(heads).to_have_text(["id", "label", "score"])
    pane.get_by_label("find a column to show").fill("_0007")
    pane.get_by_role("checkbox", name="feature_0007").check()
    expect(heads).to_have_text(["id", "label", "score", "feature_0007"])
    screenshot(page, "chosen")
    rows.get_by_role("columnheader", name="label").locator(".lnb-sort").click()
    expect(rows.locator("[aria-sort=ascending] .lnb-sort")).to_have_text("▲")
    rows.get_by_role("columnheader", name="score").locator("b").click(modifiers=["Shift"])
    expect(rows.locator("[aria-sort=ascending] .lnb-sort")).to_have_text(["▲1", "▲2"])
    rows.get_by_role("columnheader", name="score").locator("b").click(modifiers=["Shift"])
    expect(rows.locator("[aria-sort=descending] .lnb-sort")).to_have_text("▼2")
    rows.locator(".lnb-grid-number").nth(0).click()
    eventually(page, lambda: widget.selection.num_rows == 1)
    assert widget.selection.column_names == ["id", "label", "score", "feature_0007"]
    frame = wide.to_table(["label", "id", "score"]).to_pandas()
    first = frame.sort_values(["label", "score"], ascending=[True, False], kind="stable").iloc[0]
    assert widget.selection["id"].to_pylist() == [first["id"]]
    line = page.locator(".lnb-code code").first
    expect(line).to_contain_text("order_by=[")
    screenshot(page, "sorted")


def test_hidden_columns_are_found_and_stay_hidden_in_other_versions(
    open_widget: OpenWidget, screenshot: Screenshot, wide: Any
) -> None:
    wide.drop_columns([f"feature_{at:04}" for at in range(5, 1_997)])
    widget = Explorer(wide, height=520)
    page = open_widget(widget, width=1000, dark=True).page
    rows = page.locator(".lnb-panel-rows")
    heads = rows.locator(".lnb-grid-column:visible b")
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("h")
    expect(heads.first).to_have_text("label")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("h")
    expect(heads.first).to_have_text("score")
    expect(rows.locator(".lnb-current .lnb-grid-number")).to_have_text("1")
    go_to(page, "1")
    expect(page.locator(".lnb-overview")).to_contain_text("main:1")
    expect(heads.first).to_have_text("score")
    page.get_by_role("combobox", name="find a column").fill("lab")
    page.get_by_role("option", name="label").click()
    expect(heads.first).to_have_text("label")
    page.keyboard.press("Escape")
    rows.get_by_role("button", name="Columns").click()
    expect(page.locator(".lnb-column-chooser")).to_contain_text("1,999 of 2,000 columns shown")
    screenshot(page)


def test_the_selected_row_is_found_again_in_versions_filters_and_orders(
    open_widget: OpenWidget, screenshot: Screenshot, tmp_path: Path
) -> None:
    table = pa.table({"id": range(300), "score": [(at * 7) % 300 for at in range(300)]})
    made = lance_nb.write_dataset(table, tmp_path / "held.lance", enable_stable_row_ids=True)
    made.delete("id < 100")
    widget = Explorer(made, height=520)
    page = open_widget(widget, width=1000).page
    rows = page.locator(".lnb-panel-rows")
    current = rows.locator(".lnb-current")
    rows.locator(".lnb-grid").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("1 selected")
    go_to(page, "1")
    expect(current.locator(".lnb-grid-number")).to_have_text("103")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("1 selected")
    eventually(page, lambda: widget.selection.num_rows == 1)
    assert widget.selection["id"].to_pylist() == [103]
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("s")
    place = table["score"].to_pylist()[103]
    expect(current.locator(".lnb-grid-number")).to_have_text(str(place))
    rows.get_by_role("button", name="unsorted").click()
    expect(current.locator(".lnb-grid-number")).to_have_text("103")
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("Control+ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    go_to(page, "2")
    lost = rows.locator(".lnb-filter-lost")
    expect(lost).to_contain_text("This row does not exist in version main:2.")
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("Control+a")
    expect(rows.locator(".lnb-grid-foot")).to_contain_text("200 selected")
    expect(rows.get_by_role("button", name="clear selection")).to_be_visible()
    eventually(page, lambda: widget.selection.num_rows == 200)
    screenshot(page)
