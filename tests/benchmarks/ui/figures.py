"""What the measurements in a browser share: figures with budgets, a timer in the page, JupyterLab.

``--only`` chooses parts, ``--data FOLDER`` keeps the datasets there, so that another run finds them
written. Each line names the budget, the figure that is judged and the verdict.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.requirements import require_chromium
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import OFFLINE, NotebookPage

ROOT = Path(__file__).resolve().parents[3]
HEAD = f"{'':<46} {'n':>4} {'p50':>8} {'p95':>8} {'max':>8}   budget"

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


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: all samples in milliseconds, and the budget for one percentile.

    Without a budget the line is for comparison only. ``spent``: what one of them cost, see clocks.
    """

    name: str
    samples: list[float]
    percentile: int
    budget_ms: int | None
    spent: object = ""

    @property
    def judged(self) -> float:
        """What the budget is for: the median or the 95th percentile."""
        ordered = sorted(self.samples)
        if self.percentile == 50:
            return statistics.median(ordered)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]

    @property
    def kept(self) -> bool:
        """Whether the budget is kept."""
        return self.budget_ms is None or self.judged <= self.budget_ms

    def __str__(self) -> str:
        ordered = sorted(self.samples)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        line = (
            f"{self.name:<46} {len(ordered):>4} {statistics.median(ordered):>8.0f} {p95:>8.0f} "
            f"{ordered[-1]:>8.0f}"
        )
        if self.budget_ms is not None:
            verdict = "ok" if self.kept else "OVER"
            line += f"   p{self.percentile} {self.judged:.0f} <= {self.budget_ms}: {verdict}"
        return f"{line:<106} {self.spent}".rstrip()


Part = Callable[[LabServer, Path, int], Iterable[Figure]]


def run_parts(
    doc: str | None,
    parts: Mapping[str, Part],
    write: Callable[[Path, Sequence[str]], None],
    repeats: int,
) -> int:
    """Measure the parts asked for in one JupyterLab and print them; 1 when a budget is broken.

    ``write(folder, names)`` writes the datasets of these parts, those not yet there.
    """
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=sorted(parts), default=list(parts))
    parser.add_argument("--data", type=Path, help="keep the datasets in this folder")
    parser.add_argument("--write", action="store_true", help="write the datasets, measure nothing")
    parser.add_argument("--repeats", type=int, default=repeats)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = options.data or Path(folder) / "data"
        data.mkdir(parents=True, exist_ok=True)
        write(data, options.only)
        if options.write:
            return 0
        print(f"milliseconds in the page\n{HEAD}", flush=True)
        figures = []
        with jupyter_lab(Path(folder)) as lab:
            for name in options.only:
                for figure in parts[name](lab, data, options.repeats):
                    print(figure, flush=True)
                    figures.append(figure)
    return int(not all(figure.kept for figure in figures))


@contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=require_chromium(),
            args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info", *OFFLINE],
        )
        yield chromium
        chromium.close()


@contextmanager
def jupyter_lab(folder: Path) -> Iterator[LabServer]:
    """A JupyterLab of its own and a Chromium; both end with this process, also by SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(128 + signal.SIGTERM))
    with browser() as chromium:
        lab = LabServer(chromium, ROOT, folder)
        lab.work.mkdir(parents=True)
        try:
            lab.start()
            yield lab
        finally:
            lab.stop()


def open_notebook(lab: LabServer, name: str, explore: str, before: str = "") -> NotebookPage:
    """Open a notebook whose first cell warms the kernel up, with the second cell selected.

    ``before`` is a script that runs in the page before its own.
    """
    warm = "import lance_nb\nfor _ in range(2): lance_nb.explore('data/demo.lance')"
    lab.write(name, warm, explore)
    notebook = lab.notebook(name, before=before)
    notebook.run_all()
    # With its histograms: what a first explorer loads beside is no part of a figure.
    notebook.page.locator(".lnb-live .lnb-profile svg, .floor").first.wait_for()
    notebook.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1 }"
    )
    return notebook


def memory_mb(process: int) -> tuple[float, float]:
    """Resident memory of a process, now and at its highest."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    return tuple(int(facts[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def page_of(page: Page) -> tuple[float, int]:
    """Return the JavaScript heap in MB after a collection, and the elements of the explorer."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {
        one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]
    }
    count = int(page.evaluate("document.querySelectorAll('.lnb-live *').length"))
    return metrics["JSHeapUsedSize"] / 1e6, count
