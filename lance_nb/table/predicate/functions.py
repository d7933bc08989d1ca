"""All functions that an expression may call, by name.

name -> (binder, fewest operands, most operands). A binder takes the name and the bound operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import pyarrow as pa
import pyarrow.types as pt

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import (
    json_functions,
    list_functions,
    list_results,
    number_functions,
    pattern_functions,
    string_functions,
    struct_functions,
    time_functions,
)
from lance_nb.table.predicate.coercion import cast
from lance_nb.table.predicate.expression import Expression

FUNCTIONS = {
    **string_functions.FUNCTIONS,
    **pattern_functions.FUNCTIONS,
    **number_functions.FUNCTIONS,
    **time_functions.FUNCTIONS,
    **list_functions.FUNCTIONS,
    **list_results.FUNCTIONS,
    **json_functions.FUNCTIONS,
    **struct_functions.FUNCTIONS,
}

# Functions of texts whose results are as wide as their first operand: large texts, and counts of
# 64 bits for large_string.
_AS_WIDE = frozenset({
    "replace", "lpad", "rpad", "split_part", "repeat", "initcap", "translate", "length",
    "char_length", "character_length", "octet_length", "bit_length", "strpos", "position", "instr",
    "levenshtein", "encode", "string_to_array", "string_to_list",
})  # fmt: skip
_WIDE = {
    pa.string(): pa.large_string(),
    pa.int32(): pa.int64(),
    pa.list_(pa.string()): pa.list_(pa.large_string()),
}

# What to write instead of operators that read like calls of functions.
_OPERATORS = dict.fromkeys(("any", "some", "all"), "use IN (...), or array_has(list, value)")


def call_of(name: str, operands: Sequence[Expression]) -> Expression:
    """Bind a call. Raises PredicateError for an unknown name or a wrong number of operands."""
    if name not in FUNCTIONS:
        if name in _OPERATORS:
            raise PredicateError(f"operator {name.upper()} is not supported; {_OPERATORS[name]}")
        close = get_close_matches(name, FUNCTIONS, 1, 0.6)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise PredicateError(f"no function named {name!r}{hint}")
    binder, fewest, most = FUNCTIONS[name]
    if not fewest <= len(operands) <= most:
        count = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise PredicateError(f"{name} takes {count} arguments, not {len(operands)}")
    result = binder(name, operands)
    is_wide = name in _AS_WIDE and pt.is_large_string(operands[0].type)
    return cast(result, _WIDE.get(result.type, result.type)) if is_wide else result
