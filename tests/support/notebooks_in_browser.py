"""The notebooks in a real JupyterLab, as a person runs them.

Each is opened, *Run All Cells* is chosen, and when the last cell is done no output may be an error,
every view must be alive, the console silent, and nothing may have been asked from another machine.
Pictures of every view are kept in ``tests/artifacts/notebooks``.

``python -m tests.support.notebooks_in_browser [--without-java] [NUMBER ...]``
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

from tests.house.source import ROOT
from tests.support.notebooks import NOTEBOOKS
from tests.support.requirements import require_chromium
from tests.ui.conftest import FLAGS
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import NotebookPage

PICTURES = ROOT / "tests" / "artifacts" / "notebooks"
SECONDS = 300
SETTLE_MS = 700  # a picture is for a person: histograms and rows come after the first paint
# What the cells say to a program: their number, whether one is not done, the errors they show.
_CELLS = """() => {
  const cells = window.jupyterapp.shell.currentWidget.content.widgets
    .filter((cell) => cell.model.type === "code").map((cell) => cell.model);
  const errors = [];
  for (const cell of cells) {
    for (let at = 0; at < cell.outputs.length; at += 1) {
      const one = cell.outputs.get(at);
      if (one.type === "error") errors.push(JSON.stringify(one.toJSON()).slice(0, 300));
    }
  }
  return [cells.length, cells.filter((cell) => cell.executionCount === null).length, errors];
}"""


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one notebook."""

    name: str
    seconds: float
    cells: int
    views: int
    problems: tuple[str, ...]


@contextmanager
def lab(folder: Path, *, without_java: bool) -> Iterator[LabServer]:
    """Serve all notebooks, without their outputs, from ``folder``."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=require_chromium(), args=FLAGS)
        server = LabServer(browser, ROOT, folder)
        if without_java:  # of the server; the browser has been started by a script that needs PATH
            os.environ.pop("JAVA_HOME", None)
            os.environ["PATH"] = str(Path(sys.executable).parent)
        try:
            server.start()
            for path in NOTEBOOKS:
                notebook = nbformat.read(path, as_version=4)
                for cell in notebook.cells:
                    if cell.cell_type == "code":
                        cell.outputs, cell.execution_count = [], None
                nbformat.write(notebook, server.work / path.name)
            yield server
        finally:
            server.stop()
            browser.close()


def run(server: LabServer, name: str) -> Run:
    """Run all cells of a notebook, look at each view, and keep a picture of it."""
    began = time.monotonic()
    notebook = server.notebook(name)
    notebook.page.set_default_timeout(SECONDS * 1000)
    notebook.run_all()  # until the last cell is done
    seconds = time.monotonic() - began
    cells, undone, errors = notebook.page.evaluate(_CELLS)
    problems = [*errors, *notebook.problems, *(f"asked for {one}" for one in notebook.outside)]
    if undone:
        problems.append(f"{undone} cells were not run")
    views, dead = _look(notebook, Path(name).stem)
    notebook.close()
    return Run(name, seconds, cells, views, (*problems, *dead))


def _look(notebook: NotebookPage, stem: str) -> tuple[int, list[str]]:
    """Bring every view into sight; those that are dead or empty are told."""
    page = notebook.page
    dead = ["a view is dead"] * page.get_by_text("Error displaying widget").count()
    views = page.locator(".lnb-live")
    for at in range(views.count()):
        view = views.nth(at)
        view.scroll_into_view_if_needed()
        page.wait_for_timeout(SETTLE_MS)
        box = view.bounding_box()
        if box is None or box["height"] < 50 or not view.inner_text().strip():
            dead.append(f"view {at + 1} is empty")
        page.screenshot(path=PICTURES / f"{stem}_{at + 1}.png")
    if not views.count():
        page.screenshot(path=PICTURES / f"{stem}.png")
    pictures = page.locator(".lnb-static:visible, .jp-RenderedSVG:visible").count()
    dead += [f"{pictures} still pictures stand beside live views"] if pictures else []
    return views.count(), dead


def main(words: Sequence[str]) -> int:
    """Run the notebooks, print a line for each, and return how many had problems."""
    numbers = tuple(one for one in words if one != "--without-java")
    without_java = "--without-java" in words
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    failed = 0
    with (
        tempfile.TemporaryDirectory(prefix="notebooks-") as folder,
        lab(Path(folder), without_java=without_java) as server,
    ):
        for path in NOTEBOOKS:
            if numbers and not path.name.startswith(numbers):
                continue
            made = run(server, path.name)
            failed += bool(made.problems)
            said = "; ".join(made.problems) or "ok"
            counts = f"{made.cells:>2} cells  {made.views} views"
            print(f"{made.name:<34} {made.seconds:5.1f} s  {counts}  {said}", flush=True)
    print(f"pictures: {PICTURES.relative_to(ROOT)}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
