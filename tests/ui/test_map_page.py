"""The map of embeddings in a bare page: points, colours, a selection, and two versions."""

from __future__ import annotations

import io
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
ROWS = 3000
KINDS = ("cat", "dog", "bird", "fish")
WORDS = (("whisker", "purr", "sofa"), ("leash", "bark", "park"), ("feather", "nest", "song"),
         ("scales", "reef", "tank"))  # fmt: skip
OTHERS = ("a picture", "one of many", "in the morning", "seen today", "at noon", "again", "new")


def _png(colour: tuple[int, int, int]) -> bytes:
    """Return a picture of 8 x 8 pixels of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    lines = (b"\0" + bytes(colour) * 8) * 8
    out = io.BytesIO()
    out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)))
    out.write(chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
    return out.getvalue()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Four groups of points; then 200 rows go, 150 move, 90 get another label, 100 come."""
    random = np.random.default_rng(5)
    kind = np.arange(ROWS) % 4
    middles = random.normal(size=(4, 16)) * 6
    vectors = (middles[kind] + random.normal(size=(ROWS, 16))).astype(np.float32)
    colours = [(200, 80, 60), (60, 120, 200), (80, 170, 90), (190, 160, 60)]
    images = [_png(one) for one in colours]

    def table(ids: Any, kinds: Any, values: Any) -> pa.Table:
        return pa.table(
            {
                "id": ids,
                "label": pa.array([KINDS[one] for one in kinds]),
                "caption": [
                    f"{WORDS[kind][int(at) % 3]} {OTHERS[int(at) % 7]} {at}"
                    for at, kind in zip(ids, kinds, strict=True)
                ],
                "price": np.asarray(ids, np.float64) / 7,
                "image": pa.array([images[one] for one in kinds], pa.binary()),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 16),
            }
        )

    path = str(tmp_path_factory.mktemp("map") / "animals.lance")
    ds = lance_nb.write_dataset(
        table(np.arange(ROWS), kind, vectors), path, enable_stable_row_ids=True
    )
    changed = np.arange(400, 640)
    moved, kinds = vectors[changed].copy(), kind[changed].copy()
    moved[:150] += 5
    kinds[150:] = (kinds[150:] + 1) % 4
    merge = ds.merge_insert("id").when_matched_update_all()
    merge.execute(table(changed, kinds, moved))
    ds = lance_nb.dataset(path)
    ds.delete("id < 200")
    new = (middles[0] + random.normal(size=(100, 16))).astype(np.float32)
    ds.insert(table(np.arange(ROWS, ROWS + 100), np.zeros(100, np.int64), new))
    return lance_nb.dataset(path)


# A browser without a graphics card computes WebGL on the processor; here it has another name.
NAMED_AS_CARD = """
() => {
  const plain = WebGLRenderingContext.prototype.getParameter;
  WebGLRenderingContext.prototype.getParameter = function (which) {
    const value = plain.call(this, which);
    return typeof value === "string" ? value.replace(/SwiftShader|llvmpipe/g, "Card") : value;
  };
}
"""


def open_map(
    open_widget: OpenWidget, dataset: Any, *, webgl: bool = False, **how: Any
) -> tuple[Page, Locator]:
    page = open_widget(Explorer(dataset, height=520), **how).page
    if webgl:
        page.evaluate(NAMED_AS_CARD)
    page.get_by_role("tab", name="Map").click()
    panel = page.locator(".lnb-panel-map")
    expect(panel.locator(".lnb-map-status")).to_contain_text("2,900 points of 2,900 rows")
    return page, panel


def picture(panel: Locator) -> bytes:
    """Return what the map looks like; reading its pixels in the page would stall the driver."""
    return panel.get_by_role("application").screenshot()


@pytest.mark.parametrize("dark", [False, True])
def test_rows_are_points_with_colours_and_labels(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any, dark: bool
) -> None:
    page, panel = open_map(open_widget, dataset, webgl=dark, dark=dark, width=1300)
    expect(panel.get_by_role("table", name="label")).to_contain_text("dog")
    expect(panel.get_by_label("colour")).to_have_value("label")
    eventually(page, lambda: len(picture(panel)) > 9000)
    canvas = panel.get_by_role("application")
    canvas.focus()
    page.keyboard.press("Enter")
    tip = panel.locator(".lnb-map-tip")
    expect(tip).to_contain_text("price")
    expect(tip.locator("canvas")).to_have_js_property("width", 8)
    screenshot(page)
    expect(canvas).to_have_attribute("data-renderer", "WebGL" if dark else "canvas")
    before = picture(panel)
    for _ in range(3):
        page.keyboard.press("+")
    eventually(page, lambda: picture(panel) != before)
    expect(canvas).to_have_attribute("data-drawn", "2900")
    panel.get_by_label("colour").select_option("price")
    expect(panel.locator(".lnb-map-numbers")).to_contain_text("price")
    before = picture(panel)
    panel.get_by_label("size by").select_option("price")
    expect(panel.locator(".lnb-map-sizes")).to_contain_text("price, 32.7129 to 438.573")
    eventually(page, lambda: picture(panel) != before)
    page.keyboard.press("0")
    screenshot(page, "sizes")


