from __future__ import annotations

import json
from typing import Any

import pytest
from IPython.utils.capture import capture_output

from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.explorer import widget as widgets
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.registry import VIEWS
from lance_nb.explorer.widget import LanceWidget
from tests.unit.explorer.fakes import many_versions, one_table, rows, small_dataset

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


def test_in_a_kernel_the_widget_stands_before_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(widgets, "has_browser", lambda: True)
    monkeypatch.setattr(
        widgets,
        "display",
        lambda value, raw=False: shown.append(value if raw else {"text/html": value.data}),
    )
    Explorer(small_dataset())._ipython_display_()
    live, picture = shown
    assert "application/vnd.jupyter.widget-view+json" in live
    assert "fake.lance" in live["text/plain"]
    assert "lnb-static" in picture["text/html"]
    assert ":has(.lnb-live)" in picture["text/html"]
