"""lance_nb.spark on a real session: the same as done locally, and as pylance reads it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    DatasetAlreadyExistsError,
    RunCancelledError,
    SchemaMismatchError,
    StorageError,
)
from lance_nb.spark.engine import TaskProgress
from lance_nb.spark.spark_engine import SparkEngine
from tests.house.source import ROOT
from tests.spark.data import MARKS, NUM_ROWS, by_pylance, rows, written
from tests.support.plain_script import PLAIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return written(tmp_path)


VERBS: dict[str, Callable[[str, Any], LanceDataset]] = {
    "delete": lambda uri, on: spark.delete(uri, "id % 3 = 0", **on),
    "update": lambda uri, on: spark.update(uri, {"name": "upper(name)"}, "id % 2 = 0", **on),
    "backfill": lambda uri, on: spark.backfill(uri, {"double": "id * 2"}, **on),
    "compact": lambda uri, on: spark.compact(uri, **on),
    "index": lambda uri, on: spark.create_scalar_index(uri, "id", **on),
    "append": lambda uri, on: spark.append(uri, uri.replace("rows.lance", "more*.parquet"), **on),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_on_spark_does_what_it_does_here(
    session: SparkSession, tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_nb.spark.plan.TASK_BYTES", 1)
    parquet.write_table(rows(NUM_ROWS, NUM_ROWS + 500), tmp_path / "more.parquet")
    found = []
    for at, on in enumerate([{"engine": "local"}, {"engine": "spark", "spark": session}]):
        path = tmp_path / str(at) / "rows.lance"
        lance_nb.write_dataset(rows(), str(path), max_rows_per_file=NUM_ROWS // 8)
        (path.parent / "more.parquet").write_bytes((tmp_path / "more.parquet").read_bytes())
        made = VERBS[verb](str(path), on)
        assert made.version == 2
        found.append(made.to_table().sort_by("id"))
        assert by_pylance(str(path)).sort_by("id") == found[-1]
    assert found[0] == found[1]


def test_copies_comparisons_and_measures_on_spark(
    session: SparkSession, tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_nb.spark.plan.TASK_BYTES", 1)
    on: dict[str, Any] = {"engine": "spark", "spark": session}
    copy = spark.clone(uri, tmp_path / "copy.lance", **on)
    assert by_pylance(copy.uri) == by_pylance(uri)
    prices = pa.table({"id": [5, 7], "name": ["five", "seven"]})
    made = spark.update_columns(copy, prices, "id", **on)
    assert made.take([7], columns=["name"])["name"].to_pylist() == ["seven"]
    assert spark.diff(made, 1, key="id", **on)["id"].to_pylist() == [5, 7]
    changes = spark.diff_frame(made, 1, key="id", columns=["name"], spark=session)
    assert sorted(row["name"] for row in changes.collect()) == ["five", "seven"]
    assert spark.statistics(made, **on) == made.stats.data_stats()
    assert spark.count(made) == NUM_ROWS


def test_a_frame_is_written_appended_and_overwritten(
    session: SparkSession, tmp_path: Path, uri: str
) -> None:
    frame = spark.read(uri, spark=session)
    new = str(tmp_path / "new.lance")
    made = spark.write(frame, new)
    assert made.count_rows() == NUM_ROWS
    with pytest.raises(DatasetAlreadyExistsError):
        spark.write(frame, new)
    said = spark.explain(spark.plan_frame(made, frame))
    assert "tasks: one for each partition of the DataFrame" in said
    assert "engine: spark (a DataFrame is processed by Spark)" in said
    made = spark.write(frame.limit(5), made, mode="append", message="five more")
    assert (made.version, made.count_rows()) == (2, NUM_ROWS + 5)
    assert made.history(1)[0].message == "five more"
    made = spark.write(frame.where("id < 3"), new, mode="overwrite")
    assert sorted(made.to_table()["id"].to_pylist()) == [0, 1, 2]
    assert by_pylance(new).num_rows == 3


def test_lists_become_vectors_again(session: SparkSession, uri: str, tmp_path: Path) -> None:
    frame = spark.read(uri, spark=session).where("id < 10")
    made = spark.append(uri, frame)
    assert made.count_rows() == NUM_ROWS + 10
    assert made.schema.field("vector").type == pa.list_(pa.float32(), 4)
    hinted = frame.withMetadata("vector", {"lance_nb.dimension": 4})
    fresh = spark.write(hinted, str(tmp_path / "hinted.lance"))
    assert pa.types.is_fixed_size_list(fresh.schema.field("vector").type)


def test_columns_that_do_not_fit_are_refused(session: SparkSession, uri: str) -> None:
    frame = session.createDataFrame([(1, "x")], "id long, other string")
    with pytest.raises(SchemaMismatchError, match="no column 'other'"):
        spark.append(uri, frame)
    assert lance_nb.dataset(uri).version == 1


FIRST_JOBS = """
def imported(batches):
    import pyarrow
    is_there = sum(one.num_rows for one in batches) and "pandas" in sys.modules
    values = pyarrow.py_buffer(bytes([is_there, 0, 0, 0]))
    array = pyarrow.Array.from_buffers(pyarrow.int32(), 1, [None, values])
    yield pyarrow.RecordBatch.from_arrays([array], ["is_there"])


session = spark.find_session()
spark.register(session)
new = session.range(50_000, 50_003)
new = new.selectExpr("id", "'x' AS name", "array(0f, 1f, 2f, 3f) AS vector")
spark.append(sys.argv[1], new)
new.write.format("lance_nb").mode("append").save(sys.argv[1])
rows = session.read.format("lance").schema("id long").load(sys.argv[1])
print(rows.where("id > 50000").count(), spark.read(sys.argv[1], columns=["id"]).count())
with spark.sessions.no_pandas_warning():
    workers = session.range(0, 8, 1, 8).mapInArrow(imported, "is_there int").collect()
