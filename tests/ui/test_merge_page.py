"""Merging in a bare page, on datasets that pylance wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

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
