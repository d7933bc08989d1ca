"""Golden 2.0 files of pylance, files and lists written by hand, and what a reader refuses."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb._pb import file as file_pb
from lance_nb._pb import file2
from lance_nb.encodings.base import FixedWidth, Rows
from lance_nb.encodings.v2_0.base import ItemRanges, Values
from lance_nb.errors import CorruptFileError, LanceError, NotSupportedError
from lance_nb.file.columns import Leaf, assemble, leaves_of
from lance_nb.file.reader import FileReader
from lance_nb.file.v2_0_reader import is_list, joined_pages, leaf_parts, rows_below
from lance_nb.format.schema import Schema
from tests.faults.damage.golden.generate import tables
from tests.faults.damage.mutate import mutate
from tests.support.array_pages import binary, flat, no_nulls, some_nulls, u64
from tests.support.reading import BytesStore, positions_of, rows_of, same, single_rows

GOLDEN = Path(__file__).parents[2] / "faults" / "damage" / "golden"
NAMES = sorted(path.name.removesuffix("-2.0.lance") for path in GOLDEN.glob("*-2.0.lance"))

Page = tuple[pb.ArrayEncoding, list[bytes], int]


def any_of(name: str, message: bytes) -> file2.Encoding:
    wrapped = pb.Any(type_url=f"/lance.encodings.{name}", value=message).SerializeToString()
    message = file2.Encoding()
    message.direct.encoding = wrapped
    return message


def file_of(columns: list[list[Page]], num_rows: int, kind: bytes = b"\x0a\x00") -> bytes:
    """Write a 2.0 file: pages, a descriptor without fields, column metadata, tables, footer."""
    out = bytearray(b"\xee" * 5)
    metadata = []
    for pages in columns:
        column = file2.ColumnMetadata(encoding=any_of("ColumnEncoding", kind))
        for encoding, buffers, length in pages:
            page = column.pages.add(length=length)
            page.encoding.CopyFrom(any_of("ArrayEncoding", encoding.SerializeToString()))
            for buffer in buffers:
                page.buffer_offsets.append(len(out))
                page.buffer_sizes.append(len(buffer))
                out += buffer
        metadata.append(column.SerializeToString())
    descriptor = file_pb.FileDescriptor(length=num_rows).SerializeToString()
    table = [(len(out), len(descriptor))]
    out += descriptor
    places = []
    for raw in metadata:
        places.append((len(out), len(raw)))
        out += raw
    starts = []
    for pairs in (places, table):
        starts.append(len(out))
        out += b"".join(struct.pack("<QQ", *pair) for pair in pairs)
    first = places[0][0] if places else 0
    return bytes(out + struct.pack("<QQQIIHH", first, *starts, 1, len(columns), 0, 3) + b"LANC")


def read(data: bytes, schema: pa.Schema, rows: Rows, *, mapped: bool = True) -> pa.Table:
    reader = FileReader(BytesStore(data, mapped=mapped), "a.lance")
    fields = Schema.from_arrow(schema)
    owners = {field.id: number for number, field in enumerate(fields.walk())}
    columns = {}
    for field, arrow in zip(fields, fields.to_arrow(), strict=True):
        leaves = list(leaves_of(field, arrow.type, owners))
        found = reader.read_leaves(leaves, owners, rows, reader.num_rows)
        columns[field.name] = assemble(field, arrow.type, found, rows.num_rows)
        for chunk in columns[field.name].chunks:
            chunk.validate(full=True)
    return pa.table(columns)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mapped", [True, False])
def test_the_golden_files_hold_their_tables(name: str, mapped: bool) -> None:
    data = (GOLDEN / f"{name}-2.0.lance").read_bytes()
    table = golden_table(name, data)
    n = table.num_rows
    for rows in (rows_of((0, n)), single_rows([0, 3, n - 1]), rows_of((2, 5), (7, n))):
        found = read(data, table.schema, rows, mapped=mapped)
        wanted = table.take(pa.array(positions_of(rows)))
        for column in table.column_names:
            assert same(found[column], wanted[column]), column


def golden_table(name: str, data: bytes) -> pa.Table:
    """The columns that the file has: 2.0 cannot hold all of them."""
    reader = FileReader(BytesStore(data), "a.lance")
    position, size = reader._table(reader.footer.global_table_start, 1)[0]
    descriptor = file_pb.FileDescriptor.FromString(data[position : position + size])
    return tables()[name].select(
        [field.name for field in descriptor.schema.fields if field.parent_id < 0]
    )


# --- lists over pages ----------------------------------------------------------------------------


def list_of(ends: list[int], num_items: int) -> Page:
    encoding = pb.ArrayEncoding(
        list=pb.List(
            offsets=no_nulls(flat(64)), null_offset_adjustment=num_items + 1, num_items=num_items
        )
    )
    return encoding, [u64(*ends)], len(ends)


LISTS = pa.schema([("l", pa.list_(pa.uint8()))])
# Two list pages ([1,2], null / [3], [], [4,5,6]) over item pages that are cut elsewhere.
LIST_PAGES = [list_of([2, 5], 2), list_of([1, 1, 4], 4)]
ITEM_PAGES: list[Page] = [
    (no_nulls(flat(8)), [bytes([1, 2, 3, 4])], 4),
    (some_nulls(flat(1, 0), flat(8, 1)), [b"\x02", bytes([5, 6])], 2),
]
ROWS: list[object] = [[1, 2], None, [3], [], [4, None, 6]]


@pytest.mark.parametrize("mapped", [True, False])
def test_items_are_counted_over_the_pages_of_lists(mapped: bool) -> None:
    data = file_of([LIST_PAGES, ITEM_PAGES], 5)
    for rows in (rows_of((0, 5)), rows_of((1, 2), (4, 5)), rows_of((2, 3)), rows_of((1, 4))):
        found = read(data, LISTS, rows, mapped=mapped)
        assert found["l"].to_pylist() == [ROWS[i] for i in positions_of(rows)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_strings_may_be_lists_of_bytes(kind: pa.DataType) -> None:
    content: list[Page] = [(no_nulls(flat(8)), [b"abcd"], 4), (no_nulls(flat(8)), [b"ef"], 2)]
    data = file_of([LIST_PAGES, content], 5)
    values = pa.array(["ab", None, "c", "", "def"], kind)
    for rows in (rows_of((0, 5)), rows_of((1, 3)), rows_of((0, 1), (4, 5)), rows_of()):
        found = read(data, pa.schema([("s", kind)]), rows)["s"]
        assert same(found, values.take(pa.array(positions_of(rows), pa.int64())))


def test_a_list_that_asks_for_items_that_are_not_there_is_refused() -> None:
    data = file_of([[list_of([2, 9], 9)], ITEM_PAGES], 2)

    with pytest.raises(CorruptFileError, match="9 rows"):
        read(data, LISTS, rows_of((0, 2)))


def test_a_list_column_that_holds_no_list_is_refused() -> None:
    data = file_of([[(flat(64), [u64(1, 2)], 2)], ITEM_PAGES], 2)

    with pytest.raises(CorruptFileError, match="a list encoding") as caught:
        read(data, LISTS, rows_of((0, 2)))
    assert "a.lance" in str(caught.value)
    assert "page 0" in str(caught.value)


def test_lists_without_a_column_of_their_own_are_refused() -> None:
    reader = FileReader(BytesStore(file_of([ITEM_PAGES], 2)), "a.lance")
    field = Schema.from_arrow(LISTS).fields[0]
    owners = {field.children[0].id: 0}
    leaves = list(leaves_of(field, LISTS.field(0).type, owners))

    with pytest.raises(CorruptFileError, match="a list column"):
        reader.read_leaves(leaves, owners, rows_of((0, 2)))


def test_maps_are_refused_by_name() -> None:
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int8()))])
    data = file_of([LIST_PAGES, *[ITEM_PAGES] * 3], 5)

    with pytest.raises(NotSupportedError, match="cannot hold"):
        read(data, schema, rows_of((0, 5)))


# --- other columns -------------------------------------------------------------------------------


def test_a_column_of_another_length_than_the_manifest_says_is_refused() -> None:
    data = file_of([[(flat(8), [b"abc"], 3)]], 4)

    with pytest.raises(CorruptFileError, match="4 rows, as the manifest says"):
        read(data, pa.schema([("a", pa.uint8())]), rows_of((0, 3)))


def test_a_struct_whose_fields_are_elsewhere_is_there_with_null_fields() -> None:
    reader = FileReader(
        BytesStore(file_of([[(pb.ArrayEncoding(struct=pb.SimpleStruct()), [], 3)]], 3)), "a.lance"
    )
    kind = pa.struct([("x", pa.int8())])
    field = Schema.from_arrow(pa.schema([("s", kind)])).fields[0]
    found = reader.read_leaves(list(leaves_of(field, kind, {0: 0})), {0: 0}, rows_of((0, 3)))

    assert assemble(field, kind, found, 3).to_pylist() == [{"x": None}] * 3


@pytest.mark.parametrize("kind", [pa.int8(), pa.list_(pa.int8(), 2), pa.string()])
def test_a_struct_page_in_any_other_column_is_refused(kind: pa.DataType) -> None:
    data = file_of([[(pb.ArrayEncoding(struct=pb.SimpleStruct()), [], 3)]], 3)

    with pytest.raises(CorruptFileError):
        read(data, pa.schema([("a", kind)]), rows_of((0, 3)))


def test_fixed_size_binary_may_be_lists_of_bytes() -> None:
    items = pb.FixedSizeList(dimension=2, items=no_nulls(flat(8)))
    page = (no_nulls(pb.ArrayEncoding(fixed_size_list=items)), [b"abcd"], 2)

    found = read(file_of([[page]], 2), pa.schema([("b", pa.binary(2))]), rows_of((0, 2)))
    assert found["b"].to_pylist() == [b"ab", b"cd"]


def blob_file(*descriptions: tuple[int, int]) -> bytes:
    packed = pb.PackedStruct(inner=[no_nulls(flat(64))] * 2, buffer=pb.Buffer())
    raw = b"".join(u64(*one) for one in descriptions)
    page = (pb.ArrayEncoding(packed_struct=packed), [raw], len(descriptions))
    return file_of([[page]], len(descriptions), bytes.fromhex("1a040a020a00"))


def test_blobs_read_as_descriptions_or_as_payloads() -> None:
    data = blob_file((0, 3), (1, 0), (0, 0))
    described = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])

    found = read(data, pa.schema([("b", pa.large_binary())]), rows_of((0, 3)))
    assert found["b"].to_pylist() == [b"\xee" * 3, None, b""]
    reader = FileReader(BytesStore(data), "a.lance")
    field = Schema.from_arrow(pa.schema([("b", described)])).fields[0]
    owners = {field.id: 0}
    parts = reader.read_leaves(list(leaves_of(field, described, owners)), owners, rows_of((0, 2)))
    assert assemble(field, described, parts, 2).to_pylist() == [
        {"position": 0, "size": 3},
        {"position": 1, "size": 0},
    ]


@pytest.mark.parametrize("bad", [(0, 1 << 40), (1 << 63, 1), (0, (1 << 64) - 1)])
def test_payloads_outside_the_file_are_refused(bad: tuple[int, int]) -> None:
    with pytest.raises(CorruptFileError):
        read(blob_file(bad), pa.schema([("b", pa.large_binary())]), rows_of((0, 1)))


def test_payloads_that_overlap_are_refused() -> None:
    data = blob_file(*[(0, 100)] * 100)

    with pytest.raises(CorruptFileError):
        read(data, pa.schema([("b", pa.large_binary())]), rows_of((0, 100)))


def test_an_unknown_page_encoding_is_refused_with_its_place() -> None:
    data = file_of([[(pb.ArrayEncoding.FromString(b"\x7a\x00"), [b"abc"], 3)]], 3)

    with pytest.raises(NotSupportedError) as caught:
        read(data, pa.schema([("a", pa.uint8())]), rows_of((0, 3)))
    assert caught.value.__notes__ == ["bytes://a.lance, column 'a', page 0"]


def test_pages_are_listed_with_their_encodings() -> None:
    reader = FileReader(BytesStore(file_of([LIST_PAGES, ITEM_PAGES], 5)), "a.lance")

    listed = [(one.column, one.page, one.num_rows, one.encoding) for one in reader.list_pages()]
    assert listed == [
        (0, 0, 2, "list(flat[64])"),
        (0, 1, 3, "list(flat[64])"),
        (1, 0, 4, "flat[8]"),
        (1, 1, 2, "nullable(flat[8])"),
    ]


def test_strings_of_many_pages_take_two_rounds() -> None:
    pages: list[Page] = [(binary(3), [u64(1, 2), b"ab"], 2) for _ in range(20)]
    data = file_of([pages, pages], 40)
    store = Counting(data)
    reader = FileReader(store, "a.lance")
    schema = Schema.from_arrow(pa.schema([("a", pa.string()), ("b", pa.string())]))
    owners = {field.id: number for number, field in enumerate(schema)}
    leaves = [leaf for one in schema for leaf in leaves_of(one, pa.string(), owners)]
    reader.column_metadata(0), reader.column_metadata(1)
    store.rounds = 0
    reader.read_leaves(leaves, owners, rows_of((0, 40)))

    assert store.rounds == 2


class Counting(BytesStore):
    """Counts rounds of reading."""

    rounds = 0

    def __init__(self, data: bytes) -> None:
        super().__init__(data, mapped=False, tail_bytes=40)

    def read_ranges(self, path: str, wanted: list[object]) -> list[memoryview]:
        self.rounds += 1
        return super().read_ranges(path, wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_end_in_data_or_in_an_error(name: str) -> None:
    data = (GOLDEN / f"{name}-2.0.lance").read_bytes()
    table = golden_table(name, data)
    refused = 0
    for seed in range(100):
        rng = random.Random(seed)
        broken = mutate(data, rng)
        try:
            rows = rows_of((0, table.num_rows)) if rng.random() < 0.5 else single_rows([0, 5])
            read(broken, table.schema, rows, mapped=rng.random() < 0.5)
        except LanceError as exc:
            str(exc)
            refused += 1
    assert refused > 10


POINT = pa.struct([("x", pa.int32())])
LISTS_LISTS = pa.list_(POINT)
# A list (field 1) of structs (2) of lists (3) of numbers.
LEAF = Leaf(4, "c", pa.int32(), 4, ((1, LISTS_LISTS), (2, POINT), (3, pa.list_(pa.int32()))))


def items(*ranges: tuple[int, int], valid: list[bool] | None = None) -> Values:
    starts, stops = np.array(ranges, np.int64).reshape(-1, 2).T
    return Values(ItemRanges(starts, stops), None if valid is None else np.array(valid))


@pytest.mark.parametrize(
    ("type_", "found"),
    [(LISTS_LISTS, True), (pa.large_list(pa.int8()), True), (POINT, False)],
)
def test_lists_are_distinguished_from_structs(type_: pa.DataType, found: bool) -> None:
    assert is_list(type_, "c") is found


@pytest.mark.parametrize("type_", [pa.map_(pa.string(), pa.int8()), pa.list_(POINT, 2), pa.int8()])
def test_other_nesting_is_refused_with_its_column(type_: pa.DataType) -> None:
    with pytest.raises(NotSupportedError, match="column 'c': file version"):
        is_list(type_, "c")


def test_pages_of_lists_are_joined() -> None:
    found = joined_pages([items((0, 2), (2, 2)), items((7, 10), (10, 11))])
    assert found.level.length == 4
    assert found.level.validity is None
    assert found.level.offsets is not None
    assert found.level.offsets.tolist() == [0, 2, 2, 5, 6]
    assert (found.items.starts.tolist(), found.items.stops.tolist()) == ([0, 7], [2, 11])


def test_a_page_without_nulls_is_valid_beside_one_with() -> None:
    found = joined_pages([items((0, 2)), items((2, 2), (2, 3), valid=[False, True])])
    assert found.level.validity is not None
    assert found.level.validity.tolist() == [True, False, True]


def test_no_pages_are_no_lists() -> None:
    found = joined_pages([])
    assert (found.level.length, found.items.num_rows) == (0, 0)
    assert found.level.offsets is not None
    assert found.level.offsets.tolist() == [0]
    assert not joined_pages([Values(FixedWidth(8, 0, np.zeros(0, np.uint8)))]).level.length


def test_rows_below_a_list_are_its_items() -> None:
    rows = rows_of((5, 7))
    outer, inner = joined_pages([items((2, 4))]), joined_pages([items((9, 12))])
    assert rows_below(LEAF, {}, rows) is rows
    assert rows_below(LEAF, {1: outer}, rows) is outer.items
    assert rows_below(LEAF, {1: outer, 3: inner}, rows) is inner.items
    assert rows_below(LEAF, {1: outer, 3: inner}, rows, 2) is outer.items
    assert rows_below(LEAF, {1: outer, 3: inner}, rows, 0) is rows


def test_levels_lie_over_the_values_of_all_pages() -> None:
    outer = joined_pages([items((0, 2), (2, 2), (2, 3), valid=[True, False, True])])
    inner = joined_pages([items((0, 1), (1, 1), (1, 4))])
    arrays = [pa.array([1, 2], pa.int32()), pa.array([3, 4], pa.int32())]
    (part,) = leaf_parts(LEAF, arrays, {1: outer, 3: inner}, rows_of((0, 3)))
    assert part.values.to_pylist() == [1, 2, 3, 4]
    assert [level.length for level in part.levels] == [3, 3, 3, 4]
    assert part.levels[0] is outer.level
    assert part.levels[2] is inner.level
    assert part.levels[1].offsets is None


def test_without_a_list_every_page_is_a_part() -> None:
    leaf = Leaf(2, "c", pa.int32(), 2, ((1, POINT),))
    arrays = [pa.array([1, 2], pa.int32()), pa.array([3], pa.int32())]
    parts = leaf_parts(leaf, arrays, {}, rows_of((0, 3)))
    assert [[level.length for level in part.levels] for part in parts] == [[2, 2], [1, 1]]
    assert leaf_parts(leaf, [], {}, rows_of()) == []


def test_lists_without_items_have_empty_values_of_their_type() -> None:
    outer, inner = joined_pages([items((0, 0))]), joined_pages([])
    (part,) = leaf_parts(LEAF, [], {1: outer, 3: inner}, rows_of((0, 1)))
    assert part.values.type == pa.int32()
    assert [level.length for level in part.levels] == [1, 0, 0, 0]
