"""How long a person waits for the explorer: in JupyterLab, in a real Chromium, on local data.

It writes datasets with pylance, drives JupyterLab and prints milliseconds beside the budgets. Every
figure is taken in the page, from the action to the frame that shows its result, and so holds the
kernel, the websocket and the painting. The kernel is warm: it has imported lance_nb and opened a
small dataset before. "First screen" begins when the cell is run.

======== ===================================================================
floor    JupyterLab's own time for a cell that shows one word, to compare
versions 1,000 versions: first screen, switch from one to another
rows     10 million rows: first screen, the wheel, jumps
wide     2,000 columns: first screen, scrolling to columns not seen before
brush    5 million rows: a histogram is brushed, and the others, the count and the grid follow
map      1 million vectors of 128: see map_speed
======== ===================================================================
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.benchmarks.ui.clocks import spent_in
from tests.benchmarks.ui.figures import (
    HEAD,
    TIMER,
    Figure,
    Part,
    open_notebook,
    part_options,
    run_parts,
)
from tests.benchmarks.ui.map_speed import measure_map, write_map
from tests.support.requirements import require_pylance
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import NotebookPage

BATCH = 500_000
VERSIONS = 1000
ROWS = 10_000_000
BRUSHED_ROWS = 5_000_000
COLUMNS = 2000
# A person looks at rows before jumping on. Without a pause most answers wait up to 40 ms in
# Jupyter's server: it leaves Nagle's algorithm on (tornado's HTTP1Connection), so behind the status
# message of the kernel an answer waits until the browser's machine has acknowledged that one.
PAUSE_MS = 400

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

ASIDE = """
async ([timerText, share]) => {
  const live = [...document.querySelectorAll(".lnb-live")].at(-1);
  const grid = live.querySelector(".lnb-grid");
  const heads = () => [...live.querySelectorAll(".lnb-grid-column:not([hidden]) b")]
    .map((head) => head.textContent).join();
  const from = heads();
  const jump = () => { grid.scrollLeft = share * (grid.scrollWidth - grid.clientWidth); };
  return eval(timerText)(jump, () => heads() !== from
    && !live.querySelector(".lnb-waiting:not([hidden])"));
}
"""


# A drag over the histogram of x: until another histogram follows while it moves, and from its end
# until the exact count and the grid are there.
BRUSH = """
async ([timerText, from, to]) => {
  const timer = eval(timerText);
  const live = [...document.querySelectorAll(".lnb-live")].at(-1);
  const profile = (name) => [...live.querySelectorAll(".lnb-grid-column:not([hidden])")]
    .find((head) => head.querySelector("b").textContent === name).querySelector(".lnb-profile");
  const [bars, other] = [profile("x"), profile("id")];
  bars.setPointerCapture = () => {};
  const box = bars.getBoundingClientRect();
  const fire = (type, share) => bars.dispatchEvent(new PointerEvent(type, {
    clientX: box.left + share * box.width, button: 0, pointerId: 1, bubbles: true }));
  const said = live.querySelector(".lnb-filter-said");
  const [drawn, before] = [other.firstChild, said.textContent];
  fire("pointerdown", from);
  const moved = await timer(() => fire("pointermove", to), () => other.firstChild !== drawn);
  const ended = await timer(() => fire("pointerup", to), () => said.textContent !== before
    && /^[0-9,]+ pass$/.test(said.textContent)
    && !live.querySelector(".lnb-waiting:not([hidden])"));
  return [moved, ended];
}
"""


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


def write_wide(path: Path) -> None:
    """Write 20,000 rows of 2,000 columns."""
    random = np.random.default_rng(5)
    columns = {f"feature_{at:04}": random.random(20_000, np.float32) for at in range(COLUMNS)}
    require_pylance().write_dataset(pa.table(columns), path)


def first_screens(notebook: NotebookPage, repeats: int) -> list[float]:
    """Run the second cell again and again: milliseconds until its explorer shows rows and bars."""
    elapsed = []
    for _ in range(repeats):
        elapsed.append(float(notebook.page.evaluate(FIRST_SCREEN, TIMER)))
        notebook.page.wait_for_timeout(500)
    return elapsed


def measure_floor(lab: LabServer, _path: Path, options: Namespace) -> Iterator[Figure]:
    """Take what JupyterLab itself needs."""
    repeats = options.repeats
    word = "from IPython.display import HTML; HTML('<b class=floor>word</b>')"
    plain = open_notebook(lab, "plain.ipynb", word)
    with spent_in(plain.page, lab.process_id, max(5, repeats // 4)) as spent:
        floor = [float(plain.page.evaluate(FLOOR, TIMER)) for _ in range(spent.count)]
    plain.close()
    yield Figure("JupyterLab's own: a cell that shows one word", floor, 50, None, spent)


def measure_versions(lab: LabServer, path: Path, options: Namespace) -> Iterator[Figure]:
    """Take the figures of many versions."""
    repeats = options.repeats
    many = open_notebook(lab, "many.ipynb", f"lance_nb.explore({str(path)!r})")
    with spent_in(many.page, lab.process_id, max(5, repeats // 4)) as opening:
        screens = first_screens(many, opening.count)
    with spent_in(many.page, lab.process_id, repeats) as going:
        switches = [many.page.evaluate(SWITCH, [TIMER, step]) for step in range(repeats)]
    many.close()
    taken = [ms for ms in switches if ms is not None]
    yield Figure("first screen, 1,000 versions", screens, 50, 300, opening)
    yield Figure("version switch with rows", taken, 50, 300, going)


def measure_rows(lab: LabServer, path: Path, options: Namespace) -> Iterator[Figure]:
    """Take the figures of many rows."""
    repeats = options.repeats
    long = open_notebook(lab, "long.ipynb", f"lance_nb.explore({str(path)!r})")
    with spent_in(long.page, lab.process_id, max(5, repeats // 4)) as opening:
        screens = first_screens(long, opening.count)
    random = np.random.default_rng(7)
    with spent_in(long.page, lab.process_id, repeats) as jumping:
        jumps = _jumps(long, random.random(repeats), 0)
    with spent_in(long.page, lab.process_id, repeats) as pausing:
        paused = _jumps(long, random.random(repeats), PAUSE_MS)
    long.page.evaluate(SCROLL, [TIMER, 0.5, 0])
    with spent_in(long.page, lab.process_id, 4 * repeats) as rolling:
        steps = [long.page.evaluate(SCROLL, [TIMER, 0, 120]) for _ in range(rolling.count)]
    long.close()
    yield Figure("first screen, 10 million rows", screens, 50, 300, opening)
    yield Figure("scroll on, one notch of the wheel", steps, 95, 100, rolling)
    yield Figure("jump to rows not seen before", paused, 95, 100, pausing)
    yield Figure("the same, without a pause before", jumps, 95, 100, jumping)


def measure_wide(lab: LabServer, path: Path, options: Namespace) -> Iterator[Figure]:
    """Take the figures of many columns."""
    repeats = options.repeats
    wide = open_notebook(lab, "wide.ipynb", f"lance_nb.explore({str(path)!r})")
    with spent_in(wide.page, lab.process_id, max(5, repeats // 4)) as opening:
        screens = first_screens(wide, opening.count)
    random = np.random.default_rng(7)
    aside = []
    with spent_in(wide.page, lab.process_id, repeats) as jumping:
        for share in random.random(repeats):
            wide.page.wait_for_timeout(PAUSE_MS)
            aside.append(wide.page.evaluate(ASIDE, [TIMER, float(share)]))
    wide.close()
    yield Figure("first screen, 2,000 columns", screens, 50, 300, opening)
    yield Figure("jump to columns not seen before", aside, 95, 100, jumping)


def _jumps(long: NotebookPage, shares: Sequence[float], pause_ms: int) -> list[float]:
    found = []
    for share in shares:
        long.page.wait_for_timeout(pause_ms)
        found.append(long.page.evaluate(SCROLL, [TIMER, float(share), 0]))
    return found


def measure_brush(lab: LabServer, path: Path, options: Namespace) -> Iterator[Figure]:
    """Take the figures of a histogram that is brushed."""
    repeats = options.repeats
    five = open_notebook(lab, "five.ipynb", f"lance_nb.explore({str(path)!r})")
    first_screens(five, 1)
    five.page.locator(".lnb-live").last.locator(".lnb-profile-number").nth(1).wait_for()
    moved, ended = [], []
    with spent_in(five.page, lab.process_id, repeats) as spent:
        for at in range(repeats):
            # Always other bars than before: the same ones again take the brush away.
            start = 0.06 + 0.06 * (at % 7)
            both = five.page.evaluate(BRUSH, [TIMER, start, start + 0.2 + 0.06 * (at % 5)])
            moved.append(float(both[0]))
            ended.append(float(both[1]))
            five.page.wait_for_timeout(PAUSE_MS)
    five.close()
    yield Figure("a brush moves: other histograms, by a sample", moved, 95, 200, spent)
    yield Figure("a brush ends: exact count and grid", ended, 95, 200)


PARTS = {
    "floor": Part(measure_floor),
    "versions": Part(measure_versions, "many.lance", partial(write_versions, count=VERSIONS)),
    "rows": Part(measure_rows, "long.lance", partial(write_rows, count=ROWS)),
    "wide": Part(measure_wide, "wide.lance", write_wide),
    "brush": Part(measure_brush, "five.lance", partial(write_rows, count=BRUSHED_ROWS)),
    "map": Part(measure_map, "map.lance", write_map),
}
OPTIONS = part_options(PARTS) | {"--repeats": {"type": int, "default": 40}}


def run(options: Namespace) -> int:
    """Measure the parts asked for; 1 when a budget is broken."""
    return run_parts(options, PARTS, HEAD)
