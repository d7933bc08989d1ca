from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.support.array_pages import all_nulls, binary, decode, flat, no_nulls, some_nulls, u64

VALUES = bytes([10, 11, 12, 13])


def test_values_without_nulls_are_the_values() -> None:
    assert decode(no_nulls(flat(8)), [VALUES], pa.uint8(), (1, 3)) == [11, 12]


def test_a_bitmap_says_which_values_are_there() -> None:
    encoding = some_nulls(flat(1, 0), flat(8, 1))

    assert decode(encoding, [b"\x0b", VALUES], pa.uint8(), (0, 4)) == [10, 11, None, 13]
    assert decode(encoding, [b"\x0b", VALUES], pa.uint8(), (1, 2), (2, 3)) == [11, None]


def test_nulls_of_the_values_themselves_count_too() -> None:
    encoding = some_nulls(flat(1, 2), binary(4, 0, 1))
    buffers = [u64(1, 5, 3), b"abc", b"\x06"]

    assert decode(encoding, buffers, pa.string(), (0, 3)) == [None, None, "bc"]


def test_all_nulls_need_no_buffer() -> None:
    assert decode(all_nulls(), [], pa.int64(), (2, 4)) == [None, None]
    assert decode(all_nulls(), [], pa.null(), (0, 1)) == [None]


def test_more_nulls_than_any_page_has_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(all_nulls(), [], pa.int64(), (0, 1 << 40))


def test_a_short_or_wide_bitmap_is_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(some_nulls(flat(1), flat(8, 1)), [b"", VALUES], pa.uint8(), (0, 4))
    with pytest.raises(CorruptFileError, match="bitmap"):
        decode(some_nulls(flat(8), flat(8, 1)), [VALUES, VALUES], pa.uint8(), (0, 4))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(NotSupportedError):
        decode(pb.ArrayEncoding(nullable=pb.Nullable()), [], pa.uint8(), (0, 1))
