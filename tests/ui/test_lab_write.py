"""Writing from a notebook: staged, previewed, committed to a dataset that pylance wrote."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui

SETUP = """
import lance, pyarrow as pa, lance_nb
rows = pa.table({"id": range(1000), "price": [n % 50 - 3.0 for n in range(1000)],
                 "title": [f"title {n}" for n in range(1000)]})
lance.write_dataset(rows, "shop.lance", max_rows_per_file=400)
ds = lance_nb.dataset("shop.lance")
"""
STAGE = """
stage = ds.stage().append(rows.slice(0, 10)).delete("price < 0")
stage.preview()
"""
COMMIT = """
stage.commit("drop bad prices")
ds = ds.checkout_latest()
ds.update({"title": "upper(title)"}, where="id < 5")
ds.add_columns({"cents": "price * 100"})
lance.dataset("shop.lance").validate()
ds
"""
MISTAKE = """
try:
    ds.insert(pa.table({"id": ["one"]}))
except lance_nb.LanceError as problem:
    print(problem)
"""


def test_staged_edits_are_previewed_committed_and_seen(
    lab: LabServer, screenshot: Screenshot
) -> None:
    lab.write("write.ipynb", SETUP, STAGE, COMMIT, MISTAKE)
    notebook = lab.notebook("write.ipynb")
    notebook.run_all()
    outputs = notebook.page.locator(".jp-OutputArea-output")
    expect(outputs.first).to_contain_text("What a commit would change: Update")
    expect(outputs.first).to_contain_text("1,000 → 950")
    explorer = notebook.explorer(0)
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:4")
    expect(explorer.locator(".lnb-tl-bar")).to_have_count(4)
    expect(explorer.locator(".lnb-grid")).to_contain_text("cents")
    expect(outputs.last).to_contain_text("column 'id' must have type int64")
    screenshot(notebook.page)
    explorer.get_by_role("option", name="main version 2,").click()
    expect(explorer.locator(".lnb-detail")).to_contain_text("drop bad prices")
    screenshot(notebook.page, "staged")
    explorer.get_by_role("button", name="read-only").click()
    explorer.get_by_role("tab", name="Stage").click()
    panel = explorer.locator(".lnb-panel-stage")
    panel.get_by_label("rows", exact=True).fill("rows")
    expect(panel.locator(".lnb-sg-said")).not_to_have_class("lnb-sg-said lnb-sg-wrong")
    panel.get_by_label("rows", exact=True).press("Escape")
    panel.get_by_role("button", name="Stage", exact=True).click()
    card = panel.locator(".lnb-sg-card")
    expect(card.locator(".lnb-sg-facts")).to_contain_text("950 → 1,950")
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("main:5")
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:5")
    screenshot(notebook.page, "card")
    notebook.close()
