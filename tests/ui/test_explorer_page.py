"""The explorer in a bare page: its own modules, a strict content policy, the real Python widget."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from lance_nb.errors import DatasetNotFoundError, ObjectNotFoundError
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.registry import VIEWS
from lance_nb.shown_text import visible
from tests.support.fake_dataset import (
    hostile_dataset,
    many_versions,
    one_table,
    rows,
    small_dataset,
)
from tests.support.markup_payloads import PAYLOADS
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.version_box import version_box
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui

# Pixels from the top of the card to the views in its tabs.
ABOVE = """() => document.querySelector(".lnb-part-views").getBoundingClientRect().top
  - document.querySelector(".lnb-card").getBoundingClientRect().top"""


def test_it_shows_header_timeline_rows_and_detail(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    page = open_widget(Explorer(small_dataset())).page
    expect(page.locator(".lnb-name")).to_have_text("fake.lance")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:4")
    expect(page.locator(".lnb-facts")).to_contain_text("rows 25")
    # What stands above the views takes little room, and the details do not repeat it.
    above = page.evaluate(ABOVE)
    assert above <= 230, above  # two branches and flags beside main
    expect(page.locator(".lnb-detail .lnb-counts dt")).to_have_text(
        ["deleted rows", "data files", "deletion files"]
    )
    page.get_by_role("button", name="Legend").click()
    expect(page.locator(".lnb-legend")).to_contain_text("+Append")
    screenshot(page, "legend")
    page.keyboard.press("Escape")
    expect(page.locator(".lnb-tl-bar")).to_have_count(6)
    expect(page.locator(".lnb-tl-flag")).to_contain_text("v1")
    expect(page.locator(".lnb-tl-name")).to_have_text(["main", "dev"])
    expect(page.locator(".lnb-cell").first).to_have_text("0")
    expect(page.locator(".lnb-operation")).to_contain_text("Update")
    screenshot(page)


def test_ages_are_updated_without_asking_the_kernel(page: Page, open_widget: OpenWidget) -> None:
    dataset = small_dataset()
    page.clock.install(time=dataset.version_info(4).timestamp + timedelta(minutes=90))
    bare = open_widget(Explorer(dataset))
    age = page.locator(".lnb-when")
    expect(age).to_contain_text("1 hour ago")
    asked = [one["type"] for one in bare.requests]
    page.clock.fast_forward("02:00:00")
    expect(age).to_contain_text("3 hours ago")
    later = [one["type"] for one in bare.requests[len(asked) :]]
    assert set(later) <= {"news", "ready", "rows.profile", "checks.state", "edit.marks"}, later


def test_a_click_on_an_older_version_travels_there(open_widget: OpenWidget) -> None:
    widget = Explorer(small_dataset())
    page = open_widget(widget).page
    page.get_by_role("option", name="main version 1").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")
    expect(page.locator(".lnb-grid")).to_have_attribute("aria-rowcount", "11")
    expect(page.locator(".lnb-grid-status")).to_contain_text("of 10")
    expect(page.locator(".lnb-code-line")).to_contain_text("version=1")
    assert widget.version == 1
    version_box(page)
    page.get_by_role("button", name="newest is 4").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:4")


def test_a_click_on_a_tag_or_a_branch_travels_there(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    page.locator(".lnb-tl-flag").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(page.locator(".lnb-version-about .lnb-tag")).to_contain_text("v1")
    page.get_by_role("option", name="dev version 3").click()
    expect(page.locator(".lnb-here-ref")).to_have_text("dev:3")


def _as_spoken(label: str) -> str:
    branch, version = label.split(":")
    return f"^{branch} version {version},"


def test_the_timeline_is_travelled_with_the_keyboard(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    page.locator(".lnb-tl-plane").focus()
    for key, label in [
        ("ArrowLeft", "main:3"),
        ("ArrowDown", "dev:3"),
        ("ArrowLeft", "dev:2"),
        ("ArrowUp", "main:2"),
        ("Home", "main:1"),
        ("End", "main:4"),
    ]:
        page.keyboard.press(key)
        expect(page.locator(".lnb-here-ref")).to_have_text(label)
        chosen = page.locator(".lnb-tl-bar[aria-selected='true']")
        expect(chosen).to_have_attribute("aria-label", re.compile(_as_spoken(label)))
        chosen_id = chosen.get_attribute("id") or "none"
        expect(page.locator(".lnb-tl-plane")).to_have_attribute("aria-activedescendant", chosen_id)


def test_keys_pressed_faster_than_the_kernel_answers_end_at_the_last_one(
    open_widget: OpenWidget,
) -> None:
    page = open_widget(Explorer(many_versions(40))).page
    page.locator(".lnb-tl-plane").focus()
    for _ in range(15):
        page.keyboard.press("ArrowLeft", delay=0)
    expect(page.locator(".lnb-here-ref")).to_have_text("main:25")


@pytest.mark.parametrize("ref", ["dev:2", "tag:v1", "HEAD~3"])
def test_the_box_goes_to_any_ref(open_widget: OpenWidget, ref: str) -> None:
    page = open_widget(Explorer(small_dataset())).page
    version_box(page).fill(ref)
    page.keyboard.press("Enter")
    expected = {"dev:2": "dev:2", "tag:v1": "main:2", "HEAD~3": "main:1"}[ref]
    expect(page.locator(".lnb-here-ref")).to_have_text(expected)


def test_a_ref_that_is_not_there_is_explained_and_changes_nothing(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    page = open_widget(Explorer(small_dataset())).page
    version_box(page).fill("tag:v9")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("No tag or branch with this name")
    expect(page.get_by_role("alert")).to_contain_text("'v1'")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:4")
    screenshot(page)
    page.get_by_role("button", name="close this message").click()
    expect(page.get_by_role("alert")).to_be_empty()


def test_what_cannot_be_opened_is_an_error_card(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    error = DatasetNotFoundError("data/demo.lanse")
    error.add_note("did you mean 'data/demo.lance'?")
    page = open_widget(Explorer(error)).page
    expect(page.locator(".lnb-error-title")).to_have_text("No dataset found")
    expect(page.locator(".lnb-error-message")).to_contain_text("did you mean")
    screenshot(page)


def test_rows_that_cannot_be_read_leave_the_other_views(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    dataset = small_dataset()
    dataset.row_error = ObjectNotFoundError("data/1f.lance", "fragment 0")
    page = open_widget(Explorer(dataset)).page
    expect(page.locator(".lnb-rows .lnb-error-title")).to_have_text(
        "A file of the dataset is missing"
    )
    expect(page.locator(".lnb-name")).to_have_text("fake.lance")
    expect(page.locator(".lnb-tl-bar").first).to_be_visible()
    screenshot(page)


def test_an_empty_version_says_so(open_widget: OpenWidget, screenshot: Screenshot) -> None:
    page = open_widget(Explorer(one_table(rows(0)))).page
    expect(page.locator(".lnb-empty")).to_have_text("This version has no rows.")
    expect(page.locator(".lnb-grid-column b").first).to_have_text("id")
    screenshot(page)


def test_without_a_kernel_it_is_a_picture_and_says_so(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    page = open_widget(Explorer(small_dataset()), kernel=False).page
    expect(page.locator(".lnb-cell").first).to_have_text("0")
    expect(page.locator(".lnb-badge")).to_contain_text("Static snapshot")
    screenshot(page)


def test_no_name_and_no_value_becomes_markup(open_widget: OpenWidget) -> None:
    bare = open_widget(Explorer(hostile_dataset(PAYLOADS[0])))
    page = bare.page
    foreign = "script, img, iframe, object, embed, link, base, meta, video, math, template, a"
    handlers = """[...document.querySelectorAll('#here *')].flatMap((e) => [...e.attributes])
        .map((attribute) => attribute.name).filter((name) => name.startsWith('on'))"""
    for payload in PAYLOADS:
        explorer = Explorer(hostile_dataset(payload))
        bare.show(explorer)
        expect(page.locator(".lnb-description")).to_have_text(explorer.screen["detail"]["message"])
        expect(page.locator(".lnb-cell").first).to_have_text(visible(payload))
        assert page.locator("#here").locator(foreign).count() == 0
        assert page.evaluate(handlers) == []
        assert page.evaluate("window.__x") is None


def test_a_broken_request_is_answered_and_breaks_nothing(open_widget: OpenWidget) -> None:
    bare = open_widget(Explorer(small_dataset()))
    answers = bare.page.evaluate(
        """async () => [await window.toKernel({id: "x", type: "rows"}),
                        await window.toKernel({id: "y", type: "nonsense"})]"""
    )
    assert [event["content"]["ok"] for (event,) in answers] == [False, False]
    bare.page.evaluate("window.deliver([{content: {id: 'stranger', ok: true}, buffers: []}])")
    expect(bare.page.locator(".lnb-name")).to_have_text("fake.lance")


def test_the_same_as_code_can_be_copied(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    expect(page.locator(".lnb-code-line")).to_have_text(
        "ds = lance_nb.dataset('data/fake.lance', version=4)"
    )
    page.get_by_role("button", name="%lance").click()
    expect(page.locator(".lnb-code-line")).to_have_text("%lance at main:4")
    page.get_by_role("button", name="copy").click()
    expect(page.get_by_role("button", name="copied")).to_be_visible()


def test_a_kernel_that_was_busy_is_asked_again_when_it_answers(open_widget: OpenWidget) -> None:
    bare = open_widget(Explorer(many_versions(200)), kernel=False)
    page = bare.page
    expect(page.locator(".lnb-badge")).to_contain_text("Static snapshot")
    assert page.locator(".lnb-op-unknown").count() > 10
    bare.wake()
    expect(page.locator(".lnb-badge")).to_be_hidden()
    expect(page.locator(".lnb-op-unknown")).to_have_count(0)


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_works_alone(open_widget: OpenWidget, screenshot: Screenshot, name: str) -> None:
    page = open_widget(VIEWS[name](small_dataset())).page
    root = {"Overview": ".lnb-name", "Timeline": ".lnb-tl-bar", "RowGrid": ".lnb-cell"}
    root |= dict.fromkeys(
        ("StorageView", "FragmentMap", "DeletionMap", "SpaceView"), ".lnb-storage"
    )
    root["SchemaTree"] = ".lnb-schema"
    root["DiffView"] = ".lnb-changes"
    root["EmbeddingMap"] = ".lnb-map"
    root["PictureWall"] = ".lnb-wall"
    root["RefsManager"] = ".lnb-rl"
    root["StagePanel"] = ".lnb-sg-form"
    root["ExpectationsPanel"] = ".lnb-ex-form"
    root["OperationsLogView"] = ".lnb-ol-none"
    expect(page.locator(root.get(name, ".lnb-operation")).first).to_be_visible()
    screenshot(page)


def test_a_closed_view_leaves_nothing_behind(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    page.evaluate("window.stop()")
    assert page.locator("#here").evaluate("(element) => element.childElementCount") == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [600, 1600])
def test_it_fits_narrow_and_wide_pages(
    open_widget: OpenWidget, screenshot: Screenshot, *, dark: bool, width: int
) -> None:
    page = open_widget(Explorer(small_dataset()), width=width, dark=dark).page
    expect(page.locator(".lnb-cell").first).to_have_text("0")
    too_wide = "document.documentElement.scrollWidth - window.innerWidth"
    eventually(page, lambda: page.evaluate(too_wide) <= 0)
    screenshot(page)
