"""B-tree indices that we build: pylance finds by them what it finds without."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.errors import InvalidInputError
from lance_nb.spark.run import RunOptions, run_once
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
NUM_ROWS = 12_000  # two pages and a bit in each of the two segments
NAN = float("nan")


def table() -> pa.Table:
    """Numbers in no order, texts of many nulls, fractions with NaN, and few of each other type."""
    ids = [one * 7919 % NUM_ROWS for one in range(NUM_ROWS)]
    few = {
        "flag": pa.array([True, None, False], pa.bool_()),
        "half": pa.array([1.5, None, NAN], pa.float16()),
        "price": pa.array([Decimal("1.5"), None, Decimal("-2.5")], pa.decimal128(6, 1)),
        "day": pa.array([date(2026, 1, 1), None, date(1960, 1, 1)], pa.date32()),
        "moment": pa.array([5, None, -5], pa.timestamp("us", "UTC")),
        "bytes": pa.array([b"b", None, b"a"], pa.binary()),
    }
    cycle = pa.array([one % 3 for one in range(NUM_ROWS)])
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [None if one % 5 == 0 else f"n{one % 37}" for one in ids],
            "fraction": [NAN if one % 11 == 0 else None if one % 13 == 0 else one / 3 - 9
                         for one in ids],
            **{name: values.take(cycle) for name, values in few.items()},
        }
    )  # fmt: skip


QUESTIONS = {
    "id": ["id = 77", "id < 5 OR id > 11990", "id IN (3, 5000, 14, 99999)", "NOT (id = 5)"],
    "text": ["text = 'n5'", "text IS NULL", "text > 'n36'", "text IS NOT NULL AND id < 100"],
    "fraction": ["fraction > 3000", "fraction IS NULL", "isnan(fraction)", "fraction < -8"],
    "flag": ["flag", "NOT flag", "flag IS NULL"],
    "half": ["half < 2", "half IS NULL"],
    "price": ["price < 0", "price = CAST(1.5 AS DECIMAL(6, 1))", "price IS NULL"],
    "day": ["day < date '2000-01-01'", "day IS NULL"],
    "moment": ["moment > timestamp '1970-01-01 00:00:00'", "moment IS NULL"],
    "bytes": ["bytes = X'61'", "bytes IS NULL"],
}


@pytest.mark.parametrize(("version", "stable"), [("2.0", False), ("2.1", False), ("2.2", True)])
def test_pylance_finds_by_our_index_what_it_finds_without(
    tmp_path: Path, version: str, stable: bool
) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    columns = list(QUESTIONS)[: None if stable else 3]
    made = lance.write_dataset(
        table().select(columns), uri, data_storage_version=version,
        max_rows_per_file=NUM_ROWS // 2, enable_stable_row_ids=stable,
    )  # fmt: skip
    made.delete("id = 14")
    for column in columns:
        plan = spark.plan_index(lance_nb.dataset(uri), column, task_bytes=1)
        assert len(plan.tasks) == 2
        run_once(plan, RunOptions(engine="local"))
    _answers_are_right(uri, columns, "as built")
    ours = lance_nb.dataset(uri)
    ours.insert(table().select(columns).slice(0, 50))
    ours.update({"id": "id + 100000"}, "id < 3")
    ours.delete("id = 5")
    _answers_are_right(uri, columns, "after our changes")
    ours.optimize.compact_files()
    lance.dataset(uri).optimize.optimize_indices()
    _answers_are_right(uri, columns, "after pylance merged the segments")


def _answers_are_right(uri: str, columns: list[str], when: str) -> None:
    dataset = require_pylance().dataset(uri)
    for column in columns:
        for question in QUESTIONS[column]:
            indexed = dataset.scanner(["id"], filter=question)
            assert "ScalarIndexQuery" in indexed.explain_plan() or "isnan" in question, question
            plain = dataset.scanner(["id"], filter=question, use_scalar_index=False).to_table()
            found = sorted(indexed.to_table()["id"].to_pylist())
            assert found == sorted(plain["id"].to_pylist()), (when, question)


def test_an_index_of_the_dataset_itself_is_one_segment(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ours = lance_nb.write_dataset(pa.table({"a": [3, 1, 2], "v": [[1], [2], [3]]}), uri)
    ours.create_scalar_index("a", "BTREE", "mine")
    theirs = require_pylance().dataset(uri)
    assert theirs.stats.index_stats("mine")["num_indexed_rows"] == 3
    assert theirs.to_table(filter="a = 2")["v"].to_pylist() == [[3]]
    with pytest.raises(InvalidInputError, match="column 'v' is list"):
        ours.create_scalar_index("v")
    ours.delete("true")
    ours.create_scalar_index("a", "BTREE", "mine")
    assert require_pylance().dataset(uri).to_table(filter="a = 2").num_rows == 0


KINDS = {
    "BITMAP": ["text", "fraction", "flag", "day", "price", "bytes"],
    "ZONEMAP": ["id", "text", "fraction", "day", "price", "half"],
    "BLOOMFILTER": ["id", "text", "fraction", "day"],
    "NGRAM": ["text"],
    "LABEL_LIST": ["tags"],
}
MORE_QUESTIONS = {
    "text": ["contains(text, 'n11')", "text LIKE '%n36%'"],
    "fraction": ["fraction = 0.0", "fraction = 5.0"],
    "tags": [
        "array_has(tags, 3)", "array_has_any(tags, [3, 6])", "array_has_all(tags, [1, 2])",
        "NOT array_has(tags, 3)", "tags IS NULL",
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stable", [False, True])
def test_pylance_finds_by_our_index_of_any_kind(tmp_path: Path, kind: str, stable: bool) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    tags = [
        None if at % 9 == 0 else [] if at % 8 == 0 else [at % 4, None, at % 7] for at in range(3000)
    ]
    rows = table().slice(0, 3000).append_column("tags", [tags])
    made = lance.write_dataset(rows, uri, max_rows_per_file=1300, enable_stable_row_ids=stable)
    made.delete("id = 14")
    ours = lance_nb.dataset(uri)
    for column in KINDS[kind]:
        ours.create_scalar_index(column, kind)
    found: dict[str, bool] = {}

    def check(when: str) -> None:
        theirs = lance.dataset(uri)
        newest = lance_nb.dataset(uri)
        for column in KINDS[kind]:
            for question in QUESTIONS.get(column, []) + MORE_QUESTIONS.get(column, []):
                plain = theirs.to_table(["id"], filter=question)["id"].to_pylist()
                scanned = newest.scanner(["id"], filter=question, use_scalar_index=False).to_table()
                assert sorted(plain) == sorted(scanned["id"].to_pylist()), (when, question)
                mine = newest.to_table(["id"], filter=question)
                assert mine.equals(scanned), (when, question)
                plan = theirs.scanner(["id"], filter=question).explain_plan()
                found[column] = found.get(column, False) or "ScalarIndexQuery" in plan

    check("as built")
    assert all(found.values())
    ours.insert(rows.slice(0, 50))
    ours.delete("id = 5")
    check("after an append and a delete")
    assert ours.verify().verdict == "whole"
