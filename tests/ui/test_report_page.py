"""The file of ``lance-nb report``, from the disk: with and without scripts, light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.report_page import SECTIONS, report_page
from tests.support.explorer_datasets import worn_dataset
from tests.ui.bare_page import Screenshot

pytestmark = pytest.mark.ui


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    dataset = worn_dataset(folder / "worn.lance")
    (folder / "saved.svg").write_text(Explorer(dataset).to_svg(), "utf-8")
    (folder / "report.html").write_text(report_page(dataset), "utf-8")
    return folder / "report.html"


def test_pictures_pan_and_zoom_offline(page: Page, report: Path, screenshot: Screenshot) -> None:
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(report.as_uri())
    figure = page.locator("figure").nth(1)
    picture = figure.locator("svg")
    whole = picture.get_attribute("viewBox") or ""
    figure.get_by_role("button", name="zoom in").click()
    closer = picture.get_attribute("viewBox") or ""
    assert float(closer.split()[2]) < float(whole.split()[2])
    figure.focus()
    page.keyboard.press("ArrowRight")
    beside = picture.get_attribute("viewBox") or ""
    assert float(beside.split()[0]) > float(closer.split()[0])
    box = picture.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, box["y"] + 60)
    page.mouse.up()
    dragged = picture.get_attribute("viewBox") or ""
    assert float(dragged.split()[0]) < float(beside.split()[0])
    screenshot(page)
    page.keyboard.press("0")
    assert [float(one) for one in (picture.get_attribute("viewBox") or "").split()] == [
        float(one) for one in whole.split()
    ]
    assert asked == [report.as_uri()]
    assert said == []


def test_without_scripts_every_picture_stands_and_its_text_is_found(
    browser: Browser, report: Path, screenshot: Screenshot
) -> None:
    """As GitHub, nbviewer and mail show them."""
    context = browser.new_context(java_script_enabled=False, color_scheme="dark")
    page = context.new_page()
    page.goto(report.as_uri())
    pictures = page.locator("figure svg")
    expect(pictures).to_have_count(len(SECTIONS) - 1)  # the dataset has no pictures
    for at in range(len(SECTIONS) - 1):
        expect(pictures.nth(at)).to_be_visible()
    expect(page.get_by_text("rows 0 – 11 of 270", exact=True)).to_be_visible()
    expect(page.get_by_text("Deleted rows", exact=True)).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)
    screenshot(page, "dark")
    page.goto((report.parent / "saved.svg").as_uri())
    expect(page.get_by_text("6 versions on 1 branch", exact=True)).to_be_visible()
    context.close()
