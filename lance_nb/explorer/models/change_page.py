"""A window of changes as column buffers: new values, and the old ones of cells that changed.

Layout of ``to_json``: ``page`` (a row page, see ``row_page``), ``old`` (another one, of the columns
that changed in the window; its buffers begin at ``split``), ``marks``: per such column its place in
``page``, its place in ``old``, and a text of 0 and 1 per row; ``kinds``: one character per row,
``+``, ``-``, ``~`` or a space.

Limits: a window is cut to ``MAX_PAGE_BYTES``, and the browser asks again for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lance_nb.explorer.models.row_page import MAX_PAGE_BYTES, RowPage, page_of

GLYPHS = {"added": "+", "removed": "-", "changed": "~", "renamed": "~"}


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes, a row each; ``old`` and ``masks`` are by position of the column in ``new``.

    ``plain`` windows are of our own columns: without types, those in ``numeric`` set to the right.
    """

    kinds: str
    new: pa.Table
    old: Mapping[int, pa.Array] = field(default_factory=dict)
    masks: Mapping[int, str] = field(default_factory=dict)
    plain: bool = False
    numeric: frozenset[int] = frozenset()

    def head(self, count: int) -> Changes:
        """Return the first rows."""
        return replace(
            self,
            kinds=self.kinds[:count],
            new=self.new.slice(0, count),
            old={at: column.slice(0, count) for at, column in self.old.items()},
            masks={at: mask[:count] for at, mask in self.masks.items()},
        )


@dataclass(frozen=True, slots=True)
class ChangePage:
    """A window laid out for the browser."""

    window: Changes
    page: RowPage
    old: RowPage

    @property
    def buffers(self) -> tuple[bytes, ...]:
        """The buffers of both pages."""
        return (*self.page.buffers, *self.old.buffers)

    def to_json(self) -> dict[str, Any]:
        """Return the sidecar, without the buffers."""
        return {
            "page": self.page.to_json(),
            "old": self.old.to_json(),
            "split": len(self.page.buffers),
            "kinds": self.window.kinds,
            "marks": [
                [at, order, self.window.masks[at]] for order, at in enumerate(self.window.old)
            ],
        }


def change_page(
    window: Changes, offset: int, first_column: int = 0, max_bytes: int = MAX_PAGE_BYTES
) -> ChangePage:
    """Lay a window out, cut to the limit."""
    made = _laid_out(window, offset, first_column)
    while made.page.size_bytes + made.old.size_bytes > max_bytes and made.page.num_rows > 1:
        made = _laid_out(made.window.head(made.page.num_rows // 2), offset, first_column)
    return made


def _laid_out(window: Changes, offset: int, first_column: int) -> ChangePage:
    page = page_of(window.new, offset, first_column)
    names = [window.new.schema.names[at] for at in window.old]
    old = page_of(pa.Table.from_arrays(list(window.old.values()), names=names), offset)
    if window.plain:
        places = list(window.old)
        page = _plain(page, [at in window.numeric for at in range(len(page.columns))])
        old = _plain(old, [at in window.numeric for at in places])
    return ChangePage(window, page, old)


def _plain(page: RowPage, numeric: list[bool]) -> RowPage:
    columns = tuple(
        replace(one, type="", extra=one.extra | {"look": "number" if right else "plain"})
        for one, right in zip(page.columns, numeric, strict=True)
    )
    return replace(page, columns=columns)
