"""The tabs of an explorer, of which a narrow one has some in a menu."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def open_tab(view: Page | Locator, name: str) -> None:
    """Open a tab, by the menu where there is no room for it."""
    tab = view.get_by_role("tab", name=name, exact=True)
    if tab.is_visible():
        tab.click()
        return
    view.get_by_role("button", name="More ▾").click()
    view.locator(".lnb-menu-line", has_text=name).click()
