"""How long a person waits for the explorer: in JupyterLab, in a real Chromium, on local data.

Run ``python -m tests.benchmarks.ui.explorer_speed``; ``--versions``, ``--rows`` change the size.
It writes two datasets with pylance, drives JupyterLab and prints milliseconds beside the budgets.
Every figure is taken in the page, from the action to the frame that shows its result, and so
holds the kernel, the websocket and the painting. The kernel is warm: it has imported lance_nb and
opened a small dataset before. "First screen" begins when the cell is run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from playwright.sync_api import sync_playwright

from tests.support.requirements import require_chromium, require_pylance
from tests.ui.lab_server import LabServer, NotebookPage

ROOT = Path(__file__).resolve().parents[3]
REPEATS = 40
BATCH = 500_000

# Resolves with the milliseconds from `act` to the end of the first frame in which `done` is true
# (a message posted from an animation frame arrives after that frame was painted).
TIMER = """
(act, done) => new Promise((resolve, reject) => {
  const start = performance.now();
  const look = () => {
    if (done()) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => { port1.close(); resolve(performance.now() - start); };
      port2.postMessage("");
    } else if (performance.now() - start > 20000) reject(new Error("not done in 20 s"));
    else requestAnimationFrame(look);
  };
  act();
  requestAnimationFrame(look);
})
"""
FIRST_SCREEN = """
async (timerText) => {
  const timer = eval(timerText);
  for (const old of document.querySelectorAll(".lnb-live")) old.dataset.old = "yes";
  const filled = () => {
    const fresh = [...document.querySelectorAll(".lnb-live:not([data-old])")].at(-1);
    return fresh?.querySelector(".lnb-cell")?.textContent && fresh.querySelector(".lnb-tl-bar");
  };
  return timer(() => window.jupyterapp.commands.execute("notebook:run-cell"), filled);
}
"""
# What JupyterLab itself takes to run a cell and show one word of HTML, for comparison.
FLOOR = """
async (timerText) => {
  const timer = eval(timerText);
  for (const old of document.querySelectorAll(".floor")) old.classList.remove("floor");
  return timer(() => window.jupyterapp.commands.execute("notebook:run-cell"),
    () => document.querySelector(".floor"));
}
"""
SWITCH = """
async ([timerText, step]) => {
  const timer = eval(timerText);
  const live = [...document.querySelectorAll(".lnb-live")].at(-1);
  const bars = [...live.querySelectorAll(".lnb-tl-bar")].filter((bar) => bar.lnb);
  const shown = () => live.querySelector(".lnb-here-ref").textContent;
  const from = shown();
  const bar = bars[(step * 7) % bars.length];
  if (from.endsWith(`:${bar.lnb.version}`)) return null;
  return timer(() => bar.click(), () => shown() !== from
    && !live.querySelector(".lnb-waiting:not([hidden])"));
}
"""
SCROLL = """
async ([timerText, share, pixels]) => {
  const timer = eval(timerText);
  const live = [...document.querySelectorAll(".lnb-live")].at(-1);
  const grid = live.querySelector(".lnb-grid");
  const waiting = () => live.querySelector(".lnb-waiting:not([hidden])");
  const status = live.querySelector(".lnb-grid-status");
  const from = status.textContent;
  const notch = new WheelEvent("wheel", { deltaY: pixels, cancelable: true });
  const wheel = () => grid.dispatchEvent(notch);
  const jump = () => { grid.scrollTop = share * grid.scrollHeight; };
  return timer(pixels ? wheel : jump,
    () => status.textContent !== from && !waiting());
}
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: all samples in milliseconds, and the budget for one percentile."""

    name: str
    samples: list[float]
    percentile: int
    budget_ms: int

    def __str__(self) -> str:
        ordered = sorted(self.samples)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        judged = statistics.median(ordered) if self.percentile == 50 else p95
        verdict = "ok" if judged <= self.budget_ms else "OVER"
        return (
            f"{self.name:<44} {len(ordered):>4} {statistics.median(ordered):>8.0f} {p95:>8.0f} "
            f"{ordered[-1]:>8.0f}   p{self.percentile} <= {self.budget_ms:<4} {verdict}"
        )


def write_versions(path: Path, count: int) -> None:
    """Write a dataset of ``count`` versions, five rows each."""
    lance = require_pylance()
    for at in range(count):
        table = pa.table({"id": np.arange(at * 5, at * 5 + 5), "text": [f"value {at}"] * 5})
        lance.write_dataset(table, path, mode="append" if at else "create")


def write_rows(path: Path, count: int) -> None:
    """Write ``count`` rows with a number, a float, a text and a small vector."""
    lance = require_pylance()
    rng = np.random.default_rng(1)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("x", pa.float32()),
            ("name", pa.string()),
            ("vector", pa.list_(pa.float32(), 16)),
        ]
    )

    def batches() -> object:
        for first in range(0, count, BATCH):
            ids = np.arange(first, min(first + BATCH, count))
            noise = rng.normal(size=len(ids) * 16).astype("f4")
            yield pa.record_batch(
                [
                    pa.array(ids),
                    pa.array(noise[: len(ids)]),
                    pa.array([f"item number {at}" for at in ids]),
                    pa.FixedSizeListArray.from_arrays(pa.array(noise), 16),
                ],
                schema=schema,
            )

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    lance.write_dataset(reader, path, max_rows_per_file=1_000_000)


def open_notebook(lab: LabServer, name: str, explore: str) -> NotebookPage:
    """Open a notebook whose first cell warms the kernel up, with the second cell selected."""
    warm = "import lance_nb\nfor _ in range(2): lance_nb.explore('data/demo.lance')"
    lab.write(name, warm, explore)
    notebook = lab.notebook(name)
    notebook.run_all()
    notebook.page.locator(".lnb-live .lnb-cell, .floor").first.wait_for()
    notebook.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1 }"
    )
    return notebook


def first_screens(notebook: NotebookPage, repeats: int) -> list[float]:
    """Run the second cell again and again: milliseconds until its explorer shows rows and bars."""
    elapsed = []
    for _ in range(repeats):
        elapsed.append(float(notebook.page.evaluate(FIRST_SCREEN, TIMER)))
        notebook.page.wait_for_timeout(500)
    return elapsed


def measure(lab: LabServer, repeats: int) -> list[Figure]:
    """Take all figures, in one notebook for many versions and one for many rows."""
    word = "from IPython.display import HTML; HTML('<b class=floor>word</b>')"
    plain = open_notebook(lab, "plain.ipynb", word)
    floor = [float(plain.page.evaluate(FLOOR, TIMER)) for _ in range(max(5, repeats // 4))]
    plain.close()
    many = open_notebook(lab, "many.ipynb", "lance_nb.explore('many.lance')")
    many_screens = first_screens(many, max(5, repeats // 4))
    switches = [many.page.evaluate(SWITCH, [TIMER, step]) for step in range(repeats)]
    many.close()
    long = open_notebook(lab, "long.ipynb", "lance_nb.explore('long.lance')")
    long_screens = first_screens(long, max(5, repeats // 4))
    shares = np.random.default_rng(7).random(repeats)
    jumps = [long.page.evaluate(SCROLL, [TIMER, float(share), 0]) for share in shares]
    long.page.evaluate(SCROLL, [TIMER, 0.5, 0])
    steps = [long.page.evaluate(SCROLL, [TIMER, 0, 120]) for _ in range(4 * repeats)]
    long.close()
    return [
        Figure("JupyterLab's own: a cell that shows one word", floor, 50, 300),
        Figure("first screen, many versions", many_screens, 50, 300),
        Figure("first screen, many rows", long_screens, 50, 300),
        Figure("version switch with rows", [ms for ms in switches if ms is not None], 50, 300),
        Figure("scroll on, one notch of the wheel", steps, 95, 100),
        Figure("jump to rows not seen before", jumps, 95, 100),
    ]


def main() -> int:
    """Write the datasets, measure, print the table; 1 when a budget is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--versions", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        lab = LabServer(browser, ROOT, Path(folder))
        lab.work.mkdir(parents=True)
        write_versions(lab.work / "many.lance", options.versions)
        write_rows(lab.work / "long.lance", options.rows)
        try:
            lab.start()
            figures = measure(lab, options.repeats)
        finally:
            lab.stop()
            browser.close()
    print(f"{options.versions:,} versions, {options.rows:,} rows; milliseconds")
    print(f"{'':<44} {'n':>4} {'p50':>8} {'p95':>8} {'max':>8}   budget")
    print("\n".join(map(str, figures)))
    return int(any("OVER" in str(figure) for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
