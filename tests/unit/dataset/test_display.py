from __future__ import annotations

import pytest

from lance_nb.dataset import display


@pytest.fixture(autouse=True)
def put_back():
    installed = list(display._renderers)
    yield
    display.set_renderer(installed[0] if installed else None)


def test_without_a_renderer_a_notebook_falls_back_to_the_repr():
    display.set_renderer(None)
    assert display.mime_bundle(object()) is None


def test_the_last_renderer_that_was_installed_is_used():
    display.set_renderer(lambda _value: {"text/plain": "first"})
    display.set_renderer(lambda value: {"text/plain": f"second {value}"})
    assert display.mime_bundle(7) == {"text/plain": "second 7"}
