"""What the widgets of one kind share in the browser: their ES module and style sheet, sent once.

The linked module of the explorer weighs hundreds of kilobytes. In every widget it would be sent,
parsed and compiled anew for each cell that is run, which is most of what a first screen costs. So a
widget's own module is a small loader (``js/loader.js``); the text travels in a model of its own,
one per kind of view and kernel, and is evaluated once per page.

Layout of the synced traits: ``module`` and ``style``, texts. A widget names this model in
``_views`` as ``IPY_MODEL_<id>``, the form in which saved states name other models, so that a
notebook saved with its states re-renders; ``_views_key`` is a hash of both texts: what a page has
already evaluated of the same content is used again.

Limits: a page that has no models (only the widget's own traits) cannot load it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import ClassVar

import ipywidgets
import traitlets

from lance_nb.explorer import assets

LOADER = assets.compose_module("js/loader.js")


class ViewModule(ipywidgets.Widget):  # type: ignore[misc]
    """The ES module and the style sheet of one kind of view."""

    module = traitlets.Unicode().tag(sync=True)
    style = traitlets.Unicode().tag(sync=True)

    _of_entry: ClassVar[dict[str, ViewModule]] = {}

    @classmethod
    def of(cls, entry: str) -> ViewModule:
        """Return the model of the view whose module is ``entry``; made anew when it was closed."""
        held = cls._of_entry.get(entry)
        if held is None or held.comm is None:
            module, style = texts(entry)
            held = cls._of_entry[entry] = cls(module=module, style=style)
        return held


@cache
def texts(entry: str) -> tuple[str, str]:
    """Return the linked module and style sheet of a view."""
    return assets.compose_module(entry), assets.compose_style(entry)


@cache
def key_of(entry: str) -> str:
    """Return a hash of what a view's module and style sheet hold."""
    return hashlib.sha256("\0".join(texts(entry)).encode()).hexdigest()[:32]
