from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import CorruptFileError
from tests.support.array_pages import all_nulls, decode, fixed_size_list, flat, no_nulls, some_nulls

ITEMS = bytes(range(12))


def test_items_are_grouped() -> None:
    encoding = fixed_size_list(3, no_nulls(flat(8)))
    kind = pa.list_(pa.uint8(), 3)

    assert decode(encoding, [ITEMS], kind, (1, 3)) == [[3, 4, 5], [6, 7, 8]]
    assert decode(encoding, [ITEMS], kind, (0, 1), (3, 4)) == [[0, 1, 2], [9, 10, 11]]


def test_items_and_lists_have_nulls_of_their_own() -> None:
    items = some_nulls(flat(1, 1), flat(8, 0))
    encoding = some_nulls(flat(1, 2), fixed_size_list(2, items))
    buffers = [ITEMS, b"\xfb\x0f", b"\x3d"]  # item 2 and list 1 are null
    kind = pa.list_(pa.uint8(), 2)

    assert decode(encoding, buffers, kind, (0, 3)) == [[0, 1], None, [4, 5]]
    lists = fixed_size_list(2, items)
    assert decode(lists, buffers, kind, (0, 3)) == [[0, 1], [None, 3], [4, 5]]


def test_bits_are_items_too() -> None:
    encoding = fixed_size_list(3, flat(1))

    assert decode(encoding, [b"\x35"], pa.list_(pa.bool_(), 3), (1, 2)) == [[False, True, True]]


def test_lists_nest() -> None:
    encoding = fixed_size_list(2, some_nulls(flat(1, 1), fixed_size_list(3, flat(8))))
    kind = pa.list_(pa.list_(pa.uint8(), 3), 2)

    assert decode(encoding, [ITEMS, b"\x0d"], kind, (0, 2)) == [
        [[0, 1, 2], None],
        [[6, 7, 8], [9, 10, 11]],
    ]


def test_items_may_all_be_null() -> None:
    encoding = fixed_size_list(2, all_nulls())

    assert decode(encoding, [], pa.list_(pa.float32(), 2), (0, 2)) == [[None, None]] * 2


@pytest.mark.parametrize("dimension", [0, 13, 1 << 31])
def test_dimensions_that_do_not_fit_are_refused(dimension: int) -> None:
    with pytest.raises(CorruptFileError):
        decode(fixed_size_list(dimension, flat(8)), [ITEMS], pa.list_(pa.uint8(), 13), (0, 1))


def test_a_product_that_overflows_is_refused() -> None:
    encoding = flat(8)
    for _ in range(4):
        encoding = fixed_size_list(1 << 31, encoding)

    with pytest.raises(CorruptFileError):
        decode(encoding, [ITEMS], pa.list_(pa.uint8(), 3), (0, 1))
