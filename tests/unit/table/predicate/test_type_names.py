"""Names of Arrow types: read, written, and refused with what is wrong."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.type_names import CHARS_MAX, DEPTH_MAX, shown_type, type_named

POINT = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field('a "b', pa.string())])
# The name that is written, the type, and other names of it.
NAMES: list[tuple[str, pa.DataType, tuple[str, ...]]] = [
    ("Boolean", pa.bool_(), (" Boolean ",)), ("Int8", pa.int8(), ()), ("UInt64", pa.uint64(), ()),
    ("Float16", pa.float16(), ()), ("Utf8", pa.string(), ()), ("Utf8View", pa.string_view(), ()),
    ("LargeBinary", pa.large_binary(), ()), ("Date64", pa.date64(), ()), ("Null", pa.null(), ()),
    ("Timestamp(s)", pa.timestamp("s"), ("Timestamp(Second, None)", "Timestamp( Second ,None )")),
    ("Timestamp(µs)", pa.timestamp("us"), ("Timestamp(us)", "Timestamp(Microsecond, None)")),
    ('Timestamp(ns, "UTC")', pa.timestamp("ns", "UTC"),
     ('Timestamp(Nanosecond, Some("UTC"))', 'Timestamp(ns, Some("UTC"))')),
    ('Timestamp(ms, "+02:00")', pa.timestamp("ms", "+02:00"), ()),
    ("Time32(s)", pa.time32("s"), ("Time32(Second)",)), ("Time32(ms)", pa.time32("ms"), ()),
    ("Time64(µs)", pa.time64("us"), ("Time64(Microsecond)",)), ("Time64(ns)", pa.time64("ns"), ()),
    ("Duration(s)", pa.duration("s"), ("Duration(Second)",)),
    ("Duration(ns)", pa.duration("ns"), ("Duration(Nanosecond)",)),
    ("Decimal128(10, 2)", pa.decimal128(10, 2), ("Decimal128(10,2)",)),
    ("Decimal128(38, -3)", pa.decimal128(38, -3), ()), ("Decimal32(9, 9)", pa.decimal32(9, 9), ()),
    ("Decimal64(18, 0)", pa.decimal64(18, 0), ()), ("Decimal256(76, 5)", pa.decimal256(76, 5), ()),
    ("FixedSizeBinary(16)", pa.binary(16), ()),
    ("Dictionary(Int8, Utf8)", pa.dictionary(pa.int8(), pa.string()), ()),
    ("List(Int64)", pa.list_(pa.int64()), ("List(nullable Int64)",)),
    ("List(non-null Int64)", pa.list_(pa.field("item", pa.int64(), nullable=False)), ()),
    ("List(Int64, field: 'element')", pa.list_(pa.field("element", pa.int64())), ()),
    ("LargeList(List(Utf8))", pa.large_list(pa.list_(pa.string())), ()),
    ("FixedSizeList(4 x Float32)", pa.list_(pa.float32(), 4), ("FixedSizeList(4, Float32)",)),
    (r'Struct("x": non-null Int32, "a \"b": Utf8)', POINT, ()), ("Struct()", pa.struct([]), ()),
    ('Map("entries": non-null Struct("key": non-null Utf8, "value": Int64), unsorted)',
     pa.map_(pa.string(), pa.int64()),
     ('Map("entries": Struct("key": Utf8, "value": Int64), unsorted)',)),
    ('Map("entries": non-null Struct("key": non-null Int8, "value": non-null Int8), sorted)',
     pa.map_(pa.int8(), pa.field("value", pa.int8(), nullable=False), keys_sorted=True), ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "type_", "others"), NAMES, ids=[one[0] for one in NAMES])
def test_a_type_has_one_name_that_is_written_and_some_that_are_read(
    name: str, type_: pa.DataType, others: tuple[str, ...]
) -> None:
    assert shown_type(type_) == name
    for one in (name, *others):
        found = type_named(one)
        assert found == type_
        assert str(found) == str(type_)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Int65", "unknown type 'Int65'"), ("int64", "unknown type 'int64'"),
        ("", "ends too early"),
        ("Int64 Int8", "unexpected 'Int8' after the type"), ("List(Int64", "ends too early"),
        ("List Int64", "expected '(', not 'Int64'"), ("List(Int64, name: 'x')", "expected 'field'"),
        ("Int64?", "unexpected '?' at character 5"), ("'Int64'", "expected a word"),
        ("Timestamp(Minute)", "no unit 'Minute'"), ("Time32(us)", "no unit 'us'"),
        ("Time64(s)", "no unit 's'"), ('Timestamp(s, "")', "the time zone is empty"),
        ("Timestamp(s, UTC)", "expected a text"), ("Decimal128(39, 0)", "1 to 38 digits"),
        ("Decimal32(10, 0)", "1 to 9 digits"), ("Decimal64(0, 0)", "1 to 18 digits"),
        ("Decimal256(77, 0)", "1 to 76 digits"), ("Decimal128(5, 39)", "digits"),
        ("Decimal128(5, -129)", "digits"), ("Decimal128(12345678901, 0)", "too large"),
        ("FixedSizeBinary(-1)", "-1 bytes"), ("FixedSizeBinary(2147483648)", "2147483648 bytes"),
        ("FixedSizeList(0, Int8)", "a list of 0 elements"),
        ("FixedSizeList(2147483648 x Int8)", "elements"),
        ("Dictionary(Utf8, Utf8)", "integers as indices"), ("Struct(x: Int8)", "expected a text"),
        ('Map("entries": Int8, unsorted)', "a map is"),
        ('Map("e": Struct("k": Int8, "v": Int8), maybe)', "a map is"),
        ('Map("e": Struct("k": Int8), sorted)', "a key and a value"),
    ],
)  # fmt: skip
def test_what_is_no_name_of_a_type_is_reported(name: str, problem: str) -> None:
    with pytest.raises(PredicateError) as found:
        type_named(name)

    assert problem in str(found.value)
    assert f"no Arrow type named {name!r}" in str(found.value)


def test_names_are_bounded() -> None:
    deepest = "List(" * DEPTH_MAX + "Int8" + ")" * DEPTH_MAX
    assert str(type_named(deepest)).count("list<") == DEPTH_MAX
    with pytest.raises(PredicateError, match=f"nested more than {DEPTH_MAX} deep"):
        type_named(f"List({deepest})")
    longest = "Int8" + " " * (CHARS_MAX - 4)
    assert type_named(longest) == pa.int8()
    with pytest.raises(PredicateError, match="more than 10,000 characters") as found:
        type_named(longest + " ")
    assert "…" in str(found.value)


@pytest.mark.parametrize("type_", [pa.list_view(pa.int8()), pa.month_day_nano_interval()], ids=str)
def test_types_without_a_name_are_refused(type_: pa.DataType) -> None:
    with pytest.raises(PredicateError, match="arrow_typeof does not name"):
        shown_type(type_)
