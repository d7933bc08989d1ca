"""What the explorer costs where datasets are large: waiting, freezes, memory of kernel and page.

``--only`` chooses cases (see ``large_data``). In each the explorer is opened in JupyterLab, in a
real Chromium; every tab is looked at until all it asked for is there, every level of the changes
opened, rows are scrolled, a column and a version chosen. One line per figure, with its bound:

============ ======================================================================================
first screen from running the cell to rows and bars painted
tab, level   from the click to the frame that was painted after the last answer it asked for, or
             after the click where it asked for nothing; how many it asked for stands beside
freeze       the longest task of the page's main thread after the first screen
answer       the slowest answer, and the largest message, of all
kernel       what the kernel's memory (RSS) grew by: at the end, and at its highest
page         what the JavaScript heap grew by, after a collection; and the elements of the explorer
============ ======================================================================================

Waiting is wall time; what page and kernel computed meanwhile stands beside it, see ``clocks``.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.benchmarks.ui.clocks import Clocks, kernel_of
from tests.benchmarks.ui.explorer_speed import FIRST_SCREEN
from tests.benchmarks.ui.figures import (
    TIMER,
    Part,
    memory_mb,
    open_notebook,
    page_of,
    part_options,
    run_parts,
)
from tests.benchmarks.ui.large_data import CASES
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import NotebookPage

TABS = ("Changes", "Storage", "Branches & tags", "Stage", "Rows")
KEYS = ("PageDown", "PageDown", "Control+ArrowDown", "End", "Home", "Control+ArrowUp")
LONGEST_MS = 60_000
# Every message to the kernel and from it, as it passes through the page's socket: when, how large.
SPY = """
(() => {
  const asks = new Map();
  const seen = { asks, done: [], largest: 0, freeze: 0, last: 0, acted: 0, asked: 0 };
  window.lnbSeen = seen;
  const BESIDE = new Set(["news", "rows.profile"]); // nobody waits for these
  // The clock starts where the page hears of the action, not where the script looks at it later; of
  // many turns of the wheel, at the last.
  const act = ({ type }) => {
    if (!seen.acted || type === "wheel") seen.acted = performance.now();
  };
  for (const kind of ["pointerdown", "keydown", "wheel"]) addEventListener(kind, act, true);
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
        const now = performance.now();
        if (!BESIDE.has(ask.type)) seen.last = now;
        seen.done.push([now - ask.sent, ask.type, message.length]);
      });
    }
    send(data) {
      const message = text(data);
      const id = idOf(message);
      const type = /[{,]"type": ?"([\\w.]+)"/.exec(message)?.[1];
      if (id && type) {
        asks.set(id, { type, sent: performance.now() });
        seen.asked += !BESIDE.has(type);
      }
      super.send(data);
    }
  };
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) seen.freeze = Math.max(seen.freeze, one.duration);
  }).observe({ type: "longtask" });
})()
"""
BEGIN = "() => { Object.assign(window.lnbSeen, { acted: 0, asked: 0, last: 0 }); }"
# Resolves when the action was heard and then nothing was under way for `quiet` milliseconds (news
# of others left out): longer than a view waits before it looks again, so that what it asks for
# beside is no part of the next action. The time ends with the frame that was painted after the last
# answer that somebody waits for; after the action, where it asked for nothing.
SETTLED = """
([quiet, longest]) => new Promise((resolve, reject) => {
  const start = performance.now();
  const seen = window.lnbSeen;
  let last = 0;
  let painted = 0;
  const look = () => {
    const now = performance.now();
    const open = [...seen.asks.values()].map((one) => one.type).filter((type) => type !== "news");
    if (now - start > longest) {
      return reject(new Error(seen.acted ? `unanswered: ${open}` : "no action was heard"));
    }
    const newest = seen.acted && Math.max(seen.acted, seen.last);
    const waiting = !newest || open.some((type) => type !== "rows.profile");
    if (waiting) last = painted = 0;
    else if (newest !== last) {
      painted = 0;
      last = newest;
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        if (last === newest) painted = performance.now();
      };
      port2.postMessage("");
    }
    if (painted && !open.length && now - painted > quiet) {
      return resolve([painted - seen.acted, seen.asked]);
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})
"""
QUIET_MS = 400


@dataclass(frozen=True, slots=True)
class Bounded:
    """One line of the table."""

    case: str
    name: str
    figure: float
    unit: str
    bound: float | None
    beside: str = ""

    @property
    def kept(self) -> bool:
        """Whether the bound is kept."""
        return self.bound is None or self.figure <= self.bound

    def __str__(self) -> str:
        line = f"{self.case:<10} {self.name:<42} {self.figure:>10,.0f} {self.unit:<4}"
        if self.bound is not None:
            line = f"{line} <= {self.bound:,.0f}: {'ok' if self.kept else 'OVER'}"
        return f"{line:<84} {self.beside}".rstrip()


class Looker:
    """One explorer that is looked at: every action gives a line, from the action to its end."""

    def __init__(self, case: str, page: Page, clocks: Clocks) -> None:
        self.case = case
        self.page = page
        self.live = page.locator(".lnb-live").last
        self._clocks = clocks

    def act(self, name: str, bound_ms: float, action: Callable[[], object]) -> Bounded:
        """Do one thing as a person does, and wait until all that it asked for is painted."""
        self.page.evaluate(BEGIN)
        with self._clocks.spent() as spent:
            action()
            took, asked = self.page.evaluate(SETTLED, [QUIET_MS, LONGEST_MS])
        beside = f"asked {asked}, {spent}"
        return Bounded(self.case, name, float(took), "ms", bound_ms, beside)

    def tabs(self) -> Iterator[Bounded]:
        """Open every tab, and every level of the changes."""
        for tab in TABS:
            yield self.act(
                f"tab {tab}", 1000, self.live.get_by_role("tab", name=tab, exact=True).click
            )
            if tab == "Changes":
                yield from self._levels()

    def _levels(self) -> Iterator[Bounded]:
        chips = self.live.locator(".lnb-chip")
        yield Bounded(self.case, "  chips shown", float(chips.count() < 8), "miss", 0)
        for at in range(chips.count()):
            name = chips.nth(at).get_attribute("data-level") or ""
            yield self.act(f"  level {name}", 2000, chips.nth(at).click)

    def grid(self) -> Iterator[Bounded]:
        """Walk over the rows by keys, look into a cell, scroll far."""
        page, rows = self.page, self.live.locator(".lnb-panel-rows .lnb-grid")
        rows.focus()
        for key in KEYS:
            yield self.act(f"  key {key}", 1000, lambda key=key: page.keyboard.press(key))  # type: ignore[misc]
        yield self.act("  look into a cell", 1000, lambda: page.keyboard.press("Enter"))
        page.locator(".lnb-peek").wait_for()
        page.keyboard.press("Escape")
        box = rows.bounding_box()
        if box is None:
            return

        def wheel() -> None:
            page.mouse.move(box["x"] + 200, box["y"] + 150)
            for _ in range(20):
                page.mouse.wheel(300, 900)

        yield self.act("scrolling far", 1000, wheel)

    def travel(self) -> Iterator[Bounded]:
        """Go to another version by a click on its bar."""
        bars = self.live.locator(".lnb-tl-bar")
        yield self.act("another version", 1000, bars.nth(max(0, bars.count() - 2)).click)


def measure(lab: LabServer, path: Path, options: Namespace, *, case: str) -> Iterator[Bounded]:
    """Take the figures of one case."""
    notebook: NotebookPage = open_notebook(
        lab, f"{case}.ipynb", f"lance_nb.explore({str(path)!r})", before=SPY
    )
    page, process = notebook.page, kernel_of(lab.process_id)
    clocks = Clocks(page, process)
    (before, _), (heap, elements) = memory_mb(process), page_of(page)
    with clocks.spent() as spent:
        took = float(page.evaluate(FIRST_SCREEN, TIMER))
    yield Bounded(case, "first screen", took, "ms", 1000, str(spent))
    page.wait_for_timeout(QUIET_MS)
    page.evaluate("window.lnbSeen.freeze = 0")
    looker = Looker(case, page, clocks)
    with clocks.spent() as spent:
        for part in (looker.tabs, looker.grid, looker.travel):
            yield from part()
    after, highest = memory_mb(process)
    heap_after, elements_after = page_of(page)
    seen: dict[str, Any] = page.evaluate(
        "({ done: window.lnbSeen.done, largest: window.lnbSeen.largest,"
        " freeze: window.lnbSeen.freeze })"
    )
    slowest = max(seen["done"])
    yield Bounded(case, "longest task of the page", seen["freeze"], "ms", 200, str(spent))
    yield Bounded(case, f"slowest answer ({slowest[1]})", slowest[0], "ms", 2000)
    yield Bounded(case, "largest message", seen["largest"] / 1000, "KB", 1000)
    yield Bounded(case, "kernel grew by", after - before, "MB", 400)
    yield Bounded(case, "kernel grew by, at its highest", highest - before, "MB", 600)
    yield Bounded(case, "page grew by", heap_after - heap, "MB", 60)
    yield Bounded(case, "elements", elements_after - elements, "", 6000)
    notebook.close()


def run(options: Namespace) -> int:
    """Measure the cases asked for; 1 when a bound is broken."""
    suffix, share = ("_small", 0.01) if options.small else ("", 1.0)
    parts = {
        case: Part(
            partial(measure, case=case), f"scale_{case}{suffix}.lance", partial(write, share=share)
        )
        for case, write in CASES.items()
    }
    return run_parts(options, parts)


OPTIONS = part_options(dict.fromkeys(CASES, Part(measure))) | {
    "--small": {"action": "store_true", "help": "datasets of a hundredth of the size"}
}
