"""All functions that an expression may call, by name.

name -> (binder, fewest operands, most operands). A binder takes the name and the bound operands.
"""

from __future__ import annotations

from lance_nb.table.predicate import (
    calendar_functions,
    digest_functions,
    json_functions,
    list_elements,
    list_functions,
    list_results,
    list_sizes,
    number_functions,
    pattern_functions,
    string_functions,
    struct_functions,
    time_functions,
    token_functions,
)

FUNCTIONS = {
    **string_functions.FUNCTIONS,
    **pattern_functions.FUNCTIONS,
    **number_functions.FUNCTIONS,
    **time_functions.FUNCTIONS,
    **list_functions.FUNCTIONS,
    **list_results.FUNCTIONS,
    **list_sizes.FUNCTIONS,
    **list_elements.FUNCTIONS,
    **json_functions.FUNCTIONS,
    **struct_functions.FUNCTIONS,
    **digest_functions.FUNCTIONS,
    **token_functions.FUNCTIONS,
    **calendar_functions.FUNCTIONS,
}
