"""What the explorer costs where datasets are large: waiting, freezes, memory of kernel and page.

Run ``python -m tests.benchmarks.ui.scale``; ``--only versions cell`` chooses cases (see
``large_data``), ``--small`` makes all of them a hundredth in size, ``--data FOLDER`` keeps them.
In each case the explorer is opened in JupyterLab, in a real Chromium; every tab is looked at until
all it asked for is there, every level of the changes opened, rows are scrolled, a column and a
version chosen. One line per figure, with its bound:

============ ======================================================================================
first screen from running the cell to rows and bars painted
tab, level   from the click to the frame after the last answer that it asked for
freeze       the longest task of the page's main thread after the first screen
answer       the slowest answer, and the largest message, of all
kernel       what the kernel's memory (RSS) grew by: at the end, and at its highest
page         what the JavaScript heap grew by, after a collection; and the elements of the explorer
============ ======================================================================================
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from tests.benchmarks.ui.explorer_speed import FIRST_SCREEN
from tests.benchmarks.ui.figures import TIMER, jupyter_lab, open_notebook
from tests.benchmarks.ui.large_data import CASES
from tests.ui.lab_server import LabServer, NotebookPage

TABS = ("Changes", "Storage", "Branches & tags", "Stage", "Rows")
KEYS = ("PageDown", "PageDown", "Control+ArrowDown", "End", "Home", "Control+ArrowUp")
LONGEST_MS = 120_000
# Every message to the kernel and from it, as it passes through the page's socket: when, how large.
SPY = """
(() => {
  const asks = new Map();
  const seen = { asks, done: [], largest: 0, freeze: 0, last: 0 };
  window.lnbSeen = seen;
  const text = (data) => typeof data === "string" ? data : new TextDecoder("latin1").decode(data);
  const idOf = (message) => /"id": ?"(\\w+-\\d+-\\d+)"/.exec(message)?.[1];
  const Plain = window.WebSocket;
  window.WebSocket = class extends Plain {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", ({ data }) => {
        const message = text(data);
        const id = idOf(message);
        const ask = id && asks.get(id);
        if (id || /"screen"/.test(message)) seen.largest = Math.max(seen.largest, message.length);
        if (!ask || /"progress": ?\\[/.test(message.slice(0, 3000))) return;
        asks.delete(id);
        seen.last = performance.now();
        seen.done.push([seen.last - ask.sent, ask.type, message.length]);
      });
    }
    send(data) {
      const message = text(data);
      const id = idOf(message);
      const type = /[{,]"type": ?"([\\w.]+)"/.exec(message)?.[1];
      if (id && type) asks.set(id, { type, sent: performance.now() });
      super.send(data);
    }
  };
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) seen.freeze = Math.max(seen.freeze, one.duration);
  }).observe({ type: "longtask" });
})()
"""
# Resolves when nothing is under way for three frames, news of others left out.
SETTLED = """
([type, longest]) => new Promise((resolve, reject) => {
  const start = performance.now();
  let still = 0;
  const look = () => {
    const busy = [...window.lnbSeen.asks.values()].some((one) => one.type !== "news");
    still = busy ? 0 : still + 1;
    if (still > 3) {
      const end = Math.max(window.lnbSeen.last, start);
      resolve(end - start);
    } else if (performance.now() - start > longest) reject(new Error("not settled"));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})
"""


@dataclass(frozen=True, slots=True)
class Bounded:
    """One line of the table."""

    case: str
    name: str
    figure: float
    unit: str
    bound: float | None

    @property
    def kept(self) -> bool:
        """Whether the bound is kept."""
        return self.bound is None or self.figure <= self.bound

    def __str__(self) -> str:
        line = f"{self.case:<10} {self.name:<42} {self.figure:>10,.0f} {self.unit:<4}"
        if self.bound is None:
            return line
        return f"{line} <= {self.bound:,.0f}: {'ok' if self.kept else 'OVER'}"


def memory_mb(process: int) -> tuple[float, float]:
    """Resident memory of a process, now and at its highest."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    return tuple(int(facts[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def kernel_of(lab: LabServer) -> int:
    """Return the process id of the newest kernel of the server."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and "ipykernel" in (entry / "cmdline").read_text():
                found.append((entry.stat().st_ctime_ns, int(entry.name)))
        except OSError:
            continue
    mine = [one for one in found if _server_of(one[1]) == lab.process_id]
    return max(mine)[1]


def _server_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


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


def settled(page: Page) -> float:
    """Milliseconds from now until the last answer is there and painted."""
    return float(page.evaluate(SETTLED, ["", LONGEST_MS]))


def clicked(page: Page, target: Locator) -> float:
    """Click and wait until all is there."""
    target.click()
    return settled(page)


def look_around(case: str, page: Page, live: Locator) -> Iterator[Bounded]:
    """Look at everything."""
    for tab in TABS:
        took = clicked(page, live.get_by_role("tab", name=tab, exact=True))
        yield Bounded(case, f"tab {tab}", took, "ms", 1000)
        if tab != "Changes":
            continue
        chips = live.locator(".lnb-chip")
        yield Bounded(case, "  chips shown", float(chips.count() < 8), "miss", 0)
        for at in range(chips.count()):
            name = chips.nth(at).get_attribute("data-level") or ""
            took = clicked(page, chips.nth(at))
            yield Bounded(case, f"  level {name}", took, "ms", 2000)
    live.locator(".lnb-panel-rows .lnb-grid").focus()
    for key in KEYS:
        page.keyboard.press(key)
        settled(page)
    page.keyboard.press("Enter")
    page.locator(".lnb-peek").wait_for()
    page.keyboard.press("Escape")
    grid = live.locator(".lnb-panel-rows .lnb-grid").bounding_box()
    if grid:
        page.mouse.move(grid["x"] + 200, grid["y"] + 150)
        for _ in range(20):
            page.mouse.wheel(300, 900)
    yield Bounded(case, "after scrolling far", settled(page), "ms", 1000)
    bars = live.locator(".lnb-tl-bar")
    yield Bounded(case, "another version", clicked(page, bars.nth(max(0, bars.count() - 2))), "ms",
                  1000)  # fmt: skip


def measure(lab: LabServer, case: str, path: Path) -> Iterator[Bounded]:
    """Take the figures of one case."""
    notebook: NotebookPage = open_notebook(
        lab, f"{case}.ipynb", f"lance_nb.explore({str(path)!r})", before=SPY
    )
    page = notebook.page
    process = kernel_of(lab)
    (before, _), (heap, elements) = memory_mb(process), page_of(page)
    yield Bounded(case, "first screen", float(page.evaluate(FIRST_SCREEN, TIMER)), "ms", 1000)
    settled(page)
    page.evaluate("window.lnbSeen.freeze = 0")
    yield from look_around(case, page, page.locator(".lnb-live").last)
    after, highest = memory_mb(process)
    heap_after, elements_after = page_of(page)
    seen: dict[str, Any] = page.evaluate(
        "({ done: window.lnbSeen.done, largest: window.lnbSeen.largest,"
        " freeze: window.lnbSeen.freeze })"
    )
    slowest = max(seen["done"])
    yield Bounded(case, "longest task of the page", seen["freeze"], "ms", 200)
    yield Bounded(case, f"slowest answer ({slowest[1]})", slowest[0], "ms", 2000)
    yield Bounded(case, "largest message", seen["largest"] / 1000, "KB", 1000)
    yield Bounded(case, "kernel grew by", after - before, "MB", 400)
    yield Bounded(case, "kernel grew by, at its highest", highest - before, "MB", 600)
    yield Bounded(case, "page grew by", heap_after - heap, "MB", 60)
    yield Bounded(case, "elements", elements_after - elements, "", 6000)
    notebook.close()


def main() -> int:
    """Write the datasets, measure, print the table; 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=sorted(CASES), default=list(CASES))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--data", type=Path, help="keep the datasets in this folder")
    options = parser.parse_args()
    lines: list[Bounded] = []
    with tempfile.TemporaryDirectory() as folder:
        data = options.data or Path(folder) / "data"
        for name in options.only:
            path = data / f"scale_{name}{'_small' if options.small else ''}.lance"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                CASES[name](path, 0.01 if options.small else 1.0)
        with jupyter_lab(Path(folder)) as lab:
            for name in options.only:
                path = data / f"scale_{name}{'_small' if options.small else ''}.lance"
                for line in measure(lab, name, path):
                    print(line, flush=True)
                    lines.append(line)
    return int(not all(line.kept for line in lines))


if __name__ == "__main__":
    sys.exit(main())
