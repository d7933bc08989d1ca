"""Notebooks that are read again later: without a kernel, executed elsewhere, in a narrow window."""

from __future__ import annotations

import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.ui.bare_page import Screenshot
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui
EXPLORE = 'import lance_nb\nlance_nb.explore("data/demo.lance")'
DATASET = 'lance_nb.dataset("data/demo.lance", version="raw-import")'


def test_a_saved_notebook_keeps_what_was_on_screen(lab: LabServer, screenshot: Screenshot) -> None:
    """Reopened without its kernel it shows the tab, version and filter that were left open."""
    lab.write("saved.ipynb", EXPLORE, DATASET)
    notebook = lab.notebook("saved.ipynb")
    notebook.run_all()
    first, second = notebook.explorer(0), notebook.explorer(1)
    expect(second.locator(".lnb-here-ref")).to_have_text("main:2")
    for hidden in (".lnb-static:visible", ".jp-RenderedSVG:visible"):
        expect(notebook.page.locator(hidden)).to_have_count(0)
    first.get_by_role("option", name="main version 12,").click()
    first.get_by_role("tab", name="Storage").click()
    expect(first.locator(".lnb-st-summary")).to_contain_text("fragment")
    second.get_by_role("combobox", name="filter of rows").fill("id < 5")
    notebook.page.keyboard.press("Enter")
    expect(second.locator(".lnb-filter-said")).to_contain_text("pass")
    notebook.wait_for_output("Explorer of demo.lance at main:12", "image/svg+xml", "Fragments")
    notebook.wait_for_output("Explorer of demo.lance at main:2", "image/svg+xml", "filter: id")
    notebook.shut_down_kernel()
    notebook.close()

    again = lab.notebook("saved.ipynb")
    pictures = again.page.locator(".jp-RenderedSVG img:visible")
    expect(pictures).to_have_count(2)
    texts = again.page.locator(".lnb-static:visible")
    expect(texts).to_have_count(2)
    expect(texts.first).to_contain_text("Import the winter archive")
    expect(again.page.locator(".lnb-static details[open]")).to_have_count(0)
    broken = again.page.get_by_text("Error displaying widget").locator("visible=true")
    expect(broken).to_have_count(0)
    screenshot(again.page)
    again.theme(dark=True)
    screenshot(again.page, "dark")
    again.theme(dark=False)
    assert again.outside == []
    again.close()


def test_a_notebook_executed_without_a_browser_shows_its_first_screen(
    lab: LabServer, screenshot: Screenshot
) -> None:
    lab.write("headless.ipynb", EXPLORE)
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute"]
    environment = lab.environment()
    subprocess.run(
        [*command, "--output", "executed.ipynb", "headless.ipynb"],
        cwd=lab.work,
        env=environment,
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert (lab.work / "executed.ipynb").stat().st_size < 1_000_000
    subprocess.run(
        [sys.executable, "-m", "jupyter", "trust", "executed.ipynb"],
        cwd=lab.work,
        env=environment,
        check=True,
        capture_output=True,
        timeout=180,
    )
    notebook = lab.notebook("executed.ipynb")
    explorer = notebook.explorer()
    expect(explorer.locator(".lnb-here-ref")).to_have_text("main:26")
    expect(explorer.locator(".lnb-cell").first).not_to_be_empty()
    expect(explorer.locator(".lnb-badge")).to_contain_text("Static snapshot")
    screenshot(notebook.page)
    assert notebook.outside == []
    assert notebook.problems == []
    notebook.close()


def test_errors_of_every_kind_are_readable_cards(lab: LabServer, screenshot: Screenshot) -> None:
    lab.write(
        "errors.ipynb",
        "import lance_nb, pathlib, shutil\nlance_nb.explore('nowhere')",
        "lance_nb.explore('data/demo.lance', version=99)",
        "lance_nb.explore('data/demo.lance', version='no-such-tag')",
        "shutil.copytree('data/demo.lance', 'data/cut.lance', dirs_exist_ok=True)\n"
        "for path in pathlib.Path('data/cut.lance/_versions').glob('*.manifest'):\n"
        "    path.write_bytes(path.read_bytes()[:40])\n"
        "lance_nb.explore('data/cut.lance')",
        "shutil.copytree('data/demo.lance', 'data/gone.lance', dirs_exist_ok=True)\n"
        "shutil.rmtree('data/gone.lance/data')\n"
        "lance_nb.explore('data/gone.lance')",
    )
    notebook = lab.notebook("errors.ipynb", height=2400)
    notebook.run_all()
    titles = notebook.page.locator(".lnb-live .lnb-error-title")
    expect(titles).to_have_text(
        [
            "No dataset found",
            "This version does not exist",
            "No tag or branch with this name",
            "A file is damaged",
            "A file of the dataset is missing",
        ]
    )
    expect(notebook.page.get_by_text("Traceback")).to_have_count(0)
    screenshot(notebook.page)
    assert notebook.problems == []
    notebook.close()


def test_two_views_of_one_explorer_move_together(lab: LabServer) -> None:
    lab.write("twice.ipynb", 'import lance_nb\ne = lance_nb.explore("data/demo.lance")\ne', "e")
    notebook = lab.notebook("twice.ipynb", height=1800)
    notebook.run_all()
    first, second = notebook.explorer(0), notebook.explorer(1)
    expect(second.locator(".lnb-here-ref")).to_have_text("main:26")
    first.get_by_role("option", name="main version 3,").click()
    expect(second.locator(".lnb-here-ref")).to_have_text("main:3")
    expect(first.locator(".lnb-here-ref")).to_have_text("main:3")
    notebook.close()
