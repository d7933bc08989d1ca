"""The other arguments of a scan: expressions as columns, order, batches, deleted rows, nearest."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from tests.support.filter_rows import write_filter_dataset
from tests.support.reading import same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

EXPRESSIONS = [
    "i", "i8 + 1", "i8 + i8", "i / 2", "i % 2", "i32 + i", "u8 + 1", "u8 + i8", "u64 + 1",
    "u64 + i8", "f + 1", "f32 * 2", "f32 + 1.5", "f32 + i8", "dec + 1", "dec * dec", "dec / 2",
    "length(s)", "upper(s)", "s || 'x'", "concat(s, i)", "st.x", "st.y.z", "l", "st", "_rowid",
    "_rowaddr", "_rowoffset", "i = 1", "i > 1 OR b", "cast(i8 as double)", "cast(ts as date)",
    "cast(f as string)", "cast(ts as string)", "array_length(l)", "l[1]", "strpos(s, 'a')",
    "ts - ts", "date_part('year', ts)", "date_trunc('day', ts)", "abs(i32)", "round(f)", "sqrt(f)",
    "power(i8, 2)", "regexp_match(s, 'a')", "regexp_match(s, '(a)(.)')", "coalesce(i8, i)",
    "greatest(i8, 2)", "ascii(s)", "bit_length(s)", "split_part(s, 'a', 1)", "nullif(i, 1)",
    "isnan(f)", "array_has(l, 1)", "regexp_replace(s, 'a', 'b')", "tz", "bin", "`Mixed Case`",
    "d", "vector", "t", "lower(t)", "array_position(l, 1)", "signum(i)", "-i", "NOT b",
]  # fmt: skip
QUERY = [0.1, -0.2, 0.3, 0.4]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same dataset in our reader and in pylance."""
    path = str(tmp_path_factory.mktemp("surface") / "data")
    theirs = write_filter_dataset(require_pylance(), path)
    return lance_nb.dataset(path), theirs


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Compare names, types, order and values to the bit."""
    assert found.column_names == expected.column_names
    assert found.schema.types == expected.schema.types
    for name in expected.column_names:
        assert same(found[name], expected[name]), name


def assert_near(found: pa.Table, expected: pa.Table) -> None:
    """Compare, distances up to rounding."""
    assert found.column_names == expected.column_names
    assert found.schema.types == expected.schema.types
    distances = [name for name in expected.column_names if name in {"_distance", "b"}]
    for name in distances:
        left, right = found[name].to_numpy(), expected[name].to_numpy()
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
    others = [name for name in expected.column_names if name not in distances]
    assert_same(found.select(others), expected.select(others))


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_as_a_column_has_the_type_and_the_values_of_pylance(
    both: Any, text: str
) -> None:
    ours, theirs = both
    columns = {"found": text}

    assert_same(ours.to_table(columns), theirs.to_table(columns))
    assert ours.scanner(columns).projected_schema.types == [ours.to_table(columns)["found"].type]


@pytest.mark.parametrize("options", [
    {"columns": {"a": "i + 1", "b": "s"}, "filter": "i > 0", "limit": 20, "offset": 3},
    {"columns": {"a": "i"}, "with_row_id": True, "filter": "b"},
    {"columns": ["_rowaddr", "i", "_rowid", "_rowoffset"], "filter": "i > 2"},
    {"columns": ["st.x", "st.y.z", "id"], "filter": "st.x = 1"},
    {"columns": ["id", "s"], "filter": "i > 0", "with_row_id": True, "with_row_address": True},
    {"filter": "id = 77"}, {"filter": "id > 1000"}, {"filter": "true", "limit": 0},
    {"include_deleted_rows": True, "with_row_id": True},
    {"include_deleted_rows": True, "with_row_id": True, "with_row_address": True, "limit": 9},
    {"columns": ["id", "i"], "order_by": ["i", "id"]},
    {"columns": ["id", "s"], "order_by": ["s", "id"], "filter": "b"},
    {"columns": ["id", "b"], "order_by": ["b", "id"], "limit": 30, "offset": 4},
    {"columns": ["id"], "batch_size": 10, "use_stats": False, "batch_readahead": 2},
    {"columns": ["id"], "scan_in_order": True, "late_materialization": True, "filter": "i > 0"},
], ids=str)  # fmt: skip
def test_a_scan_returns_what_pylance_returns(both: Any, options: dict[str, Any]) -> None:
    ours, theirs = both
    expected = theirs.scanner(**options).to_table()

    assert_same(ours.scanner(**options).to_table(), expected)
    assert_same(ours.scanner(**options).to_reader().read_all(), expected)
    assert ours.scanner(**options).projected_schema.names == expected.schema.names


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("column", ["i", "f", "s", "b", "ts", "dec", "u64", "bin", "d"])
def test_rows_are_ordered_as_pylance_orders_them(
    both: Any, column: str, ascending: bool, nulls_first: bool
) -> None:
    ours, theirs = both
    order = [_ordering(column, ascending, nulls_first)]
    expected = theirs.to_table(columns=["id", column], order_by=order)
    found = ours.to_table(columns=["id", column], order_by=order)
    as_dict = {"column_name": column, "ascending": ascending, "nulls_first": nulls_first}

    assert same(found[column], expected[column])
    assert found["id"].to_pylist() == _stable(ours, as_dict)
    assert ours.to_table(["id"], order_by=[as_dict])["id"].equals(found["id"])
    first = ours.to_table(["id"], order_by=order, limit=7, offset=5)["id"].to_pylist()
    assert first == found["id"].to_pylist()[5:12]
    batches = ours.to_batches(["id"], order_by=order, batch_size=50)
    assert pa.Table.from_batches(batches)["id"].to_pylist() == found["id"].to_pylist()


def _ordering(column: str, ascending: bool, nulls_first: bool) -> Any:
    from lance.dataset import ColumnOrdering

    return ColumnOrdering(column, ascending, nulls_first)


def _stable(dataset: Any, order: dict[str, Any]) -> list[int]:
    """Sort in Python: -0.0 is before 0.0, NaN the greatest; equal values keep their order."""
    rows = dataset.to_table(["id", order["column_name"]]).to_pylist()
    full = [row for row in rows if row[order["column_name"]] is not None]
    lost = [row["id"] for row in rows if row[order["column_name"]] is None]

    def key(row: dict[str, Any]) -> Any:
        value = row[order["column_name"]]
        if not isinstance(value, float):
            return value
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))

    if order["ascending"]:
        full.sort(key=key)
    else:
        # `reverse` keeps the order of equal rows.
        full.sort(key=key, reverse=True)
    ids = [row["id"] for row in full]
    return lost + ids if order["nulls_first"] else ids + lost


@pytest.mark.parametrize("options", [
    {"batch_size": 7}, {"batch_size": 7, "strict_batch_size": True},
    {"batch_size": 64, "limit": 150}, {"batch_size": 64, "strict_batch_size": True, "limit": 150},
], ids=str)  # fmt: skip
def test_batches_are_as_large_as_pylance_makes_them(both: Any, options: dict[str, Any]) -> None:
    ours, theirs = both
    expected = [batch.num_rows for batch in theirs.scanner(columns=["id"], **options).to_batches()]

    assert [batch.num_rows for batch in ours.to_batches(["id"], **options)] == expected


def test_strict_batches_of_a_filter_are_full_but_for_the_last(both: Any) -> None:
    batches = list(both[0].to_batches(["id"], filter="i > 0", batch_size=9, strict_batch_size=True))

    assert {batch.num_rows for batch in batches[:-1]} == {9}
    assert pa.Table.from_batches(batches).num_rows == both[1].count_rows("i > 0")


def test_fragments_are_scanned_in_the_order_given_and_keep_their_places(both: Any) -> None:
    ours, theirs = both
    picked = [2, 0]
    options: dict[str, Any] = {"columns": ["id", "_rowoffset"], "filter": "i > 0", "limit": 40}
    found = ours.scanner(fragments=[ours.get_fragment(k) for k in picked], **options).to_table()
    expected = theirs.scanner(fragments=[theirs.get_fragment(k) for k in picked], **options)

    assert found["id"].equals(expected.to_table()["id"])
    for mine, other in zip(ours.get_fragments(), theirs.get_fragments(), strict=True):
        assert mine.count_rows("i > 0") == other.count_rows("i > 0")
        assert_same(mine.to_table(["id"], filter="b"), other.to_table(columns=["id"], filter="b"))
        assert mine.head(3)["id"].equals(other.head(3)["id"])


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot", "L2"])
@pytest.mark.parametrize("options", [
    {}, {"filter": "i > 0"}, {"filter": "i > 0", "prefilter": True}, {"limit": 3, "offset": 1},
    {"with_row_id": True, "with_row_address": True}, {"columns": []}, {"columns": ["_distance"]},
    {"columns": {"a": "id + 1", "b": "_distance"}}, {"order_by": ["id"]},
    {"filter": "_distance < 2"}, {"disable_scoring_autoprojection": True, "columns": ["_distance"]},
], ids=str)  # fmt: skip
def test_nearest_finds_the_rows_that_pylance_finds(
    both: Any, metric: str, options: dict[str, Any]
) -> None:
    ours, theirs = both
    options = {"columns": ["id"]} | options
    nearest = {"column": "vector", "q": QUERY, "k": 8, "metric": metric, "minimum_nprobes": 2}

    found = ours.to_table(nearest=nearest, **options)

    assert_near(found, theirs.to_table(nearest=nearest, **options))


@pytest.mark.parametrize("nearest", [
    {}, {"k": 500}, {"distance_range": (0.5, 2.0)}, {"q": [QUERY, [0.0] * 4], "k": 3},
    {"q": np.array(QUERY)}, {"q": pa.array(QUERY, pa.float32())}, {"use_index": False},
    {"q": [float("nan")] * 4},
 ])  # fmt: skip
def test_nearest_takes_the_arguments_of_pylance(both: Any, nearest: dict[str, Any]) -> None:
    ours, theirs = both
    nearest = {"column": "vector", "q": QUERY} | nearest

    found = ours.to_table(["id"], nearest=nearest)

    assert_near(found, theirs.to_table(columns=["id"], nearest=nearest))


@pytest.mark.parametrize("kind", ["float16", "float64", "uint8"])
def test_nearest_searches_every_kind_of_vector(kind: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 255, 800) if kind == "uint8" else rng.normal(size=800)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.astype(kind)), 8)
    table = pa.table({"id": range(100), "v": vectors})
    theirs = require_pylance().write_dataset(table, tmp_path / "data", max_rows_per_file=40)
    metric = "hamming" if kind == "uint8" else "l2"
    nearest = {"column": "v", "q": values[:8].astype(kind), "k": 5, "metric": metric}
    expected = theirs.to_table(columns=["id"], nearest=nearest)

    found = lance_nb.dataset(str(tmp_path / "data")).to_table(["id"], nearest=nearest)

    tolerance = 1e-2 if kind == "float16" else 1e-5
    left, right = found["_distance"].to_numpy(), expected["_distance"].to_numpy()
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)
    assert found["id"][0].as_py() == 0


REFUSED: list[tuple[Callable[[Any], Any], type[LanceError]]] = [
    (lambda ds: ds.to_table(nearest={"column": "vector", "q": [1, 2]}), InvalidInputError),
    (lambda ds: ds.to_table(nearest={"column": "vector", "q": QUERY, "k": 0}), InvalidInputError),
    (lambda ds: ds.to_table(nearest={"column": "id", "q": QUERY}), InvalidInputError),
    (lambda ds: ds.to_table(nearest={"column": "nope", "q": QUERY}), LanceError),
    (lambda ds: ds.to_table(nearest={"column": "vector", "q": QUERY, "metric": "x"}), LanceError),
    (lambda ds: ds.to_table(filter="i > 0", limit=-1), InvalidInputError),
    (lambda ds: ds.to_table(filter="i > 0", offset=-1), InvalidInputError),
    (lambda ds: ds.to_table(batch_size=0), InvalidInputError),
    (lambda ds: ds.to_table(include_deleted_rows=True), InvalidInputError),
    (lambda ds: ds.to_table(order_by=["nope"]), LanceError),
    (lambda ds: ds.to_table(full_text_query="x"), LanceError),
    (lambda ds: ds.to_table(columns={"a": "nope"}), LanceError),
    (lambda ds: ds.scanner(filter="i > 0", limit=2).count_rows(), InvalidInputError),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_bad_call_is_refused_where_pylance_refuses_it(both: Any, number: int) -> None:
    run, kind = REFUSED[number]

    with pytest.raises(kind):
        run(both[0])
    with pytest.raises((ValueError, TypeError, OSError)):
        run(both[1])


@pytest.mark.parametrize("options", [
    {"full_text_query": "x"}, {"blob_handling": "nonsense"},
    {"row_addr_allowlist": b"x"},
], ids=str)  # fmt: skip
def test_an_argument_that_would_change_the_result_is_refused_with_advice(
    both: Any, options: dict[str, Any]
) -> None:
    with pytest.raises((NotSupportedError, InvalidInputError), match=next(iter(options))):
        both[0].to_table(**options)


def test_counts_plans_and_streams_of_a_scanner(both: Any) -> None:
    ours, theirs = both
    scanner = ours.scanner(["id", "s"], "i > 0")

    assert scanner.count_rows() == ours.count_rows("i > 0") == theirs.count_rows("i > 0")
    assert scanner.dataset_schema.names == ours.schema.names
    assert "decoded first, for every row: i" in scanner.explain_plan()
    assert "decoded for the rows that are left: id, s" in scanner.explain_plan()
    assert pa.table(scanner).equals(scanner.to_table())
    assert len(scanner.to_pandas()) == scanner.count_rows()
    assert ours.head(3, filter="i > 0").num_rows == 3
    assert ours.scanner([], "i > 0").to_table().num_rows == scanner.count_rows()


def test_order_by_takes_any_object_with_the_fields_of_an_ordering(both: Any) -> None:
    order = SimpleNamespace(column_name="i", ascending=False, nulls_first=False)

    found = both[0].to_table(["i"], order_by=[order], limit=1)

    assert found["i"].to_pylist() == [2**40]
