"""Rows brushed, ordered, likened and selected, in a bare page over a dataset in files."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect
from pyarrow import parquet

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.support.markup_payloads import PAYLOADS
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui

# The colour in the middle of a small picture.
MIDDLE = """(canvas) => [...canvas.getContext("2d")
  .getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data].slice(0, 3)"""
BRUSHED = "score >= 0 AND score < 0.4 AND label = 'cat'"


def png(width: int, height: int, red: int) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    lines = (b"\0" + bytes((red, 90, 160)) * width) * height
    body = chunk(b"IDAT", zlib.compress(lines))
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


@pytest.fixture
def photos(tmp_path: Path) -> Any:
    """Rows with numbers, texts, pictures, bytes that only say that they are one, and vectors."""
    count = 400
    hostile = [text for text in PAYLOADS if "\0" not in text]
    vectors = np.arange(count * 4, dtype=np.float32)
    table = pa.table({
        "id": range(count),
        "score": np.linspace(-1, 1, count),
        "label": [["cat", "cat", "dog", hostile[0]][at % 4] for at in range(count)],
        "picture": [png(40, 30, at % 256) for at in range(count)],
        "fake": [text.encode() for text in hostile[:4]] * 100,
        "v": pa.FixedSizeListArray.from_arrays(vectors, 4),
    })  # fmt: skip
    return lance_nb.write_dataset(table, tmp_path / "photos.lance", max_rows_per_file=100)


def brush(page: Page, histogram: Locator, start: float, stop: float) -> None:
    """Drag over a part of a histogram."""
    expect(histogram.locator("svg")).to_be_visible()
    box = histogram.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * start, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * stop, box["y"] + 8, steps=3)
    page.mouse.up()


def test_brushes_become_the_filter_and_the_order_is_reported(
    open_widget: OpenWidget,
    screenshot: Screenshot,
    photos: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    widget = Explorer(photos)
    page = open_widget(widget).page
    rows = page.locator(".lnb-panel-rows")
    box = page.get_by_role("combobox", name="filter of rows")
    status = rows.locator(".lnb-grid-status")
    score = rows.get_by_role("columnheader", name="score")
    brush(page, score.locator(".lnb-profile"), 0.52, 0.68)
    expect(box).to_have_value("score >= 0 AND score < 0.4")
    expect(status).to_contain_text(f"of {photos.count_rows('score >= 0 AND score < 0.4')}")
    rows.get_by_role("button", name="Explain").click()
    reads = rows.locator(".lnb-filter-reads")
    expect(reads).to_contain_text("reads score of 400 rows in 4 fragment")
    label = rows.get_by_role("columnheader", name="label")
    brush(page, label.locator(".lnb-profile"), 0.05, 0.05)
    expect(box).to_have_value(BRUSHED)
    expect(status).to_contain_text(f"of {photos.count_rows(BRUSHED)}")
    # The bars of each column are those of all rows, filtered by the conditions of the others.
    chips = rows.locator(".lnb-brush-chip")
    expect(chips.locator("code")).to_have_text(["score >= 0 AND score < 0.4", "label = 'cat'"])
    expect(rows.locator(".lnb-filter-cross")).to_contain_text("histograms: every row")
    expect(score.locator(".lnb-profile-behind")).to_have_count(20)
    expect(score).to_have_attribute("title", re.compile("all 200 rows"))
    expect(label).to_have_attribute("title", re.compile("all 80 rows"))
    expect(rows.locator(".lnb-profile.lnb-brushed")).to_have_count(2)
    screenshot(page, "brushed")
    chips.nth(0).click()
    expect(box).to_have_value("label = 'cat'")
    expect(status).to_contain_text("of 200")
    brush(page, score.locator(".lnb-profile"), 0.52, 0.68)
    expect(rows.locator(".lnb-filter-said")).to_have_text("40 pass")
    expect(rows.locator(".lnb-filter-cross")).to_contain_text("histograms: every row")
    expect(rows.locator(".lnb-profile.lnb-brushed")).to_have_count(2)  # the heads are drawn again
    page.mouse.down()  # a brush that moves is shown in the other columns, and not applied yet
    box_of = score.locator(".lnb-profile").bounding_box()
    assert box_of is not None
    page.mouse.move(box_of["x"] + box_of["width"] * 0.99, box_of["y"] + 8, steps=4)
    expect(rows.locator(".lnb-filter-said")).to_contain_text("pass, by a sample")
    expect(box).to_have_value("label = 'cat' AND score >= 0 AND score < 0.4")
    page.mouse.move(box_of["x"] + box_of["width"] * 0.52, box_of["y"] + 8, steps=4)
    page.mouse.up()
    brush(page, label.locator(".lnb-profile"), 0.05, 0.05)  # the same bar again: no longer
    brush(page, score.locator(".lnb-profile"), 0.52, 0.68)
    brush(page, label.locator(".lnb-profile"), 0.05, 0.05)
    expect(box).to_have_value(BRUSHED)
    rows.locator(".lnb-grid").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("s")
    page.keyboard.press("s")
    expect(score).to_have_attribute("aria-sort", "descending")
    expect(rows.locator(".lnb-filter-plan")).to_contain_text(
        f"sorted over {photos.count_rows(BRUSHED)} rows"
    )
    rows.locator(".lnb-grid-number").nth(0).click()
    rows.locator(".lnb-grid-number").nth(2).click(modifiers=["Control"])
    page.keyboard.press("Control+Space")
    expect(status).to_contain_text("2 selected · 1 column selected")
    eventually(page, lambda: widget.selection.num_rows == 2)
    assert widget.selection.column_names == ["score"]
    assert widget.selection["score"].to_pylist() == sorted(
        widget.selection["score"].to_pylist(), reverse=True
    )
    screenshot(page, "sorted")
    monkeypatch.chdir(tmp_path)
    rows.get_by_role("button", name="Export…").click()
    page.get_by_label("file name").fill("two.csv")
    page.get_by_label("format").select_option("parquet")
    page.get_by_role("button", name="Export", exact=True).click()
    written = page.locator(".lnb-export-place")
    expect(written).to_contain_text("2 rows, ")
    expect(written).to_contain_text("export('two.parquet', row_ids=[")
    assert parquet.read_table("two.parquet")["score"].to_pylist() == sorted(
        widget.selection["score"].to_pylist(), reverse=True
    )
    screenshot(page, "exported")
    rows.get_by_role("button", name="unsorted").click()
    expect(rows.locator("[aria-sort]")).to_have_count(0)


def test_a_column_opens_with_exact_counts_and_filters_by_keyboard(
    open_widget: OpenWidget, screenshot: Screenshot, photos: Any
) -> None:
    page = open_widget(Explorer(photos), width=600, dark=True).page
    rows = page.locator(".lnb-panel-rows")
    expect(rows.locator(".lnb-profile-text")).to_have_count(1)
    rows.locator(".lnb-grid").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("c")
    pane = page.locator(".lnb-column-pane")
    expect(pane).to_contain_text("median")
    pane.get_by_role("button", name="Count again").click()
    expect(pane).to_contain_text("all 400 rows")
    pane.get_by_label("from").fill("0.5")
    pane.get_by_role("button", name="Filter", exact=True).click()
    box = page.get_by_role("combobox", name="filter of rows")
    expect(box).to_have_value("score >= 0.5 AND NOT isnan(score)")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 100")
    screenshot(page)
    pane.get_by_role("button", name="descending").click()
    expect(rows.locator("[aria-sort=descending]")).to_have_count(1)
    box.focus()
    page.keyboard.press("End")
    page.keyboard.type(" AND lab")
    expect(page.get_by_role("option", name="label")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.type("= 'dog'")
    page.keyboard.press("Enter")
    expect(box).to_have_value("score >= 0.5 AND NOT isnan(score) AND label = 'dog'")
    expect(rows.locator(".lnb-filter-plan")).to_contain_text("sorted over 25 rows")


def test_the_mark_of_an_order_cuts_no_name(open_widget: OpenWidget, tmp_path: Path) -> None:
    made = lance_nb.write_dataset(pa.table({"measured_in_metres": [3, 1, 2]}), tmp_path / "s.lance")
    page = open_widget(Explorer(made)).page
    rows = page.locator(".lnb-panel-rows")
    expect(rows.locator(".lnb-cell").first).to_have_text("3")
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("s")
    expect(rows.locator(".lnb-cell").first).to_have_text("1")
    name = rows.locator("[aria-sort=ascending] b")
    assert name.evaluate("(name) => name.scrollWidth - name.clientWidth") == 0


def test_pictures_are_drawn_from_bytes_and_vectors_have_neighbours(
    open_widget: OpenWidget, screenshot: Screenshot, photos: Any
) -> None:
    page = open_widget(Explorer(photos), width=1600).page
    rows = page.locator(".lnb-panel-rows")
    picture = rows.locator(".lnb-cell.lnb-look-binary").first
    expect(picture).to_have_attribute("title", re.compile("PNG 40 × 30 · "))
    expect(picture).to_have_text("")
    small = rows.locator(".lnb-grid-row:not([hidden]) canvas.lnb-thumb")
    eventually(page, lambda: small.count() >= rows.locator(".lnb-grid-row:not([hidden])").count())
    assert small.first.evaluate(MIDDLE) == [0, 90, 160]
    expect(rows.locator(".lnb-cell:has-text('29 B') .lnb-thumb")).to_have_count(0)
    expect(rows.locator("i.lnb-thumb:visible")).to_have_count(0)
    line = rows.locator(".lnb-grid-row:not([hidden])").first
    heights = []
    for _ in range(2):
        expect(small.first).to_be_visible()
        heights.append((line.bounding_box() or {})["height"])
        rows.get_by_role("button", name="large rows").click()
    assert heights == [60, 28]
    expect(small.first).to_be_visible()
    picture.dblclick()
    drawn = rows.locator(".lnb-media img")
    expect(drawn).to_have_js_property("naturalWidth", 40)
    box = drawn.bounding_box()
    assert box is not None
    assert (box["width"], box["height"]) == (40, 30)
    expect(drawn).to_be_in_viewport(ratio=1)
    expect(rows.locator(".lnb-peek pre")).to_have_count(0)  # bytes would take its room
    screenshot(page, "picture")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Enter")
    whole = page.locator(".lnb-row-detail")
    expect(whole.locator(".lnb-media img")).to_have_js_property("naturalWidth", 40)
    expect(whole).not_to_contain_text("89 50 4e 47")
    screenshot(page, "row")
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(rows.locator(".lnb-peek")).to_contain_text("3c 73 63 72 69 70 74")
    expect(rows.locator(".lnb-media")).to_have_count(0)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    expect(rows.locator(".lnb-filter-plan")).to_contain_text(
        "10 rows nearest by l2, exact, of all 400"
    )
    expect(rows.get_by_role("columnheader", name="_distance")).to_be_visible()
    expect(rows.locator(".lnb-grid-row:not([hidden]) .lnb-cell").first).to_have_text("0")
    here = rows.locator(".lnb-cell.lnb-here")
    expect(here).to_have_text("0")  # the keyboard stands at the nearest, in sight
    expect(here).to_be_in_viewport(ratio=1)
    screenshot(page, "near")
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    expect(rows.locator(".lnb-filter-plan")).to_contain_text("to row 2 by v")
    expect(here).to_have_text("0")
    rows.get_by_label("how many neighbours").fill("3")
    rows.get_by_label("metric").select_option("cosine")
    expect(rows.locator(".lnb-filter-plan")).to_contain_text("3 rows nearest by cosine")
    rows.get_by_role("button", name="back to all rows").click()
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 400")
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("?")
    expect(page.locator(".lnb-keys")).to_contain_text("rows like this vector")
