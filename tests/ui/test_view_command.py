"""``lance-nb view``: the command as a person runs it, and the main flows in its page."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import lance_nb
from tests.support.explorer_datasets import worn_dataset
from tests.ui.bare_page import Screenshot
from tests.ui.waiting import eventually

pytestmark = pytest.mark.ui

# The pixels under the explorer, and those by which the page is too high.
BLANK = """
() => innerHeight - document.querySelector(".lnb-card").getBoundingClientRect().bottom
  + Math.max(0, document.documentElement.scrollHeight - innerHeight)
"""


def started(command: list[str]) -> subprocess.Popen[str]:
    """Start a command. Without ``preexec_fn``: a fork is a warning once pylance is loaded."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> int:
    """End a command and return its status; one that goes on is killed.

    By SIGTERM: a child of a shell that runs in the background ignores Ctrl-C.
    """
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def test_the_main_flows_work_without_a_notebook(
    page: Page, screenshot: Screenshot, tmp_path: Path
) -> None:
    uri = worn_dataset(tmp_path / "worn.lance").uri
    command = [sys.executable, "-m", "lance_nb.magic.command_line", "view", uri, "--no-browser"]
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    with started(command) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            page.goto(found.group())
            root = page.locator(".lnb-live")
            rows = root.locator(".lnb-panel-rows")
            expect(root.locator(".lnb-here-ref")).to_have_text("main:6")
            page.set_viewport_size({"width": 1280, "height": 1000})
            eventually(page, lambda: page.evaluate(BLANK) in range(16))
            page.set_viewport_size({"width": 1280, "height": 760})
            root.get_by_role("combobox", name="filter of rows").fill("id < 5")
            page.keyboard.press("Enter")
            expect(rows.locator(".lnb-grid-status")).to_contain_text("of 5")
            root.get_by_role("option", name="main version 2,").click()
            expect(root.locator(".lnb-here-ref")).to_have_text("main:2")
            root.get_by_role("tab", name="Changes").click()
            expect(root.locator(".lnb-ch-badge")).to_contain_text("by")
            screenshot(page)
            root.get_by_role("button", name="allow changes").click()
            root.get_by_role("tab", name="Stage").click()
            panel = root.locator(".lnb-panel-stage")
            panel.get_by_label("change", exact=True).select_option("delete")
            panel.get_by_label("where", exact=True).fill("id < 3")
            panel.get_by_label("where", exact=True).press("Escape")
            panel.get_by_role("button", name="Stage", exact=True).click()
            panel.locator(".lnb-sg-card").get_by_role("button", name="Commit").click()
            expect(panel.locator(".lnb-sg-done")).to_contain_text("main:7")
            assert lance_nb.dataset(uri).version == 7
            assert said == []
            assert all(one.startswith(("http://127.0.0.1:", "data:", "blob:")) for one in asked), (
                asked
            )
        finally:
            status = ended(process)
        assert status == 0
        assert process.stdout.read().endswith("ended\n")


def test_a_folder_of_tables_opens_as_cards(page: Page, tmp_path: Path) -> None:
    worn_dataset(tmp_path / "db" / "worn.lance")
    command = [sys.executable, "-m", "lance_nb.magic.command_line", "view", str(tmp_path / "db")]
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    with started([*command, "--no-browser"]) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            page.goto(found.group())
            expect(page).to_have_title("db")
            page.get_by_role("button", name="worn,").click()
            expect(page.locator(".lnb-here-ref")).to_have_text("main:6")
            page.get_by_role("button", name="All tables").click()
            expect(page.get_by_role("button", name="worn,")).to_be_focused()
            assert said == []
        finally:
            status = ended(process)
        assert status == 0
