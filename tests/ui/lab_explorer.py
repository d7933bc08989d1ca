"""An explorer in a notebook, and what a person does with it."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import NotebookPage
from tests.ui.tabs import open_tab
from tests.ui.version_box import go_to
from tests.ui.waiting import eventually


class LabExplorer:
    """One live explorer in JupyterLab."""

    def __init__(self, notebook: NotebookPage) -> None:
        self.notebook = notebook
        self.page = notebook.page
        self.root = notebook.explorer(0)
        self.rows = self.root.locator(".lnb-panel-rows")
        self.detail = self.root.get_by_role("region", name="details")
        self.filter = self.root.get_by_role("combobox", name="filter of rows")
        self.readout = self.root.locator(".lnb-tl-readout")
        self.code = self.root.locator(".lnb-code-line")

    def at(self, label: str) -> None:
        """Wait until the explorer stands at a version."""
        expect(self.root.locator(".lnb-here-ref")).to_have_text(label)

    def go(self, ref: str) -> None:
        """Type a ref in the header."""
        go_to(self.root, ref)

    def tab(self, name: str) -> None:
        """Open a tab."""
        open_tab(self.root, name)

    def home(self, version: int) -> None:
        """Stand at the newest version of main, at all its rows."""
        self.go("main")
        self.at(f"main:{version}")
        self.tab("Rows")
        clear = self.root.get_by_role("button", name="clear the filter")
        if clear.is_visible():
            clear.click()
        expect(self.root.locator(".lnb-filter")).to_have_value("")
        eventually(self.page, self._shows_all)  # else the answer takes the grid back to its top

    def _shows_all(self) -> bool:
        """Whether the grid stands at all rows of the version, as the header counts them."""
        facts = self.root.locator(".lnb-facts").text_content() or ""
        status = self.rows.locator(".lnb-grid-status").text_content() or ""
        rows, shown = re.search(r"[\d,]+", facts), re.search(r"of ([\d,]+)", status)
        return rows is not None and shown is not None and rows.group() == shown.group(1)

    def bar(self, version: int) -> Locator:
        """A version of main on the timeline."""
        return self.root.get_by_role("option", name=f"main version {version},")

    def press(self, where: Locator, *keys: str) -> None:
        """Press keys in an element."""
        where.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def drag(self, handle: Locator, goal: Locator) -> None:
        """Take a handle of the timeline to a version, and hold it there."""
        start, end = handle.bounding_box(), goal.bounding_box()
        assert start is not None
        assert end is not None
        self.page.mouse.move(start["x"] + start["width"] / 2, start["y"] + 8)
        self.page.mouse.down()
        self.page.mouse.move(end["x"] + end["width"] / 2, start["y"] + 8, steps=8)


def open_explorer(lab: LabServer, name: str, *cells: str) -> LabExplorer:
    """Run a notebook whose first cell shows an explorer."""
    lab.write(name, *cells)
    notebook = lab.notebook(name, height=1050)
    notebook.run_all()
    explorer = LabExplorer(notebook)
    expect(explorer.root.locator(".lnb-cell").first).not_to_be_empty()
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return explorer
