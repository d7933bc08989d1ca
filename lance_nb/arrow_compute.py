"""The compute functions of Arrow, by the names and arguments that ``pyarrow.compute`` has.

``pyarrow.compute`` wraps all 286 functions and writes their documentation when it is imported: 35
ms of processor, two thirds of the first ``head`` of a process. Here a function is looked up when it
is first used. To convert a Python value pyarrow imports pandas, where it is installed (0.25 s);
``scalar_of`` makes scalars of simple values without, also of the arguments of a function.

The methods of arrays (``take``, ``filter``, ``cast``, ``is_null``, ``dictionary_encode``) load
``pyarrow.compute``: what a first read or write does is done by the functions.

Limits: no expressions (``pyarrow.compute.field``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa


def __getattr__(name: str) -> Any:
    """Return a function, where ``and_`` stands for ``and``, or the class of its options."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        value = getattr(_compute(), name) if name.endswith("Options") else _wrapped(name)
    except KeyError:
        raise AttributeError(f"Arrow has no compute function {name!r}") from None
    globals()[name] = value
    return value


def cast(
    values: Any, kind: pa.DataType | None = None, safe: bool = True, *, options: Any = None
) -> Any:
    """Return an array, chunked array or scalar cast to a type, or as ``CastOptions`` say."""
    if options is None:
        options_class = _compute().CastOptions
        options = options_class.safe(kind) if safe else options_class.unsafe(kind)
    return _compute().call_function("cast", [values], options)


def fill_null(values: Any, fill_value: Any) -> Any:
    """Return values in which another value stands where they are null."""
    if not isinstance(fill_value, pa.Array | pa.ChunkedArray | pa.Scalar):
        fill_value = scalar_of(fill_value, values.type)
    elif fill_value.type != values.type:
        fill_value = scalar_of(fill_value.as_py(), values.type)
    return _compute().call_function("coalesce", [values, fill_value])


def _compute() -> Any:
    from pyarrow import _compute as compute

    return compute


def _wrapped(name: str) -> Callable[..., Any]:
    compute = _compute()
    function = compute.function_registry().get_function(name.removesuffix("_"))
    # Arrow says which class holds the options of a function nowhere else.
    options_name = function._doc.options_class  # noqa: SLF001
    options_class: Any = getattr(compute, options_name) if options_name else None
    arity = None if function.arity is Ellipsis else function.arity

    def call(*args: Any, options: Any = None, **named: Any) -> Any:
        operands = args[:arity]
        if len(args) > len(operands) or named:
            options = options_class(*args[len(operands) :], **named)
        return function.call([_operand(value) for value in operands], options)

    call.__name__ = call.__qualname__ = name
    return call


def _operand(value: Any) -> Any:
    return scalar_of(value) if type(value) in _TYPES_OF_VALUES else value


def scalar_of(value: Any, type_: pa.DataType | None = None) -> pa.Scalar:
    """Return ``pa.scalar(value, type_)``, simple values without a conversion.

    A scalar that is an item of an array needs none.
    """
    if value is None:
        return pa.nulls(1, pa.null() if type_ is None else type_)[0]
    if type_ is None:
        type_ = _TYPES_OF_VALUES.get(type(value))
    match type_:
        case _ if type_ == pa.bool_() and isinstance(value, bool):
            data = bytes([value])
        case _ if type_ == pa.int64() and type(value) is int and -(1 << 63) <= value < 1 << 63:
            data = value.to_bytes(8, "little", signed=True)
        case _ if type_ == pa.uint64() and type(value) is int and 0 <= value < 1 << 64:
            data = value.to_bytes(8, "little")
        case _ if type_ == pa.float64() and type(value) is float:
            data = struct.pack("<d", value)
        case _ if type_ == pa.string() and type(value) is str and _is_encodable(value):
            return _byte_string(type_, value.encode())
        case _ if type_ == pa.binary() and type(value) is bytes:
            return _byte_string(type_, value)
        case _:
            return pa.scalar(value, type_)
    return pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(data)])[0]


_TYPES_OF_VALUES = {
    bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary(),
}  # fmt: skip


def _is_encodable(value: str) -> bool:
    return value.isascii() or value.isprintable()  # a lone surrogate is not printable


def _byte_string(type_: pa.DataType, value: bytes) -> pa.Scalar:
    offsets = struct.pack("<ii", 0, len(value))
    return pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(offsets), pa.py_buffer(value)])[0]
