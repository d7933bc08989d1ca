"""The wall of pictures in a bare page: tiles, one of them large, lists, and what is staged."""

from __future__ import annotations

import base64
import io
import wave
import zlib
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui
ROWS = 600
KINDS = ("cat", "dog", "bird", "fish")
COLOURS = ((200, 80, 60), (60, 120, 200), (80, 170, 90), (190, 160, 60))


def png(colour: tuple[int, int, int], number: int) -> bytes:
    """Return a picture of 24 x 16 pixels: a square on a colour, elsewhere for each number."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    pixels = np.empty((16, 24, 3), np.uint8)
    pixels[:] = colour
    x, y = number % 18, number // 18 % 10
    pixels[y : y + 6, x : x + 6] = 250
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    out = io.BytesIO()
    out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", pack(">IIBBBBB", 24, 16, 8, 2, 0, 0, 0)))
    out.write(chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
    return out.getvalue()


def table(ids: Any, kinds: Any, vectors: Any, shift: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": ids,
            "label": pa.array([KINDS[one] for one in kinds]),
            "image": pa.array(
                [png(COLOURS[kind], int(at) + shift) for at, kind in zip(ids, kinds, strict=True)],
                pa.binary(),
            ),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 16),
        }
    )


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Four kinds; 20 rows are near copies, 6 have a wrong label; then 5 go, 4 change, 3 come."""
    random = np.random.default_rng(5)
    kind = np.arange(ROWS) % 4
    middles = random.normal(size=(4, 16)) * 4
    vectors = (middles[kind] + 2 * random.normal(size=(ROWS, 16))).astype(np.float32)
    vectors[580:] = vectors[:20] + np.float32(0.001)
    labels = kind.copy()
    labels[100:106] = (labels[100:106] + 1) % 4
    path = str(tmp_path / "animals.lance")
    ds = lance_nb.write_dataset(
        table(np.arange(ROWS), labels, vectors), path, enable_stable_row_ids=True
    )
    some = np.arange(300, 304)
    merge = ds.merge_insert("id").when_matched_update_all()
    merge.execute(table(some, labels[some], vectors[some], 40))
    ds = lance_nb.dataset(path)
    new = (middles[0] + random.normal(size=(3, 16))).astype(np.float32)
    ds.insert(table(np.arange(ROWS, ROWS + 3), np.zeros(3, np.int64), new))
    ds.delete("id IN (200, 201, 202, 203, 204)")
    return lance_nb.dataset(path)


def open_wall(open_widget: OpenWidget, dataset: Any, **how: Any) -> tuple[Page, Locator]:
    page = open_widget(Explorer(dataset, height=560), **how).page
    page.get_by_role("tab", name="Pictures").click()
    panel = page.locator(".lnb-panel-pictures")
    expect(panel.locator(".lnb-wall-status")).to_have_text("598 rows")
    return page, panel


def shown(panel: Locator, caption: str) -> Locator:
    """Return the tiles with a caption whose pictures are drawn."""
    return panel.get_by_role("option", name=caption, exact=True).filter(
        has=panel.page.locator("canvas")
    )


@pytest.mark.parametrize("dark", [False, True])
def test_pictures_are_tiles_that_open_large(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any, dark: bool
) -> None:
    page, panel = open_wall(open_widget, dataset, dark=dark, width=1300)
    eventually(page, lambda: shown(panel, "cat").count() >= 4)
    wall = panel.get_by_role("listbox")
    screenshot(page)
    wall.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(panel.locator(".lnb-wall-tile[aria-selected=true]")).to_have_count(1)
    page.keyboard.press("Enter")
    large = panel.get_by_role("dialog", name="dog")
    expect(large.locator("img")).to_be_visible()
    expect(page.locator(".lnb-row-detail")).to_contain_text("label")
    screenshot(page, "large")
    page.keyboard.press("ArrowRight")
    expect(panel.get_by_role("dialog", name="bird")).to_be_visible()
    page.keyboard.press("Escape")
    expect(wall).to_be_focused()
    page.keyboard.press("End")
    eventually(page, lambda: shown(panel, "cat").count() >= 3)
    page.get_by_role("tab", name="Rows").click()
    expect(page.locator(".lnb-grid-status")).to_contain_text("1 selected")