def test_an_outline_filters_the_grid(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page, panel = open_map(open_widget, dataset, width=1300)
    eventually(page, lambda: len(picture(panel)) > 9000)
    panel.get_by_role("button", name="Lasso").click()
    box = panel.get_by_role("application").bounding_box()
    assert box is not None
    left, top, width, height = (box[side] for side in ("x", "y", "width", "height"))
    page.mouse.move(left + 4, top + 4)
    page.mouse.down()
    for x, y in ((0.5, 0.02), (0.5, 0.98), (0.01, 0.98)):
        page.mouse.move(left + x * width, top + y * height, steps=6)
    page.mouse.up()
    status = panel.locator(".lnb-map-status")
    expect(status).to_contain_text("rows in the outline on the map")
    chosen = (status.text_content() or "").split()[0]
    screenshot(page)
    before = picture(panel)
    panel.get_by_role("button", name="Zoom to them").click()
    eventually(page, lambda: picture(panel) != before)
    panel.get_by_role("button", name="Show in Rows").click()
    rows = page.locator(".lnb-panel-rows")
    expect(rows.locator(".lnb-grid-status")).to_contain_text(f"of {chosen}")
    expect(rows).to_contain_text("in the outline on the map")
    rows.get_by_role("button", name="Back to all rows").click()
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 2,900")
    page.get_by_role("tab", name="Map").click()
    expect(status).to_contain_text("2,900 points of")


def test_two_versions_show_what_came_went_moved_and_got_another_label(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page, panel = open_map(open_widget, dataset, width=1300)
    page.get_by_role("option", name="main version 1,").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")
    page.get_by_role("option", name="main version 4,").click(modifiers=["Shift"])
    expect(page.locator(".lnb-here-ref")).to_have_text("main:4")
    page.get_by_role("tab", name="Map").click()
    panel.get_by_role("button", name="A → B").click()
    table = panel.get_by_role("table", name="main:1 → main:4")
    for words in ("+ arrived100", "− removed200", "→ moved150", "≠ relabelled90"):
        expect(table).to_contain_text(words)
    expect(panel.locator(".lnb-map-status")).to_contain_text("stable row ids")
    by_label = panel.get_by_role("table", name="label")
    # Rows; arrived, removed, moved, relabelled.
    expect(by_label.get_by_role("row", name="cat")).to_contain_text("cat801100503823")
    expect(by_label.get_by_role("columnheader", name="relabelled")).to_have_text("≠")
    screenshot(page)
    table.get_by_role("button", name="→ moved").click()
    status = page.locator(".lnb-panel-rows .lnb-grid-status")
    expect(status).to_contain_text("of 150")
    page.get_by_role("tab", name="Map").click()
    table.get_by_role("button", name="− removed").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")
    expect(status).to_contain_text("of 200")


def test_a_layout_by_neighbours_is_compared(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    pytest.importorskip("manifolds_rs", reason="the extra maps is not installed")
    page, panel = open_map(open_widget, dataset, width=1300)
    panel.get_by_label("layout").select_option("neighbours")
    status = panel.locator(".lnb-map-status")
    expect(status).to_contain_text("UMAP of 2,900 vectors of vector")
    panel.get_by_role("button", name="A → B").click()
    table = panel.get_by_role("table", name="main:3 → main:4")
    expect(table).to_contain_text("+ arrived100")
    expect(table).to_contain_text("→ moved0")
    screenshot(page)


def test_coordinates_are_kept_as_a_column_on_a_branch(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page, panel = open_map(open_widget, dataset, width=1300)
    page.get_by_role("button", name="Allow changes").click()
    panel.get_by_role("button", name="Keep as column…").click()
    panel.get_by_label("branch", exact=True).fill("with-map")
    screenshot(page, "form")
    panel.get_by_role("button", name="Stage the column").click()
    stage = page.locator(".lnb-panel-stage")
    expect(stage).to_contain_text("map_xy")
    screenshot(page, "card")
    stage.get_by_role("button", name="Commit", exact=True).click()
    expect(stage).to_contain_text("committed")
    page.get_by_role("option", name="with-map version").last.click()
    expect(page.locator(".lnb-here-ref")).to_contain_text("with-map:")
    page.get_by_role("tab", name="Map").click()
    panel.get_by_label("layout").select_option("column:map_xy")
    status = panel.locator(".lnb-map-status")
    expect(status).to_contain_text("coordinates kept in the column map_xy")
    screenshot(page, "again")


def test_a_version_without_vectors_has_no_map(open_widget: OpenWidget, tmp_path: Path) -> None:
    plain = lance_nb.write_dataset(pa.table({"id": [1, 2]}), str(tmp_path / "plain.lance"))
    page = open_widget(Explorer(plain)).page
    expect(page.get_by_role("tab", name="Rows")).to_be_visible()
    expect(page.get_by_role("tab", name="Map")).to_be_hidden()
