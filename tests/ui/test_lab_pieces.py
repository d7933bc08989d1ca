"""Every view by itself and every value of the engine at the end of a cell, in a real JupyterLab."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.support.requirements import require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.flow_dataset import write_flows
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import NotebookPage

pytestmark = pytest.mark.ui
SETUP = 'import lance_nb\nfrom lance_nb import widgets\nds = lance_nb.dataset("pieces.lance")'
PIECES = {
    "Timeline(ds)": "main:8",
    "RowGrid(ds)": "rows 0",
    "DiffView(ds.checkout_version(2), ds)": "by stable row id",
    "FragmentMap(ds)": "fragments",
    "DeletionMap(ds)": "62 of 200 rows deleted",
    "SchemaTree(ds)": "double",
    "RefsManager(ds)": "2 branches",
    "StagePanel(ds)": "Allow changes",
    "OperationsLogView(ds)": "Nothing was done from here",
    "SpaceView(ds)": "Account for every byte",
}
VALUES = {
    "ds.version_info(4)": "Version 4",
    "ds.transaction(4)": "id >= 200 AND id < 260",
    "ds.diff(2, 8)": "by stable row id",
    "ds.get_fragments()[5]": "Fragment 5",
    "ds.get_fragments()[1]": "62 of 200 rows deleted",
    "ds.lance_schema": "7 columns",
    "ds.stage().delete('id < 5')": "delete",
    "ds.stage().delete('id < 5').preview()": "some rows before",
    "ds.stage().delete('id < 5').staged": "Staged write: Rows deleted (Delete)",
}


@pytest.fixture(scope="module")
def notebook(lab: LabServer) -> Iterator[NotebookPage]:
    write_flows(require_pylance(), lab.work / "pieces.lance")
    lab.write("pieces.ipynb", SETUP, *(f"widgets.{cell}" for cell in PIECES), *VALUES)
    opened = lab.notebook("pieces.ipynb", height=900)
    opened.run_all()
    yield opened
    assert opened.outside == []
    opened.close()


def output(notebook: NotebookPage, at: int) -> Locator:
    """What stands under a cell."""
    return notebook.page.locator(".jp-CodeCell").nth(at)


def look(notebook: NotebookPage, cells: dict[str, str], first: int, shoot: Screenshot) -> None:
    for at, (code, holds) in enumerate(cells.items(), first):
        cell = output(notebook, at)
        view = cell.locator(".lnb-live")
        expect(view).to_contain_text(holds)
        expect(cell.locator(".lnb-static:visible")).to_have_count(0)
        view.scroll_into_view_if_needed()
        shoot(notebook.page, f"{at:02}_{code.split('(')[0].replace('.', '_')}")


def test_every_piece_is_alive_alone(notebook: NotebookPage, screenshot: Screenshot) -> None:
    look(notebook, PIECES, 1, screenshot)
    filtering = output(notebook, 2).locator(".lnb-filter")  # as in the explorer, whoever came later
    expect(filtering).to_have_css("font-family", re.compile("monospace"))
    output(notebook, 1).get_by_role("option", name="main version 2,").click()
    expect(output(notebook, 1).locator(".lnb-tl-readout")).to_contain_text("main:2")


def test_every_value_is_alive_in_its_cell(notebook: NotebookPage, screenshot: Screenshot) -> None:
    first = 1 + len(PIECES)
    look(notebook, VALUES, first, screenshot)
    transaction = output(notebook, first + 1)
    transaction.get_by_role("searchbox").fill("predicate")
    expect(transaction.get_by_role("treeitem")).to_have_count(1)
    screenshot(notebook.page, "searched")
