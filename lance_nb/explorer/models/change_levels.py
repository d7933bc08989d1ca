"""The levels of a diff that are no rows of the data, in windows: one small table each.

============  =================================================================================
transactions  version, side (of a fork), operation, what it did, message, time; newest first
schema        column, type, nullable, field id, metadata
fragments     fragment, rows, deleted rows, files, bytes, what differs
deletions     fragment, stored rows, deleted rows, newly deleted, restored
indices       index, type, columns, fragments covered, uuid
config        where, key, value
============  =================================================================================

A row that changed has old values beside the new ones (see ``change_rows``).

Limits: ``MAX_ROWS`` rows per window; of 100,000 fragments only those of the window are decoded, of
10,000 versions only those are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.change_rows import GLYPHS, Changes
from lance_nb.table.diff import Diff
from lance_nb.table.diff.change_tables import (
    VersionBetween,
    deletions_table,
    transactions_table,
    versions_between,
)
from lance_nb.table.diff.fragments import CHANGES, fragment_changes

MAX_ROWS = 200
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
    for at, column in enumerate(columns):
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
            old[at] = _array(before)
            masks[at] = "".join("1" if one else "0" for one in mask)
    names = [column.title for column in columns]
    glyphs = "".join(GLYPHS.get(kind, " ") for kind in kinds)
    numeric = frozenset(at for at, column in enumerate(columns) if column.numeric)
    return Changes(glyphs, pa.Table.from_arrays(arrays, names=names), old, masks, True, numeric)


def _array(values: Sequence[Any]) -> pa.Array:
    return pa.array([None if one is None else str(one) for one in values], pa.string())


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
    sides = {one.side for one in versions}
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
    places = tuple({"branch": one.branch, "version": one.version} for one in chosen)
    return Level(len(versions), _window(rows, columns), places)


def _described(diff: Diff, versions: Sequence[VersionBetween]) -> list[Row]:
    """Describe versions; one that cannot be read does not hide the others."""
    try:
        found = transactions_table(diff.ends, versions).to_pylist()
    except LanceError as error:
        if len(versions) == 1:
            return [_unread(versions[0], text.line(str(error), 200))]
        middle = len(versions) // 2
        return _described(diff, versions[:middle]) + _described(diff, versions[middle:])
    known = {(row["branch"], row["version"]): row for row in found}
    gone = "cleaned up since"
    return [known.get((one.branch, one.version)) or _unread(one, gone) for one in versions]


def _unread(one: VersionBetween, why: str) -> Row:
    place = {"side": one.side, "branch": one.branch, "version": one.version, "timestamp": None}
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
    found = fragment_changes(diff.ends, diff.match, CHANGES if kinds is None else kinds)
    rows = found.table(span.start, span.stop).to_pylist()
    columns = [
        _Column("fragment", lambda row: str(row["fragment_id"]), numeric=True),
        _Column("rows", *_counts("rows"), numeric=True),
        _Column("deleted", *_counts("deleted"), numeric=True),
        _Column("files", *_counts("files"), numeric=True),
        _Column("size", *_counts("bytes", text.size), numeric=True),
        _Column("what differs", _what_differs),
    ]
    places = tuple({"fragment": row["fragment_id"]} for row in rows)
    return Level(found.num_fragments, _window(rows, columns), places)


def _what_differs(row: Row) -> str:
    parts = {"files": row["files_differ"], "deletions": row["deletions_differ"]}
    return ", ".join(name for name, differs in parts.items() if differs)


def fragment_files(diff: Diff, row: int, kinds: Sequence[str] | None) -> dict[str, Any]:
    """Return the data files that came or went with one fragment of the level."""
    found = fragment_changes(diff.ends, diff.match, CHANGES if kinds is None else kinds)
    rows = found.files(row, row + 1).slice(0, MAX_ROWS).to_pylist()
    return {
        "files": [
            {
                "kind": GLYPHS[one["change"]],
                "path": text.line(one["path"], 300),
                "size": "size unknown"
                if one["size_bytes"] is None
                else text.size(one["size_bytes"]),
                "format": one["file_version"],
                "columns": text.line(", ".join(one["columns"][:MAX_ROWS])),
            }
            for one in rows
        ]
    }


def _deletions(diff: Diff, span: slice, _kinds: object) -> Level:
    pairs = [one for one in diff.match.changed if one.deletions_differ]
    rows = [
        row | {"change": "changed"} for row in deletions_table(diff.ends, pairs[span]).to_pylist()
    ]
    columns = [
        _Column("fragment", lambda row: str(row["fragment_id"]), numeric=True),
        _Column("stored rows", lambda row: text.count(row["physical_rows"] or 0), numeric=True),
        _Column("deleted", *_counts("deleted"), numeric=True),
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
