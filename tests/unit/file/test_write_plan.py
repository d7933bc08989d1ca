"""Which fields own columns, and the options they get."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.encodings.repdef import Shape
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.file.write_plan import plan_column
from lance_nb.format.schema import Schema

LEAF = Shape()


def plan_of(field: pa.Field, version: tuple[int, int] = (2, 2)):
    return plan_column(Schema.from_arrow(pa.schema([field])).fields[0], version)


def test_only_leaves_own_columns():
    inner = pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))])
    plan = plan_of(pa.field("s", pa.list_(inner)))
    assert plan.shape == Shape((Shape((LEAF, Shape((LEAF,)))),))
    assert [leaf.field.id for leaf in plan.leaves] == [2, 4]


def test_a_packed_struct_owns_one_column():
    field = pa.field("s", pa.struct([("a", pa.int8())]), metadata={"lance-encoding:packed": "true"})
    plan = plan_of(field)
    assert plan.shape == LEAF
    assert plan.leaves[0].field.id == 0
    assert plan.leaves[0].options.is_packed


def test_an_empty_struct_owns_a_column():
    assert plan_of(pa.field("s", pa.struct([]))).shape == LEAF


def test_leaves_inherit_encoding_keys():
    inner = pa.struct(
        [
            pa.field("a", pa.int64()),
            pa.field("b", pa.int64(), metadata={"lance-encoding:compression": "lz4"}),
        ]
    )
    plan = plan_of(pa.field("s", inner, metadata={"lance-encoding:compression": "zstd"}))
    assert [leaf.options.compression for leaf in plan.leaves] == ["zstd", "lz4"]


def test_bad_keys_are_refused():
    with pytest.raises(InvalidInputError, match="compression"):
        plan_of(pa.field("a", pa.int8(), metadata={"lance-encoding:compression": "snappy"}))


def test_maps_need_2_2():
    field = pa.field("m", pa.map_(pa.string(), pa.int8()))
    assert len(plan_of(field).leaves) == 2
    with pytest.raises(NotSupportedError, match=r"'m'.*2\.2.*not 2\.1"):
        plan_of(field, (2, 1))


FIXED = pa.list_(pa.struct([("x", pa.int8())]), 2)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.struct([("a", FIXED)]), "inside other fields"),
        (pa.list_(FIXED), "inside other fields"),
        (pa.list_(pa.struct([("x", pa.list_(pa.int8()))]), 2), "lists inside fixed-size"),
        (pa.struct([("a", pa.struct([])), ("b", pa.int8())]), "without fields"),
        (pa.list_(pa.struct([])), "without fields"),
        (pa.binary(0), "no bytes"),
    ],
)
def test_what_no_reader_takes_is_refused(kind: pa.DataType, message: str):
    with pytest.raises(NotSupportedError, match=message):
        plan_of(pa.field("c", kind))


def test_fixed_size_lists_of_structs_need_2_2():
    assert len(plan_of(pa.field("c", FIXED)).leaves) == 1
    with pytest.raises(NotSupportedError, match=r"2\.2, not 2\.1"):
        plan_of(pa.field("c", FIXED), (2, 1))
