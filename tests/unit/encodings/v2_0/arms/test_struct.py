from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import decode

STRUCT = pb.ArrayEncoding(struct=pb.SimpleStruct())


def test_a_struct_column_holds_nothing_but_rows() -> None:
    assert decode(STRUCT, [], pa.struct([]), (3, 5)) == [{}, {}]


def test_more_rows_than_any_page_has_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(STRUCT, [], pa.struct([]), (0, 1 << 40))


def test_other_types_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(STRUCT, [], pa.int32(), (0, 1))
