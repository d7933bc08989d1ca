"""Which columns the grid shows, in which order, which stand on the left, and their groups.

A ``ColumnChoice`` names columns, not places, so that it holds for every version: names that a
version lacks are left out. ``shown`` lists the only columns shown; without it all are, except those
``hidden``, and a column that a later version adds is shown. ``pinned`` columns come first, in the
order in which they were pinned, and are always shown; without a list that is the key, if the schema
or a name tells which column it is.

``order`` is ``stored`` (as in the dataset), a list of names (others follow in the usual order), or
``usual``: what a person looks for first. The key, pictures and other media, captions, labels,
scores, vectors, then all others, nested values last; columns of one rank as they are stored. Ranks
come from types and names, without reading a value.

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
from lance_nb.explorer import cells, text
from lance_nb.explorer.schema_tree import type_label
from lance_nb.value_classes import dataclass

MAX_NAMES = 20_000
MAX_CHARS = 150_000
MAX_LISTED = 5000
LEAST = 3
_NUMBERED = re.compile(r"(.*\D)\d+", re.DOTALL)
_LAST_SEPARATOR = re.compile(r"(.+[_.\-/: ])[^_.\-/: ]*", re.DOTALL)
_FIRST_SEPARATOR = re.compile(r"([^_.\-/: ]+[_.\-/: ]).*", re.DOTALL)


USUAL, STORED = "usual", "stored"
_PRIMARY_KEY = b"lance-schema:unenforced-primary-key"
_KEYS = frozenset({"id", "key", "uuid", "guid", "pk"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MEDIA = re.compile(
    r"\b(images?|img|pictures?|pic|photos?|thumb|thumbnail|frame|png|jpe?g|mask|video|clip|audio|sound)\b"
)
_CAPTIONS = re.compile(
    r"\b(captions?|title|text|description|prompt|question|sentence|summary|body|message)\b"
)
_LABELS = re.compile(r"\b(labels?|class|category|tags?|split|species|kind|status)\b")
_SCORES = re.compile(
    r"\b(scores?|rating|confidence|prob|probability|loss|accuracy|similarity|price)\b"
)
_KEY, _MEDIUM, _CAPTION, _LABEL, _SCORE, _VECTOR, _OTHER, _NESTED = range(8)


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Columns by name: those on the left (None: the key), those shown or hidden, their order."""

    pinned: tuple[str, ...] | None = None
    shown: frozenset[str] | None = None
    hidden: frozenset[str] = frozenset()
    order: str | tuple[str, ...] = USUAL

    def names(self, column_names: Sequence[str], schema: pa.Schema) -> list[str]:
        """Return the columns shown of those that a version has, in the order of the grid."""
        pinned = self.pinned_of(column_names, schema)
        first = set(pinned)
        ordered = self.ordered(column_names, schema)
        return pinned + [name for name in ordered if name not in first and self._shows(name)]

    def ordered(self, column_names: Sequence[str], schema: pa.Schema) -> list[str]:
        """Return all columns in the order of the grid, those on the left not put first."""
        if self.order == STORED:
            return list(column_names)
        ranks = _ranks(schema)
        usual = sorted(column_names, key=lambda name: ranks.get(name, _NESTED))  # stable
        if self.order == USUAL:
            return usual
        existing, named = set(column_names), set(self.order)
        first = [name for name in self.order if name in existing]
        return first + [name for name in usual if name not in named]

    def pinned_of(self, column_names: Sequence[str], schema: pa.Schema) -> list[str]:
        """Return the pinned columns of those that a version has."""
        if self.pinned is None:
            keys = [name for name, rank in _ranks(schema).items() if rank == _KEY]
            return [name for name in keys if name in column_names and self._shows(name)]
        known_names = set(column_names)
        return [name for name in self.pinned if name in known_names]

    def _shows(self, name: str) -> bool:
        return name in self.shown if self.shown is not None else name not in self.hidden


USUAL_COLUMNS = ColumnChoice()


def _ranks(schema: pa.Schema) -> dict[str, int]:
    """Return how soon a person looks for each column."""
    ranks = {field.name: _rank(field) for field in schema}
    keys = [field.name for field in schema if _PRIMARY_KEY in (field.metadata or {})]
    if not keys:
        scalars = [field for field in schema if _may_be_key(field.type)]
        named = [field.name for field in scalars if field.name.lower() in _KEYS]
        ends = schema.names[:1] if scalars and scalars[0].name == schema.names[0] else []
        keys = named[:1] or [name for name in ends if {*_words(name)[-1:]} & _KEYS]
    return ranks | dict.fromkeys(keys, _KEY)


def _may_be_key(kind: pa.DataType) -> bool:
    is_uuid = pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16
    return bool(pa.types.is_integer(kind) or cells.is_text(kind) or is_uuid)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _rank(field: pa.Field) -> int:
    kind, words = field.type, " ".join(_words(field.name))
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = cells.is_text(kind)
    is_number = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if _MEDIA.search(words) and (cells.is_binary(kind) or cells.is_blob_field(field)):
        return _MEDIUM
    if cells.is_vector(kind):
        return _VECTOR
    if cells.is_nested(kind):
        return _NESTED
    if is_text and (_CAPTIONS.search(words) or field.name.lower() == "name"):
        return _CAPTION
    if _LABELS.search(words) and not is_number and not cells.is_binary(kind):
        return _LABEL
    if _SCORES.search(words) and (is_number or pa.types.is_integer(kind)):
        return _SCORE
    return _OTHER


def column_choice_of(args: Mapping[str, Any]) -> ColumnChoice:
    """Take a choice of columns from the arguments of a request. Raises InvalidInputError."""
    choice = args.get("choice")
    if choice is None:
        return USUAL_COLUMNS
    if not isinstance(choice, Mapping):
        raise InvalidInputError("choice must be an object {pinned, shown, hidden, order}")
    shown, pinned, order = (choice.get(key) for key in ("shown", "pinned", "order"))
    if order not in (None, USUAL, STORED) and not isinstance(order, list):
        raise InvalidInputError(f"order must be {USUAL}, {STORED} or a list of names of columns")
    return ColumnChoice(
        None if pinned is None else tuple(dict.fromkeys(_names(choice, "pinned"))),
        None if shown is None else frozenset(_names(choice, "shown")),
        frozenset(_names(choice, "hidden")),
        order=tuple(dict.fromkeys(_names(choice, "order"))) if isinstance(order, list)
        else order or USUAL,
    )  # fmt: skip


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
