"""Writing from a notebook: staged, previewed, committed to a dataset that pylance wrote."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui

SETUP = """
import shutil, lance, pyarrow as pa, lance_nb
rows = pa.table({"id": range(1000), "price": [n % 50 - 3.0 for n in range(1000)],
                 "title": [f"title {n}" for n in range(1000)]})
shutil.rmtree("shop.lance", ignore_errors=True)
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
    expect(outputs.first).to_contain_text("What a commit would change: Rows changed (Update)")
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
    explorer.get_by_role("button", name="allow changes").click()
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


SPARK = """
import pathlib, shutil, time, types, lance, pyarrow as pa, lance_nb
from lance_nb.spark import run, sessions
from lance_nb.spark.engine import LocalEngine
shutil.rmtree("elsewhere.lance", ignore_errors=True)
lance.write_dataset(pa.table({"id": range(900), "word": ["a"] * 900}), "elsewhere.lance",
                    max_rows_per_file=300)
class Gated(LocalEngine):  # Spark, but its tasks run here; what they return waits for the test
    name = "spark"
    def __init__(self, spark): pass
    def run(self, tasks, report, stop):
        def told(now):
            report(now)
            while not pathlib.Path("go").exists() and not stop():
                time.sleep(0.05)
        return super().run(tasks, told, stop)
run.SparkEngine = Gated
session = types.SimpleNamespace(sparkContext=types.SimpleNamespace(master="local[2]"), version="4")
sessions.find_session = run.find_session = lambda *_: session
lance_nb.explore("elsewhere.lance")
"""


def test_a_card_runs_on_spark_is_cancelled_fails_and_lands(
    lab: LabServer, screenshot: Screenshot
) -> None:
    (lab.work / "go").unlink(missing_ok=True)
    lab.write("elsewhere.ipynb", SPARK)
    notebook = lab.notebook("elsewhere.ipynb")
    notebook.run_all()
    explorer = notebook.explorer(0)
    explorer.get_by_role("button", name="allow changes").click()
    explorer.get_by_role("tab", name="Stage").click()
    panel = explorer.locator(".lnb-panel-stage")
    change, engine = panel.get_by_label("change", exact=True), panel.get_by_label("where it runs")
    stage = panel.get_by_role("button", name="Stage", exact=True)
    change.select_option("upsert")
    expect(engine).to_be_visible()
    change.select_option("rename_column")
    expect(engine).to_be_hidden()
    change.select_option("compact")
    engine.select_option("spark")
    expect(panel.locator(".lnb-sg-said")).to_contain_text("on Spark: requested")
    stage.click()
    card = panel.locator(".lnb-sg-card").first
    expect(card.locator(".lnb-sg-state")).to_have_text("planned")
    expect(card.locator(".lnb-sg-where")).to_contain_text("will run on Spark")
    card.get_by_role("button", name="Commit").click()
    told = panel.locator(".lnb-sg-progress")
    for words in ("commit: running · on Spark", "1 of 1 task · 900 rows"):
        expect(told).to_contain_text(words, timeout=180_000)
    screenshot(notebook.page, "running")
    panel.get_by_role("button", name="cancel").click()
    expect(panel.locator(".lnb-sg-problem .lnb-error-title")).to_have_text("Cancelled")
    expect(card.locator(".lnb-sg-state")).to_have_text("planned")

    (lab.work / "go").touch()
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("main:2", timeout=180_000)
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(explorer.locator(".lnb-facts [title*='fragment: 1']")).to_be_visible()
    change.select_option("cast_column")
    panel.get_by_label("column", exact=True).fill("id")
    panel.get_by_label("column", exact=True).press("Escape")
    panel.get_by_label("to", exact=True).fill("int8")
    panel.get_by_label("to", exact=True).press("Escape")
    engine.select_option("spark")
    stage.click()
    second = panel.locator(".lnb-sg-card").nth(1)
    second.get_by_role("button", name="Prepare").click()
    problem = panel.locator(".lnb-sg-problem .lnb-error-message")
    expect(problem).to_contain_text("not in range", timeout=180_000)
    expect(second.locator(".lnb-sg-state")).to_have_text("planned")
    screenshot(notebook.page)
    notebook.close()
