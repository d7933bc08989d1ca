"""Writing packed structs of fixed width."""

from __future__ import annotations

import pyarrow as pa

from tests.support.compressing import COMPRESSORS, V2_2, in_chunks, measured

ROWS = [{"a": i, "b": i / 2, "c": i % 100} for i in range(3000)]
TYPE = pa.struct([("a", pa.int32()), ("b", pa.float64()), ("c", pa.int8())])


def test_rows_come_back() -> None:
    encoding, _ = in_chunks("packed_struct", measured(ROWS, TYPE))
    assert list(encoding.packed_struct.bits_per_value) == [32, 64, 8]
    assert encoding.packed_struct.values.flat.bits_per_value == 104


def test_rows_of_64_bits_stay_plain() -> None:
    type_ = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    encoding, _ = in_chunks("packed_struct", measured([{"a": 1, "b": 2}] * 3000, type_))
    assert encoding.packed_struct.values.flat.bits_per_value == 64


def test_strings_and_booleans_are_for_others() -> None:
    packed = COMPRESSORS["packed_struct"]
    for type_, value in ((pa.string(), "x"), (pa.bool_(), True)):
        structs = measured([{"a": value}], pa.struct([("a", type_)]))
        assert not packed.nominate_chunks(structs, V2_2)
