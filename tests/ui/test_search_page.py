"""Words searched for in a dataset that pylance wrote: by its index, and by a scan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.test_stage_page import Stage
from tests.ui.version_box import go_to

pytestmark = pytest.mark.ui
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def notes(tmp_path: Path) -> Any:
    """Rows whose texts have words of a small vocabulary; a few have a rare one, late in a text."""
    rng = np.random.default_rng(4)
    words = np.array(["river", "stone", "cloud", HOSTILE, "the", "old", "wood"])
    texts = [" ".join(rng.choice(words, 6)) for _ in range(400)]
    texts[300] = "plain " * 60 + f"a rare Heron stood in the river {HOSTILE}"
    texts[20] = "heron, heron and herons"
    table = pa.table({
        "id": range(400),
        "text": texts,
        "note": ["Heron" if at == 7 else f"n{at % 5}" for at in range(400)],
        "score": rng.integers(0, 50, 400),
    })  # fmt: skip
    lance = require_pylance()
    dataset = lance.write_dataset(table, str(tmp_path / "notes.lance"))
    dataset.create_scalar_index("text", "INVERTED")
    return lance_nb.dataset(str(tmp_path / "notes.lance"))


@pytest.mark.parametrize("dark", [False, True])
def test_rows_are_found_by_words_with_an_index_and_without(
    open_widget: OpenWidget, screenshot: Screenshot, notes: Any, dark: bool
) -> None:
    widget = Explorer(notes, height=620)
    page = open_widget(widget, width=1200, dark=dark).page
    rows = page.locator(".lnb-panel-rows")
    box = rows.get_by_label("search texts for words")
    filter_box = rows.get_by_label("filter of rows, SQL")
    page.set_viewport_size({"width": 520, "height": 700})
    assert filter_box.evaluate("(box) => box.clientWidth") > 180  # it has a line of its own
    page.set_viewport_size({"width": 1200, "height": 700})
    heads = rows.locator(".lnb-grid-column:visible b")
    plan = rows.locator(".lnb-filter-plan")
    marks = rows.locator(".lnb-grid mark")
    line = page.locator(".lnb-code code").first
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("f")
    expect(box).to_be_focused()
    page.keyboard.type("herons")
    page.keyboard.press("Enter")
    expect(plan).to_contain_text("2 rows by the index text_idx on text, in ")
    expect(plan).to_contain_text("not searched, no index: note")
    expect(heads.first).to_have_text("_score")
    expect(marks).to_have_text(["heron", "heron", "herons", "Heron"])
    screenshot(page, "index")
    made = eval(line.inner_text(), {"lance_nb": lance_nb})  # noqa: S307
    assert made["id"].to_pylist() == [20, 300]
    found = rows.locator(".lnb-grid").filter(has_text="a rare Heron")
    expect(found).to_have_count(1)  # a long text begins near the word
    rows.get_by_label("filter of rows, SQL").fill("id > 100")
    rows.get_by_label("filter of rows, SQL").press("Enter")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 1")
    rows.get_by_label("clear the filter").click()
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 2")
    rows.get_by_label("columns to search").select_option("all columns of texts")
    expect(plan).to_contain_text("found in text, note: every text scanned, no index, so no score")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 1")
    box.fill('"heron"')
    box.press("Enter")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 3")
    expect(heads.first).to_have_text("id")
    expect(marks.filter(has_text="Heron").first).to_be_visible()
    expect(rows.locator(".lnb-profile svg").first).to_be_visible()
    screenshot(page, "scan")
    made = eval(line.inner_text(), {"lance_nb": lance_nb})  # noqa: S307
    assert made["id"].to_pylist() == [7, 20, 300]
    rows.locator(".lnb-grid").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(rows.locator(".lnb-peek mark")).to_have_text(["heron", "heron"])
    rows.locator(".lnb-peek").get_by_role("button", name="More like this").click()
    expect(plan).to_contain_text("by the index text_idx on text")
    expect(box).to_have_value("heron")
    expect(rows.locator(".lnb-grid-row").first).to_contain_text("heron, heron and herons")
    screenshot(page, "alike")
    assert page.locator(".lnb-panel-rows img").count() == 0
    box.focus()
    page.keyboard.press("Escape")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 400")


def test_a_search_without_an_index_offers_to_build_one(
    open_widget: OpenWidget, screenshot: Screenshot, notes: Any
) -> None:
    page = open_widget(Explorer(notes, height=760), width=1200).page
    rows = page.locator(".lnb-panel-rows")
    rows.get_by_label("search texts for words").fill("n3")
    rows.get_by_label("search texts for words").press("Enter")
    rows.get_by_label("columns to search").select_option("in note")
    rows.get_by_role("button", name="Build an index").click()
    Stage(page).unlock()
    panel = page.locator(".lnb-panel-stage")
    panel.get_by_role("button", name="Stage", exact=True).click()
    card = panel.locator(".lnb-sg-card").first
    expect(card).to_contain_text("INVERTED index note_idx on note: reads 400 rows, ")
    screenshot(page, "card")
    card.get_by_role("button", name="Commit").click()
    expect(card).to_contain_text("was built, as main:3")
    newest = lance_nb.dataset(notes.uri)
    assert newest.count_rows() == 400
    assert {one.name for one in newest.describe_indices()} == {"text_idx", "note_idx"}


def test_a_search_is_kept_in_other_versions_and_in_the_saved_picture(
    open_widget: OpenWidget, screenshot: Screenshot, notes: Any
) -> None:
    widget = Explorer(notes, height=620)
    page = open_widget(widget, width=1000).page
    rows = page.locator(".lnb-panel-rows")
    box = rows.get_by_label("search texts for words")
    box.fill("heron ~")
    box.press("Enter")
    expect(rows.locator(".lnb-filter-plan")).to_contain_text("by the index text_idx")
    go_to(page, "1")
    # Version 1 has no index.
    expect(rows.locator(".lnb-filter-plan")).to_contain_text("every text scanned, no index")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 3")
    rows.get_by_role("columnheader", name="id int64").locator(".lnb-sort").click()
    expect(rows.locator("[aria-sort=ascending]")).to_have_count(1)
    expect(rows.locator(".lnb-grid mark").first).to_be_visible()
    box.fill('" "')
    box.press("Enter")
    expect(rows.locator(".lnb-filter-problem")).to_contain_text("letters or digits")
    expect(rows.locator(".lnb-grid-status")).to_contain_text("of 3")
    screenshot(page)
