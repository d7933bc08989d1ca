"""Reading 0.1 files: leaves, values of every type, statistics, and what is refused."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import pyarrow as pa
import pytest

from lance_nb._pb import file as pb
from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.base import FixedWidth, Rows
from lance_nb.encodings.steps import Region
from lance_nb.encodings.v2_0.base import ItemRanges
from lance_nb.errors import CorruptFileError, LanceError, NotSupportedError
from lance_nb.file.columns import assemble, leaves_of
from lance_nb.file.opening import open_data_file
from lance_nb.file.source import FileSource
from lance_nb.file.v0_1_metadata import LegacyPage, read_legacy_metadata
from lance_nb.file.v0_1_reader import LegacyReader, decode_items, decode_values, read_statistics
from tests.support.array_pages import run
from tests.support.legacy_files import EXAMPLE_ROWS, LegacyFile, example, node, strings
from tests.support.reading import BytesStore, positions_of, rows_of, single_rows


def opened(data: bytes, *, mapped: bool = True) -> LegacyReader:
    reader = open_data_file(BytesStore(data, mapped=mapped, tail_bytes=64), "old.lance")
    assert isinstance(reader, LegacyReader)
    return reader


def read(reader: LegacyReader, name: str, rows: Rows) -> pa.ChunkedArray:
    field = reader.schema.field(name)
    arrow = reader.schema.to_arrow().field(reader.schema.fields.index(field))
    found = reader.read_leaves(list(leaves_of(field, arrow.type, {})), {}, rows)
    built = assemble(field, arrow.type, found, rows.num_rows)
    for chunk in built.chunks:
        chunk.validate(full=True)
    return built


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("name", EXAMPLE_ROWS)
def test_every_type_reads_over_batches(name: str, mapped: bool) -> None:
    reader = opened(example(), mapped=mapped)
    assert reader.num_rows == 5
    assert reader.file_version == (0, 1)
    for rows in (
        rows_of((0, 5)),
        rows_of((1, 4)),
        single_rows([0, 2, 4]),
        rows_of((3, 5)),
        rows_of((2, 3)),
        rows_of(),
    ):
        wanted = [EXAMPLE_ROWS[name][i] for i in positions_of(rows)]
        assert read(reader, name, rows).to_pylist() == wanted


def test_batches_have_the_sizes_that_were_written() -> None:
    assert opened(example()).batch_sizes().tolist() == [3, 2]


def test_a_field_that_the_file_does_not_have_is_refused() -> None:
    reader = opened(example())
    field = node(99, "w", "int32")
    leaf = next(leaves_of(type(reader.schema).from_pb([field], {}).fields[0], pa.int32(), {}))

    with pytest.raises(CorruptFileError, match="id 99"):
        reader.read_leaves([leaf], {}, rows_of((0, 1)))


def test_more_rows_than_the_file_has_are_refused() -> None:
    reader = opened(example())
    with pytest.raises(CorruptFileError, match="6 rows"):
        read(reader, "n", rows_of((0, 6)))
    with pytest.raises(CorruptFileError, match="7 rows"):
        reader.read_leaves([], {}, rows_of(), 7)


def test_run_lengths_are_refused_by_file_column_and_page_and_listed() -> None:
    made = LegacyFile([node(0, "n", "int32", encoding=4)], [0, 1, 3])
    made.add(0, 0, bytes(4), 1)
    made.add(0, 1, bytes(8), 2)
    reader = opened(made.finish())

    expected = "old.lance: column 'n' says that its page of batch 1 is run-length encoded"
    with pytest.raises(NotSupportedError) as caught:
        read(reader, "n", rows_of((1, 3)))
    assert expected in str(caught.value)
    assert [one.encoding for one in reader.list_pages()] == ["rle", "rle"]


def test_a_page_shorter_than_its_batch_is_refused() -> None:
    made = LegacyFile([node(0, "n", "int32")], [0, 3])
    made.add(0, 0, bytes(400), 2)

    with pytest.raises(CorruptFileError, match="page of 3 values") as caught:
        read(opened(made.finish()), "n", rows_of((0, 3)))
    assert "old.lance" in str(caught.value)
    assert "batch 0" in str(caught.value)


@pytest.mark.parametrize("page", [(-1, 3), (1 << 40, 3), (3, -3), ((1 << 63) - 1, 3)])
def test_pages_outside_the_file_are_refused(page: tuple[int, int]) -> None:
    for kind in ("int64", "string", "fixed_size_list:float:2147483647"):
        made = LegacyFile([node(0, "n", kind)], [0, 3])
        made.pages[0, 0] = page
        with pytest.raises(CorruptFileError):
            read(opened(made.finish()), "n", rows_of((0, 3)))


@pytest.mark.parametrize("ends", [(3, 2, 4), (-1, 2, 4), (3, 4, 1 << 40), (1 << 62, 1 << 62, 5)])
def test_string_positions_that_cannot_be_are_refused(ends: tuple[int, ...]) -> None:
    made = LegacyFile([node(0, "t", "string")], [0, 2])
    made.add(0, 0, struct.pack("<3q", *ends), 2)

    with pytest.raises(CorruptFileError):
        read(opened(made.finish()), "t", rows_of((0, 2)))


@pytest.mark.parametrize("offsets", [(0, 2, 1), (-1, 0, 1), (0, 1, 9)])
def test_list_offsets_that_cannot_be_are_refused(offsets: tuple[int, ...]) -> None:
    made = LegacyFile([node(0, "l", "list"), node(1, "item", "int8", 0)], [0, 2])
    made.add(0, 0, struct.pack("<3i", *offsets), 3)
    made.add(1, 0, bytes(3), 3)

    with pytest.raises(CorruptFileError):
        read(opened(made.finish()), "l", rows_of((0, 2)))


@pytest.mark.parametrize("place", [None, (-1, 3), (1 << 50, 1), (3, -1), (3, 1 << 40)])
def test_dictionaries_that_are_not_there_are_refused(place: tuple[int, int] | None) -> None:
    more = {} if place is None else {"dictionary": place}
    made = LegacyFile([node(0, "d", "dict:string:int8:false", **more)], [0, 1])
    made.add(0, 0, bytes(1), 1)

    with pytest.raises(CorruptFileError):
        read(opened(made.finish()), "d", rows_of((0, 1)))


def test_keys_past_the_dictionary_are_refused() -> None:
    data = example()
    reader = opened(data)
    field = reader.schema.field("d")
    page = reader._metadata.pages.page(reader._source, field.id, 0)
    broken = data[: page.position] + b"\x63" + data[page.position + 1 :]

    with pytest.raises(CorruptFileError, match="below 3"):
        read(opened(broken), "d", rows_of((0, 3)))


def test_pages_are_listed() -> None:
    listed = list(opened(example()).list_pages())

    numbers = [(one.page, one.num_rows, one.size_bytes) for one in listed if one.column == 2]
    assert numbers == [(0, 3, 12), (1, 2, 8)]
    texts = [(one.num_rows, one.size_bytes) for one in listed if one.column == 4]
    assert texts == [(3, None), (2, None)]
    assert not any(one.column == 7 for one in listed)


def test_a_file_without_statistics_has_none() -> None:
    assert opened(example()).statistics() is None


def read_broken(data: bytes, name: str, *, mapped: bool) -> bool:
    """Read a column of a damaged file; tell whether it is still a 0.1 file."""
    reader = open_data_file(BytesStore(data, mapped=mapped, tail_bytes=64), "old.lance")
    if not isinstance(reader, LegacyReader):
        return False
    count = min(reader.num_rows, 10)
    read(reader, name, rows_of((0, count)) if count else rows_of())
    list(reader.list_pages())
    return True


def test_damaged_files_end_in_data_or_in_an_error() -> None:
    data = example()
    outcomes = {True: 0, False: 0}
    for seed in range(150):
        rng = random.Random(seed)
        broken = bytearray(data)
        for _ in range(rng.choice((1, 1, 3))):
            if rng.random() < 0.3:
                at = rng.randrange(len(broken) - 8)
                broken[at : at + 8] = struct.pack("<q", rng.choice((-1, 0, 1, 1 << 31, 1 << 62)))
            else:
                broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            del broken[rng.randrange(len(broken)) :]
        for name in EXAMPLE_ROWS:
            try:
                outcomes[read_broken(bytes(broken), name, mapped=rng.random() < 0.5)] += 1
            except LanceError as exc:
                str(exc)
                outcomes[False] += 1
    assert min(outcomes.values()) > 150


def test_the_size_of_a_page_is_reported_where_its_values_have_a_width() -> None:
    """By field and batch; flags are bits, lists have one offset more than rows."""
    sizes = {(one.column, one.page): one.size_bytes for one in opened(example()).list_pages()}
    expected = {
        2: (12, 8), 3: (1, 1), 4: (None, None), 5: (16, 12), 6: (None, None), 8: (24, 16),
        9: (3, 2), 10: (12, 8), 11: (None, None), 12: (0, 0),
    }  # fmt: skip
    assert sizes == {
        (field, batch): size for field, both in expected.items() for batch, size in enumerate(both)
    }


@pytest.mark.parametrize(("count", "size"), [(1, 1), (8, 1), (9, 2), (16, 2)])
def test_flags_take_whole_bytes(count: int, size: int) -> None:
    made = LegacyFile([node(0, "b", "bool")], [0, count])
    made.add(0, 0, bytes(size), count)
    (page,) = opened(made.finish()).list_pages()
    assert (page.num_rows, page.size_bytes) == (count, size)


def test_large_lists_have_offsets_of_eight_bytes() -> None:
    fields = [node(0, "l", "large_list"), node(1, "item", "int8", 0)]
    made = LegacyFile(fields, [0, 2])
    made.add(0, 0, struct.pack("<3q", 0, 1, 3), 3)
    made.add(1, 0, bytes([5, 6, 7]), 3)
    reader = opened(made.finish())
    assert [one.size_bytes for one in reader.list_pages()] == [24, 3]
    assert read(reader, "l", rows_of((0, 2))).to_pylist() == [[5], [6, 7]]


def test_sizes_of_what_is_held() -> None:
    data = example()
    reader = opened(data)
    assert reader.size_bytes == len(data)
    assert reader.metadata_bytes == 16
    assert LegacyFile([node(0, "n", "int32")], [0]).finish()
    assert opened(LegacyFile([node(0, "n", "int32")], [0]).finish()).num_rows == 0


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([2, 3], {2: 2, 3: 3}),
        ([12, 2], {12: 12, 2: 2}),
        (list(range(20, 31)), dict(zip(range(20, 31), range(2, 13), strict=True))),
        (
            [2, 3, *range(40, 49)],
            {2: 2, 3: 3} | dict(zip(range(40, 49), range(4, 13), strict=True)),
        ),
        ([20, 21], {20: 20, 21: 21}),
    ],
    ids=["known", "another order", "all others", "some others", "too few to tell"],
)
def test_ids_of_the_manifest_lead_to_ids_of_the_file(
    fields: list[int], expected: dict[int, int]
) -> None:
    assert opened(example()).own_ids(fields) == expected


def test_columns_are_read_by_the_ids_of_the_manifest() -> None:
    reader = opened(example())
    for name, moved in (("n", {30: 2}), ("l", {30: 5, 31: 6}), ("s", {30: 7, 31: 8})):
        field = reader.schema.field(name)
        arrow = reader.schema.to_arrow().field(name)
        back = {old: new for new, old in moved.items()}
        renamed = replace(
            field,
            id=back[field.id],
            children=tuple(replace(one, id=back[one.id]) for one in field.children),
        )
        leaves = list(leaves_of(renamed, arrow.type, {}))
        found = reader.read_leaves(leaves, moved, rows_of((0, 5)))
        built = assemble(renamed, arrow.type, found, 5)
        assert built.to_pylist() == EXAMPLE_ROWS[name]


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


def file_with_statistics(num_rows: int = 2) -> bytes:
    """Two batches of one column; bounds of the second one are not known."""
    made = LegacyFile([node(3, "t", "string")], [0, 2, 3])
    made.add_strings(3, 0, [b"b", b"a"])
    made.add_strings(3, 1, [b""])
    own = LegacyFile([], [0, 2], bytearray(made.body))
    own.fields = [
        node(0, "3", "struct", nullable=False),
        node(1, "null_count", "int64", 0, nullable=False),
        node(2, "min_value", "string", 0),
        node(3, "max_value", "string", 0),
        node(4, "more", "int8"),
    ]
    own.add(1, 0, struct.pack("<2q", 0, 1), num_rows)
    own.add_strings(2, 0, [b"a", b""])
    own.add_strings(3, 0, [b"b", b""])
    own.add(4, 0, b"xy", 2)
    made.body = own.body
    made.statistics = pb.Metadata.Statistics(
        schema=own.fields, fields=[0, 1, 2, 3, 4], page_table_position=len(own.body)
    )
    made.body += own.page_table(1, [0, 4])
    return made.finish()


def test_statistics_are_a_row_per_batch_and_a_column_per_field() -> None:
    source = FileSource(BytesStore(file_with_statistics()), "old.lance")
    found = read_statistics(source, read_legacy_metadata(source))

    assert found is not None
    assert found.to_pydict() == {
        "3": [
            {"null_count": 0, "min_value": "a", "max_value": "b"},
            {"null_count": 1, "min_value": None, "max_value": None},
        ]
    }


def test_statistics_shorter_than_the_batches_are_refused() -> None:
    source = FileSource(BytesStore(file_with_statistics(1)), "old.lance")

    with pytest.raises(CorruptFileError):
        read_statistics(source, read_legacy_metadata(source))


def test_statistics_of_no_batches_have_no_rows() -> None:
    made = LegacyFile([node(3, "t", "string")], [])
    own = LegacyFile([], [0, 0], bytearray(made.body))
    own.fields = [node(0, "3", "struct", nullable=False), node(1, "null_count", "int64", 0)]
    made.statistics = pb.Metadata.Statistics(
        schema=own.fields, fields=[0, 1], page_table_position=len(own.body)
    )
    made.body += own.page_table(1, [0, 1])
    opened = FileSource(BytesStore(made.finish()), "old.lance")
    found = read_statistics(opened, read_legacy_metadata(opened))
    assert found is not None
    assert (found.num_rows, found.column_names) == (0, ["3"])


def test_a_listing_of_pages_has_their_statistics() -> None:
    reader = LegacyReader(FileSource(BytesStore(file_with_statistics()), "old.lance"))
    found = [
        (one.column, one.page, one.null_count, one.min_value, one.max_value)
        for one in reader.list_pages()
    ]
    assert found == [(3, 0, 0, "a", "b"), (3, 1, 1, None, None)]
