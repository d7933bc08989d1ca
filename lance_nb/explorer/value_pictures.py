"""Rich display of single values: a version, a diff, a transaction, a fragment, a schema, a stage.

Each has three forms: text and static HTML (a ``Picture``, short and escaped), made from what the
value knows without reading data, and a widget. A diff, a fragment and a stage know
their dataset and are shown by the view of the explorer that shows them; of the others a card opens.
"""

from __future__ import annotations

from typing import Any

from lance_nb.dataset.display import VALUES
from lance_nb.errors import LanceError
from lance_nb.explorer.models.value_facts import FACTS
from lance_nb.explorer.pictures import Picture, picture_of_facts
from lance_nb.explorer.registry import DeletionMap, DiffView, StagePanel, ValueView
from lance_nb.explorer.widget import LanceWidget


def kind_of(value: object) -> str | None:
    """Return what a value is to be shown as, None for what shows itself."""
    return VALUES.get((type(value).__module__, type(value).__qualname__))


def picture_of_value(value: Any) -> Picture:
    """Picture a value that ``kind_of`` knows. Raises KeyError for others."""
    return picture_of_facts(FACTS[kind_of(value) or ""](value))


def widget_of(value: Any) -> LanceWidget:
    """Return the live form of a value that ``kind_of`` knows."""
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
