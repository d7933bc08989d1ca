"""The timeline at scale, in a bare page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.history.widget import Timeline
from tests.support.fake_dataset import FakeDataset, FakeVersion, many_versions, rows
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui


def test_ten_thousand_versions_show_only_the_bars_in_sight(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    dataset = many_versions(10_000)
    bare = open_widget(Timeline(dataset))
    bars = bare.page.locator(".lnb-tl-bar")
    expect(bars.last).to_be_visible()
    eventually(bare.page, lambda: bars.count() < 150)
    here = bare.page.locator(".lnb-tl-bar.lnb-here")
    expect(here).to_have_attribute("aria-label", re.compile("^main version 10000,"))
    described = len(set(dataset.reads))
    assert described < 400
    screenshot(bare.page, "newest")
    bare.page.locator(".lnb-tl-scroll").evaluate("(element) => { element.scrollLeft = 0 }")
    first = bare.page.get_by_role("option", name="main version 1,", exact=False).first
    expect(first).to_have_attribute("aria-label", "main version 1, Rows added (Append), +50 rows")
    eventually(bare.page, lambda: bars.count() < 150)
    first.click()
    expect(here).to_have_attribute("aria-label", re.compile("^main version 1,"))
    screenshot(bare.page, "oldest")


def test_gaps_of_cleaned_versions_take_no_room(open_widget: OpenWidget) -> None:
    table = rows(3)
    lane = {number: FakeVersion(number, table) for number in (1, 2, 500, 501, 90_000)}
    page = open_widget(Timeline(FakeDataset({None: lane}))).page
    expect(page.locator(".lnb-tl-bar")).to_have_count(5)
    assert page.locator(".lnb-tl-plane").evaluate("(element) => element.scrollWidth") < 1400


OVERLAPS = """() => {
  const flags = [...document.querySelectorAll(".lnb-tl-flag > *")]
    .map((flag) => flag.getBoundingClientRect());
  return flags.filter((flag, index) => flags.some((other, place) =>
    place > index && flag.left < other.right - 1 && other.left < flag.right - 1
      && flag.top < other.bottom - 1 && other.top < flag.bottom - 1)).length;
}"""


@pytest.mark.parametrize("width", [600, 1280])
def test_flags_of_tags_never_stand_on_each_other(
    open_widget: OpenWidget, screenshot: Screenshot, width: int
) -> None:
    table = rows(5)
    places = {"raw-import": 2, "a": 9, "production": 9, "candidate": 9, "week-47": 20,
              "second-jury": 23, "a-tag-with-a-very-long-name-indeed": 26}  # fmt: skip
    tags = {name: {"branch": None, "version": version} for name, version in places.items()}
    lane: dict[int, FakeVersion] = {n: FakeVersion(n, table) for n in range(1, 27)}
    page = open_widget(Timeline(FakeDataset({None: lane}, tags=tags)), width=width).page
    flags = page.locator(".lnb-tl-flag")
    expect(flags).to_have_count(5)
    expect(flags.nth(1)).to_contain_text("a, production, candidate")
    expect(flags.last).to_contain_text("a-tag-with")
    eventually(page, lambda: page.evaluate(OVERLAPS) == 0)
    screenshot(page)


def test_many_branches_and_tags_stay_readable(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    table = rows(5)
    lanes: dict[str | None, dict[int, FakeVersion]] = {
        None: {number: FakeVersion(number, table) for number in range(1, 41)}
    }
    branches = {}
    for at in range(20):
        name = f"experiment/with-a-long-name-{at}"
        lanes[name] = {n: FakeVersion(n, table, "Update") for n in range(at + 3, at + 9)}
        branches[name] = {"parent_branch": None, "parent_version": at + 3}
    tags = {f"v{at}.0": {"branch": None, "version": at} for at in range(1, 41)}
    page = open_widget(Explorer(FakeDataset(lanes, tags=tags, branches=branches))).page
    expect(page.locator(".lnb-tl-name").last).to_have_text("15 more branches")
    expect(page.locator(".lnb-tl-flag")).to_have_count(40)
    eventually(page, lambda: page.evaluate(OVERLAPS) == 0)
    screenshot(page)


def test_pointing_at_a_bar_tells_about_it(open_widget: OpenWidget) -> None:
    page = open_widget(Timeline(many_versions(5))).page
    page.get_by_role("option", name="main version 2").hover()
    expect(page.locator(".lnb-tl-readout")).to_contain_text("main:2")
    expect(page.locator(".lnb-tl-readout")).to_contain_text("2026-01-01 12:02:00 UTC")
    page.mouse.move(5, 600)
    expect(page.locator(".lnb-tl-readout")).to_contain_text("main:5")


READS = """() => {
  window.reads = [];
  for (const name of ["scrollLeft", "clientWidth"]) {
    const plain = Object.getOwnPropertyDescriptor(Element.prototype, name);
    Object.defineProperty(Element.prototype, name, { ...plain, get() {
      if (this.classList.contains("lnb-tl-scroll")) window.reads.push(name);
      return plain.get.call(this);
    } });
  }
}"""


def test_a_screen_asks_the_page_for_its_sizes_once(open_widget: OpenWidget) -> None:
    page = open_widget(Timeline(many_versions(30))).page
    bar = page.get_by_role("option", name="main version 28,", exact=False)
    expect(bar).to_be_visible()
    page.evaluate(READS)
    bar.evaluate("(element) => element.click()")
    here = page.locator(".lnb-tl-bar.lnb-here")
    expect(here).to_have_attribute("aria-label", re.compile("^main version 28,"))
    # Each reading after a writing lays out the page anew: both come before anything is written.
    assert page.evaluate("window.reads") == ["clientWidth", "scrollLeft"]


def test_the_strip_shows_a_long_history_and_moves_the_window(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    tags = {"v1": {"branch": None, "version": 2500}}
    dataset = many_versions(5000)
    lanes: dict[str | None, dict[int, FakeVersion]] = {
        None: {n: FakeVersion(n, rows(1 + n // 50)) for n in dataset.lanes[None]}
    }
    page = open_widget(Explorer(FakeDataset(lanes, tags=tags))).page
    strip, window = page.locator(".lnb-hs"), page.get_by_role("slider", name="versions in sight")
    expect(window).to_have_attribute("aria-valuetext", re.compile("to 5,000 of 5,000 versions$"))
    place = page.locator(".lnb-tl-strip").bounding_box()
    assert place is not None
    assert place["height"] <= 20
    eventually(page, lambda: _grows(strip.locator("canvas").evaluate(COLUMNS)))
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + 8)
    page.mouse.down()
    expect(page.get_by_role("option", name="main version 2500,", exact=False)).to_be_visible()
    page.mouse.move(place["x"] + place["width"] / 5, place["y"] + 8, steps=5)
    page.mouse.up()
    expect(page.get_by_role("option", name="main version 1000,", exact=False)).to_be_visible()
    assert page.locator(".lnb-timeline *").count() < 700
    window.press("Home")
    expect(page.get_by_role("option", name="main version 1,", exact=False)).to_be_visible()
    edge = window.locator("i").last.bounding_box()
    assert edge is not None
    page.mouse.move(edge["x"] + 4, edge["y"] + 8)
    page.mouse.down()
    page.mouse.move(edge["x"] + 24, edge["y"] + 8, steps=3)
    page.mouse.up()
    expect(page.get_by_role("option", name="main version 160,", exact=False)).to_be_visible()
    screenshot(page)


# How high the strip is filled in each tenth of its width, in pixels of the canvas.
COLUMNS = """(canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  return Array.from({ length: 10 }, (_, tenth) => {
    const x = Math.floor(((tenth + 0.5) * width) / 10);
    return Array.from({ length: height }, (_, y) => data[4 * (y * width + x) + 3])
      .filter(Boolean).length;
  });
}"""


def _grows(heights: list[int]) -> bool:
    """Whether rows over versions rise as they were written."""
    return heights == sorted(heights) and heights[-1] >= heights[0] + 8


def test_a_history_that_the_bars_can_show_has_no_strip(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(many_versions(99))).page
    expect(page.locator(".lnb-tl-bar").last).to_be_visible()
    expect(page.locator(".lnb-tl-strip")).to_be_hidden()
    assert (
        page.locator(".lnb-tl-names").evaluate("(one) => getComputedStyle(one).marginTop") == "0px"
    )
