"""What the explorer costs where datasets are large: memory of kernel and page, longest freeze.

Run ``python -m tests.benchmarks.ui.scale``; ``--only versions rows`` chooses cases,
``--small`` makes all of them a hundredth in size. Every case is a real dataset on the local disk:

========= ==========================================================================
versions  10,000 versions of one small table
rows      100,000 fragments, 100 million rows (the fragments share one data file)
columns   2,000 columns
cell      one cell of 5 MB among small ones
branches  300 branches and 300 tags
========= ==========================================================================

The widget runs in a bare page in a real Chromium, its Python side in this process. In each case the
explorer is opened, every tab is looked at, rows are scrolled and a version or a filter is chosen.
``kernel`` is what the resident memory of this process grew by since the dataset was open; ``page``
the JavaScript heap after a collection, ``nodes`` the elements; ``freeze`` the longest time between
two frames, the answers of Python (which this page waits for in its own thread) not counted.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from playwright.sync_api import Page, sync_playwright

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.support.requirements import require_chromium
from tests.ui.bare_page import BarePage

TABS = ("Changes", "Storage", "Branches & tags", "Stage", "Rows")
FRAMES = """
() => { window.gap = 0; let last = performance.now();
  const look = (now) => { window.gap = Math.max(window.gap, now - last); last = now;
    requestAnimationFrame(look); };
  requestAnimationFrame(look); }
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """One line of the table."""

    name: str
    open_s: float
    kernel_mb: float
    page_mb: float
    nodes: int
    freeze_ms: float
    slowest_ms: float
    slowest: str

    def __str__(self) -> str:
        return (
            f"{self.name:<10} {self.open_s:>8.2f} {self.kernel_mb:>10.0f} {self.page_mb:>8.1f} "
            f"{self.nodes:>7} {self.freeze_ms:>10.0f} {self.slowest_ms:>12.0f} {self.slowest}"
        )


def versions(path: Path, share: float) -> None:
    """Many versions, by the smallest commit there is."""
    dataset = lance_nb.write_dataset(pa.table({"id": range(100)}), path)
    for at in range(int(10_000 * share)):
        dataset.update_config({"n": str(at)})


def rows(path: Path, share: float) -> None:
    """Many fragments over one data file."""
    dataset = lance_nb.write_dataset(pa.table({"id": range(1000), "x": [0.5] * 1000}), path)
    one = dataset.get_fragments()[0].metadata
    copies = [one] * (int(100_000 * share) - 1)
    operation = lance_nb.LanceOperation.Append(copies)
    lance_nb.LanceDataset.commit(str(path), operation, read_version=dataset.version)


def columns(path: Path, share: float) -> None:
    """Many columns."""
    names = [f"column {at}" for at in range(int(2000 * share))]
    lance_nb.write_dataset(pa.table({name: range(1000) for name in names}), path)


def cell(path: Path, share: float) -> None:
    """One value larger than all others together."""
    texts = ["short"] * 200
    texts[7] = "x" * int(5_000_000 * share)
    lance_nb.write_dataset(pa.table({"id": range(200), "text": texts}), path)


def branches(path: Path, share: float) -> None:
    """Many branches and tags."""
    dataset = lance_nb.write_dataset(pa.table({"id": range(100)}), path)
    for at in range(int(300 * share)):
        dataset.create_branch(f"branch-{at}")
        dataset.tags.create(f"tag-{at}", 1)


CASES: dict[str, Callable[[Path, float], None]] = {
    "versions": versions, "rows": rows, "columns": columns, "cell": cell, "branches": branches,
}  # fmt: skip


def resident_mb() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def look_around(page: Page) -> None:
    """Open every tab, scroll over the rows, go to the end, look at a cell, travel."""
    page.locator(".lnb-panel-rows .lnb-cell").first.wait_for()
    page.evaluate(FRAMES)
    for name in TABS:
        page.get_by_role("tab", name=name, exact=True).click()
        page.get_by_role("tabpanel", name=name).wait_for()
        page.wait_for_timeout(300)
    grid = page.locator(".lnb-panel-rows .lnb-grid")
    grid.focus()
    for key in ("PageDown", "PageDown", "Control+ArrowDown", "End", "Home", "Control+ArrowUp"):
        page.keyboard.press(key)
        page.wait_for_timeout(100)
    for _ in range(7):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".lnb-peek").wait_for()
    page.keyboard.press("Escape")
    for _ in range(20):
        page.mouse.move(400, 520)
        page.mouse.wheel(300, 900)
    page.wait_for_timeout(500)


def measure(browser: Any, name: str, path: Path) -> Figures:
    """Take the figures of one case."""
    dataset = lance_nb.dataset(str(path))
    gc.collect()
    before, started = resident_mb(), time.perf_counter()
    widget = Explorer(dataset)
    opened = time.perf_counter() - started
    page = browser.new_context(viewport={"width": 1280, "height": 760}).new_page()
    Explorer.jobs_beside = False
    bare = BarePage(page, widget)
    answered: list[tuple[float, str]] = []
    answer = bare._to_kernel  # timed, so that it is not taken for a freeze

    def timed(content: dict[str, Any]) -> list[dict[str, Any]]:
        begun = time.perf_counter()
        found = answer(content)
        answered.append(((time.perf_counter() - begun) * 1000, content["type"]))
        return found

    bare._to_kernel = timed  # type: ignore[method-assign]
    bare.open()
    look_around(page)
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {
        one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]
    }
    gap = float(page.evaluate("window.gap"))
    page.context.close()
    gc.collect()
    grown = resident_mb() - before
    return Figures(
        name, opened, grown, metrics["JSHeapUsedSize"] / 1e6, int(metrics["Nodes"]), gap,
        *max(answered),
    )  # fmt: skip


def main() -> int:
    """Write the datasets, measure, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=sorted(CASES), default=sorted(CASES))
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    print(f"{'case':<10} {'open s':>8} {'kernel MB':>10} {'page MB':>8} {'nodes':>7} "
          f"{'freeze ms':>10} {'slowest ask':>12}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        for name in options.only:
            path = Path(folder) / f"{name}.lance"
            CASES[name](path, 0.01 if options.small else 1.0)
            print(measure(browser, name, path), flush=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
