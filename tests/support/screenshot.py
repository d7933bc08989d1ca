"""The README's picture of the explorer, taken from the real one: ``make screenshot``.

The page is the one of the browser tests; the dataset is the demo, written anew.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from lance_nb.explorer.app import explore
from lance_nb.explorer.widget import LanceWidget
from lance_nb.magic.demo import demo_dataset
from tests.house.source import ROOT
from tests.support.requirements import require_chromium
from tests.ui.bare_page import BarePage
from tests.ui.conftest import FLAGS

PICTURE = ROOT / "notebooks" / "explorer.png"
SIZE = {"width": 1120, "height": 700}


def take(dataset: str, picture: Path) -> None:
    """Open the explorer on a dataset, wait until its rows are there, and save a picture."""
    LanceWidget.jobs_beside = False  # the page hears answers, not threads
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=require_chromium(), args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        BarePage(page, explore(dataset, height=440)).open(style="body { font-size: 13px }")
        page.locator(".lnb-cell").first.wait_for()
        page.locator(".lnb-histogram, .lnb-profile, .lnb-cell").first.wait_for()
        page.wait_for_load_state("networkidle")
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        take(demo_dataset(Path(folder) / "demo.lance"), PICTURE)
