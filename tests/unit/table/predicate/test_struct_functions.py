"""Functions of structs and types (values beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.filter import compile_filter
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
    "name",
    ["Decimal32(9, 9)", "Decimal64(18, 0)", "Decimal128(5, 5)", "Decimal128(1, -1)",
     "Decimal128(38, 38)", "Decimal256(39, 3)", "Decimal256(76, 76)"],
)  # fmt: skip
def test_decimals_of_every_width(name: str) -> None:
    assert values_of(f"arrow_typeof(arrow_cast(NULL, '{name}'))", TABLE) == [name] * 2


@pytest.mark.parametrize("digits", ["32(10, 1)", "64(19, 1)", "128(39, 1)", "256(77, 1)",
                                    "128(0, 0)", "128(5, 39)", "128(5, -129)"])  # fmt: skip
def test_decimals_of_impossible_widths_are_refused(digits: str) -> None:
    with pytest.raises(PredicateError, match="digits"):
        values_of(f"arrow_cast(NULL, 'Decimal{digits}')", TABLE)


@pytest.mark.parametrize(
    "text", ["arrow_cast(i, 'int')", "arrow_cast(i, 'Decimal128(99, 1)')", "named_struct('a')"]
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(PredicateError):
        values_of(text, TABLE)


def test_the_first_part_of_a_dotted_name_matches_in_any_case_unless_it_is_quoted() -> None:
    schema = pa.schema([("Point", pa.struct([("x", pa.int64())]))])
    for text in ("point.`x` = 1", "`Point`.x = 1"):
        assert list(compile_filter(text, schema).paths) == [("Point", "x")]
    for text in ("`point`.x = 1", "`point`.`x` = 1"):
        with pytest.raises(PredicateError, match=r"no column named 'point'.*did you mean 'Point'"):
            compile_filter(text, schema)
