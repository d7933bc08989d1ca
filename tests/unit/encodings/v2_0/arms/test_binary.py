from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import binary, decode, decode_values, flat, u64
from tests.support.reading import rows_of

# 'ab', null, '', 'xyz': five bytes, so a null has 6 added
BUFFERS = [u64(2, 8, 2, 5), b"abxyz"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_strings_lie_between_ends(kind: pa.DataType) -> None:
    assert decode(binary(6), BUFFERS, kind, (0, 4)) == ["ab", None, "", "xyz"]
    assert decode(binary(6), BUFFERS, kind, (1, 2), (3, 4)) == [None, "xyz"]
    assert decode(binary(6), BUFFERS, kind, (2, 3)) == [""]
    assert decode(binary(6), BUFFERS, kind) == []


def test_only_the_bytes_between_the_ends_are_asked_for() -> None:
    _, asked = decode_values(binary(6), BUFFERS, rows_of((3, 4)), mapped=False)

    assert asked == 2 * 8 + 3


def test_ends_may_be_narrow() -> None:
    message = pb.Binary(indices=flat(8), bytes=flat(8, 1), null_adjustment=6)
    buffers = [bytes([2, 8, 2, 5]), b"abxyz"]

    found = decode(pb.ArrayEncoding(binary=message), buffers, pa.binary(), (0, 4))
    assert found == [b"ab", None, b"", b"xyz"]


def test_ends_past_the_bytes_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(binary(99), [u64(2, 6), b"abxyz"], pa.binary(), (0, 2))


def test_bytes_that_are_no_bytes_are_refused() -> None:
    message = pb.Binary(indices=flat(64), bytes=flat(16, 1), null_adjustment=6)
    with pytest.raises(CorruptFileError, match="8 bits"):
        decode(pb.ArrayEncoding(binary=message), [u64(2), b"abxyz"], pa.binary(), (0, 1))


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="UTF-8"):
        decode(binary(6), [u64(2), b"\xff\xfe"], pa.string(), (0, 1))
