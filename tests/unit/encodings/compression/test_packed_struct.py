"""Packed struct: fixed-width children row by row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import FixedWidth, PackedStruct
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError
from tests.property.encodings.reference_encoders import (
    chunks_of,
    flat,
    integers,
    packed_struct,
    to_words,
)
from tests.support.compressing import V2_2, in_chunks, measured


def rows(count: int) -> bytes:
    return b"".join(to_words([i], 64) + to_words([i * 2], 16) + bytes([i]) for i in range(count))


def test_rows_are_cut_into_columns() -> None:
    raw = rows(5)
    chunks = chunks_of([[raw[:44]], [raw[44:]]], [4, 1])
    block = codecs.decode_chunks(packed_struct([64, 16, 8]), chunks)
    assert isinstance(block, PackedStruct)
    assert block.num_values == 5
    assert [integers(child) for child in block.children] == [
        [0, 1, 2, 3, 4],
        [0, 2, 4, 6, 8],
        [0, 1, 2, 3, 4],
    ]
    assert all(child.data.flags.c_contiguous for child in block.children)


def test_rows_stored_one_by_one_are_cut_too() -> None:
    values = FixedWidth(88, 3, np.frombuffer(rows(3), np.uint8))
    block = codecs.decode_values(packed_struct([64, 16, 8]), values)
    assert integers(block.children[1]) == [0, 2, 4]


def test_no_rows_are_no_values() -> None:
    block = codecs.decode_chunks(packed_struct([64, 16]), chunks_of([[b""]], [0]))
    assert [child.num_values for child in block.children] == [0, 0]


def test_children_that_do_not_fill_the_row_are_refused() -> None:
    encoding = packed_struct([32, 32])
    encoding.packed_struct.values.CopyFrom(flat(128))
    with pytest.raises(CorruptFileError, match="rows of 64 bits"):
        codecs.decode_chunks(encoding, chunks_of([[bytes(16)]], [1]))


@pytest.mark.parametrize("bits", [[], [8, 0], [8, 4, 4]])
def test_odd_children_are_refused(bits: list[int]) -> None:
    encoding = packed_struct([16])
    encoding.packed_struct.bits_per_value[:] = bits
    with pytest.raises(CorruptFileError, match="whole bytes"):
        codecs.decode_chunks(encoding, chunks_of([[bytes(2)]], [1]))


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
    packed = codec_of("packed_struct")
    for type_, value in ((pa.string(), "x"), (pa.bool_(), True)):
        structs = measured([{"a": value}], pa.struct([("a", type_)]))
        assert not packed.nominate_chunks(structs, V2_2)
