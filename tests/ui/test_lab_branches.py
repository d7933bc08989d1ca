"""Branches and tags in a real JupyterLab, while pylance goes on writing beside it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.requirements import require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui

SETUP = """
import shutil, lance, pyarrow as pa, lance_nb
shutil.rmtree("merge.lance", ignore_errors=True)
rows = lambda first: pa.table({"id": range(first, first + 50), "v": [0] * 50})
ds = lance.write_dataset(rows(0), "merge.lance", enable_stable_row_ids=True)
dev = ds.create_branch("dev")
dev.update({"v": "7"}, where="id < 10")
dev.insert(rows(100))
ds.update({"v": "9"}, where="id = 5")
explorer = lance_nb.explore("merge.lance")
explorer
"""


def test_a_branch_is_merged_and_deleted_with_a_kernel(
    lab: LabServer, screenshot: Screenshot
) -> None:
    lance = require_pylance()
    lab.write("branches.ipynb", SETUP)
    notebook = lab.notebook("branches.ipynb")
    notebook.run_all()
    page, explorer = notebook.page, notebook.explorer(0)
    explorer.get_by_role("tab", name="Branches & tags").click()
    explorer.get_by_role("button", name="allow changes").click()
    panel = explorer.locator(".lnb-panel-refs")
    panel.get_by_role("row").filter(has_text="dev").click()
    details = explorer.get_by_role("region", name="details")
    details.get_by_role("button", name="merge…").click()
    merge = panel.get_by_role("region", name="merge")
    expect(merge).to_contain_text("Both sides changed 1 cell in 1 row")
    conflicts = merge.get_by_role("grid", name="cells in conflict")
    conflicts.get_by_role("button", name="9", exact=True).click()
    expect(conflicts).to_contain_text("main:2")
    expect(merge.get_by_role("button", name="merge into main")).to_be_enabled()
    screenshot(page, "preview")
    merge.get_by_role("button", name="merge into main").click()
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:3")
    expect(panel.get_by_role("status")).to_contain_text("main:3 was created")

    made = lance.dataset(lab.work / "merge.lance")
    made.validate()
    assert made.to_table(filter="v = 7").num_rows == 9
    assert made.to_table(filter="v = 9")["id"].to_pylist() == [5]
    made.tags.create("good", 3)  # by pylance, and seen by itself
    panel.get_by_role("button", name="1 tag").click()
    expect(panel.get_by_role("row").filter(has_text="good")).to_contain_text("main:3")
    panel.get_by_role("button", name="2 branches").click()
    expect(panel.get_by_role("row").filter(has_text="good")).to_have_count(0)  # no tags any more
    panel.get_by_role("row").filter(has_text="dev").click()
    details.get_by_role("button", name="delete…").click()
    # Rows that both sides changed were written anew: the target needs no file of the branch.
    expect(details).to_contain_text("all 3 versions")
    screenshot(page, "deleted")
    details.get_by_role("button", name="delete branch dev").click()
    expect(panel.get_by_role("row").filter(has_text="dev")).to_have_count(0)
    assert lance.dataset(lab.work / "merge.lance").to_table(filter="v = 7").num_rows == 9
    notebook.close()
