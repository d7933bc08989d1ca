"""How a dataset shows itself when a cell ends with it: as the explorer, with its picture behind.

The façade's values ask ``mime_bundle`` through the hook in ``dataset.display``. In a notebook the
live widget is displayed first and the bundle is its picture, the same two outputs as a widget's own
display (see ``widget``); in a terminal the bundle is the picture's text.
"""

from __future__ import annotations

from typing import Any

from IPython.display import display

from lance_nb.explorer.app import Explorer
from lance_nb.explorer.models.source import Source
from lance_nb.explorer.widget import behind, has_browser


def mime_bundle(dataset: Source) -> dict[str, Any]:
    """Render a dataset; in a notebook its live explorer is displayed on the way."""
    explorer = Explorer(dataset)
    picture = explorer.picture()
    if not has_browser():
        return {"text/plain": picture.text, "text/html": picture.html}
    display(explorer.live_bundle(), raw=True)
    return {"text/plain": picture.text, "text/html": behind(picture)}
