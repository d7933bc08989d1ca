from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.support.array_pages import (
    all_nulls,
    decode,
    decode_values,
    fixed_size_list,
    flat,
    no_nulls,
)
from tests.support.reading import rows_of

ROWS = b"".join(struct.pack("<ibbH", i, 2 * i, -i, 500 + i) for i in range(4))
KIND = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int8(), 2)), ("c", pa.uint16())])


def packed(*inner: pb.ArrayEncoding) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(packed_struct=pb.PackedStruct(inner=inner, buffer=pb.Buffer()))


FIELDS = packed(
    no_nulls(flat(32)), no_nulls(fixed_size_list(2, no_nulls(flat(8)))), no_nulls(flat(16))
)


def row(i: int) -> dict[str, object]:
    return {"a": i, "b": [2 * i, -i], "c": 500 + i}


def test_fields_are_cut_out_of_rows() -> None:
    assert decode(FIELDS, [ROWS], KIND, (0, 4)) == [row(i) for i in range(4)]
    assert decode(FIELDS, [ROWS], KIND, (1, 2), (3, 4)) == [row(1), row(3)]
    assert decode(FIELDS, [ROWS], KIND) == []


def test_only_the_rows_are_asked_for() -> None:
    _, asked = decode_values(FIELDS, [ROWS], rows_of((2, 3)), mapped=False)

    assert asked == 8


def test_packed_structs_lie_in_fixed_size_lists() -> None:
    encoding = fixed_size_list(2, packed(flat(32), flat(32)))
    kind = pa.list_(pa.struct([("x", pa.int32()), ("y", pa.int32())]), 2)
    data = struct.pack("<8i", *range(8))

    assert decode(encoding, [data], kind, (1, 2)) == [[{"x": 4, "y": 5}, {"x": 6, "y": 7}]]


def test_rows_behind_the_buffer_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(FIELDS, [ROWS], KIND, (0, 5))


@pytest.mark.parametrize("inner", [all_nulls(), flat(1), flat(0)])
def test_fields_that_cannot_be_packed_are_refused(inner: pb.ArrayEncoding) -> None:
    with pytest.raises(NotSupportedError):
        decode(packed(inner), [ROWS], KIND, (0, 1))


def test_impossible_rows_are_refused() -> None:
    wide = flat(8)
    for _ in range(6):
        wide = fixed_size_list(1 << 31, wide)

    for encoding in (packed(), packed(wide), packed(fixed_size_list(0, flat(8)))):
        with pytest.raises(CorruptFileError):
            decode(encoding, [ROWS], KIND, (0, 1))


def test_another_number_of_fields_is_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(packed(flat(64)), [ROWS], KIND, (0, 1))
