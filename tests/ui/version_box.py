"""The box in the menu of the header by which a person goes to another version."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def version_box(view: Page | Locator) -> Locator:
    """Open the menu of the version shown, if it is shut, and return its box."""
    box = view.get_by_role("combobox", name="go to a version")
    opener = view.locator(".lnb-here-ref")
    if opener.get_attribute("aria-expanded") != "true":
        opener.click()
    return box


def go_to(view: Page | Locator, ref: str) -> None:
    """Type a ref in the box."""
    box = version_box(view)
    box.fill(ref)
    box.press("Enter")
