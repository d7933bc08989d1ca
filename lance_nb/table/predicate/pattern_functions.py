"""LIKE and the functions of regular expressions: regexp_like, regexp_match, regexp_replace, ...

Regular expressions are read as Rust's (``regular_expressions``). Flags: ``i``, ``m``, ``s``, and
``g`` (replace all).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.comparison import like as _like
from lance_nb.table.predicate.expression import (
    Call,
    Expression,
    Literal,
    Value,
    aligned,
    call,
    one_array,
)
from lance_nb.table.predicate.lists import Mask
from lance_nb.table.predicate.regular_expressions import Regex
from lance_nb.table.predicate.string_functions import Binder, literal_of, text

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
    regex.found(pa.scalar(""))  # a pattern that is none is found now, not with the first row
    return regex, flags or ""


def regexp_test(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind regexp_like: whether the pattern is found."""
    value = text(operands[0], name=name)
    pattern, _ = _pattern(name, operands, 2)
    if pattern is None:
        return Literal(pa.scalar(None, pa.bool_()))
    return call(name, pattern.found, value)


def _regexp_match(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind regexp_match: a list of groups, or null; see ``as_test`` for filters."""
    value = text(operands[0], name=name)
    pattern, _ = _pattern(name, operands, 2)
    if pattern is None:
        return Literal(pa.scalar(None, pa.list_(pa.string())))
    return call(name, RegexpMatch(pattern), value)


class RegexpMatch:
    """The kernel of regexp_match, which a filter asks for its pattern."""

    def __init__(self, pattern: Regex) -> None:
        self.pattern = pattern
        self._named = _with_named_groups(pattern.re2)

    def __call__(self, value: Value) -> Value:
        """Return the groups of each row's first match, the whole match if there are none."""
        import pyarrow.compute as pc

        type_ = pa.list_(pa.string())
        if self.pattern.has_boundary:
            (texts,) = aligned(value)
            odd = self.pattern.beyond_ascii(texts)
            if odd.any():
                return self._each(value, texts, odd)
        found = pc.extract_regex(value, pattern=self._named)
        if isinstance(found, pa.Scalar):
            return pa.scalar(list(found.as_py().values()) if found.is_valid else None, type_)
        rows = one_array(found)
        groups = [rows.field(place).cast(pa.string()) for place in range(rows.type.num_fields)]
        count = len(groups)
        each = np.arange(len(rows) * count)
        values = pa.concat_arrays(groups).take(pa.array(each % count * len(rows) + each // count))
        offsets = pa.array(np.arange(0, each.size + 1, count, dtype=np.int32))
        return pa.ListArray.from_arrays(offsets, values, mask=rows.is_null())

    def _each(self, value: Value, texts: pa.Array, odd: Mask) -> Value:
        usual = self(texts.filter(pa.array(~odd)))
        rows = [self.pattern.groups(text) for text in texts.filter(pa.array(odd)).to_pylist()]
        place = np.where(odd, len(usual) + np.cumsum(odd) - 1, np.cumsum(~odd) - 1)
        found = pa.concat_arrays([usual, pa.array(rows, usual.type)]).take(pa.array(place))
        return found[0] if isinstance(value, pa.Scalar) else found


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


def as_test(expression: Expression) -> Expression:
    """Turn regexp_match into "is found", never null, where a condition is wanted (as pylance)."""
    if isinstance(expression, Call) and isinstance(expression.kernel, RegexpMatch):
        return call(expression.name, _is_found(expression.kernel.pattern), *expression.operands)
    return expression


def _is_found(pattern: Regex) -> Callable[[Value], Value]:
    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        return pc.fill_null(pattern.found(value), False)

    return kernel


def _regexp_replace(name: str, operands: Sequence[Expression]) -> Expression:
    value = text(operands[0], name=name)
    pattern, flags = _pattern(name, operands, 3)
    replacement = literal_of(operands[2], name=name)
    if pattern is None or replacement is None:
        return Literal(pa.scalar(None, pa.string()))
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
        import pyarrow.compute as pc

        if pattern is None:
            return pc.multiply(pc.fill_null(pc.utf8_length(rows), 0), 0).cast(pa.int64())
        if start == 1:
            return pc.fill_null(pattern.counted(rows), 0)
        found = pattern.counted(pc.utf8_slice_codeunits(rows, start=start - 1))
        is_inside = pc.greater_equal(pc.utf8_length(rows), start - 1)
        return pc.fill_null(pc.if_else(is_inside, found, 0), 0)

    return call(name, kernel, value)


def like(
    name: str, operands: Sequence[Expression], *, ignore_case: bool, escape: str = "\\"
) -> Expression:
    """Bind LIKE and ILIKE."""
    if escape != "\\":
        raise PredicateError("LIKE escapes by a backslash only")
    value, pattern = (text(one, name=name) for one in operands)
    kernel = partial(_like, ignore_case=ignore_case)
    if isinstance(pattern, Literal) and not isinstance(value, Literal):
        fixed = pattern.scalar
        return call(name, lambda rows: kernel(rows, fixed), value)
    return call(name, kernel, value, pattern)


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    "regexp_like": (regexp_test, 2, 3),
    "regexp_match": (_regexp_match, 2, 3),
    "regexp_replace": (_regexp_replace, 3, 4),
    "regexp_count": (_regexp_count, 2, 4),
}
