from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import decode, flat, some_nulls


def constant(value: bytes) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(constant=pb.Constant(value=value))


def test_one_value_stands_for_all() -> None:
    assert decode(constant(b"\x07\x00\x00\x00"), [], pa.int32(), (2, 5)) == [7, 7, 7]
    assert decode(constant(b"\x01"), [], pa.bool_(), (0, 2)) == [True, True]


def test_nulls_are_beside() -> None:
    encoding = some_nulls(flat(1), constant(b"\x07"))

    assert decode(encoding, [b"\x05"], pa.int8(), (0, 3)) == [7, None, 7]


@pytest.mark.parametrize("value", [b"", bytes(33)])
def test_values_of_no_or_many_bytes_are_refused(value: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode(constant(value), [], pa.int32(), (0, 1))


def test_a_constant_may_have_32_bytes() -> None:
    value = bytes(range(32))

    assert decode(constant(value), [], pa.binary(32), (0, 2)) == [value, value]


def test_more_rows_than_any_page_has_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(constant(b"\x07"), [], pa.int8(), (0, 1 << 40))


def test_another_width_is_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(constant(b"\x07"), [], pa.int32(), (0, 1))
