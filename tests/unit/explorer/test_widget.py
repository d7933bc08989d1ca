from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from IPython.utils.capture import capture_output

import lance_nb
from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.explorer import assets
from lance_nb.explorer import widget as widgets
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.messages import handle
from lance_nb.explorer.registry import VIEWS
from lance_nb.explorer.session import Session
from lance_nb.explorer.version_refs import RefNames
from lance_nb.explorer.widget import (
    HeaderHandlers,
    LanceWidget,
    RowHistoryHandlers,
    mark_of,
    updates_since,
)
from tests.support.explorer_datasets import changed_dataset
from tests.support.fake_dataset import (
    FakeDataset,
    hostile_dataset,
    many_versions,
    one_table,
    rows,
    small_dataset,
)

WIDGETS = {"Explorer": Explorer, **VIEWS}


def talk(widget: LanceWidget, request: object) -> tuple[dict[str, Any], list[bytes]]:
    """Send a message as the front end would; returns the reply and its buffers."""
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    widget.send = lambda content, buffers=None: sent.append((content, buffers or []))
    widget._on_message(widget, request, [])
    (reply,) = sent
    return reply


@pytest.mark.parametrize("name", WIDGETS)
@pytest.mark.parametrize("dataset", [small_dataset(), one_table(rows(0)), many_versions(500)])
def test_every_widget_opens_answers_and_closes(name: str, dataset: Any) -> None:
    widget = WIDGETS[name](dataset)
    assert set(widget.parts) <= set(widget.screen)
    assert talk(widget, {"id": "1", "type": "ready", "args": {}})[0]["ok"]
    assert not talk(widget, {"nonsense": 1})[0]["ok"]
    assert len(json.dumps(widget.screen, default=lambda raw: "x" * len(raw))) < 200_000
    widget.close()
    assert "closed" in repr(widget)


