"""Edit cells in the grid of a dataset that pylance wrote, commit, and meet what pylance commits."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.support.markup_payloads import PAYLOADS
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot

pytestmark = [pytest.mark.ui, pytest.mark.interop]
HOSTILE = PAYLOADS[0] if isinstance(PAYLOADS, list | tuple) else next(iter(PAYLOADS))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    lance = require_pylance()
    found = str(tmp_path / "shop.lance")
    count = 60
    moment = datetime(2024, 5, 1, 10, tzinfo=UTC)
    table = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": [f"item {n}" for n in range(count)],
            "price": pa.array(range(count), pa.int32()).cast(pa.decimal128(12, 2)),
            "sold": [n % 2 == 0 for n in range(count)],
            "when": pa.array([moment] * count, pa.timestamp("us", "Europe/Berlin")),
            "tags": [[n] for n in range(count)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array([0.5] * count * 8), 8),
        }
    )
    lance.write_dataset(table, found, max_rows_per_file=25, enable_stable_row_ids=True)
    return found


def explorer(uri: str) -> Explorer:
    return Explorer(lance_nb.dataset(uri))


def cell(page: Page, row: int, column: int) -> Locator:
    return page.locator(
        f'.lnb-panel-rows .lnb-grid-row[aria-rowindex="{row + 2}"] '
        f'.lnb-cell[aria-colindex="{column + 2}"]'
    )


def edit(page: Page, row: int, column: int, value: str) -> None:
    cell(page, row, column).dblclick()
    box = page.locator(".lnb-edit-cell textarea.lnb-edit-box")
    expect(page.locator(".lnb-edit-cell .lnb-edit-box:visible")).to_be_focused()
    page.wait_for_function(
        "() => document.querySelector('.lnb-edit-cell small')?.textContent !== undefined"
    )
    box.fill(value)
    page.keyboard.press("Enter")


def paste(page: Page, text: str) -> None:
    """Paste as a browser does after a click: it tells the text that was clicked, not the grid."""
    page.evaluate(
        """(text) => {
          const data = new DataTransfer();
          data.setData("text/plain", text);
          document.querySelector(".lnb-panel-rows .lnb-grid .lnb-cell.lnb-here").dispatchEvent(
            new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
        }""",
        text,
    )


def test_cells_are_edited_pasted_undone_and_committed(
    open_widget: OpenWidget, screenshot: Screenshot, uri: str
) -> None:
    lance = require_pylance()
    page = open_widget(explorer(uri)).page
    words = page.locator(".lnb-edit-words")
    cell(page, 0, 1).dblclick()  # the lock is shut: the whole value is shown
    expect(page.get_by_role("dialog", name="whole value")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("F2")
    expect(page.locator(".lnb-edit-refusal")).to_contain_text("locked")
    page.get_by_role("button", name="allow changes").first.click()
    expect(page.locator(".lnb-edit-refusal")).to_be_hidden()

    edit(page, 0, 1, "")  # the empty text, and no null
    expect(words).to_contain_text("Edits of 1 cell in 1 row")
    expect(cell(page, 0, 1)).to_have_class(re.compile("lnb-edited"))
    edit(page, 1, 1, HOSTILE)
    expect(cell(page, 1, 1)).to_have_text(HOSTILE)
    edit(page, 1, 2, "1.234")
    expect(page.locator(".lnb-edit-said")).to_contain_text("is no value of column 'price'")
    page.keyboard.press("Escape")
    edit(page, 1, 2, "9.99")
    expect(cell(page, 1, 2)).to_have_text("9.99")
    edit(page, 1, 5, "2024-06-01 08:30")
    edit(page, 1, 6, "[7, null]")
    expect(words).to_contain_text("5 cells in 2 rows")
    cell(page, 1, 3).dblclick()
    expect(page.locator(".lnb-edit-problem")).to_contain_text("holds vectors")

    # A boolean, a value that is typed at once, null, a block that is filled, pasted, undone.
    cell(page, 2, 4).click()
    page.keyboard.press("F2")
    page.locator("select.lnb-edit-box").select_option("null")
    page.keyboard.press("Enter")
    expect(cell(page, 2, 4)).to_have_text("null")
    cell(page, 3, 1).click()
    page.keyboard.type("typed")
    page.keyboard.press("Tab")
    expect(cell(page, 3, 1)).to_have_text("typed")
    cell(page, 3, 1).click()
    cell(page, 5, 1).click(modifiers=["Shift"])
    expect(page.locator(".lnb-in-range")).to_have_count(3)
    page.keyboard.press("Control+d")
    expect(cell(page, 5, 1)).to_have_text("typed")
    page.keyboard.press("Delete")
    expect(cell(page, 4, 1)).to_have_text("null")
    page.keyboard.press("Control+z")
    expect(cell(page, 4, 1)).to_have_text("typed")
    screenshot(page, "range")
    cell(page, 6, 0).click()
    paste(page, '106\t"two\nlines"\t1.5\r\n107\t\t2.5\r\n')
    expect(cell(page, 7, 0)).to_have_text("107")
    expect(cell(page, 7, 1)).to_have_text("null")
    before = words.text_content()
    paste(page, "1\t2\t3\n" * 350_000)
    expect(page.locator(".lnb-edit-problem")).to_contain_text("10,000")
    paste(page, "x\n")
    expect(page.locator(".lnb-edit-problem")).to_contain_text("'x' is no value of column 'id'")
    expect(words).to_have_text(before or "")

    # Rows: deleted in red, added below, and the edits go with the rows to another order.
    page.locator(".lnb-panel-rows .lnb-grid-number").nth(8).click()
    page.get_by_role("button", name="Delete 1 selected row").click()
    expect(page.locator(".lnb-row-gone")).to_have_count(1)
    page.get_by_role("button", name="Add rows…").click()
    page.get_by_label("lines from a spreadsheet").fill("id\tname\n900\tnew\n901\t\n")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".lnb-edit-new")).to_have_count(2)
    expect(words).to_contain_text("2 rows added, 1 row deleted")
    screenshot(page, "edits")
    page.locator(".lnb-grid-column .lnb-sort").first.click()
    page.locator(".lnb-grid-column .lnb-sort").first.click()  # by id, descending
    expect(page.locator(".lnb-grid-status")).to_contain_text("rows 4")  # where row 6 is now
    page.locator(".lnb-panel-rows .lnb-grid").focus()
    page.keyboard.press("Control+End")
    expect(page.locator(".lnb-cell.lnb-edited").first).to_be_visible()
    page.get_by_role("combobox", name="filter of rows").fill("id < 2")
    page.keyboard.press("Enter")
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 2")
    expect(cell(page, 0, 1)).to_have_text(HOSTILE)  # row 1 comes first now

    page.get_by_role("button", name="Review and commit").click()
    card = page.locator(".lnb-panel-stage .lnb-sg-card")
    expect(card).to_contain_text("Edits of")
    expect(card.locator(".lnb-sg-edits li")).to_have_count(18)  # 15 cells, 2 new rows, 1 deletion
    screenshot(page, "card")
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("main:2")
    expect(card.get_by_role("button", name="Undo: restore version 1")).to_be_visible()
    found = {row["id"]: row for row in lance.dataset(uri).to_table().to_pylist()}
    assert found[0]["name"] == ""
    assert (found[1]["name"], found[1]["price"]) == (HOSTILE, Decimal("9.99"))
    assert found[1]["when"] == datetime(2024, 6, 1, 6, 30, tzinfo=UTC)
    assert found[1]["tags"] == [7, None]
    assert found[2]["sold"] is None
    assert [found[n]["name"] for n in (3, 4, 5)] == ["typed"] * 3
    assert (found[106]["name"], found[107]["name"]) == ("two\nlines", None)
    assert 8 not in found
    assert (found[900]["name"], found[901]["name"]) == ("new", None)
    assert len(found) == 61
    lance.dataset(uri).validate()


def test_a_conflict_with_pylance_is_shown_and_decided(
    open_widget: OpenWidget, screenshot: Screenshot, uri: str
) -> None:
    lance = require_pylance()
    page = open_widget(explorer(uri), dark=True).page
    page.get_by_role("button", name="allow changes").click()
    edit(page, 0, 1, "mine")
    edit(page, 1, 1, "mine too")
    expect(page.locator(".lnb-edit-words")).to_contain_text("2 cells")
    screenshot(page, "marks")
    lance.dataset(uri).update({"name": "'theirs'"}, where="id = 0")
    lance.dataset(uri).update({"name": "'unrelated'"}, where="id = 50")
    page.get_by_role("button", name="Review and commit").click()
    card = page.locator(".lnb-panel-stage .lnb-sg-card")
    card.get_by_role("button", name="Commit").click()
    expect(card).to_contain_text("nothing was committed")
    table = card.get_by_role("grid", name="cells in conflict")
    expect(table.get_by_role("row").nth(1)).to_contain_text("theirs")
    screenshot(page, "conflict")
    assert lance.dataset(uri).version == 3
    table.get_by_role("button", name="mine").click()
    card.get_by_role("button", name="Apply choices").click()
    expect(table).to_have_count(0)
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("main:4")
    found = lance.dataset(uri).to_table(filter="id IN (0, 1, 50)").to_pylist()
    names = {row["id"]: row["name"] for row in found}
    assert names == {0: "mine", 1: "mine too", 50: "unrelated"}

    # A past version is not edited in secret.
    page.get_by_role("tab", name="Rows").click()
    page.get_by_role("option", name="main version 2,").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(page.locator(".lnb-edit-refusal")).to_contain_text("not the newest version")
    page.get_by_role("button", name="Edit version 4").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:4")
    expect(page.locator(".lnb-edit-refusal")).to_be_hidden()


@pytest.fixture(params=["key", "no key"])
def unstable(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A dataset of pylance without stable row ids; ``id`` may be its primary key."""
    lance = require_pylance()
    found = str(tmp_path / "plain.lance")
    key = {"lance-schema:unenforced-primary-key": "true"} if request.param == "key" else None
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata=key),
            pa.field("name", pa.string()),
            pa.field("price", pa.int64()),
        ]
    )
    table = pa.table([range(60), [f"item {n}" for n in range(60)], range(60)], schema=schema)
    lance.write_dataset(table, found, max_rows_per_file=25)
    return found


