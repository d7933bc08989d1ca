"""SQL statements that indices answer: the same results as a scan, and no data file is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.sql import open_duckdb, prepare
from lance_nb.dataset.sql_statement import indexed_statement
from tests.faults.damage.mutate import column_messages
from tests.support.requirements import require_package


@pytest.fixture(scope="module", autouse=True)
def _duckdb() -> None:
    require_package("duckdb")


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": ids,
            "kind": [None if one % 7 == 3 else f"k{one % 5}" for one in ids],
            "Flag": [None if one % 11 == 0 else one % 3 == 0 for one in ids],
            "n": pa.array([None if one % 13 == 5 else one % 40 - 20 for one in ids], pa.int16()),
            "at": pa.array([one * 1000 for one in ids], pa.timestamp("ms")),
            "share": [one / 3 for one in ids],
            "word": [f"w{one % 2}" for one in ids],
        }
    )


INDICES = {
    "kind": "BITMAP", "Flag": "BITMAP", "n": "ZONEMAP", "id": "BTREE", "at": "ZONEMAP",
    "share": "ZONEMAP",
}  # fmt: skip


@pytest.fixture(scope="module", params=["addresses", "row ids"])
def ds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Return a dataset with several segments, deleted and moved rows, all covered."""
    path = tmp_path_factory.mktemp("sql") / "d.lance"
    stable = request.param == "row ids"
    made = lance_nb.write_dataset(
        rows(0, 400), path, max_rows_per_file=100, enable_stable_row_ids=stable
    )
    for column, kind in INDICES.items():
        made.create_scalar_index(column, kind)
    made.insert(rows(400, 450))
    made.optimize.optimize_indices(num_indices_to_merge=0)
    made.delete("id % 17 = 2 AND id < 300")
    made.update({"kind": "'new'"}, where="id = 30")
    made.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(made.describe_indices()[0].segments) > 1
    return made


def table_of(dataset: LanceDataset, statement: str) -> list[tuple[Any, ...]]:
    batches = dataset.sql(statement).build().to_batch_records()
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def without_values(data: bytes) -> bytes:
    """Return a data file without what its pages say; footer and messages are sound."""
    for message in column_messages(data):
        for page in message.pages:
            for start, size in zip(page.buffer_offsets, page.buffer_sizes, strict=True):
                data = data[:start] + b"\xff" * size + data[start + size :]
    return data


def by_scan(dataset: LanceDataset, statement: str) -> pa.Table:
    plan = prepare({"dataset": dataset}, statement, use_scalar_index=False)
    return plan.run(open_duckdb()).read_all()


ANSWERED = [
    "SELECT DISTINCT kind FROM dataset",
    "SELECT kind, count(*) FROM dataset GROUP BY kind",
    "SELECT KIND AS k, count(*) AS c FROM dataset d GROUP BY d.kind ORDER BY c DESC, k LIMIT 3",
    "SELECT count(DISTINCT kind), count(kind), count(*), min(kind), max(kind) FROM dataset",
    "SELECT upper(kind), count(*) FROM dataset WHERE kind LIKE 'k%' GROUP BY 1 HAVING count(*) > 9",
    "SELECT kind, count(*) * 2 FROM dataset WHERE id < 90 AND kind <> 'k1' GROUP BY kind",
    "SELECT kind, count(kind) FROM dataset WHERE id IN (3, 10, 11, 30) GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FROM dataset",
    "SELECT count(*), count(1) FROM dataset WHERE id >= 440",
    "SELECT count(*) FROM dataset WHERE kind = 'nothing'",
    "SELECT count(*) FROM dataset WHERE kind IS NULL OR kind = 'k2'",
    "SELECT DISTINCT flag IS NULL FROM dataset",
    "SELECT flag, count(*) FROM dataset WHERE kind = 'k1' GROUP BY flag",
    "SELECT count(*) FROM dataset WHERE id < 0 HAVING count(*) > 0",
    "SELECT min(n), max(n) FROM dataset",
    "SELECT max(d.at), max(n) - 1 FROM dataset d",
]


@pytest.mark.parametrize("statement", ANSWERED)
def test_answers_of_indices_are_those_of_a_scan(ds: LanceDataset, statement: str) -> None:
    expected = by_scan(ds, statement)
    query = lance_nb.dataset(ds.uri).sql(statement).build()
    kept = {file: file.read_bytes() for file in Path(ds.uri, "data").iterdir()}
    try:
        for file, data in kept.items():
            file.write_bytes(without_values(data))
        found = query.to_stream_reader().read_all()
        plan = query.explain_plan()
    finally:
        for file, data in kept.items():
            file.write_bytes(data)

    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    as_rows = (Counter(map(repr, one.to_pylist())) for one in (found, expected))
    assert next(as_rows) == next(as_rows)
    assert plan.startswith("Answered without a scan:\n  ")


