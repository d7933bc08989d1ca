"""Merging in a bare page, on datasets that pylance wrote."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.support.explorer_datasets import forked_dataset, forked_rows
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot

pytestmark = pytest.mark.ui


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    require_pylance()
    return forked_dataset(tmp_path / "forked.lance")


def merge_page(page: Page) -> Locator:
    return page.locator(".lnb-panel-refs").get_by_role("region", name="merge")


def drag(page: Page, source: Locator, target: Locator) -> None:
    """Drag one branch label onto another, in steps as a hand does."""
    for at, label in enumerate((source, target)):
        box = label.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 10, box["y"] + box["height"] / 2, steps=4)
        if not at:
            page.mouse.down()


@pytest.mark.parametrize("dark", [False, True])
def test_merges_are_edges_of_the_timeline(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any, dark: bool
) -> None:
    dev = dataset.checkout_version(("dev", None))
    dataset.branches.merge("dev", on_conflict="ours")
    dev.insert(forked_rows(400, 5))
    main = dataset.checkout_latest()
    main.insert(forked_rows(500, 5))
    dataset.branches.merge("dev")
    dev.cherry_pick((None, main.version))
    dataset.checkout_latest()
    dataset.revert(3, on_conflict="theirs")
    page = open_widget(Explorer(dataset.checkout_latest()), dark=dark).page
    edges = page.locator(".lnb-tl-merge")
    expect(edges).to_have_count(4)
    expect(page.locator(".lnb-tl-picked")).to_have_count(2)
    page.get_by_role("option", name="merges dev:4").hover()
    expect(page.locator(".lnb-tl-readout")).to_contain_text("merges dev:4")
    screenshot(page)


def test_a_branch_label_is_dragged_onto_another_to_merge_it(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any
) -> None:
    page = open_widget(Explorer(dataset)).page
    labels = page.get_by_role("group", name="branches")
    main, dev = (labels.get_by_role("button", name=name, exact=True) for name in ("main", "dev"))
    drag(page, dev, main)
    expect(page.locator(".lnb-tl-readout")).to_have_text("Merge dev into main")
    screenshot(page, "dragging")
    page.mouse.up()
    expect(merge_page(page)).to_contain_text("merging dev:4 into main:4")
    expect(page.locator(".lnb-code-line")).to_contain_text(".branches.merge('dev', 'main'")
    main.focus()
    page.keyboard.press("m")
    page.keyboard.press("ArrowDown")
    screenshot(page, "keyboard")
    page.keyboard.press("Enter")
    expect(merge_page(page)).to_contain_text("merging main:4 into dev:4")


def open_merge(open_widget: OpenWidget, dataset: Any, **how: Any) -> Page:
    """Open the merge of dev into main, with the lock open."""
    page = open_widget(Explorer(dataset), **how).page
    page.get_by_role("button", name="allow changes").click()
    page.get_by_role("group", name="branches").get_by_role("button", name="dev").focus()
    for key in ("m", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    return page


@pytest.mark.parametrize("dark", [False, True])
def test_cells_in_conflict_are_chosen_in_place_and_merged_as_one_version(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any, dark: bool
) -> None:
    import lance

    lance.dataset(dataset.uri).delete("id = 6")  # dev updated it
    page = open_merge(open_widget, lance_nb.dataset(dataset.uri), dark=dark)
    merge = merge_page(page)
    table = merge.get_by_role("region", name="conflicts")
    expect(table).to_contain_text("5 cells in 5 rows, 1 row of them deleted on one side")
    commit = merge.get_by_role("button", name="Merge into main")
    expect(commit).to_be_disabled()
    expect(merge).to_contain_text("5 rows to choose first")
    everything = table.get_by_role("group", name="all conflicts")
    everything.get_by_role("button", name="dev").click()
    expect(table.get_by_role("row", name="7").first).to_contain_text("dev:4")
    expect(commit).to_be_enabled()

    def cell(row: str, words: str) -> Locator:
        line = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name=row))
        return line.get_by_role("button", name=words, exact=True)

    cell("8", "9").click()  # as main has it
    cell("9", "write a value for v of row 9").click()
    box = table.get_by_role("textbox", name="value of v for row 9")
    box.fill("seventy")
    box.press("Enter")
    expect(table).to_contain_text("'seventy' is no value of column 'v', which is int64")
    screenshot(page, "refused value")
    box.fill("70")
    box.press("Enter")
    expect(table).to_contain_text("✎ 70")
    cell("5", "7").focus()
    page.keyboard.press("b")  # as the base has it
    code = page.locator(".lnb-code-line")
    expect(code).to_contain_text("resolve=['theirs', '8.v=ours', '9.v:=70', '5.v=base']")
    expect(commit).to_be_enabled()
    message = merge.get_by_role("textbox", name="commit message")
    expect(message).to_have_value("Merge dev:4 into main")
    message.fill("Take dev, three cells apart")
    screenshot(page, "chosen")
    commit.click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:6")

    made = lance.dataset(dataset.uri)
    made.validate()
    found = made.to_table(columns=["id", "v"], filter="id >= 4 and id < 11").to_pylist()
    values = {row["id"]: row["v"] for row in found}
    assert values == {4: 7, 5: 0, 6: 7, 7: 7, 8: 9, 9: 70, 10: 9}
    info = lance_nb.dataset(dataset.uri).version_info(6)
    assert info.message == "Take dev, three cells apart"
    assert info.properties["lance_nb.merge.choices"] == (
        '["theirs", "8.v=ours", "9.v:=70", "5.v=base"]'
    )


@pytest.mark.parametrize("dark", [False, True])
def test_what_keeps_the_files_of_a_merge_is_shown_marked_and_removed(
    open_widget: OpenWidget, screenshot: Screenshot, dataset: Any, dark: bool
) -> None:
    import lance

    topic = lance.dataset(dataset.uri).create_branch("topic", 4)
    topic.insert(forked_rows(700, 30))
    page = open_widget(Explorer(dataset), dark=dark).page
    page.get_by_role("button", name="allow changes").click()
    page.get_by_role("group", name="branches").get_by_role("button", name="topic").focus()
    for key in ("m", "ArrowUp", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    merge = merge_page(page)
    expect(merge).to_contain_text("fast-forward")
    expect(merge).to_contain_text("main will read 1 data file")
    expect(merge).to_contain_text("creates the tag merged-topic-5, which keeps them")
    expect(merge.get_by_role("textbox", name="commit message")).to_have_value(
        "Fast-forward main to topic:5"
    )
    screenshot(page, "preview")
    merge.get_by_role("button", name="Merge into main").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:5")
    expect(page.get_by_title("kept for a merge")).to_be_visible()
    panel = page.locator(".lnb-panel-refs")
    topic_line = panel.get_by_role("row").filter(has_text="topic")
    expect(topic_line).to_contain_text("✓ merged")
    panel.get_by_role("button", name="2 tags").click()
    line = panel.get_by_role("row").filter(has_text="merged-topic-5")
    expect(line).to_contain_text("keeps files for the merge main:5")
    line.click()
    details = page.get_by_role("region", name="details")
    expect(details).to_contain_text("goes once no version reads them")
    screenshot(page, "marked")

    made = lance_nb.dataset(dataset.uri)
    made.optimize.compact_files()
    made = lance_nb.dataset(dataset.uri)
    made.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert made.tags.names() == ["v1"]
    made.branches.delete("topic")
    lance.dataset(dataset.uri).validate()
    assert lance.dataset(dataset.uri).count_rows("id >= 700 and id < 730") == 30


@pytest.mark.parametrize("dark", [False, True])
def test_a_refused_merge_says_once_why_and_a_button_helps(
    open_widget: OpenWidget, screenshot: Screenshot, tmp_path: Path, dark: bool
) -> None:
    require_pylance()
    import lance

    path = tmp_path / "keyless.lance"  # without stable row ids
    made = lance.write_dataset(forked_rows(0, 20), path)
    made.create_branch("dev").update({"v": "7"}, where="id < 3")
    made.update({"v": "9"}, where="id >= 2 and id < 5")
    page = open_merge(open_widget, lance_nb.dataset(path), dark=dark)
    merge = merge_page(page)
    expect(merge).to_contain_text("choose the columns that identify a row")
    expect(merge.get_by_role("button", name="Merge into main")).to_be_disabled()
    expect(merge.get_by_text("choose the columns that identify a row")).to_have_count(1)
    screenshot(page, "refused")
    merge.get_by_role("button", name="Match rows by id").click()
    expect(merge).to_contain_text("Both sides changed 1 cell in 1 row")
    merge.get_by_role("group", name="all conflicts").get_by_role("button", name="dev").click()
    expect(page.locator(".lnb-code-line")).to_contain_text("key=['id'], resolve=['theirs']")
    merge.get_by_role("button", name="Merge into main").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:3")
    assert lance.dataset(path).to_table(filter="v = 7").num_rows == 3

    # A change that was picked: the same table.
    merge = merge_page(page)
    page.locator(".lnb-panel-refs").get_by_role("button", name="Merge…").click()
    merge.get_by_role("button", name="Revert").click()
    merge.get_by_role("textbox", name="key columns").fill("id")
    merge.get_by_role("combobox", name="source").fill("main:2")
    merge.get_by_role("button", name="Preview").click()
    expect(merge).to_contain_text("reverting main:2 on main:3")
    expect(merge).to_contain_text("Both sides changed 1 cell in 1 row")
    screenshot(page, "revert")
