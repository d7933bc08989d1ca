"""The README's moving picture of the explorer, taken from the real one: ``make screenshot``.

A person's way through the demo dataset, in JupyterLab and Chromium: a version is chosen, cells
change, pictures, the map, an edit that is staged and committed. Frames are an animated WebP, whose
parts Chromium encodes. ``python -m tests.support.screenshot FOLDER`` also keeps each frame as PNG.

Source: WebP container specification (chunks VP8X, ANIM and ANMF).
"""

from __future__ import annotations

import base64
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.benchmarks.ui.figures import jupyter_lab
from tests.house.source import ROOT
from tests.ui.lab_explorer import LabExplorer

PICTURE = ROOT / "notebooks" / "explorer.webp"
WIDTH, HEIGHT = 1200, 840
QUALITY = 82  # of 100
SHORT_MS, LONG_MS = 900, 2400
DRAWN_MAP = ".lnb-map-canvas[data-drawn]:not([data-drawn='0'])"
# Screenshots have no pointer, so one is drawn where the mouse is.
POINTER = """
addEventListener("DOMContentLoaded", () => {
  const pointer = document.createElement("div");
  pointer.style.cssText = "position:fixed;z-index:99999;width:18px;height:18px;pointer-events:none;"
    + "border-radius:50%;background:#f5a62366;border:2px solid #d97706;left:-40px";
  document.body.append(pointer);
  addEventListener("mousemove", ({ clientX, clientY }) => {
    pointer.style.left = `${clientX - 11}px`;
    pointer.style.top = `${clientY - 11}px`;
  }, true);
});
"""


class Film:
    """Frames of one page, with their durations; ``folder`` gets each as PNG."""

    def __init__(self, explorer: LabExplorer, folder: Path | None) -> None:
        self.explorer = explorer
        self.frames: list[tuple[bytes, int]] = []
        self._folder = folder
        self._session = explorer.page.context.new_cdp_session(explorer.page)

    def take(self, duration_ms: int) -> None:
        """Add a frame once the page stays the same and nothing is under way."""
        page = self.explorer.page
        busy = self.explorer.root.locator(".lnb-waiting, .lnb-tool-busy").filter(visible=True)
        before = b""
        for _ in range(240):
            page.wait_for_timeout(250)
            png = page.screenshot()
            if png == before and busy.count() == 0:
                break
            before = png
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / f"{len(self.frames):02}.png").write_bytes(before)
        reply = self._session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
        self.frames.append((base64.b64decode(reply["data"]), duration_ms))

    def click(self, target: Locator, duration_ms: int = LONG_MS, until: str = "") -> None:
        """Show the pointer on something, click it, and show the page once it has ``until``."""
        target.hover()
        self.take(SHORT_MS)
        target.click()
        if until:
            self.explorer.root.locator(until).first.wait_for()
        self.take(duration_ms)


def shoot(folder: Path | None) -> list[tuple[bytes, int]]:
    """Open the demo dataset in JupyterLab and return frames and their durations."""
    with tempfile.TemporaryDirectory() as home, jupyter_lab(Path(home)) as lab:
        lab.write("demo.ipynb", 'import lance_nb\nlance_nb.explore("data/demo.lance", height=430)')
        notebook = lab.notebook("demo.ipynb", width=WIDTH, height=HEIGHT, before=POINTER)
        notebook.command("application:toggle-left-area")
        notebook.run_all()
        explorer = LabExplorer(notebook)
        root = explorer.root
        expect(explorer.rows.locator(".lnb-profile svg").first).to_be_visible()
        root.get_by_role("button", name="Details", exact=True).click()
        film = Film(explorer, folder)
        film.take(LONG_MS)
        film.click(explorer.bar(5))
        film.click(root.get_by_role("tab", name="Changes", exact=True))
        film.click(root.get_by_role("tab", name="Pictures", exact=True))
        film.click(root.get_by_role("tab", name="Map", exact=True), until=DRAWN_MAP)
        explorer.go("main")
        explorer.tab("Stage")
        root.get_by_role("button", name="read-only").click()
        panel = root.locator(".lnb-panel-stage")
        panel.get_by_label("change", exact=True).select_option("delete")
        panel.get_by_label("where", exact=True).fill("score > 1")
        panel.get_by_label("where", exact=True).press("Escape")
        film.click(panel.get_by_role("button", name="Stage", exact=True))
        card = panel.locator(".lnb-sg-card").first
        card.get_by_label("commit message").fill("drop impossible scores")
        film.click(card.get_by_role("button", name="Commit"), LONG_MS + SHORT_MS)
        return film.frames


def animated(frames: Sequence[tuple[bytes, int]], width: int, height: int) -> bytes:
    """Join still WebP files and their durations into an animated one that repeats for ever."""
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    parts = [_chunk(b"VP8X", b"\x02\0\0\0" + size), _chunk(b"ANIM", bytes(6))]
    for webp, duration_ms in frames:
        images = [_chunk(kind, data) for kind, data in _chunks(webp) if kind in _IMAGES]
        head = bytes(6) + size + duration_ms.to_bytes(3, "little") + b"\x02"  # opaque
        parts.append(_chunk(b"ANMF", head + b"".join(images)))
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


_IMAGES = (b"ALPH", b"VP8 ", b"VP8L")


def _chunks(webp: bytes) -> Iterator[tuple[bytes, bytes]]:
    start = 12
    while start < len(webp):
        kind, size = struct.unpack_from("<4sI", webp, start)
        yield kind, webp[start + 8 : start + 8 + size]
        start += 8 + size + size % 2


def _chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


if __name__ == "__main__":
    frames = shoot(Path(sys.argv[1]) if sys.argv[1:] else None)
    PICTURE.write_bytes(animated(frames, WIDTH, HEIGHT))
