"""The stage in a bare page, over datasets that pylance wrote, with pylance writing beneath it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

import lance_nb
from lance_nb import spark
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.stage import row_sources
from lance_nb.explorer.stage.widget import StagePanel
from lance_nb.spark.run import RunOptions, run_once
from lance_nb.spark.task_log import RecordedTask
from tests.support.markup_payloads import PAYLOADS
from tests.support.requirements import require_pylance
from tests.ui.bare_page import OpenWidget, Screenshot
from tests.ui.tabs import open_tab

pytestmark = [pytest.mark.ui, pytest.mark.interop]


def table(count: int, first: int = 0) -> pa.Table:
    ids = range(first, first + count)
    names = [f"item {one}" for one in ids]
    return pa.table({"id": ids, "name": names, "price": [one * 1.5 for one in ids]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    lance = require_pylance()
    found = str(tmp_path / "shop.lance")
    lance.write_dataset(table(60), found, max_rows_per_file=20)
    return found


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    held: dict[str, Any] = {"more": table(3, 100), "other": pa.table({"z": [1]}), "_hidden": 1}
    monkeypatch.setattr(row_sources, "notebook_variables", lambda: held)
    return held


class Stage:
    """The tab, as a person uses it."""

    def __init__(self, page: Page, scope: str = ".lnb-panel-stage") -> None:
        self.page = page
        self.panel = page.locator(scope)

    def unlock(self) -> None:
        self.page.get_by_role("button", name="allow changes").click()
        expect(self.page.locator(".lnb-lock")).to_contain_text("Changes allowed")

    def fill(self, verb: str, **fields: str) -> None:
        self.panel.get_by_label("change", exact=True).select_option(verb)
        for name, value in fields.items():
            field = self.panel.get_by_label(name.replace("_", " "), exact=True).first
            if field.evaluate("(one) => one.tagName") == "SELECT":
                field.select_option(value)
            else:
                field.fill(value)
                field.press("Escape")

    def stage(self, verb: str, at: int = 0, **fields: str) -> Locator:
        """Stage a change and return its card, the one after ``at`` others."""
        self.fill(verb, **fields)
        self.panel.get_by_role("button", name="Stage", exact=True).click()
        cards = self.panel.locator(".lnb-sg-card")
        expect(cards).to_have_count(at + 1)
        return cards.nth(at)

    def discard(self, card: Locator) -> None:
        card.get_by_role("button", name="remove:").click()
        expect(card).to_have_count(0)


@pytest.fixture
def opened(open_widget: OpenWidget) -> Callable[..., Stage]:
    def open_(uri: str, *, unlock: bool = True, read_only: bool = False, **how: Any) -> Stage:
        page = open_widget(Explorer(lance_nb.dataset(uri), read_only=read_only), **how).page
        open_tab(page, "Stage")
        stage = Stage(page)
        expect(stage.panel.get_by_label("change", exact=True)).to_have_value("append")
        if unlock:
            stage.unlock()
        return stage

    return open_


def test_what_is_typed_is_checked_and_completed(
    opened: Callable[..., Stage], uri: str, screenshot: Screenshot
) -> None:
    stage = opened(uri, unlock=False)
    panel = stage.panel
    expect(panel.get_by_text("The lock is shut")).to_be_visible()
    expect(panel.get_by_role("button", name="Stage", exact=True)).to_be_disabled()
    panel.get_by_label("rows", exact=True).click()
    names = panel.get_by_role("listbox", name="rows: suggestions").get_by_role("option")
    expect(names).to_have_count(2)
    expect(names.first).to_contain_text("more")
    expect(names.last).to_contain_text("column 'z' is not in the dataset")
    names.first.click()
    expect(panel.get_by_label("rows", exact=True)).to_have_value("more")
    expect(stage.page.locator(".lnb-code-line")).to_have_text("ds.stage().append(more).commit()")
    stage.fill("delete", where="price <")
    expect(panel.locator(".lnb-sg-said")).to_contain_text("an operand is missing")
    where = panel.get_by_label("where", exact=True)
    expect(where).to_have_attribute("aria-invalid", "true")
    screenshot(stage.page, "wrong")
    where.fill("pri")
    panel.get_by_role("option", name="price").click()
    expect(where).to_have_value("price ")
    where.press_sequentially("< 3")
    expect(panel.locator(".lnb-sg-said")).to_contain_text("runs here")
    expect(where).not_to_have_attribute("aria-invalid", "true")
    expect(stage.page.locator(".lnb-code-line")).to_contain_text("delete('price < 3')")
    stage.fill("cast_column", column="id", to="int")
    expect(panel.locator(".lnb-sg-said")).to_contain_text("is not a type")
    stage.fill("append", rows="nope")
    expect(panel.locator(".lnb-sg-said")).to_contain_text("neither a variable nor a file")
    stage.fill("rename_column", column="nope", new_name="x")
    expect(panel.locator(".lnb-sg-said")).to_contain_text("no column named 'nope'")


def test_every_change_of_rows_shows_what_it_would_do(
    opened: Callable[..., Stage], uri: str, screenshot: Screenshot
) -> None:
    stage = opened(uri)
    card = stage.stage("delete", where="id >= 10 AND id < 25")
    expect(card.locator(".lnb-sg-facts")).to_contain_text("60 → 45")
    expect(card.locator(".lnb-sg-facts")).to_contain_text("2 changed")
    expect(card.get_by_role("region", name="rows: deleted").get_by_role("row")).to_have_count(6)
    expect(card.locator(".lnb-sg-where")).to_contain_text("ran here")
    expect(card.locator(".lnb-sg-calm")).to_contain_text("No other commits since main:1")
    stage.discard(card)
    card = stage.stage("update", column="price", new_value="price * 2", where="id = 4")
    expect(card.get_by_role("region", name="rows: before")).to_contain_text("6.0")
    expect(card.get_by_role("region", name="rows: after")).to_contain_text("12.0")
    screenshot(stage.page, "update")
    stage.discard(card)
    for verb, fields, words in (
        ("append", {"rows": "more"}, "60 → 63"),
        ("upsert", {"rows": "more", "match_on": "id"}, "60 → 63"),
        ("overwrite", {"rows": "other"}, "60 → 1"),
    ):
        card = stage.stage(verb, **fields)
        expect(card.locator(".lnb-sg-facts")).to_contain_text(words)
        stage.discard(card)
    expect(stage.panel.locator(".lnb-sg-none")).to_be_visible()


def test_how_much_ran_where_is_reported_once_and_rows_are_grouped(
    opened: Callable[..., Stage], tmp_path: Path
) -> None:
    uri = str(tmp_path / "parts.lance")
    require_pylance().write_dataset(table(4000), uri, max_rows_per_file=1000)
    card = opened(uri).stage("compact", rows_per_fragment="2000")
    where = card.locator(".lnb-sg-where")
    expect(where).to_contain_text("in 2 tasks")
    expect(where).not_to_contain_text(" · ")
    card.locator("summary").click()
    expect(card.locator(".lnb-sg-fragments li").first).to_have_text("− fragment 0: 1,000 → 0 rows")


def test_a_variable_of_a_cell_that_ran_meanwhile_is_offered(
    opened: Callable[..., Stage], uri: str, variables: dict[str, Any]
) -> None:
    stage = opened(uri)
    variables["fresh"] = table(2, 300)
    stage.page.wait_for_timeout(1100)  # the menu is not asked for twice in a second
    stage.panel.get_by_label("rows", exact=True).click()
    expect(stage.panel.get_by_role("option", name="fresh")).to_be_visible()


def test_columns_versions_and_names_are_changed_too(
    opened: Callable[..., Stage], uri: str, screenshot: Screenshot
) -> None:
    stage = opened(uri, width=1600)
    for verb, fields, words in (
        ("add_column", {"name": "eur", "computed_as": "price * 0.9"}, "Add column eur"),
        ("rename_column", {"column": "name", "new_name": "label"}, "Rename column name to label"),
        ("cast_column", {"column": "price", "to": "float32"}, "Cast column price to float32"),
        ("drop_columns", {"columns": "name"}, "Drop columns name"),
        ("restore", {"version": "main:1"}, "Restore main:1"),
        ("compact", {"rows_per_fragment": "1000"}, "target rows per fragment 1000"),
        ("cleanup", {"keep_the_newest": "1"}, "0 versions and 0 data files to delete"),
        ("tag", {"tag": "v1"}, "tag v1 on main:1"),
    ):
        card = stage.stage(verb, **fields)
        expect(card).to_contain_text(words)
        if verb == "add_column":
            expect(card.get_by_role("region", name="rows: after")).to_contain_text("eur")
            screenshot(stage.page, "column")
        if verb != "tag":
            stage.discard(card)
    stage.stage("branch", 1, branch="try-out")
    cards = stage.panel.locator(".lnb-sg-card")
    cards.nth(1).get_by_role("button", name="↑").click()
    expect(cards.first).to_contain_text("branch try-out from main:1")
    expect(stage.panel.get_by_role("button", name="Commit 2 as one version")).to_be_disabled()
    expect(stage.panel.locator(".lnb-sg-why")).to_contain_text("cannot be part of a transaction")
    stage.panel.get_by_role("button", name="Commit 2 one by one").click()
    expect(cards.locator(".lnb-sg-done")).to_have_count(2)
    expect(stage.page.locator(".lnb-tl-flag")).to_contain_text("v1")
    expect(stage.page.locator(".lnb-tl-names")).to_contain_text("try-out")
    screenshot(stage.page)
    assert lance_nb.dataset(uri).tags.names() == ["v1"]


def test_a_commit_lights_up_and_is_undone(
    opened: Callable[..., Stage], uri: str, screenshot: Screenshot
) -> None:
    stage = opened(uri, dark=True)
    card = stage.stage("append", rows="more")
    card.get_by_label("commit message").fill("three more")
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("committed as main:2")
    expect(stage.page.locator(".lnb-here-ref")).to_have_text("main:2")
    expect(stage.page.locator("[data-fresh='main:2']")).to_be_visible()
    code = stage.page.locator(".lnb-code-line")
    expect(code).to_have_text("ds.stage().append(more).commit('three more')")
    screenshot(stage.page, "lit")
    card.get_by_role("button", name="undo: restore version 1").click()
    undo = stage.panel.locator(".lnb-sg-card").nth(1)
    expect(undo.locator(".lnb-sg-facts")).to_contain_text("63 → 60")
    expect(undo).to_contain_text("Restore version 1")
    expect(undo.get_by_role("button", name="↑")).to_have_count(0)  # before it is nothing to commit
    undo.get_by_role("button", name="Commit").click()
    expect(undo.locator(".lnb-sg-done")).to_contain_text("main:3")
    expect(stage.page.locator(".lnb-here-ref")).to_have_text("main:3")
    lance = require_pylance()
    assert lance.dataset(uri).count_rows() == 60
    assert lance_nb.dataset(uri).version_info(2).message == "three more"


def test_two_writers_are_brought_together_or_reported_why_not(
    opened: Callable[..., Stage], uri: str, screenshot: Screenshot
) -> None:
    lance = require_pylance()
    stage = opened(uri)
    card = stage.stage("delete", where="id < 5")
    lance.dataset(uri).delete("id = 7")
    stage.panel.locator(".lnb-stage").dispatch_event("focusin")
    stage.page.evaluate("window.dispatchEvent(new Event('focus'))")
    met = card.locator(".lnb-sg-meetings")
    expect(met).to_contain_text("version 2: Rows deleted (Delete)")
    expect(met).to_contain_text("rebased onto it automatically")
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_contain_text("main:3")
    assert lance.dataset(uri).count_rows() == 54
    second = stage.stage("update", 1, column="price", new_value="0", where="id = 10")
    lance.dataset(uri).delete("id = 10")
    stage.page.wait_for_timeout(1100)  # it looks at most once a second
    stage.panel.locator(".lnb-stage").dispatch_event("focusin")
    expect(second.locator(".lnb-sg-retryable")).to_contain_text("row id 10")
    screenshot(stage.page, "forecast")
    second.get_by_role("button", name="Commit").click()
    expect(second.locator(".lnb-sg-state")).to_have_text("! not committed")
    expect(second.locator(".lnb-error")).to_contain_text("both change row 10")
    expect(second.locator(".lnb-error-title")).to_be_in_viewport()  # however long the card is
    again = second.get_by_role("button", name="re-run on the newest")
    expect(again).to_have_class(re.compile("lnb-sg-go"))
    screenshot(stage.page)
    second.get_by_role("button", name="re-run on the newest").click()
    expect(second.locator(".lnb-sg-lines")).to_contain_text("would change nothing")
    third = stage.stage("append", 2, rows="more")
    lance.write_dataset(pa.table({"z": [1]}), uri, mode="overwrite")
    third.get_by_role("button", name="Commit").click()
    expect(third.locator(".lnb-error")).to_contain_text("the two exclude each other")
    expect(third.locator(".lnb-sg-incompatible")).to_contain_text("Overwrite")
    assert lance.dataset(uri).schema.names == ["z"]


def test_cards_are_committed_as_one_version(opened: Callable[..., Stage], uri: str) -> None:
    stage = opened(uri, width=600)
    stage.stage("append", rows="more")
    stage.stage("delete", 1, where="id = 59")
    stage.panel.get_by_label("commit message for all cards").fill("both")
    stage.panel.get_by_role("button", name="Commit 2 as one version").click()
    done = stage.panel.locator(".lnb-sg-done")
    expect(done).to_have_text(["✓ committed as main:2"] * 2)
    assert lance_nb.dataset(uri).count_rows() == 62


def test_advice_of_the_storage_tab_becomes_a_card(
    opened: Callable[..., Stage], uri: str, screenshot: Screenshot
) -> None:
    lance = require_pylance()
    lance.dataset(uri).delete("id % 4 = 0")
    stage = opened(uri)
    stage.page.get_by_role("tab", name="Storage").click()
    advice = stage.page.locator(".lnb-panel-storage .lnb-st-card")
    expect(advice).to_have_count(2)
    advice.filter(has_text="Deleted rows").get_by_role("button", name="stage this").click()
    share = stage.panel.get_by_label(
        "rewrite fragments with at least this share of deleted rows", exact=True
    )
    expect(share).to_have_value("0.1")
    stage.panel.get_by_role("button", name="Stage", exact=True).click()
    card = stage.panel.locator(".lnb-sg-card")
    expect(card.locator(".lnb-sg-facts")).to_contain_text("3 dropped")
    card.get_by_role("button", name="Commit").click()
    expect(card.locator(".lnb-sg-done")).to_be_visible()
    expect(stage.page.locator(".lnb-facts [title*='deleted: 0 %']")).to_be_visible()
    assert lance.dataset(uri).count_rows() == 45


def test_hostile_names_stay_text_and_the_panel_stands_alone(
    open_widget: OpenWidget, tmp_path: Path, screenshot: Screenshot, variables: dict[str, Any]
) -> None:
    names = [one.replace(".", "_") for one in PAYLOADS if "\0" not in one][:6]
    values = [one for one in PAYLOADS if "<img" in one][:2]
    data = pa.table({"id": [1, 2], **dict.fromkeys(names, values)})
    uri = str(tmp_path / "hostile.lance")
    lance_nb.write_dataset(data, uri)
    variables["<b>x</b>"] = data
    page = open_widget(StagePanel(lance_nb.dataset(uri)), width=600, dark=True).page
    stage = Stage(page, ".lnb-stage")
    expect(stage.panel.get_by_label("change", exact=True)).to_have_value("append")
    stage.unlock()
    stage.stage("append", rows="<b>x</b>")
    stage.stage("delete", 1, where="id = 2")
    cards = stage.panel.locator(".lnb-sg-card")
    expect(cards.first).to_contain_text("Append rows from <b>x</b>")
    expect(cards.first).to_contain_text("<img")
    screenshot(page)
    cards.nth(1).get_by_role("button", name="Commit").click()
    expect(cards.nth(1).locator(".lnb-sg-done")).to_be_visible()
    expect(cards.first.locator(".lnb-sg-compatible, .lnb-sg-meetings")).not_to_have_count(0)


def test_a_read_only_explorer_stages_nothing(opened: Callable[..., Stage], uri: str) -> None:
    stage = opened(uri, unlock=False, read_only=True)
    expect(stage.panel.get_by_text("Opened with read_only=True")).to_be_visible()
    stage.fill("delete", where="id = 1")
    expect(stage.panel.locator(".lnb-sg-said")).to_contain_text("runs here")
    expect(stage.panel.get_by_role("button", name="Stage", exact=True)).to_be_disabled()


def test_an_interrupted_job_is_resumed(
    opened: Callable[..., Stage],
    uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    screenshot: Screenshot,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = RecordedTask.run

    def dies(task: RecordedTask) -> Any:
        if task.number == 2:
            raise KeyboardInterrupt
        return run(task)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(RecordedTask, "run", dies)
        plan = spark.plan_update(
            lance_nb.dataset(uri), {"price": "price * 2"}, "id > 9", task_bytes=1
        )
        run_once(plan, RunOptions(engine="local", journal=True))
    stage = opened(uri)
    job = stage.panel.locator(".lnb-sg-job")
    expect(job).to_contain_text("update price where id > 9")
    expect(job).to_contain_text("interrupted: 2 of 3 tasks are done")
    screenshot(stage.page, "stage_unfinished_job")
    job.get_by_role("button", name="Resume").click()
    expect(job).to_have_count(0)
    expect(stage.page.locator("[data-fresh='main:2']")).to_have_count(1)
    found = require_pylance().dataset(uri)
    assert found.version == 2
    prices = dict(zip(*found.to_table(columns=["id", "price"]).to_pydict().values(), strict=True))
    assert prices == {one: one * 1.5 * (2 if one > 9 else 1) for one in range(60)}
