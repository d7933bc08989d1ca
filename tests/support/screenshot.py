"""The README's moving picture of the explorer, taken from the real one: ``make screenshot``.

The page is the one of the browser tests; the dataset is the demo, written anew. The frames are an
animated PNG, which browsers and GitHub play, and others show as its first frame.

Source: the APNG specification (chunks acTL, fcTL and fdAT).
"""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from lance_nb.explorer.app import explore
from lance_nb.explorer.widget import LanceWidget
from lance_nb.magic.demo import demo_dataset
from tests.house.source import ROOT
from tests.support.requirements import require_chromium
from tests.ui.bare_page import BarePage
from tests.ui.conftest import FLAGS

PICTURE = ROOT / "notebooks" / "explorer.png"
SIZE = {"width": 1120, "height": 700}


SECONDS = 2.5
TABS = ("Changes", "Storage", "Branches & tags")


def take(dataset: str, picture: Path) -> None:
    """Open the explorer on a dataset, go through its tabs, and save a frame of each."""
    LanceWidget.jobs_beside = False  # the page hears answers, not threads
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=require_chromium(), args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        BarePage(page, explore(dataset, height=440)).open(style="body { font-size: 13px }")
        page.locator(".lnb-cell").first.wait_for()
        page.locator(".lnb-histogram, .lnb-profile, .lnb-cell").first.wait_for()
        frames = [_settled(page)]
        for name in TABS:
            page.get_by_role("tab", name=name).click()
            page.get_by_role("tabpanel", name=name).wait_for()
            frames.append(_settled(page))
        browser.close()
    picture.write_bytes(animated(frames, SECONDS))


def _settled(page: Page) -> bytes:
    """Return a picture of the page once it stays the same."""
    before = b""
    for _ in range(40):
        page.wait_for_timeout(250)
        now = page.screenshot()
        if now == before:
            break
        before = now
    return before


def animated(frames: Sequence[bytes], seconds: float) -> bytes:
    """Join PNG files of one size into an animated PNG that repeats for ever."""
    first = _chunks(frames[0])
    header = next(data for kind, data in first if kind == b"IHDR")
    parts = [b"\x89PNG\r\n\x1a\n", _chunk(b"IHDR", header)]
    parts.append(_chunk(b"acTL", struct.pack(">II", len(frames), 0)))
    number = 0
    for at, frame in enumerate(frames):
        chunks = _chunks(frame)
        if next(data for kind, data in chunks if kind == b"IHDR") != header:
            raise ValueError("the frames differ in size or colours")
        control = (number, *struct.unpack(">II", header[:8]), 0, 0, round(seconds * 100), 100, 0, 0)
        parts.append(_chunk(b"fcTL", struct.pack(">IIIIIHHBB", *control)))
        number += 1
        for kind, data in chunks:
            if kind != b"IDAT":
                continue
            if at == 0:
                parts.append(_chunk(b"IDAT", data))
            else:
                parts.append(_chunk(b"fdAT", struct.pack(">I", number) + data))
                number += 1
    return b"".join([*parts, _chunk(b"IEND", b"")])


def _chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    found = []
    at = 8
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        found.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + size]))
        at += 12 + size
    return found


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        take(demo_dataset(Path(folder) / "demo.lance"), PICTURE)
