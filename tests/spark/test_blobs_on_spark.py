"""Rows with blobs, of both generations, through the tasks of Spark; pylance reads the payloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.spark.run import RunOptions, run_once
from tests.spark.data import MARKS
from tests.support.requirements import require_pylance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = MARKS

SMALL = {  # inline up to 10 bytes, shared blob files up to 1,000, above that one file each
    "lance-encoding:blob-inline-size-threshold": "10",
    "lance-encoding:blob-dedicated-size-threshold": "1000",
    "lance-encoding:blob-pack-file-size-threshold": "400",
}
BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"} | SMALL)
PAYLOADS = [b"abc", None, b"", b"p" * 300, b"d" * 2000, b"q" * 200, b"zz"]
NUM = len(PAYLOADS)
Rows = dict[int, tuple[int, bytes | None]]
WRITTEN: Rows = {first + at: (1, one) for first in (0, 10) for at, one in enumerate(PAYLOADS)}
MORE: Rows = {20 + at: (2, one) for at, one in enumerate(PAYLOADS)}


def table(rows: Rows, blob: pa.Field = BLOB) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("x", pa.int64()), blob])
    columns = [list(rows), [one[0] for one in rows.values()], [one[1] for one in rows.values()]]
    arrays = [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    """Two fragments, written by pylance; blobs of the second generation in 2.2."""
    lance = require_pylance()
    uri = str(tmp_path / "blobs.lance")
    for first in (0, 10):
        part = {key: one for key, one in WRITTEN.items() if first <= key < first + NUM}
        lance.write_dataset(
            table(part), uri, mode="append" if first else "create",
            data_storage_version=request.param,
        )  # fmt: skip
    return lance_nb.dataset(uri)


@pytest.fixture
def on(session: SparkSession) -> dict[str, Any]:
    return {"engine": "spark", "spark": session}


@pytest.fixture
def more(session: SparkSession) -> DataFrame:
    rows = [(key, *one) for key, one in MORE.items()]
    return session.createDataFrame(rows, "id long, x long, b binary").repartition(2)


def content(uri: str) -> Rows:
    """Return the rows as pylance reads them."""
    dataset = require_pylance().dataset(uri)
    dataset.validate()
    found = dataset.scanner(blob_handling="all_binary").to_table().to_pylist()
    assert len(found) == len({row["id"] for row in found})
    return {row["id"]: (row["x"], row["b"]) for row in found}


def test_rows_of_files_are_appended(
    dataset: LanceDataset, tmp_path: Path, on: dict[str, Any]
) -> None:
    parquet.write_table(table(MORE, pa.field("b", pa.binary())), tmp_path / "more.parquet")
    spark.append(dataset, str(tmp_path / "more.parquet"), **on)
    assert content(dataset.uri) == WRITTEN | MORE


def test_rows_of_a_dataset_are_appended_and_written_as_a_new_one(
    dataset: LanceDataset, tmp_path: Path, session: SparkSession, on: dict[str, Any]
) -> None:
    same = {"data_storage_version": dataset.data_storage_version}
    source = spark.write(dataset, str(tmp_path / "copy.lance"), files=same, **on)
    assert content(source.uri) == WRITTEN
    for at in (0, 10):  # a fragment of its own
        source.update({"id": "id + 100"}, f"id >= {at} AND id < {at + 10}")
    source.delete("id = 103")
    source = lance_nb.dataset(source.uri)
    plan = spark.plan_append(dataset, source, task_bytes=1)
    assert len(plan.tasks) == 2
    run_once(plan, RunOptions(**on))
    copied = {key + 100: one for key, one in WRITTEN.items() if key != 3}
    assert content(dataset.uri) == WRITTEN | copied


def test_a_dataframe_is_appended(dataset: LanceDataset, more: DataFrame) -> None:
    spark.append(dataset, more)
    assert content(dataset.uri) == WRITTEN | MORE
    later = more.selectExpr("id + 100 as id", "x", "b")
    later.write.format("lance_nb").mode("append").save(dataset.uri)
    assert content(dataset.uri) == WRITTEN | MORE | {key + 100: one for key, one in MORE.items()}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_dataframe_with_a_hint_makes_blobs(more: DataFrame, tmp_path: Path, version: str) -> None:
    hinted = more.withMetadata("b", {"lance-encoding:blob": "true"} | SMALL)
    made = spark.write(hinted, str(tmp_path / "new.lance"), files={"data_storage_version": version})
    assert content(made.uri) == MORE
    assert pa.types.is_struct(made.to_table(["b"]).schema.field("b").type)  # descriptions
    read = spark.read(made, columns=["id", "b"], spark=more.sparkSession).where("id = 23").collect()
    assert read[0]["b"]["size"] == 300


def test_fragments_are_compacted(dataset: LanceDataset, on: dict[str, Any]) -> None:
    dataset.delete("id = 2")
    made = spark.compact(dataset.uri, **on)
    assert len(made.get_fragments()) == 1
    assert content(dataset.uri) == {key: one for key, one in WRITTEN.items() if key != 2}


def test_rows_are_updated_and_deleted(dataset: LanceDataset, on: dict[str, Any]) -> None:
    made = spark.update(dataset, {"x": "x + 5"}, "id % 2 = 0", **on)
    made = spark.update(made, {"b": "cast('new' as binary)"}, "id = 3", **on)
    spark.delete(made, "id = 14", **on)
    wanted = {key: (x + 5 * (key % 2 == 0), one) for key, (x, one) in WRITTEN.items() if key != 14}
    assert content(dataset.uri) == wanted | {3: (1, b"new")}


PATCH: Rows = {1: (5, b"new"), 3: (6, None), 14: (7, b"n" * 500), 99: (8, b"m" * 3000)}


def test_a_table_is_merged(dataset: LanceDataset, on: dict[str, Any]) -> None:
    spark.upsert(dataset, table(PATCH), "id", **on)
    assert content(dataset.uri) == WRITTEN | PATCH


@pytest.mark.parametrize("form", ["broadcast", "shuffle"])
def test_a_dataframe_is_merged(
    dataset: LanceDataset, session: SparkSession, form: str, on: dict[str, Any]
) -> None:
    rows = [(key, *one) for key, one in PATCH.items()]
    frame = session.createDataFrame(rows, "id long, x long, b binary")
    spark.upsert(dataset, frame, "id", form=form, **on)
    assert content(dataset.uri) == WRITTEN | PATCH
    without = frame.selectExpr("id", "x + 10 as x")
    spark.merge(dataset.uri, without, "id", form=form).when_matched_update_all().execute(**on)
    assert content(dataset.uri) == WRITTEN | {key: (x + 10, one) for key, (x, one) in PATCH.items()}


def test_columns_are_added_replaced_and_cloned(
    dataset: LanceDataset, tmp_path: Path, on: dict[str, Any]
) -> None:
    made = spark.backfill(dataset, {"missing": "b IS NULL"}, **on)
    missing = made.to_table(["missing"])["missing"].to_pylist()
    assert missing == [one is None for one in PAYLOADS * 2]
    patch = table({key: PATCH[key] for key in (1, 14)}).drop_columns(["x"])
    made.drop_columns(["missing"])
    made = spark.update_columns(dataset.uri, patch, "id", **on)
    wanted = WRITTEN | {1: (1, b"new"), 14: (1, b"n" * 500)}
    assert content(dataset.uri) == wanted
    copy = spark.clone(made, tmp_path / "clone.lance", **on)
    assert content(copy.uri) == wanted


def test_a_stream_writes_blobs(
    dataset: LanceDataset, session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    parquet.write_table(table(MORE, pa.field("b", pa.binary())), tmp_path / "in" / "0.parquet")
    stream = session.readStream.schema("id long, x long, b binary").parquet(str(tmp_path / "in"))
    writer = stream.writeStream.format("lance_nb").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(dataset.uri).awaitTermination()
    assert content(dataset.uri) == WRITTEN | MORE
