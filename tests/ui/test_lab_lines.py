"""A cell of a dataset that would like to run: its line is offered, copied and run in JupyterLab."""

from __future__ import annotations

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from tests.support.requirements import require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.lab_explorer import open_explorer
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui
HOSTILE = '{open("ran","w").write("x")}'
EXPLORE = 'import lance_nb\nds = lance_nb.dataset("lines.lance")\nds'
BEHIND = "%load_ext lance_nb\n%lance open lines.lance --no-display"


@pytest.mark.parametrize("language", ["Python", "%lance"])
def test_the_line_of_a_hostile_value_finds_its_row_and_runs_nothing(
    lab: LabServer, screenshot: Screenshot, language: str
) -> None:
    data = pa.table({"note": ["quiet", HOSTILE, "$HOME"]})
    require_pylance().write_dataset(data, lab.work / "lines.lance", mode="overwrite")
    lance = open_explorer(lab, f"lines-{language.strip('%')}.ipynb", EXPLORE, BEHIND, "")
    page = lance.page
    grid = lance.rows.locator(".lnb-grid")
    lance.press(grid, "Control+Home", "ArrowDown", "Enter")
    expect(lance.rows.locator(".lnb-peek pre")).to_have_text(HOSTILE)
    lance.rows.get_by_role("button", name="only this value").click()
    expect(lance.rows.locator(".lnb-grid-status")).to_contain_text("of 1")
    lance.root.get_by_role("button", name=language, exact=True).click()
    expect(lance.code).to_contain_text("note = ")
    screenshot(page, f"offered-{language.strip('%')}")
    lance.root.get_by_title("copy this line").click()
    cell = page.locator(".jp-CodeCell").nth(2)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+V")
    expect(cell.locator(".cm-content")).to_contain_text("note = ")
    if language == "Python":
        page.keyboard.press("End")
        page.keyboard.type(".to_pylist()")
    page.keyboard.press("Shift+Enter")
    output = cell.locator(".jp-OutputArea-output")
    expect(output.first).to_contain_text(HOSTILE)
    expect(output.first).not_to_contain_text("quiet")
    screenshot(page, f"ran-{language.strip('%')}")
    assert not (lab.work / "ran").exists()
    assert lance.notebook.outside == []
    lance.notebook.close()
