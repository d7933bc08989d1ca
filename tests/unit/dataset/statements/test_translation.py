"""Statements that are translated for DuckDB: names, types, what is computed where, every door."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.sql import prepare
from lance_nb.dataset.statements.expressions import ScopeBinder
from lance_nb.dataset.statements.translation import translate
from lance_nb.errors import InvalidInputError
from lance_nb.magic.command_line import main
from lance_nb.magic.context import MagicContext
from lance_nb.magic.verbs.sql import query as magic_query
from tests.support.requirements import require_package

MINUS_NAN = math.copysign(float("nan"), -1)
TABLE = pa.table({
    "id": pa.array(range(6)),
    "a": pa.array([1, 2, 0, -3, None, 7], pa.int32()),
    "f": [-0.0, 0.0, float("nan"), MINUS_NAN, None, 1.5],
    "u": pa.array([1, 2, 0, 7, None, 2**64 - 1], pa.uint64()),
    "s": ["ab", "", None, "Äö", "B", "ab"],
    "big": pa.array(["ab", "", None, "Äö", "B", "ab"], pa.large_string()),
    "h": pa.array([1.5, -0.0, None, 2.5, 0.5, 1.0], pa.float16()),
    "zoned": pa.array([0, -1, None, 10**18, 5, 7], pa.timestamp("ns", "Europe/Berlin")),
    "length": pa.array([0, -5, None, 10**9, 1, 2], pa.duration("us")),
    "l": pa.array([[1, 2], [], None, [None], [3], [4]], pa.list_(pa.int64())),
})  # fmt: skip


@pytest.fixture(scope="module")
def ds() -> LanceDataset:
    require_package("duckdb")
    return lance_nb.write_dataset(TABLE, "memory://statements/translation")


def result_of(ds: LanceDataset, statement: str) -> pa.Table:
    return ds.sql(statement).build().to_stream_reader().read_all()


def selected(ds: LanceDataset, columns: str, more: str = "") -> pa.Table:
    return result_of(ds, f"SELECT {columns} FROM dataset {more}")  # noqa: S608


@pytest.mark.parametrize(
    ("expression", "name", "kind"),
    [
        ("count(*)", "count(*)", "int64"),
        ("sum(a)", "sum(dataset.a)", "int64"),
        ("Sum(U)", "sum(dataset.u)", "uint64"),
        ("avg(a)", "avg(dataset.a)", "double"),
        ("max(zoned)", "max(dataset.zoned)", "timestamp[ns, tz=Europe/Berlin]"),
        ("max(h)", "max(dataset.h)", "halffloat"),
        ("max(a) - min(a)", "max(dataset.a) - min(dataset.a)", "int32"),
        ("sum(a) / 2", "sum(dataset.a) / Int64(2)", "int64"),
        ("count(DISTINCT f)", "count(DISTINCT dataset.f)", "int64"),
        ("array_agg(a)", "array_agg(dataset.a)", "list<item: int32>"),
        ("string_agg(s, ',')", 'string_agg(dataset.s,Utf8(","))', "large_string"),
        ("count(a) FILTER (WHERE a > 1)", "count(dataset.a) FILTER (WHERE dataset.a > Int64(1))",
         "int64"),
    ],
)  # fmt: skip
def test_aggregates_have_names_and_types(
    ds: LanceDataset, expression: str, name: str, kind: str
) -> None:
    (field,) = selected(ds, expression, "WHERE id < 5").schema
    assert (field.name, str(field.type)) == (name, kind)


@pytest.mark.parametrize(
    ("expression", "name", "values"),
    [
        ("a / 2", "dataset.a / Int64(2)", [0, 1, 0, -1, None, 3]),
        ("(a + 1) * 2", "dataset.a + Int64(1) * Int64(2)", [4, 6, 2, -4, None, 16]),
        ("CAST(a AS BIGINT)", "dataset.a", [1, 2, 0, -3, None, 7]),
        ("substr(s, 0, 2)", "substr(dataset.s,Int64(0),Int64(2))", ["a", "", None, "Ä", "B", "a"]),
        ("big || 'x'", 'dataset.big || Utf8("x")', ["abx", "x", None, "Äöx", "Bx", "abx"]),
        ("h + 1", "dataset.h + Int64(1)", [2.5, 1.0, None, 3.5, 1.5, 2.0]),
        ("l[1]", "dataset.l[Int64(1)]", [1, None, None, None, 3, 4]),
        ("s ~ 'b'", 'dataset.s ~ Utf8("b")', [True, False, None, False, False, True]),
        ("CASE WHEN a = 0 THEN 0 ELSE 6 / a END",
         "CASE WHEN dataset.a = Int64(0) THEN Int64(0) ELSE Int64(6) / dataset.a END",
         [6, 3, 0, -2, None, 0]),
        ("now() = current_timestamp", "now() = current_timestamp()", [True] * 6),
        ("rank() OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
         "rank() ORDER BY [dataset.a ASC NULLS LAST] ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
         [3, 4, 2, 1, 6, 5]),
    ],
)  # fmt: skip
def test_expressions_have_names_and_values(
    ds: LanceDataset, expression: str, name: str, values: list[Any]
) -> None:
    table = selected(ds, expression, "ORDER BY id")
    assert table.schema.names == [name]
    assert table.column(0).to_pylist() == values


def test_columns_keep_the_types_that_duckdb_lacks(ds: LanceDataset) -> None:
    result, stored = result_of(ds, "SELECT * FROM dataset ORDER BY id"), ds.to_table()
    assert result.schema.equals(stored.schema, check_metadata=False)
    assert str(result.to_pydict()) == str(stored.to_pydict())


def test_half_precision_vectors_keep_their_type() -> None:
    vectors = pa.list_(pa.float16(), 2)
    rows = pa.table({
        "v": pa.array([[1.5, None], None, [-0.0, 2.0]], vectors),
        "lists": pa.array([[[1.5, 2.0]], None, []], pa.list_(vectors)),
        "p": pa.array([{"v": [1.5, 2.0]}, None, {"v": None}], pa.struct([("v", vectors)])),
        "zoned": pa.array([[0, 1], None, [2, 3]], pa.list_(pa.timestamp("us", "Asia/Tokyo"), 2)),
    })  # fmt: skip
    ds = lance_nb.write_dataset(rows, "memory://statements/vectors")
    result = result_of(ds, "SELECT * FROM dataset")
    assert result.schema.equals(rows.schema, check_metadata=False)
    assert result.to_pylist() == rows.to_pylist()
    assert result_of(ds, "SELECT count(v) AS n FROM dataset WHERE v IS NOT NULL").to_pylist() == [
        {"n": 2}
    ]


def test_columns_whose_names_differ_only_in_case_are_told_apart() -> None:
    rows = pa.table({"A": [1, 2], "a": [3, 4], "a_1": [5, 6], "id": [0, 1]})
    ds = lance_nb.write_dataset(rows, "memory://statements/cases")
    statement = (
        'SELECT a, "A", a_1, a + 10 AS more, max("A") OVER () AS top FROM dataset d '
        'WHERE d.a > 3 AND d."A" = 2'
    )
    assert result_of(ds, statement).to_pylist() == [
        {"a": 4, "A": 2, "a_1": 6, "more": 14, "top": 2}
    ]
    assert result_of(ds, "SELECT * FROM dataset WHERE id = 0").to_pylist() == rows[:1].to_pylist()


def bits_of(column: pa.ChunkedArray) -> list[str]:
    return [str(math.copysign(1, x)) + str(x) if x is not None else "" for x in column.to_pylist()]


def test_floats_are_told_apart_and_ordered_by_their_bits(ds: LanceDataset) -> None:
    expected = ["-1.0nan", "-1.0-0.0", "1.00.0", "1.01.5", "1.0nan", ""]
    for statement in (
        "SELECT f FROM dataset ORDER BY f",
        "SELECT DISTINCT f FROM dataset ORDER BY f",
        "SELECT f FROM dataset GROUP BY f ORDER BY 1",
        "SELECT f FROM dataset UNION SELECT f FROM dataset ORDER BY f",
        "SELECT f FROM dataset UNION SELECT f FROM dataset ORDER BY 1 NULLS LAST LIMIT 6",
    ):
        assert bits_of(result_of(ds, statement)["f"]) == expected, statement
    counted = result_of(ds, "SELECT count(DISTINCT f) AS n, min(f) AS low FROM dataset")
    assert counted["n"].to_pylist() == [5]
    assert bits_of(counted["low"]) == ["-1.0nan"]
    joined = result_of(ds, "SELECT x.id FROM dataset x JOIN dataset y ON x.f = y.f ORDER BY x.id")
    assert joined["id"].to_pylist() == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    ("clause", "counts"),
    [
        ("GROUP BY ALL", [1, 1, 1, 1, 1, 1]),
        ("GROUP BY ROLLUP (f)", [1, 1, 1, 1, 1, 1, 6]),
        ("GROUP BY CUBE (f)", [1, 1, 1, 1, 1, 1, 6]),
        ("GROUP BY GROUPING SETS ((f), (f, f * 2), ())", [1, 1] * 6 + [6]),
        ("GROUP BY GROUPING SETS (f, ROLLUP (f), (f))", [1, 1, 1] * 6 + [6]),
    ],
)
def test_groups_of_every_kind_tell_floats_apart(
    ds: LanceDataset, clause: str, counts: list[int]
) -> None:
    table = selected(ds, "f, count(*) AS n", f"{clause} ORDER BY f, n")
    assert table["n"].to_pylist() == counts
    assert len(set(bits_of(table["f"]))) == 6


@pytest.mark.parametrize(
    ("columns", "clause", "rows"),
    [
        ("a / 2 AS k, count(*) AS n", "GROUP BY ALL", [(-1, 1), (0, 2), (1, 1), (3, 1), (None, 1)]),
        ("count(*) + 1 AS n", "GROUP BY ALL", [(7,)]),
        ("(SELECT max(a) FROM dataset) AS m, count(*)", "GROUP BY ALL", [(7, 6)]),
        ("a / 5 AS k, count(*) AS n", "GROUP BY ROLLUP (a / 5)",
         [(0, 4), (1, 1), (None, 1), (None, 6)]),
        ("a / 5 AS k, count(*) AS n", "GROUP BY GROUPING SETS ((1), ())",
         [(0, 4), (1, 1), (None, 1), (None, 6)]),
    ],
)  # fmt: skip
def test_group_keys_are_computed_as_in_filters(
    ds: LanceDataset, columns: str, clause: str, rows: list[tuple[Any, ...]]
) -> None:
    table = selected(ds, columns, f"{clause} ORDER BY ALL")
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_distinct_on_takes_the_first_row_of_each_key(ds: LanceDataset) -> None:
    by_half = selected(ds, "DISTINCT ON (a / 2) id", "WHERE a >= 0 ORDER BY a / 2, id DESC")
    assert by_half["id"].to_pylist() == [2, 1, 5]
    by_float = selected(ds, "DISTINCT ON (f) f", "ORDER BY f")
    assert bits_of(by_float["f"]) == ["-1.0nan", "-1.0-0.0", "1.00.0", "1.01.5", "1.0nan", ""]


def test_a_group_key_is_the_same_expression_elsewhere(ds: LanceDataset) -> None:
    statement = (
        "SELECT dataset.a / 2 + 1 AS k, count(*) AS n FROM dataset GROUP BY a / 2 "
        "HAVING a / 2 < 3 ORDER BY a / 2"
    )
    assert result_of(ds, statement).to_pylist() == [
        {"k": 0, "n": 1}, {"k": 1, "n": 2}, {"k": 2, "n": 1},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "filters"),
    [
        ("a / 2 = 0", ["`a` / 2 = 0"]),
        ("a / 2 = 0 AND list_sum(l) > 1", ["`a` / 2 = 0"]),
        ("d.a / 2 = 0 OR s LIKE 'a%'", ["(`d`.`a`"]),
        ("a IN (SELECT a FROM dataset WHERE id > 3)", [None, "`id` > 3"]),
        ("h * 2.0 > 1.3", [None]),
        ("CAST(id AS TIMESTAMP) > TIMESTAMP '1970-01-01 00:00:03'", [None]),
        ("CAST(zoned AS TIMESTAMP) > TIMESTAMP '1970-01-01 00:00:03'", ["CAST("]),
        ("s = 'a\"\"b'", [None]),
    ],
)
def test_conditions_become_filters_where_these_mean_the_same(
    ds: LanceDataset, condition: str, filters: list[str | None]
) -> None:
    statement = f"SELECT id FROM dataset AS d WHERE {condition}"  # noqa: S608
    plan = translate(statement, {"dataset": TABLE.schema})
    assert len(plan.scans) == len(filters)
    for scan, text in zip(plan.scans, filters, strict=True):
        assert (scan.filter is None) == (text is None), scan.filter
    elsewhere = f"SELECT d.id FROM dataset AS d, (SELECT 1) WHERE {condition}"  # noqa: S608
    rows = result_of(ds, f"{statement} ORDER BY id")["id"].to_pylist()
    assert sorted(result_of(ds, elsewhere)["id"].to_pylist()) == rows


def test_the_filter_of_a_scan_is_text_that_can_be_shown() -> None:
    statement = "SELECT id FROM dataset d WHERE d.a / 2 = 0 AND (d.s = 'it''s' OR a > 1)"
    (scan,) = translate(statement, {"dataset": TABLE.schema}).scans
    assert scan.filter == "`a` / 2 = 0 AND (`s` = 'it''s' OR `a` > 1)"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("SELECT a / b FROM (SELECT 1 AS a, 0 AS b)", "divide by zero"),
        ("SELECT 1 / 0 FROM dataset", "divide by zero"),
        ("SELECT 1 / a FROM dataset", "1 / a: divide by zero"),
        ("SELECT CAST(s AS INT) FROM dataset", "CAST(s AS INT): Failed to parse string: 'ab'"),
        ("SELECT CAST(' 1' AS INT) FROM dataset", "Failed to parse string: ' 1'"),
        ("SELECT sum(u) FROM dataset", "out of range"),
    ],
)
def test_values_that_cannot_be_computed_are_errors(
    ds: LanceDataset, statement: str, problem: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        result_of(ds, statement)
    assert problem in str(caught.value)
    assert "Python exception" not in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "computed"),
    [
        ("SELECT a + 1, a, sum(id / 2) OVER () FROM dataset", [["a + 1", "id / 2"]]),
        ("SELECT a / 2 + 1 AS k FROM dataset GROUP BY a / 2", [["a / 2"]]),
        ("SELECT *, a + 1 FROM dataset", [["a + 1"]]),
        ("SELECT x FROM (SELECT a + 1 AS x FROM dataset) AS t", [["a + 1"]]),
        ("SELECT id FROM dataset WHERE a + 1 > 2", [[]]),
        ("SELECT x + 1 FROM (SELECT a AS x FROM dataset) AS t", [[]]),
        ("SELECT sum(a) + 1, max(a) + 1 FROM dataset", [[]]),
        ("SELECT a + 1 FROM dataset GROUP BY ROLLUP (a)", [[]]),
        ("SELECT x.a + 1 FROM dataset x JOIN dataset y ON x.id = y.id", [[], []]),
        ("SELECT (SELECT max(x.a + 1 + y.a) FROM dataset y) FROM dataset x", [[], []]),
        ("SELECT columns('a'), id + 1 FROM dataset", [[]]),
        ("SELECT c0 + 1 FROM dataset AS d(c0)", [[]]),
    ],
)
def test_scans_compute_the_expressions_on_their_columns_alone(
    ds: LanceDataset, statement: str, computed: list[list[str]]
) -> None:
    scans = translate(statement, {"dataset": TABLE.schema}).scans
    assert [[function.text for function in scan.computed] for scan in scans] == computed
    by_functions = translate(statement, {"dataset": TABLE.schema}, has_filters=False)
    assert not any(scan.computed for scan in by_functions.scans)
    result = result_of(ds, statement)
    assert not [name for name in result.schema.names if "lance_expression" in name]
    assert result.num_rows


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("SELECT x FROM (SELECT id, 6 / a AS x FROM dataset) AS t WHERE id < 2", [6, 3]),
        ("SELECT 6 / a AS x FROM dataset ORDER BY id LIMIT 2", None),
        ("SELECT id FROM (SELECT id, 1 / a FROM dataset) AS t WHERE id > 4", [5]),
        ("SELECT list_value(6 / a)[1] AS x FROM dataset WHERE a > 1 ORDER BY id", [3, 0]),
        ("SELECT sum(6 / a) FILTER (WHERE id < 2) AS x FROM dataset", None),
        ("SELECT 6 / a AS x FROM dataset QUALIFY row_number() OVER (ORDER BY id) < 3", [6, 3]),
        ("SELECT * FROM (SELECT id, f * 2 AS x, 6 / a AS y FROM dataset) AS t WHERE id = 5", [5]),
    ],
)
def test_a_value_that_a_scan_cannot_compute_matters_in_rows_that_need_it(
    ds: LanceDataset, statement: str, values: list[int] | None
) -> None:
    if values is None:
        with pytest.raises(InvalidInputError, match="6 / a: divide by zero"):
            result_of(ds, statement)
    else:
        assert result_of(ds, statement).column(0).to_pylist() == values


def test_a_scan_computes_beside_stars_and_nested_columns() -> None:
    rows = pa.table({"p": [{"x": 1}, None, {"x": None}], "h": pa.array([1, 2, None], pa.float16())})
    nested = lance_nb.write_dataset(rows, "memory://statements/nested")
    statement = "SELECT *, p.x + 1 AS n, h * 2 AS d FROM dataset"
    (scan,) = translate(statement, {"dataset": rows.schema}).scans
    assert [function.text for function in scan.computed] == ["p.x + 1", "h * 2"]
    result = result_of(nested, statement)
    assert result.schema.names == ["p", "h", "n", "d"]
    assert result["n"].to_pylist() == [2, None, None]
    assert result["d"].to_pylist() == [2.0, 4.0, None]
    odd = lance_nb.write_dataset(
        pa.table({"a": [1], "lance_expression_0": [7]}), "memory://statements/odd"
    )
    assert result_of(odd, "SELECT a + 1 AS n, * FROM dataset").to_pylist() == [
        {"n": 2, "a": 1, "lance_expression_0": 7}
    ]


def test_errors_of_late_rows_are_those_of_early_ones() -> None:
    rows = pa.table({"a": range(400_000), "b": [1] * 399_999 + [0]})
    late = lance_nb.write_dataset(rows, "memory://statements/late")
    with pytest.raises(InvalidInputError, match="SQL: a / b: divide by zero"):
        result_of(late, "SELECT a / b AS q FROM dataset")
    with pytest.raises(InvalidInputError, match="SQL: a / b: divide by zero"):
        magic_query(MagicContext(namespace={"late": late}), "SELECT a / b FROM late")


def test_what_duckdb_alone_knows_is_run_by_it(ds: LanceDataset) -> None:
    statement = (
        "SELECT list_transform(l, x -> x * 2) AS doubled, id FROM dataset "
        "QUALIFY row_number() OVER (ORDER BY id) = 1"
    )
    assert result_of(ds, statement).to_pylist() == [{"doubled": [2, 4], "id": 0}]
    described = result_of(ds, "DESCRIBE SELECT zoned FROM dataset")
    assert described.num_rows == 1


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("SELECT x FROM (SELECT dataset AS x, a + 1 FROM dataset) AS t", 10),
        ("SELECT x FROM dataset AS x WHERE a + 1 > 1", 10),
        ("SELECT count(*) FROM dataset PIVOT (sum(a) FOR s IN ('ab'))", 6),
    ],
)
def test_rows_and_pivots_have_all_columns(ds: LanceDataset, statement: str, values: int) -> None:
    (scan,) = prepare({"dataset": ds}, statement).translation.scans
    assert (scan.columns, scan.computed) == (None, ())
    value = result_of(ds, statement).column(0).to_pylist()[0]
    assert (len(value) if isinstance(value, dict) else value) == values


@pytest.mark.parametrize(
    ("start", "step", "columns"),
    [
        ("CAST('2024-01-01' AS DATE)", "{} + INTERVAL '1 day'", "{}"),
        ("1", "(SELECT {}) = 1", "{} AS x"),
        ("x.a = y.a", "{} AND x.a = y.a", "{}"),
        ("list_transform(l, v -> v) = l", "{} OR x.a = y.a", "{}"),
    ],
)
def test_long_and_deep_expressions_are_translated_in_little_time(
    monkeypatch: pytest.MonkeyPatch, start: str, step: str, columns: str
) -> None:
    text = start
    for _ in range(40):
        text = step.format(text)
    bind, bound = ScopeBinder.bind, []

    def counted(binder: ScopeBinder, node: Any) -> Any:
        bound.append(node.key)
        assert len(bound) < 5000
        return bind(binder, node)

    monkeypatch.setattr(ScopeBinder, "bind", counted)
    statement = f"SELECT {columns.format(text)} FROM dataset x, dataset y"  # noqa: S608
    translate(statement, {"dataset": TABLE.schema})
    assert bound


def test_a_natural_join_compares_every_column(ds: LanceDataset) -> None:
    statement = "SELECT id FROM dataset x NATURAL JOIN dataset y ORDER BY id"
    assert prepare({"dataset": ds}, statement).translation.scans[0].columns is None
    assert result_of(ds, statement)["id"].to_pylist() == [0, 1, 3, 5]


def test_every_door_counts_the_same_rows(
    ds: LanceDataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "doors.lance")
    lance_nb.write_dataset(TABLE, path)
    for condition in (
        "a / 2 = 0",
        "f = 0",
        "f > 1",
        "substr(s, 0, 2) = 'a'",
        "regexp_like(s, 'b')",
    ):
        statement = f"SELECT count(*) AS n FROM dataset WHERE {condition}"  # noqa: S608
        count = ds.count_rows(condition)
        assert count, condition
        assert result_of(ds, statement).to_pylist() == [{"n": count}]
        assert ds.bisect(f"count(*) FILTER (WHERE {condition}) = {count}").last_good == 1
        assert main(["sql", path, statement]) == 0
        assert str(count) in capsys.readouterr().out.split()
