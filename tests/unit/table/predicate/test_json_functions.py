"""Functions of JSON columns (values beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.filter import compile_filter
from tests.support.expressions import values_of

DOCUMENTS = ['{"a":{"b c":[1,{"k":"v"}]},"n":null,"t":"12"}', None, "[3,4]"]
TABLE = pa.table({
    "j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(DOCUMENTS, pa.string())),
    "s": DOCUMENTS,
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("""json_extract(j, '$.a["b c"][1].k')""", ['"v"', None, None]),
        ("json_extract(j, '$[*]')", [DOCUMENTS[0], None, "[3,4]"]),
        ("json_exists(j, 'n')", [True, None, False]),
        ("json_get_string(j, 'n')", [None, None, None]),
        ("json_get_int(j, 't')", [12, None, None]),
        ("json_get_int(j, 1)", [None, None, 4]),
        ("json_get_float(j, 't')", [12.0, None, None]),
        ("json_array_length(j, '$')", [0, None, 2]),
        ("json_array_contains(j, '$', 4)", [False, None, True]),
    ],
)
def test_documents_are_looked_into(text: str, values: list[object]) -> None:
    assert values_of(text, TABLE) == values


@pytest.mark.parametrize(
    ("number", "whole"),
    [("1.4", 1), ("1.5", 2), ("-0.4", 0), ("-2.5", -3), ("2.5", 3), ("1e3", 1000), ('" 7 "', 7)],
)
def test_halves_are_rounded_away_from_zero(number: str, whole: int) -> None:
    documents = pa.array([f'{{"n":{number}}}'], pa.string())
    table = pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(), documents)})
    assert values_of("json_get_int(j, 'n')", table) == [whole]


@pytest.mark.parametrize(
    "text", ["json_extract(j, '$.a[?(@ > 1)]')", "json_extract(j, s)", "json_get_int(s, 'a')"]
)
def test_other_paths_and_columns_are_refused(text: str) -> None:
    with pytest.raises(PredicateError):
        values_of(text, TABLE)


@pytest.mark.parametrize("text", ["json_get_int(j, 'a')", "json_get_bool(j, 't')"])
def test_values_of_another_kind_are_refused(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="JSON value"):
        values_of(text, TABLE)


@pytest.mark.parametrize("text", [
    "json_extract(j, '$.a')", "json_exists(j, '$.a')", "json_get(j, 'a')", "json_get_int(j, 'a')",
    "json_get_string(j, 'a')", "json_array_length(j, '$')", "json_array_contains(j, '$', 1)",
])  # fmt: skip
@pytest.mark.parametrize("document", ["", "not json", '{"a":', "[" * 100_000])
def test_text_that_is_not_json_is_an_error_of_ours(text: str, document: str) -> None:
    documents = pa.array(["{}", None, document], pa.string())
    table = pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(), documents)})
    wanted = compile_filter(f"{text} IS NULL", table.schema)
    with pytest.raises(PredicateError, match=r"filter .* is not JSON"):
        wanted.mask({("j",): table["j"]}, 3)


DECIDED = pa.table({
    "n": [0, 1, None, 3],
    "j": pa.ExtensionArray.from_storage(
        pa.json_(), pa.array(['{"b":"a"}', '{"b":[1]}', '{"b":"a"}', '{"b":{}}'])
    ),
})  # fmt: skip
TEXT = "json_get_string(j, 'b') = 'a'"


@pytest.mark.parametrize(("text", "values"), [
    (f"n IN (0, 9) AND {TEXT}", None), (f"n = 0 AND n < 2 AND {TEXT}", None),
    (f"(n < 1 OR n IS NULL) AND {TEXT}", [True, False, True, False]),
    (f"n > 0 OR {TEXT}", [True, True, True, True]),
    (f"n < 9 AND (n <> 0 OR {TEXT})", [True, True, None, True]),
    (f"NOT (n = 0 AND {TEXT})", [False, True, None, True]),
    (f"coalesce(n > 0 OR {TEXT}, false)", [True, True, True, True]),
])  # fmt: skip
def test_a_value_is_not_looked_at_where_the_operand_before_decides(
    text: str, values: list[bool | None] | None
) -> None:
    expected = [True, False, None, False] if values is None else values
    table = DECIDED if values is not None else DECIDED.filter(pa.array([True] * 2 + [False, True]))
    assert values_of(text, table) == [one for one in expected if values or one is not None]


@pytest.mark.parametrize(
    "text", [f"n >= 0 AND {TEXT}", f"{TEXT} AND n = 0", f"n IS NULL OR {TEXT}"]
)
def test_a_value_that_a_row_needs_must_be_one(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="a JSON array or object is no text"):
        values_of(text, DECIDED)


def test_conditions_that_are_nested_deeply_are_computed_as_well() -> None:
    depth = 150
    text = "n = 0 AND NOT (" * depth + TEXT + ")" * depth
    assert values_of(text, DECIDED.slice(0, 2)) == [True, False]


@pytest.mark.parametrize("text", ["j > 5", "5 < j", "j IN (5, 6)", "j BETWEEN 5 AND 6"])
def test_a_comparison_of_json_with_a_number_names_the_column_and_the_function(text: str) -> None:
    with pytest.raises(
        PredicateError, match=r"column 'j' is JSON, 5 is int64.*json_get_int\(j, 'key'\)"
    ):
        compile_filter(text, TABLE.schema)
    with pytest.raises(PredicateError, match=r"json_get_float\(j, 'key'\)"):
        compile_filter("j > 0.5", TABLE.schema)
    with pytest.raises(PredicateError, match=r"json_get_bool\(j, 'key'\)"):
        compile_filter("j = true", TABLE.schema)
