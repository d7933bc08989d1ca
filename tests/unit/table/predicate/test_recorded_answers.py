"""Expressions of every function, operator, cast and pair of types give what pylance gave.

The answers were recorded: ``tests/interop/recording.py`` asks pylance, and
``tests/interop/test_recorded_answers.py`` asks it again.
"""

from __future__ import annotations

import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate import compile_filter
from lance_nb.table.predicate.functions import FUNCTIONS
from tests.support.recorded_answers import (
    REFUSED,
    answer_here,
    groups,
    questions_of,
    table_of,
)

SHARES = 4  # of a group, so that a wrong answer is found early
# No row takes the text that cannot be cast. pylance computes it for some batches all the same.
NOT_TAKEN_HERE = frozenset(f"coalesce({name}, k)" for name in ("i32", "f64", "d", "t_s"))


@pytest.mark.slow
@pytest.mark.mutants
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("group", ["documents", "kinds", "lists", "numbers", "values"])
def test_an_expression_gives_what_pylance_gave(group: str, share: int) -> None:
    table = table_of(group)
    for number, question in enumerate(questions_of(group)):
        if number % SHARES != share:
            continue
        answer = answer_here(table, question)
        if question.text in NOT_TAKEN_HERE:
            assert question.answer == REFUSED != answer, question.text
        else:
            assert answer == question.answer, question.text


def test_every_group_is_asked_and_most_questions_have_values() -> None:
    assert groups() == ["documents", "kinds", "lists", "numbers", "values"]
    for group in groups():
        answers = [one.answer for one in questions_of(group)]
        assert len(answers) > 200
        assert answers.count(REFUSED) < len(answers) / 2


# Functions by the numbers of operands that they take; "many" are as many as one can write.
OPERANDS = {
    (0, 0): "pi now current_timestamp current_date today",
    (0, 64): "make_array make_list",
    (1, 1): "length char_length character_length octet_length bit_length lower upper reverse "
    "initcap ascii chr to_hex md5 ceil floor sqrt cbrt exp ln log10 log2 signum sin cos tan asin "
    "acos atan sinh cosh tanh asinh acosh atanh cot degrees radians isnan iszero abs factorial "
    "cardinality array_empty list_empty empty array_max array_min list_max list_min array_reverse "
    "list_reverse array_pop_front list_pop_front array_pop_back list_pop_back array_any_value "
    "list_any_value flatten array_ndims list_ndims array_dims list_dims array_distinct "
    "list_distinct arrow_typeof sha224 sha256 sha384 sha512 to_unixtime from_unixtime "
    "to_local_time",
    (1, 2): "btrim trim ltrim rtrim log round trunc to_timestamp to_timestamp_seconds "
    "to_timestamp_millis to_timestamp_micros to_timestamp_nanos to_date array_length list_length",
    (1, 3): "array_sort list_sort range generate_series",
    (1, 64): "concat greatest least coalesce array_concat array_cat list_concat list_cat struct "
    "row",
    (2, 2): "starts_with ends_with contains strpos instr position left right repeat atan2 power "
    "pow nanvl gcd lcm mod nvl ifnull nullif date_part datepart date_trunc datetrunc array_has "
    "array_contains array_element_of list_has list_contains list_element_of array_has_any "
    "array_has_all list_has_any list_has_all arrays_overlap array_element array_extract "
    "list_element list_extract array_append array_push_back list_append list_push_back "
    "array_prepend array_push_front list_prepend list_push_front array_repeat list_repeat "
    "array_remove list_remove array_remove_all list_remove_all array_position array_indexof "
    "list_position list_indexof array_positions list_positions array_except list_except "
    "array_intersect list_intersect array_union list_union array_distance list_distance "
    "json_extract json_exists json_array_length json_get json_get_string json_get_int "
    "json_get_float json_get_bool arrow_cast arrow_try_cast encode decode digest contains_tokens "
    "levenshtein find_in_set to_char date_format",
    (2, 3): "substr substring lpad rpad regexp_like regexp_match array_to_string array_join "
    "list_to_string list_join string_to_array string_to_list array_resize list_resize "
    "regexp_instr date_bin",
    (2, 4): "regexp_count",
    (2, 16): "get_field",
    (2, 64): "concat_ws",
    (2, 128): "named_struct",
    (3, 3): "replace split_part translate nvl2 array_remove_n list_remove_n array_replace "
    "list_replace array_replace_all list_replace_all json_array_contains substr_index "
    "substring_index make_date",
    (3, 4): "regexp_replace array_slice list_slice",
    (4, 4): "array_replace_n list_replace_n",
}  # fmt: skip
_COUNTS = {name: count for count, names in OPERANDS.items() for name in names.split()}
# These have a grammar of their own, in which the number of operands is another matter.
_GRAMMAR = {"trim", "substring", "position", "struct"}


def _refuses_the_number(name: str, count: int) -> bool:
    text = f"{name}({', '.join(['NULL'] * count)}) IS NULL"
    try:
        compile_filter(text, table_of("lists").schema)
    except PredicateError as exc:
        return f"{name} takes " in str(exc) and f"not {count}" in str(exc)
    return False


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_takes_its_number_of_operands_and_no_other(name: str) -> None:
    fewest, most = _COUNTS[name]
    if name in _GRAMMAR:
        assert FUNCTIONS[name][1:] == (fewest, most)
        return
    for count in {fewest, min(fewest + 1, most), most}:
        assert not _refuses_the_number(name, count)
    for count in {fewest - 1, most + 1} - {-1}:
        assert _refuses_the_number(name, count)
