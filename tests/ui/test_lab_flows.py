"""Header, timeline and rows in a real JupyterLab, over a dataset that lance_nb wrote.

Every part is one open page with several flows; each flow ends in a picture for a person to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

import lance_nb
from tests.ui.bare_page import Screenshot
from tests.ui.flow_dataset import NEWEST, write_flows
from tests.ui.lab_explorer import LabExplorer, open_explorer
from tests.ui.lab_server import LabServer
from tests.ui.version_box import version_box
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui
EXPLORE = 'import lance_nb\nexplorer = lance_nb.explore("flows.lance")\nexplorer'
TOO_WIDE = "(panel) => panel.scrollWidth - panel.clientWidth"
SELECTED = 'chosen = explorer.selection\nprint(chosen.num_rows, "rows of", chosen.column_names)'


@pytest.fixture(scope="module")
def opened(lab: LabServer) -> Iterator[LabExplorer]:
    write_flows(lance_nb, lab.work / "flows.lance")
    explorer = open_explorer(lab, "flows.ipynb", EXPLORE, "explorer = explorer")
    yield explorer
    assert explorer.notebook.outside == []  # nothing left the machine
    explorer.notebook.close()


@pytest.fixture
def lance(opened: LabExplorer) -> LabExplorer:
    """The explorer, as every test finds it."""
    opened.home(NEWEST)
    return opened


def test_versions_are_found_by_tag_branch_distance_and_date(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    box = version_box(lance.root)
    box.fill("sec")
    choices = lance.root.get_by_role("listbox", name="versions, tags").get_by_role("option")
    expect(choices).to_contain_text(["second-jury"])
    screenshot(lance.page, "typed")
    lance.press(box, "ArrowDown", "Enter")
    lance.at("main:7")
    lance.go("dev")
    lance.at("dev:5")
    screenshot(lance.page, "branch")
    lance.go("HEAD~1")
    lance.at("dev:4")
    lance.go("main")
    lance.at(f"main:{NEWEST}")
    lance.go("HEAD~2")
    lance.at(f"main:{NEWEST - 2}")
    lance.go("2999-01-01")
    lance.at(f"main:{NEWEST}")
    lance.go("reviewd")
    problem = lance.root.locator(".lnb-problem .lnb-error")
    expect(problem).to_contain_text("reviewed")  # the name that was meant
    lance.at(f"main:{NEWEST}")
    screenshot(lance.page, "wrong")
    problem.get_by_role("button", name="close this message").click()


def test_the_timeline_is_pointed_at_walked_and_dragged(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    lance.bar(4).hover()
    expect(lance.readout).to_contain_text("Rows deleted (Delete) · −60 rows")
    screenshot(lance.page, "pointed")
    lance.bar(4).click()
    lance.at("main:4")
    lance.page.mouse.move(5, 5)  # what is pointed at is told before what is chosen
    plane = lance.root.locator(".lnb-tl-plane")
    lance.press(plane, "Home")
    lance.at("main:1")
    lance.press(plane, "End")
    lance.at(f"main:{NEWEST}")
    lance.press(plane, "[", "[")
    expect(lance.readout).to_contain_text("main:5 → main:8")
    screenshot(lance.page, "keys")
    lance.root.get_by_role("button", name="unpin A").click()
    lance.drag(lance.root.get_by_role("slider", name="B, the version"), lance.bar(2))
    expect(lance.readout).to_contain_text("→ main:2")
    lance.at(f"main:{NEWEST}")
    screenshot(lance.page, "dragging")
    lance.page.mouse.up()
    lance.at("main:2")
    lance.root.get_by_role("button", name="second-jury").click()
    lance.at("main:7")
    screenshot(lance.page, "flag")


def test_history_plays_from_where_one_stands(lance: LabExplorer, screenshot: Screenshot) -> None:
    lance.bar(NEWEST - 1).click()
    lance.at(f"main:{NEWEST - 1}")
    play = lance.root.get_by_role("button", name="play the history")
    play.click()
    lance.at(f"main:{NEWEST}")
    expect(play).to_have_attribute("aria-pressed", "false")
    screenshot(lance.page)


def test_the_frame_has_a_lock_a_meter_tabs_and_the_same_as_code(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    root, page = lance.root, lance.page
    lock = root.get_by_role("button", name="allow changes")
    lock.click()
    expect(root.get_by_role("button", name="changes allowed")).to_be_visible()
    root.get_by_role("button", name="changes allowed").click()
    expect(lock).to_be_visible()
    root.get_by_role("tab", name="Changes").click()
    expect(root.locator(".lnb-ch-badge")).to_be_visible()
    lance.tab("Rows")
    expect(lance.rows).to_be_visible()
    root.get_by_role("button", name="Details", exact=True).click()
    expect(root.locator(".lnb-part-detail")).to_be_hidden()
    screenshot(page, "folded")
    root.get_by_role("button", name="Details", exact=True).click()
    lance.filter.fill("id < 20")
    lance.press(lance.filter, "Enter")
    expect(lance.code).to_contain_text("filter='id < 20'")
    lance.tab("Storage")
    cost = re.compile("[1-9][0-9,]* requests to the store")
    expect(root.locator(".lnb-io")).to_have_attribute("title", cost)
    lance.tab("Rows")
    for name in ("Python", "%lance"):
        root.get_by_role("button", name=name).click()
        root.get_by_role("button", name="Copy", exact=True).click()
        line = lance.code.inner_text
        eventually(page, lambda: page.evaluate("navigator.clipboard.readText()") == line())  # noqa: B023
    expect(lance.code).to_contain_text("%lance")
    screenshot(page, "copied")
    root.get_by_role("button", name="Python").click()


def test_rows_are_filtered_with_completion_and_wrong_filters_explained(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    lance.filter.click()
    lance.page.keyboard.type("lab")
    expect(lance.root.get_by_role("option", name="label")).to_be_visible()
    screenshot(lance.page, "completion")
    lance.page.keyboard.press("Tab")
    lance.page.keyboard.type("= 'fox' AND score > 0.2")
    lance.page.keyboard.press("Enter")
    status = lance.rows.locator(".lnb-grid-status")
    expect(status).to_contain_text("of 7")
    lance.rows.get_by_role("button", name="Explain").click()
    expect(lance.rows.locator(".lnb-filter-reads")).to_contain_text("reads label, score")
    lance.filter.fill("label >> 3")
    lance.page.keyboard.press("Enter")
    expect(lance.rows.locator(".lnb-filter-problem")).to_contain_text("cannot be used")
    expect(status).to_contain_text("of 7")
    screenshot(lance.page, "wrong")


def brush(lance: LabExplorer, histogram: Locator) -> None:
    """Drag over the upper half of a histogram."""
    expect(histogram.locator("svg")).to_be_visible()
    box = histogram.bounding_box()
    assert box is not None
    lance.page.mouse.move(box["x"] + box["width"] * 0.52, box["y"] + 8)
    lance.page.mouse.down()
    lance.page.mouse.move(box["x"] + box["width"] * 0.98, box["y"] + 8, steps=3)
    lance.page.mouse.up()


def test_rows_are_brushed_sorted_and_their_columns_opened(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    head = lance.rows.locator(".lnb-grid-head")
    brush(lance, head.get_by_role("columnheader", name="score").locator(".lnb-profile"))
    expect(lance.filter).to_have_value(
        re.compile(r"^score >= 0\.[45]\d* AND NOT isnan\(score\) *$")
    )
    screenshot(lance.page, "brushed")
    head.get_by_role("columnheader", name="score").click(position={"x": 12, "y": 8})
    pane = lance.root.locator(".lnb-column-pane")
    pane.get_by_role("button", name="Count again").click()
    expect(pane).to_contain_text(re.compile(r"all \d+ rows"))
    screenshot(lance.page, "column")
    pane.get_by_role("button", name="descending").click()
    expect(lance.rows.locator("[aria-sort=descending]")).to_have_count(1)
    column = head.get_by_role("columnheader", name="score").get_attribute("aria-colindex")
    first = lance.rows.locator(
        f".lnb-grid-row:not([hidden]) .lnb-cell[aria-colindex='{column}']"
    ).first
    expect(first).to_have_text("0.99")
    screenshot(lance.page, "sorted")
    lance.rows.get_by_role("button", name="unsorted").click()
    expect(lance.rows.locator("[aria-sort]")).to_have_count(0)


def test_rows_are_scrolled_columns_found_and_row_ids_shown(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    grid = lance.rows.locator(".lnb-grid")
    lance.press(grid, "Control+End")
    status = lance.rows.locator(".lnb-grid-status")
    expect(status).to_contain_text("839 of 840")
    expect(lance.rows.locator(".lnb-cell.lnb-here")).not_to_be_empty()
    screenshot(lance.page, "end")
    lance.press(grid, "Control+Home")
    lance.root.get_by_role("combobox", name="find a column").fill("dou")
    lance.page.keyboard.press("Enter")  # whether its list has come or not
    expect(lance.rows.locator(".lnb-grid-column.lnb-here b")).to_have_text("double")
    ids = lance.rows.get_by_role("button", name="row ids")
    ids.click()
    expect(grid).to_have_attribute("aria-colcount", "12")
    lance.press(grid, "Control+ArrowRight")
    created = lance.rows.get_by_role("columnheader", name="_row_created_at_version")
    expect(created).to_be_visible()
    screenshot(lance.page, "ids")
    ids.click()
    expect(grid).to_have_attribute("aria-colcount", "8")


def test_cells_and_rows_open_with_pictures_vectors_and_nested_values(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    grid = lance.rows.locator(".lnb-grid")
    lance.press(
        grid, "Control+Home", "ArrowRight"
    )  # the first column is pinned: it scrolls nothing
    thumbs = lance.rows.locator(".lnb-grid-row:not([hidden]) .lnb-thumb")
    expect(thumbs.first).to_be_visible()
    screenshot(lance.page, "thumbnails")
    lance.rows.locator(".lnb-cell.lnb-look-picture").first.dblclick()
    expect(lance.rows.locator(".lnb-media img")).to_have_js_property("naturalWidth", 40)
    screenshot(lance.page, "picture")
    lance.page.keyboard.press("Escape")
    lance.press(grid, "ArrowRight", "ArrowRight", "ArrowRight", "n")  # at the vector
    expect(lance.rows.locator(".lnb-filter-plan")).to_contain_text("rows nearest by l2")
    screenshot(lance.page, "similar")
    lance.rows.get_by_role("button", name="back to all rows").click()
    expect(lance.rows.locator(".lnb-grid-status")).to_contain_text("of 840")
    lance.press(grid, "Control+Home", "ArrowDown", "Shift+Enter")
    expect(lance.detail.get_by_role("tree", name="Row 1")).to_contain_text("n2")
    screenshot(lance.page, "row")
    lance.press(grid, "?")
    expect(lance.root.locator(".lnb-keys")).to_contain_text("rows like this vector")
    screenshot(lance.page, "keys")


def test_what_is_selected_comes_back_to_python(lance: LabExplorer, screenshot: Screenshot) -> None:
    numbers = lance.rows.locator(".lnb-grid-row:not([hidden]) .lnb-grid-number")
    numbers.nth(1).click()
    numbers.nth(3).click(modifiers=["Shift"])
    lance.press(lance.rows.locator(".lnb-grid"), "Control+Home", "Control+Space")
    expect(lance.rows.locator(".lnb-grid-status")).to_contain_text("3 selected · 1 column")
    cell = lance.page.locator(".jp-CodeCell").nth(1)
    cell.locator(".cm-content").fill(SELECTED)
    lance.page.keyboard.press("Control+Enter")
    expect(cell.locator(".jp-OutputArea-output")).to_contain_text("3 rows of ['id']")
    screenshot(lance.page)


def test_it_fits_any_width_and_theme(lance: LabExplorer, screenshot: Screenshot) -> None:
    lance.notebook.command("application:toggle-left-area")
    for width, dark in ((600, False), (1600, True)):
        lance.page.set_viewport_size({"width": width, "height": 1050})
        lance.notebook.theme(dark=dark)
        for name in ("Rows", "Changes", "Storage", "Branches & tags", "Stage"):
            lance.tab(name)
            panel = lance.root.get_by_role("tabpanel", name=name)
            eventually(lance.page, lambda: panel.evaluate(TOO_WIDE) <= 0)  # noqa: B023
            screenshot(lance.page, f"{width}_{name.split()[0].lower()}")
    lance.page.set_viewport_size({"width": 1400, "height": 1050})
    lance.notebook.theme(dark=False)
    lance.notebook.command("application:toggle-left-area")
