"""What the differential generator found: wrong only where several features meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError, SchemaMismatchError
from lance_nb.table.ordering import ColumnOrdering
from tests.support.reading import decoded, same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
VERSIONS = ("2.1", "2.2")


def both(path: Path, table: pa.Table, **options: Any) -> tuple[Any, Any]:
    """Write a dataset with pylance; open it with both libraries."""
    lance = require_pylance()
    lance.write_dataset(table, str(path), **options)
    return lance_nb.dataset(str(path)), lance.dataset(str(path))


def assert_equal(ours: pa.Table, theirs: pa.Table) -> None:
    assert ours.schema.equals(theirs.schema, check_metadata=True), (ours.schema, theirs.schema)
    for name, got, expected in zip(ours.column_names, ours.columns, theirs.columns, strict=True):
        assert same(got, expected), name


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("hidden", [True, False], ids=["values below nulls", "nulls below nulls"])
def test_pylance_finds_the_nulls_of_a_child_of_null_structs(
    tmp_path: Path, version: str, hidden: bool
) -> None:
    lance = require_pylance()
    gone = pa.array([True, True, False, True])
    child = pa.array([1, 2, 3, 4], pa.int32(), mask=None if hidden else gone.to_numpy(False))
    inner = pa.StructArray.from_arrays([child], ["a"])
    structs = pa.StructArray.from_arrays([child, inner], ["a", "s"], mask=gone)
    lance_nb.write_dataset(pa.table({"c": structs}), tmp_path / "d", data_storage_version=version)
    theirs = lance.dataset(str(tmp_path / "d"))
    assert theirs.count_rows("c.a IS NULL") == 3
    assert theirs.count_rows("c.s.a IS NULL") == 3


@pytest.mark.parametrize("columns", [["_rowaddr", "k"], ["k", "_rowid", "b"], ["_rowaddr", "b"]])
def test_payloads_and_row_columns_stay_in_their_places(tmp_path: Path, columns: list[str]) -> None:
    blobs = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([[5, 6], [b"x", None]], schema=pa.schema([pa.field("k", pa.int64()), blobs]))
    ours, theirs = both(tmp_path / "d", table, data_storage_version="2.1")
    options = {"columns": columns, "blob_handling": "all_binary"}
    assert_equal(ours.to_table(**options), theirs.to_table(**options))


NUMBERS = pa.schema([
    pa.field("i8", pa.int8()), pa.field("f32", pa.float32()),
    pa.field("nn", pa.int64(), nullable=False), pa.field("b", pa.bool_()),
    pa.field("s", pa.string(), metadata={"note": "kept"}),
])  # fmt: skip


@pytest.mark.parametrize("text", [
    "CAST(i8 AS double) * 2", "2 * CAST(i8 AS double)", "CAST(f32 AS double) + 1.5", "i8 + 1",
    "CAST(i8 AS bigint) + 1", "i8 + CAST(1 AS bigint)", "i8 IS NOT NULL", "nn + 1", "-nn",
    "coalesce(i8, 0)", "coalesce(i8, f32)", "nn = 1 OR b", "nn = 1 AND nn = 2", "NOT nn = 1",
    "nn IN (1, 2)", "nn IN (1, NULL)", "nn BETWEEN 1 AND 2", "nn BETWEEN 1 AND i8", "abs(nn)",
    "CAST(nn AS string)", "TRY_CAST(nn AS string)", "CAST(nn AS string) LIKE 'a%'",
    "CAST(nn AS string) || 'x'", "nn IS DISTINCT FROM 1", "i8 IS DISTINCT FROM nn",
    "nvl2(i8, nn, 2)", "nvl2(nn, i8, 2)", "s",
])  # fmt: skip
def test_a_computed_column_has_the_type_and_nullability_of_pylance(
    tmp_path: Path, text: str
) -> None:
    rows = [{"i8": 1, "f32": 0.5, "nn": 1, "b": None, "s": "a"},
            {"i8": None, "f32": None, "nn": 2, "b": True, "s": None}]  # fmt: skip
    ours, theirs = both(tmp_path / "d", pa.Table.from_pylist(rows, NUMBERS))
    assert_equal(ours.to_table(columns={"e": text}), theirs.to_table(columns={"e": text}))
    ours.add_columns({"e": text})
    found = require_pylance().dataset(str(tmp_path / "d")).schema.field("e")
    theirs = require_pylance().dataset(str(tmp_path / "d"), version=1)
    theirs.restore()
    theirs.add_columns({"e": text})
    assert found.equals(theirs.schema.field("e"), check_metadata=True)


def test_a_fraction_is_not_cut_to_fit_a_column_of_integers(tmp_path: Path) -> None:
    ours = lance_nb.write_dataset(pa.table({"i": [1, 5]}), tmp_path / "d")
    assert ours.to_table(columns={"e": "i + 1.5"})["e"].to_pylist() == [2.5, 6.5]


def test_columns_of_registered_types_are_filtered_by_other_columns(tmp_path: Path) -> None:
    require_pylance()
    from lance.arrow import BFloat16Type

    halves = pa.ExtensionArray.from_storage(
        BFloat16Type(), pa.array([b"\x00\x3f", b"\x80\x3f"], pa.binary(2))
    )
    ours, theirs = both(tmp_path / "d", pa.table({"k": [1, 2], "h": halves}))
    condition = "k = 2 OR h IS NULL"
    assert_equal(ours.to_table(filter=condition), theirs.to_table(filter=condition))


def test_a_quoted_name_stands_beside_a_row_offset(tmp_path: Path) -> None:
    ours, theirs = both(tmp_path / "d", pa.table({"Mixed Case": [1, 2], "k": [3, 4]}))
    got = ours.to_table(columns=["`Mixed Case`", "_rowoffset", "k"])
    assert_equal(got, theirs.to_table(columns=["Mixed Case", "_rowoffset", "k"]))


_NAN = float("nan")
KEYS = {
    "null keys": ([1, None, 3], [None, 3]),
    "null keys on the left only": ([1, None, 3], [1, 3]),
    "null keys twice": ([1, 2, None], [1, 1, None, None]),
    "zeros of two signs and NaN": ([0.0, -0.0, _NAN, None], [-0.0, _NAN]),
    "texts": (["a", None, ""], ["", None]),
    "booleans": ([True, None, False], [None, True]),
    "float16": (np.array([1, 2, 3], np.float16), np.array([3, 1], np.float16)),
    "dictionary": (pa.array(["a", "b", "a"]).dictionary_encode(),) * 2,
    "bytes of one width": (pa.array([b"ab", b"cd"], pa.binary(2)),) * 2,
}


@pytest.mark.parametrize("verb", ["merge", "update_columns"])
@pytest.mark.parametrize("case", KEYS)
def test_keys_of_every_kind_find_the_rows_that_pylance_finds(
    tmp_path: Path, case: str, verb: str
) -> None:
    lance = require_pylance()
    left, right = (pa.array(keys) for keys in KEYS[case])
    new = "w" if verb == "merge" else "v"
    table = pa.table({"k": left, "v": range(len(left))})
    other = pa.table({"k": right, new: [10 * (at + 1) for at in range(len(right))]})
    answers = []
    for library in (lance, lance_nb):
        uri = str(tmp_path / library.__name__)
        dataset = library.write_dataset(table, uri)
        if verb == "merge":
            dataset.merge(other, "k")
        else:
            fragment, fields = dataset.get_fragments()[0].update_columns(other, "k", "k")[:2]
            change = library.LanceOperation.Update([], [fragment], fields_modified=fields)
            library.LanceDataset.commit(uri, change, read_version=1)
        answers.append(library.dataset(uri).to_table(columns=[new])[new].to_pylist())
    assert answers[0] == answers[1]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_join_keeps_a_column_that_must_not_be_null(tmp_path: Path, deleted: bool) -> None:
    ours, theirs = both(tmp_path / "d", pa.table({"k": [1, 2, 3]}))
    required = pa.schema([pa.field("k", pa.int64()), pa.field("n", pa.bool_(), nullable=False)])
    right = pa.table([[1, 3], [True, False]], schema=required)
    if not deleted:
        with pytest.raises(SchemaMismatchError, match="rows without a matching key: 1"):
            ours.merge(right, "k")
        with pytest.raises(OSError, match="non-nullable"):
            theirs.merge(right, "k")
        return
    ours.delete("k = 2")
    ours.merge(right, "k")
    theirs.checkout_latest()
    assert theirs.schema.field("n").nullable is False
    assert_equal(ours.to_table(), theirs.to_table())
    assert theirs.to_table()["n"].to_pylist() == [True, False]


NESTED_EXTENSIONS = pa.schema([
    ("s", pa.struct([("t", pa.fixed_shape_tensor(pa.float32(), [2]))])),
    ("u", pa.list_(pa.uuid())),
])  # fmt: skip


@pytest.mark.parametrize(
    "options", [{}, {"filter": "u IS NULL"}, {"order_by": ["k"]}, {"limit": 0}, {"columns": ["s"]}]
)
def test_no_rows_of_nested_extension_types(tmp_path: Path, options: dict[str, Any]) -> None:
    schema = NESTED_EXTENSIONS.append(pa.field("k", pa.int64()))
    ours, _ = both(tmp_path / "d", pa.Table.from_batches([], schema))
    found = ours.to_table(**options)
    assert found.num_rows == 0
    assert found.schema.equals(pa.schema([schema.field(name) for name in found.column_names]))
    assert ours.take([]).num_rows == 0


def test_the_offset_of_a_row_counts_live_rows_only(tmp_path: Path) -> None:
    ours, theirs = both(tmp_path / "d", pa.table({"k": range(10)}), max_rows_per_file=5)
    ours.delete("k IN (0, 2, 3, 7)")
    theirs.checkout_latest()
    for condition in (None, "k > 2"):
        options = {"include_deleted_rows": True, "with_row_id": True, "filter": condition}
        got = ours.scanner(columns=["k", "_rowoffset"], **options).to_table()
        want = theirs.scanner(columns=["k", "_rowoffset"], **options).to_table()
        assert got.to_pydict() == want.to_pydict()


FIELDS_OF_NULLS = [
    pa.field("n", pa.list_(pa.map_(pa.string(), pa.int32()))),
    pa.field("n", pa.struct([pa.field("a", pa.int32(), nullable=False)])),
    pa.field("n", pa.list_(pa.field("item", pa.int32(), nullable=False))),
    pa.field("s", pa.struct([("b", pa.struct([pa.field("c", pa.int32(), nullable=False)]))])),
]


@pytest.mark.parametrize("field", FIELDS_OF_NULLS, ids=lambda one: str(one.type))
def test_what_is_below_a_column_of_nulls_may_be_required(tmp_path: Path, field: pa.Field) -> None:
    lance = require_pylance()
    table = pa.table({"k": [1, 2], "s": [{"x": 1}, None]})
    ours, _ = both(tmp_path / "ours", table)
    _, theirs = both(tmp_path / "theirs", table)
    theirs.add_columns(field)
    ours.add_columns(field)
    assert_equal(ours.to_table(), theirs.to_table())
    assert_equal(lance.dataset(str(tmp_path / "ours")).to_table(), theirs.to_table())


def test_a_field_of_null_type_comes_without_a_bitmap(tmp_path: Path) -> None:
    structs = pa.array([{"n": None}, None], pa.struct([("n", pa.null())]))
    ours, theirs = both(tmp_path / "d", pa.table({"s": structs}))
    got, want = (one.to_table(columns=["s.n"])["s.n"] for one in (ours, theirs))
    assert got.equals(want)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("ascending", [True, False])
def test_floats_are_ordered_by_their_bits(tmp_path: Path, kind: str, ascending: bool) -> None:
    require_pylance()
    from lance.dataset import ColumnOrdering as TheirOrdering

    values = np.array([np.nan, -np.nan, 0.0, -0.0, 1, np.inf, -np.inf, -1, 0.0, -0.0], kind)
    payload = values[:1].view(f"u{values.itemsize}") + 5
    values = np.concatenate([values, payload.view(kind)])
    table = pa.table({"f": pa.array(values), "i": range(len(values)), "n": pa.nulls(len(values))})
    ours, theirs = both(tmp_path / "d", table)
    for name in ("f", "n"):
        got, want = (
            dataset.to_table(order_by=[ordering(name, ascending), ordering("i")])
            for dataset, ordering in ((ours, ColumnOrdering), (theirs, TheirOrdering))
        )
        assert_equal(got, want)


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_views_are_added_beside_deleted_rows(tmp_path: Path, kind: pa.DataType) -> None:
    lance = require_pylance()
    ours, _ = both(tmp_path / "d", pa.table({"k": range(4)}))
    ours.delete("k = 1")
    values = pa.array(["a", None, "longer than twelve bytes"]).cast(kind)
    ours.add_columns(pa.table({"v": values}).to_reader())
    assert_equal(ours.to_table(), lance.dataset(str(tmp_path / "d")).to_table())
    found = ours.to_table()["v"].cast(pa.string())
    assert found.to_pylist() == ["a", None, "longer than twelve bytes"]


def test_payloads_of_rows_that_were_appended_without_the_column(tmp_path: Path) -> None:
    lance = require_pylance()
    from lance.blob import blob_array

    ours, theirs = both(tmp_path / "d", pa.table({"k": [1], "b": blob_array([b"x"])}))
    ours.insert(pa.table({"k": [2]}))
    theirs = lance.dataset(str(tmp_path / "d"))
    got, want = (one.to_table(blob_handling="all_binary") for one in (ours, theirs))
    assert got.to_pydict() == want.to_pydict() == {"k": [1, 2], "b": [b"x", None]}
    assert ours.take_blobs("b", indices=[0])[0].readall() == b"x"


def test_a_cast_column_keeps_its_metadata(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("i", pa.int32(), metadata={"unit": "m"})])
    ours, theirs = both(tmp_path / "d", pa.table([[1]], schema=schema))
    columns = {"e": "CAST(i AS string)", "f": "i + 1", "g": "i"}
    assert_equal(ours.to_table(columns=columns), theirs.to_table(columns=columns))


def test_a_source_of_a_type_that_cannot_be_hashed(tmp_path: Path) -> None:
    require_pylance()
    from lance.arrow import BFloat16Type

    halves = pa.ExtensionArray.from_storage(BFloat16Type(), pa.array([b"\0\1"], pa.binary(2)))
    table = pa.table({"k": [1], "h": halves})
    ours, _ = both(tmp_path / "d", table)
    ours.merge_insert("k").when_matched_update_all().execute(table)
    assert ours.to_table().equals(table)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("values", [
    pa.array([1.5, None], pa.float64()),
    pa.array([np.nan, None, -0.0, 0.0, -np.nan], pa.float64()),
    pa.array(["a", None]),
], ids=["number", "floats", "text"])  # fmt: skip
def test_rows_of_dictionaries_with_null_items(
    tmp_path: Path, version: str, values: pa.Array
) -> None:
    keys = pa.array([*range(len(values)), None], pa.int32())
    column = pa.DictionaryArray.from_arrays(keys, values)
    table = pa.table({"k": range(len(column)), "d": column})
    ours, theirs = both(tmp_path / "d", table, data_storage_version=version)
    ours.insert(table.slice(1))
    theirs.checkout_latest()
    picked = [len(column) + 1, 0, 2, 1]
    for got, want in (
        (ours.take(picked), theirs.take(picked)),
        (ours.to_table(order_by=["k"]), theirs.to_table(order_by=["k"])),
        (joined(ours.to_batches(batch_size=5)), theirs.to_table()),
        (ours.to_table(filter="k > 0"), theirs.to_table(filter="k > 0")),
    ):
        assert got.schema == want.schema
        rows = [(table["k"].to_numpy().argsort(kind="stable")) for table in (got, want)]
        one, other = (
            decoded(table["d"]).combine_chunks().take(order)
            for table, order in zip((got, want), rows, strict=True)
        )
        assert same(one, other)


def joined(batches: Any) -> pa.Table:
    return pa.Table.from_batches(batches)


def test_small_fragments_are_counted_with_their_deleted_rows(tmp_path: Path) -> None:
    ours, theirs = both(tmp_path / "d", pa.table({"k": range(50)}), max_rows_per_file=30)
    ours.delete("k < 25")
    theirs.checkout_latest()
    for size in (5, 6, 20, 21, 30, 31):
        assert ours.stats.dataset_stats(size) == theirs.stats.dataset_stats(size)


def test_a_copy_of_a_blob_column_has_its_bytes(tmp_path: Path) -> None:
    blobs = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([[b"x", None]], schema=pa.schema([blobs]))
    ours, theirs = both(tmp_path / "d", table, data_storage_version="2.1")
    ours.add_columns({"c": "b"})
    ours.add_columns({"d": "b IS NULL"})
    theirs.checkout_latest()
    for dataset in (ours, theirs):
        assert dataset.to_table(columns=["c", "d"]).to_pydict() == {
            "c": [b"x", None], "d": [False, True],
        }  # fmt: skip


PACKED = {"lance-encoding:packed": "true"}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_one_field_of_a_packed_struct(tmp_path: Path, version: str) -> None:
    # Not against pylance: of any but the first field it returns values of the first, or panics.
    vectors = pa.float64() if version == "2.1" else pa.list_(pa.float32(), 2)
    fields = [("a", pa.int64()), ("v", vectors), ("b", pa.uint32())]
    rows = [{"a": k, "v": k / 2 if version == "2.1" else [k, 0.5], "b": 2 * k} for k in range(5)]
    schema = pa.schema([pa.field("s", pa.struct(fields), metadata=PACKED)])
    table = pa.Table.from_pylist([{"s": row} for row in rows], schema)
    ours, theirs = both(tmp_path / "d", table, data_storage_version=version)
    for name in ("a", "v", "b"):
        wanted = [row[name] for row in rows]
        assert ours.to_table(columns=[f"s.{name}"])[0].to_pylist() == wanted
        found = ours.take([3, 1], columns=[f"s.{name}"])["s"].to_pylist()
        assert found == [{name: wanted[3]}, {name: wanted[1]}]
    assert ours.count_rows("s.b > 4") == 2
    assert ours.to_table(columns={"x": "s.b"})["x"].to_pylist() == [row["b"] for row in rows]
    theirs.drop_columns(["s.a"])
    ours = lance_nb.dataset(tmp_path / "d")
    assert ours.to_table().to_pylist() == [{"s": {"v": one["v"], "b": one["b"]}} for one in rows]


def test_one_field_of_a_packed_struct_with_text_and_nulls(tmp_path: Path) -> None:
    schema = pa.schema([
        pa.field("s", pa.struct([("a", pa.string()), ("b", pa.uint32())]), metadata=PACKED)
    ])  # fmt: skip
    table = pa.table([[{"a": "x", "b": 1}, {"a": "yy", "b": 2}]], schema=schema)
    ours, _ = both(tmp_path / "d", table)
    assert ours.to_table(columns=["s.a"])[0].to_pylist() == ["x", "yy"]
    assert ours.to_table(columns=["s.b"], filter="s.a = 'yy'")[0].to_pylist() == [2]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_digits_behind_the_unit_of_a_time_are_dropped(tmp_path: Path, unit: str) -> None:
    table = pa.table({"t": pa.array([-1, 0], pa.timestamp(unit))})
    ours, theirs = both(tmp_path / "d", table)
    for text in ("1969-12-31 23:59:59.999999999", "1969-12-31T23:59:59.9Z", "2020-01-01 0:00:00.9"):
        for condition in (f"t = timestamp '{text}'", f"t < timestamp '{text}'"):
            answers = []
            for dataset in (ours, theirs):
                try:
                    answers.append(dataset.count_rows(condition))
                except (ValueError, OSError):
                    answers.append(None)
            assert answers[0] == answers[1], condition


@pytest.mark.parametrize("shape", ["list", "struct"])
def test_nested_dictionaries_with_null_items(tmp_path: Path, shape: str) -> None:
    lance = require_pylance()
    plain = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), pa.array(["a", None]))
    column = {
        "list": pa.ListArray.from_arrays(pa.array([0, 1, None, 4], pa.int32()), plain),
        "struct": pa.StructArray.from_arrays([plain], ["d"], mask=pa.array([False] * 3 + [True])),
    }[shape]
    rows = column.to_pylist()
    table = pa.table({"k": range(len(column)), "c": column})
    chunked = pa.concat_tables([table.slice(1), table.slice(0, 1), table])
    ours = lance_nb.write_dataset(chunked, tmp_path / "d")
    expected = [*rows[1:], rows[0], *rows]
    assert ours.to_table()["c"].to_pylist() == expected
    assert lance.dataset(str(tmp_path / "d")).to_table()["c"].to_pylist() == expected
    assert ours.take([len(rows), 0])["c"].to_pylist() == [rows[0], rows[1]]


TICKS = (-(2**63), -(2**63) + 1, -1000, -1, 0, 1, 999, 1000, 10**9, 2**63 - 1)
MOMENTS = (
    "1970-01-01 00:00:01", "1970-01-01 00:00:00.5", "1969-12-31 23:59:59.5",
    "1969-12-31 23:59:59.999999999", "2300-01-01", "1500-01-01 00:00:00.000001",
)  # fmt: skip


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_are_compared_in_the_coarser_unit(
    tmp_path: Path, unit: str, zone: str | None
) -> None:
    times = pa.array([*TICKS, None], pa.int64()).cast(pa.timestamp(unit, zone))
    ours, theirs = both(tmp_path / "d", pa.table({"i": range(len(times)), "t": times}))
    for text in MOMENTS:
        moment, other = f"timestamp '{text}'", "timestamp '1970-01-01 00:00:02'"
        for condition in (
            *(f"t {sign} {moment}" for sign in ("<", "<=", ">", ">=", "=", "!=")),
            f"t IN ({moment}, {other})", f"t NOT IN ({moment}, {other})",
            f"t BETWEEN {moment} AND {other}", f"t IS DISTINCT FROM {moment}",
        ):  # fmt: skip
            found = [one.to_table(["i"], filter=condition) for one in (ours, theirs)]
            assert found[0] == found[1], condition


@pytest.mark.parametrize(
    "expression",
    ["coalesce(ns, s)", "greatest(s, ns)", "least(ns, ms)", "nullif(ns, s)", "s - ns", "ns = s",
     "ms <= ns", "ns BETWEEN s AND s", "d64 = s", "coalesce(s, timestamp '1970-01-01 00:00:00.7')",
     "ns > CAST('1970-01-01T00:00:00' AS timestamp(0))"],
)  # fmt: skip
def test_columns_of_two_units_meet_in_the_coarser_one(tmp_path: Path, expression: str) -> None:
    ticks = {"s": [0, -1, 1, None], "ms": [999, -1999, 5, 0], "ns": [5 * 10**8, -(10**9) - 1, 0, 7]}
    columns = {
        unit: pa.array(values, pa.int64()).cast(pa.timestamp(unit))
        for unit, values in ticks.items()
    }
    columns["d64"] = pa.array([0, -86_400_000, 1, 2], pa.int64()).cast(pa.date64())
    ours, theirs = both(tmp_path / "d", pa.table(columns))
    assert_equal(*(one.to_table({"x": expression}) for one in (ours, theirs)))


def test_a_time_that_a_finer_unit_cannot_hold_is_an_error(tmp_path: Path) -> None:
    times = pa.array([2**62, 0], pa.int64()).cast(pa.timestamp("s"))
    ours, theirs = both(tmp_path / "d", pa.table({"t": times}))
    for dataset in (ours, theirs):
        with pytest.raises((ValueError, OSError)):
            dataset.to_table({"x": "CAST(t AS timestamp(9))"})
    # pylance takes this moment for null beside nanoseconds, which drops every row
    fine = pa.table({"t": pa.array([0, 1], pa.timestamp("ns"))})
    ours = lance_nb.write_dataset(fine, tmp_path / "fine")
    assert ours.count_rows("t < timestamp '2300-01-01'") == 2


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize(
    "options",
    [
        {"max_rows_per_group": 3}, {"enable_stable_row_ids": True}, {"session": None},
        {"enable_v2_manifest_paths": False}, {"use_legacy_format": False}, {"initial_bases": []},
        {"storage_options": {"a": "b"}}, {"base_store_params": {}}, {"max_rows_per_file": None},
        {"max_bytes_per_file": None}, {"namespace_client": None, "table_id": None},
        {"auto_cleanup_options": {"interval": 1, "older_than_seconds": 1}},
    ],
    ids=lambda options: next(iter(options)),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:use_legacy_format:DeprecationWarning")
def test_insert_takes_the_arguments_of_write_dataset(
    tmp_path: Path, options: dict[str, Any], mode: str
) -> None:
    lance = require_pylance()
    rows, states = pa.table({"a": [1, 2]}), []
    for library in (lance_nb, lance):
        path = str(tmp_path / library.__name__)
        lance.write_dataset(rows, path)
        dataset = library.dataset(path)
        dataset.insert(rows, mode=mode, **options)
        now = lance.dataset(path)
        states.append((dataset.version, now.count_rows(), now.has_stable_row_ids, now.config()))
    assert states[0] == states[1]


@pytest.mark.parametrize("argument", ["initial_bases", "table_id", "base_store_params"])
def test_insert_names_the_arguments_that_it_refuses(tmp_path: Path, argument: str) -> None:
    ours, _ = both(tmp_path / "d", pa.table({"a": [1]}))
    base = lance_nb.DatasetBasePath(str(tmp_path / "b"), name="b")
    given = {"initial_bases": [base], "table_id": ["t"], "base_store_params": {"x": {"k": "v"}}}
    with pytest.raises((ValueError, OSError, NotImplementedError), match=argument):
        ours.insert(pa.table({"a": [2]}), **{argument: given[argument]})
    assert ours.count_rows() == 1


@pytest.mark.parametrize(
    "expression", ["CAST(c AS string)", "concat(c, '')", "TRY_CAST(c AS string)"]
)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_floats_are_written_as_pylance_writes_them(
    tmp_path: Path, width: int, expression: str
) -> None:
    chance = np.random.default_rng(5)
    floats = f"f{width // 8}"
    powers = 10.0 ** np.arange(-12, 25)
    with np.errstate(over="ignore"):
        values = np.concatenate([
            chance.integers(0, 256, 300 * width // 8, np.uint8).view(floats),
            (chance.normal(size=300) * 10.0 ** chance.integers(-9, 19, 300)).astype(floats),
            powers.astype(floats), (-1.5 * powers).astype(floats), (1 / 3 * powers).astype(floats),
            np.array([0.0, -0.0, np.inf, -np.inf, 40672, 1e10, 123456789], floats),
        ])  # fmt: skip
    rows = pa.array(values, mask=np.arange(len(values)) % 50 == 7)
    ours, theirs = both(tmp_path / "d", pa.table({"c": rows}))
    if "TRY" in expression:  # which pylance does not know
        found = ours.to_table({"x": expression})
        assert found == ours.to_table({"x": "CAST(c AS string)"})
    else:
        assert_equal(*(one.to_table({"x": expression}) for one in (ours, theirs)))


def coded(name: str, first: int) -> pa.Table:
    """A hundred rows whose dictionaries have a hundred items of their own."""
    items = pa.array([f"{name}{k}" for k in range(100)])
    values = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), items)
    structs = pa.StructArray.from_arrays([values], ["x"])
    return pa.table({"id": range(first, first + 100), "d": values, "s": structs})


def three_dictionaries(path: Path) -> None:
    lance = require_pylance()
    for number, name in enumerate("abc"):
        lance.write_dataset(coded(name, 100 * number), str(path), mode="append")


@pytest.mark.parametrize("read", [
    "ds.take([250, 3, 120, 3])", "ds.take([250, 3, 120], columns={'y': 'd'})",
    "by_row_id(ds, [2 << 32, 1, 1 << 32])",
    "ds.to_table(order_by=[by('id', False)], limit=3, offset=98)",
    "ds.to_table(filter='id % 50 = 0', order_by=[by('id', False)])",
    "ds.to_table(filter=\"d > 'b' AND id % 2 = 0\")",
    "ds.to_table(columns={'x': 'length(d)', 'y': 'd'})",
    "joined(ds.to_batches(batch_size=64))",
    "joined(ds.to_batches(batch_size=10, strict_batch_size=True, filter='id % 10 = 0'))",
    "ds.scanner(fragments=ds.get_fragments()[::-1]).to_table()",
])  # fmt: skip
def test_dictionaries_of_more_items_than_the_keys_number_are_read(
    tmp_path: Path, read: str
) -> None:
    require_pylance()
    from tests.faults.differential.play import Player

    player = Player(tmp_path)
    three_dictionaries(player.root)
    assert player.read(read, None) is None


@pytest.mark.parametrize("write", [
    "ds.update({'d': \"'b1'\"}, where='id % 3 = 0')",
    "ds.update({'id': 'id + 1000'}, where='id % 3 = 0')",
    "ds.merge(t.rename_columns(['id', 'q', 'r']), 'id')",
    "ds.merge_insert('id').when_matched_update_all().execute(t.slice(0, 20))",
    "lance.write_dataset(t, uri, mode='append', max_rows_per_file=120)",
])  # fmt: skip
def test_dictionaries_of_more_items_than_the_keys_number_are_rewritten(
    tmp_path: Path, write: str
) -> None:
    lance = require_pylance()
    table = pa.concat_tables([coded("x", 290), coded("y", 390), coded("z", 490)])
    found = []
    for module in (lance_nb, lance):
        uri = str(tmp_path / module.__name__)
        three_dictionaries(tmp_path / module.__name__)
        eval(write, {"lance": module, "ds": module.dataset(uri), "uri": uri, "t": table})  # noqa: S307
        found.append(sorted(lance.dataset(uri).to_table().to_pylist(), key=str))
    assert found[0] == found[1]
    assert len(found[0]) >= 300


@pytest.mark.parametrize("read", [
    lambda ds: ds.take(list(range(299, -1, -1))), lambda ds: ds.to_table(order_by=["d"]),
    lambda ds: list(ds.to_batches(batch_size=150, strict_batch_size=True)),
], ids=["take", "order", "strict batches"])  # fmt: skip
def test_rows_that_use_more_items_than_the_keys_number_are_refused(
    tmp_path: Path, read: Any
) -> None:
    lance = require_pylance()
    three_dictionaries(tmp_path / "d")
    with pytest.raises(NotSupportedError, match="more items than the keys can number"):
        read(lance_nb.dataset(str(tmp_path / "d")))
    with pytest.raises((OSError, pa.ArrowInvalid, ValueError), match=r"bigger than|ordering"):
        read(lance.dataset(str(tmp_path / "d")))


@pytest.mark.parametrize(("found", "wanted", "values"), [
    (pa.date32(), pa.timestamp("s"), [-1, 20000, None]), (pa.date32(), pa.timestamp("ns"), [-1]),
    (pa.date64(), pa.timestamp("ms"), [259_200_000]),
    (pa.timestamp("s"), pa.date32(), [0, 1, -1, 259_205, -172_805, None]),
    (pa.timestamp("us", "Europe/Zurich"), pa.date32(), [0, 82_800_000_000, -1]),
], ids=str)  # fmt: skip
def test_dates_become_timestamps_and_back(
    tmp_path: Path, found: pa.DataType, wanted: pa.DataType, values: list[int | None]
) -> None:
    lance = require_pylance()
    numbers = pa.array(values, pa.int32() if found.bit_width == 32 else pa.int64())
    made = []
    for module in (lance_nb, lance):
        uri = str(tmp_path / module.__name__)
        lance.write_dataset(pa.table({"c": numbers.cast(found)}), uri)
        module.dataset(uri).alter_columns({"path": "c", "data_type": wanted})
        made.append(lance.dataset(uri).to_table())
    assert made[0].schema == made[1].schema
    assert made[0].equals(made[1])


@pytest.mark.parametrize(("found", "wanted"), [
    (pa.date32(), pa.timestamp("s", "UTC")), (pa.timestamp("ms"), pa.date64()),
], ids=["zone", "date64"])  # fmt: skip
def test_a_date_of_another_kind_is_refused(
    tmp_path: Path, found: pa.DataType, wanted: pa.DataType
) -> None:
    ds = lance_nb.write_dataset(pa.table({"c": pa.nulls(1, found)}), tmp_path / "d")
    with pytest.raises(SchemaMismatchError, match="of another kind"):
        ds.alter_columns({"path": "c", "data_type": wanted})


def test_a_packed_struct_is_read_beside_several_blob_columns(tmp_path: Path) -> None:
    lance = require_pylance()  # its files list the parts of descriptions once for each column
    packed = pa.struct([("x", pa.int32()), ("s", pa.string())])
    schema = pa.schema([
        lance.blob_field("a"), lance.blob_field("b"),
        pa.field("p", packed, metadata={"lance-encoding:packed": "true"}),
    ])  # fmt: skip
    rows = pa.array([{"x": 1, "s": "t"}], packed)
    table = pa.table([lance.blob_array([b"x"]), lance.blob_array([b"yy"]), rows], schema=schema)
    ours, theirs = both(tmp_path / "d", table)
    assert_equal(ours.to_table(), theirs.to_table())
    assert ours.to_table(columns=["p.s"])["p.s"].to_pylist() == ["t"]
    (file,) = (tmp_path / "d/data").glob("*.lance")
    found, expected = (
        one(str(file)).metadata().schema
        for one in (lance_nb.LanceFileReader, lance.file.LanceFileReader)
    )
    assert found.equals(expected, check_metadata=True)
