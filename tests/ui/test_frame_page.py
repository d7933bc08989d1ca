"""The frame of the explorer in a bare page: tabs, refs, handles, news, play, the meter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from lance_nb.explorer.app import Explorer
from tests.support.fake_dataset import FakeDataset, many_versions, small_dataset
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.version_box import go_to, version_box
from tests.ui.waiting import eventually, look_for_news

pytestmark = pytest.mark.ui
# A version stays for less than half a second while history plays: a busy test would miss it.
NOTE_THE_REFS = """() => {
  const label = document.querySelector(".lnb-here-ref");
  window.refsSeen = [];
  new MutationObserver(() => {
    if (window.refsSeen.at(-1) !== label.textContent) window.refsSeen.push(label.textContent);
  }).observe(label, { childList: true, characterData: true, subtree: true });
}"""


def commit(dataset: FakeDataset) -> None:
    main = dataset.lanes[None]
    main[max(main) + 1] = replace(main[max(main)], version=max(main) + 1, tags=())


def without_some(dataset: FakeDataset, gone: range) -> FakeDataset:
    for number in gone:
        del dataset.lanes[None][number]
    return dataset


def test_tabs_are_walked_with_the_keyboard(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    tabs = page.get_by_role("tablist", name="views")
    tabs.get_by_role("tab", name="Rows").focus()
    page.keyboard.press("End")
    last = tabs.get_by_role("tab").last
    expect(last).to_be_focused()
    expect(last).to_have_attribute("aria-selected", "true")
    expect(page.locator(".lnb-panel:visible")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(tabs.get_by_role("tab", name="Rows")).to_be_focused()
    expect(page.locator(".lnb-panel-rows")).to_be_visible()


def test_what_is_typed_is_completed_and_taken_with_the_keyboard(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    bare = open_widget(Explorer(small_dataset()))
    page = bare.page
    box = version_box(page)
    box.fill("v")
    choices = page.get_by_role("listbox", name="versions, tags").get_by_role("option")
    expect(choices).to_have_count(2)
    screenshot(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(choices.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(box).to_be_hidden()
    expect(page.locator(".lnb-here-ref")).to_be_focused()
    version_box(page).fill("dev")
    choices.first.click()
    expect(page.locator(".lnb-here-ref")).to_have_text("dev:3")
    bare.hold("refs")
    version_box(page).fill(
        "v1"
    )  # the list of all is asked for by the focus, then that of what was typed
    box.press("Enter")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")
    bare.release(2)
    expect(page.get_by_role("listbox", name="versions, tags")).to_be_hidden()  # nobody asks now


def test_ten_thousand_versions_are_completed_without_reading_any(open_widget: OpenWidget) -> None:
    dataset = many_versions(10_000)
    page = open_widget(Explorer(dataset)).page
    expect(page.locator(".lnb-here-ref")).to_have_text("main:10000")
    expect(page.locator(".lnb-tl-bar.lnb-op-unknown")).to_have_count(0)
    expect(page.locator(".lnb-hs canvas")).to_be_visible()

    def is_drawn() -> bool:
        known = len(dataset.reads)
        page.wait_for_timeout(300)
        return len(dataset.reads) == known

    eventually(page, is_drawn)
    known = len(dataset.reads)  # the bars in sight, and some for the strip above them
    assert known < 600
    version_box(page).fill("77")
    choices = page.get_by_role("listbox", name="versions, tags").get_by_role("option")
    expect(choices).to_have_count(6)
    expect(choices.first).to_contain_text("77")
    assert len(dataset.reads) == known


def test_the_handle_a_is_moved_by_keys_and_followed_by_the_readout(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    page = open_widget(Explorer(small_dataset())).page
    a = page.get_by_role("slider", name="A, the version")
    expect(a).to_have_attribute("aria-valuetext", "main:3")
    page.locator(".lnb-tl-plane").focus()
    page.keyboard.press("[")
    expect(a).to_have_attribute("aria-valuetext", "main:2")
    readout = page.locator(".lnb-tl-readout")
    expect(readout).to_contain_text("main:2 → main:4")
    expect(readout).to_contain_text("2 versions · +4 −9 rows")
    screenshot(page)
    page.keyboard.press("]")
    expect(a).to_have_attribute("aria-valuetext", "main:3")
    page.get_by_role("button", name="unpin A").click()
    expect(readout).to_contain_text("Update")


def test_the_handle_b_is_dragged_to_another_version(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    start = page.get_by_role("slider", name="B, the version").bounding_box()
    goal = page.get_by_role("option", name="main version 1,").bounding_box()
    assert start
    assert goal
    page.mouse.move(start["x"] + 8, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(goal["x"] + goal["width"] / 2, start["y"] + 8, steps=8)
    expect(page.locator(".lnb-tl-readout")).to_contain_text("→ main:1")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:4")
    page.mouse.up()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")


def test_news_are_asked_for_again_when_an_answer_is_lost(open_widget: OpenWidget) -> None:
    dataset = small_dataset()
    bare = open_widget(Explorer(dataset))
    page = bare.page
    expect(page.locator("section.lnb")).to_have_attribute("data-kernel", "live")
    page.clock.install()
    page.evaluate(
        """() => {
        const told = window.toKernel;
        window.lost = 0;
        window.toKernel = (content) => {
          if (content.type !== "news" || window.lost >= 2) return told(content);
          window.lost += 1;
          return new Promise(() => {});
        };
        }"""
    )
    look_for_news(page)
    commit(dataset)
    look_for_news(page)  # not while the answer may still come
    page.clock.run_for(7_000)
    assert page.evaluate("window.lost") == 1
    page.clock.run_for(2_000)
    eventually(page, lambda: page.evaluate("window.lost") == 2)
    page.clock.run_for(9_000)
    page.wait_for_timeout(200)  # the reply to the probe comes from outside of the page's clock
    page.clock.run_for(9_000)
    expect(page.get_by_role("button", name="1 new version → 5")).to_be_visible()


def test_shift_and_a_click_spans_a_range(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    page.get_by_role("option", name="main version 1,").click(modifiers=["Shift"])
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")
    expect(page.get_by_role("slider", name="A, the version")).to_have_attribute(
        "aria-valuetext", "main:4"
    )


def test_the_history_plays_to_its_end(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    play = page.get_by_role("button", name="play the history")
    page.evaluate(NOTE_THE_REFS)
    play.click()
    passed = [f"main:{version}" for version in (1, 2, 3, 4)]
    eventually(page, lambda: page.evaluate("window.refsSeen") == passed)
    expect(play).to_have_attribute("aria-pressed", "false")


def test_versions_that_were_cleaned_up_are_hatched(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    dataset = without_some(many_versions(40), range(3, 9))
    page = open_widget(Explorer(without_some(dataset, range(1, 2)))).page
    expect(page.locator(".lnb-tl-gap")).to_have_count(2)
    expect(page.get_by_title("versions 3 to 8 were cleaned up")).to_be_visible()
    expect(page.get_by_title("version 1 was cleaned up")).to_be_visible()
    screenshot(page)


def test_commits_of_others_appear_without_moving_anybody(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    dataset = small_dataset()
    page = open_widget(Explorer(dataset)).page
    page.locator(".lnb-panel-rows .lnb-grid-number").first.click()
    expect(page.locator(".lnb-grid-status")).to_contain_text("1 selected")
    commit(dataset)
    commit(dataset)
    look_for_news(page)
    news = page.get_by_role("button", name="2 new versions → 6")
    expect(news).to_be_visible()
    expect(page.locator(".lnb-tl-bar")).to_have_count(8)
    expect(page.locator(".lnb-here-ref")).to_have_text("main:4")
    expect(page.locator(".lnb-grid-status")).to_contain_text("1 selected")
    screenshot(page)
    news.click()
    expect(page.locator(".lnb-here-ref")).to_have_text("main:6")
    expect(news).to_have_count(0)


def test_a_version_that_one_went_to_meanwhile_is_no_news(open_widget: OpenWidget) -> None:
    dataset = small_dataset()
    bare = open_widget(Explorer(dataset))
    page = bare.page
    bare.hold("news")
    commit(dataset)
    look_for_news(page)
    go_to(page, "5")
    expect(page.locator(".lnb-here-ref")).to_have_text("main:5")
    bare.release(1)
    expect(page.locator(".lnb-news")).to_have_count(0)


def test_a_version_that_is_cleaned_up_beneath_its_reader_is_reported(
    open_widget: OpenWidget,
) -> None:
    dataset = small_dataset()
    page = open_widget(Explorer(dataset.checkout_version(2))).page
    del dataset.lanes[None][2]
    look_for_news(page)
    expect(page.locator(".lnb-marks")).to_contain_text("this version was cleaned up")


def test_the_meter_tells_what_an_action_cost(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    page.get_by_role("tab", name="Storage").click()
    meter = page.locator(".lnb-io")
    expect(meter).to_contain_text("0 requests · 0 B")
    page.evaluate(
        """window.deliver([{content: {id: 'nobody', ok: true, result: {},
        io: {requests: 5, bytes: 5000, ms: 7}}, buffers: []}])"""
    )
    expect(meter).to_contain_text("0 requests")  # an answer that nobody asked for costs nothing


def test_details_can_be_folded_away(open_widget: OpenWidget) -> None:
    page = open_widget(Explorer(small_dataset())).page
    details = page.get_by_role("button", name="details")
    details.click()
    expect(page.locator(".lnb-part-detail")).to_be_hidden()
    expect(details).to_have_attribute("aria-pressed", "false")
    details.click()
    expect(page.locator(".lnb-part-detail")).to_be_visible()