@pytest.mark.parametrize("name", WIDGETS)
def test_in_marimo_a_widget_brings_the_whole_of_its_views(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """marimo loads no model but those that it displays."""
    marimo = SimpleNamespace(running_in_notebook=lambda: True)
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    widget = WIDGETS[name](small_dataset())
    assert widget.get_state("_views") == {"_views": ""}
    assert widget._code == assets.view_code(widget.entry)
    marimo.running_in_notebook = lambda: False  # a script that imports marimo
    assert WIDGETS[name](small_dataset())._code == {}


@pytest.mark.parametrize("name", WIDGETS)
def test_unknown_options_and_wrong_heights_are_refused(name: str) -> None:
    with pytest.raises(TypeError):
        WIDGETS[name](small_dataset(), colour="red")
    with pytest.raises(InvalidInputError):
        WIDGETS[name](small_dataset(), height=3)


def test_travelling_changes_the_screen_for_everybody() -> None:
    explorer = Explorer(small_dataset())
    reply, _ = talk(explorer, {"id": "1", "type": "travel", "args": {"branch": None, "version": 2}})
    assert reply["result"] == {"label": "main:2"}
    assert explorer.screen["label"] == "main:2"
    assert explorer.dataset.version == explorer.version == 2
    explorer.travel("dev")
    assert explorer.screen["label"] == "dev:3"
    window = {"offset": 30, "first_column": 1}
    talk(explorer, {"id": "2", "type": "travel", "args": {"ref": "3", "window": window}})
    assert explorer.screen["rows"]["page"]["offset"] == 30


def test_a_failed_journey_leaves_the_screen_and_says_why() -> None:
    explorer = Explorer(small_dataset())
    reply, _ = talk(explorer, {"id": "1", "type": "travel", "args": {"ref": "v9"}})
    assert reply["error"]["title"] == "No tag or branch with this name"
    assert explorer.screen["label"] == "main:4"
    for args in ({}, {"ref": 3}, {"ref": "1", "window": {"offset": -1}}, {"version": "x"}):
        assert not talk(explorer, {"id": "1", "type": "travel", "args": args})[0]["ok"]


def test_rows_come_with_their_buffers() -> None:
    explorer = Explorer(small_dataset())
    window = {"offset": 0, "limit": 5, "first_column": 0, "num_columns": 2}
    args = {"branch": None, "version": 4, **window}
    reply, buffers = talk(explorer, {"id": "1", "type": "rows", "args": args})
    assert reply["result"]["num_rows"] == 5
    assert len(buffers) == 3


def test_a_widget_that_failed_shows_why_and_keeps_the_error() -> None:
    error = DatasetNotFoundError("/no/where")
    explorer = Explorer(error)
    assert explorer.error is error
    assert explorer.screen["error"]["title"] == "No dataset found"
    assert "/no/where" in repr(explorer)
    assert talk(explorer, {"id": "1", "type": "ready", "args": {}})[0]["ok"]
    assert not talk(explorer, {"id": "1", "type": "travel", "args": {"ref": "1"}})[0]["ok"]
    with pytest.raises(InvalidInputError):
        _ = explorer.dataset


def test_the_repr_is_the_text_picture() -> None:
    assert "fake.lance · main:4" in repr(Explorer(small_dataset()))


def test_in_a_terminal_only_text_is_displayed() -> None:
    with capture_output() as captured:
        Explorer(small_dataset())._ipython_display_()
    text = captured.stdout + "".join(str(output.data) for output in captured.outputs)
    assert "fake.lance" in text
    assert "lnb-static" not in text


class Shown:
    """What a cell displays; ``update`` replaces what has an id, as a notebook does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.outputs: list[tuple[dict[str, Any], Any]] = []
        monkeypatch.setattr(widgets, "has_browser", lambda: True)
        monkeypatch.setattr(widgets, "display", self.display)

    def display(self, value: dict[str, Any], *, raw: bool, display_id: Any = None) -> Any:
        assert raw
        name = f"id{len(self.outputs)}" if display_id is True else display_id
        self.outputs.append((value, name))
        return DisplayHandle(name, self) if name else None


class DisplayHandle:
    def __init__(self, display_id: str, shown: Shown) -> None:
        self.display_id, self.shown = display_id, shown

    def update(self, value: dict[str, Any], *, raw: bool) -> None:
        assert raw
        outputs = self.shown.outputs
        outputs[:] = [(value if name == self.display_id else old, name) for old, name in outputs]


def test_in_a_kernel_the_widget_stands_before_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch)
    Explorer(small_dataset())._ipython_display_()
    live, picture, text = (value for value, _ in shown.outputs)
    assert "application/vnd.jupyter.widget-view+json" in live
    assert live["text/plain"] == "Explorer of fake.lance at main:4"
    assert picture["image/svg+xml"].startswith("<svg")
    assert "lnb-static" in text["text/html"]
    assert ":has(.lnb-live)" in text["text/html"]
    assert "17 more rows" in text["text/plain"]


def test_the_picture_follows_what_the_browser_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch)
    explorer = Explorer(small_dataset())
    talk(explorer, {"id": "1", "type": "shown", "args": {"tab": "refs"}})  # displayed nowhere yet
    explorer._ipython_display_()
    explorer._ipython_display_()  # the same explorer in another cell
    pictures = [value["image/svg+xml"] for value, name in shown.outputs if name]
    assert len(pictures) == 2
    assert all("Branches and tags" in one for one in pictures)
    talk(explorer, {"id": "2", "type": "travel", "args": {"ref": "2"}})
    talk(explorer, {"id": "3", "type": "shown", "args": {"tab": "rows"}})
    pictures = [value["image/svg+xml"] for value, name in shown.outputs if name]
    assert all("Explorer of fake.lance at main:2" in one for one in pictures)
    assert all("Branches and tags" not in one for one in pictures)
    explorer.close()
    talk(explorer, {"id": "4", "type": "shown", "args": {"tab": "refs"}})
    assert [value["image/svg+xml"] for value, name in shown.outputs if name] == pictures


def test_views_that_a_host_did_not_load_are_those_of_the_package() -> None:
    explorer = Explorer(hostile_dataset("</script><script>evil</script>"))
    reply, _ = talk(explorer, {"id": "1", "type": "views.send", "args": {}})
    assert reply["result"] == assets.view_code(explorer.entry)


def test_buffers_go_as_text_where_a_host_loses_them() -> None:
    explorer = Explorer(small_dataset())
    place = {"branch": None, "version": 4, "offset": 0, "limit": 5, "first_column": 0}
    request = {"id": "1", "type": "rows", "args": {**place, "num_columns": 2}}
    reply, buffers = talk(explorer, request)
    assert reply["num_buffers"] == len(buffers) > 0
    assert "base64" not in reply
    talk(explorer, {"id": "2", "type": "buffers", "args": {"as_text": True}})
    again, none = talk(explorer, request)
    assert none == []
    assert [base64.b64decode(one) for one in again["base64"]] == buffers
    assert again["num_buffers"] == len(buffers)


NAMES = RefNames(None, (3, 4, 7), ("dev",), {"v1": "a"})


def ask(session: Session, kind: str, **args: Any) -> dict[str, Any]:
    request = {"id": "1", "type": kind, "args": args}
    reply, _ = handle(request, session.keep(HeaderHandlers).handlers())
    return reply["result"] if reply["ok"] else reply["error"]


def commit(dataset: FakeDataset, version: int) -> None:
    main = dataset.lanes[None]
    main[version] = replace(main[max(main)], version=version)


def test_names_are_completed_for_the_branch_in_view() -> None:
    session = Session(small_dataset())
    assert ask(session, "refs", text="HEAD")["choices"][0]["note"] == "main:4"
    session.travel("dev:2")
    assert ask(session, "refs", text="HEAD")["choices"][0]["note"] == "dev:3"
    assert "at most" in ask(session, "refs", text="x" * 400)["message"]


def test_news_name_what_came_and_bring_the_timeline_once() -> None:
    dataset = small_dataset()
    session = Session(dataset)
    first = ask(session, "news", latest=4, mark="")
    assert (first["added"], first["gone"], "timeline" in first) == (0, False, False)
    commit(dataset, 5)
    then = ask(session, "news", latest=4, mark=first["mark"])
    assert (then["added"], then["latest"]) == (1, 5)
    assert then["timeline"]["lanes"][0]["runs"] == [[1, 5]]
    assert then["card"]["version"] == 4
    again = ask(session, "news", latest=4, mark=then["mark"])
    assert again["added"] == 1
    assert "timeline" not in again


def test_a_tag_that_somebody_moves_brings_the_timeline_and_reads_no_tag(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(pa.table({"id": [1]}), tmp_path / "a.lance")
    made.insert(pa.table({"id": [2]}))
    made.tags.create("best", 1)
    (path,) = (tmp_path / "a.lance" / "_refs" / "tags").iterdir()
    os.utime(path, (0, 0))  # else the clock of files may not tell both states apart
    session = Session(lance_nb.dataset(tmp_path / "a.lance"))
    first = ask(session, "news", latest=2, mark="")
    made.tags.update("best", 2)
    then = ask(session, "news", latest=2, mark=first["mark"])
    assert [tag["version"] for tag in then["timeline"]["tags"]] == [2]
    path.write_bytes(b"damaged")  # what is only listed cannot be in the way
    assert "mark" in ask(session, "news", latest=2, mark="")


def test_a_version_that_is_cleaned_up_is_reported() -> None:
    dataset = small_dataset()
    session = Session(dataset.checkout_version(2))
    del dataset.lanes[None][2]
    del dataset.lanes[None][1]
    assert ask(session, "news", latest=4, mark="")["gone"] is True


def test_a_branch_that_was_deleted_is_reported_with_a_way_on(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(pa.table({"id": [1]}), tmp_path / "a.lance")
    branch = made.create_branch("dev")
    branch.insert(pa.table({"id": [2]}))
    session = Session(branch)
    made.branches.delete("dev")
    found = ask(session, "news", latest=2, mark="")
    assert (found["gone"], found["lost"]) == (True, "branch dev was deleted")
    assert found["way"] == {"branch": None, "version": 1, "label": "main:1"}
    assert (
        "'dev' does not exist" in session.parts_json(("timeline",))["timeline"]["error"]["message"]
    )
    shutil.rmtree(tmp_path / "a.lance")
    found = ask(session, "news", latest=2, mark="")
    assert (found["lost"], found["way"]) == ("the dataset no longer exists", None)


def test_the_lock_is_shut_until_somebody_opens_it() -> None:
    session = Session(small_dataset())
    with pytest.raises(InvalidInputError, match="lock"):
        session.check_unlocked()
    assert ask(session, "lock", locked=False) == {"locked": False}
    session.check_unlocked()
    assert ask(session, "lock", locked=True) == {"locked": True}
    assert "true or false" in ask(session, "lock", locked=1)["message"]


def test_the_lock_of_a_read_only_explorer_stays_shut() -> None:
    session = Session(small_dataset(), read_only=True)
    assert "read_only" in ask(session, "lock", locked=False)["message"]
    assert session.screen(("card",))["locked"] is None


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(changed_dataset())


def ask_biography(session: Session, kind: str, **args: Any) -> dict[str, Any]:
    request = {"id": "1", "type": f"biography.{kind}", "args": {"version": 7} | args}
    reply, _ = handle(request, session.keep(RowHistoryHandlers).handlers())
    return reply["result"] if reply["ok"] else reply["error"]


def test_a_row_of_the_grid_is_found_and_followed(session: Session) -> None:
    found = ask_biography(session, "find", row=0, filter="id = 5")
    assert found["row_id"] == "5"
    place = {name: found[name] for name in ("fragment", "offset")}
    life = ask_biography(session, "steps", upto=2, **place)
    assert [one["event"] for one in life["steps"]] == ["moved", "extended"]
    assert ask_biography(session, "steps", upto=9, key=["id"], **place)["label"] == "key: id"


def test_columns_of_a_key_are_found_by_name(session: Session) -> None:
    found = ask_biography(session, "keys", text="L")
    assert [one["name"] for one in found["columns"]] == ["label", "half"]


@pytest.mark.parametrize(
    ("kind", "args", "words"),
    [
        ("find", {"row": 10**6}, "row does not exist"),
        ("find", {"row": -1}, "row must be"),
        ("steps", {"fragment": 2**32, "offset": 0, "upto": 1}, "fragment must be"),
        ("steps", {"fragment": 0, "offset": 0, "upto": 10**6}, "upto must be"),
        ("steps", {"fragment": 0, "offset": 0, "upto": 1, "key": "id"}, "key must be"),
        ("steps", {"fragment": 77, "offset": 0, "upto": 1}, "known to have a row"),
        ("keys", {"text": 7}, "text must be"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    session: Session, kind: str, args: dict[str, Any], words: str
) -> None:
    assert words in ask_biography(session, kind, **args)["message"]


def test_a_dataset_without_history_says_so() -> None:
    found = ask_biography(
        Session(small_dataset()), "steps", version=4, fragment=0, offset=0, upto=1
    )
    assert "cannot be compared" in found["message"]


def test_newer_versions_are_counted_from_the_one_that_was_known() -> None:
    found = updates_since(NAMES, 4, 4)
    assert (found.latest, found.added, found.was_removed) == (7, 1, False)
    assert updates_since(NAMES, 7, 7).added == 0
    assert updates_since(NAMES, 3, 1).added == 3


def test_a_version_that_was_cleaned_up_beneath_the_reader_is_gone() -> None:
    assert updates_since(NAMES, 5, 7).was_removed
    assert updates_since(RefNames(None, (), (), {}), 5, 7).was_removed


def test_the_mark_changes_with_every_name_and_with_a_tag_that_is_moved() -> None:
    marks = {
        mark_of(names)
        for names in (
            NAMES,
            replace(NAMES, numbers=(3, 4, 7, 8)),
            replace(NAMES, numbers=(4, 7)),
            replace(NAMES, branches=("dev", "x")),
            replace(NAMES, tags={}),
            replace(NAMES, tags={"v1": "b"}),
        )
    }
    assert len(marks) == 6
    assert mark_of(NAMES) == mark_of(replace(NAMES))
