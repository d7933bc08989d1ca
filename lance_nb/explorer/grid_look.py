"""Looking at other rows of a grid: those that pass a filter, in another order, or near a vector.

What was asked for (``Look``) becomes a ``GridLook``: the lens that reads such rows, how many there
are, in words how they were found, and the code that does the same.

Limits: those of ``models.row_query``. Neighbours: 1 to ``MAX_NEAR``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.arrangements import Arrangements
from lance_nb.explorer.messages import Progress, integer, words
from lance_nb.explorer.models import text
from lance_nb.explorer.models.row_query import (
    MAX_NEAR,
    FilterCost,
    NearestQuery,
    RowQuery,
    SortedRows,
    filter_cost,
    filtered_rows,
    nearest_rows,
    query_code,
    query_of,
    sorted_rows,
)
from lance_nb.explorer.models.source import Source, scanned_source, stored_source


@dataclass(frozen=True, slots=True)
class Order:
    """Sort by a column."""

    column: str
    ascending: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What is asked for. Neighbours come by distance, whatever the order."""

    lens: RowQuery
    order: Order | None = None
    like: NearestQuery | None = None


@dataclass(frozen=True, slots=True)
class GridLook:
    """What the grid shows from now on."""

    lens: RowQuery
    num_rows: int
    num_columns: int
    words: str
    reads: FilterCost | None
    code: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "num_rows": self.num_rows,
            "num_columns": self.num_columns,
            "words": self.words,
            "reads": None if self.reads is None else self.reads.to_json(),
            "code": self.code,
        }


def look_of(args: Mapping[str, Any], kept: Arrangements) -> Look:
    """Take what is asked for from the arguments of a request. Raises InvalidInputError."""
    order, near = args.get("order"), args.get("near")
    found = Look(query_of(args))
    if near is not None:
        if not isinstance(near, Mapping):
            raise InvalidInputError("near must be an object {like, k, metric}")
        k, metric = integer(near, "k", low=1, high=MAX_NEAR), words(near, "metric", 20)
        return replace(found, like=replace(kept.likeness(near.get("like")), k=k, metric=metric))
    if order is not None:
        if not isinstance(order, Mapping) or not isinstance(order.get("ascending"), bool):
            raise InvalidInputError("order must be an object {column, ascending}")
        return replace(found, order=Order(words(order, "column", 4000), order["ascending"]))
    return found


def look_at(dataset: Source, look: Look, progress: Progress) -> GridLook:
    """Find the rows. Raises LanceError when the filter is wrong or there is no such order."""
    lens = _arranged(dataset, look, progress)
    kept = lens.arranged
    if kept is not None:
        num_rows = kept.num_rows
    else:
        num_rows = dataset.count_rows(*([] if lens.filter is None else [lens.filter]))
    reads = None
    if lens.filter is not None and hasattr(dataset, "opened"):
        reads = filter_cost(stored_source(dataset), lens.filter)
    said = _words(look, kept) if isinstance(kept, SortedRows) else ""
    order = None if look.order is None else (look.order.column, look.order.ascending)
    code = query_code(dataset, lens, order, look.like)
    return GridLook(lens, num_rows, len(lens.names(dataset)), said, reads, code)


def _arranged(dataset: Source, look: Look, progress: Progress) -> RowQuery:
    where = look.lens.filter
    if look.like is not None:
        return replace(
            look.lens, arranged=nearest_rows(scanned_source(dataset), look.like, where, progress)
        )
    if look.order is not None:
        column, ascending = look.order.column, look.order.ascending
        found = sorted_rows(scanned_source(dataset), column, where, progress, ascending=ascending)
        return replace(look.lens, arranged=found)
    if where is not None and hasattr(dataset, "scanner"):
        return replace(look.lens, arranged=filtered_rows(scanned_source(dataset), where, progress))
    return look.lens


def _words(look: Look, found: SortedRows) -> str:
    if look.like is not None:
        near = text.plural(found.num_rows, "row")
        among = (
            f"all {text.count(found.scanned)}" if look.lens.filter is None else "those that pass"
        )
        return f"{near} nearest by {look.like.metric}, exact, of {among}"
    over = f"sorted over {text.plural(found.scanned, 'row')}"
    cut = found.num_rows < found.scanned
    return f"{over}; the first {text.count(found.num_rows)} are shown" if cut else over