SCANNED = [
    "SELECT kind FROM dataset",
    "SELECT kind FROM dataset WHERE kind = 'k1'",
    "SELECT sum(n) FROM dataset",
    "SELECT kind, sum(id) FROM dataset GROUP BY kind",
    "SELECT kind, count(*) FROM dataset WHERE word = 'w1' GROUP BY kind",
    "SELECT kind, count(*) FROM dataset WHERE id + 1 < 9 GROUP BY kind",
    "SELECT kind, flag FROM dataset GROUP BY ALL",
    "SELECT DISTINCT ON (kind) kind FROM dataset",
    "SELECT min(kind, 2) FROM dataset",
    "SELECT count(*) FILTER (kind = 'k1') FROM dataset",
    "SELECT kind, row_number() OVER () FROM dataset GROUP BY kind",
    "SELECT count(*) FROM dataset a, dataset b WHERE a.kind = 'k1'",
    "SELECT kind, list(kind) FROM dataset GROUP BY kind",
    "SELECT DISTINCT random() FROM dataset",
    "SELECT DISTINCT share FROM dataset",
    "SELECT count(n), max(n) FROM dataset",
    "SELECT max(n) FROM dataset WHERE n < 3",
    "SELECT kind, max(n) FROM dataset GROUP BY kind",
    "SELECT min(word) FROM dataset",
    "SELECT count(DISTINCT _rowid) FROM dataset",
    "SELECT kind, count(*) FROM (SELECT * FROM dataset LIMIT 3) GROUP BY kind",
    "SELECT kind, count(*) FROM dataset USING SAMPLE 50 PERCENT GROUP BY kind",
]


@pytest.mark.parametrize("statement", SCANNED)
def test_other_statements_are_run_on_a_scan(ds: LanceDataset, statement: str) -> None:
    assert indexed_statement(ds, statement, "dataset") is None


def test_fragments_without_an_index_are_read(ds: LanceDataset, tmp_path: Path) -> None:
    copy = ds.deep_clone(str(tmp_path / "copy.lance"), ds.version)
    copy.insert(pa.table({"id": [900, 901], "kind": ["k1", "late"]}))
    statement = "SELECT kind, count(*) AS c FROM dataset WHERE id > 10 GROUP BY kind ORDER BY kind"

    query = copy.sql(statement).build()

    assert query.to_stream_reader().read_all().equals(by_scan(copy, statement))
    assert "the others are read" in query.explain_plan()
    assert table_of(copy, "SELECT count(*) FROM dataset WHERE kind = 'late'") == [(1,)]
    assert indexed_statement(copy, "SELECT max(n) FROM dataset", "dataset") is None


def test_bounds_of_deleted_rows_are_not_used(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(rows(0, 100), tmp_path / "d.lance", max_rows_per_file=25)
    made.create_scalar_index("id", "ZONEMAP")
    assert table_of(made, "SELECT min(id), max(id) FROM dataset") == [(0, 99)]
    assert "Answered" in made.sql("SELECT max(id) FROM dataset").build().explain_plan()

    made.delete("id = 99")

    assert table_of(made, "SELECT min(id), max(id) FROM dataset") == [(0, 98)]
    assert indexed_statement(made, "SELECT max(id) FROM dataset", "dataset") is None

    made.delete("id >= 75")
    made.delete("id = 60")

    # Nothing lies outside of the bounds of zones all rows of which live.
    assert indexed_statement(made, "SELECT max(id) FROM dataset", "dataset") is None
    made.delete("id > 49")
    assert indexed_statement(made, "SELECT max(id) FROM dataset", "dataset") is not None
    assert table_of(made, "SELECT min(id), max(id) FROM dataset") == [(0, 49)]


def test_a_damaged_index_is_a_scan_with_a_warning(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(rows(0, 100), tmp_path / "d.lance")
    made.create_scalar_index("kind", "BITMAP")
    (file,) = (tmp_path / "d.lance/_indices").glob("*/*")
    file.write_bytes(file.read_bytes()[:100])
    statement = "SELECT kind, count(*) FROM dataset GROUP BY kind"

    with pytest.warns(UserWarning, match="index 'kind_idx' cannot be used"):
        found = table_of(lance_nb.dataset(tmp_path / "d.lance"), statement)

    assert Counter(found) == Counter(
        tuple(one.values()) for one in by_scan(made, statement).to_pylist()
    )


def test_a_wrong_statement_is_an_error_as_on_a_scan(ds: LanceDataset) -> None:
    with pytest.raises(lance_nb.errors.InvalidInputError, match="must appear in the GROUP BY"):
        table_of(ds, "SELECT kind, count(*) FROM dataset")
