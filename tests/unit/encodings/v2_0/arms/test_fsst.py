from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import all_nulls, binary, decode, flat, u64

# Two symbols: code 0 is "http://", code 1 is "a"; 255 says that the next byte is itself.
HEADER = struct.pack("<BBBBI", 2, 0, 0, 1, 0x46535354)
TABLE = (HEADER + b"http://\0" + b"a" + bytes(7) + bytes([7, 1])).ljust(2312, b"\0")
# codes 0 1, null, 255 'z' 1, nothing: five bytes, so a null has 6 added
BUFFERS = [u64(2, 8, 5, 5), b"\x00\x01\xffz\x01"]


def fsst(table: bytes = TABLE, inner: pb.ArrayEncoding | None = None) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(fsst=pb.Fsst(binary=inner or binary(6), symbol_table=table))


def test_codes_stand_for_symbols() -> None:
    assert decode(fsst(), BUFFERS, pa.string(), (0, 4)) == ["http://a", None, "za", ""]
    assert decode(fsst(), BUFFERS, pa.string(), (0, 1), (2, 3)) == ["http://a", "za"]


def test_a_table_that_is_switched_off_changes_nothing() -> None:
    off = HEADER[:3] + b"\0" + HEADER[4:]

    found = decode(fsst(off.ljust(2312, b"\0")), [u64(2), b"ab"], pa.string(), (0, 1))
    assert found == ["ab"]


def test_nulls_alone_need_no_codes() -> None:
    assert decode(fsst(inner=all_nulls()), [], pa.string(), (0, 2)) == [None, None]


@pytest.mark.parametrize("table", [b"", TABLE[:-1], bytes(2312)])
def test_broken_tables_are_refused(table: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode(fsst(table), BUFFERS, pa.string(), (0, 1))


def test_codes_without_symbol_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(fsst(), [u64(1), b"\x02"], pa.string(), (0, 1))


def test_values_that_are_no_strings_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="variable width"):
        decode(fsst(inner=flat(8)), [b"abc"], pa.string(), (0, 1))