def test_a_row_that_pylance_rewrote_is_followed_and_its_edit_is_kept(
    open_widget: OpenWidget, screenshot: Screenshot, unstable: str
) -> None:
    has_key = bool(lance_nb.dataset(unstable).lance_schema.fields()[0].metadata)
    lance = require_pylance()
    page = open_widget(explorer(unstable)).page
    page.get_by_role("button", name="allow changes").click()
    for row in (0, 1, 2):
        edit(page, row, 1, f"mine {row}")
    expect(page.locator(".lnb-edit-words")).to_contain_text("3 cells")
    lance.dataset(unstable).update({"name": "'theirs'"}, where="id = 0")
    lance.dataset(unstable).update({"price": "99"}, where="id = 1")
    lance.dataset(unstable).optimize.compact_files()
    page.get_by_role("button", name="Review and commit").click()
    card = page.locator(".lnb-panel-stage .lnb-sg-card")
    card.get_by_role("button", name="Commit").click()
    expect(card).to_contain_text("nothing was committed")
    table = card.get_by_role("grid", name="cells in conflict")
    expect(table.get_by_role("columnheader").first).to_have_text("id")
    titles = table.get_by_role("columnheader")
    expect(titles.filter(has_text="theirs · main:")).to_have_count(1)
    expect(titles.filter(has_text="your edit")).to_have_count(1)
    lines = table.locator("tbody tr")
    expect(lines).to_have_count(1 if has_key else 2)
    screenshot(page, "key" if has_key else "no key")
    line = lines.filter(has_text="mine 0")
    expect(line.get_by_role("rowheader")).to_have_text("0")
    line.get_by_role("button", name="mine 0").click()
    if not has_key:
        # Its price was changed too: it is found by id, and its edit is kept all the same.
        moved = lines.filter(has_text="mine 1")
        expect(moved.get_by_role("rowheader")).to_have_text("1")
        expect(moved.locator(".lnb-ct-side")).to_have_text(["item 1", "mine 1", "item 1"])
        expect(card.locator(".lnb-ct")).to_contain_text("found by id, which is unique")
        moved.get_by_role("button", name="mine 1").click()
    card.get_by_role("button", name="Apply choices").click()
    expect(table).to_have_count(0)
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("main:")
    found = lance.dataset(unstable).to_table(filter="id < 3").to_pylist()
    expected = {0: ("mine 0", 0), 1: ("mine 1", 99), 2: ("mine 2", 2)}
    assert {row["id"]: (row["name"], row["price"]) for row in found} == expected
    assert lance.dataset(unstable).count_rows() == 60


