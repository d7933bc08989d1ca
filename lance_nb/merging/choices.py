"""Choices of a person for the cells of a merge that both sides changed.

A choice is for one cell, for a row, for a column, or for all that is left open; the narrower one
counts, and of two alike the later one. Its text form, for records and command lines, is
``[ROW.][COLUMN]=SIDE`` or ``ROW.COLUMN:=VALUE``, where an empty row or column means every one, and
rows and values are JSON: ``theirs``, ``price=ours``, ``12.=base``, ``12.price:=9.5``. The row
``null`` is every one, too.

Limits: a key of several columns is written as a JSON list. At most ``CHOICES_MAX`` choices.
Source: our own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field

from lance_nb.errors import InvalidInputError
from lance_nb.value_classes import dataclass

BASE, OURS, THEIRS, VALUE = "base", "ours", "theirs", "value"
SIDES = (BASE, OURS, THEIRS)
CHOICES_MAX = 100_000
_SHAPE = (
    "a choice is 'ours', 'theirs' or 'base', or for example 'price=ours', '12.=theirs', "
    "'12.price=base', '12.price:=9.5'"
)


@dataclass(frozen=True, slots=True)
class CellChoice:
    """What becomes of the cells in conflict that it is for.

    ``take`` is "base", "ours" (the target's), "theirs" (the source's) or "value"; ``value`` counts
    for the last one only. ``row`` is the value of the key (a tuple for several key columns), else
    the stable row id; None means every row. ``column`` None means every column.

    Raises InvalidInputError.

    Examples:
        >>> from lance_nb import CellChoice
        >>> str(CellChoice("value", row=12, column="price", value=9.5))
        '12.price:=9.5'
    """

    take: str
    row: object = None
    column: str | None = None
    value: object = field(default=None)

    def __post_init__(self) -> None:
        if self.take not in (*SIDES, VALUE):
            names = ", ".join((*SIDES, VALUE))
            raise InvalidInputError(f"take is one of {names}, not {self.take!r}")
        if self.take == VALUE and (self.row is None or self.column is None):
            raise InvalidInputError("a value written by hand is for one cell: give row and column")

    @property
    def rank(self) -> int:
        """How narrow it is: that of a cell counts before a row's, a row's before a column's.

        Examples:
            >>> from lance_nb import CellChoice
            >>> CellChoice("ours").rank, CellChoice("theirs", row=3, column="label").rank
            (0, 3)
        """
        return 2 * (self.row is not None) + (self.column is not None)

    def __str__(self) -> str:
        if self.row is None and self.column is None:
            return self.take
        column = self.column or ""
        row = "" if self.row is None else f"{row_text(self.row)}."
        if not row and _place(column) != (None, self.column):
            row = "null."  # else a column like "12.price" would be read as one of row 12
        place = row + column
        if self.take == VALUE:
            return f"{place}:={json.dumps(self.value, default=str)}"
        return f"{place}={self.take}"


def row_text(row: object) -> str:
    """Return the text of a row in a choice: the JSON of its key or row id."""
    return json.dumps(row, default=str)


def choices_of(resolve: object) -> tuple[CellChoice, ...] | None:
    """Check what was given as ``resolve``; None is None. Raises InvalidInputError."""
    if resolve is None:
        return None
    choices = [resolve] if isinstance(resolve, str | CellChoice) else resolve
    if not isinstance(choices, Iterable):
        raise InvalidInputError(f"resolve is no choice and no list of choices: {resolve!r}")
    parsed = tuple(
        choice if isinstance(choice, CellChoice) else parse_choice(choice) for choice in choices
    )
    if len(parsed) > CHOICES_MAX:
        raise InvalidInputError(f"more than {CHOICES_MAX:,} choices: choose by column or for all")
    return parsed


def parse_choice(text: object) -> CellChoice:
    """Read the text form of a choice. Raises InvalidInputError."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{_SHAPE}; not {text!r}")
    if text in SIDES:
        return CellChoice(text)
    place, is_value, value = text.partition(":=")
    if not is_value:
        place, equals, take = text.rpartition("=")
        if not equals or take not in SIDES:
            raise InvalidInputError(f"{_SHAPE}; not {text!r}")
    row, column = _place(place)
    if is_value:
        return CellChoice(VALUE, row, column, _json(value))
    return CellChoice(take, row, column)


def _place(text: str) -> tuple[object, str | None]:
    """Split ``ROW.COLUMN``, the row being JSON; a text without a row is a column."""
    decoder = json.JSONDecoder()
    try:
        row, end = decoder.raw_decode(text)
    except ValueError:
        return None, text or None
    if text[end : end + 1] != ".":  # a number with a point: "12.price" reads 12, "1.5.price" 1.5
        return None, text
    return tuple(row) if isinstance(row, list) else row, text[end + 1 :] or None


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
