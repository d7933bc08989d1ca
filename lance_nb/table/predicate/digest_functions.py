"""Digests and codes of bytes: md5, sha256, digest(x, 'sha512'), encode(x, 'base64'), decode.

Text counts as its UTF-8 bytes. base64 is written without padding, as pylance writes it.

Limits: neither Arrow nor numpy has a function of many values; each distinct one is visited once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import cast, plain
from lance_nb.table.predicate.expression import Expression, call, per_distinct
from lance_nb.table.predicate.string_functions import Binder, literal_of

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
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    "encode": (_coded({"hex": bytes.hex, "base64": _base64}, pa.string()), 2, 2),
    "decode": (_coded({"hex": _from_hex, "base64": _from_base64}, pa.binary()), 2, 2),
    "digest": (_digest, 2, 2),
    **dict.fromkeys(("sha224", "sha256", "sha384", "sha512"), (_digest, 1, 1)),
}
