"""Expressions as columns of take, names of Arrow types, and added columns of NULL, as pylance."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

_TABLE = pa.table({
    "i": pa.array([1, None, 3, 4, 5, 6], pa.int64()), "s": ["1", "x", None, "ü", "", "6"],
    "l": pa.array([[1, 2], None, [], [None], [5], [6]], pa.list_(pa.int64())),
    "f": [1.5, None, -2.5, 1e10, 0.0, 2.0], "ts": pa.array(range(6), pa.timestamp("us")),
    "st": [{"x": k, "y": {"z": str(k)}} for k in range(6)],
})  # fmt: skip
Both = tuple[Any, Any]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """The same dataset of two fragments with a deleted row in our reader and in pylance."""
    path = str(tmp_path_factory.mktemp("computed") / "data")
    theirs = require_pylance().write_dataset(_TABLE, path, max_rows_per_file=4)
    theirs.delete("i = 3")
    theirs.create_branch("dev")
    return lance_nb.dataset(path), require_pylance().dataset(path)


EXPRESSIONS: tuple[dict[str, str], ...] = (
    {"x": "i * 2"}, {"x": "i * 2", "s": "s"}, {"x": "st.x", "y": "st.y.z"}, {"a": "_rowaddr"},
    {"x": "upper(s)", "id": "_rowid"}, {"w": "st", "l": "l"}, {"_rowid": "i"}, {"x": "1 + 1"},
)  # fmt: skip


@pytest.mark.parametrize("columns", EXPRESSIONS, ids=str)
def test_take_computes_the_columns_that_pylance_computes(
    both: Both, columns: dict[str, str]
) -> None:
    ours, theirs = both
    # pylance 14.0.2 refuses an expression without columns where a fragment has none to read.
    for positions in ([4, 0, 2, 2], [1], []) if "1 + 1" not in columns.values() else ([],):
        expected = theirs.take(positions, columns=columns)
        assert ours.take(positions, columns=columns).equals(expected)
    if "1 + 1" not in columns.values():
        branches = [one.checkout_version(("dev", None)) for one in both]
        taken = [one.take([3, 1], columns=columns) for one in branches]
        assert taken[0].equals(taken[1])
        assert ours.head(2, columns=columns).equals(theirs.head(2, columns=columns))
    assert ours.sample(3, columns=columns).num_rows == 3
    fragment, scanned = ours.get_fragments()[1], ours.to_table(columns=columns)
    assert fragment.take([1, 0], columns=columns).equals(scanned.take([4, 3]))
    ids = ours.to_table([], with_row_id=True)["_rowid"]
    assert ours.take_rows(ids.take([3, 1]), columns=columns).equals(scanned.take([3, 1]))


def test_take_refuses_expressions_that_cannot_be_computed(both: Both) -> None:
    for dataset in both:
        with pytest.raises((ValueError, OSError), match="nope"):
            dataset.take([0], columns={"x": "nope + 1"})


TYPES = (
    "Null", "Boolean", "Int8", "UInt64", "Float16", "Float64", "Utf8", "LargeUtf8", "Utf8View",
    "Binary", "BinaryView", "LargeBinary", "Date32", "Date64", "Timestamp(Second,None)",
    'Timestamp(Nanosecond, Some("UTC"))', 'Timestamp(Microsecond, Some("Europe/Berlin"))',
    "Timestamp(ns)", 'Timestamp(us, "UTC")', "Timestamp(µs)", "Time32(Second)", "Time32(s)",
    "Time64(Nanosecond)", "Time64(ns)", "Duration(Second)", "Duration(ms)", "FixedSizeBinary(4)",
    "FixedSizeBinary(0)", "Decimal32(5, 2)", "Decimal64(10, 2)", "Decimal128(10, 2)",
    "Decimal128(10,-2)", "Decimal128(39, 2)", "Decimal256(76, 2)", "Decimal128(5, 7)",
    "Decimal128(10)", "List(Int64)", "List(nullable Int64)", "List(non-null Int64)",
    "List(Int64, field: 'x')", "LargeList(Utf8)", "List(List(Int32))", "FixedSizeList(4, Float32)",
    "FixedSizeList(4 x Float32)", "FixedSizeList(4 x non-null Float32, field: 'v')", "Struct()",
    'Struct("a": Int64)', 'Struct("a": nullable Int64, "b": non-null Utf8)', "Struct(a Int64)",
    'Struct("a": List(Int64))', "Map(Utf8, Int64)", "Dictionary(Int32, Utf8)",
    'Map("entries": Struct("key": Utf8, "value": Int64), unsorted)',
    'Map("entries": non-null Struct("key": non-null Utf8, "value": Int64), unsorted)',
    "Dictionary(Int8, LargeUtf8)", "Dictionary(UInt16, Int64)", "int64", " Int64 ", "Int64 x",
    "Foo", "List(Foo)", "List", "Timestamp", "List<Int64>", "Timestamp(Nanosecond, Some(UTC))",
    "Timestamp(Nanosecond, 'UTC')", 'Timestamp(Nanosecond, Some(""))', "Timestamp(Hour, None)",
)  # fmt: skip


def _cast(dataset: Any, expression: str) -> Any:
    try:
        column = dataset.to_table(columns={"i": "i", "v": expression})["v"]
    except (ValueError, OSError, pa.ArrowException):
        return "refused"
    return str(column.type), column.to_pylist()


@pytest.mark.parametrize("name", TYPES)
def test_names_of_arrow_types_are_those_of_pylance(both: Both, name: str) -> None:
    ours, theirs = both
    quoted = name.replace("'", "''")
    expression = f"arrow_cast(NULL, '{quoted}')"
    expected = _cast(theirs, expression)
    assert _cast(ours, expression) == expected
    if expected != "refused" and '"entries": Struct' not in name:  # keys of pyarrow are not null
        shown = f"arrow_typeof(arrow_cast(NULL, '{quoted}'))"
        assert _cast(ours, shown) == _cast(theirs, shown)


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("i", "List(Int64)"), ("i", "List(List(Int32))"), ("l", "List(List(Int32))"),
        ("l", "LargeList(Int64)"), ("s", "LargeList(Utf8)"), ("f", "LargeList(Utf8)"),
        ("i", "Dictionary(Int32, Utf8)"), ("s", "Dictionary(Int8, LargeUtf8)"),
        ("ts", "Int32"), ("ts", "Float64"), ("ts", "Utf8View"), ("ts", "Time32(Second)"),
        ("ts", 'Timestamp(s, "UTC")'), ("f", "Timestamp(Second, None)"), ("f", "Duration(ms)"),
        ("i", "Date32"),
    ],
)  # fmt: skip
def test_casts_to_arrow_types_give_the_values_of_pylance(
    both: Both, column: str, name: str
) -> None:
    ours, theirs = both
    expression = f"arrow_cast({column}, '{name}')"
    expected = _cast(theirs, expression)
    assert expected != "refused"
    assert _cast(ours, expression) == expected


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    "columns",
    [
        {"b": "CAST(NULL AS INT)"}, {"b": "(CAST((NULL) AS BIGINT)) -- comment"},
        {"b": "CAST(NULL AS INT)", "c": "CAST(NULL AS string)"}, {"b": "NULL::int"},
        {"b": "CAST(NULL AS INT)", "c": "a * 2"}, {"b": "NULL"}, {"b": "TRY_CAST(NULL AS INT)"},
        {"b": "CAST(CAST(NULL AS INT) AS BIGINT)"}, {"b": "nullif(1, 1)"}, {"b": "NULL + 1"},
        {"b": "arrow_cast(NULL, 'FixedSizeList(4, Float32)')"},
    ],
    ids=str,
)  # fmt: skip
def test_a_column_that_is_a_cast_of_null_needs_no_files_where_pylance_writes_none(
    tmp_path: Any, columns: dict[str, str], version: str
) -> None:
    lance = require_pylance()
    found = []
    for module, name in ((lance, "theirs"), (lance_nb, "ours")):
        path = str(tmp_path / name)
        lance.write_dataset(
            pa.table({"a": [1, 2, 3]}), path, max_rows_per_file=2, data_storage_version=version
        )
        module.dataset(path).add_columns(columns)
        made = lance.dataset(path)
        files = [[list(one.fields) for one in part.data_files()] for part in made.get_fragments()]
        operation = type(made.read_transaction(made.version).operation).__name__
        found.append((files, operation, made.schema, made.to_table().to_pydict()))
    assert found[0] == found[1]
