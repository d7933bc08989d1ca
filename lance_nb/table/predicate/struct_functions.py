"""Functions of structs and types: get_field, named_struct, struct, arrow_cast, arrow_typeof.

Type names are those of type_names.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.casts import null_of, try_cast_kernel
from lance_nb.table.predicate.coercion import cast, plain
from lance_nb.table.predicate.expression import Expression, Literal, call, child
from lance_nb.table.predicate.lists import arrays_kernel
from lance_nb.table.predicate.string_functions import Binder, literal_of
from lance_nb.table.predicate.type_names import shown_type, type_named


def _get_field(name: str, operands: Sequence[Expression]) -> Expression:
    result = operands[0]
    for key in operands[1:]:
        result = child(result, str(literal_of(key, name=name)))
    return result


def _struct(name: str, operands: Sequence[Expression]) -> Expression:
    names = [f"c{number}" for number in range(len(operands))]
    return _made(name, names, operands)


def _named_struct(name: str, operands: Sequence[Expression]) -> Expression:
    if len(operands) % 2:
        raise PredicateError(f"{name} takes pairs of a name and a value")
    return _made(
        name, [str(literal_of(operand, name=name)) for operand in operands[::2]], operands[1::2]
    )


def _made(name: str, names: Sequence[str], operands: Sequence[Expression]) -> Expression:
    def kernel(*fields: pa.Array) -> pa.Array:
        return pa.StructArray.from_arrays(fields, list(names))

    return call(name, arrays_kernel(kernel), *operands)


def _arrow_cast(name: str, operands: Sequence[Expression]) -> Expression:
    type_ = type_named(str(literal_of(operands[1], name=name)))
    value = plain(operands[0])
    if name == "arrow_try_cast":
        return call(name, try_cast_kernel(type_), value)
    if isinstance(value, Literal) and not value.scalar.is_valid:
        return Literal(null_of(type_))
    return cast(value, type_)


def _typeof(name: str, operands: Sequence[Expression]) -> Expression:
    shown = pa.scalar(shown_type(operands[0].type))
    return call(name, arrays_kernel(lambda rows: pa.repeat(shown, len(rows))), operands[0])


# name -> (binder, fewest operands, most operands)
FUNCTIONS: dict[str, tuple[Binder, int, int]] = {
    "get_field": (_get_field, 2, 16),
    "named_struct": (_named_struct, 2, 128),
    **dict.fromkeys(("struct", "row"), (_struct, 1, 64)),
    **dict.fromkeys(("arrow_cast", "arrow_try_cast"), (_arrow_cast, 2, 2)),
    "arrow_typeof": (_typeof, 1, 1),
}
