"""Functions of structs and types (values beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from tests.support.expressions import values_of

TABLE = pa.table({"i": pa.array([1, None], pa.int8()), "s": ["1", "x"]})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("get_field(named_struct('a', i, 'b', s), 'b')", ["1", "x"]),
        ("struct(i, s)", [{"c0": 1, "c1": "1"}, {"c0": None, "c1": "x"}]),
        ("arrow_cast(i, 'Float64')", [1.0, None]),
        ("arrow_try_cast(s, 'Int8')", [1, None]),
        ("arrow_typeof(arrow_cast(i, 'Decimal128(5, 1)'))", ["Decimal128(5, 1)"] * 2),
    ],
)
def test_structs_and_types(text: str, values: list[object]) -> None:
    assert values_of(text, TABLE) == values


@pytest.mark.parametrize(
    "text", ["arrow_cast(i, 'int')", "arrow_cast(i, 'Decimal128(99, 1)')", "named_struct('a')"]
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(PredicateError):
        values_of(text, TABLE)
