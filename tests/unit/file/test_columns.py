"""Leaves of a field tree, and how their levels and values become Arrow columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import (
    AllNull,
    Constant,
    DataBlock,
    DecodedPage,
    Dictionary,
    FixedWidth,
    PackedStruct,
    VariableWidth,
)
from lance_nb.encodings.jsonb import from_text
from lance_nb.encodings.repdef import Level
from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.columns import (
    Leaf,
    LeafPart,
    PackedField,
    assemble,
    concat_parts,
    leaf_part,
    leaves_of,
    narrowed,
    shown,
    stored_type,
)
from lance_nb.format.schema import Field, Schema

ITEM, NULLABLE = pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULLABLE_ITEM
FULL = pb.REPDEF_ALL_VALID_LIST
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])


def field_of(kind: pa.DataType) -> Field:
    return Schema.from_arrow(pa.schema([pa.field("c", kind)])).fields[0]


def mask(*bits: int) -> Any:
    return np.array(bits, bool)


def offsets(*ends: int) -> Any:
    return np.array(ends, np.int64)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int32(), [("c", 1)]),
        (pa.list_(pa.float32(), 4), [("c", 1)]),
        (pa.dictionary(pa.int8(), pa.string()), [("c", 1)]),
        (pa.list_(pa.int32()), [("c.item", 2)]),
        (POINT, [("c.x", 2), ("c.y", 2)]),
        (pa.list_(POINT), [("c.item.x", 3), ("c.item.y", 3)]),
        (pa.large_list(pa.list_(pa.int8())), [("c.item.item", 3)]),
        (pa.map_(pa.string(), pa.int32()), [("c.entries.key", 3), ("c.entries.value", 3)]),
        (pa.struct([("a", POINT), ("b", pa.list_(pa.int8()))]),
         [("c.a.x", 3), ("c.a.y", 3), ("c.b.item", 3)]),
        (pa.struct([]), [("c", 1)]),
    ],
)  # fmt: skip
def test_only_leaves_own_columns(kind: pa.DataType, expected: list[tuple[str, int]]) -> None:
    field = field_of(kind)
    owners = {one.id: n for n, one in enumerate(f for f in field.walk() if not f.children)}
    leaves = list(leaves_of(field, kind, owners))
    assert [(leaf.name, leaf.depth) for leaf in leaves] == expected
    assert all(leaf.field_id in owners for leaf in leaves)


def test_a_packed_struct_is_one_leaf() -> None:
    field = field_of(POINT)
    (leaf,) = leaves_of(field, POINT, {field.id: 0})
    assert (leaf.name, leaf.type, leaf.depth) == ("c", POINT, 1)


def jsonb(*texts: str) -> VariableWidth:
    documents = [from_text(one) for one in texts]
    ends = np.cumsum([0, *map(len, documents)]).astype(np.int32)
    return VariableWidth(len(texts), ends, np.frombuffer(b"".join(documents), np.uint8))


TEXTS = ['{"k":1}', "[2]", '{"k":1}']
THREE_KEYS = FixedWidth(8, 3, np.array([0, 1, 0], np.uint8))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (jsonb(*TEXTS), TEXTS),
        (Dictionary(3, THREE_KEYS, jsonb(*TEXTS[:2])), TEXTS),
        (Constant(3, jsonb("[2]")), ["[2]"] * 3),
        (AllNull(3), [None] * 3),
    ],
)
@pytest.mark.parametrize("valid", [None, [1, 0, 1]])
def test_json_is_text_whatever_block_it_comes_in(
    block: DataBlock, expected: list[Any], valid: list[int] | None
) -> None:
    kind = pa.json_()
    (leaf,) = leaves_of(field_of(kind), kind, {0: 0})
    assert leaf.type == pa.large_binary()
    layers = (NULLABLE if valid else ITEM,)
    definition = None if valid is None else 1 - np.array(valid, np.uint8)
    part = leaf_part(leaf, DecodedPage(block, None, definition, layers), 3)

    built = assemble(field_of(kind), kind, {0: [part]}, 3)

    assert built.type == kind
    assert built.to_pylist() == [
        text if valid is None or valid[row] else None for row, text in enumerate(expected)
    ]


def test_json_inside_a_packed_struct_is_text() -> None:
    kind = pa.struct([("j", pa.json_()), ("u", pa.uuid())])
    field = field_of(kind)
    (leaf,) = leaves_of(field, kind, {field.id: 0})
    assert leaf.type == pa.struct([("j", pa.large_binary()), ("u", pa.binary(16))])
    ids = FixedWidth(128, 3, np.arange(48, dtype=np.uint8))
    block = PackedStruct(3, (jsonb(*TEXTS), ids))
    levels = DecodedPage(block, None, np.array([0, 1, 0], np.uint8), (NULLABLE,))

    built = assemble(field, kind, {field.id: [leaf_part(leaf, levels, 3)]}, 3)

    assert built.type == kind
    (chunk,) = built.chunks
    assert chunk.is_valid().to_pylist() == [True, False, True]
    assert chunk.field("j").to_pylist() == TEXTS
    assert chunk.field("u").storage.to_pylist() == [bytes(range(a, a + 16)) for a in (0, 16, 32)]


LISTS_OF_IDS = pa.list_(pa.uuid(), 2)


def test_extension_types_wrap_what_is_stored() -> None:
    field = field_of(pa.uuid())
    assert stored_type(field, pa.uuid()) == pa.binary(16)
    assert shown(pa.array([b"x" * 16, None], pa.binary(16)), field, pa.uuid()).type == pa.uuid()


@pytest.mark.parametrize("start", [0, 1])
def test_items_of_fixed_size_lists_are_shown_too(start: int) -> None:
    field = field_of(pa.list_(pa.binary(16), 2))
    assert stored_type(field, LISTS_OF_IDS) == pa.list_(pa.binary(16), 2)
    rows = [[b"a" * 16, b"b" * 16], None, [b"c" * 16, None]]
    stored = pa.array(rows, pa.list_(pa.binary(16), 2)).slice(start)
    built = shown(stored, field, LISTS_OF_IDS)
    assert built.type == LISTS_OF_IDS
    assert built.cast(stored.type).to_pylist() == rows[start:]


def test_text_that_is_declared_as_json_is_shown_as_it_is() -> None:
    """Releases before JSON columns stored the text and named the extension type."""
    metadata = {"ARROW:extension:name": b"arrow.json"}
    field = replace(field_of(pa.string()), metadata=metadata, extension_name="arrow.json")
    assert (field.logical_type, stored_type(field, pa.json_())) == ("string", pa.string())
    built = shown(pa.array(['{"k": 1}', None]), field, pa.json_())
    assert built.type == pa.json_()
    assert built.to_pylist() == ['{"k": 1}', None]


def test_bytes_that_are_no_json_are_damage() -> None:
    with pytest.raises(CorruptFileError, match="JSON"):
        shown(pa.array([b"{}"], pa.large_binary()), field_of(pa.json_()), pa.json_())
    with pytest.raises(CorruptFileError, match="values of type int32"):
        shown(pa.array([b"{}"], pa.large_binary()), field_of(pa.int32()), pa.int32())


def page(layers: list[int], values: int, rep: Any = None, definition: Any = None) -> DecodedPage:
    data = np.arange(values, dtype="<i4").view(np.uint8)
    levels = (None if one is None else np.array(one, np.uint16) for one in (rep, definition))
    return DecodedPage(FixedWidth(32, values, data), *levels, tuple(layers))


LEAF = Leaf(0, "c", pa.int32(), 1)
ITEMS = Leaf(1, "c.item", pa.int32(), 2)


def test_a_page_becomes_levels_and_an_array() -> None:
    part = leaf_part(LEAF, page([NULLABLE], 3, None, [0, 1, 0]), 3)
    assert part.values.to_pylist() == [0, None, 2]
    assert part.num_rows == 3


@pytest.mark.parametrize(
    ("leaf", "found", "num_rows", "reason"),
    [
        (LEAF, page([ITEM, ITEM], 3), 3, "1 nesting layers"),
        (ITEMS, page([ITEM], 3), 3, "2 nesting layers"),
        (LEAF, page([ITEM], 3), 4, "4 rows"),
        (ITEMS, page([ITEM, FULL], 3, [1, 0, 1]), 3, "3 rows"),
        (Leaf(0, "c", pa.int64(), 1), page([ITEM], 3), 3, "values of type int64"),
    ],
)
def test_a_page_that_does_not_fit_its_leaf_is_refused(
    leaf: Leaf, found: DecodedPage, num_rows: int, reason: str
) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        leaf_part(leaf, found, num_rows)


def part(values: pa.Array, *levels: Level) -> LeafPart:
    return LeafPart(levels, values)


X = part(pa.array([1, None, 3], "int32"), Level(3, mask(1, 0, 1)), Level(3, mask(1, 0, 1)))
Y = part(pa.array(["a", "b", None]), Level(3, mask(1, 0, 1)), Level(3, mask(1, 1, 0)))


def test_leaves_of_a_struct_join() -> None:
    built = assemble(field_of(POINT), POINT, {1: [X], 2: [Y]}, 3)
    assert built.to_pylist() == [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}]


def test_leaves_whose_pages_end_in_different_places_join() -> None:
    first = part(X.values.slice(0, 1), Level(1, mask(1)), Level(1, None))
    rest = part(X.values.slice(1), Level(2, mask(0, 1)), Level(2, mask(0, 1)))
    built = assemble(field_of(POINT), POINT, {1: [first, rest], 2: [Y]}, 3)
    assert built.to_pylist() == [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}]


def test_missing_leaves_read_as_null() -> None:
    built = assemble(field_of(POINT), POINT, {2: [Y]}, 3)
    assert built.to_pylist() == [{"x": None, "y": "a"}, None, {"x": None, "y": None}]
    assert assemble(field_of(POINT), POINT, {}, 2).to_pylist() == [None, None]
    lists = pa.list_(POINT)
    rows = Level(2, None, offsets(0, 2, 3))
    inner = part(pa.array([1, 2, 3], "int32"), rows, Level(3, None), Level(3, None))
    built = assemble(field_of(lists), lists, {2: [inner]}, 2)
    assert built.to_pylist() == [
        [{"x": 1, "y": None}, {"x": 2, "y": None}],
        [{"x": 3, "y": None}],
    ]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int32())])
def test_lists_get_offsets_of_their_type(kind: pa.DataType) -> None:
    level = Level(3, mask(1, 0, 1), offsets(0, 2, 2, 3))
    items = part(pa.array([1, 2, 3], "int32"), level, Level(3, None))
    built = assemble(field_of(kind), kind, {1: [items, items]}, 6)
    assert built.type == kind
    assert built.num_chunks == 2
    assert built.to_pylist() == [[1, 2], None, [3]] * 2


def test_parts_of_one_leaf_join() -> None:
    joined = concat_parts([X, X])
    assert joined.num_rows == 6
    assert joined.values.to_pylist() == [1, None, 3, 1, None, 3]
    assert concat_parts([X]) is X


SHORT = part(pa.array([1, 2], "int32"), Level(2, None), Level(2, None))
LISTED = Level(3, None, offsets(0, 1, 2, 3))


@pytest.mark.parametrize(
    ("kind", "found", "reason"),
    [
        (POINT, {1: [SHORT], 2: [Y]}, "2 rows in every leaf"),
        (POINT, {1: [part(SHORT.values, Level(3, None), Level(2, None))]}, "3 values of field 'x'"),
        (
            pa.list_(pa.int32()),
            {1: [part(SHORT.values, LISTED, Level(2, None))]},
            "3 values of field 'item'",
        ),
        (pa.list_(pa.int32()), {1: [part(X.values, Level(3, None), Level(3, None))]}, "structs"),
        (POINT, {1: [part(X.values, LISTED, Level(3, None))]}, "lists"),
    ],
)
def test_leaves_that_do_not_fit_together_are_refused(
    kind: pa.DataType, found: dict[int, list[LeafPart]], reason: str
) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        assemble(field_of(kind), kind, found, 3)


def test_a_fixed_size_list_with_too_few_structs_is_refused() -> None:
    kind = pa.list_(POINT, 2)
    inner = part(X.values, Level(3, None), Level(3, None), Level(3, None))
    with pytest.raises(CorruptFileError, match="6 values of field"):
        assemble(field_of(kind), kind, {2: [inner]}, 3)


def test_a_fixed_size_list_of_structs_inside_a_list_is_refused() -> None:
    above = ((0, pa.list_(pa.list_(POINT, 2))), (1, pa.list_(POINT, 2)))
    with pytest.raises(NotSupportedError, match="inside lists"):
        _ = Leaf(3, "a.item.item.x", pa.int32(), 4, above).items_per_row


def test_more_items_than_an_offset_can_hold_are_refused() -> None:
    kind = pa.list_(pa.null())
    level = Level(1, None, offsets(0, 2**31))
    items = part(pa.nulls(2**31), level, Level(2**31, None))
    with pytest.raises(CorruptFileError, match="list items in one read"):
        assemble(field_of(kind), kind, {1: [items]}, 1)


def test_fields_of_structs_inside_a_packed_struct_are_chosen_by_their_ids():
    written = (PackedField(1, (PackedField(2), PackedField(3))), PackedField(4))
    wanted = (PackedField(1, (PackedField(3), PackedField(9))),)
    inner = pa.struct([("a", pa.float32()), ("c", pa.int32())])
    stored = pa.array(
        [{"v": {"a": 1.0, "c": 2}, "m": 3}, None, {"v": None, "m": 4}],
        pa.struct([("v", inner), ("m", pa.int32())]),
    )
    narrow = pa.struct([("v", pa.struct([("c", pa.int32()), ("new", pa.string())]))])
    found = narrowed(
        stored,
        Leaf(0, "p", stored.type, 1, children=written),
        Leaf(0, "p", narrow, 1, children=wanted),
    )
    assert found.type == narrow
    assert found.to_pylist() == [{"v": {"c": 2, "new": None}}, None, {"v": None}]


def test_structs_of_leaves_from_two_files_are_there_where_either_says_so() -> None:
    other = part(pa.array(["a", "b", None]), Level(3, mask(1, 1, 0)), Level(3, mask(1, 1, 0)))
    built = assemble(field_of(POINT), POINT, {1: [X], 2: [other]}, 3)
    assert built.to_pylist() == [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 3, "y": None}]


def test_a_struct_of_two_files_has_no_nulls_where_one_file_has_none() -> None:
    full = part(pa.array(["a", "b", "c"]), Level(3, None), Level(3, None))
    expected = [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 3, "y": "c"}]
    assert assemble(field_of(POINT), POINT, {1: [X], 2: [full]}, 3).to_pylist() == expected


EMPTY = pa.struct([])


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_rows_of_an_empty_struct_stand_for_all_around_it(depth: int) -> None:
    leaf = Leaf(0, "c", EMPTY, depth)
    found = leaf_part(leaf, DecodedPage(PackedStruct(3, ()), None, None, (ITEM,)), 3)
    assert [level.length for level in found.levels] == [3] * depth
    assert found.values.to_pylist() == [{}] * 3


def test_one_level_is_no_nesting_of_other_types() -> None:
    with pytest.raises(CorruptFileError, match="2 nesting layers"):
        leaf_part(Leaf(0, "c", pa.int32(), 2), page([ITEM], 3), 3)


def test_leaves_of_two_files_tell_together_where_a_struct_is() -> None:
    """One file has null structs where the other, written later, has some: those are there."""
    first = part(pa.array([1, None, 3, None], "int32"), Level(4, mask(1, 0, 1, 0)), Level(4, None))
    later = part(pa.array(["a", "b", None, None]), Level(4, mask(1, 1, 0, 0)), Level(4, None))
    built = assemble(field_of(POINT), POINT, {1: [first], 2: [later]}, 4)
    assert built.to_pylist() == [
        {"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 3, "y": None}, None
    ]  # fmt: skip
    every = part(pa.array(["a", "b", "c", "d"]), Level(4, None), Level(4, None))
    built = assemble(field_of(POINT), POINT, {1: [first], 2: [every]}, 4)
    assert built.to_pylist() == [
        {"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 3, "y": "c"}, {"x": None, "y": "d"}
    ]  # fmt: skip


def test_leaves_of_other_numbers_of_values_are_damage() -> None:
    short = part(pa.array(["a", "b"]), Level(3, mask(1, 0)), Level(2, None))
    with pytest.raises(CorruptFileError, match="3 values in every leaf"):
        assemble(field_of(POINT), POINT, {1: [X], 2: [short]}, 3)


def test_more_items_than_32_bits_count_need_large_lists() -> None:
    level = Level(1, None, offsets(0, 2**31))
    items = LeafPart((level, Level(2**31, None)), pa.nulls(2**31))
    for kind, fits in ((pa.list_(pa.null()), False), (pa.large_list(pa.null()), True)):
        if fits:
            assert len(assemble(field_of(kind), kind, {1: [items]}, 1).chunk(0).values) == 2**31
        else:
            with pytest.raises(CorruptFileError, match="list items in one read"):
                assemble(field_of(kind), kind, {1: [items]}, 1)
    most = LeafPart((Level(1, None, offsets(0, 2**31 - 1)), Level(1, None)), pa.nulls(2**31 - 1))
    kind = pa.list_(pa.null())
    assert len(assemble(field_of(kind), kind, {1: [most]}, 1).chunk(0).values) == 2**31 - 1


def test_extension_types_of_structs_are_wrapped_around_them() -> None:
    kind = pa.struct([("x", pa.int32()), ("u", pa.uuid())])
    ids = pa.array([b"0" * 16, None, b"1" * 16], pa.binary(16))
    found = {1: [X], 2: [part(ids, Level(3, None), Level(3, None))]}
    built = assemble(field_of(kind), kind, found, 3)
    assert built.type == kind
    assert built.chunk(0).field("u").storage.to_pylist() == ids.to_pylist()
