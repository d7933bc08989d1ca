"""Waiting for what lies on Python's side of a page: a trait, a canvas, a list of requests.

``expect`` waits for elements. What a click changes in the widget, or a frame draws, comes as late;
a test that looks once passes on a quiet machine and fails on a busy one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page, expect

PATIENCE_SECONDS = 60.0
STEP_MS = 25


def eventually(page: Page, holds: Callable[[], bool]) -> None:
    """Let the page go on until the condition holds.

    Raises:
        AssertionError: it did not, within `PATIENCE_SECONDS`.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        page.wait_for_timeout(STEP_MS)  # the only way to let the page's calls into Python run


def look_for_news(page: Page) -> None:
    """The explorer looks when its page comes to the front, too."""
    expect(page.locator("section.lnb")).to_have_attribute("data-kernel", "live")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