def test_rows_are_grouped_compared_and_looked_for(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page, panel = open_wall(open_widget, dataset, width=1300)
    mode, status = panel.get_by_label("show"), panel.locator(".lnb-wall-status")
    mode.select_option("groups")
    panel.get_by_label("by", exact=True).select_option("label")
    expect(status).to_have_text("4 groups by label")
    eventually(page, lambda: shown(panel, "bird").count() + shown(panel, "cat").count() >= 4)
    screenshot(page)

    mode.select_option("changes")
    expect(status).to_contain_text("0 arrived, 5 removed, 0 changed")
    screenshot(page, "changes")

    mode.select_option("duplicates")
    expect(status).to_contain_text("40 rows in 20 groups of near duplicates by vector")
    eventually(page, lambda: shown(panel, "cat").count() >= 2)
    screenshot(page, "duplicates")

    mode.select_option("rows")
    eventually(page, lambda: shown(panel, "dog").count() >= 2)
    shown(panel, "dog").first.click()
    panel.get_by_role("button", name="More like this").click()
    expect(status).to_contain_text("100 rows like row 1")
    eventually(page, lambda: shown(panel, "dog").count() >= 10)
    screenshot(page, "alike")


def test_duplicates_and_doubts_are_staged(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page, panel = open_wall(open_widget, dataset, width=1300)
    mode, status = panel.get_by_label("show"), panel.locator(".lnb-wall-status")
    page.get_by_role("button", name="Allow changes").click()
    mode.select_option("doubts")
    expect(status).to_contain_text("6 rows whose neighbours mostly have another label")
    expect(panel.locator(".lnb-wall-title").first).to_contain_text("→")
    eventually(page, lambda: panel.locator("canvas").count() >= 6)
    screenshot(page, "doubts")
    mode.select_option("duplicates")
    panel.get_by_role("button", name="Stage: keep the first of 20 groups").click()
    stage = page.locator(".lnb-panel-stage")
    expect(stage).to_contain_text("598 → 578")
    screenshot(page, "card")


# Records some frames of one colour, as the browser makes films.
FILM = """
async ([red, green, blue]) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 48 });
  const pen = canvas.getContext("2d");
  const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: "video/webm" });
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((resolve) => { recorder.onstop = resolve; });
  recorder.start();
  for (let at = 0; at < 8; at += 1) {
    pen.fillStyle = `rgb(${red}, ${green}, ${blue})`;
    pen.fillRect(0, 0, 64, 48);
    pen.fillStyle = "#fff";
    pen.fillRect(8 + at, 16, 12, 12);
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  recorder.stop();
  await ended;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
}
"""
COLOUR_OF_TILE = """
(canvas) => [...canvas.getContext("2d").getImageData(2, 2, 1, 1).data].slice(0, 3)
"""


def sound() -> bytes:
    """Return a tone of a fifth of a second."""
    out = io.BytesIO()
    with wave.open(out, "wb") as writer:
        writer.setparams((1, 2, 8000, 0, "NONE", ""))
        tone = np.sin(np.arange(1600) / 8000 * 2 * np.pi * 440) * 9000
        writer.writeframes(tone.astype("<i2").tobytes())
    return out.getvalue()


@pytest.mark.parametrize("dark", [False, True])
def test_films_show_their_first_picture_and_sounds_can_be_played(
    page: Page, open_widget: OpenWidget, screenshot: Screenshot, tmp_path: Path, dark: bool
) -> None:
    film = base64.b64decode(page.evaluate(FILM, [200, 40, 60]))
    values = [film, sound(), film[:60], film[:200].ljust(5_000_000, b"\0"), None]
    names = ["film", "tone", "cut short", "large", "nothing"]
    blob = lance_nb.blob_array(values) if dark else pa.array(values, pa.binary())
    field = lance_nb.blob_field("clip") if dark else pa.field("clip", pa.binary())
    rows = pa.table([names, blob], schema=pa.schema([pa.field("name", pa.string()), field]))
    clips = lance_nb.write_dataset(rows, str(tmp_path / "clips.lance"))
    opened = open_widget(Explorer(clips, height=520), dark=dark, width=1300).page
    opened.get_by_role("tab", name="Pictures").click()
    panel = opened.locator(".lnb-panel-pictures")
    panel.get_by_label("caption").select_option("name")
    tile = panel.get_by_role("option", name="film", exact=True)
    expect(tile.locator(".lnb-wall-play")).to_be_visible()
    red, green, blue = tile.locator("canvas").evaluate(COLOUR_OF_TILE)
    assert (abs(red - 200) < 30, abs(green - 40) < 30, abs(blue - 60) < 30) == (True,) * 3
    for name, words in (
        ("tone", "♪ WAV"),
        ("cut short", "WebM · cannot be decoded"),
        ("large", "WebM · too large for a tile"),
        ("nothing", "null"),
    ):
        expect(panel.get_by_role("option", name=name, exact=True)).to_contain_text(words)
    screenshot(opened)
    tile.click()
    large = panel.get_by_role("dialog", name="film")
    video = large.locator("video")
    expect(video).to_have_js_property("videoWidth", 64)
    expect(video).to_have_js_property("paused", True)
    assert video.evaluate("(one) => one.src").startswith("blob:")
    screenshot(opened, "large")
    opened.keyboard.press("ArrowRight")
    tone = panel.get_by_role("dialog", name="tone").locator("audio")
    expect(tone).to_have_js_property("readyState", 4)
    expect(tone).to_have_js_property("paused", True)
    assert abs(tone.evaluate("(one) => one.duration") - 0.2) < 0.01
    screenshot(opened, "sound")
