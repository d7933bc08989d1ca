"""The tab of branches and tags in a bare page, over datasets that pylance has written."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.refs.widget import RefsManager
from tests.support.explorer_datasets import forked_dataset, forked_rows, many_refs
from tests.support.markup_payloads import PAYLOADS
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.waiting import eventually, look_for_news

pytestmark = pytest.mark.ui


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    require_pylance()
    return forked_dataset(tmp_path / "forked.lance")


def open_refs(open_widget: OpenWidget, dataset: Any, **how: Any) -> Page:
    page = open_widget(Explorer(dataset), **how).page
    page.get_by_role("tab", name="Branches & tags").click()
    return page


def panel(page: Page) -> Locator:
    return page.locator(".lnb-panel-refs")


def details(page: Page) -> Locator:
    return page.get_by_role("region", name="details")


def unlock(page: Page) -> None:
    page.get_by_role("button", name="allow changes").click()
    expect(page.get_by_role("button", name="changes allowed")).to_be_visible()


def line(page: Page, *words: str) -> Locator:
    """Return the line of a list that holds some words."""
    found = panel(page).get_by_role("row")
    for one in words:
        found = found.filter(has_text=one)
    return found


def test_a_press_on_a_line_counts_though_more_is_read_meanwhile(
    open_widget: OpenWidget, dataset: Any
) -> None:
    bare = open_widget(Explorer(dataset))
    page = bare.page
    bare.hold("refs.heads")
    page.get_by_role("tab", name="Branches & tags").click()
    newest = line(page, "dev").get_by_role("gridcell").nth(2)
    expect(newest).to_have_text("…")
    newest.hover()
    page.mouse.down()
    bare.release(1)
    expect(newest).to_have_text("4")
    page.mouse.up()
    expect(details(page)).to_contain_text("Branch dev")


@pytest.mark.parametrize("width", [600, 1600])
def test_branches_and_tags_are_listed_filtered_and_walked_with_the_keyboard(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any, width: int
) -> None:
    page = open_refs(open_widget, dataset, width=width)
    branches = panel(page).get_by_role("grid", name="branches")
    expect(branches.get_by_role("row")).to_have_count(3)
    expect(line(page, "dev")).to_contain_text("main:2")
    expect(line(page, "dev")).to_contain_text("+2 · −2")
    expect(page.locator(".lnb-code-line")).to_contain_text(".branches.list()")
    branches.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(details(page)).to_contain_text("Branch dev")
    expect(details(page)).to_contain_text("in its own folder")
    screenshot(page)
    details(page).get_by_role("button", name="compare with fork").click()
    expect(page.get_by_role("tab", name="Changes")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".lnb-here-ref")).to_have_text("dev:4")
    expect(page.get_by_role("slider", name="A, the version")).to_have_attribute(
        "aria-valuetext", "main:2"
    )
    page.get_by_role("tab", name="Branches & tags").click()
    panel(page).get_by_role("button", name="1 tag").click()
    expect(line(page, "v1")).to_contain_text("main:1")
    panel(page).get_by_role("searchbox").fill("no such")
    expect(panel(page).locator(".lnb-br-found")).to_have_text("0 found")
    expect(panel(page).get_by_role("grid", name="tags").get_by_role("row")).to_have_count(1)


def test_a_tag_is_made_moved_and_deleted_with_what_comes_of_it_shown_before(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_refs(open_widget, dataset)
    panel(page).get_by_role("button", name="new tag…").click()
    form = panel(page).get_by_role("region", name="New tag")
    name = form.get_by_role("textbox", name="name of the tag")
    name.fill("a b")
    expect(form).to_contain_text("may hold only letters, digits")
    expect(name).to_have_attribute("aria-invalid", "true")
    name.fill("v1")
    expect(form).to_contain_text("A tag of this name already exists")
    name.fill("good")
    form.get_by_role("combobox", name="version").fill("dev:3")
    expect(form).to_contain_text("dev:3 is kept from clean-up")
    make = form.get_by_role("button", name="Create it at dev:3")
    expect(make).to_be_disabled()
    expect(form).to_contain_text("open the lock first")
    screenshot(page, "locked")
    unlock(page)
    expect(page.locator(".lnb-code-line")).to_contain_text("tags.create('good', ('dev', 3))")
    make.click()
    expect(panel(page).get_by_role("status")).to_contain_text("Tag good was created at dev:3")
    expect(page.get_by_title("tag good: dev:3")).to_be_visible()

    panel(page).get_by_role("button", name="2 tags").click()
    line(page, "v1").click()
    details(page).get_by_role("button", name="move…").click()
    expect(details(page)).to_contain_text("main:1 loses its protection")
    dataset.tags.update("v1", 2)  # somebody else
    details(page).get_by_role("button", name="move it to main:4").click()
    expect(details(page)).to_contain_text("it is at main:2, not at main:1 any more")
    assert dataset.tags.get_version("v1") == 2
    screenshot(page, "raced")
    line(page, "v1").click()
    details(page).get_by_role("button", name="move…").click()
    expect(details(page)).to_contain_text("From main:2 to main:4")
    details(page).get_by_role("button", name="move it to main:4").click()
    expect(panel(page).get_by_role("status")).to_contain_text("moved from main:2 to main:4")
    expect(line(page, "v1")).to_contain_text("main:4")

    line(page, "v1").click()
    details(page).get_by_role("button", name="delete…").click()
    expect(details(page)).to_contain_text("main:4 is the newest version")
    details(page).get_by_role("button", name="how many bytes?").click()
    expect(details(page)).to_contain_text("then frees")
    details(page).get_by_role("button", name="delete tag v1").click()
    expect(panel(page).get_by_role("status")).to_contain_text("Tag v1 was deleted")
    expect(line(page, "v1")).to_have_count(0)
    assert dataset.tags.names() == ["good"]


def test_a_branch_is_made_and_deleted_and_kept_while_somebody_needs_it(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    bare = open_widget(Explorer(dataset), dark=True)
    page = bare.page
    page.get_by_role("tab", name="Branches & tags").click()
    unlock(page)
    look_for_news(page)
    eventually(page, lambda: any(one["type"] == "news" for one in bare.requests))
    panel(page).get_by_role("button", name="new branch…").click()
    form = panel(page).get_by_role("region", name="New branch")
    form.get_by_role("textbox", name="name of the branch").fill("dev/try")
    form.get_by_role("combobox", name="version").fill("dev")
    expect(form).to_contain_text("Starts at dev:4 with its 110 rows; no data is copied.")
    form.get_by_role("button", name="Create it at dev:4").click()
    expect(line(page, "dev/try")).to_contain_text("dev:4")
    panel(page).get_by_role("status").get_by_role("button", name="go to dev/try:4").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("dev/try:4")
    dataset.tags.create("by-others", 1)  # right after a journey
    look_for_news(page)
    expect(panel(page).get_by_role("button", name="2 tags")).to_be_visible()

    line(page, "dev", "main:2").click()
    details(page).get_by_role("button", name="delete…").click()
    expect(details(page)).to_contain_text("Refused: other branches started from it (dev/try)")
    expect(details(page).get_by_role("button", name="delete branch dev")).to_be_disabled()
    screenshot(page, "refused")

    line(page, "dev/try").click()
    expect(details(page)).to_contain_text("Branch dev/try")
    details(page).get_by_role("button", name="delete…").click()
    expect(details(page)).to_contain_text("This view shows the branch and will switch to dev:4.")
    lance_nb.dataset(dataset.uri).checkout_version(("dev/try", None)).delete("id = 1")
    details(page).get_by_role("button", name="delete branch dev/try").click()
    expect(details(page)).to_contain_text("has changed: its newest version is now 5")
    details(page).get_by_role("button", name="Refresh").click()
    details(page).get_by_role("button", name="delete…").click()
    details(page).get_by_role("button", name="delete branch dev/try").click()
    expect(panel(page).get_by_role("status")).to_contain_text("Branch dev/try was deleted")
    expect(page.locator(".lnb-here-ref")).to_have_text("dev:4")
    expect(line(page, "dev/try")).to_have_count(0)
    assert dataset.branches.names() == ["dev"]


def test_a_merge_is_previewed_decided_raced_and_done(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_refs(open_widget, dataset)
    unlock(page)
    line(page, "dev").click()
    details(page).get_by_role("button", name="merge…").click()
    merge = panel(page).get_by_role("region", name="merge")
    expect(merge).to_contain_text("merging dev:4 into main:4")
    expect(merge).to_contain_text("three-way")
    expect(merge).to_contain_text("Both sides changed 5 cells in 5 rows")
    commit = merge.get_by_role("button", name="merge into main")
    expect(commit).to_be_disabled()
    update = "Rows changed (Update)"
    cell = merge.get_by_role(
        "gridcell", name=f"dev:3 {update} against main:3 {update}: may be part of the conflict"
    )
    cell.focus()
    expect(merge.locator(".lnb-cg-readout")).to_contain_text("both change fragment 0")
    page.keyboard.press("ArrowRight")
    expect(merge.locator(".lnb-cg-readout")).to_contain_text(
        f"dev:3 {update} against main:4 Rows added (Append)"
    )
    expect(merge.get_by_role("grid", name="cells in conflict")).to_contain_text("7")
    screenshot(page, "conflict")
    merge.get_by_role("combobox", name="conflict resolution").select_option("theirs")
    expect(merge).to_contain_text("The source's is taken.")
    expect(page.locator(".lnb-code-line")).to_contain_text("on_conflict='theirs', dry_run=True")
    expect(commit).to_be_enabled()
    lance_nb.dataset(dataset.uri).insert(dataset.to_table(limit=1))
    merge.get_by_role("textbox", name="commit message").fill("take dev")
    commit.click()
    expect(merge).to_contain_text("was committed after this preview of main:4")
    merge.get_by_role("button", name="Refresh").click()
    expect(merge).to_contain_text("merging dev:4 into main:5")
    commit.click()
    expect(panel(page).get_by_role("status")).to_contain_text("main:6 was created")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:6")
    expect(page.locator(".lnb-operation")).to_contain_text("Update")
    expect(page.locator(".lnb-message")).to_have_text("take dev")
    screenshot(page, "done")

    panel(page).get_by_role("button", name="merge…").click()
    merge.get_by_role("button", name="Revert").click()
    merge.get_by_role("combobox", name="source").fill("HEAD~1")
    merge.get_by_role("button", name="preview").click()
    expect(merge).to_contain_text("reverting main:5 on main:6")
    merge.get_by_role("button", name="commit to main").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:7")
    assert lance_nb.dataset(dataset.uri).count_rows() == 120


def test_hostile_names_and_notes_stay_text(
    open_widget: OpenWidget, screenshot: Screenshot, tmp_path: Path
) -> None:
    made = lance_nb.write_dataset(forked_rows(0, 5), tmp_path / "hostile.lance")
    made.create_branch("b")
    made.tags.create("t", 1)
    made.tags.replace_metadata("t", {one: one for one in PAYLOADS} | {"note": PAYLOADS[1]})
    made.branches.replace_metadata("b", {"note": "".join(PAYLOADS)})
    evil = "<img src=x onerror=window.__x=1>"
    tags = tmp_path / "hostile.lance" / "_refs" / "tags"
    (tags / f"{quote(evil, safe='')}.json").write_bytes((tags / "t.json").read_bytes())
    page = open_widget(RefsManager(made)).page
    page.get_by_role("grid", name="branches").get_by_role("row").filter(has_text="<svg").click()
    below = page.locator(".lnb-detail-below")
    expect(below.locator(".lnb-rc-note")).to_contain_text("<script>")
    page.get_by_role("button", name="2 tags").click()
    named = re.compile(rf"^⚑?\s*{re.escape(evil)}")  # another tag has the same text in its note
    page.get_by_role("grid", name="tags").get_by_role("row").filter(has_text=named).click()
    expect(below).to_contain_text(f"Tag {evil}")
    expect(below).to_contain_text("<iframe src=javascript:window.__x=1>")
    below.get_by_role("button", name="delete…").click()
    expect(below).to_contain_text(f"Delete tag {evil}?")
    expect(page.locator("section.lnb img, section.lnb script, section.lnb iframe")).to_have_count(0)
    screenshot(page)


def test_hundreds_of_branches_and_many_tags_stay_few_elements(
    open_widget: OpenWidget, screenshot: Screenshot, tmp_path: Path
) -> None:
    page = open_widget(RefsManager(many_refs(tmp_path / "many.lance", 320, 1200))).page
    branches = page.get_by_role("grid", name="branches")
    expect(branches).to_have_attribute("aria-rowcount", "322")
    branches.focus()
    page.keyboard.press("End")
    last = branches.get_by_role("row").filter(has_text="b0319")
    expect(last).to_be_visible()
    expect(last).to_have_attribute("aria-rowindex", "322")
    page.get_by_role("button", name="1,200 tags").click()
    tags = page.get_by_role("grid", name="tags")
    expect(tags).to_have_attribute("aria-rowcount", "1201")
    tags.get_by_role("button", name="tag").click()
    expect(tags.get_by_role("row").nth(1)).to_contain_text("t1199")
    page.get_by_role("searchbox").fill("t11")
    expect(tags).to_have_attribute("aria-rowcount", "101")
    few = page.locator(".lnb-rl-row")
    expect(few.filter(has_text="t1199")).to_be_visible()
    eventually(page, lambda: few.count() < 60)
    screenshot(page)


def test_a_branch_that_has_no_version_is_listed_as_unfinished(
    open_widget: OpenWidget, dataset: Any
) -> None:
    dataset.create_branch("half", 2)
    shutil.rmtree(Path(dataset.uri) / "tree" / "half")
    page = open_refs(open_widget, lance_nb.dataset(dataset.uri))
    expect(line(page, "half")).to_contain_text("unfinished")
    expect(line(page, "dev")).not_to_contain_text("unfinished")
