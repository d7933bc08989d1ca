"""One browser and one JupyterLab server for the whole run; screenshots for a person to look at."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from lance_nb.explorer.widget import LanceWidget
from tests.support.requirements import require_chromium, require_package, require_pylance
from tests.ui.bare_page import BarePage, OpenWidget, Screenshot
from tests.ui.lab_server import LabServer
from tests.ui.notebook_page import OFFLINE
from tests.ui.waiting import STEP_MS

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "tests" / "artifacts" / "ui"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    *OFFLINE,
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Debian's Chromium; nothing is downloaded."""
    path = require_chromium()
    expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 760})
    page = context.new_page()
    page.set_default_timeout(120_000)
    yield page
    context.close()


@pytest.fixture
def open_widget(page: Page, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenWidget]:
    """Open widgets in bare pages; fails the test if the page complained about anything."""
    opened: list[BarePage] = []

    def open_(widget: LanceWidget, *, width: int = 1280, **how: Any) -> BarePage:
        page.set_viewport_size({"width": width, "height": 760})
        kernel = how.pop("kernel", True)
        monkeypatch.setattr(type(widget), "jobs_beside", False)  # a page hears answers, not threads
        opened.append(BarePage(page, widget, kernel=kernel).open(**how))
        return opened[-1]

    yield open_
    for bare in opened:
        assert bare.problems == []
        assert page.evaluate("window.__x") is None


# Whether a view still waits for rows, numbers or advice; a picture is taken when none does.
WAITS = """
() => [...document.querySelectorAll(".lnb-live:not([data-kernel=static])")].some((view) =>
  [...view.querySelectorAll(`.lnb-waiting, .lnb-ch-foot > span, .lnb-st-advice, .lnb-st-summary,
      .lnb-sg-verb`)]
    .some((one) => one.checkVisibility() && (one.matches(".lnb-waiting")
      || one.textContent === (one.matches(".lnb-ch-foot > span") ? "…" : ""))))
"""
PATIENCE_SECONDS = 3.0


@pytest.fixture
def screenshot(request: pytest.FixtureRequest) -> Screenshot:
    """Keep a picture of a page, named after the test; when what it asked for has come."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "_", request.node.name.removeprefix("test_")).strip("_")

    def take(page: Page, part: str = "") -> None:
        # Not `wait_for_function`, which a page with a content policy refuses to evaluate. Of a view
        # that waits for ever, too, a picture is wanted.
        end = time.monotonic() + PATIENCE_SECONDS
        while page.evaluate(WAITS) and time.monotonic() < end:
            page.wait_for_timeout(STEP_MS)
        page.screenshot(path=SCREENSHOTS / f"{name}{'_' + part if part else ''}.png")

    return take


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say of a failed test what its notebooks showed and said."""
    report = yield
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.failed and isinstance(lab, LabServer):
        said = "\n".join(filter(None, (page.told() for page in lab.pages)))
        report.sections.append(("notebooks", said))
    return report


@pytest.fixture(scope="session")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """Start JupyterLab on a folder with the tour and its demo dataset."""
    require_package("jupyterlab")
    require_pylance()
    server = LabServer(browser, ROOT, tmp_path_factory.mktemp("lab"))
    server.start()
    yield server
    server.stop()
