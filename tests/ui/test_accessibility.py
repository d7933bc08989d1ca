"""axe-core over every tab, light and dark: nothing serious or critical is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from lance_nb.explorer.app import Explorer
from tests.support.explorer_datasets import worn_dataset
from tests.support.requirements import require_package
from tests.ui.bare_page import OpenWidget

pytestmark = pytest.mark.ui
TABS = ("Rows", "Changes", "Storage", "Branches & tags", "Stage", "My actions")
# axe looks at the widget only: the page around it belongs to the notebook.
RUN = "async () => axe.run('#here', { resultTypes: ['violations'] })"


def axe_source() -> str:
    """The text of axe-core, from the package that carries it."""
    require_package("axe_playwright_python")
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


def serious(page: Page) -> list[str]:
    """What axe finds: rule, and the elements."""
    found: dict[str, Any] = page.evaluate(RUN)
    return [
        f"{one['id']}: {[node['html'][:160] for node in one['nodes']][:4]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_tab_has_a_serious_finding(
    open_widget: OpenWidget, tmp_path: Path, *, dark: bool
) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    page = open_widget(Explorer(dataset), dark=dark).page
    page.evaluate(axe_source())
    expect(page.locator(".lnb-panel-rows .lnb-cell").first).to_be_visible()
    found: dict[str, list[str]] = {}
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
        page.wait_for_function(
            "() => !document.getAnimations().some((one) => one.playState === 'running')"
        )
        found[name] = serious(page)
    page.get_by_role("tab", name="Rows").click()
    page.locator(".lnb-panel-rows .lnb-grid").focus()
    page.keyboard.press("c")
    expect(page.locator(".lnb-column-pane")).to_be_visible()
    found["column"] = serious(page)
    page.locator(".lnb-panel-rows .lnb-grid").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".lnb-peek")).to_be_visible()
    found["cell"] = serious(page)
    assert {name: some for name, some in found.items() if some} == {}
