"""What users of a lakehouse expect: modes, conditions, catalogs, sizes for joins, change feeds."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.errors import InvalidInputError
from lance_nb.spark import scan_frames
from tests.spark.data import MARKS, NUM_ROWS, by_pylance, ids_of, written
from tests.support.requirements import require_pylance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = MARKS


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return written(tmp_path, stable=True)


def sizes(frame: DataFrame) -> int:
    """What Spark thinks that a DataFrame has of bytes."""
    java: Any = frame
    return int(str(java._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def plan_of(frame: DataFrame) -> str:
    java: Any = frame
    return str(java._jdf.queryExecution().executedPlan().toString())


def test_rows_that_pass_a_condition_are_overwritten(session: SparkSession, uri: str) -> None:
    new = session.range(10_000, 10_100).selectExpr(
        "id", "'n3' AS name", "array(0f, 1f, 2f, 3f) AS vector"
    )
    writer = new.repartition(3).write.format("lance").mode("overwrite")
    writer.option("replaceWhere", "name = 'n3'").save(uri)
    kept = [one for one in range(NUM_ROWS) if one % 7 != 3]
    assert ids_of(uri) == kept + list(range(10_000, 10_100))
    assert lance_nb.dataset(uri).history()[0].operation == "Update"
    spark.write(
        new.where("id >= 10093"),
        uri,
        "overwrite",
        where="name = 'n3' AND id >= 10050",
        spark=session,
    )
    assert len(ids_of(uri)) == len(kept) + 50 + 7
    from pyspark.errors import PySparkException

    wrong = new.withColumn("name", new.id.cast("string"))
    with pytest.raises(InvalidInputError, match="new rows have to pass it too"):
        spark.write(wrong, uri, "overwrite", where="name = 'n3'", spark=session)
    with pytest.raises(PySparkException, match="new rows have to pass it too"):
        wrong.write.format("lance").mode("overwrite").option("replaceWhere", "name = 'n3'").save(
            uri
        )
    with pytest.raises(PySparkException, match="needs mode='overwrite'"):
        new.write.format("lance").mode("append").option("replaceWhere", "name = 'n3'").save(uri)
    assert lance_nb.dataset(uri).version == 3


def test_what_spark_refuses_has_a_verb(session: SparkSession, uri: str, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    frame = session.range(3)
    for mode in ("error", "ignore"):
        with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            frame.write.format("lance").mode(mode).save(str(tmp_path / "new.lance"))
    assert spark.write(frame, uri, "ignore", spark=session).count_rows() == NUM_ROWS
    with pytest.raises(PySparkException):
        frame.write.format("lance").mode("append").partitionBy("id").save(uri)
    far = (
        session.range(100, 500).repartition(4).selectExpr("(id * 37) % 400 AS id", "id % 5 AS day")
    )
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        made = spark.write(far, str(tmp_path / "far.lance"), cluster_by="day", spark=session)
    finally:
        session.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    days = [
        sorted(set(one.to_table(columns=["day"])["day"].to_pylist()))
        for one in made.get_fragments()
    ]
    assert len(days) > 1
    assert sorted(day for one in days for day in one) == [0, 1, 2, 3, 4]  # a day is in one fragment
    assert by_pylance(made.uri).num_rows == 400


def test_a_large_dataset_is_not_broadcast(
    session: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = spark.read(uri, spark=session, columns=["id"])
    monkeypatch.setattr(scan_frames, "BROADCAST_BYTES", 1000)
    large = spark.read(uri, spark=session, columns=["id"])
    assert sizes(small) < 10_000 < 2**40 < sizes(large)
    joined = large.join(spark.read(uri, spark=session, columns=["id", "name"]), "id")
    assert "BroadcastHashJoin" not in plan_of(joined)
    assert "SortMergeJoin" in plan_of(joined)
    assert joined.count() == NUM_ROWS
    assert large.rdd.getNumPartitions() == small.rdd.getNumPartitions()


def test_a_folder_is_a_catalog_of_sql(session: SparkSession, tmp_path: Path) -> None:
    lance = require_pylance()
    photos = pa.table({"id": range(10), "label": [f"l{one % 2}" for one in range(10)]})
    lance.write_dataset(photos, tmp_path / "photos.lance").delete("id = 9")
    labels = pa.table({"label": ["l0", "l1"], "text": ["even", "odd"]})
    lance.write_dataset(labels, tmp_path / "labels.lance")
    query = """SELECT text, count(*) AS n FROM Photos JOIN labels USING (label)
        GROUP BY text ORDER BY text"""
    for tables in (str(tmp_path), tmp_path, lance_nb.database(tmp_path)):
        found = spark.sql(query, spark=session, tables=tables).collect()
        assert [tuple(row) for row in found] == [("even", 5), ("odd", 4)]
    old = "SELECT count(*) FROM photos VERSION AS OF 1"
    assert spark.sql(old, spark=session, tables=tmp_path).head()[0] == 10


def test_a_change_feed_is_read_in_parts(
    session: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = require_pylance().dataset(uri)
    made.update({"name": "'new'"}, where="id < 100")
    made.delete("id >= 3900")
    feed = session.read.format("lance_nb").option("readChangeFeed", "true")
    frame = feed.option("startingVersion", 2).option("columns", "id,name").load(uri)
    counts = {
        row["_change_type"]: row["count"] for row in frame.groupBy("_change_type").count().collect()
    }
    assert counts == {"update_preimage": 100, "update_postimage": 100, "delete": 100}


def test_jobs_give_no_warnings_of_packages(session: SparkSession, uri: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        assert spark.count(uri, "id < 9", engine="spark", spark=session) == 9
        found = spark.sql("SELECT sum(id) FROM t", tables={"t": uri}, spark=session).head()
        spark.write(session.range(5), f"{uri}-new", spark=session)
        changed = session.range(2).selectExpr("id")
        spark.upsert(f"{uri}-new", changed, "id", form="shuffle", spark=session)
    assert found[0] == sum(range(NUM_ROWS))
    assert ids_of(f"{uri}-new") == list(range(5))
