from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.base import FixedWidth
from lance_nb.encodings.steps import Region
from lance_nb.encodings.v2_0.base import ItemRanges
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.legacy_metadata import LegacyPage
from lance_nb.file.legacy_values import decode_items, decode_values
from tests.support.array_pages import run
from tests.support.legacy_files import strings
from tests.support.reading import rows_of


def decode(
    data: bytes, position: int, num_values: int, kind: pa.DataType, *rows: tuple[int, int]
) -> list[object]:
    page, whole = LegacyPage(position, num_values), Region(0, len(data), True)
    values, _ = run(decode_values(kind, page, rows_of(*rows), whole), data)
    assert not isinstance(values.block, ItemRanges)
    found: list[object] = to_arrow(values.block, kind, values.validity).to_pylist()
    return found


def test_fixed_width_values_lie_anywhere() -> None:
    data = b"\xee" + struct.pack("<3q", 5, -6, 7)

    assert decode(data, 1, 3, pa.int64(), (0, 3)) == [5, -6, 7]
    assert decode(data, 1, 3, pa.int64(), (0, 1), (2, 3)) == [5, 7]
    assert decode(b"abcdef", 2, 2, pa.binary(2), (1, 2)) == [b"ef"]


def test_flags_are_bits_and_lists_of_them_too() -> None:
    assert decode(b"\x05", 0, 3, pa.bool_(), (0, 3)) == [True, False, True]
    kind = pa.list_(pa.bool_(), 3)
    assert decode(b"\x35\x01", 0, 3, kind, (1, 3)) == [[False, True, True], [False, False, True]]


def test_an_empty_string_is_null_where_it_may_be() -> None:
    body, position = strings(3, [b"ab", b"", b"c"])
    data = b"\xee" * 3 + body

    assert decode(data, position, 3, pa.string(), (0, 3)) == ["ab", None, "c"]
    assert decode(data, position, 3, pa.large_binary(), (2, 3)) == [b"c"]
    page, whole = LegacyPage(position, 3), Region(0, len(data), False)
    steps = decode_values(pa.string(), page, rows_of((0, 1), (2, 3)), whole, nullable=False)
    values, asked = run(steps, data)
    assert values.validity is None
    assert asked[-2:] == [(3, 5), (5, 6)] or asked[-1] == (3, 6)


def test_a_dictionary_page_holds_its_keys() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    values, _ = run(
        decode_values(kind, LegacyPage(0, 3), rows_of((1, 3)), Region(0, 3, True)), b"\x00\x01\x02"
    )

    assert isinstance(values.block, FixedWidth)
    assert values.block.data.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("kind", "code"), [(pa.list_(pa.int8()), "i"), (pa.large_list(pa.int8()), "q")]
)
def test_lists_are_ranges_of_items(kind: pa.DataType, code: str) -> None:
    data = struct.pack(f"<5{code}", 0, 2, 2, 5, 6)
    steps = decode_items(kind, LegacyPage(0, 5), rows_of((0, 1), (2, 4)), Region(0, 40, False))
    items, _ = run(steps, data.ljust(40, b"\xee"))

    assert list(zip(items.starts.tolist(), items.stops.tolist(), strict=True)) == [
        (0, 2),
        (2, 5),
        (5, 6),
    ]


def test_one_offset_too_few_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="5 offsets"):
        run(
            decode_items(
                pa.list_(pa.int8()), LegacyPage(0, 4), rows_of((0, 4)), Region(0, 99, True)
            ),
            bytes(99),
        )


def test_nulls_need_no_bytes() -> None:
    assert decode(b"", 0, 9, pa.null(), (3, 5)) == [None, None]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string(), 2),
        pa.list_(pa.struct([("x", pa.int8())]), 2),
        pa.map_(pa.string(), pa.int8()),
    ],
)
def test_types_that_the_version_cannot_hold_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match=r"0\.1 cannot hold"):
        decode(bytes(99), 0, 3, kind, (0, 1))


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.large_list(pa.int8())])
def test_no_rows_have_no_items(kind: pa.DataType) -> None:
    items, asked = run(decode_items(kind, LegacyPage(0, 5), rows_of(), Region(0, 0, False)), b"")
    assert (items.starts.size, items.stops.size, asked) == (0, 0, [])


def test_no_rows_have_no_text() -> None:
    assert decode(b"", 0, 5, pa.string()) == []


def test_flags_anywhere_in_a_page() -> None:
    bits = 0b1011_0010_0110_1101
    data = b"\xee" + bits.to_bytes(2, "little")
    expected = [bool(bits >> at & 1) for at in range(16)]
    for rows in [(0, 16)], [(3, 11)], [(7, 9), (15, 16)]:
        wanted = [expected[at] for start, stop in rows for at in range(start, stop)]
        assert decode(data, 1, 16, pa.bool_(), *rows) == wanted


@pytest.mark.parametrize("bounds", [(1, 0, 2), (-1, 0, 0), (0, 2, 1), (3, 1, 4)], ids=str)
def test_offsets_that_go_down_are_refused(bounds: tuple[int, ...]) -> None:
    data = struct.pack("<3i", *bounds)
    with pytest.raises(CorruptFileError, match="offsets"):
        run(
            decode_items(
                pa.list_(pa.int8()), LegacyPage(0, 3), rows_of((0, 2)), Region(0, 12, True)
            ),
            data,
        )


def test_rows_apart_may_not_go_down_either() -> None:
    data = struct.pack("<5i", 0, 9, 9, 3, 4)
    with pytest.raises(CorruptFileError, match="never go down"):
        run(
            decode_items(
                pa.list_(pa.int8()), LegacyPage(0, 5), rows_of((0, 1), (3, 4)), Region(0, 20, True)
            ),
            data,
        )
