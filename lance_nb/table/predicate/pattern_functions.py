"""LIKE, regular expressions and token functions: regexp_like, contains_tokens, levenshtein, ...

Regular expressions are read as Rust's (``regular_expressions``). Flags: ``i``, ``m``, ``s``, and
``g`` (replace all). ``contains_tokens`` splits text where neither a letter, a digit nor a byte
beyond ASCII stands, and matches words as they are written. Positions count characters, from 1; 0
means "not found".

Limits: each distinct text of a window is visited once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import cast, text
from lance_nb.table.predicate.expression import (
    Expression,
    Literal,
    Value,
    aligned,
    call,
    one_array,
    per_distinct,
)
from lance_nb.table.predicate.lists import Mask
from lance_nb.table.predicate.regular_expressions import Regex
from lance_nb.table.predicate.string_functions import Binder, literal_of

_STEPS_MAX = 1 << 20
_TOKEN = re.compile(r"[^\W_]+")


def _of_one(function: Callable[..., Any], type_: pa.DataType) -> Binder:
    """Make a binder of a function of one text, a column or not, and of literals after it."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        literals = [literal_of(operand, name=name) for operand in operands[1:]]
        if None in literals:
            return Literal(scalar_of(None, type_))
        kernel = per_distinct(lambda value: function(value, *literals), type_)
        return call(name, kernel, cast(text(operands[0], name=name), pa.large_string()))

    return bind


def _contains_tokens(value: str, tokens: str) -> bool:
    return set(_TOKEN.findall(tokens)) <= set(_TOKEN.findall(value))


def _levenshtein(value: str, other: str) -> int:
    """Count the characters to insert, drop or change."""
    if len(value) * len(other) > _STEPS_MAX:
        raise pa.ArrowInvalid(f"levenshtein of texts of {len(value):,} and {len(other):,} letters")
    row = list(range(len(other) + 1))
    for place, letter in enumerate(value, 1):
        before, row[0] = row[0], place
        for column, character in enumerate(other, 1):
            cost = before + (letter != character)
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, cost)
    return row[-1]


