"""How values of the façade show themselves in a notebook: a hook that the explorer fills.

The façade must not import the explorer (it would need ipywidgets); the explorer registers a
renderer when it is loaded, or a door that loads it on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Renderer = Callable[[Any], dict[str, Any] | None]

_renderers: list[Renderer] = []


def set_renderer(renderer: Renderer | None) -> None:
    """Install the function that turns a value of the façade into a mime bundle; None removes it."""
    _renderers.clear()
    if renderer is not None:
        _renderers.append(renderer)


def mime_bundle(value: object) -> dict[str, Any] | None:
    """Render a value, or return None so that the notebook falls back to its repr."""
    if not _renderers:
        return None
    return _renderers[0](value)
