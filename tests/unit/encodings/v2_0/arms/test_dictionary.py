from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import all_nulls, binary, decode, flat, u64

ITEMS = [u64(3, 9, 5), b"redgo"]  # 'red', null, 'go'; a null has 6 added
KEPT = pa.dictionary(pa.int8(), pa.string())


def dictionary(count: int, items: pb.ArrayEncoding | None = None) -> pb.ArrayEncoding:
    message = pb.Dictionary(
        indices=flat(8), items=items or binary(6, 1, 2), num_dictionary_items=count
    )
    return pb.ArrayEncoding(dictionary=message)


def test_a_string_column_keeps_index_0_for_null() -> None:
    buffers = [bytes([1, 0, 3, 1]), *ITEMS]

    assert decode(dictionary(3), buffers, pa.string(), (0, 4)) == ["red", None, "go", "red"]
    assert decode(dictionary(3), buffers, pa.string(), (1, 2), (3, 4)) == [None, "red"]


def test_a_dictionary_column_counts_items_from_0() -> None:
    buffers = [bytes([0, 1, 2, 0]), *ITEMS]

    assert decode(dictionary(3), buffers, KEPT, (0, 4)) == ["red", None, "go", "red"]


def test_items_need_not_be_strings() -> None:
    encoding = dictionary(2, flat(16, 1))
    kind = pa.dictionary(pa.uint8(), pa.int16())

    assert decode(encoding, [b"\x01\x00\x01", b"\x05\x00\x06\x00"], kind, (0, 3)) == [6, 5, 6]


def test_only_nulls_make_null_rows() -> None:
    assert decode(dictionary(1, all_nulls()), [bytes(2)], pa.string(), (0, 2)) == [None, None]
    assert decode(dictionary(0, all_nulls()), [bytes(2)], pa.string(), (0, 2)) == [None, None]
    assert decode(dictionary(1, all_nulls()), [bytes(2)], KEPT, (0, 2)) == [None, None]


@pytest.mark.parametrize(("kind", "index"), [(pa.string(), 4), (KEPT, 3), (KEPT, 255)])
def test_indices_past_the_items_are_refused(kind: pa.DataType, index: int) -> None:
    with pytest.raises(CorruptFileError, match="below 3"):
        decode(dictionary(3), [bytes([1, index]), *ITEMS], kind, (0, 2))


def test_more_items_than_are_stored_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode(dictionary(4_000_000_000), [bytes([1]), *ITEMS], pa.string(), (0, 1))
