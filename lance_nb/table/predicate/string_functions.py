"""Functions of text: length, lower, substr, strpos, replace, regexp_like, ... (see ``FUNCTIONS``).

Lengths and positions count characters, positions from 1. Regular expressions are RE2's, which lack
back-references and look-around as Rust's do; flags: ``i``, ``m``, ``s``, ``g`` (replace all).

Limits: a text made by repeat, lpad or rpad has at most 1 MiB.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import cast, plain
from lance_nb.table.predicate.comparison import like as _like
from lance_nb.table.predicate.comparison import regexp
from lance_nb.table.predicate.expression import (
    Call,
    Expression,
    Literal,
    Value,
    aligned,
    call,
    per_row,
)

Binder = Callable[[str, Sequence[Expression]], Expression]

TEXT_CHARS_MAX = 1 << 20
_FLAGS = frozenset("imsg")


def text(expression: Expression, *, name: str) -> Expression:
    """Return the operand as text. Raises PredicateError for another type."""
    expression = plain(expression)
    if pt.is_null(expression.type):
        return cast(expression, pa.string())
    if not (pt.is_string(expression.type) or pt.is_large_string(expression.type)):
        raise PredicateError(f"{name} needs text, not {expression.type}; write a cast")
    return expression


def written(expression: Expression) -> Expression:
    """Return the operand as text, numbers and bytes written out (as concat does)."""
    expression = plain(expression)
    if pt.is_string(expression.type) or pt.is_large_string(expression.type):
        return expression
    return cast(expression, pa.string())


def literal_of(expression: Expression, *, name: str) -> Any:
    """Return the Python value of an operand that must be a literal."""
    if not isinstance(expression, Literal):
        raise PredicateError(f"{name} needs a literal here, not a column")
    return expression.scalar.as_py()


def _of_text(function: str, type_: pa.DataType | None = None, **options: Any) -> Binder:
    """Make a binder of an Arrow function of one text."""

    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        found = getattr(pc, function)(value, **options)
        return found if type_ is None else found.cast(type_)

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        return call(name, kernel, text(operands[0], name=name))

    return bind


def _length(name: str, operands: Sequence[Expression]) -> Expression:
    return _of_text("utf8_length", pa.int32())(name, [written(operands[0])])


def _bits(name: str, operands: Sequence[Expression]) -> Expression:
    octets = _of_text("binary_length", pa.int32())(name, operands)
    return call(name, lambda value: _times(value, 8), octets)


def _times(value: Value, factor: int) -> Value:
    import pyarrow.compute as pc

    return pc.multiply(value, pa.scalar(factor, value.type))


def _with_literal(function: str) -> Binder:
    """Make a binder of an Arrow function with a literal pattern: starts_with(text, pattern)."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        value = text(operands[0], name=name)
        if not isinstance(operands[1], Literal):
            test = {"starts_with": str.startswith, "ends_with": str.endswith}.get(
                function, str.__contains__
            )
            return call(name, per_row(test, pa.bool_()), value, text(operands[1], name=name))
        pattern = literal_of(text(operands[1], name=name), name=name)
        if pattern is None:
            return Literal(pa.scalar(None, pa.bool_()))

        def kernel(rows: Value) -> Value:
            import pyarrow.compute as pc

            return getattr(pc, function)(rows, pattern=pattern)

        return call(name, kernel, value)

    return bind


