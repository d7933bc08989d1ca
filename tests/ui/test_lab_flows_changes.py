"""Changes, biographies and storage in a real JupyterLab, over a dataset that pylance wrote.

Every part is one open page with several flows; each flow ends in a picture for a person to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.support.requirements import require_pylance
from tests.ui.bare_page import Screenshot
from tests.ui.flow_dataset import NEWEST, rows, write_flows
from tests.ui.lab_explorer import LabExplorer, open_explorer
from tests.ui.lab_server import LabServer

pytestmark = pytest.mark.ui
EXPLORE = 'import lance_nb\nlance_nb.explore("stored.lance")'


@pytest.fixture(scope="module")
def opened(lab: LabServer) -> Iterator[LabExplorer]:
    engine = require_pylance()
    path = lab.work / "stored.lance"
    dataset = write_flows(engine, path)
    dataset.create_scalar_index("id", "BTREE")
    engine.write_dataset(rows(900, 100).drop_columns(["note"]), str(path), mode="append")
    explorer = open_explorer(lab, "stored.ipynb", EXPLORE)
    yield explorer
    assert explorer.notebook.outside == []  # nothing left the machine
    explorer.notebook.close()


@pytest.fixture
def lance(opened: LabExplorer) -> LabExplorer:
    """The explorer, as every test finds it."""
    opened.home(NEWEST + 2)
    return opened


def compared(lance: LabExplorer, ref: str) -> None:
    """Open the changes since a version."""
    lance.tab("Changes")
    box = lance.root.get_by_role("combobox", name="compare with a version")
    box.fill(ref)
    box.press("Enter")
    expect(lance.root.locator(".lnb-ch-end-a")).to_contain_text(ref)


def chip(lance: LabExplorer, name: str) -> Locator:
    return lance.root.get_by_role("tablist", name="levels of the difference").get_by_role(
        "tab", name=name
    )


def lines(lance: LabExplorer, level: str) -> Locator:
    return lance.root.get_by_role("grid", name=level).locator(".lnb-grid-row:not([hidden])")


def test_changes_are_counted_first_and_open_level_by_level(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    compared(lance, "2")
    expect(lance.root.locator(".lnb-ch-badge")).to_have_text("✓ by stable row id")
    expect(chip(lance, "Transactions")).to_contain_text("8")
    chip(lance, "Transactions").click()
    steps = lines(lance, "transactions between the versions")
    expect(steps).to_have_count(8)
    steps.filter(has_text="Delete").first.click()
    expect(lance.detail.locator(".lnb-entries").last).to_contain_text("id >= 200 AND id < 260")
    screenshot(lance.page, "transactions")
    for name, grid, holds in (
        ("Schema", "columns that differ", "double"),
        ("Fragments", "fragments that differ", ""),
        ("Deletions", "fragments whose deletions differ", ""),
        ("Indices", "indices that differ", "id_idx"),
        ("Settings", "settings that differ", "team"),
    ):
        chip(lance, name).click()
        expect(lines(lance, grid).filter(has_text=holds).first).to_be_visible()
        if name in ("Fragments", "Indices"):
            screenshot(lance.page, name.lower())
    chip(lance, "Drift").click()
    expect(lance.root.locator(".lnb-dr-card").first).to_contain_text("id")
    screenshot(lance.page, "drift")


def test_rows_and_cells_are_tinted_filtered_and_have_lives(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    compared(lance, "2")
    chip(lance, "Rows").click()
    differ = lines(lance, "rows that differ")
    expect(chip(lance, "Rows")).to_contain_text("+200 −60 ~14")
    expect(differ.first.locator("ins")).to_have_text("fox")
    screenshot(lance.page, "changed")
    kinds = lance.root.get_by_role("group", name="kinds of changes")
    kinds.get_by_role("button", name="− removed").click()
    expect(differ.first).to_have_class(re.compile("lnb-row-remove"))
    screenshot(lance.page, "removed")
    kinds.get_by_role("button", name="all", exact=True).click()
    expect(differ.first.locator("ins")).to_have_text("fox")
    differ.first.click()
    expect(lance.detail.locator(".lnb-cd-kind")).to_contain_text("changed")
    lance.detail.get_by_role("button", name="Row history").click()
    life = lance.detail.locator(".lnb-bio-step")
    expect(life.filter(has_text="updated").first).to_contain_text("→ fox")
    expect(life.last).to_contain_text("created")
    screenshot(lance.page, "life")
    life.last.get_by_role("button", name="main:1").click()
    lance.at("main:1")


def test_a_biography_is_read_from_the_grid_and_the_scrubber_counts(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    lance.press(lance.rows.locator(".lnb-grid"), "Control+Home", "Shift+Enter")
    lance.detail.get_by_role("button", name="Row history").click()
    expect(lance.detail.locator(".lnb-bio-step").last).to_contain_text("created")
    screenshot(lance.page, "life")
    lance.tab("Changes")
    handle = lance.root.get_by_role("slider", name="A, the version that is compared with")
    expect(handle).to_be_visible()
    lance.drag(handle, lance.bar(1))
    expect(lance.root.locator(".lnb-ch-stale")).to_be_visible()
    expect(chip(lance, "Transactions")).to_contain_text("9")
    screenshot(lance.page, "scrubbing")
    lance.page.mouse.up()
    expect(lance.root.locator(".lnb-ch-stale")).to_have_count(0)
    lance.root.get_by_role("button", name="swap A and B").click()
    lance.at("main:1")
    screenshot(lance.page, "swapped")
    lance.root.get_by_role("button", name="unpin A").click()


def test_storage_is_mapped_and_a_fragment_opens_with_bitmap_files_and_pages(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    lance.tab("Storage")
    summary = lance.root.locator(".lnb-st-summary")
    expect(summary).to_contain_text("fragments · ")
    screenshot(lance.page, "map")
    strip = lance.root.get_by_role("slider", name="fragments")
    lance.press(strip, "Home", "ArrowRight", "Enter")
    expect(lance.detail.locator(".lnb-detail-title")).to_have_text("Fragment 1")
    bitmap = lance.detail.get_by_role("img", name="of 200 rows deleted")
    expect(bitmap).to_be_visible()
    screenshot(lance.page, "fragment")
    lance.detail.get_by_role("button", name="pages").first.click()
    pages = lance.detail.get_by_role("region", name="pages of the file")
    expect(pages).to_contain_text("mini_block")
    pages.scroll_into_view_if_needed()
    screenshot(lance.page, "pages")


def test_storage_tells_who_wrote_what_which_index_misses_what_and_gives_advice(
    lance: LabExplorer, screenshot: Screenshot
) -> None:
    lance.tab("Storage")
    cards = lance.root.locator(".lnb-st-card")
    expect(cards.filter(has_text="index").first).to_contain_text("id_idx")
    cards.filter(has_text="index").first.scroll_into_view_if_needed()
    screenshot(lance.page, "advice")
    deleted = cards.filter(has_text="Deleted rows")
    expect(deleted.locator("code")).to_contain_text("materialize_deletions_threshold")
    deleted.get_by_role("button", name="see fragment").click()
    facts = lance.detail.locator(".lnb-fd-facts")
    expect(facts.first).to_contain_text("written by main:")
    expect(lance.detail.locator(".lnb-fd-lost").first).to_contain_text("field dropped")
    screenshot(lance.page, "files")
    deleted.get_by_role("button", name="stage this").click()
    expect(lance.root.get_by_role("tab", name="Stage")).to_have_attribute("aria-selected", "true")
    screenshot(lance.page, "staged")
    lance.tab("Storage")
    lance.root.get_by_role("button", name="account for every byte").click()
    legend = lance.root.locator(".lnb-su-legend")
    expect(legend).to_contain_text("current")
    expect(lance.root.locator(".lnb-su-table").nth(1)).to_contain_text("imported")
    legend.scroll_into_view_if_needed()
    screenshot(lance.page, "space")