def _find_in_set(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind find_in_set(word, 'a,b,c'): either side may be the column."""
    if isinstance(operands[0], Literal):
        word = literal_of(operands[0], name=name)
        swapped = _of_one(lambda words, text: _place_in(text, words), pa.int32())
        return swapped(name, [operands[1], Literal(scalar_of(word))])
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
        regex.matches(scalar_of(""))
    except pa.ArrowInvalid as exc:
        raise PredicateError(f"{name}: {pattern!r} is no regular expression: {exc}") from exc
    if pattern == "":
        return call(name, _never, text(operands[0], name=name))  # as pylance, of null as well

    def place(value: str, _: str, start: int = 1) -> int:
        before = max(start - 1, 0)
        position = regex.place(value[before:]) if value else -1
        return 0 if position < 0 else before + position + 1

    return _of_one(place, pa.int64())(name, operands)


def _never(texts: Value) -> Value:
    return pc.cast(pc.multiply(pc.fill_null(pc.utf8_length(texts), 0), 0), pa.int64())


# name -> (binder, fewest operands, most operands)


_FLAGS = frozenset("imsg")


def _pattern(name: str, operands: Sequence[Expression], place: int) -> tuple[Regex | None, str]:
    """Return the regular expression, with its flags inside, and all flags."""
    pattern = literal_of(operands[1], name=name)
    flags = literal_of(operands[place], name=name) if len(operands) > place else ""
    if pattern is not None and not isinstance(pattern, str):
        raise PredicateError(f"{name} needs a pattern in quotes")
    if not set(flags or "") <= _FLAGS:
        raise PredicateError(f"{name} knows the flags i, m, s and g, not {flags!r}")
    inside = "".join(sorted(set(flags or "") - {"g"}))
    if pattern is None:
        return None, flags or ""
    pattern = f"(?{inside}){pattern}" if inside else pattern
    regex = Regex(pattern)
    regex.matches(scalar_of(""))  # a pattern that is none is found now, not with the first row
    return regex, flags or ""


def regexp_test(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind regexp_like: whether the pattern is found."""
    value = text(operands[0], name=name)
    pattern, _ = _pattern(name, operands, 2)
    if pattern is None:
        return Literal(scalar_of(None, pa.bool_()))
    return call(name, pattern.matches, value)


def _regexp_match(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind regexp_match: a list of groups, or null; see ``logic.as_test`` for filters."""
    value = text(operands[0], name=name)
    pattern, _ = _pattern(name, operands, 2)
    if pattern is None:
        return Literal(scalar_of(None, pa.list_(pa.string())))
    return call(name, RegexpMatch(pattern), value)


class RegexpMatch:
    """The kernel of regexp_match, which a filter asks for its pattern."""

    def __init__(self, pattern: Regex) -> None:
        self.pattern = pattern
        self._named = _with_named_groups(pattern.re2)

    def __call__(self, value: Value) -> Value:
        """Return the groups of each row's first match, the whole match if there are none."""
        type_ = pa.list_(pa.string())
        if self.pattern.has_boundary:
            (texts,) = aligned(value)
            odd = self.pattern.beyond_ascii(texts)
            if odd.any():
                return self._each(value, texts, odd)
        pieces = pc.extract_regex(value, pattern=self._named)
        if isinstance(pieces, pa.Scalar):
            return scalar_of(list(pieces.as_py().values()) if pieces.is_valid else None, type_)
        rows = one_array(pieces)
        groups = [pc.cast(rows.field(place), pa.string()) for place in range(rows.type.num_fields)]
        count = len(groups)
        each = np.arange(len(rows) * count)
        values = pc.take(
            pa.concat_arrays(groups), pa.array(each % count * len(rows) + each // count)
        )
        offsets = pa.array(np.arange(0, each.size + 1, count, dtype=np.int32))
        return pa.ListArray.from_arrays(offsets, values, mask=pc.is_null(rows))

    def is_found(self, value: Value) -> Value:
        """Tell whether the pattern is found, which is what a condition asks; never null."""
        return pc.fill_null(self.pattern.matches(value), False)

    def _each(self, value: Value, texts: pa.Array, odd: Mask) -> Value:
        usual = self(pc.filter(texts, pa.array(~odd)))
        rows = [self.pattern.groups(text) for text in pc.filter(texts, pa.array(odd)).to_pylist()]
        place = np.where(odd, len(usual) + np.cumsum(odd) - 1, np.cumsum(~odd) - 1)
        result = pc.take(pa.concat_arrays([usual, pa.array(rows, usual.type)]), pa.array(place))
        return result[0] if isinstance(value, pa.Scalar) else result


def _with_named_groups(pattern: str) -> str:
    """Name every group of a regular expression, as Arrow demands; without any, the whole."""
    count, inside = 0, False
    out: list[str] = []
    for piece in re.findall(r"\\.|\(\?P?<(?![=!])|\(\?|.", pattern, re.DOTALL):
        inside = (inside or piece == "[") and piece != "]"
        is_group = not inside and piece in {"(", "(?<", "(?P<"}
        out.append(f"(?P<group{count}>" if is_group and piece == "(" else piece)
        count += is_group
    return "".join(out) if count else f"(?P<whole>{pattern})"


def _regexp_replace(name: str, operands: Sequence[Expression]) -> Expression:
    value = text(operands[0], name=name)
    pattern, flags = _pattern(name, operands, 3)
    replacement = literal_of(operands[2], name=name)
    if pattern is None or replacement is None:
        return Literal(scalar_of(None, pa.string()))
    # SQL writes groups as \1 (RE2's own form) or, in Rust, as $1 and ${1}.
    for group in range(10):
        replacement = replacement.replace(f"${{{group}}}", f"\\{group}")
        replacement = replacement.replace(f"${group}", f"\\{group}")
    times = None if "g" in flags else 1

    return call(name, lambda rows: pattern.replaced(rows, replacement, times), value)


def _regexp_count(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind regexp_count(text, pattern, start, flags): 0 for null, as pylance."""
    pattern, _ = _pattern(name, operands, 3)
    value = text(operands[0], name=name)
    start = literal_of(operands[2], name=name) if len(operands) > 2 else 1
    if not isinstance(start, int) or start < 1:
        raise PredicateError(f"{name} begins to count at a character from 1 on")

    def kernel(rows: Value) -> Value:
        if pattern is None:
            return pc.cast(pc.multiply(pc.fill_null(pc.utf8_length(rows), 0), 0), pa.int64())
        if start == 1:
            return pc.fill_null(pattern.counted(rows), 0)
        counts = pattern.counted(pc.utf8_slice_codeunits(rows, start=start - 1))
        is_inside = pc.greater_equal(pc.utf8_length(rows), start - 1)
        return pc.fill_null(pc.if_else(is_inside, counts, 0), 0)

    return call(name, kernel, value)


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    "regexp_like": (regexp_test, 2, 3),
    "regexp_match": (_regexp_match, 2, 3),
    "regexp_replace": (_regexp_replace, 3, 4),
    "regexp_count": (_regexp_count, 2, 4),
    "contains_tokens": (_of_one(_contains_tokens, pa.bool_()), 2, 2),
    "levenshtein": (_of_one(_levenshtein, pa.int32()), 2, 2),
    "find_in_set": (_find_in_set, 2, 2),
    **dict.fromkeys(
        ("substr_index", "substring_index"), (_of_one(_substr_index, pa.string()), 3, 3)
    ),
    "regexp_instr": (_instr, 2, 3),
}
