"""How long a person waits for the map: a million points in a real Chromium, moved and outlined.

The benchmark ``ui --only map`` runs it. Frames are the times between two callbacks of the page
while the view moves with each of them, so that what the browser draws on its own threads counts as
well.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.benchmarks.ui.clocks import kernel_of, spent_in
from tests.benchmarks.ui.figures import TIMER, Figure, open_notebook, page_of
from tests.support.requirements import require_pylance
from tests.ui.lab_server import LabServer

ROWS = 1_000_000
DIMENSION = 128
CLUSTERS = 24
BATCH = 100_000

FIRST_FRAME = """
async (timerText) => {
  const timer = eval(timerText);
  const live = [...document.querySelectorAll(".lnb-live")].at(-1);
  const drawn = () => Number(live.querySelector(".lnb-map-canvas")?.dataset.drawn ?? 0);
  const busy = () => live.querySelector(".lnb-map .lnb-tool-busy");
  const until = (done) => new Promise((resolve) => {
    const look = () => done() ? resolve(performance.now()) : requestAnimationFrame(look);
    look();
  });
  const start = performance.now();
  [...live.querySelectorAll("[role=tab]")].find((one) => one.textContent === "Map").click();
  await until(() => busy() && !busy().hidden);
  const known = await until(() => busy().hidden);
  const first = await until(() => drawn() > 0);
  const whole = await until(() => drawn() === ROWS);
  return [known - start, first - known, whole - known];
}
""".replace("ROWS", str(ROWS))
# Moves the view with every frame, by dragging or by keys; milliseconds of each frame.
MOVE = """
([kind, count]) => new Promise((resolve) => {
  const canvas = [...document.querySelectorAll(".lnb-map-canvas")].at(-1);
  const around = canvas.getBoundingClientRect();
  const [x, y] = [around.left + around.width / 2, around.top + around.height / 2];
  const pointer = (type, dx, dy) => canvas.dispatchEvent(new PointerEvent(type, {
    clientX: x + dx, clientY: y + dy, buttons: type === "pointermove" ? 1 : 0, pointerId: 1,
  }));
  const times = [];
  let before = null;
  canvas.setPointerCapture = () => {};
  canvas.focus();
  if (kind === "pan") pointer("pointerdown", 0, 0);
  const step = (at) => {
    const now = performance.now();
    if (before !== null) times.push(now - before);
    before = now;
    if (at === count) {
      if (kind === "pan") pointer("pointerup", 0, 0);
      return resolve(times);
    }
    const turn = 2 * Math.PI * at / 60;
    if (kind === "pan") pointer("pointermove", 150 * Math.sin(turn), 90 * Math.cos(turn) - 90);
    else canvas.dispatchEvent(new KeyboardEvent("keydown", { key: at % 16 < 8 ? "+" : "-" }));
    return requestAnimationFrame(() => step(at + 1));
  };
  requestAnimationFrame(() => step(0));
})
"""
SETTLED = """
async (timerText) => {
  const canvas = [...document.querySelectorAll(".lnb-map-canvas")].at(-1);
  return eval(timerText)(() => {}, () => Number(canvas.dataset.drawn) === ROWS);
}
""".replace("ROWS", str(ROWS))
OUTLINE = """
async ([timerText, turns]) => {
  const canvas = [...document.querySelectorAll(".lnb-map-canvas")].at(-1);
  const status = [...document.querySelectorAll(".lnb-map-status")].at(-1);
  const around = canvas.getBoundingClientRect();
  const pointer = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {
    clientX: around.left + x, clientY: around.top + y, buttons: 1, pointerId: 1, shiftKey: true,
  }));
  canvas.setPointerCapture = () => {};
  const [wide, high] = [around.width, around.height];
  pointer("pointerdown", wide * 0.5, high * 0.2);
  for (let at = 0; at < 120; at += 1) {
    const turn = 2 * Math.PI * at / 120;
    const reach = 0.3 + 0.02 * (at % 7) + 0.01 * turns;
    pointer("pointermove", wide * (0.5 + reach * Math.sin(turn)),
      high * (0.5 - reach * Math.cos(turn)));
  }
  const before = status.textContent;
  return eval(timerText)(() => pointer("pointerup", 0, 0), () => status.textContent !== before);
}
"""


def write_map(path: Path) -> None:
    """Write a million labelled vectors in groups."""
    lance = require_pylance()
    random = np.random.default_rng(7)
    middles = random.normal(size=(CLUSTERS, DIMENSION)).astype(np.float32) * 2
    for first in range(0, ROWS, BATCH):
        kind = random.integers(0, CLUSTERS, BATCH)
        vectors = middles[kind] + random.standard_normal((BATCH, DIMENSION), np.float32)
        table = pa.table(
            {
                "id": np.arange(first, first + BATCH),
                "label": pa.array(kind).cast("string"),
                "vector": pa.FixedSizeListArray.from_arrays(
                    pa.array(vectors.reshape(-1)), DIMENSION
                ),
            }
        )
        lance.write_dataset(table, path, mode="append" if first else "create")


def measure_map(lab: LabServer, path: Path, options: Namespace) -> Iterator[Figure]:
    """Take the figures of the map, and print the memory of page and kernel."""
    notebook = open_notebook(lab, "map.ipynb", f"lance_nb.explore({str(path)!r})")
    notebook.run_all()
    page = notebook.page
    page.locator(".lnb-live .lnb-profile svg").last.wait_for()
    kernel = kernel_of(lab.process_id)
    before = _own_mb(kernel), page_of(page)[0]
    with spent_in(page, lab.process_id, 1) as spent:
        known, first, whole = page.evaluate(FIRST_FRAME, TIMER)
    yield Figure("coordinates of 1 million rows known", [known], 50, None, spent)
    yield Figure("first frame after that", [first], 50, 2000)
    yield Figure("all points drawn after that", [whole], 50, None)
    for kind in ("pan", "zoom"):
        count = 10 * options.repeats
        with spent_in(page, lab.process_id, count) as spent:
            frames = page.evaluate(MOVE, [kind, count])
        yield Figure(f"frame of 1 million points, {kind}", frames, 95, 33, spent)
        yield Figure("  until all are drawn when still", [page.evaluate(SETTLED, TIMER)], 50, None)
    with spent_in(page, lab.process_id, 5) as spent:
        outlines = [float(page.evaluate(OUTLINE, [TIMER, at])) for at in range(spent.count)]
    yield Figure("rows in an outline of 1 million points", outlines, 50, 200, spent)
    after = _own_mb(kernel), page_of(page)[0]
    print(
        f"memory: kernel {after[0] - before[0]:+,.0f} MB without mapped files, "
        f"heap of the page {after[1] - before[1]:+,.0f} MB"
    )
    notebook.close()


def _own_mb(process: int) -> float:
    """Resident memory of a process without the files that it has mapped."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    own = next(line for line in lines if line.startswith("RssAnon"))
    return int(own.split()[1]) * 1024 / 1e6
