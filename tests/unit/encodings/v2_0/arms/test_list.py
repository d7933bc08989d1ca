from __future__ import annotations

import pytest

from lance_nb._pb import encodings as pb
from lance_nb.encodings.v2_0.base import ItemRanges
from lance_nb.errors import CorruptFileError
from tests.support.array_pages import decode_values, flat, no_nulls, u64
from tests.support.reading import rows_of

# [1, 2], null, [], [3]: three items, so a null has 4 added
ENDS = u64(2, 6, 2, 3)


def lists(num_items: int = 3, adjustment: int = 4) -> pb.ArrayEncoding:
    message = pb.List(
        offsets=no_nulls(flat(64)), null_offset_adjustment=adjustment, num_items=num_items
    )
    return pb.ArrayEncoding(list=message)


def ranges(*rows: tuple[int, int]) -> tuple[list[tuple[int, int]], list[bool] | None]:
    values, _ = decode_values(lists(), [ENDS], rows_of(*rows), mapped=False)
    assert isinstance(values.block, ItemRanges)
    pairs = zip(values.block.starts.tolist(), values.block.stops.tolist(), strict=True)
    return list(pairs), None if values.validity is None else values.validity.tolist()


def test_rows_become_ranges_of_items() -> None:
    assert ranges((0, 4)) == ([(0, 2), (2, 2), (2, 2), (2, 3)], [True, False, True, True])


def test_rows_in_the_middle_begin_where_the_one_before_ends() -> None:
    assert ranges((1, 2)) == ([(2, 2)], [False])
    assert ranges((0, 1), (3, 4)) == ([(0, 2), (2, 3)], None)
    assert ranges((2, 3), (3, 4)) == ([(2, 2), (2, 3)], None)


def test_no_rows_are_no_ranges() -> None:
    assert ranges() == ([], None)


def test_ends_past_the_items_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="up to 2 items"):
        decode_values(lists(2, 9), [u64(2, 3)], rows_of((0, 2)))


def test_ends_that_go_down_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="never go down"):
        decode_values(lists(3, 9), [u64(2, 1)], rows_of((0, 2)))
    with pytest.raises(CorruptFileError, match="never go down"):
        decode_values(lists(9, 10), [u64(1, 5, 2, 4)], rows_of((0, 2), (3, 4)))


def test_huge_ends_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        decode_values(lists((1 << 64) - 1, (1 << 64) - 1), [u64(1 << 63)], rows_of((0, 1)))
