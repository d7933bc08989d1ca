"""How values show themselves when a cell ends with them, with their picture behind.

A dataset shows itself as the explorer, its values as ``value_pictures`` has it.

The façade's values ask ``mime_bundle`` through the hook in ``dataset.display``. In a notebook the
live widget is displayed first and the bundle is its picture, the same two outputs as a widget's own
display (see ``widget``); in a terminal the bundle is the picture's text.
"""

from __future__ import annotations

from typing import Any

from IPython.display import display

from lance_nb.errors import LanceError
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.pictures import Picture, picture_of_error
from lance_nb.explorer.value_pictures import kind_of, picture_of_value, widget_of
from lance_nb.explorer.widget import LanceWidget, behind, has_browser


def mime_bundle(value: Any) -> dict[str, Any]:
    """Render a dataset or one of its values; in a notebook the live form is displayed on the way.

    A value that cannot be pictured, because what it refers to is gone, says why instead.
    """
    try:
        widget, picture = _shown(value)
    except LanceError as error:
        widget, picture = None, picture_of_error(error)
    if widget is None:
        return {"text/plain": picture.text, "text/html": picture.html}
    display(widget.live_bundle(), raw=True)
    return {"text/plain": picture.text, "text/html": behind(picture)}


def _shown(value: Any) -> tuple[LanceWidget | None, Picture]:
    if kind_of(value) is None:
        explorer = Explorer(value)
        return (explorer if has_browser() else None), explorer.picture()
    return (widget_of(value) if has_browser() else None), picture_of_value(value)