print(sum(row["is_there"] for row in workers), "of 8 tasks ran where pandas is imported")
"""
OF_SPARK = re.compile(
    r"^WARNING: Using incubator modules|^Using Spark's default log4j|Your hostname, .* resolves to"
    r"|Set SPARK_LOCAL_IP if you need|^Setting default log level|^To adjust logging level"
    r"|NativeCodeLoader: Unable to load native-hadoop library"
)
"""What PySpark prints of itself when a session starts and runs ``spark.range(1).collect()``."""


def test_a_script_without_a_guard_commits_once_on_spark(
    uri: str, tmp_path: Path, bytecode: dict[str, str]
) -> None:
    parquet.write_table(rows(NUM_ROWS, NUM_ROWS + 10), tmp_path / "small.parquet")
    for name in ("a", "b"):
        parquet.write_table(rows(10_000, 10_040), tmp_path / f"big-{name}.parquet")
    script = tmp_path / "script.py"
    script.write_text(PLAIN + FIRST_JOBS)
    done = subprocess.run(
        [sys.executable, script, uri, tmp_path, "spark"],
        env={**bytecode, "PYTHONPATH": str(ROOT)},
        check=False, timeout=600, capture_output=True, text=True,
    )  # fmt: skip
    expected = (
        f"{NUM_ROWS + 90} rows, version 3\n4 {NUM_ROWS + 96}\n"
        "0 of 8 tasks ran where pandas is imported\n"  # it slows every task: see engine.py
    )
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    said = [one for one in done.stderr.splitlines() if not OF_SPARK.search(one)]
    assert said == []


def test_a_read_has_a_partition_for_each_core(
    session: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.read(uri, spark=session).rdd.getNumPartitions() == 1  # eight small fragments
    monkeypatch.setattr("lance_nb.spark.plan._LEAST_BYTES", 1)
    found = spark.read(uri, spark=session)
    assert found.rdd.getNumPartitions() == session.sparkContext.defaultParallelism == 2
    assert sorted(row["id"] for row in found.select("id").collect()) == list(range(NUM_ROWS))


@dataclass(frozen=True)
class FailsFirst:
    """A task of a test: fails when it is tried first, then deletes nothing."""

    marks: str
    number: int
    size_bytes: int = 1

    def run(self) -> None:
        mark = Path(self.marks) / str(self.number)
        if not mark.exists():
            mark.touch()
            raise StorageError("x", "the network is away")


@dataclass(frozen=True)
class Sleeps:
    """A task of a test that takes five minutes."""

    size_bytes: int = 1

    def run(self) -> None:
        time.sleep(300)


def test_a_task_that_fails_is_tried_again(session: SparkSession, tmp_path: Path) -> None:
    tasks = [FailsFirst(str(tmp_path), at) for at in range(3)]
    assert SparkEngine(session).run(tasks, lambda _: None, lambda: False) == [None] * 3


def test_a_task_that_fails_does_not_take_its_neighbours_along(
    session: SparkSession, tmp_path: Path
) -> None:
    tasks = [FailsFirst(str(tmp_path), at) for at in range(40)]  # more than Spark tries a task
    told: list[TaskProgress] = []
    assert SparkEngine(session).run(tasks, told.append, lambda: False) == [None] * 40
    assert (told[-1].num_done, told[-1].num_tasks) == (40, 40)


def test_a_run_is_cancelled_in_seconds_and_the_session_lives(session: SparkSession) -> None:
    stop = threading.Event()
    threading.Timer(1, stop.set).start()
    began = time.monotonic()
    with pytest.raises(RunCancelledError):
        SparkEngine(session).run([Sleeps(), Sleeps()], lambda _: None, stop.is_set)
    assert time.monotonic() - began < 150  # half of what a task takes that nobody ends
    assert session.range(5).count() == 5


def test_the_session_that_is_there_is_found(session: SparkSession) -> None:
    assert spark.find_session() is session
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(spark.find_session()))
    thread.start()
    thread.join()
    assert found == [session]


def test_workers_of_our_session_keep_freed_memory_for_their_next_task(
    session: SparkSession,
) -> None:
    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        delay = os.environ.get("MIMALLOC_PURGE_DELAY", "")
        yield pa.RecordBatch.from_pydict({"delay": [delay]})

    found = session.range(1).mapInArrow(told, "delay string").collect()
    assert {row["delay"] for row in found} == {"60000"}


@pytest.mark.parametrize("way", ["function", "format"])
def test_a_new_dataset_of_a_frame_records_checksums(
    session: SparkSession, tmp_path: Path, uri: str, way: str
) -> None:
    frame = spark.read(uri, spark=session).select("id", "name")
    new = str(tmp_path / "summed.lance")
    if way == "function":
        spark.write(frame, new, checksums=True)
    else:
        frame.write.format("lance_nb").option("checksums", "true").mode("append").save(new)
    spark.append(new, frame.limit(5))
    dataset = lance_nb.dataset(new, check=True)

    assert dataset.to_table().num_rows == NUM_ROWS + 5
    assert lance_nb.verify(new).ok
    for path in Path(new, "data").iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
        found = {finding.code for finding in lance_nb.verify(new, values=False, checksums=True)
                 .findings}  # fmt: skip
        assert "checksum-wrong" in found, path.name
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
    assert by_pylance(new).num_rows == NUM_ROWS + 5