def _rows(function: Callable[..., Any], type_: pa.DataType, texts: int = 1) -> Binder:
    """Make a binder of a Python function; the first ``texts`` operands are text, others int64."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        bound = [
            text(one, name=name) if place < texts else cast(plain(one), pa.int64())
            for place, one in enumerate(operands)
        ]
        return call(name, per_row(function, type_), *bound)

    return bind


def _trim(function: str) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        value = text(operands[0], name=name)
        chars = " " if len(operands) == 1 else literal_of(operands[1], name=name)
        return _of_text(function, characters=chars)(name, [value])

    return bind


def _concat(name: str, operands: Sequence[Expression]) -> Expression:
    parts = [cast(written(one), pa.string()) for one in operands]

    def kernel(*values: Value) -> Value:
        import pyarrow.compute as pc

        # Filled here: Arrow's own way to skip nulls loses rows in which all are null.
        filled = [pc.fill_null(value, "") for value in values]
        return pc.binary_join_element_wise(*filled, "")

    return call(name, kernel, *parts)


def joined(name: str, left: Expression, right: Expression) -> Expression:
    """Bind ``left || right``, which is null if either is."""
    parts = [cast(written(one), pa.string()) for one in (left, right)]

    def kernel(*values: Value) -> Value:
        import pyarrow.compute as pc

        return pc.binary_join_element_wise(*values, "")

    return call(name, kernel, *parts)


def _concat_ws(name: str, operands: Sequence[Expression]) -> Expression:
    # Row by row: Arrow's own way to skip nulls loses rows in which all are null.
    def kernel(*values: Value) -> Value:
        rows = zip(*(array.to_pylist() for array in aligned(*values)), strict=True)
        found = [
            None if row[0] is None else row[0].join(one for one in row[1:] if one is not None)
            for row in rows
        ]
        return pa.array(found, pa.string())

    return call(name, kernel, *(cast(written(one), pa.string()) for one in operands))


def _substr(value: str, start: int, count: int | None = None) -> str:
    first = max(start - 1, 0)
    if count is None:
        return value[first:]
    if count < 0:
        raise pa.ArrowInvalid(f"substr cannot have a negative length, {count}")
    return value[first : max(start - 1 + count, 0)]


def _pad(value: str, count: int, fill: str, *, left: bool) -> str:
    _check_chars(count)
    missing = max(count, 0) - len(value)
    if missing <= 0 or not fill:
        return value[: max(count, 0)]
    filled = (fill * (missing // len(fill) + 1))[:missing]
    return filled + value if left else value + filled


def _padded(name: str, operands: Sequence[Expression]) -> Expression:
    function = partial(_pad, left=name == "lpad")
    fill = operands[2] if len(operands) == 3 else Literal(pa.scalar(" "))
    value, filling = text(operands[0], name=name), text(fill, name=name)
    return call(
        name, per_row(function, pa.string()), value, cast(plain(operands[1]), pa.int64()), filling
    )


def _repeat(value: str, count: int) -> str:
    _check_chars(len(value) * count)
    return value * max(count, 0)


def _check_chars(count: int) -> None:
    if count > TEXT_CHARS_MAX:
        raise pa.ArrowInvalid(f"a text of {count:,} characters is longer than {TEXT_CHARS_MAX:,}")


def _split_part(name: str, operands: Sequence[Expression]) -> Expression:
    def pick(value: str, delimiter: str, number: int) -> str:
        if number == 0:
            raise pa.ArrowInvalid("split_part counts from 1")
        parts = value.split(delimiter) if delimiter else [value]
        place = number - 1 if number > 0 else len(parts) + number
        return parts[place] if 0 <= place < len(parts) else ""

    texts = [text(one, name=name) for one in operands[:2]]
    return call(name, per_row(pick, pa.string()), *texts, cast(plain(operands[2]), pa.int64()))


def _replace(value: str, old: str, new: str) -> str:
    return value.replace(old, new) if old else value


def _translate(value: str, source: str, target: str) -> str:
    table = {ord(a): (target[i] if i < len(target) else None) for i, a in enumerate(source)}
    return value.translate(table)


def _initcap(value: str) -> str:
    out, inside = [], False
    for char in value:
        out.append(char.lower() if inside else char.upper())
        inside = char.isalnum()
    return "".join(out)


def _hex(name: str, operands: Sequence[Expression]) -> Expression:
    def write(value: int) -> str:
        return f"{value & 0xFFFF_FFFF_FFFF_FFFF:x}"

    return call(name, per_row(write, pa.string()), cast(plain(operands[0]), pa.int64()))


def _chr(name: str, operands: Sequence[Expression]) -> Expression:
    def write(value: int) -> str:
        if not 0 < value < 0x110000:
            raise pa.ArrowInvalid(f"chr: there is no character {value}")
        return chr(value)

    return call(name, per_row(write, pa.string()), cast(plain(operands[0]), pa.int64()))


def _pattern(name: str, operands: Sequence[Expression], place: int) -> tuple[str | None, str]:
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
    # A pattern that is none is found now, not with the first row.
    regexp(pa.scalar(""), pattern=pattern, ignore_case=False)
    return pattern, flags or ""


def regexp_test(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind regexp_like: whether the pattern is found."""
    value = text(operands[0], name=name)
    pattern, _ = _pattern(name, operands, 2)
    if pattern is None:
        return Literal(pa.scalar(None, pa.bool_()))
    return call(name, partial(regexp, pattern=pattern, ignore_case=False), value)


