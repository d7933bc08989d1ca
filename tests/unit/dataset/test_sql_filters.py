"""Conditions of WHERE that become the filter of the scan."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import sql
from lance_nb.dataset.dataset import LanceDataset

pytest.importorskip("duckdb")
NAN = float("nan")


@pytest.fixture(scope="module")
def ds() -> LanceDataset:
    ids = range(300)
    table = pa.table(
        {
            "id": pa.array([None if at % 17 == 3 else at for at in ids], pa.int32()),
            "Word": [None if at % 13 == 2 else f"w{at % 7}" for at in ids],
            "price": [NAN if at % 5 == 0 else at / 4 for at in ids],
            "byte": pa.array([at % 100 for at in ids], pa.uint8()),
        }
    )
    made = lance_nb.write_dataset(table, "memory://sql/filters", max_rows_per_file=90)
    made.create_scalar_index("id", "BTREE")
    made.create_scalar_index("Word", "BITMAP")
    return made


def plan_of(ds: LanceDataset, statement: str) -> str:
    scans = sql.prepare({"dataset": ds}, statement).scans.values()
    return "\n".join(scan.explain_plan() for scan in scans)


@pytest.mark.parametrize(
    ("where", "index"),
    [
        ("id = 7", "id_idx"),
        ("id BETWEEN 5 AND 9 AND price > 1", "id_idx"),
        ("dataset.id IN (1, 2, 250) OR price = 1", None),
        ("id IN (1, 2, 250)", "id_idx"),
        ("word = 'w3' AND id < 100", "Word_idx"),
        ("(id > 290) AND NOT (word = 'w1')", "id_idx"),
        ("id = -1", "id_idx"),
        ("byte = 300", None),
        ("byte = 3.0", None),
        ("price = 2", None),
        ("id = '7'", None),
        ("word = 'W3'", "Word_idx"),
        ("word = 'it''s'", "Word_idx"),
        ("id + 1 = 7", None),
        ("id = byte", None),
        ("id = (SELECT min(id) FROM dataset)", None),
    ],
)
def test_answers_are_those_of_duckdb_alone(ds: LanceDataset, where: str, index: str | None) -> None:
    statement = f"SELECT id, word, price FROM dataset WHERE {where}"  # noqa: S608
    connection = sql.open_duckdb()
    connection.register("dataset", ds.to_table())
    wanted = connection.sql(statement).to_arrow_table()
    found = pa.Table.from_batches(ds.sql(statement).build().to_batch_records(), wanted.schema)
    assert str(found.to_pylist()) == str(wanted.to_pylist())
    assert (index is not None and f"index: {index!r}" in plan_of(ds, statement)) == bool(index)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM dataset a JOIN dataset b ON a.id = b.id WHERE a.id = 7",
        "WITH x AS (SELECT * FROM dataset) SELECT * FROM x WHERE id = 7",
        "SELECT * FROM dataset TABLESAMPLE 10% WHERE id = 7",
        "SELECT * FROM (SELECT id + 1 AS id FROM dataset) WHERE id = 7",
        "SELECT id FROM dataset t(value) WHERE value = 7",
        "SELECT id FROM dataset d WHERE (SELECT count(*) FROM dataset e, dataset f) = d.id",
        "SELECT id FROM dataset WHERE other.id = 7",
        "not SQL at all",
    ],
)
def test_other_statements_scan_without_a_filter(ds: LanceDataset, statement: str) -> None:
    assert "filter:" not in plan_of(ds, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM dataset WHERE id = 7 UNION ALL SELECT 1",
        "SELECT id FROM dataset WHERE EXISTS (SELECT 1 FROM dataset d WHERE d.id = 7)",
        "WITH x AS (SELECT id FROM dataset WHERE id = 7) SELECT * FROM x, dataset",
        "SELECT (SELECT max(id) FROM dataset) FROM dataset WHERE id = 7",
    ],
)
def test_each_use_of_the_table_has_a_filter_of_its_own(ds: LanceDataset, statement: str) -> None:
    scans = sql.prepare({"dataset": ds}, statement).scans.values()
    assert sum("index: 'id_idx'" in scan.explain_plan() for scan in scans) == 1


def test_new_names_of_columns_go_by_position(ds: LanceDataset) -> None:
    statement = "SELECT sum(id) AS total FROM dataset t(other, id, word) WHERE other = 7"
    with pytest.raises(lance_nb.errors.InvalidInputError, match="sum"):
        ds.sql(statement).build().to_batch_records()
    statement = "SELECT max(id) AS word FROM dataset t(other, id) WHERE other = 7"
    assert ds.sql(statement).build().to_batch_records()[0].to_pylist() == [{"word": "w0"}]


def test_an_alias_of_the_table_is_understood(ds: LanceDataset) -> None:
    statement = "SELECT t.id FROM dataset AS t WHERE t.id = 7 LIMIT 5"
    assert "index: 'id_idx'" in plan_of(ds, statement)
    assert ds.sql(statement).build().to_batch_records()[0].to_pylist() == [{"id": 7}]
