from __future__ import annotations

from typing import Any

import pytest

from lance_nb.explorer import display
from tests.unit.explorer.fakes import small_dataset


def test_in_a_terminal_a_dataset_shows_itself_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "has_browser", lambda: False)
    bundle = display.mime_bundle(small_dataset())
    assert "fake.lance · main:4" in bundle["text/plain"]
    assert "<style>" not in bundle["text/html"]


def test_in_a_notebook_the_live_explorer_stands_before_its_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(display, "has_browser", lambda: True)
    monkeypatch.setattr(display, "display", lambda value, **_raw: shown.append(value))
    bundle = display.mime_bundle(small_dataset())
    assert "application/vnd.jupyter.widget-view+json" in shown[0]
    assert ":has(.lnb-live)" in bundle["text/html"]
    assert "lnb-static" in bundle["text/html"]
