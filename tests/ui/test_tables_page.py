"""The tables of a database in a bare page: cards, search, keys, a table opened in place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Page, expect

import lance_nb
from lance_nb.explorer.app import DatabaseExplorer
from tests.support.markup_payloads import PAYLOADS
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.test_accessibility import axe_source, serious
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui

MANY = 300


def _write(folder: Path, name: str, num_rows: int, *, deletes: int = 0) -> None:
    dataset = lance_nb.write_dataset(
        pa.table({"id": range(num_rows), "label": ["x"] * num_rows}), folder / f"{name}.lance"
    )
    for at in range(deletes):
        dataset.delete(f"id >= {at * 10} AND id < {at * 10 + 1 + 3 * at}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of tables: good, worn, broken, with a name that wants to be markup."""
    place = tmp_path / "shop_db"
    _write(place, "orders", 1204)
    _write(place, "photos", 40, deletes=4)
    _write(place, "<img src=x onerror=window.__x=1>", 3)
    for at in range(9):
        _write(place, f"daily_{at}", 10 + at)
    broken = place / "broken.lance" / "_versions"
    broken.mkdir(parents=True)
    (broken / "1.manifest").write_bytes(b"damaged")
    return place


@pytest.mark.parametrize("dark", [False, True])
def test_cards_say_what_the_tables_are(
    folder: Path, open_widget: OpenWidget, screenshot: Screenshot, *, dark: bool
) -> None:
    widget = DatabaseExplorer(lance_nb.database(folder))
    page = open_widget(widget, dark=dark).page
    expect(page.get_by_role("heading", name="shop_db")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="13 tables")).to_be_visible()
    card = page.get_by_role("button", name="orders, 1,204 rows, 2 columns, 1 version")
    expect(card).to_be_visible()
    worn = page.get_by_role("button", name="photos, 18 rows")
    expect(worn).to_contain_text("55% of the rows are deleted")
    expect(worn.locator("rect.lnb-op-remove")).to_have_count(4)
    expect(page.get_by_role("button", name="broken, A file is damaged")).to_be_visible()
    hostile = page.get_by_role("button", name="<img src=x")
    expect(hostile).to_contain_text("<img src=x onerror=window.__x=1>")
    screenshot(page, "dark" if dark else "")
    page.evaluate(axe_source())
    assert serious(page) == []


def test_a_table_opens_in_place_and_there_is_a_way_back(
    folder: Path, open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    widget = DatabaseExplorer(lance_nb.database(folder))
    bare = open_widget(widget)
    page = bare.page
    find = page.get_by_role("searchbox", name="find a table")
    find.fill("ord")
    expect(page.get_by_role("status").filter(has_text="1 of 13 tables")).to_be_visible()
    find.press("ArrowDown")
    expect(page.locator(".lnb-code-line")).to_contain_text("orders.lance")
    page.keyboard.press("Enter")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")
    expect(page.locator(".lnb-back")).to_contain_text("shop_db")
    expect(page.locator(".lnb-facts")).to_contain_text("rows 1,204")
    expect(page.get_by_role("button", name="All tables")).to_be_focused()
    assert widget.dataset.count_rows() == 1204
    screenshot(page, "open")
    page.get_by_role("tab", name="Storage").click()
    widget.dataset.delete("id < 4")  # by somebody else
    page.get_by_role("button", name="All tables").click()
    expect(find).to_have_value("ord")
    expect(page.get_by_role("button", name="orders, 1,200 rows")).to_be_focused()
    # A table that has gone since: the error is shown, the cards stay.
    find.fill("daily_3")
    expect(page.get_by_role("button", name="daily_3, 13 rows")).to_be_visible()
    shutil.rmtree(folder / "daily_3.lance")
    find.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="No dataset found")).to_be_visible()
    page.get_by_role("button", name="Refresh").click()
    find.fill("")
    expect(page.get_by_role("status").filter(has_text="12 tables")).to_be_visible()
    assert widget.table_names()[:2] == ["<img src=x onerror=window.__x=1>", "broken"]


def test_hundreds_of_tables_are_read_as_they_come_into_sight(
    tmp_path: Path, page: Page, open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    _write(tmp_path / "db", "t000", 5)
    for at in range(1, MANY):
        shutil.copytree(tmp_path / "db" / "t000.lance", tmp_path / "db" / f"t{at:03}.lance")
    bare = open_widget(DatabaseExplorer(lance_nb.database(tmp_path / "db")))
    cards = page.locator(".lnb-tb-card")
    expect(cards.first).to_contain_text("5 rows")
    asked = [one for one in bare.requests if one["type"] == "tables.describe"]
    assert sum(len(one["args"]["tables"]) for one in asked) < 30
    assert cards.count() < 60
    page.get_by_role("button", name="t000, 5 rows").focus()
    page.keyboard.press("End")
    last = page.get_by_role("button", name=f"t{MANY - 1}, 5 rows")
    expect(last).to_be_focused()
    item = page.get_by_role("listitem").filter(has=last)
    expect(item).to_have_attribute("aria-posinset", str(MANY))
    expect(item).to_have_attribute("aria-setsize", str(MANY))
    described = {
        at
        for one in bare.requests
        if one["type"] == "tables.describe"
        for at in one["args"]["tables"]
    }
    assert len(described) < 80, "what was not in sight was read"
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name="t000, 5 rows")).to_be_focused()
    # Sorted by what is written in the manifests, all of them are read.
    lance_nb.dataset(tmp_path / "db" / "t150.lance").delete("id < 1")
    page.get_by_label("sort the tables").select_option("changed")
    eventually(page, lambda: "reading" not in (page.locator(".lnb-tb-status").text_content() or ""))
    expect(cards.first).to_contain_text("t150")
    # What was on screen is what the picture has.
    svg = bare.widget.to_svg
    eventually(page, lambda: 0 < svg().find(">t150<") < svg().find(">t000<"))


def test_no_name_and_no_error_of_a_table_is_markup(
    tmp_path: Path, page: Page, open_widget: OpenWidget
) -> None:
    names = [one for one in PAYLOADS if "/" not in one and "\0" not in one and len(one) < 80]
    assert names
    for name in names:
        _write(tmp_path / "db", name, 3)
    bare = open_widget(DatabaseExplorer(lance_nb.database(tmp_path / "db")))
    expect(page.locator(".lnb-tb-card")).to_have_count(len(names))
    expect(page.locator(".lnb-tb-card", has_text="3 rows")).to_have_count(len(names))
    assert page.locator(".lnb-tb img, .lnb-tb script, .lnb-tb iframe").count() == 0
    page.locator(".lnb-tb-card").first.click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")
    bare.widget.close_table()
