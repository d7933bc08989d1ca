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
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.schema_tree import type_label

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

    def names(self, known: Sequence[str]) -> list[str]:
        """Return the columns shown of those that a version has, in the order of the grid."""
        pinned = self.pinned_of(known)
        first = set(pinned)
        return pinned + [name for name in known if name not in first and self._shows(name)]

    def pinned_of(self, known: Sequence[str]) -> list[str]:
        """Return the pinned columns of those that a version has."""
        there = set(known)
        return [name for name in self.pinned if name in there]

    def _shows(self, name: str) -> bool:
        return name in self.shown if self.shown is not None else name not in self.hidden


def column_choice_of(args: Mapping[str, Any]) -> ColumnChoice | None:
    """Take a choice of columns from the arguments of a request. Raises InvalidInputError."""
    wanted = args.get("choice")
    if wanted is None:
        return None
    if not isinstance(wanted, Mapping):
        raise InvalidInputError("choice must be an object {pinned, shown, hidden}")
    shown = wanted.get("shown")
    return ColumnChoice(
        tuple(dict.fromkeys(_names(wanted, "pinned"))),
        None if shown is None else frozenset(_names(wanted, "shown")),
        frozenset(_names(wanted, "hidden")),
    )


def _names(wanted: Mapping[str, Any], key: str) -> list[str]:
    names = wanted.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(f"{key} must be a list of names of columns")
    if len(names) > MAX_NAMES or sum(map(len, names)) > MAX_CHARS:
        raise InvalidInputError(
            f"{key} may name at most {MAX_NAMES:,} columns in {MAX_CHARS:,} characters"
        )
    return names


def listed_columns(schema: pa.Schema, known: Sequence[str]) -> dict[str, Any]:
    """List columns with their groups, as JSON-able values.

    ``columns``: ``{raw, name, type, group}`` of the first ``MAX_LISTED``, ``group`` is a place in
    ``groups`` or None; ``total`` counts all of them.
    """
    listed = known[:MAX_LISTED]
    kinds = {field.name: type_label(field.type) for field in schema}
    groups = column_groups(listed)
    titles = list(dict.fromkeys(filter(None, groups)))
    place = {title: at for at, title in enumerate(titles)}
    columns = [
        {"raw": name, "name": text.name(name), "type": kinds.get(name, ""),
         "group": None if group is None else place[group]}
        for name, group in zip(listed, groups, strict=True)
    ]  # fmt: skip
    return {
        "columns": columns,
        "groups": [f"{text.name(title)}…" for title in titles],
        "total": len(known),
    }


def column_groups(names: Sequence[str]) -> list[str | None]:
    """Return the prefix of the group of each column, None for a column without a group."""
    found: list[str | None] = [None] * len(names)
    for pattern in (_NUMBERED, _LAST_SEPARATOR, _FIRST_SEPARATOR):
        prefixes = [
            None if found[at] is not None else _prefix(pattern, name)
            for at, name in enumerate(names)
        ]
        many = {prefix for prefix, n in Counter(prefixes).items() if prefix and n >= LEAST}
        found = [
            prefix if prefix in many else known
            for prefix, known in zip(prefixes, found, strict=True)
        ]
    return found


def _prefix(pattern: re.Pattern[str], name: str) -> str | None:
    found = pattern.fullmatch(name)
    return found[1] if found else None
