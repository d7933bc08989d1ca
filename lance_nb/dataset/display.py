"""How values of the façade show themselves in a notebook: a hook that the explorer fills.

The façade must not import the explorer (it would need ipywidgets); the explorer registers a
renderer when it is loaded, or one that loads it on first use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from lance_nb.errors import MissingPackageError

# What else is displayed, by the module and name of its class; nothing is imported for it.
VALUES = {
    ("lance_nb.table.history", "VersionInfo"): "version",
    ("lance_nb.table.diff.version_diff", "Diff"): "diff",
    ("lance_nb.format.transaction_summary", "TransactionSummary"): "transaction",
    ("lance_nb.dataset.fragment", "LanceFragment"): "fragment",
    ("lance_nb.format.lance_schema", "LanceSchema"): "schema",
    ("lance_nb.dataset.staging", "Stage"): "stage",
    ("lance_nb.writing.stage_preview", "StagePreview"): "preview",
    ("lance_nb.writing.staged", "StagedWrite"): "write",
}

Renderer = Callable[[Any], dict[str, Any] | None]

_renderers: list[Renderer] = []


def ipython_shell() -> Any | None:
    """Return the IPython shell that runs this code, None outside of one. Nothing is imported."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def in_marimo() -> bool:
    """Whether a cell of a marimo notebook runs this code. Nothing is imported."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


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


# Called with a review, and whether the page is to stand on its own.
PageRenderer = Callable[[Any, bool], str]

_page_renderers: list[PageRenderer] = []


def set_page_renderer(renderer: PageRenderer | None) -> None:
    """Install the function that renders the page of a review; None removes it."""
    _page_renderers.clear()
    if renderer is not None:
        _page_renderers.append(renderer)


def review_html(review: Any, *, whole: bool) -> str:
    """Render a review; ``whole`` is a file of its own. Raises MissingPackageError."""
    if not _page_renderers:
        raise MissingPackageError("the page of a review", "the explorer", "lance-nb[lab]")
    return _page_renderers[0](review, whole)
