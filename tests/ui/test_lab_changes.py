"""Changes and the life of a row in a real JupyterLab, over a dataset that pylance wrote."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui

SETUP = """
import shutil, lance, pyarrow as pa, lance_nb
shutil.rmtree("changes.lance", ignore_errors=True)
rows = pa.table({"id": range(3000), "name": [f"n{n % 7}" for n in range(3000)]})
lance.write_dataset(rows, "changes.lance", enable_stable_row_ids=True, max_rows_per_file=1000)
ds = lance.dataset("changes.lance")
ds.update({"name": "'new'"}, where="id % 100 = 0")
ds.delete("id < 50")
ds.optimize.compact_files()
lance_nb.explore("changes.lance")
"""


def test_rows_that_differ_and_their_lives(lab: LabServer, screenshot: Screenshot) -> None:
    lab.write("changes.ipynb", SETUP)
    notebook = lab.notebook("changes.ipynb")
    notebook.run_all()
    page, explorer = notebook.page, notebook.explorer(0)
    explorer.get_by_role("tab", name="Changes", exact=True).click()
    box = explorer.get_by_role("combobox", name="compare with a version")
    box.fill("1")
    box.press("Enter")
    chips = explorer.get_by_role("tablist", name="levels of the difference")
    chips.get_by_role("tab", name="Rows").click()
    expect(chips.get_by_role("tab", name="Rows")).to_contain_text("−50 ~29")  # a thread answered
    rows = explorer.get_by_role("grid", name="rows that differ").locator(".lnb-grid-row")
    expect(rows.first.locator("ins")).to_have_text("new")
    rows.first.click()
    detail = explorer.get_by_role("region", name="details")
    detail.get_by_role("button", name="Row history").click()
    steps = detail.locator(".lnb-bio-step")
    expect(steps.last).to_contain_text("created")
    expect(detail.locator(".lnb-bio-status")).to_contain_text("the complete history")
    expect(steps.filter(has_text="updated")).to_contain_text("n2 → new")
    screenshot(page, "life")
    chips.get_by_role("tab", name="Drift").click()
    expect(explorer.locator(".lnb-dr-card")).to_have_count(2)
    screenshot(page, "drift")
    notebook.close()
