"""Streams out of a dataset: versions are offsets, and every row comes once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import lance_nb
from lance_nb import spark
from tests.spark.data import MARKS, by_pylance, ids_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS


def numbers(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64())})


def copied(
    session: SparkSession, source: str, folder: Path, columns: tuple[str, ...] = ("id",),
    **options: Any,
) -> str:  # fmt: skip
    """Stream a dataset into another one, until nothing is new; the checkpoint stays.

    A stream's source runs in a process of its own, which Spark starts anew for every query and
    gives ten seconds to call back (a constant in ``PythonWorkerFactory``, no setting). Importing
    PySpark takes half a second of a processor, but more than ten seconds where twenty others want
    it too. Then the query is started again, which is what a checkpoint is for.
    """
    from pyspark.errors import StreamingQueryException

    target = str(folder / "copy.lance")
    reader = session.readStream.format("lance")
    for name, value in options.items():
        reader = reader.option(name, value)
    query = (
        reader.load(source).select(*columns).writeStream.format("lance").option("queryId", "copy")
        .option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    )  # fmt: skip
    for left in reversed(range(5)):
        try:
            query.start(target).awaitTermination()
            break
        except StreamingQueryException as error:
            if left == 0 or "failed to connect back" not in str(error):
                raise
    return target


def test_a_stream_goes_on_where_it_was(session: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "rows.lance")
    dataset = lance_nb.write_dataset(numbers(0, 10), uri)
    target = copied(session, uri, tmp_path)
    assert ids_of(target) == list(range(10))
    for start in (10, 20, 30):
        dataset.insert(numbers(start, start + 10))
    dataset.optimize.compact_files()
    before = lance_nb.dataset(target).version
    copied(session, uri, tmp_path, maxVersionsPerTrigger=2)
    assert ids_of(target) == list(range(40))
    assert lance_nb.dataset(target).version > before + 1  # several batches


def test_changes_are_read_as_rows(session: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "rows.lance")
    dataset = lance_nb.write_dataset(numbers(0, 10), uri, enable_stable_row_ids=True)
    dataset.delete("id < 2")
    dataset.update({"id": "id + 100"}, "id = 5")
    dataset.insert(numbers(20, 21))
    options = {"readChangeFeed": "true", "endingVersion": 3, "startingVersion": 2}
    found = session.read.format("lance_nb").options(**options).load(uri).collect()
    assert sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in found) == [
        (2, "delete", 0), (2, "delete", 1), (3, "update_postimage", 105), (3, "update_preimage", 5),
    ]  # fmt: skip
    counted = session.read.format("lance_nb").options(readChangeFeed="true").load(uri).count()
    assert counted == 10 + 2 + 2 + 1


def test_a_stream_of_changes_goes_on_where_it_was(session: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "rows.lance")
    dataset = lance_nb.write_dataset(numbers(0, 3), uri, enable_stable_row_ids=True)
    columns = ("_commit_version", "_change_type", "id")
    copied(session, uri, tmp_path, columns, readChangeFeed="true")
    dataset.delete("id = 0")
    dataset.update({"id": "id + 100"}, "id = 1")
    dataset.optimize.compact_files()
    dataset.insert(numbers(7, 8))
    target = copied(session, uri, tmp_path, columns, readChangeFeed="true")
    newest = dataset.version
    found = by_pylance(target).select(list(columns)).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        (1, "insert", 0), (1, "insert", 1), (1, "insert", 2), (2, "delete", 0),
        (3, "update_postimage", 101), (3, "update_preimage", 1), (newest, "insert", 7),
    ]  # fmt: skip


def test_transactions_are_a_table(session: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "rows.lance")
    lance_nb.write_dataset(numbers(0, 10), uri).delete("id = 1")
    table = session.read.format("lance_nb").option("table", "transactions").load(uri).collect()
    assert [(row["version"], row["operation"]) for row in table] == [
        (1, "Overwrite"),
        (2, "Delete"),
    ]
    assert spark.register(session) == "lance"
