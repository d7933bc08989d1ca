"""Functions that look into text: contains_tokens, levenshtein, find_in_set, substr_index, ...

``contains_tokens`` cuts text where no letter, digit or byte beyond ASCII stands, and matches words
as they are written. Positions count characters, from 1; 0 is "not found".

Limits: each distinct text of a window is visited once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import cast
from lance_nb.table.predicate.expression import Expression, Literal, Value, call, per_distinct
from lance_nb.table.predicate.regular_expressions import Regex
from lance_nb.table.predicate.string_functions import Binder, literal_of, text

_STEPS_MAX = 1 << 20
_TOKEN = re.compile(r"[^\W_]+")


def _of_one(function: Callable[..., Any], type_: pa.DataType) -> Binder:
    """Make a binder of a function of one text, a column or not, and of literals after it."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        rest = [literal_of(one, name=name) for one in operands[1:]]
        if None in rest:
            return Literal(pa.scalar(None, type_))
        kernel = per_distinct(lambda value: function(value, *rest), type_)
        return call(name, kernel, cast(text(operands[0], name=name), pa.large_string()))

    return bind


def _contains_tokens(value: str, wanted: str) -> bool:
    return set(_TOKEN.findall(wanted)) <= set(_TOKEN.findall(value))


def _levenshtein(value: str, other: str) -> int:
    """Count the characters to insert, drop or change."""
    if len(value) * len(other) > _STEPS_MAX:
        raise pa.ArrowInvalid(f"levenshtein of texts of {len(value):,} and {len(other):,} letters")
    row = list(range(len(other) + 1))
    for place, letter in enumerate(value, 1):
        before, row[0] = row[0], place
        for at, wanted in enumerate(other, 1):
            cost = before + (letter != wanted)
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, cost)
    return row[-1]


def _find_in_set(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind find_in_set(word, 'a,b,c'): either side may be the column."""
    if isinstance(operands[0], Literal):
        word = literal_of(operands[0], name=name)
        swapped = _of_one(lambda words, one: _place_in(one, words), pa.int32())
        return swapped(name, [operands[1], Literal(pa.scalar(word))])
    return _of_one(_place_in, pa.int32())(name, operands)


def _place_in(word: str, words: str) -> int:
    parts = words.split(",") if words else []
    return parts.index(word) + 1 if word in parts else 0


def _substr_index(value: str, delimiter: str, count: int) -> str:
    if not delimiter or not count:
        return ""
    parts = value.split(delimiter)
    return delimiter.join(parts[:count] if count > 0 else parts[count:])


def _instr(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind regexp_instr: where the pattern is found first."""
    pattern = literal_of(operands[1], name=name)
    if pattern is not None and not isinstance(pattern, str):
        raise PredicateError(f"{name} needs a pattern in quotes")
    try:
        regex = Regex(pattern or "")
        regex.found(pa.scalar(""))
    except pa.ArrowInvalid as exc:
        raise PredicateError(f"{name}: {pattern!r} is no regular expression: {exc}") from exc
    if pattern == "":
        return call(name, _never, text(operands[0], name=name))  # as pylance, of null as well

    def place(value: str, _: str, start: int = 1) -> int:
        before = max(start - 1, 0)
        found = regex.place(value[before:]) if value else -1
        return 0 if found < 0 else before + found + 1

    return _of_one(place, pa.int64())(name, operands)


def _never(texts: Value) -> Value:
    import pyarrow.compute as pc

    return pc.multiply(pc.fill_null(pc.utf8_length(texts), 0), 0).cast(pa.int64())


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    "contains_tokens": (_of_one(_contains_tokens, pa.bool_()), 2, 2),
    "levenshtein": (_of_one(_levenshtein, pa.int32()), 2, 2),
    "find_in_set": (_find_in_set, 2, 2),
    **dict.fromkeys(
        ("substr_index", "substring_index"), (_of_one(_substr_index, pa.string()), 3, 3)
    ),
    "regexp_instr": (_instr, 2, 3),
}
