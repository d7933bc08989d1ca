"""The tabs in a real JupyterLab, over a dataset that pylance wrote and goes on writing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from tests.support.requirements import require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui

SETUP = """
import shutil, lance, pyarrow as pa, lance_nb
shutil.rmtree("views.lance", ignore_errors=True)
for at in range(4):
    names = [f"n{n % 7}" for n in range(500)]
    rows = pa.table({"id": range(at * 500, at * 500 + 500), "name": names})
    lance.write_dataset(rows, "views.lance", mode="append" if at else "create")
ds = lance.dataset("views.lance")
ds.delete("id >= 500 AND id < 700")
ds.tags.create("v1", 2)
explorer = lance_nb.explore("views.lance")
explorer
"""


def test_storage_filter_and_news_work_with_a_kernel(lab: LabServer, screenshot: Screenshot) -> None:
    lance = require_pylance()
    lab.write("views.ipynb", SETUP)
    notebook = lab.notebook("views.ipynb")
    notebook.run_all()
    page, explorer = notebook.page, notebook.explorer(0)
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:5")

    explorer.get_by_role("tab", name="Storage").click()
    expect(explorer.locator(".lnb-st-summary")).to_contain_text("4 fragments · 2,000 stored rows")
    explorer.locator(".lnb-st-card").first.get_by_role("button", name="see fragment 1").click()
    detail = explorer.get_by_role("region", name="details")
    expect(detail.get_by_role("img", name="40.0 % of 500 rows deleted")).to_be_visible()
    explorer.get_by_role("button", name="account for every byte").click()
    expect(explorer.locator(".lnb-su-legend")).to_contain_text("current")  # a thread answered
    screenshot(page, "storage")

    explorer.get_by_role("tab", name="Rows").click()
    explorer.get_by_role("combobox", name="filter of rows").fill("name = 'n3' AND id > 1990")
    page.keyboard.press("Enter")
    expect(explorer.locator(".lnb-filter-said")).to_have_text("1 pass")
    explorer.locator(".lnb-panel-rows .lnb-grid-number:visible").first.click()
    expect(explorer.locator(".lnb-grid-status")).to_contain_text("1 selected")

    lance.write_dataset(pa.table({"id": [1], "name": ["new"]}), lab.work / "views.lance",
                        mode="append")  # fmt: skip
    news = explorer.get_by_role("button", name="1 new version → 6")
    expect(news).to_be_visible()
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:5")
    expect(explorer.locator(".lnb-grid-status")).to_contain_text("1 selected")
    screenshot(page, "news")
    news.click()
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:6")
    notebook.close()


def test_a_restarted_kernel_is_noticed_without_a_click(lab: LabServer) -> None:
    lab.write("restarted.ipynb", SETUP)
    notebook = lab.notebook("restarted.ipynb")
    notebook.run_all()
    explorer = notebook.explorer(0)
    expect(explorer).to_have_attribute("data-kernel", "live")
    notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    expect(explorer.locator(".lnb-badge").first).to_contain_text("The kernel was restarted")
    expect(explorer).to_have_attribute("data-kernel", "static")
    notebook.close()
