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


def test_a_model_that_was_closed_is_made_anew() -> None:
    held = ViewModule.of(Explorer.entry)
    before = held.model_id
    held.close()
    after = _state(Explorer(small_dataset()))["_views"]
    assert after == f"IPY_MODEL_{ViewModule.of(Explorer.entry).model_id}"
    assert after != f"IPY_MODEL_{before}"
