"""Functions of text: length, lower, substr, strpos, replace, concat, ... (see ``FUNCTIONS``).

Lengths and positions count characters, positions from 1.

Limits: a text made by repeat, lpad or rpad has at most 1 MiB.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import cast, plain
from lance_nb.table.predicate.expression import (
    Expression,
    Literal,
    Value,
    aligned,
    call,
    per_row,
)

Binder = Callable[[str, Sequence[Expression]], Expression]

TEXT_CHARS_MAX = 1 << 20


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


def of_text(function: str, type_: pa.DataType | None = None, **options: Any) -> Binder:
    """Make a binder of an Arrow function of one text."""

    def kernel(value: Value) -> Value:
        import pyarrow.compute as pc

        found = getattr(pc, function)(value, **options)
        return found if type_ is None else found.cast(type_)

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        return call(name, kernel, text(operands[0], name=name))

    return bind


def _length(name: str, operands: Sequence[Expression]) -> Expression:
    return of_text("utf8_length", pa.int32())(name, [written(operands[0])])


def _bits(name: str, operands: Sequence[Expression]) -> Expression:
    octets = of_text("binary_length", pa.int32())(name, operands)
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
        return of_text(function, characters=chars)(name, [value])

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


def _digest(algorithm: str) -> Callable[[str], str]:
    return lambda value: hashlib.new(algorithm, value.encode(), usedforsecurity=False).hexdigest()


_S, _I = pa.string(), pa.int32()
# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    **dict.fromkeys(("length", "char_length", "character_length"), (_length, 1, 1)),
    "octet_length": (of_text("binary_length", _I), 1, 1),
    "bit_length": (_bits, 1, 1),
    "lower": (of_text("utf8_lower"), 1, 1),
    "upper": (of_text("utf8_upper"), 1, 1),
    "reverse": (of_text("utf8_reverse"), 1, 1),
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
}  # fmt: skip
