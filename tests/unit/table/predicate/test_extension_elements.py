"""Elements of lists whose values are of extension types, or hold them (pylance: test_functions)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.format.bfloat16 import BFloat16Type
from lance_nb.table.predicate import compile_column
from tests.support.expressions import values_of

DOCUMENTS = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[1]", '"x"']))
STRUCTS = pa.StructArray.from_arrays([DOCUMENTS, pa.array([1, 2, 3, 4])], ["j", "n"])
UUIDS = pa.ExtensionArray.from_storage(
    pa.uuid(), pa.array([bytes([k]) * 16 for k in range(4)], pa.binary(16))
)
OFFSETS = pa.array([0, 2, 2, 4], pa.int32())
TABLE = pa.table({
    "lj": pa.ListArray.from_arrays(OFFSETS, DOCUMENTS),
    "ls": pa.ListArray.from_arrays(OFFSETS, STRUCTS),
    "lu": pa.ListArray.from_arrays(OFFSETS, UUIDS),
})  # fmt: skip
FIRST, LAST = {"j": '{"a":1}', "n": 1}, {"j": '"x"', "n": 4}


@pytest.mark.parametrize(("text", "values"), [
    ("ls[1]", [FIRST, None, {"j": "[1]", "n": 3}]), ("ls[1].n", [1, None, 3]),
    ("ls[-1]", [{"j": None, "n": 2}, None, LAST]), ("ls[1].j", ['{"a":1}', None, "[1]"]),
    ("lj[1]", ['{"a":1}', None, "[1]"]), ("json_get_int(lj[1], 'a')", [1, None, None]),
    ("array_reverse(ls)", [[{"j": None, "n": 2}, FIRST], [], [LAST, {"j": "[1]", "n": 3}]]),
    ("array_slice(ls, 1, 1)", [[FIRST], [], [{"j": "[1]", "n": 3}]]),
    ("lu[1]", [bytes(16), None, bytes([2]) * 16]),
])  # fmt: skip
def test_elements_are_taken(text: str, values: list[object]) -> None:
    assert values_of(text, TABLE) == values


def test_only_json_stays_an_extension_type() -> None:
    types = [compile_column("x", text, TABLE.schema).field.type for text in ("lj[1]", "lu[1]")]
    assert types == [pa.json_(), pa.binary(16)]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(
    "text", ["l[1]", "l[-1]", "array_slice(l, 1, 1)[1]", "array_reverse(l)[1]"]
)
def test_elements_are_null_where_there_are_none(text: str, nullable: bool) -> None:
    for kind in (pa.json_(), pa.uuid(), BFloat16Type()):
        item = pa.struct([pa.field("v", pa.list_(kind)), pa.field("w", kind, nullable)])
        assert values_of(text, pa.table({"l": pa.nulls(2, pa.list_(item))})) == [None, None]
