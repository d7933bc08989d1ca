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
