"""Acts that take something away, in a bare page, over datasets that pylance wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import expect

import lance_nb
from lance_nb.explorer import text
from lance_nb.explorer.app import Explorer
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.test_branches_page import details, line
from tests.ui.test_stage_page import Stage

pytestmark = [pytest.mark.ui, pytest.mark.interop]


def rows(first: int, count: int = 4) -> pa.Table:
    return pa.table({"id": range(first, first + count), "price": [1.5] * count})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return a dataset of 21 versions: appends, overwrites, a tag."""
    lance = require_pylance()
    found = str(tmp_path / "shop.lance")
    dataset = lance.write_dataset(rows(0), found)
    for one in range(1, 21):
        mode = "overwrite" if one % 5 == 0 else "append"
        dataset = lance.write_dataset(rows(one * 4), found, mode=mode)
    dataset.tags.create("release", 7)
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_clean_up_shows_what_it_removes_and_does_just_that(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot, *, dark: bool
) -> None:
    """One click on "Commit" once removed 20 versions that the card did not show."""
    lance = require_pylance()
    dataset = lance_nb.dataset(uri).checkout_version(3)
    bare = open_widget(Explorer(dataset), dark=dark)
    page = bare.page
    page.get_by_role("tab", name="Stage").click()
    stage = Stage(page)
    stage.unlock()
    card = stage.stage("cleanup", keep_the_newest="21")
    expect(card.get_by_role("button", name="Nothing to remove")).to_be_disabled()
    stage.discard(card)
    card = stage.stage("cleanup", keep_the_newest="2")
    consequences = card.get_by_role("region", name="consequences:")
    expect(consequences).to_contain_text(
        "Removes 18 versions: main:1 to main:6, main:8 to main:19."
    )
    expect(consequences).to_contain_text("Tagged versions stay: release (main:7).")
    expect(consequences).to_contain_text("The version on screen, main:3, is removed")
    expect(consequences).to_contain_text("Cannot be undone")
    remove = card.get_by_role("button", name="Remove 18 versions")
    expect(remove).to_be_disabled()
    card.get_by_label("type shop.lance to confirm").fill("shop.lance")
    expect(remove).to_be_enabled()
    screenshot(page, "before")
    bare.hold("stage.cards", "news")  # so that the page does not hear of it first
    lance.write_dataset(rows(500), uri, mode="append")  # somebody else commits
    remove.click()
    expect(card).to_contain_text("Nothing was done; these are the consequences now.")
    assert len(lance.dataset(uri).versions()) == 22
    remove = card.get_by_role("button", name="Remove 19 versions")
    expect(remove).to_be_disabled()
    card.get_by_label("type shop.lance to confirm").fill("shop.lance")
    screenshot(page, "again")
    remove.click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("19 versions and ")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:22")
    assert [one["version"] for one in lance.dataset(uri).versions()] == [7, 21, 22]
    assert lance.dataset(uri).count_rows() == 8
    page.locator(".lnb-tl-bar[aria-label^='main version 7']").hover()
    expect(page.locator(".lnb-tl-readout")).to_contain_text(
        "parent version is gone: changes unknown · 8 rows now"
    )
    screenshot(page, "after")


