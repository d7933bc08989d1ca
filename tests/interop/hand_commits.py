"""Judge commits that a caller puts together: ours, beside those of pylance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance

import lance_nb
from lance_nb.errors import LanceError

Rows = list[dict[str, Any]]
# Of pylance, and RuntimeError where a thread of it panics.
ERRORS = (OSError, ValueError, RuntimeError, LanceError)


def outcome(change: Callable[[], Any], uri: str) -> str | list[Rows]:
    """Return why a commit was refused, or the rows that pylance and we read then."""
    try:
        change()
    except ERRORS as error:
        return f"{type(error).__name__}: {error}"
    return [read(lance, uri), read(lance_nb, uri)]


def read(module: Any, uri: str) -> Rows:
    """Return the rows, or one that names the error."""
    try:
        dataset = module.dataset(uri)
        rows: Rows = dataset.to_table().to_pylist()
        assert dataset.count_rows() == len(rows)
    except (*ERRORS, AssertionError) as error:
        return [{"error": f"{type(error).__name__}: {error}"}]
    return rows


def is_read(rows: Rows) -> bool:
    """Return whether rows could be read."""
    return not any("error" in row for row in rows)


def judge(
    ours: str | list[Rows],
    theirs: str | list[Rows],
    *,
    is_wrong_there: bool,
    has_other_rows: bool = False,
) -> str | None:
    """Return what is wrong with a cell, None if nothing is.

    ``is_wrong_there``: what pylance reads of it is wrong. ``has_other_rows``: both are right.
    """
    theirs_read = not isinstance(theirs, str) and is_read(theirs[0])
    if isinstance(ours, str):
        if ours.startswith("InternalError"):
            return f"a mistake of the caller counts as ours: {ours}"
        is_right = theirs_read and not is_wrong_there
        return f"refused, and pylance commits and reads it: {ours}" if is_right else None
    if not all(map(is_read, ours)):
        return f"a version that cannot be read: {ours}"
    if ours[0] != ours[1]:
        return f"the readers differ: {ours}"
    if theirs_read and ours[0] != theirs[0] and not has_other_rows:
        return f"other rows than by pylance: {ours[0]} != {theirs[0]}"
    return None
