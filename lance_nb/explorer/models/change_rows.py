"""Read windows of the rows that differ between two versions, and one such row in full.

Rows are in the order changed, added, removed. The number of changed rows is known only after a
complete comparison: ``found`` says how far it has come.

Layout of ``ChangePage.to_json``: ``page`` (a row page, see ``row_page``), ``old`` (another one, of
the columns that changed in the window; its buffers begin at ``split``), ``marks``: per such column
its position in ``page``, its position in ``old``, and a text of 0 and 1 per row; ``kinds``: one
character per row, ``+``, ``-``, ``~`` or a space.

Limits: ``MAX_ROWS`` rows and the columns of a row page per window; a window is cut to
``MAX_PAGE_BYTES``, and the browser requests the rest. Of one row the first ``MAX_SHOWN`` columns
and as many of those that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.row_detail import row_tree
from lance_nb.explorer.models.row_page import MAX_PAGE_BYTES, RowPage, Window, page_of
from lance_nb.table.diff import Diff
from lance_nb.table.diff.row_level import ADDED, CHANGED, KINDS, REMOVED
from lance_nb.table.row_id_index import live_offsets
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot

GLYPHS = {"added": "+", "removed": "-", "changed": "~", "renamed": "~"}
MAX_ROWS = 200
MAX_CELLS = 200
MAX_SHOWN = 200
FIRST = Window(limit=MAX_ROWS)
Progress = Callable[[int, int], object]


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


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """A window of rows, and what is known of all of them."""

    page: ChangePage
    found: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the sidecar, without the buffers."""
        return self.page.to_json() | {"found": dict(self.found)}


def kinds_of(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Take kinds of rows from the arguments of a request: all, unless some are named."""
    names = args.get("kinds")
    if names is None:
        return KINDS
    if not isinstance(names, list) or not names or any(one not in KINDS for one in names):
        raise InvalidInputError(f"kinds must be a list with any of {', '.join(KINDS)}")
    return tuple(one for one in KINDS if one in names)


def changed_rows(
    diff: Diff,
    window: Window = FIRST,
    kinds: tuple[str, ...] = KINDS,
    progress: Progress | None = None,
) -> ChangedRows:
    """Read a window of the rows that differ, comparing as far as it needs."""
    limit, offset = min(window.limit, MAX_ROWS), window.offset
    if CHANGED in kinds:
        diff.compare(offset + limit, progress=progress)
    names = [one.name for one in diff.column_pairs][window.first_column :][: window.num_columns]
    table = diff.rows(limit=limit, offset=offset, kinds=kinds, show=names).read_all()
    found: list[str] = table.column(0).to_pylist()
    new = table.select(range(table.num_columns - len(names), table.num_columns))
    old, masks = _old_cells(diff, found.count(CHANGED), offset, names)
    changes = Changes("".join(GLYPHS[one] for one in found), new, old, masks)
    return ChangedRows(change_page(changes, offset, window.first_column), known_rows(diff))


def known_rows(diff: Diff) -> dict[str, Any]:
    """Tell how many rows are known to differ; when all are compared, the changed cells too."""
    found = diff.found()
    cells = dict(diff.summary().cells) if found.is_finished else {}
    most = sorted(cells.items(), key=lambda item: -item[1])[:MAX_CELLS]
    return asdict(found) | {"cells": [[text.name(name), count] for name, count in most]}


def _old_cells(
    diff: Diff, count: int, offset: int, names: Sequence[str]
) -> tuple[dict[int, pa.Array], dict[int, str]]:
    """Return the old values of changed cells by place of the column, and which cells these are."""
    key = diff.matched_by.key
    valued = [
        one.name
        for one in diff.column_pairs
        if one.is_shared and one.name in names and one.name not in key
    ]
    if not count or not valued:
        return {}, {}
    cells = diff.cells(limit=count, offset=offset, show=valued).read_all()
    first = cells.num_columns - len(valued)
    old: dict[int, pa.Array] = {}
    masks: dict[int, str] = {}
    for number, name in enumerate(valued):
        column = _whole(cells.column(first + number))
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        if valid.any():
            at = names.index(name)
            old[at] = column.flatten()[0]
            masks[at] = "".join("1" if one else "0" for one in valid)
    return old, masks


def _whole(column: pa.ChunkedArray) -> pa.StructArray:
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


# --- one row --------------------------------------------------------------------------------------


def changed_row(diff: Diff, kinds: tuple[str, ...], row: int) -> dict[str, Any]:
    """Return one row in full: ``nodes`` as it is, ``old`` values by place in them, and where it is.

    ``branch`` and ``version`` are those that have the row, ``fragment`` and ``offset`` its address
    there, ``position`` its place among their rows. Raises InvalidInputError.
    """
    found = diff.rows(limit=1, offset=row, kinds=kinds, show=()).read_all()
    if not found.num_rows:
        raise InvalidInputError(f"row {row:,} of this kind does not exist")
    changed = set(found.column(found.num_columns - 1)[0].as_py() or ())
    every = [one.name for one in diff.column_pairs]
    names = [name for at, name in enumerate(every) if at < MAX_SHOWN or name in changed]
    names = names[: 2 * MAX_SHOWN]
    table = diff.rows(limit=1, offset=row, kinds=kinds, show=names).read_all()
    kind = table.column(0)[0].as_py()
    ids = found.num_columns - 3
    old: dict[int, pa.Array] = {}
    if kind == CHANGED:
        old, _ = _old_cells(diff, 1, row, names)
    before = pa.Table.from_arrays(list(old.values()), names=[names[at] for at in old])
    branch, version = diff.a if kind == REMOVED else diff.b
    address = table.column(1 + ids)[0].as_py()
    return {
        "kind": GLYPHS[kind],
        "nodes": row_tree(table.select(range(table.num_columns - len(names), table.num_columns))),
        "hidden": len(every) - len(names),
        "old": dict(zip(map(str, old), row_tree(before), strict=False)),
        "row_id": str(table.column(1)[0].as_py()) if ids else None,
        "branch": branch,
        "version": version,
        "label": text.ref_label(branch, version),
        "fragment": address >> 32,
        "offset": address & 0xFFFFFFFF,
        "position": position_of(diff.ends.a if kind == REMOVED else diff.ends.b, address),
        "added": kind == ADDED,
    }


def position_of(snapshot: Snapshot, address: int) -> int | None:
    """Return the place of a live row among all rows of a version, None when it is not there."""
    fragments = snapshot.manifest.fragments
    at = fragments.position_of(address >> 32)
    if at is None:
        return None
    offsets = live_offsets(snapshot, fragments[at])
    place = int(np.searchsorted(offsets, address & 0xFFFFFFFF))
    if place == len(offsets) or int(offsets[place]) != address & 0xFFFFFFFF:
        return None
    return int(live_counts(snapshot)[:at].sum()) + place
