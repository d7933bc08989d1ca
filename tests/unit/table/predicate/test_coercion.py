"""The type in which two operands are compared."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

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
