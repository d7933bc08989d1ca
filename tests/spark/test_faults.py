"""What may go wrong on Spark: no row is lost or doubled, and cleanup finds the leftovers."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.errors import CommitConflictError, CommitStateUnknownError
from lance_nb.spark import plan
from lance_nb.spark.run import RunOptions, run_once
from lance_nb.spark.types import readable_schema
from tests.spark.data import MARKS, NUM_ROWS, by_pylance, ids_of, rows, written
from tests.spark.faults import cleaned, data_files, faulty, replies_lost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS


def test_tasks_that_fail_or_crash_are_tried_again(session: SparkSession, tmp_path: Path) -> None:
    uri = written(tmp_path)
    parquet.write_table(rows(NUM_ROWS, NUM_ROWS + 90), tmp_path / "x.parquet", row_group_size=30)
    source = str(tmp_path / "x.parquet")
    pieces = spark.plan_append(lance_nb.dataset(uri), source, task_bytes=1)
    assert len(pieces.tasks) == 3
    hurt = faulty(pieces, ["task", "worker"], tmp_path)
    made = run_once(hurt, RunOptions(engine="spark", spark=session))
    assert made.version == 2
    assert ids_of(uri) == list(range(NUM_ROWS + 90))
    there, named = data_files(uri)
    assert len(there - named) >= 2  # what the first attempts have written
    cleaned(uri)
    assert data_files(uri)[0] == named


def test_a_commit_that_fails_leaves_the_dataset_as_it_was(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = written(tmp_path)
    frame = session.createDataFrame(rows(0, 10))

    def refused(*_args: object, **_options: object) -> None:
        raise CommitConflictError("refused by a test")

    with monkeypatch.context() as patched:
        patched.setattr("lance_nb.spark.plan.commit_staged", refused)
        with pytest.raises(CommitConflictError):
            spark.write(frame, uri, "append")
    assert lance_nb.dataset(uri).version == 1
    assert spark.unfinished() == []
    assert spark.write(frame, uri, "append").count_rows() == NUM_ROWS + 10
    cleaned(uri)
    there, named = data_files(uri)
    assert there == named


def test_replies_that_are_lost_lose_and_double_nothing(
    session: SparkSession, tmp_path: Path
) -> None:
    uri = written(tmp_path)
    frame = session.createDataFrame(rows(NUM_ROWS, NUM_ROWS + 10))
    with replies_lost(["lost", "made"]):
        assert spark.write(frame, uri, "append").version == 2
    with replies_lost(repeat("lost")), pytest.raises(CommitStateUnknownError):
        spark.delete(uri, "id < 5", engine="spark", spark=session)
    assert lance_nb.dataset(uri).version == 2
    (entry,) = spark.unfinished()
    assert spark.resume(entry.operation_id).version == 3
    assert ids_of(uri) == list(range(5, NUM_ROWS + 10))


def test_an_abort_after_an_unclear_commit_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    from lance_nb.spark.source.data_source import LanceSource

    uri = written(tmp_path)
    schema = from_arrow_schema(readable_schema(rows(0, 1).schema))
    writer = LanceSource({"path": uri}).writer(schema, overwrite=False)
    made = [
        writer.write(iter(rows(start, start + 5).to_batches()))
        for start in (NUM_ROWS, NUM_ROWS + 5)
    ]
    empty = writer.write(iter([]))
    commit = plan.commit_staged

    def unclear(*args: Any, **options: Any) -> None:
        commit(*args, **options)
        raise CommitStateUnknownError("the reply was lost")

    with monkeypatch.context() as patched:
        patched.setattr(plan, "commit_staged", unclear)
        with pytest.raises(CommitStateUnknownError):
            writer.commit([*made, empty])
    writer.abort([*made, None])
    assert ids_of(uri) == list(range(NUM_ROWS + 10))  # it had been committed
    writer.commit([*made, empty])
    assert lance_nb.dataset(uri).version == 2


def test_three_writers_at_once_lose_nothing(session: SparkSession, tmp_path: Path) -> None:
    uri = written(tmp_path)
    frame = session.createDataFrame(rows(10_000, 10_100))
    changed = rows(0, 50).set_column(1, "name", pa.array(["mine"] * 50))
    jobs = [
        spark.submit(spark.write, frame, uri, "append"),
        spark.submit(spark.upsert, uri, changed, "id", engine="spark", spark=session),
    ]
    local = lance_nb.dataset(uri)
    for at in range(5):
        local.insert(rows(20_000 + at * 10, 20_010 + at * 10))
        local.delete(f"id = {1_000 + at}")
    for job in jobs:
        job.result(120)
        assert (job.state, job.error) == ("done", None)
    expected = {*range(NUM_ROWS), *range(10_000, 10_100), *range(20_000, 20_050)}
    expected -= set(range(1_000, 1_005))
    assert ids_of(uri) == sorted(expected)
    found = by_pylance(uri)
    assert found["name"].to_pylist().count("mine") == 50
    assert lance_nb.dataset(uri).version == 1 + 10 + 2
