"""The type in which two operands are compared."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.table.predicate.coercion import common_type

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
