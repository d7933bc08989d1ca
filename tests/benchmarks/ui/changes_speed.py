"""How long a person waits for what changed: in JupyterLab, in a real Chromium, on local data.

As explorer_speed, it takes every figure in the page, from the action to the frame that shows its
result.

======= ====================================================================================
numbers two versions of 1,000 fragments: the chips, which come from the manifests
rows    2 million rows of which half were updated: the first page of the rows that differ
scrub   100 versions, a handle dragged over them: from the move of the pointer to the
        numbers of the version that it passed
======= ====================================================================================
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.benchmarks.ui.clocks import spent_in
from tests.benchmarks.ui.explorer_speed import write_versions
from tests.benchmarks.ui.figures import (
    HEAD,
    TIMER,
    Figure,
    Part,
    open_notebook,
    part_options,
    run_parts,
)
from tests.support.requirements import require_pylance
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import NotebookPage

FRAGMENTS = 1000
ROWS = 2_000_000
VERSIONS = 100
PAUSE_MS = 200

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
# A frame lasts from the move of the pointer to the end of the frame that shows other numbers.
WATCH = """
() => {
  const live = [...document.querySelectorAll(".lnb-live")].at(-1);
  let moved = 0;
  window.frames_ms = [];
  document.addEventListener("pointermove", () => { moved = performance.now(); }, true);
  new MutationObserver(() => {
    const begun = moved;
    moved = 0;
    if (begun) requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => { port1.close(); window.frames_ms.push(performance.now() - begun); };
      port2.postMessage("");
    });
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
        page.wait_for_timeout(200)  # numbers that come later are not taken for the next
    page.mouse.up()
    return [float(one) for one in page.evaluate("window.frames_ms")]


def _open_changes(lab: LabServer, path: Path, level: str | None = None) -> NotebookPage:
    notebook = open_notebook(lab, f"{path.stem}.ipynb", f"lance_nb.explore({str(path)!r})")
    notebook.run_all()
    live = notebook.page.locator(".lnb-live").last
    live.locator(".lnb-profile svg").first.wait_for()  # made beside, and no part of a figure
    live.get_by_role("tab", name="Changes", exact=True).click()
    if level is not None:
        live.locator(f"[data-level={level}]").click()
    live.locator(".lnb-chip").first.wait_for()
    return notebook


def measure_numbers(lab: LabServer, path: Path, options: Namespace) -> Iterator[Figure]:
    """Compare with this version and with that one; Settings stay open: numbers alone."""
    repeats = options.repeats
    big = _open_changes(lab, path, "config")
    refs = [str(1 + step % 2) for step in range(repeats)]
    with spent_in(big.page, lab.process_id, repeats) as spent:
        first, *others = [_compared(big, ref) for ref in refs]
    big.close()
    yield Figure("numbers of two versions of 1,000 fragments", others, 50, 100, spent)
    yield Figure("the first of them", [first], 50, None)


def _compared(notebook: NotebookPage, ref: str) -> float:
    """Compare with a version; what the open level asks for then is no part of the next one."""
    took = float(notebook.page.evaluate(COMPARE, [TIMER, ref, False]))
    notebook.page.wait_for_timeout(PAUSE_MS)
    return took


def measure_rows(lab: LabServer, path: Path, _options: Namespace) -> Iterator[Figure]:
    """Compare all rows with those before the update."""
    rows = _open_changes(lab, path, "rows")
    with spent_in(rows.page, lab.process_id, 1) as spent:
        first = [float(rows.page.evaluate(COMPARE, [TIMER, "1", True]))]
    rows.close()
    yield Figure("first page of 1 million rows that differ", first, 50, 1000, spent)


def measure_scrub(lab: LabServer, path: Path, options: Namespace) -> Iterator[Figure]:
    """Drag a handle."""
    repeats = options.repeats
    many = _open_changes(lab, path)
    with spent_in(many.page, lab.process_id, 2 * repeats) as spent:
        frames = scrub(many, spent.count)
    many.close()
    yield Figure("numbers while a handle is dragged", frames, 50, 50, spent)


PARTS = {
    "numbers": Part(
        measure_numbers,
        "big.lance",
        partial(write_changes, rows=100 * FRAGMENTS, fragments=FRAGMENTS),
    ),
    "rows": Part(measure_rows, "rows.lance", partial(write_changes, rows=ROWS, fragments=8)),
    "scrub": Part(measure_scrub, "hundred.lance", partial(write_versions, count=VERSIONS)),
}
OPTIONS = part_options(PARTS) | {"--repeats": {"type": int, "default": 20}}


def run(options: Namespace) -> int:
    """Measure the parts asked for; 1 when a budget is broken."""
    return run_parts(options, PARTS, HEAD)
