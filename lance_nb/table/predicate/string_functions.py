"""Functions of text and bytes: length, lower, substr, replace, concat, md5, encode, ...

Lengths and positions count characters, positions from 1. What Arrow does not offer is in
``text_kernels``. In digests and encodings text counts as its UTF-8 bytes; base64 is written without
padding, as in pylance.

Limits: neither Arrow nor numpy has a digest of many values; each distinct one is visited once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_compute import scalar_of
from lance_nb.errors import PredicateError
from lance_nb.table.predicate import text_kernels
from lance_nb.table.predicate.coercion import cast, plain, plain_for_cast, text
from lance_nb.table.predicate.expression import (
    Expression,
    Kernel,
    Literal,
    Value,
    aligned,
    call,
    per_distinct,
    per_row,
)

_DIGESTS = ("md5", "sha224", "sha256", "sha384", "sha512", "blake2s", "blake2b")


def _octets(expression: Expression, *, name: str) -> Expression:
    expression = plain(expression)
    type_ = expression.type
    if pt.is_binary(type_) or pt.is_large_binary(type_):
        return expression
    if not (pt.is_string(type_) or pt.is_large_string(type_) or pt.is_null(type_)):
        raise PredicateError(f"{name} needs text or bytes, not {type_}; write a cast")
    return cast(expression, pa.large_binary() if pt.is_large_string(type_) else pa.binary())


def _hashed(data: bytes, *, digest: str) -> bytes:
    return hashlib.new(digest, data, usedforsecurity=False).digest()


def _digest(name: str, operands: Sequence[Expression]) -> Expression:
    digest = name if len(operands) == 1 else literal_of(operands[1], name=name)
    if digest not in _DIGESTS:
        raise PredicateError(f"{name} knows {', '.join(_DIGESTS)}, not {digest!r}")
    kernel = per_distinct(partial(_hashed, digest=digest), pa.binary())
    return call(name, kernel, _octets(operands[0], name=name))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii").rstrip("=")


def _from_base64(data: bytes) -> bytes:
    try:
        return base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
    except binascii.Error as exc:
        raise pa.ArrowInvalid(f"{data[:40]!r} is not base64: {exc}") from exc


def _from_hex(data: bytes) -> bytes:
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError as exc:
        raise pa.ArrowInvalid(f"{data[:40]!r} is not hexadecimal") from exc


def _coded(codes: dict[str, Callable[[bytes], str | bytes]], type_: pa.DataType) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        code = literal_of(operands[1], name=name)
        if code not in codes:
            raise PredicateError(f"{name} knows {', '.join(codes)}, not {code!r}")
        return call(name, per_distinct(codes[code], type_), _octets(operands[0], name=name))

    return bind


# name -> (binder, fewest operands, most operands)


Binder = Callable[[str, Sequence[Expression]], Expression]


def written(expression: Expression) -> Expression:
    """Return the operand as text, numbers and bytes written out (as concat does)."""
    expression = plain_for_cast(expression, pa.string())
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
        result = getattr(pc, function)(value, **options)
        return result if type_ is None else pc.cast(result, type_)

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        return call(name, kernel, text(operands[0], name=name))

    return bind


def _length(name: str, operands: Sequence[Expression]) -> Expression:
    return of_text("utf8_length", pa.int32())(name, [written(operands[0])])


def _bits(name: str, operands: Sequence[Expression]) -> Expression:
    octets = of_text("binary_length", pa.int32())(name, operands)
    return call(name, lambda value: _times(value, 8), octets)


def _times(value: Value, factor: int) -> Value:
    return pc.multiply(value, scalar_of(factor, value.type))


def _with_literal(function: str) -> Binder:
    """Make a binder of an Arrow function with a literal pattern: starts_with(text, pattern)."""

    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        value = text(operands[0], name=name)
        if not isinstance(operands[1], Literal):
            rows = text_kernels.whole(_OF_COLUMNS[function], pa.bool_())
            return call(name, rows, value, text(operands[1], name=name))
        pattern = literal_of(text(operands[1], name=name), name=name)
        if pattern is None:
            return Literal(scalar_of(None, pa.bool_()))
        return call(name, partial(match_literal, function=function, pattern=pattern), value)

    return bind


def match_literal(rows: Value, *, function: str, pattern: str) -> Value:
    """Compute an Arrow function of texts and one pattern."""
    return getattr(pc, function)(rows, pattern=pattern)


def _whole(function: Callable[..., pa.Array], type_: pa.DataType, texts: int = 1) -> Binder:
    """Make a binder of a function of arrays, of so many ``texts`` and then of int64."""
    return _bound(text_kernels.whole(function, type_), texts)


def _bound(kernel: Kernel, texts: int = 1) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        bound = [
            text(operand, name=name) if place < texts else cast(plain(operand), pa.int64())
            for place, operand in enumerate(operands)
        ]
        return call(name, kernel, *bound)

    return bind


def _trim(function: str) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        value = text(operands[0], name=name)
        chars = " " if len(operands) == 1 else literal_of(operands[1], name=name)
        return of_text(function, characters=chars)(name, [value])

    return bind


def _concat(name: str, operands: Sequence[Expression]) -> Expression:
    parts = [cast(written(operand), pa.string()) for operand in operands]

    def kernel(*values: Value) -> Value:
        # Filled here: Arrow's own way to skip nulls loses rows in which all are null.
        filled = [pc.fill_null(value, "") for value in values]
        return pc.binary_join_element_wise(*filled, "")

    return call(name, kernel, *parts)


def joined(name: str, left: Expression, right: Expression) -> Expression:
    """Bind ``left || right``, which is null if either is, and of the wider type of both."""
    is_large = any(pt.is_large_string(operand.type) for operand in (left, right))
    type_ = pa.large_string() if is_large else pa.string()
    parts = [cast(written(operand), type_) for operand in (left, right)]
    nothing = scalar_of("", type_)

    def kernel(*values: Value) -> Value:
        return pc.binary_join_element_wise(*values, nothing)

    return call(name, kernel, *parts)


def _concat_ws(name: str, operands: Sequence[Expression]) -> Expression:
    def kernel(*values: Value) -> Value:
        texts = text_kernels.concat_ws(aligned(*values))
        return texts[0] if all(isinstance(value, pa.Scalar) for value in values) else texts

    return call(name, kernel, *(cast(written(operand), pa.string()) for operand in operands))


def _padded(name: str, operands: Sequence[Expression]) -> Expression:
    kernel = text_kernels.whole(partial(text_kernels.pad, at_left=name == "lpad"), pa.string())
    fill = operands[2] if len(operands) == 3 else Literal(scalar_of(" "))
    value, filling = text(operands[0], name=name), text(fill, name=name)
    return call(name, kernel, value, cast(plain(operands[1]), pa.int64()), filling)


def _of_number(function: Callable[[pa.Array], pa.Array]) -> Binder:
    def bind(name: str, operands: Sequence[Expression]) -> Expression:
        kernel = text_kernels.whole(function, pa.string())
        return call(name, kernel, cast(plain(operands[0]), pa.int64()))

    return bind


_OF_COLUMNS = {
    "starts_with": text_kernels.starts_with,
    "ends_with": text_kernels.ends_with,
    "match_substring": text_kernels.contains,
}
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
    **dict.fromkeys(("substr", "substring"), (_whole(text_kernels.substr, _S), 2, 3)),
    **dict.fromkeys(
        ("strpos", "instr", "position"), (_whole(text_kernels.strpos, _I, 2), 2, 2)
    ),
    "left": (_whole(text_kernels.left, _S), 2, 2),
    "right": (_whole(text_kernels.right, _S), 2, 2),
    "replace": (_whole(text_kernels.replace, _S, 3), 3, 3),
    "repeat": (_whole(text_kernels.repeat, _S), 2, 2),
    "lpad": (_padded, 2, 3),
    "rpad": (_padded, 2, 3),
    "split_part": (_whole(text_kernels.split_part, _S, 2), 3, 3),
    "translate": (_whole(text_kernels.translate, _S, 3), 3, 3),
    "initcap": (_whole(text_kernels.initcap, _S), 1, 1),
    "ascii": (_whole(text_kernels.ascii_, _I), 1, 1),
    "chr": (_of_number(text_kernels.chr_), 1, 1),
    "to_hex": (_of_number(text_kernels.to_hex), 1, 1),
    "md5": (_bound(per_row(text_kernels.md5, _S)), 1, 1),
    "concat": (_concat, 1, 64),
    "concat_ws": (_concat_ws, 2, 64),
    "encode": (_coded({"hex": bytes.hex, "base64": _base64}, pa.string()), 2, 2),
    "decode": (_coded({"hex": _from_hex, "base64": _from_base64}, pa.binary()), 2, 2),
    "digest": (_digest, 2, 2),
    **dict.fromkeys(("sha224", "sha256", "sha384", "sha512"), (_digest, 1, 1)),
}  # fmt: skip
