"""What the grid looks at of a version: all rows or those that pass a filter, and system columns.

Positions of rows count those that pass, in the order of ``arranged`` if there is one (see
``arrangement``: sorted, or nearest to a vector). ``system`` adds the columns that no schema names:
row id, row address, and the versions that created and last updated the row (for datasets without
stable row ids the format derives these from the fragment).

Limits: a filter is at most ``MAX_FILTER_CHARS`` characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import Python, literal, magic, offered
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import refs
from lance_nb.explorer.models.arrangement import (
    DISTANCE,
    MAX_ORDERED,
    Arrangement,
    Likeness,
    Ordered,
)
from lance_nb.explorer.models.source import Source, scanned_source

MAX_FILTER_CHARS = 2000
SYSTEM_COLUMNS = (
    "_rowid",
    "_rowaddr",
    "_row_created_at_version",
    "_row_last_updated_at_version",
)


@dataclass(frozen=True, slots=True)
class Lens:
    """Which rows and which columns are looked at."""

    filter: str | None = None
    system: bool = False
    arranged: Arrangement | None = None

    def names(self, dataset: Source) -> list[str]:
        """Return the columns, in the order of the grid."""
        near = isinstance(self.arranged, Ordered) and self.arranged.distances is not None
        first = (DISTANCE,) if near else ()
        return [*first, *dataset.schema.names, *(SYSTEM_COLUMNS if self.system else ())]

    def rows(self, dataset: Source, columns: list[str], offset: int, limit: int) -> pa.Table:
        """Read rows by position."""
        if self.arranged is not None:
            return self.arranged.rows(scanned_source(dataset), columns, offset, limit)
        if self.filter is None:
            return dataset.to_table(columns=columns, limit=limit, offset=offset)
        return dataset.to_table(columns=columns, limit=limit, offset=offset, filter=self.filter)


def lens_of(args: Mapping[str, Any]) -> Lens:
    """Take a lens, without an arrangement, from the arguments of a request.

    Raises InvalidInputError.
    """
    wanted, system = args.get("filter"), args.get("system", False)
    if wanted is not None and (not isinstance(wanted, str) or len(wanted) > MAX_FILTER_CHARS):
        raise InvalidInputError(f"a filter is a text of at most {MAX_FILTER_CHARS:,} characters")
    if not isinstance(system, bool):
        raise InvalidInputError("system must be true or false")
    return Lens(wanted.strip() or None if wanted is not None else None, system)


def lens_code(
    dataset: Source,
    lens: Lens,
    order: tuple[str, bool] | None = None,
    like: Likeness | None = None,
) -> dict[str, str]:
    """Return the lines that show the same rows, in Python and as a magic."""
    opened = refs.opened(dataset)
    asked: dict[str, object] = {}
    if lens.system:
        names = ", ".join(map(literal, SYSTEM_COLUMNS))
        asked["columns"] = Python(f"[*ds.schema.names, {names}]")
        opened = Python(f"(ds := {opened.code})")
    if lens.filter is not None:
        asked["filter"] = lens.filter
    if order is not None:
        asked["order_by"] = [{"column_name": order[0], "ascending": order[1]}]
        asked["limit"] = MAX_ORDERED
    if like is not None:
        asked["nearest"] = Python("dict").call(
            column=like.column, q=like.code, k=like.k, metric=like.metric
        )
        if lens.filter:
            asked["prefilter"] = True
    if order is None and like is None:
        python = opened.attribute("to_table").call(**asked)
    else:
        python = opened.attribute("scanner").call(**asked).attribute("to_table").call()
    place = refs.place_word(dataset.branch, dataset.version)
    return offered(python, magic("head", place, options={"--where": lens.filter}))
