"""The tab of changes and the life of a row in a bare page, over datasets that we wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.changes.widget import DiffView
from lance_nb.shown_text import visible
from tests.support.explorer_datasets import changed_dataset, scores
from tests.support.fake_dataset import small_dataset
from tests.support.markup_payloads import PAYLOADS
from tests.support.requirements import require_pylance
from tests.ui.bare_page import BarePage, OpenWidget, Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui
PANEL = ".lnb-panel-changes"


@pytest.fixture(scope="module")
def dataset() -> Any:
    return changed_dataset()


@pytest.fixture(scope="module")
def plain() -> Any:
    return changed_dataset("plain.lance", stable=False)


def open_changes(open_widget: OpenWidget, dataset: Any, **how: Any) -> BarePage:
    bare = open_widget(Explorer(dataset), **how)
    bare.page.get_by_role("tab", name="Changes", exact=True).click()
    return bare


def compare_with(page: Page, ref: str) -> None:
    box = page.get_by_role("combobox", name="compare with a version")
    box.fill(ref)
    box.press("Enter")


def chip(page: Page, name: str) -> Locator:
    return page.get_by_role("tablist", name="levels of the difference").get_by_role(
        "tab", name=name
    )


def rows_of(page: Page, level: str) -> Locator:
    return page.get_by_role("grid", name=level).locator(".lnb-grid-row:not([hidden])")


ROWS = "rows that differ"


def test_rows_and_cells_stand_tinted_with_old_and_new_values(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    bare = open_changes(open_widget, dataset)
    page = bare.page
    expect(rows_of(page, "settings that differ")).to_have_count(1)  # 6 → 7: only a setting
    asked = len(bare.requests)
    compare_with(page, "1")
    expect(chip(page, "Rows")).to_contain_text("+20 −3 ~2")
    kinds_asked = [one["type"] for one in bare.requests[asked:]]
    assert "changes.place" in kinds_asked
    assert "changes.counts" not in kinds_asked  # the numbers came with the place
    lines = rows_of(page, ROWS)
    expect(lines.first.locator(".lnb-grid-number")).to_have_text("~")
    label = lines.first.locator(".lnb-look-changed").first
    expect(label.locator("del")).to_have_text("bird")
    expect(label.locator("ins")).to_have_text("fox")
    expect(page.get_by_role("grid", name=ROWS).locator(".lnb-sheet-sub em").nth(2)).to_have_text(
        "~ 2"
    )
    expect(page.locator(".lnb-ch-badge")).to_have_text("✓ by stable row id")
    expect(page.locator(".lnb-code-line")).to_contain_text(", 1, 7).rows().read_all()")
    screenshot(page, "all")
    kinds = page.get_by_role("group", name="kinds of changes")
    kinds.get_by_role("button", name="− removed").click()
    expect(lines).to_have_count(3)
    expect(lines.first.locator(".lnb-grid-number")).to_have_text("−")
    kinds.get_by_role("button", name="+ added").click()
    expect(page.locator(".lnb-ch-level:not([hidden]) .lnb-ch-foot")).to_contain_text("20 rows")
    page.get_by_role("button", name="%lance").click()
    expect(page.locator(".lnb-code-line")).to_have_text("%lance diff main:1..main:7 --rows")
    screenshot(page, "added")


def test_changed_words_are_marked_and_one_count_is_told_everywhere(
    open_widget: OpenWidget, screenshot: Screenshot, tmp_path: Path
) -> None:
    pylance = require_pylance()
    uri, same = str(tmp_path / "notes.lance"), "the same words of a long text " * 150
    notes = pa.table({"id": [1, 2, 3, 4], "note": [f"{same}red cat", "a b c d", "x", "y"]})
    pylance.write_dataset(notes, uri)
    changed = pa.table({"id": [1, 2], "note": [f"{same}blue cat", "a b new d"]})
    pylance.dataset(uri).merge_insert("id").when_matched_update_all().execute(changed)
    pylance.dataset(uri).delete("id = 4")
    page = open_changes(open_widget, lance_nb.dataset(uri)).page
    page.locator(".lnb-tl-bar").first.click()
    page.locator(".lnb-tl-bar").last.click(modifiers=["Shift"])
    readout = page.locator(".lnb-tl-readout")
    readout.hover()  # not over a bar, which would be told instead
    expect(chip(page, "Rows")).to_contain_text("+2 −3")
    expect(readout).to_contain_text("2 versions · +2 −3 rows")
    page.get_by_role("button", name="Change", exact=True).click()
    page.get_by_role("group", name="columns of the key").get_by_role("button", name="id").click()
    page.locator(".lnb-key > .lnb-button").click()
    expect(chip(page, "Rows")).to_contain_text("−1 ~2")
    expect(readout).to_contain_text("2 versions · −1 ~2 rows")
    expect(page.locator(".lnb-ch-level:not([hidden]) .lnb-ch-foot")).to_contain_text("3 rows")
    words = rows_of(page, ROWS).first.locator(".lnb-words")
    expect(words.locator("del")).to_have_text("red")
    expect(words.locator("ins")).to_have_text("blue")
    words.click()
    detail = page.get_by_role("region", name="details").locator(".lnb-cd-words")
    expect(detail.locator("del")).to_have_text("red")
    expect(detail.locator("ins")).to_have_text("blue")
    screenshot(page)
    page.locator('[data-level="fragments"]').click()
    fragment = rows_of(page, "fragments that differ").first
    expect(fragment.get_by_text("0 → 3", exact=True)).to_be_visible()
    expect(fragment.locator("ins", has_text="3")).to_have_count(0)


def test_every_level_opens_with_its_details(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_changes(open_widget, dataset, width=1600, dark=True).page
    compare_with(page, "tag:start")
    detail = page.get_by_role("region", name="details")
    chip(page, "Schema").click()
    expect(rows_of(page, "columns that differ")).to_contain_text(["half"])
    chip(page, "Transactions").click()
    lines = rows_of(page, "transactions between the versions")
    expect(lines).to_have_count(6)
    lines.nth(1).click()
    expect(detail.locator(".lnb-operation")).to_contain_text("Rewrite")
    expect(detail.locator(".lnb-entries")).to_contain_text("read version")
    screenshot(page, "transactions")
    chip(page, "Fragments").click()
    fragments = rows_of(page, "fragments that differ")
    expect(fragments).to_have_count(3)
    fragments.last.click()
    expect(detail.locator(".lnb-cd-file")).to_contain_text("id, score, label, half")
    expect(detail.get_by_role("button", name="open in Storage")).to_be_visible()
    screenshot(page, "fragments")
    chip(page, "Settings").click()
    expect(rows_of(page, "settings that differ")).to_contain_text(["teamvision"])
    chip(page, "Indices").click()
    expect(page.locator(f"{PANEL} .lnb-empty:visible")).to_have_text("No index segment differs.")
    chip(page, "Drift").click()
    cards = page.locator(".lnb-dr-card")
    expect(cards).to_have_count(3)
    expect(cards.first).to_contain_text("moved much")
    expect(page.locator(".lnb-dr-legend")).to_have_text("main:1main:7")
    screenshot(page, "drift")


def test_a_row_has_a_biography_and_a_place(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_changes(open_widget, dataset).page
    compare_with(page, "1")
    detail = page.get_by_role("region", name="details")
    grid = page.get_by_role("grid", name=ROWS)
    expect(rows_of(page, ROWS).nth(1)).to_contain_text("11.25")
    grid.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(detail.locator(".lnb-cd-kind")).to_contain_text("changedmain:7 · row id 45")
    expect(detail.locator(".lnb-cd-old").first).to_contain_text("cat")
    screenshot(page, "row")
    detail.get_by_role("button", name="Row history").click()
    steps = detail.locator(".lnb-bio-step")
    expect(steps).to_have_count(4)
    expect(steps.nth(0)).to_contain_text("moved by compaction")
    expect(steps.nth(2)).to_contain_text("11.25 → 111.25")
    expect(detail.locator(".lnb-bio-status")).to_contain_text("4 steps, the complete history")
    expect(detail.locator(".lnb-bio-by")).to_contain_text("followed by stable row id")
    screenshot(page, "life")
    steps.nth(2).get_by_role("button", name="main:2").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")


def test_rows_lead_to_the_grid_and_the_grid_to_biographies(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_changes(open_widget, dataset).page
    compare_with(page, "1")
    detail = page.get_by_role("region", name="details")
    page.get_by_role("group", name="kinds of changes").get_by_role(
        "button", name="− removed"
    ).click()
    expect(rows_of(page, ROWS)).to_have_count(3)
    rows_of(page, ROWS).first.click()
    expect(detail.locator(".lnb-cd-kind")).to_contain_text("removedmain:1")
    detail.get_by_role("button", name="open in Rows").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")  # there it still is
    expect(page.locator(".lnb-panel-rows .lnb-grid-status")).to_contain_text("of 1")
    page.get_by_role("button", name="whole row").click()
    detail.get_by_role("button", name="Row history").click()
    expect(detail.locator(".lnb-bio-step")).to_contain_text(["created"])
    screenshot(page)


def test_rows_by_address_are_said_to_be_and_a_key_can_be_chosen(
    open_widget: OpenWidget, screenshot: Screenshot, plain: Any
) -> None:
    page = open_changes(open_widget, plain, width=600).page
    compare_with(page, "1")
    expect(page.locator(".lnb-ch-badge")).to_have_text("≈ by row address")
    expect(page.locator(".lnb-ch-reason")).to_contain_text("counts as removed and added")
    expect(chip(page, "Rows")).to_contain_text("+22 −5")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    screenshot(page, "address")
    toggle = page.locator(".lnb-ch-by").get_by_role("button", name="change")
    key = page.get_by_role("group", name="columns of the key")
    toggle.click()
    key.get_by_role("button", name="label").click()
    page.get_by_role("button", name="use as key").click()
    expect(page.locator(f"{PANEL} .lnb-error")).to_contain_text("does not tell rows apart")
    toggle.click()
    key.get_by_role("button", name="label").click()
    key.get_by_role("button", name="id").click()
    page.get_by_role("button", name="use as key").click()
    expect(page.locator(".lnb-ch-badge")).to_have_text("✓ by key: id")
    expect(chip(page, "Rows")).to_contain_text("+20 −3 ~2")
    expect(page.locator(".lnb-code-line")).to_contain_text("key=['id']")
    screenshot(page, "key")


def test_a_fork_is_reported_and_ends_are_swapped(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_changes(open_widget, dataset).page
    compare_with(page, "dev")
    fork = page.locator(".lnb-ch-fork")
    expect(fork).to_contain_text("parted at main:4: A +1, B +3")
    screenshot(page)
    fork.get_by_role("button", name="since the fork").click()
    expect(page.locator(".lnb-ch-end-a")).to_contain_text("main:4")
    expect(fork).to_be_hidden()
    compare_with(page, "1")
    expect(chip(page, "Rows")).to_contain_text("+20 −3 ~2")
    page.get_by_role("button", name="swap A and B").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")
    expect(chip(page, "Rows")).to_contain_text("+3 −20 ~2")


def test_numbers_follow_a_handle_that_is_dragged(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    bare = open_changes(open_widget, dataset)
    page = bare.page
    expect(chip(page, "Transactions")).to_contain_text("1")
    handle = page.get_by_role("slider", name="A, the version that is compared with")
    expect(handle).to_have_attribute("aria-valuenow", "6")
    bars = page.locator(".lnb-tl-bar")
    box, target = handle.bounding_box(), bars.first.bounding_box()
    assert box is not None
    assert target is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(target["x"] + target["width"] / 2, box["y"] + box["height"] / 2, steps=8)
    expect(page.locator(".lnb-ch-stale")).to_be_visible()
    expect(chip(page, "Transactions")).to_contain_text("6")
    expect(chip(page, "Rows")).to_contain_text("≤ +77 −60")
    screenshot(page)
    eventually(page, lambda: _near(bare) >= {1, 2, 3, 4, 5})  # ahead of where the handle stands
    begun = next(at for at, one in enumerate(bare.requests) if one["type"] == "changes.near")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(chip(page, "Transactions")).not_to_contain_text("6")
    page.mouse.move(target["x"] + target["width"] / 2, box["y"] + box["height"] / 2)
    expect(chip(page, "Transactions")).to_contain_text("6")
    assert "changes.counts" not in {one["type"] for one in bare.requests[begun:]}
    page.mouse.up()
    expect(page.locator(".lnb-ch-stale")).to_have_count(0)
    chip(page, "Rows").click()
    expect(chip(page, "Rows")).to_contain_text("+20 −3 ~2")
    handle.hover()  # what was counted of these versions is of no others
    page.mouse.down()
    last = bars.nth(4).bounding_box()
    assert last is not None
    page.mouse.move(last["x"] + last["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    expect(chip(page, "Transactions")).to_contain_text("2")
    expect(chip(page, "Rows")).not_to_contain_text("+20")
    page.mouse.move(target["x"] + target["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    expect(chip(page, "Rows")).to_contain_text("+20 −3 ~2")
    page.mouse.up()


def _near(bare: BarePage) -> set[int]:
    """The versions whose numbers were asked for ahead."""
    asked = [one["args"]["versions"] for one in bare.requests if one["type"] == "changes.near"]
    return {version for versions in asked for version in versions}


HOLD_ROWS = """() => {
  const real = window.toKernel;
  const failed = { title: "Cancelled", message: "", where: "", hint: "", kind: "CancelledError" };
  let held = null;
  window.toKernel = async (content) => {
    if (content.type === "changes.rows" && !held) {
      held = content.id;
      window.deliver([{ content: { id: held, progress: [3, 10] }, buffers: [] }]);
      return [];
    }
    if (content.type !== "cancel") return real(content);
    return [{ content: { id: held, ok: false, error: failed }, buffers: [] }];
  };
}"""


def test_a_comparison_tells_how_far_it_is_and_can_be_stopped(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_changes(open_widget, dataset).page
    expect(rows_of(page, "settings that differ")).to_have_count(1)
    page.evaluate(HOLD_ROWS)
    compare_with(page, "1")
    foot = page.locator(".lnb-ch-level:not([hidden]) .lnb-ch-foot")
    expect(foot).to_contain_text("3 of 10 rows compared")
    expect(foot.get_by_role("progressbar", name="rows compared")).to_have_attribute("value", "3")
    screenshot(page)
    foot.get_by_role("button", name="stop").click()
    place = page.locator(".lnb-ch-level:not([hidden]) .lnb-grid-note")
    expect(place).to_contain_text("Stopped.")
    place.get_by_role("button", name="Continue").click()
    expect(rows_of(page, ROWS).first).to_contain_text("bird→fox")
    expect(foot).to_contain_text("25 rows")


def test_nothing_to_compare_is_said_in_place(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_changes(open_widget, dataset).page
    said = page.locator(".lnb-ch-said")
    compare_with(page, "7")
    expect(said).to_contain_text("A and B are the same version, main:7")
    screenshot(page, "same")
    compare_with(page, "nothing")
    expect(said.locator(".lnb-error")).to_contain_text("nothing")
    compare_with(page, "6")
    expect(chip(page, "Settings")).to_have_attribute("aria-selected", "true")


MOVES = """() => {
  const plain = Element.prototype.scrollIntoView;
  window.moves = 0;
  Element.prototype.scrollIntoView = function (...how) {
    window.moves += this.classList.contains("lnb-chip");
    return plain.apply(this, how);
  };
}"""


def test_numbers_of_another_version_leave_the_chips_where_they_are(
    open_widget: OpenWidget, dataset: Any
) -> None:
    page = open_changes(open_widget, dataset).page
    chip(page, "Settings").click()
    expect(chip(page, "Settings")).to_have_attribute("aria-selected", "true")
    page.evaluate(MOVES)
    compare_with(page, "1")
    expect(page.locator(".lnb-ch-end-a span")).to_have_text("main:1")
    expect(page.locator(f"{PANEL} .lnb-ch-stale")).to_have_count(0)
    expect(chip(page, "Settings")).to_have_attribute("aria-selected", "true")
    assert page.evaluate("window.moves") == 0
    chip(page, "Schema").click()
    eventually(page, lambda: page.evaluate("window.moves") == 1)


def test_versions_without_a_difference_and_those_cleaned_up(
    open_widget: OpenWidget, screenshot: Screenshot, tmp_path: Path
) -> None:
    uri = str(tmp_path / "d.lance")
    lance_nb.write_dataset(scores(5), uri)
    lance_nb.dataset(uri).create_branch("same", 1)
    lance_nb.write_dataset(scores(5, 5), uri, mode="append")
    bare = open_changes(open_widget, lance_nb.dataset(uri).checkout_version(1))
    page = bare.page
    expect(page.locator(".lnb-ch-said")).to_contain_text("main:1 is the first version")
    screenshot(page, "first")
    compare_with(page, "same")
    expect(page.locator(".lnb-ch-said")).to_contain_text("No difference between same:1 and main:1")
    screenshot(page)
    gone = {"2.manifest", f"{2**64 - 1 - 2}.manifest"}  # by another program, meanwhile
    for manifest in (tmp_path / "d.lance" / "_versions").iterdir():
        if manifest.name in gone:
            manifest.unlink()
    compare_with(page, "2")
    expect(page.locator(".lnb-ch-said .lnb-error-title")).to_have_text(
        "This version does not exist"
    )


def test_it_works_alone(open_widget: OpenWidget, screenshot: Screenshot, dataset: Any) -> None:
    page = open_widget(DiffView(dataset.checkout_version(1), dataset, key="id")).page
    expect(page.locator(".lnb-ch-badge")).to_have_text("✓ by key: id")
    expect(chip(page, "Rows")).to_contain_text("+20 −3 ~2")
    rows_of(page, ROWS).first.click()
    below = page.locator(".lnb-detail-below")
    expect(below.locator(".lnb-cd-kind")).to_contain_text("changed")
    below.get_by_role("button", name="Row history").click()
    expect(below.locator(".lnb-bio-by")).to_contain_text("followed by key: id")
    screenshot(page)


def test_a_dataset_that_cannot_be_compared_says_so(open_widget: OpenWidget) -> None:
    page = open_changes(open_widget, small_dataset()).page
    expect(page.locator(f"{PANEL} .lnb-error")).to_contain_text("cannot be compared")


def test_hostile_names_and_values_are_text(open_widget: OpenWidget, screenshot: Screenshot) -> None:
    payloads = list(PAYLOADS)
    column = payloads[0].replace(".", "")  # no name of a column has a dot
    uri = "memory://changes-page/hostile.lance"
    first = pa.table({"id": range(len(payloads)), column: ["old"] * len(payloads)})
    lance_nb.write_dataset(first, uri, enable_stable_row_ids=True)
    second = pa.table({"id": range(len(payloads)), column: payloads})
    lance_nb.dataset(uri).merge_insert("id").when_matched_update_all().execute(second)
    lance_nb.dataset(uri).update_config({payloads[1]: payloads[2]})
    page = open_changes(open_widget, lance_nb.dataset(uri)).page
    expect(rows_of(page, "settings that differ")).to_contain_text([visible(payloads[2])])
    compare_with(page, "1")
    chip(page, "Rows").click()
    expect(page.locator(f"{PANEL} .lnb-grid-column:visible b").last).to_have_text(column)
    expect(rows_of(page, ROWS).nth(1).locator("ins")).to_have_text(visible(payloads[1]))
    rows_of(page, ROWS).nth(1).click()
    page.get_by_role("region", name="details").get_by_role("button", name="Row history").click()
    expect(page.locator(".lnb-bio-cells ins")).to_have_text(visible(payloads[1]))
    chip(page, "Drift").click()
    expect(page.locator(".lnb-dr-card")).to_have_count(2)
    screenshot(page)
    foreign = "script, img, iframe, object, embed, link, base, meta, video, math, template, a"
    expect(page.locator("#here").locator(foreign)).to_have_count(0)
