"""Replies that are late or lost, and a kernel that was restarted, in a bare page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lance_nb.explorer.app import Explorer
from tests.support.fake_dataset import small_dataset
from tests.ui.conftest import OpenWidget, Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui

# The kernel answers, and the reply to the first requests of a type never arrives.
DROP = """([type, times]) => {
  const answer = window.toKernel;
  window.dropped = 0;
  window.toKernel = async (content) => {
    const events = await answer(content);
    if (content.type !== type || window.dropped >= times) return events;
    window.dropped += 1;
    return [];
  };
}"""
LATE = ".lnb-late:not([hidden])"


def test_a_lost_reply_is_asked_for_again(open_widget: OpenWidget) -> None:
    bare = open_widget(Explorer(small_dataset()))
    page = bare.page
    page.clock.install()
    page.evaluate(DROP, ["travel", 1])
    page.locator(".lnb-tl-bar").first.click()
    eventually(page, lambda: page.evaluate("window.dropped") == 1)
    page.clock.run_for(9_000)
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")
    expect(page.locator(LATE)).to_have_count(0)
    page.locator(".lnb-tl-bar").nth(1).click()  # the line is free again
    expect(page.locator(".lnb-here-ref")).to_have_text("main:2")
    assert [one["type"] for one in bare.requests].count("travel") == 3


def test_replies_lost_twice_give_an_error_that_can_be_tried_again(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    bare = open_widget(Explorer(small_dataset()))
    page = bare.page
    page.clock.install()
    page.evaluate(DROP, ["storage.map", 2])
    page.get_by_role("tab", name="Storage").click()
    eventually(page, lambda: page.evaluate("window.dropped") == 1)
    page.clock.run_for(9_000)
    eventually(page, lambda: page.evaluate("window.dropped") == 2)
    page.clock.run_for(9_000)
    card = page.locator(".lnb-error", has_text="No answer from the kernel")
    expect(card).to_be_visible()
    screenshot(page)
    card.get_by_role("button", name="Try again").click()
    expect(card).to_have_count(0)


def test_a_busy_kernel_is_said_to_be_busy_until_it_answers(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    bare = open_widget(Explorer(small_dataset()))
    page = bare.page
    page.clock.install()
    bare.hold("travel", "ready", "news")
    page.locator(".lnb-tl-bar").first.click()
    page.clock.run_for(9_000)
    notice = page.locator(LATE)
    expect(notice).to_contain_text("No answer from the kernel yet")
    page.clock.run_for(60_000)
    expect(page.locator(".lnb-error")).to_have_count(0)
    screenshot(page)
    page.evaluate("window.release()")
    expect(notice).to_have_count(0)
    expect(page.locator(".lnb-here-ref")).to_have_text("main:1")


def test_a_restarted_kernel_is_noticed_without_a_click(
    open_widget: OpenWidget, screenshot: Screenshot
) -> None:
    bare = open_widget(Explorer(small_dataset()))
    page = bare.page
    page.clock.install()
    bare.hold("ready", "news")
    page.evaluate("window.fire('comm_live_update')")
    page.clock.run_for(2_000)
    expect(page.locator(".lnb-badge")).to_contain_text("The kernel was restarted")
    expect(page.locator("section.lnb")).to_have_attribute("data-kernel", "static")
    screenshot(page)
