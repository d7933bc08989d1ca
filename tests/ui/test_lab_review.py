"""A branch is reviewed by two people, and its expectations are checked, in a real JupyterLab."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.support.requirements import require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui

SETUP = """
import os, shutil, lance, pyarrow as pa, lance_nb
os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
shutil.rmtree("reviewed.lance", ignore_errors=True)
rows = lambda first, score=0.5: pa.table(
    {"id": range(first, first + 50), "score": [score] * 50, "note": ["a quiet street"] * 50})
ds = lance.write_dataset(rows(0), "reviewed.lance", enable_stable_row_ids=True)
for n in range(1, 12):
    ds = lance.write_dataset(rows(50 * n, 1.5 if n == 8 else 0.5), "reviewed.lance", mode="append")
lance_nb.dataset("reviewed.lance").expectations.add("score <= 1", name="range")
dev = lance.dataset("reviewed.lance").create_branch("dev")
dev.update({"note": "'a busy street'"}, where="id < 3")
lance_nb.explore("reviewed.lance", height=420)
"""
SECOND = """
lance_nb.explore("reviewed.lance", height=300)
"""


def open_review(explorer: Locator) -> Locator:
    explorer.get_by_role("tab", name="Branches & tags").click()
    panel = explorer.locator(".lnb-panel-refs")
    panel.get_by_role("row").filter(has_text="dev").click()
    explorer.get_by_role("region", name="details").get_by_role("button", name="Review…").click()
    return panel.get_by_role("region", name="review of dev")


def test_two_people_review_a_branch(lab: LabServer, screenshot: Screenshot) -> None:
    lance = require_pylance()
    lab.write("review.ipynb", SETUP, SECOND)
    notebook = lab.notebook("review.ipynb", height=1500)
    notebook.run_all()
    page, ada, bob = notebook.page, notebook.explorer(0), notebook.explorer(1)
    expect(ada.locator(".lnb-tl-failed")).to_have_text("✗ 5 versions failed")
    screenshot(page, "marks")
    ada.get_by_role("option", name="main version 9,").click()
    first = ada.get_by_role("region", name="first version at which range fails")
    expect(first).to_contain_text("range fails first at main:9")
    expect(first.locator("tbody tr")).to_have_count(20)
    expect(first).to_contain_text("the first 20 of 50 rows that fail")
    screenshot(page, "bisect")

    reviews = [open_review(one) for one in (ada, bob)]
    for one in reviews:
        expect(one.locator(".lnb-rv-part-cells ins").first).to_have_text("busy")
        expect(one.locator(".lnb-rv-part-checks")).to_contain_text("for 50 rows")
    ada.get_by_role("button", name="allow changes").click()
    reviews[0].get_by_label("comment", exact=True).fill("Which street?")
    reviews[0].get_by_role("button", name="Comment").click()
    expect(reviews[1].get_by_role("list", name="discussion")).to_contain_text("Which street?")
    reviews[0].get_by_role("button", name="Approve").click()
    expect(reviews[1].locator(".lnb-rv-state")).to_have_text("approved")
    reviews[1].get_by_role("list", name="discussion").scroll_into_view_if_needed()
    screenshot(page, "discussion")
    notebook.theme(dark=True)
    screenshot(page, "dark")

    assert len(lance.dataset(lab.work / "reviewed.lance").versions()) == 13  # pylance reads on
    assert notebook.problems == []
    assert notebook.outside == []
    notebook.close()
