"""What the widgets of one kind share in the browser: their ES module and style sheet, sent once.

The linked module of the explorer weighs hundreds of kilobytes. In every widget it would be sent,
parsed and compiled anew for each cell that is run, which is most of what a first screen costs. So a
widget's own module is a small loader (``js/loader.js``); the views travel in a model of their own,
one per kind of view and kernel, which registers them in the page (``js/view_registration.js``) for
all loaders.

Views of the explorer that its first screen does without (``LATE_VIEWS``) have a model each, made
when the browser requests it. They share the modules of the explorer.

Layout of the synced traits: ``key``, a hash of the linked module and the style sheet; ``style``;
``base``, the key of the view whose modules this one shares, or empty; the module is the model's
own. A widget has the same ``_views_key``, and names this model in ``_views`` as
``IPY_MODEL_<id>``, the form in which saved states name other models, so that a notebook saved with
its states re-renders.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import ClassVar

import anywidget
import traitlets

from lance_nb.explorer import assets

EXPLORER = "app.js"
LATE_VIEWS = ("widgets/branches.js", "widgets/changes.js", "widgets/stage.js")
REGISTRATION = "js/view_registration.js"
LOADER = assets.compose_module("js/loader.js")


class ViewModule(anywidget.AnyWidget):
    """The ES module and the style sheet of one kind of view; it shows nothing itself."""

    _esm = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    style = traitlets.Unicode().tag(sync=True)
    base = traitlets.Unicode().tag(sync=True)

    _of_entry: ClassVar[dict[str, ViewModule]] = {}

    @classmethod
    def of(cls, entry: str) -> ViewModule:
        """Return the model of the view whose module is ``entry``; made anew when it was closed."""
        held = cls._of_entry.get(entry)
        if held is None or held.comm is None:
            late = LATE_VIEWS if entry == EXPLORER else ()
            module = assets.compose_module(REGISTRATION, views=entry, late=late)
            held = cls(_esm=module, key=key_of(entry), style=texts(entry)[1])
            cls._of_entry[entry] = held
        return held

    @classmethod
    def late(cls, entry: str, *, again: bool = False) -> ViewModule:
        """Return the model of a late view of the explorer; with ``again`` it is sent once more."""
        name = f"{EXPLORER} {entry}"
        held = cls._of_entry.get(name)
        if held is not None and again:
            held.close()
        if held is None or held.comm is None:
            module, style = late_texts(entry)
            key, base = late_key_of(entry), key_of(EXPLORER)
            held = cls(_esm=module, key=key, style=style, base=base)
            cls._of_entry[name] = held
        return held


@cache
def late_texts(entry: str) -> tuple[str, str]:
    """Return the linked module and style sheet of a late view, without those of the explorer."""
    module = assets.compose_module(REGISTRATION, views=entry, base=EXPLORER)
    return module, assets.compose_style(entry, base=EXPLORER)


@cache
def late_key_of(entry: str) -> str:
    """Return a hash of a late view's module and style sheet and of the explorer's."""
    return _digest(key_of(EXPLORER), *late_texts(entry))


@cache
def texts(entry: str) -> tuple[str, str]:
    """Return the linked module and style sheet of a view."""
    return assets.compose_module(entry), assets.compose_style(entry)


@cache
def key_of(entry: str) -> str:
    """Return a hash of what a view's module and style sheet hold."""
    return _digest(*texts(entry))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
