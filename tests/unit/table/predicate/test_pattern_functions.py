"""Functions that look into text (values beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from tests.support.expressions import values_of

TABLE = pa.table({"s": ["the quick fox", "b,c", None], "long": ["x" * 2000, "", None]})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("contains_tokens(s, 'fox, the')", [True, False, None]),
        ("contains_tokens(s, 'fo')", [False, False, None]),
        ("find_in_set('c', s)", [0, 2, None]),
        ("levenshtein(s, 'the quack ox')", [2, 11, None]),
        ("substr_index(s, ' ', 2)", ["the quick", "b,c", None]),
        ("regexp_instr(s, 'q.')", [5, 0, None]),
    ],
)
def test_text_is_looked_into(text: str, values: list[object]) -> None:
    assert values_of(text, TABLE) == values


def test_a_pattern_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(PredicateError, match="regular expression"):
        values_of("regexp_instr(s, '(')", TABLE)


def test_distances_of_long_texts_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="levenshtein"):
        values_of(f"levenshtein(long, '{'y' * 2000}')", TABLE)
