"""Show a dataset, or one of its values, when it is the result of a notebook cell.

A dataset is shown as the explorer, a database as the cards of its tables. A value (version, diff,
transaction, fragment, schema, stage) has three forms: text and static HTML, made without reading
data, and a widget. A diff, a fragment and a stage know their dataset and are shown by the view of
the explorer for them, the others as a card.

Datasets and values request ``mime_bundle`` through the hook in ``dataset.display``. In a notebook
the live widget and its picture are displayed first and the bundle is the same as text, the three
outputs of a widget's own display (see ``widget``); in a terminal the bundle is the text.
"""

from __future__ import annotations

from typing import Any

from lance_nb.dataset.database import Database
from lance_nb.dataset.display import VALUES, in_marimo
from lance_nb.errors import LanceError
from lance_nb.explorer.app import DatabaseExplorer, Explorer
from lance_nb.explorer.history.value_facts import FACTS
from lance_nb.explorer.registry import DeletionMap, DiffView, StagePanel, ValueView
from lance_nb.explorer.static_rendering import (
    StaticRendering,
    behind,
    render_error,
    render_facts,
    render_tables,
)
from lance_nb.explorer.tables.table_list import TABLES_SHOWN
from lance_nb.explorer.widget import LanceWidget, has_browser


def kind_of(value: object) -> str | None:
    """Return the kind of a value, None if it is not one of the values shown here."""
    return VALUES.get((type(value).__module__, type(value).__qualname__))


def render_value(value: Any) -> StaticRendering:
    """Render a value that ``kind_of`` knows. Raises KeyError for others."""
    return render_facts(FACTS[kind_of(value) or ""](value))


def widget_of(value: Any) -> LanceWidget:
    """Return the widget of a value that ``kind_of`` knows."""
    kind = kind_of(value) or ""
    try:
        if kind == "diff":
            return DiffView(value)
        if kind == "fragment" and value.num_deletions:
            return DeletionMap(value._dataset, value.fragment_id)  # noqa: SLF001
        if kind == "stage" and value.edits:
            return StagePanel(value)
    except LanceError:
        pass  # a card needs no data and still says what the value is
    return ValueView(FACTS[kind](value))


def mime_bundle(value: Any) -> dict[str, Any]:
    """Render a dataset or one of its values; in a notebook the live form is displayed on the way.

    If a value cannot be rendered, because its data was deleted, the error is shown instead.
    """
    try:
        widget, picture = _shown(value)
    except LanceError as error:
        widget, picture = None, render_error(error)
    if widget is None:
        return {"text/plain": picture.text, "text/html": picture.html}
    if in_marimo():  # it makes the widget of the bundle itself
        return widget.live_bundle() | {"text/plain": picture.text}
    widget.display_live()
    return {"text/plain": picture.text, "text/html": behind(picture)}


def _shown(value: Any) -> tuple[LanceWidget | None, StaticRendering]:
    if isinstance(value, Database):
        if not has_browser():
            names = value.table_names()  # to describe more would read a manifest each
            return None, render_tables(value, value.summaries(names[:TABLES_SHOWN]), len(names))
        explorer = DatabaseExplorer(value)
        return explorer, explorer.picture()
    if kind_of(value) is None:
        explorer = Explorer(value)
        return (explorer if has_browser() else None), explorer.picture()
    return (widget_of(value) if has_browser() else None), render_value(value)
