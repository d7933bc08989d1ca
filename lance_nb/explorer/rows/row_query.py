"""Which rows and columns of a version the grid shows, and the line of code that reads the same.

System columns are those that no schema names: row id, row address, and the versions that created
and last updated the row (for datasets without stable row ids the format derives these from the
fragment).

Limits: a filter has at most ``MAX_FILTER_CHARS`` characters; a line of code lists up to
``MAX_LISTED`` row ids and ``MAX_NAMES`` columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.code_lines import PYTHON_ONLY, Python, literal, magic, offered
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.rows.column_choice import USUAL_COLUMNS, ColumnChoice
from lance_nb.explorer.rows.full_text_search import SCORE, FullTextSearch
from lance_nb.explorer.rows.nearest_rows import REFINE_FACTOR, NearestQuery
from lance_nb.explorer.rows.row_order import (
    MAX_ORDERED,
    RowOrder,
    SortedRows,
    SortOrder,
    orderings,
    search_arguments,
)
from lance_nb.explorer.source import Source, scanned_source
from lance_nb.value_classes import dataclass

MAX_LISTED = 1000
MAX_FILTER_CHARS = 16_000
MAX_NAMES = 12
SYSTEM_COLUMNS = (
    "_rowid",
    "_rowaddr",
    "_row_created_at_version",
    "_row_last_updated_at_version",
)


@dataclass(frozen=True, slots=True)
class RowQuery:
    """The rows and columns that the grid shows."""

    filter: str | None = None
    system: bool = False
    order: RowOrder | None = None
    columns: ColumnChoice | None = None

    def names(self, dataset: Source) -> list[str]:
        """Return the columns, in the order of the grid."""
        column_names = self.known_names(dataset)
        chosen = column_names
        if self.columns is not None:
            chosen = self.columns.names(column_names, dataset.schema)
        found_by = self.found_by
        return chosen if found_by is None else [found_by, *(n for n in chosen if n != found_by)]

    def stored_names(self, dataset: Source) -> list[str]:
        """Return the columns without the distance or score of a search, which stands first."""
        return self.names(dataset)[int(self.found_by is not None) :]

    def read_names(self, dataset: Source) -> list[str]:
        """Return the columns that are read: in the order of the dataset if nobody chose another."""
        if self.columns == USUAL_COLUMNS:
            return replace(self, columns=None).names(dataset)
        return self.names(dataset)

    def known_names(self, dataset: Source) -> list[str]:
        """Return the columns that may be chosen from, in the order of the dataset."""
        return [*dataset.schema.names, *(SYSTEM_COLUMNS if self.system else ())]

    def ordered_names(self, dataset: Source) -> list[str]:
        """Return the columns that may be chosen from, in the order of the grid."""
        choice = self.columns or USUAL_COLUMNS
        return choice.ordered(self.known_names(dataset), dataset.schema)

    def num_pinned(self, dataset: Source) -> int:
        """Return how many columns stay on the left; the distance or score is one of them."""
        if self.columns is None:
            return 0
        pinned = self.columns.pinned_of(self.known_names(dataset), dataset.schema)
        return int(self.found_by is not None) + len(pinned)

    @property
    def found_by(self) -> str | None:
        """The name of the column with the distances or scores of a search, if there is one."""
        return self.order.found_by if isinstance(self.order, SortedRows) else None

    @property
    def search(self) -> FullTextSearch | None:
        """The search for words that has found the rows, if one has."""
        return None if self.order is None else self.order.search

    def rows(self, dataset: Source, columns: list[str], offset: int, limit: int) -> pa.Table:
        """Read rows by position."""
        if self.order is not None:
            return self.order.rows(scanned_source(dataset), columns, offset, limit)
        if self.filter is None:
            return dataset.to_table(columns=columns, limit=limit, offset=offset)
        return dataset.to_table(columns=columns, limit=limit, offset=offset, filter=self.filter)


def query_of(args: Mapping[str, Any]) -> RowQuery:
    """Take a query, without an order, from the arguments of a request.

    Raises InvalidInputError.
    """
    condition, system = args.get("filter"), args.get("system", False)
    if condition is not None and (
        not isinstance(condition, str) or len(condition) > MAX_FILTER_CHARS
    ):
        raise InvalidInputError(f"a filter must be text of at most {MAX_FILTER_CHARS:,} characters")
    if not isinstance(system, bool):
        raise InvalidInputError("system must be true or false")
    return RowQuery(condition.strip() or None if condition is not None else None, system)


def query_code(
    dataset: Source,
    query: RowQuery,
    order: Sequence[SortOrder] = (),
    nearest: NearestQuery | None = None,
    within: npt.NDArray[np.uint64] | None = None,
) -> dict[str, str]:
    """Return the lines that show the same rows, in Python and as a magic.

    There are none for rows ``within`` a choice that are also sorted, searched or filtered, or are
    many.
    """
    opened = refs.opened(dataset)
    ranked = query.search if query.found_by == SCORE else None
    if within is not None:
        if order or ranked or query.filter is not None or within.size > MAX_LISTED:
            return {}
        return {"python": opened.attribute("take_rows").call(within.tolist()).line()}
    arguments: dict[str, object] = {}
    is_chosen = query.columns is not None and query.columns != USUAL_COLUMNS
    if is_chosen:
        columns = arguments["columns"] = _columns_code(dataset, query)
        if isinstance(columns, Python):
            opened = Python(f"(ds := {opened.code})")
    elif query.system:
        names = ", ".join(map(literal, SYSTEM_COLUMNS))
        arguments["columns"] = Python(f"[*ds.schema.names, {names}]")
        opened = Python(f"(ds := {opened.code})")
    if query.filter is not None:
        arguments["filter"] = query.filter
    if order:
        arguments["order_by"] = orderings(order)
        arguments["limit"] = MAX_ORDERED
    if nearest is not None:
        arguments["nearest"] = Python("dict").call(
            column=nearest.column,
            q=nearest.code,
            k=nearest.k,
            metric=nearest.metric,
            **({"use_index": False} if nearest.index is None else {"refine_factor": REFINE_FACTOR}),
        )
        if query.filter:
            arguments["prefilter"] = True
    if ranked is not None:
        arguments |= search_arguments(ranked, query.filter, order) | {
            "full_text_query": ranked.code
        }
        named = arguments.get("columns")
        if isinstance(named, Python):
            arguments["columns"] = Python(f"[*{named.code}, {literal(SCORE)}]")
        elif named is not None:
            arguments["columns"] = [*query.stored_names(dataset), SCORE]
        python = opened.attribute("scanner").call(**arguments).attribute("to_table").call()
        return offered(python, _search_line(query, ranked, order))
    if not order and nearest is None:
        python = opened.attribute("to_table").call(**arguments)
    else:
        python = opened.attribute("scanner").call(**arguments).attribute("to_table").call()
    place = refs.place_word(dataset.branch, dataset.version)
    return offered(python, magic("head", place, options={"--where": query.filter}))


def _search_line(query: RowQuery, search: FullTextSearch, order: Sequence[SortOrder]) -> str:
    """Return the line of ``%lance search``, which ranks rows with any of the words."""
    if order or (len(search.terms) > 1 and not search.request.any_word):
        return PYTHON_ONLY
    if any(term.is_phrase for term in search.terms) and len(search.terms) > 1:
        return PYTHON_ONLY
    written = " ".join(term.text for term in search.terms)
    if search.terms[0].is_phrase:
        written = f'"{written}"'
    if any("," in name for name in search.columns):
        return PYTHON_ONLY  # %lance divides the names by commas
    options: dict[str, object] = {"--in": ",".join(search.columns), "--where": query.filter}
    return magic("search", written, options=options)


def _columns_code(dataset: Source, query: RowQuery) -> list[str] | Python:
    """Write the columns shown: by name, or where they are many by those that are left out.

    Many columns are written as they are stored, where only their order is another.
    """
    shown = query.stored_names(dataset)
    shown_names = set(shown)
    hidden = [name for name in dataset.schema.names if name not in shown_names]
    if len(shown) <= MAX_NAMES or len(hidden) > MAX_NAMES or query.columns is None:
        return shown
    pinned = query.columns.pinned_of(shown, dataset.schema)
    first = [*pinned, *(name for name in shown if name in SYSTEM_COLUMNS)]
    left_out = tuple(dict.fromkeys([*pinned, *hidden]))
    remaining = f"*(name for name in ds.schema.names if name not in {literal(left_out)})"
    return Python(f"[{', '.join([*map(literal, first), remaining])}]")
