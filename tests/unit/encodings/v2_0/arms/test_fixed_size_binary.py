from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import decode, flat, no_nulls, some_nulls

TEXT = b"abcdefghi"


def fixed(width: int, content: pb.ArrayEncoding) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(fixed_size_binary=pb.FixedSizeBinary(bytes=content, byte_width=width))


@pytest.mark.parametrize("content", [flat(8), no_nulls(flat(8)), flat(24), no_nulls(flat(24))])
def test_strings_of_one_length_lie_back_to_back(content: pb.ArrayEncoding) -> None:
    assert decode(fixed(3, content), [TEXT], pa.string(), (0, 3)) == ["abc", "def", "ghi"]
    assert decode(fixed(3, content), [TEXT], pa.large_binary(), (0, 1), (2, 3)) == [b"abc", b"ghi"]
    assert decode(fixed(3, content), [TEXT], pa.string()) == []


def test_nulls_are_outside() -> None:
    encoding = some_nulls(flat(1, 1), fixed(3, flat(8)))

    assert decode(encoding, [TEXT, b"\x05"], pa.string(), (0, 3)) == ["abc", None, "ghi"]


@pytest.mark.parametrize("width", [0, 4, (1 << 32) - 1])
def test_widths_that_do_not_fit_are_refused(width: int) -> None:
    with pytest.raises(CorruptFileError):
        decode(fixed(width, flat(8)), [TEXT], pa.string(), (0, 3))


def test_bytes_that_are_no_bytes_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(fixed(3, flat(16)), [TEXT], pa.string(), (0, 1))
