"""What the widgets of one kind share in the browser: their ES module and style sheet, sent once.

The linked module of the explorer weighs hundreds of kilobytes. In every widget it would be sent,
parsed and compiled anew for each cell that is run, which is most of what a first screen costs. So a
widget's own module is a small loader (``js/loader.js``); the views travel in a model of their own,
one per kind of view and kernel, which registers them in the page (``js/view_registration.js``) for
all loaders.

Layout of the synced traits: ``key``, a hash of the linked module and the style sheet, and
``style``; the module is the model's own. A widget has the same ``_views_key``, and names this model
in ``_views`` as ``IPY_MODEL_<id>``, the form in which saved states name other models, so that a
notebook saved with its states re-renders.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import ClassVar

import anywidget
import traitlets

from lance_nb.explorer import assets

LOADER = assets.compose_module("js/loader.js")


class ViewModule(anywidget.AnyWidget):
    """The ES module and the style sheet of one kind of view; it shows nothing itself."""

    _esm = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    style = traitlets.Unicode().tag(sync=True)

    _of_entry: ClassVar[dict[str, ViewModule]] = {}

    @classmethod
    def of(cls, entry: str) -> ViewModule:
        """Return the model of the view whose module is ``entry``; made anew when it was closed."""
        held = cls._of_entry.get(entry)
        if held is None or held.comm is None:
            module = assets.compose_module("js/view_registration.js", views=entry)
            held = cls(_esm=module, key=key_of(entry), style=texts(entry)[1])
            cls._of_entry[entry] = held
        return held


@cache
def texts(entry: str) -> tuple[str, str]:
    """Return the linked module and style sheet of a view."""
    return assets.compose_module(entry), assets.compose_style(entry)


@cache
def key_of(entry: str) -> str:
    """Return a hash of what a view's module and style sheet hold."""
    return hashlib.sha256("\0".join(texts(entry)).encode()).hexdigest()[:32]