def test_rows_are_selected_from_the_clicked_cell_and_cleared_before_an_act(
    open_widget: OpenWidget, screenshot: Screenshot, uri: str
) -> None:
    widget = explorer(uri)
    page = open_widget(widget).page
    chosen = page.locator('.lnb-panel-rows .lnb-grid-row[aria-selected="true"] .lnb-grid-number')
    status = page.locator(".lnb-grid-status")
    cell(page, 4, 1).click()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    expect(chosen).to_have_text(["4", "5", "6"])
    page.keyboard.press("F2")
    expect(page.get_by_role("button", name="Delete 3 selected rows")).to_be_visible()
    screenshot(page, "selection")
    # A filter that hides one of the three says so, and what is hidden is not deleted.
    page.get_by_role("combobox", name="filter of rows").fill("id <> 5")
    page.keyboard.press("Enter")
    expect(status).to_contain_text("of 59 · 2 selected")
    expect(page.locator(".lnb-panel-rows")).to_contain_text("1 of 3 rows")
    expect(page.get_by_role("button", name="Delete 2 selected rows")).to_be_visible()
    # Once cleared, it does not come back with the filter's end.
    cell(page, 0, 1).click()
    expect(chosen).to_have_count(0)
    expect(page.get_by_role("button", name="Delete rows")).to_be_visible()
    page.get_by_role("combobox", name="filter of rows").fill("")
    page.keyboard.press("Enter")
    expect(status).to_have_text(re.compile(r"of 60$"))
    expect(chosen).to_have_count(0)
