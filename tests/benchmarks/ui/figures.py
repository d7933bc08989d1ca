"""What the measurements in a browser share: figures with budgets, a timer in the page, JupyterLab.

Each line names the budget, the figure that is judged and the verdict.
"""

from __future__ import annotations

import signal
import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.requirements import require_chromium
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import OFFLINE, NotebookPage

ROOT = Path(__file__).resolve().parents[3]
HEAD = f"milliseconds in the page\n{'':<46} {'n':>4} {'p50':>8} {'p95':>8} {'max':>8}   budget"

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


class Line(Protocol):
    """What a part yields: printed as one line; a budget that is not kept fails the run."""

    @property
    def kept(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a benchmark: what it measures on which dataset, and how that is written."""

    measure: Callable[[LabServer, Path, Namespace], Iterable[Line]]
    dataset: str = ""
    write: Callable[[Path], object] | None = None


def part_options(parts: Mapping[str, Part]) -> dict[str, dict[str, Any]]:
    """Return the options that every benchmark of parts has."""
    return {
        "--only": {"nargs": "*", "choices": sorted(parts), "default": list(parts)},
        "--data": {"type": Path, "help": "keep the datasets in this folder"},
        "--write": {"action": "store_true", "help": "write the datasets, measure nothing"},
    }


def run_parts(options: Namespace, parts: Mapping[str, Part], head: str = "") -> int:
    """Measure the parts asked for in one JupyterLab and print them; 1 when a budget is broken."""
    with tempfile.TemporaryDirectory() as folder:
        data = options.data or Path(folder) / "data"
        data.mkdir(parents=True, exist_ok=True)
        chosen = [parts[name] for name in options.only]
        for part in chosen:
            if part.write is not None and not (data / part.dataset).exists():
                part.write(data / part.dataset)
        if options.write:
            return 0
        print(head, flush=True)
        kept = True
        with jupyter_lab(Path(folder)) as lab:
            for part in chosen:
                for line in part.measure(lab, data / part.dataset, options):
                    print(line, flush=True)
                    kept &= line.kept
    return int(not kept)


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
