"""How long a person waits for what changed: in JupyterLab, in a real Chromium, on local data.

Run ``python -m tests.benchmarks.ui.changes_speed``; ``--fragments``, ``--rows`` change the size. As
explorer_speed, it takes every figure in the page, from the action to the frame that shows its
result. Half of the rows are updated, so half of them are touched: the budget of the first page is
a second per million of those. While a handle is dragged, a frame lasts from the move of the pointer
to the numbers of the version that it passed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from playwright.sync_api import sync_playwright

from tests.benchmarks.ui.explorer_speed import ROOT, TIMER, Figure, open_notebook, write_versions
from tests.support.requirements import require_chromium, require_pylance
from tests.ui.lab_server import LabServer, NotebookPage

# A goes to the version before or to the first one; done when numbers (or rows) are painted.
COMPARE = """
async ([timerText, ref, wanted]) => {
  const timer = eval(timerText);
  const live = [...document.querySelectorAll(".lnb-live")].at(-1);
  const end = () => live.querySelector(".lnb-ch-end-a span").textContent;
  const box = live.querySelector(".lnb-ch-line .lnb-goto input");
  const chips = live.querySelector(".lnb-chips");
  const act = () => { box.value = ref; box.form.requestSubmit(); };
  let painted = false;
  const observer = new MutationObserver(() => { painted = true; });
  observer.observe(chips, { subtree: true, childList: true, characterData: true });
  const rows = () => live.querySelector(".lnb-ch-level:not([hidden]) .lnb-look-changed");
  const took = await timer(act, () => end() === `main:${ref}` && painted && (!wanted || rows()));
  observer.disconnect();
  return took;
}
"""
WATCH = """
() => {
  const live = [...document.querySelectorAll(".lnb-live")].at(-1);
  let moved = 0;
  let seen = "";
  window.frames_ms = [];
  document.addEventListener("pointermove", () => {
    const now = live.querySelector(".lnb-tl-handle-a span").textContent;
    if (now !== seen) moved = performance.now();
    seen = now;
  });
  new MutationObserver(() => {
    if (moved) window.frames_ms.push(performance.now() - moved);
    moved = 0;
  }).observe(live.querySelector(".lnb-chips"), { subtree: true, childList: true });
}
"""


def write_changes(path: Path, rows: int, fragments: int) -> None:
    """Write rows in many fragments, then update half of them in place of others."""
    lance = require_pylance()
    numbers = np.arange(rows)
    table = pa.table(
        {"id": numbers, "x": numbers / 7, "name": pa.array(numbers % 1000).cast("string")}
    )
    per_file = max(1, rows // fragments)
    lance.write_dataset(table, path, enable_stable_row_ids=True, max_rows_per_file=per_file)
    lance.dataset(path).update({"x": "x + 1"}, where="id % 2 = 0")
    lance.dataset(path).update_config({"note": "one"})
    lance.dataset(path).update_config({"note": "two"})


def scrub(notebook: NotebookPage, repeats: int) -> list[float]:
    """Drag handle A over the versions in sight: milliseconds per version passed."""
    page = notebook.page
    page.evaluate(WATCH)
    handle = page.locator(".lnb-live .lnb-tl-handle-a").last
    box = handle.bounding_box()
    if box is None:
        return []
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 4, middle)
    page.mouse.down()
    for step in range(repeats):
        page.mouse.move(box["x"] + 4 - 28 * (step % 20), middle)
        page.wait_for_timeout(120)
    page.mouse.up()
    return [float(one) for one in page.evaluate("window.frames_ms")]


def measure(lab: LabServer, repeats: int, millions: float) -> list[Figure]:
    """Take all figures."""
    big = open_notebook(lab, "big.ipynb", "lance_nb.explore('big.lance')")
    big.run_all()
    live = big.page.locator(".lnb-live").last
    live.get_by_role("tab", name="Changes", exact=True).click()
    live.locator("[data-level=config]").click()
    refs = [str(1 + step % 2) for step in range(repeats)]  # Settings stay open: numbers alone
    counts = [float(big.page.evaluate(COMPARE, [TIMER, ref, False])) for ref in refs]
    big.close()
    rows = open_notebook(lab, "rows.ipynb", "lance_nb.explore('rows.lance')")
    rows.run_all()
    live = rows.page.locator(".lnb-live").last
    live.get_by_role("tab", name="Changes", exact=True).click()
    live.locator("[data-level=rows]").click()
    first = [float(rows.page.evaluate(COMPARE, [TIMER, "1", True]))]
    rows.close()
    many = open_notebook(lab, "scrub.ipynb", "lance_nb.explore('many.lance')")
    many.run_all()
    live = many.page.locator(".lnb-live").last
    live.get_by_role("tab", name="Changes", exact=True).click()
    live.locator(".lnb-chip").first.wait_for()
    frames = scrub(many, 2 * repeats)
    many.close()
    return [
        Figure("numbers of another pair of versions", counts, 50, 100),
        Figure("first page of the rows that differ", first, 50, int(1000 * max(millions, 0.3))),
        Figure("numbers while a handle is dragged", frames, 50, 50),
    ]


def main() -> int:
    """Write the datasets, measure, print the table; 1 when a budget is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fragments", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--versions", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        lab = LabServer(browser, ROOT, Path(folder))
        lab.work.mkdir(parents=True)
        write_changes(lab.work / "big.lance", 100 * options.fragments, options.fragments)
        write_changes(lab.work / "rows.lance", options.rows, 8)
        write_versions(lab.work / "many.lance", options.versions)
        try:
            lab.start()
            figures = measure(lab, options.repeats, options.rows / 2e6)
        finally:
            lab.stop()
            browser.close()
    print(f"{options.fragments:,} fragments, {options.rows:,} rows; milliseconds")
    print("\n".join(map(str, figures)))
    return int(any("OVER" in str(figure) for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
