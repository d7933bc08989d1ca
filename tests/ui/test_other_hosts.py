"""The same explorer in Notebook 7, Voila and marimo: real servers, the main flows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.requirements import require_package
from tests.support.servers import marimo_server
from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import NotebookPage
from tests.ui.tabs import open_tab

pytestmark = pytest.mark.ui
FURNITURE = ("fortawesome", "mathjax")
# What hosts say of themselves, also without a widget: Notebook 7 of its settings, Voila of a module
# of JupyterLab that it does not serve, and of what its template asks a CDN for.
OF_HOSTS = (
    "reading 'schema'", "@jupyterlab/docregistry", "net::ERR_NAME_NOT_RESOLVED",
    "Command 'filebrowser:open-path' not registered",  # Notebook 7, when it starts slowly
)  # fmt: skip
EXPLORE = """
import lance_nb, shutil, tempfile
uri = shutil.copytree("data/demo.lance", tempfile.mkdtemp(dir=".") + "/host.lance")
lance_nb.explore(uri)
"""


MARIMO = """
import marimo

app = marimo.App()


@app.cell
def _():
    import lance_nb

    ds = lance_nb.dataset("host.lance")
    lance_nb.explore(ds)
    return ds, lance_nb


@app.cell
def _(ds):
    ds
    return


@app.cell
def _(ds):
    from lance_nb import widgets

    widgets.Timeline(ds)
    return
"""


def look_around(notebook: NotebookPage) -> None:
    """Filter rows, travel, look at storage and at changes, commit a change."""
    explorer = notebook.explorer(0)
    rows = explorer.locator(".lnb-panel-rows")
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:26")
    explorer.get_by_role("combobox", name="filter of rows").fill("id < 5")
    notebook.page.keyboard.press("Enter")
    expect(explorer.locator(".lnb-filter-said")).to_contain_text("pass")
    explorer.get_by_role("option", name="main version 12,").click()
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:12")
    rows.get_by_role("button", name="Explain").click()
    expect(rows.locator(".lnb-filter-reads")).to_contain_text("reads id")
    open_tab(explorer, "Storage")
    expect(explorer.locator(".lnb-st-summary")).to_contain_text("fragment")
    open_tab(explorer, "Changes")
    expect(explorer.locator(".lnb-ch-badge")).to_contain_text("by")
    explorer.get_by_role("button", name="allow changes").click()
    open_tab(explorer, "Stage")
    panel = explorer.locator(".lnb-panel-stage")
    panel.get_by_label("change", exact=True).select_option("delete")
    panel.get_by_label("where", exact=True).fill("id < 3")
    panel.get_by_label("where", exact=True).press("Escape")
    panel.get_by_role("button", name="Stage", exact=True).click()
    card = panel.locator(".lnb-sg-card")
    expect(card.locator(".lnb-sg-facts")).to_contain_text("deleted")
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("main:27")
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:27")
    assert [one for one in notebook.problems if not any(own in one for own in OF_HOSTS)] == []
    # Voila's own template asks a CDN for icons and MathJax; it gets neither, nothing else asks.
    assert [url for url in notebook.outside if not any(one in url for one in FURNITURE)] == []


def test_it_works_in_notebook_7(lab: LabServer, screenshot: Screenshot) -> None:
    lab.write("seven.ipynb", EXPLORE)
    notebook = lab.notebook("seven.ipynb", app="notebooks")
    notebook.run_all()
    look_around(notebook)
    screenshot(notebook.page)
    notebook.close()


def test_it_works_in_voila(lab: LabServer, screenshot: Screenshot) -> None:
    require_package("voila")
    lab.write("voila.ipynb", EXPLORE)
    notebook = lab.voila("voila.ipynb")
    look_around(notebook)
    screenshot(notebook.page)
    notebook.close()


def test_it_works_in_marimo_which_loads_only_what_it_displays(
    lab: LabServer, screenshot: Screenshot, tmp_path: Path
) -> None:
    """``explore(ds)``, a bare ``ds`` and a single view are live."""
    require_package("marimo")
    shutil.copytree(lab.demo, tmp_path / "host.lance")
    (tmp_path / "cells.py").write_text(MARIMO)
    with marimo_server(tmp_path / "cells.py") as address:
        notebook = NotebookPage(lab.browser, address, "").go("", 1400, 1000)
        look_around(notebook)
        expect(notebook.explorer(1).locator(".lnb-here-ref")).to_have_text("main:26")
        timeline = notebook.page.locator(".lnb-live[aria-label='versions of the dataset']")
        expect(timeline.get_by_role("option", name="main version 12,")).to_be_visible()
        screenshot(notebook.page)
        notebook.close()
