"""The type in which two operands are compared."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.coercion import common_type
from lance_nb.table.predicate.filter import compile_filter

_TEXT, _LARGE_TEXT = pa.string(), pa.large_string()
_STRUCT, _LIST = pa.struct([("x", pa.int8())]), pa.list_(pa.int8())


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        (pa.int8(), pa.int8(), pa.int8()), (pa.int8(), pa.null(), pa.int8()),
        (_STRUCT, pa.null(), _STRUCT), (pa.int8(), pa.int64(), pa.int64()),
        (pa.int32(), pa.float64(), pa.float64()), (pa.date32(), pa.int32(), pa.int64()),
        (pa.date32(), pa.int64(), pa.int64()), (_TEXT, _LARGE_TEXT, _LARGE_TEXT),
        (_TEXT, pa.binary(), pa.large_binary()),
        (pa.binary(), pa.large_binary(), pa.large_binary()),
        (_TEXT, pa.int64(), pa.int64()), (_LARGE_TEXT, pa.bool_(), pa.bool_()),
        (_TEXT, pa.date32(), pa.date32()), (_TEXT, pa.timestamp("us"), pa.timestamp("us")),
        (_TEXT, _STRUCT, None), (_TEXT, _LIST, None), (pa.int8(), pa.bool_(), None),
        (pa.binary(), pa.int64(), None), (_LIST, _STRUCT, None), (pa.date32(), pa.int8(), None),
    ],
    ids=str,
)  # fmt: skip
def test_operands_meet_in_one_type_whatever_their_order(left, right, common) -> None:
    assert common_type(left, right) == common
    assert common_type(right, left) == common


def _rows(condition: str, table: pa.Table) -> list[int]:
    columns = {(name,): table[name] for name in table.column_names}
    mask = compile_filter(condition, table.schema).mask(columns, table.num_rows)
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("x IN (0.1)", [0]), ("x NOT IN (0.1)", [1]), ("x IN (0.1, 2.5)", [0, 1]),
        ("abs(x) IN (0.1)", []), ("x = 0.1", [0]), ("x IN (0.1, NULL)", [0]),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "kind", [pa.float16(), pa.float32(), pa.dictionary(pa.int8(), pa.float32())]
)
def test_in_rounds_fractions_to_the_type_of_a_column(
    kind: pa.DataType, condition: str, rows: list[int]
) -> None:
    values = pa.array([0.1, 2.5, None], getattr(kind, "value_type", kind))
    table = pa.table({"x": values.dictionary_encode() if pa.types.is_dictionary(kind) else values})
    assert _rows(condition, table) == rows


_FLOATS = pa.table({"x": pa.array([0.1, 2.5, float("inf"), None], pa.float32())})


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("x = 0.1", [0]), ("abs(x) = 0.1", []), ("0.1 = abs(x)", []), ("abs(x) = 2.5", [1]),
        ("x >= 1e300", [2]), ("abs(x) > 1e300", [2]), ("abs(x) <= 1e300", [0, 1]),
        ("x <= 1e300", [0, 1, 2]), ("x IN (0.1, 7)", [0]), ("abs(x) IN (0.1, 2.5)", [1]),
        ("abs(x) BETWEEN 0.1 AND 3", [0, 1]),
    ],
)  # fmt: skip
def test_a_fraction_is_rounded_beside_a_column_and_not_beside_a_function(
    condition: str, rows: list[int]
) -> None:
    assert _rows(condition, _FLOATS) == rows


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("abs(x) = NULL", 0), ("(abs(x) = NULL) IS NULL", 1), ("(abs(x) + NULL) IS NULL", 1),
        ("abs(x) IN (NULL)", 0), ("(x IN (NULL, -128)) IS TRUE", 1), ("x IS DISTINCT FROM NULL", 1),
        ("(NULL % abs(x)) IS NULL", 1),
    ],
)  # fmt: skip
def test_what_stands_beside_null_is_not_computed(condition: str, rows: int) -> None:
    table = pa.table({"x": pa.array([-128], pa.int8())})  # abs(x) is out of range
    assert len(_rows(condition, table)) == rows


SCHEMA = pa.schema(
    [
        ("t", pa.string()), ("i", pa.int64()), ("b", pa.bool_()), ("d", pa.date32()),
        ("m", pa.timestamp("us")), ("y", pa.binary()), ("l", _LIST), ("p", _STRUCT),
        ("e", pa.struct([])), ("j", pa.json_()), ("f", pa.float32()),
    ]
)  # fmt: skip
NEVER = "they cannot be compared"
NUMBER = "write a number, or CAST({} AS string) to compare text"
TRUTH = "write true or false, or CAST(b AS INT)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t > 5", (
             f"column 't' is string, 5 is int64: {NEVER}; "
             "write '5' in quotes to compare text, or CAST(t AS DOUBLE) for numbers"
         )),
        ("true = t", (
             f"column 't' is string, true is bool: {NEVER}; "
             "write 'true' in quotes to compare text, or CAST(t AS DOUBLE) for numbers"
         )),
        ("b = 3", f"column 'b' is bool, 3 is int64: {NEVER}; {TRUTH}"),
        ("b = 'x'", f"column 'b' is bool, and 'x' is not a value of type bool; {TRUTH}"),
        ("b = d", f"column 'b' is bool, column 'd' is date32[day]: {NEVER}; {TRUTH}"),
        ("p = 3", f"{NEVER}; name one of its fields, as in p.x"),
        ("e = 3", f"{NEVER}; it has no fields"),
        ("l = 3", f"{NEVER}; write array_has(l, ...) or array_length(l)"),
        ("d = 5", f"{NEVER}; write date '2021-01-31'"),
        ("m = true", f"{NEVER}; write timestamp '2021-01-31 12:00:00'"),
        ("m = 'soon'", (
             "column 'm' is timestamp[us], and 'soon' is not a value of type "
             "timestamp[us]; write timestamp '2021-01-31 12:00:00'"
         )),
        ("y = 5", f"{NEVER}; write bytes as x'00ff'"),
        ("i = 'q'", f"'q' is not a value of type int64; {NUMBER.format('i')}"),
        ("p.x = 'q'", (
             f"column 'p.x' is int8, and 'q' is not a value of type int8; "
             f"{NUMBER.format('p.x')}"
         )),
        ("i + 1 = 'q'", (
             f"the expression is int64, and 'q' is not a value of type int64; "
             f"{NUMBER.format('the expression')}"
         )),
        ("i = x'00'", f"{NEVER}; {NUMBER.format('i')}"),
        ("i = b", f"{NEVER}; write a cast"), ("i = l", f"{NEVER}; write a cast"),
        ("j = 5", (
             f"column 'j' is JSON, 5 is int64: {NEVER}; "
             "write json_get_int(j, 'key') for a value inside of it"
         )),
        ("j = 1.5", "write json_get_float(j, 'key') for a value inside of it"),
        ("j = true", "write json_get_bool(j, 'key') for a value inside of it"),
        ("j = l", "write json_get_string(j, 'key') for a value inside of it"),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit_are_named_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(PredicateError) as caught:
        compile_filter(text, SCHEMA)
    assert str(caught.value).endswith(message)
