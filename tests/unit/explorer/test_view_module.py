from __future__ import annotations

import json
from typing import Any

import pytest

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.registry import VIEWS
from lance_nb.explorer.view_module import LOADER, ViewModule, key_of, texts
from tests.unit.explorer.fakes import one_table, rows, small_dataset

# The loader and the smallest screen travel with every cell that is run; the views must not.
MOST_BYTES = 12_000


def _state(widget: Any) -> dict[str, Any]:
    found: dict[str, Any] = widget.get_state()
    return found


def test_the_text_of_the_views_is_not_sent_with_every_explorer() -> None:
    first, second = _state(Explorer(one_table(rows(1)))), _state(Explorer(one_table(rows(2))))
    assert first["_views"] == second["_views"]
    assert first["_esm"] == second["_esm"] == LOADER
    assert "_css" not in first
    sent = json.dumps({name: value for name, value in second.items() if name != "screen"})
    assert len(sent) < MOST_BYTES
    assert "mountExplorer" not in json.dumps(second, default=str)


def test_the_model_that_a_widget_names_holds_its_views() -> None:
    state = _state(Explorer(small_dataset()))
    held = ViewModule.of(Explorer.entry)
    assert state["_views"] == f"IPY_MODEL_{held.model_id}"
    assert (held.key, held.style) == (state["_views_key"], texts(Explorer.entry)[1])
    assert "mountExplorer" in held._esm


@pytest.mark.parametrize("name", VIEWS)
def test_each_kind_of_view_has_a_key_of_its_own(name: str) -> None:
    entry = VIEWS[name].entry
    assert key_of(entry) != key_of(Explorer.entry)
    assert key_of(entry) == key_of(entry)


def _ask_for_views(explorer: Explorer, **args: Any) -> Any:
    replies: list[Any] = []
    explorer.send = lambda content, **_buffers: replies.append(content)
    explorer._on_message(explorer, {"id": "1", "type": "views.load", "args": args}, [])
    return replies[0]


def test_a_late_view_is_sent_when_its_tab_is_opened() -> None:
    explorer = Explorer(small_dataset())
    reply = _ask_for_views(explorer, entry="widgets/stage.js", again=False)
    held = ViewModule.late("widgets/stage.js")
    assert reply["result"] == {"key": held.key}
    assert held.base == _state(explorer)["_views_key"] != held.key
    assert "mountStage" in held._esm
    assert "mountStage" not in ViewModule.of(Explorer.entry)._esm
    assert "function h(" not in held._esm  # elements are made by the module of the explorer
    assert held.style


def test_a_late_view_that_did_not_arrive_is_sent_once_more() -> None:
    held = ViewModule.late("widgets/branches.js")
    before = held.model_id
    assert ViewModule.late("widgets/branches.js").model_id == before
    reply = _ask_for_views(Explorer(small_dataset()), entry="widgets/branches.js", again=True)
    assert reply["result"] == {"key": held.key}
    assert ViewModule.late("widgets/branches.js").model_id != before


@pytest.mark.parametrize("entry", ["app.js", "../app.js", "widgets/rows.js", "", None])
def test_no_other_module_is_loaded_later(entry: Any) -> None:
    assert not _ask_for_views(Explorer(small_dataset()), entry=entry)["ok"]


def test_a_model_that_was_closed_is_made_anew() -> None:
    held = ViewModule.of(Explorer.entry)
    before = held.model_id
    held.close()
    after = _state(Explorer(small_dataset()))["_views"]
    assert after == f"IPY_MODEL_{ViewModule.of(Explorer.entry).model_id}"
    assert after != f"IPY_MODEL_{before}"
