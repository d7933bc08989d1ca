"""Writing packed structs with strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tests.support.compressing import (
    COMPRESSORS,
    V2_1,
    V2_2,
    by_value,
    compressors,
    measured,
)

TYPE = pa.struct([("a", pa.int32()), ("s", pa.string()), ("b", pa.large_binary())])
ROWS = [{"a": i, "s": "x" * (i % 9), "b": b"y" * (i % 4)} for i in range(1000)]


def test_rows_come_back() -> None:
    encoding = by_value("variable_packed_struct", measured(ROWS, TYPE))
    first, second, third = encoding.variable_packed_struct.fields
    assert first.bits_per_value == 32
    assert second.bits_per_length == 32
    assert third.bits_per_length == 64


def test_the_rows_of_a_small_page_have_offsets_of_32_bits() -> None:
    compressed = COMPRESSORS["variable_packed_struct"].compress_values(
        measured(ROWS, TYPE), V2_2, compressors
    )
    assert compressed.values.offsets.dtype == np.int32


def test_rows_with_vectors_come_back() -> None:
    type_ = pa.struct([("s", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    by_value("variable_packed_struct", measured([{"s": "a", "v": [1, 2]}] * 3, type_))


def test_it_is_for_2_2_and_whole_bytes() -> None:
    codec = COMPRESSORS["variable_packed_struct"]
    assert codec.nominate_values(measured(ROWS, TYPE), V2_2)
    assert not codec.nominate_values(measured(ROWS, TYPE), V2_1)
    flags = pa.struct([("s", pa.string()), ("f", pa.bool_())])
    assert not codec.nominate_values(measured([{"s": "a", "f": True}], flags), V2_2)
