"""Which columns the grid shows, which stand on the left, and the groups they are offered in.

A ``ColumnChoice`` names columns, not places, so that it holds for every version: names that a
version lacks are left out. ``shown`` lists the only columns shown; without it all are, except those
``hidden``, and a column that a later version adds is shown. ``pinned`` columns come first, in the
order in which they were pinned, and are always shown.

Groups are made of names alone: ``sensor_1`` to ``sensor_900`` are ``sensor_…`` (a number at the
end), ``price_low`` and ``price_high`` with another are ``price_…`` (what stands before the last
separator, else before the first one). Fewer than ``LEAST`` columns make no group.

Limits: a choice names at most ``MAX_NAMES`` columns in ``MAX_CHARS`` characters; at most
``MAX_LISTED`` columns are listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.schema_tree import type_label
from lance_nb.value_classes import dataclass

MAX_NAMES = 20_000
MAX_CHARS = 150_000
MAX_LISTED = 5000
LEAST = 3
_NUMBERED = re.compile(r"(.*\D)\d+", re.DOTALL)
_LAST_SEPARATOR = re.compile(r"(.+[_.\-/: ])[^_.\-/: ]*", re.DOTALL)
_FIRST_SEPARATOR = re.compile(r"([^_.\-/: ]+[_.\-/: ]).*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Columns by name: those on the left, the only ones shown or None for all, and those hidden."""

    pinned: tuple[str, ...] = ()
    shown: frozenset[str] | None = None
    hidden: frozenset[str] = frozenset()

    def names(self, column_names: Sequence[str]) -> list[str]:
        """Return the columns shown of those that a version has, in the order of the grid."""
        pinned = self.pinned_of(column_names)
        first = set(pinned)
        return pinned + [name for name in column_names if name not in first and self._shows(name)]

    def pinned_of(self, column_names: Sequence[str]) -> list[str]:
        """Return the pinned columns of those that a version has."""
        known_names = set(column_names)
        return [name for name in self.pinned if name in known_names]

    def _shows(self, name: str) -> bool:
        return name in self.shown if self.shown is not None else name not in self.hidden


def column_choice_of(args: Mapping[str, Any]) -> ColumnChoice | None:
    """Take a choice of columns from the arguments of a request. Raises InvalidInputError."""
    choice = args.get("choice")
    if choice is None:
        return None
    if not isinstance(choice, Mapping):
        raise InvalidInputError("choice must be an object {pinned, shown, hidden}")
    shown = choice.get("shown")
    return ColumnChoice(
        tuple(dict.fromkeys(_names(choice, "pinned"))),
        None if shown is None else frozenset(_names(choice, "shown")),
        frozenset(_names(choice, "hidden")),
    )


def _names(choice: Mapping[str, Any], key: str) -> list[str]:
    names = choice.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(f"{key} must be a list of names of columns")
    if len(names) > MAX_NAMES or sum(map(len, names)) > MAX_CHARS:
        raise InvalidInputError(
            f"{key} may name at most {MAX_NAMES:,} columns in {MAX_CHARS:,} characters"
        )
    return names


def listed_columns(schema: pa.Schema, column_names: Sequence[str]) -> dict[str, Any]:
    """List columns with their groups, as JSON-able values.

    ``columns``: ``{raw, name, type, group}`` of the first ``MAX_LISTED``, ``group`` is a place in
    ``groups`` or None; ``total`` counts all of them.
    """
    listed = column_names[:MAX_LISTED]
    kinds = {field.name: type_label(field.type) for field in schema}
    groups = column_groups(listed)
    titles = list(dict.fromkeys(filter(None, groups)))
    place = {title: index for index, title in enumerate(titles)}
    columns = [
        {"raw": name, "name": text.name(name), "type": kinds.get(name, ""),
         "group": None if group is None else place[group]}
        for name, group in zip(listed, groups, strict=True)
    ]  # fmt: skip
    return {
        "columns": columns,
        "groups": [f"{text.name(title)}…" for title in titles],
        "total": len(column_names),
    }


def column_groups(names: Sequence[str]) -> list[str | None]:
    """Return the prefix of the group of each column, None for a column without a group."""
    group_names: list[str | None] = [None] * len(names)
    for pattern in (_NUMBERED, _LAST_SEPARATOR, _FIRST_SEPARATOR):
        prefixes = [
            None if group_names[index] is not None else _prefix(pattern, name)
            for index, name in enumerate(names)
        ]
        common_prefixes = {
            prefix for prefix, n in Counter(prefixes).items() if prefix and n >= LEAST
        }
        group_names = [
            prefix if prefix in common_prefixes else group
            for prefix, group in zip(prefixes, group_names, strict=True)
        ]
    return group_names


def _prefix(pattern: re.Pattern[str], name: str) -> str | None:
    match = pattern.fullmatch(name)
    return match[1] if match else None
