"""Read windows of what differs between two versions: the rows, and each other level of a diff.

Rows are in the order changed, added, removed. The number of changed rows is known only after a
complete comparison: ``found`` says how far it has come.

Layout of ``ChangePage.to_json``: ``page`` (a row page, see ``row_page``), ``old`` (another one, of
the columns that changed in the window; its buffers begin at ``split``), ``marks``: per such column
its position in ``page``, its position in ``old``, and a text of 0 and 1 per row; ``kinds``: one
character per row, ``+``, ``-``, ``~`` or a space.

The other levels of a diff are small tables, sent in windows as well:

============  =================================================================================
transactions  version, side (of a fork), operation, what it did, message, time; newest first
schema        column, type, nullable, field id, metadata
fragments     fragment, rows, deleted rows, files, bytes, what differs
deletions     fragment, stored rows, deleted before and after, newly deleted, restored
indices       index, type, columns, fragments covered, uuid
config        where, key, value
============  =================================================================================

A row that changed has old values beside the new ones as in the page of rows. Where a long text
changed, both values begin shortly before the first difference (see text_excerpt).

Limits: ``MAX_ROWS`` rows and the columns of a row page per window; a window is cut to
``MAX_PAGE_BYTES``, and the browser requests the rest. Of one row the first ``MAX_SHOWN`` columns
and as many of those that changed. Of 100,000 fragments only those of the window are decoded, of
10,000 versions only those are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import cells, text
from lance_nb.explorer.changes.text_excerpt import excerpts
from lance_nb.explorer.media import Thumbnail, thumbnails
from lance_nb.explorer.rows.column_choice import USUAL_COLUMNS
from lance_nb.explorer.rows.row_detail import TEXT_CHARS, row_tree
from lance_nb.explorer.rows.row_page import (
    GRID_CHARS,
    MAX_PAGE_BYTES,
    RowPage,
    Window,
    page_of,
)
from lance_nb.table.diff import Diff
from lance_nb.table.diff.change_tables import (
    VersionBetween,
    deletions_table,
    transactions_table,
    versions_between,
)
from lance_nb.table.diff.fragments import CHANGES, fragment_changes
from lance_nb.table.diff.row_level import ADDED, CHANGED, KINDS, REMOVED
from lance_nb.table.row_ids import live_offsets
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

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
            old={index: column.slice(0, count) for index, column in self.old.items()},
            masks={index: mask[:count] for index, mask in self.masks.items()},
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
                [index, order, self.window.masks[index]]
                for order, index in enumerate(self.window.old)
            ],
        }


def change_page(
    window: Changes, offset: int, first_column: int = 0, max_bytes: int = MAX_PAGE_BYTES
) -> ChangePage:
    """Lay a window out, cut to the limit."""
    laid_out = _laid_out(window, offset, first_column)
    while (
        laid_out.page.size_bytes + laid_out.old.size_bytes > max_bytes
        and laid_out.page.num_rows > 1
    ):
        laid_out = _laid_out(
            laid_out.window.head(laid_out.page.num_rows // 2), offset, first_column
        )
    return laid_out


def _laid_out(window: Changes, offset: int, first_column: int) -> ChangePage:
    page = page_of(window.new, offset, first_column)
    names = [window.new.schema.names[index] for index in window.old]
    old = page_of(pa.Table.from_arrays(list(window.old.values()), names=names), offset)
    if window.plain:
        places = list(window.old)
        page = _plain(page, [index in window.numeric for index in range(len(page.columns))])
        old = _plain(old, [index in window.numeric for index in places])
    return ChangePage(window, page, old)


def _plain(page: RowPage, numeric: list[bool]) -> RowPage:
    columns = tuple(
        replace(column, type="", extra=column.extra | {"look": "number" if right else "plain"})
        for column, right in zip(page.columns, numeric, strict=True)
    )
    return replace(page, columns=columns)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """A window of rows, and what is known of all of them."""

    page: ChangePage
    rows_found: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the sidecar, without the buffers."""
        return self.page.to_json() | {"found": dict(self.rows_found)}


