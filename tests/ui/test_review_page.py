"""The review of a branch in the explorer, in a bare page, over a dataset that pylance wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb.explorer.app import Explorer
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.flow_dataset import png
from tests.ui.test_branches_page import details, line
from tests.ui.test_stage_page import Stage

pytestmark = [pytest.mark.ui, pytest.mark.interop]
HOSTILE = "<img src=x onerror='window.__x = 1'>"


@pytest.fixture(autouse=True)
def cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return photographs; a branch changes texts and a picture, adds a row and takes one away."""
    lance = require_pylance()
    found = str(tmp_path / "photos.lance")
    text = "A quiet street in the morning, seen from the second floor of a house number {}."
    table = pa.table(
        {
            "id": range(6),
            "caption": [text.format(n) for n in range(6)],
            "photo": [png(60, 40, 40 * n) for n in range(6)],
        }
    )
    dataset = lance.write_dataset(table, found, enable_stable_row_ids=True)
    lance_nb.dataset(found).expectations.add("length(caption) > 20", name="long-captions")
    dataset = lance.dataset(found)
    branch = dataset.create_branch("captions")
    changed = pa.table(
        {
            "id": [1, 2, 9],
            "caption": [
                "A busy street in the evening, seen from the second floor of a house number 1.",
                text.format(2),
                HOSTILE,
            ],
            "photo": [png(60, 40, 40), png(60, 40, 250), png(60, 40, 9)],
        }
    )
    merge = branch.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(changed)
    branch.delete("id = 4")
    branch.insert(pa.table({"id": [10], "caption": ["too short"], "photo": [png(60, 40, 1)]}))
    return found


def open_review(page: Page, branch: str = "captions") -> Locator:
    page.get_by_role("tab", name="Branches & tags").click()
    line(page, branch).click()
    details(page).get_by_role("button", name="Review…").click()
    return page.get_by_role("region", name=f"review of {branch}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_branch_is_reviewed(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot, *, dark: bool
) -> None:
    page = open_widget(Explorer(lance_nb.dataset(uri), height=900), dark=dark).page
    page.set_viewport_size({"width": 1280, "height": 1240})
    review = open_review(page)
    expect(review).to_contain_text("captions into main")
    expect(review.locator(".lnb-rv-state")).to_have_text("not approved")
    cells = review.locator(".lnb-rv-part-cells")
    expect(cells.locator("tbody tr")).to_have_count(2)
    expect(cells.locator("del")).to_have_text(["quiet", "morning"])
    expect(cells.locator("ins")).to_have_text(["busy", "evening"])
    expect(cells.locator("img")).to_have_count(2)  # old and new, side by side
    rows = review.locator(".lnb-rv-part-rows")
    expect(rows).to_contain_text("2 rows added")
    expect(rows).to_contain_text("1 row removed")
    expect(rows).to_contain_text(HOSTILE)
    expect(review.locator(".lnb-rv-part-drift tbody tr")).to_have_count(3)
    checks = review.locator(".lnb-rv-part-checks")
    expect(checks).to_contain_text("length(caption) > 20")
    expect(checks).to_contain_text("the condition is false for 1 row")
    for picture in cells.locator("img").all():
        assert picture.evaluate("async (one) => { await one.decode(); return one.naturalWidth }")
    screenshot(page)
    with page.expect_download() as download:
        review.get_by_role("button", name="As one file").click()
    assert download.value.suggested_filename == "review-captions.html"
    saved = Path(download.value.path()).read_text("utf-8")
    assert saved == lance_nb.dataset(uri).branches.review("captions").to_html()
    review.get_by_role("button", name="Open all changes").click()
    expect(page.get_by_role("tab", name="Changes")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".lnb-tl-readout")).to_contain_text("main:2 → captions:5")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_people_discuss_and_approve(
    open_widget: OpenWidget, uri: str, screenshot: Screenshot, *, dark: bool
) -> None:
    lance = require_pylance()
    page = open_widget(Explorer(lance_nb.dataset(uri), height=900), dark=dark).page
    page.set_viewport_size({"width": 1280, "height": 1240})
    review = open_review(page)
    expect(review).to_contain_text("No comments yet.")
    write = review.get_by_role("group", name="write")
    expect(write.get_by_role("button", name="Approve")).to_be_disabled()
    Stage(page).unlock()
    write.get_by_label("your name").fill("ada")
    write.get_by_label("comment", exact=True).fill(f"Why is row 4 gone?\n{HOSTILE}")
    write.get_by_role("button", name="Comment").click()
    comments = review.get_by_role("list", name="discussion").get_by_role("listitem")
    expect(comments).to_have_count(1)
    expect(page.locator(".lnb-code-line")).to_contain_text(
        "ds.branches.review('captions', 'main').comment("
    )
    # Another explorer, and code, write at the same time: the page hears of it by itself.
    other = lance_nb.dataset(uri).branches.review("captions")
    first = other.comments()[0]
    other.comment("It was blurred.", reply_to=first.id, author="bob")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(comments).to_have_count(2)
    expect(comments.nth(1)).to_contain_text("It was blurred.")
    comments.nth(1).get_by_role("button", name="Reply").click()
    expect(write).to_contain_text("In answer to bob")
    write.get_by_label("comment", exact=True).fill("Fine.")
    write.get_by_role("button", name="Comment").click()
    expect(comments).to_have_count(3)
    write.get_by_label("comment", exact=True).fill("The caption of row 10 is too short.")
    write.get_by_role("button", name="Request changes").click()
    expect(review.locator(".lnb-rv-state")).to_have_text("changes requested")
    expect(comments.nth(3)).to_contain_text("asks for changes")
    lance.dataset(uri).checkout_version(("captions", None)).delete("id = 10")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    again = review.get_by_role("button", name="Compare again")
    expect(again).to_be_visible()
    again.click()
    expect(review.locator(".lnb-rv-part-checks")).to_contain_text("1 passed")
    write.get_by_role("button", name="Approve").click()
    expect(review.locator(".lnb-rv-state")).to_have_text("approved")
    expect(comments.nth(3)).to_contain_text("about version 5")
    screenshot(page)
    found = lance_nb.dataset(uri).branches.review("captions")
    assert found.is_approved
    assert [(one.author, one.kind) for one in found.comments()] == [
        ("ada", "comment"), ("bob", "comment"), ("ada", "comment"),
        ("ada", "changes-requested"), ("ada", "approval"),
    ]  # fmt: skip
    assert "It was blurred." in found.to_html()
    page.get_by_role("tab", name="My actions").click()
    expect(page.locator(".lnb-ol-entry").first).to_contain_text("Approve captions:6")
    assert lance.dataset(uri).branches.list().keys() == {"captions"}
