"""JupyterLab: the tables that LanceDB and pylance wrote, and a folder explored from its menu."""

from __future__ import annotations

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from tests.support.requirements import require_package, require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui
ROWS = pa.table({"id": range(100), "label": [f"row {at}" for at in range(100)]})
WALL = '.lnb-live[aria-label="Lance database"]'
ODD = 'say "hi" \\n.lance'


def test_tables_of_lancedb_and_pylance_are_explored_in_place(
    lab: LabServer, screenshot: Screenshot
) -> None:
    folder = lab.anew("shop_db")
    db = require_package("lancedb").connect(folder)
    db.create_table("photos", ROWS)
    db.create_table("orders", ROWS).delete("id < 40")
    require_pylance().write_dataset(ROWS.slice(0, 7), folder / "events.lance")
    (folder / "broken.lance" / "_versions").mkdir(parents=True)
    (folder / "broken.lance" / "_versions" / "1.manifest").write_bytes(b"damaged")
    lab.write("tables.ipynb", 'import lance_nb\nlance_nb.explore("shop_db")')
    notebook = lab.notebook("tables.ipynb")
    notebook.run_all()
    page = notebook.page
    wall = page.locator(WALL)
    expect(wall.get_by_role("button", name="photos, 100 rows, 2 columns")).to_be_visible()
    expect(wall.get_by_role("button", name="events, 7 rows")).to_be_visible()
    expect(wall.get_by_role("button", name="orders, 60 rows")).to_contain_text("40% of the rows")
    expect(wall.get_by_role("button", name="broken, A file is damaged")).to_be_visible()
    notebook.wait_for_output("Tables of shop_db", "image/svg+xml", "100 rows")
    screenshot(page, "light")
    notebook.theme(dark=True)
    screenshot(page, "dark")
    notebook.theme(dark=False)
    card = wall.get_by_role("button", name="orders, 60 rows")
    card.focus()
    page.keyboard.press("Enter")
    table = notebook.explorer(0)
    expect(table.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(table.locator(".lnb-cell").first).not_to_be_empty()
    table.get_by_role("tab", name="Changes").click()  # a view that is loaded when it is opened
    expect(table.locator(".lnb-ch-badge")).to_contain_text("by")
    screenshot(page, "open")
    # What a saved notebook keeps is the table that was on screen.
    notebook.wait_for_output("orders.lance at main:2", "image/svg+xml", "orders.lance")
    table.get_by_role("button", name="All tables").click()
    expect(wall.get_by_role("button", name="orders, 60 rows")).to_be_focused()
    assert notebook.problems == []
    assert notebook.outside == []


def test_an_explorer_is_shown_beside_its_notebook(lab: LabServer, screenshot: Screenshot) -> None:
    folder = lab.anew("beside.lance")
    require_pylance().write_dataset(ROWS, folder)
    require_pylance().dataset(folder).delete("id < 10")
    lab.write("beside.ipynb", 'import lance_nb\nlance_nb.explore("beside.lance")')
    notebook = lab.notebook("beside.ipynb", width=1900)
    notebook.run_all()
    page = notebook.page
    cell = page.locator(".jp-Notebook .lnb-live")
    cell.get_by_role("button", name="Beside", exact=True).click()
    tab = page.locator(".jp-LinkedOutputView .lnb-live")
    expect(tab.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(tab.locator(".lnb-cell").first).not_to_be_empty()
    left, right = cell.bounding_box(), tab.bounding_box()
    assert left is not None
    assert right is not None
    assert right["x"] >= left["x"] + left["width"]
    tab.locator(".lnb-tl-bar").first.click()  # both show one version
    expect(cell.locator(".lnb-here-ref")).to_have_text("main:1")
    expect(tab.locator(".lnb-grid-status")).to_contain_text("of 100")
    screenshot(page)
    assert notebook.problems == []
    assert notebook.outside == []
    notebook.close()


def test_a_folder_is_explored_from_the_menu_of_the_file_browser(
    lab: LabServer, screenshot: Screenshot
) -> None:
    folder = lab.anew("menu")
    require_pylance().write_dataset(ROWS, folder / ODD)
    (folder / "plain").mkdir()
    lab.write("menu/start.ipynb", "1")
    notebook = lab.notebook("menu/start.ipynb")
    page = notebook.page
    notebook.command("filebrowser:go-to-path", path="menu")
    item = page.locator(".jp-DirListing-item", has_text=ODD)
    page.locator(".jp-DirListing-item", has_text="plain").click(button="right")
    entry = page.get_by_role("menuitem", name="Explore with lance_nb")
    expect(page.get_by_role("menuitem", name="Rename").first).to_be_visible()
    expect(entry).to_have_count(0)
    page.keyboard.press("Escape")
    item.click(button="right")
    expect(entry).to_be_visible()
    screenshot(page, "menu")
    entry.click()
    explorer = notebook.explorer(0)
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:1")
    expect(explorer.locator(".lnb-facts")).to_contain_text("rows 100")
    screenshot(page, "explored")
    assert (folder / "Untitled.ipynb").exists()
    assert notebook.problems == []
    notebook.close()


# What `lance-nb lab` has its server write into the settings of the page.
NAMED = """
const find = Document.prototype.getElementById;
Document.prototype.getElementById = function (id) {
  const element = find.call(this, id);
  if (id === "jupyter-config-data" && element && !element.dataset.named) {
    const run = { path: "named.ipynb", id: "1" };
    element.dataset.named = "yes";
    element.textContent = JSON.stringify({ ...JSON.parse(element.textContent), lanceNbRun: run });
  }
  return element;
};
"""


def test_the_notebook_that_the_command_opened_has_run_its_cell(
    lab: LabServer, screenshot: Screenshot
) -> None:
    lab.write("named.ipynb", f"import lance_nb\nlance_nb.explore({str(lab.demo)!r})")
    page = lab.notebook("named.ipynb", before=NAMED).page
    expect(page.locator(".lnb-live .lnb-cell").first).not_to_be_empty()
    screenshot(page)