def kinds_of(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Take kinds of rows from the arguments of a request: all, unless some are named."""
    names = args.get("kinds")
    if names is None:
        return KINDS
    if not isinstance(names, list) or not names or any(name not in KINDS for name in names):
        raise InvalidInputError(f"kinds must be a list with any of {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in names)


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
    names = _shown_names(diff)[window.first_column :][: window.num_columns]
    table = diff.rows(limit=limit, offset=offset, kinds=kinds, show=names).read_all()
    row_kinds: list[str] = table.column(0).to_pylist()
    new = table.select(range(table.num_columns - len(names), table.num_columns))
    old, masks = _old_cells(diff, row_kinds.count(CHANGED), offset, names)
    new, old = _shortened(new, old, masks, GRID_CHARS)
    changes = Changes("".join(GLYPHS[kind] for kind in row_kinds), new, old, masks)
    return ChangedRows(change_page(changes, offset, window.first_column), known_rows(diff))


def _shown_names(diff: Diff) -> list[str]:
    """Return the columns in the order in which the grid of changes shows them."""
    fields = [column_pair.arrow for column_pair in diff.column_pairs]
    names = [column_pair.name for column_pair in diff.column_pairs]
    schema = pa.schema([field.with_name(name) for field, name in zip(fields, names, strict=True)])
    return USUAL_COLUMNS.names(names, schema)


def known_rows(diff: Diff) -> dict[str, Any]:
    """Tell how many rows are known to differ; when all are compared, the changed cells too."""
    rows_found = diff.found()
    counts = dict(diff.summary().cells) if rows_found.is_finished else {}
    most = sorted(counts.items(), key=lambda item: -item[1])[:MAX_CELLS]
    return asdict(rows_found) | {"cells": [[text.name(name), count] for name, count in most]}


def _old_cells(
    diff: Diff, count: int, offset: int, names: Sequence[str]
) -> tuple[dict[int, pa.Array], dict[int, str]]:
    """Return the old values of changed cells by place of the column, and which cells these are."""
    key = diff.matched_by.key
    valued = [
        pair.name
        for pair in diff.column_pairs
        if pair.is_shared and pair.name in names and pair.name not in key
    ]
    if not count or not valued:
        return {}, {}
    changed = diff.cells(limit=count, offset=offset, show=valued).read_all()
    first = changed.num_columns - len(valued)
    old: dict[int, pa.Array] = {}
    masks: dict[int, str] = {}
    for number, name in enumerate(valued):
        column = _whole(changed.column(first + number))
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        if valid.any():
            index = names.index(name)
            old[index] = column.flatten()[0]
            masks[index] = "".join("1" if is_valid else "0" for is_valid in valid)
    return old, masks


def _shortened(
    new: pa.Table, old: dict[int, pa.Array], masks: Mapping[int, str], chars: int
) -> tuple[pa.Table, dict[int, pa.Array]]:
    """Cut long texts that changed to where they differ; rows that changed come first in ``new``."""
    cut: dict[int, pa.Array] = {}
    for index, before in old.items():
        column = new.column(index)
        after = pa.concat_arrays(column.slice(0, len(before)).chunks)
        differs = np.frombuffer(masks[index].encode(), np.uint8) == ord("1")
        cut[index], shown = excerpts(before, after, differs, chars)
        if shown is not after:
            chunks = [shown, *column.slice(len(before)).chunks]
            new = new.set_column(index, new.field(index), pa.chunked_array(chunks, column.type))
    return new, cut


def _whole(column: pa.ChunkedArray) -> pa.StructArray:
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def changed_images(
    diff: Diff, kinds: tuple[str, ...], column: int, rows: range, *, old: bool = False
) -> list[Thumbnail]:
    """Return the small images of a column in some of the rows, as they are or ``old``, as before.

    Raises InvalidInputError.
    """
    if column >= len(diff.column_pairs):
        raise InvalidInputError(f"column {column} does not exist")
    names = [_shown_names(diff)[column]]
    if old:
        before, _ = _old_cells(diff, len(rows), rows.start, names)
        values = before.get(0, pa.array([], pa.binary()))
    else:
        table = diff.rows(limit=len(rows), offset=rows.start, kinds=kinds, show=names).read_all()
        values = table.column(table.num_columns - 1)
    values = cells.plain(values)
    return thumbnails(values) if cells.is_binary(values.type) else []


# --- one row --------------------------------------------------------------------------------------


def changed_row(diff: Diff, kinds: tuple[str, ...], row: int) -> dict[str, Any]:
    """Return one row in full: ``nodes`` as it is, ``old`` values by place in them, and where it is.

    ``columns`` are the places of the nodes among the columns of the diff.
    ``branch`` and ``version`` are those that have the row, ``fragment`` and ``offset`` its address
    there, ``position`` its place among their rows. Raises InvalidInputError.
    """
    row_table = diff.rows(limit=1, offset=row, kinds=kinds, show=()).read_all()
    if not row_table.num_rows:
        raise InvalidInputError(f"row {row:,} of this kind does not exist")
    changed = set(row_table.column(row_table.num_columns - 1)[0].as_py() or ())
    every = _shown_names(diff)
    names = [name for index, name in enumerate(every) if index < MAX_SHOWN or name in changed]
    names = names[: 2 * MAX_SHOWN]
    table = diff.rows(limit=1, offset=row, kinds=kinds, show=names).read_all()
    kind = table.column(0)[0].as_py()
    ids = row_table.num_columns - 3
    shown = table.select(range(table.num_columns - len(names), table.num_columns))
    old: dict[int, pa.Array] = {}
    if kind == CHANGED:
        old, masks = _old_cells(diff, 1, row, names)
        shown, old = _shortened(shown, old, masks, TEXT_CHARS)
    before = pa.Table.from_arrays(list(old.values()), names=[names[index] for index in old])
    branch, version = diff.a if kind == REMOVED else diff.b
    address = table.column(1 + ids)[0].as_py()
    return {
        "kind": GLYPHS[kind],
        "nodes": row_tree(shown),
        "columns": [every.index(name) for name in names],
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
    position = fragments.position_of(address >> 32)
    if position is None:
        return None
    offsets = live_offsets(snapshot, fragments[position])
    place = int(np.searchsorted(offsets, address & 0xFFFFFFFF))
    if place == len(offsets) or int(offsets[place]) != address & 0xFFFFFFFF:
        return None
    return int(live_counts(snapshot)[:position].sum()) + place


_DAMAGED = "Damaged"
_CHANGED = ("changed", "renamed")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Level:
    """A window of a level, how many rows it has in all, and of each what names it."""

    num_rows: int
    window: Changes
    places: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a level: its title, how a row of the engine's table tells its two values."""

    title: str
    new: Callable[[Row], Any]
    old: Callable[[Row], Any] | None = None
    numeric: bool = False


def change_level(
    diff: Diff, level: str, start: int, limit: int, kinds: Sequence[str] | None = None
) -> Level:
    """Return a window of a level. Raises InvalidInputError for one that there is not."""
    if level not in _LEVELS:
        raise InvalidInputError(f"level must be one of {', '.join(_LEVELS)}")
    return _LEVELS[level](diff, slice(start, start + min(limit, MAX_ROWS)), kinds)


def _window(rows: Sequence[Row], columns: Sequence[_Column]) -> Changes:
    """Lay rows out: what is, what was, and where the two differ in a row that changed."""
    kinds = [str(row.get("change") or "") for row in rows]
    arrays, old, masks = [], {}, {}
    for index, column in enumerate(columns):
        before = [None if column.old is None else column.old(row) for row in rows]
        after = [column.new(row) for row in rows]
        if column.old is None:
            before = after
        arrays.append(
            _array(
                [b if k == "removed" else a for k, b, a in zip(kinds, before, after, strict=True)]
            )
        )
        mask = [k in _CHANGED and b != a for k, b, a in zip(kinds, before, after, strict=True)]
        if any(mask):
            old[index] = _array(before)
            masks[index] = "".join("1" if is_changed else "0" for is_changed in mask)
    names = [column.title for column in columns]
    glyphs = "".join(GLYPHS.get(kind, " ") for kind in kinds)
    numeric = frozenset(index for index, column in enumerate(columns) if column.numeric)
    return Changes(
        glyphs,
        pa.Table.from_arrays(arrays, names=names),
        old,
        masks=masks,
        plain=True,
        numeric=numeric,
    )


def _array(values: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _both(name: str) -> tuple[Callable[[Row], Any], Callable[[Row], Any]]:
    """Take the values of ``new_x`` and ``old_x``."""
    return lambda row: row[f"new_{name}"], lambda row: row[f"old_{name}"]


def _counts(name: str, show: Callable[[int], str] = text.count) -> tuple[Any, Any]:
    """Take the numbers of ``x_after`` and ``x_before``."""

    def shown(row: Row, when: str) -> str | None:
        value = row[f"{name}_{when}"]
        return None if value is None else show(value)

    return lambda row: shown(row, "after"), lambda row: shown(row, "before")


def _field(name: str) -> Callable[[Row], Any]:
    return lambda row: row[name]


def _joined(name: str) -> Callable[[Row], Any]:
    return lambda row: ", ".join(row[name] or ())


# --- the levels -----------------------------------------------------------------------------------


def _transactions(diff: Diff, span: slice, _kinds: object) -> Level:
    versions = versions_between(diff.ends)[::-1]
    sides = {version.side for version in versions}
    columns = [
        _Column("version", lambda row: text.ref_label(row["branch"], row["version"])),
        _Column("operation", _field("operation")),
        _Column("what the version did", _field("description")),
        _Column("message", lambda row: row["message"] or ""),
        _Column("time", lambda row: text.moment(row["timestamp"])),
    ]
    if len(sides) > 1:
        columns.insert(1, _Column("side", lambda row: row["side"].upper()))
    chosen = versions[span]
    rows = _described(diff, chosen)
    places = tuple({"branch": version.branch, "version": version.version} for version in chosen)
    return Level(len(versions), _window(rows, columns), places)


def _described(diff: Diff, versions: Sequence[VersionBetween]) -> list[Row]:
    """Describe versions; one that cannot be read does not hide the others."""
    try:
        descriptions = transactions_table(diff.ends, versions).to_pylist()
    except LanceError as error:
        if len(versions) == 1:
            return [_unread(versions[0], text.line(str(error), 200))]
        middle = len(versions) // 2
        return _described(diff, versions[:middle]) + _described(diff, versions[middle:])
    row_of_version = {(row["branch"], row["version"]): row for row in descriptions}
    reason = "cleaned up since"
    return [
        row_of_version.get((version.branch, version.version)) or _unread(version, reason)
        for version in versions
    ]


def _unread(version: VersionBetween, why: str) -> Row:
    place = {
        "side": version.side,
        "branch": version.branch,
        "version": version.version,
        "timestamp": None,
    }
    return place | {"operation": _DAMAGED, "description": why, "message": None}


def _schema(diff: Diff, span: slice, _kinds: object) -> Level:
    def null(prefix: str) -> Callable[[Row], Any]:
        words = {True: "nullable", False: "required", None: None}
        return lambda row: words[row[f"{prefix}_nullable"]]

    columns = [
        _Column("column", _field("column"), _field("old_column")),
        _Column("type", *_both("type")),
        _Column("nulls", null("new"), null("old")),
        _Column("metadata", lambda row: "changed" if row["metadata_changed"] else ""),
        _Column("field", *_both("field_id"), numeric=True),
    ]
    return _sliced(diff.schema, span, columns)


def _sliced(table: pa.Table, span: slice, columns: Sequence[_Column]) -> Level:
    rows = table.slice(span.start, span.stop - span.start).to_pylist()
    return Level(table.num_rows, _window(rows, columns))


def _fragments(diff: Diff, span: slice, kinds: Sequence[str] | None) -> Level:
    changes = fragment_changes(diff.ends, diff.match, CHANGES if kinds is None else kinds)
    rows = changes.table(span.start, span.stop).to_pylist()
    columns = [
        _Column("fragment", lambda row: str(row["fragment_id"]), numeric=True),
        _Column("rows", *_counts("rows"), numeric=True),
        # No change of one cell: more deletions would be marked as if something was added.
        _Column("deleted", _deleted, numeric=True),
        _Column("files", *_counts("files"), numeric=True),
        _Column("size", *_counts("bytes", text.size), numeric=True),
        _Column("what differs", _what_differs),
    ]
    places = tuple({"fragment": row["fragment_id"]} for row in rows)
    return Level(changes.num_fragments, _window(rows, columns), places)


def _deleted(row: Row) -> str | None:
    """Return the deleted rows of a fragment, before and after where they differ."""
    before, after = (row[f"deleted_{when}"] for when in ("before", "after"))
    if before is None or after is None or before == after:
        num_rows = before if after is None else after
        return None if num_rows is None else text.count(num_rows)
    return f"{text.count(before)} → {text.count(after)}"


def _what_differs(row: Row) -> str:
    parts = {"files": row["files_differ"], "deletions": row["deletions_differ"]}
    return ", ".join(name for name, differs in parts.items() if differs)


def fragment_files(diff: Diff, row: int, kinds: Sequence[str] | None) -> dict[str, Any]:
    """Return the data files that came or went with one fragment of the level."""
    changes = fragment_changes(diff.ends, diff.match, CHANGES if kinds is None else kinds)
    rows = changes.files(row, row + 1).slice(0, MAX_ROWS).to_pylist()
    return {
        "files": [
            {
                "kind": GLYPHS[file["change"]],
                "path": text.line(file["path"], 300),
                "size": "size unknown"
                if file["size_bytes"] is None
                else text.size(file["size_bytes"]),
                "format": file["file_version"],
                "columns": text.line(", ".join(file["columns"][:MAX_ROWS])),
            }
            for file in rows
        ]
    }


def _deletions(diff: Diff, span: slice, _kinds: object) -> Level:
    pairs = [pair for pair in diff.match.changed if pair.deletions_differ]
    rows = [
        row | {"change": "changed"} for row in deletions_table(diff.ends, pairs[span]).to_pylist()
    ]
    columns = [
        _Column("fragment", lambda row: str(row["fragment_id"]), numeric=True),
        _Column("stored rows", lambda row: text.count(row["physical_rows"] or 0), numeric=True),
        # No change of one cell: more deletions would be marked as if something was added.
        _Column("deleted before", lambda row: text.count(row["deleted_before"]), numeric=True),
        _Column("deleted after", lambda row: text.count(row["deleted_after"]), numeric=True),
        _Column("newly deleted", lambda row: text.count(row["rows_deleted"]), numeric=True),
        _Column("restored", lambda row: text.count(row["rows_undeleted"]), numeric=True),
    ]
    places = tuple({"fragment": row["fragment_id"]} for row in rows)
    return Level(len(pairs), _window(rows, columns), places)


def _indices(diff: Diff, span: slice, _kinds: object) -> Level:
    columns = [
        _Column("index", _field("name")),
        _Column("type", _field("type")),
        _Column("columns", _joined("columns")),
        _Column("fragments covered", *_counts("fragments"), numeric=True),
        _Column("segment", _field("uuid")),
    ]
    return _sliced(diff.indices, span, columns)


def _config(diff: Diff, span: slice, _kinds: object) -> Level:
    columns = [
        _Column("where", _field("kind")),
        _Column("key", _field("key")),
        _Column("value", _field("new"), _field("old")),
    ]
    return _sliced(diff.config, span, columns)


_LEVELS: dict[str, Callable[[Diff, slice, Sequence[str] | None], Level]] = {
    "transactions": _transactions,
    "schema": _schema,
    "fragments": _fragments,
    "deletions": _deletions,
    "indices": _indices,
    "config": _config,
}