def test_a_branch_of_many_versions_is_deleted_with_its_name(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot
) -> None:
    lance = require_pylance()
    branch = lance.dataset(uri).create_branch("trial")
    for one in range(10):
        branch.insert(rows(900 + one))
    page = open_widget(Explorer(lance_nb.dataset(uri))).page
    page.get_by_role("tab", name="Branches & tags").click()
    Stage(page).unlock()
    line(page, "trial").click()
    pane = details(page)
    pane.get_by_role("button", name="Delete…").click()
    act = pane.get_by_role("button", name="Delete branch trial with 10 versions")
    expect(act).to_be_disabled()
    expect(pane).to_contain_text("Cannot be undone")
    pane.get_by_label("type trial to confirm").fill("trial")
    expect(act).to_be_enabled()
    screenshot(page)
    act.click()
    expect(line(page, "trial")).to_have_count(0)
    assert lance.dataset(uri).branches.list() == {}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_what_was_done_is_listed_and_undone(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot, *, dark: bool
) -> None:
    lance = require_pylance()
    page = open_widget(Explorer(lance_nb.dataset(uri)), dark=dark).page
    page.get_by_role("tab", name="Stage").click()
    stage = Stage(page)
    stage.unlock()
    for verb, fields in (
        ("delete", {"where": "id < 82"}),
        ("tag", {"action": "delete", "tag": "release"}),
        ("cleanup", {"keep_the_newest": "18"}),
    ):
        card = stage.stage(verb, **fields)
        card.locator(".lnb-sg-foot button").last.click()
        expect(card.locator(".lnb-sg-done")).to_be_visible()
        card.get_by_role("button", name="remove:").click()
        expect(card).to_have_count(0)
    assert lance.dataset(uri).count_rows() == 2
    page.get_by_role("tab", name="My actions").click()
    log = page.locator(".lnb-panel-log")
    entries = log.locator(".lnb-ol-entry")
    expect(entries).to_have_count(3)
    expect(entries.nth(0)).to_contain_text(
        "Cannot be undone: the files of the removed versions are deleted."
    )
    screenshot(page, "log")
    entries.nth(1).get_by_role("button", name="Undo: Create tag release at main:7").click()
    expect(log).to_contain_text("Tag release was created at main:7.")
    entries.filter(has_text="Delete rows").last.get_by_role("button", name="Undo").click()
    expect(log).to_contain_text("main:21 was restored as main:23.")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:23")
    expect(entries).to_have_count(5)
    screenshot(page, "undone")
    assert lance.dataset(uri).count_rows() == 4
    assert lance.dataset(uri).tags.list()["release"]["version"] == 7


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_simulator_shows_what_a_rule_removes_and_stages_it(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot, *, dark: bool
) -> None:
    lance = require_pylance()
    lance.dataset(uri).create_branch("trial", 4)
    page = open_widget(Explorer(lance_nb.dataset(uri)), dark=dark).page
    page.get_by_role("tab", name="Storage").click()
    page.get_by_role("button", name="Clean-up…").click()
    panel = page.get_by_role("region", name="clean-up simulator")
    expect(panel).to_contain_text("Nothing would be removed")
    faded = page.locator(".lnb-tl-bar.lnb-tl-goes")
    expect(faded).to_have_count(0)
    slider = panel.get_by_role("slider", name="keep the newest")
    slider.fill("5")
    expect(panel).to_contain_text("5 of 21 versions")
    expect(panel).to_contain_text("Would remove 14 versions")  # main:4 and main:7 stay
    expect(faded).to_have_count(14)
    plan = lance_nb.dataset(uri).cleanup_old_versions(
        retain_versions=5, error_if_tagged_old_versions=False, dry_run=True
    )
    expect(panel).to_contain_text(f"free {text.size(plan.stats.bytes_removed)}")
    page.locator(".lnb-tl-bar[aria-label^='main version 7']").hover()
    expect(page.locator(".lnb-tl-readout")).to_contain_text("stays: tag release")
    expect(panel).to_contain_text("kept by main:7")
    page.locator(".lnb-tl-bar[aria-label^='main version 3']").hover()
    expect(page.locator(".lnb-tl-readout")).to_contain_text("would be removed")
    expect(panel).to_contain_text("kept by main:4, trial:4")
    screenshot(page, "rule")
    tag = panel.get_by_role("button", name="release")
    tag.click()
    expect(panel).to_contain_text("Would remove 15 versions")
    tag.click()
    expect(panel).to_contain_text("Would remove 14 versions")
    stage = panel.get_by_role("button", name="Stage this clean-up")
    expect(stage).to_be_disabled()
    Stage(page).unlock()
    stage.click()
    card = page.locator(".lnb-panel-stage .lnb-sg-card")
    expect(card.get_by_role("button", name="Remove 14 versions")).to_be_visible()
    expect(faded).to_have_count(0)
    page.get_by_role("tab", name="Storage").click()
    page.get_by_role("button", name="Clean-up…").click()
    panel.get_by_role("slider", name="keep the newest").fill("5")
    expect(faded).to_have_count(14)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.get_by_role("button", name="Clean-up…")).to_be_focused()
    expect(faded).to_have_count(0)
    assert len(lance.dataset(uri).versions()) == 21