def _regexp_match(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind regexp_match: a list of groups, or null; see ``as_test`` for filters."""
    value = text(operands[0], name=name)
    pattern, _ = _pattern(name, operands, 2)
    if pattern is None:
        return Literal(pa.scalar(None, pa.list_(pa.string())))
    return call(name, RegexpMatch(pattern), value)


class RegexpMatch:
    """The kernel of regexp_match, which a filter asks for its pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._named = _with_named_groups(pattern)

    def __call__(self, value: Value) -> Value:
        """Return the groups of each row's first match, the whole match if there are none."""
        import pyarrow.compute as pc

        type_ = pa.list_(pa.string())
        found = pc.extract_regex(value, pattern=self._named)
        if isinstance(found, pa.Scalar):
            return pa.scalar(list(found.as_py().values()) if found.is_valid else None, type_)
        rows = [None if row is None else list(row.values()) for row in found.to_pylist()]
        return pa.array(rows, type_)


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


def _is_found(pattern: str) -> Callable[[Value], Value]:
    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        return pc.fill_null(regexp(value, pattern=pattern, ignore_case=False), False)

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

    def kernel(rows: Value) -> Value:
        import pyarrow.compute as pc

        return pc.replace_substring_regex(
            rows, pattern=pattern, replacement=replacement, max_replacements=times
        )

    return call(name, kernel, value)


def _regexp_count(name: str, operands: Sequence[Expression]) -> Expression:
    pattern, _ = _pattern(name, operands, 3)
    options = {"pattern": pattern}
    return _of_text("count_substring_regex", pa.int64(), **options)(name, operands)


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


def _digest(algorithm: str) -> Callable[[str], str]:
    return lambda value: hashlib.new(algorithm, value.encode(), usedforsecurity=False).hexdigest()


_S, _I = pa.string(), pa.int32()
# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    **dict.fromkeys(("length", "char_length", "character_length"), (_length, 1, 1)),
    "octet_length": (_of_text("binary_length", _I), 1, 1),
    "bit_length": (_bits, 1, 1),
    "lower": (_of_text("utf8_lower"), 1, 1),
    "upper": (_of_text("utf8_upper"), 1, 1),
    "reverse": (_of_text("utf8_reverse"), 1, 1),
    "btrim": (_trim("utf8_trim"), 1, 2),
    "trim": (_trim("utf8_trim"), 1, 2),
    "ltrim": (_trim("utf8_ltrim"), 1, 2),
    "rtrim": (_trim("utf8_rtrim"), 1, 2),
    "starts_with": (_with_literal("starts_with"), 2, 2),
    "ends_with": (_with_literal("ends_with"), 2, 2),
    "contains": (_with_literal("match_substring"), 2, 2),
    **dict.fromkeys(("substr", "substring"), (_rows(_substr, _S), 2, 3)),
    **dict.fromkeys(
        ("strpos", "instr", "position"),
        (_rows(lambda value, piece: value.find(piece) + 1, _I, 2), 2, 2),
    ),
    "left": (_rows(lambda value, n: value[:n] if n else "", _S), 2, 2),
    "right": (_rows(lambda value, n: value[-n:] if n > 0 else value[-n:] if n else "", _S), 2, 2),
    "replace": (_rows(_replace, _S, 3), 3, 3),
    "repeat": (_rows(_repeat, _S), 2, 2),
    "lpad": (_padded, 2, 3),
    "rpad": (_padded, 2, 3),
    "split_part": (_split_part, 3, 3),
    "translate": (_rows(_translate, _S, 3), 3, 3),
    "initcap": (_rows(_initcap, _S), 1, 1),
    "ascii": (_rows(lambda value: ord(value[0]) if value else 0, _I), 1, 1),
    "chr": (_chr, 1, 1),
    "to_hex": (_hex, 1, 1),
    "md5": (_rows(_digest("md5"), _S), 1, 1),
    "concat": (_concat, 1, 64),
    "concat_ws": (_concat_ws, 2, 64),
    "regexp_like": (regexp_test, 2, 3),
    "regexp_match": (_regexp_match, 2, 3),
    "regexp_replace": (_regexp_replace, 3, 4),
    "regexp_count": (_regexp_count, 2, 2),
}  # fmt: skip
