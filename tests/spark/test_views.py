"""Temporary views that plain ``spark.sql`` queries, while pylance and Spark commit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from tests.spark.data import MARKS, NUM_ROWS, rows, written
from tests.support.requirements import require_pylance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS
lance: Any = require_pylance()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return written(tmp_path)


@pytest.fixture
def view(session: SparkSession, uri: str) -> None:
    assert spark.register_views(session, str(Path(uri).parent)) == ["rows"]


def numbers(session: SparkSession, query: str) -> list[int]:
    return list(session.sql(query).collect()[0])


@pytest.mark.usefixtures("view")
def test_every_query_reads_the_newest_version(session: SparkSession, uri: str) -> None:
    query = "SELECT count(*), max(id) FROM rows"
    assert numbers(session, query) == [NUM_ROWS, NUM_ROWS - 1]
    frame = session.sql(query)
    lance.write_dataset(rows(NUM_ROWS, NUM_ROWS + 10), uri, mode="append")
    assert numbers(session, query) == [NUM_ROWS + 10, NUM_ROWS + 9]
    assert list(frame.collect()[0]) == [NUM_ROWS, NUM_ROWS - 1]  # one DataFrame, one version
    spark.write(session.sql("SELECT id + 10000 AS id, name, vector FROM rows LIMIT 5"), uri,
                "append")  # fmt: skip
    assert numbers(session, query)[0] == NUM_ROWS + 15
    lance.dataset(uri).delete("id >= 4")
    session.sql("REFRESH TABLE rows")
    assert numbers(session, query) == [4, 3]
    joined = "SELECT count(*), count(DISTINCT a.id) FROM rows a JOIN rows b USING (name)"
    assert numbers(session, joined) == [4, 4]
    names = session.sql("SELECT name FROM rows ORDER BY id").collect()
    assert [row["name"] for row in names] == lance.dataset(uri).to_table()["name"].to_pylist()


@pytest.mark.usefixtures("view")
def test_all_cores_read_and_vectors_stay_vectors(
    session: SparkSession, uri: str, tmp_path: Path
) -> None:
    copy = str(tmp_path / "copy.lance")
    found = session.sql("SELECT *, spark_partition_id() AS part FROM rows")
    assert found.rdd.getNumPartitions() == session.sparkContext.defaultParallelism
    spark.write(session.sql("SELECT * FROM rows"), copy)
    assert lance.dataset(copy).schema == lance.dataset(uri).schema
    sort = [("id", "ascending")]
    assert lance.dataset(copy).to_table().sort_by(sort) == lance.dataset(uri).to_table().sort_by(
        sort
    )


@pytest.mark.usefixtures("view")
def test_spark_does_not_take_a_view_for_small(session: SparkSession) -> None:
    java: Any = session.sql("SELECT id FROM rows")
    size = int(str(java._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    assert size > 2**40  # unknown; adaptive execution measures it


@pytest.mark.usefixtures("view")
def test_changes_of_columns(session: SparkSession, uri: str) -> None:
    lance.dataset(uri).add_columns({"twice": "id * 2"})
    assert session.sql("SELECT * FROM rows").columns == ["id", "name", "vector"]
    assert numbers(session, "SELECT count(*) FROM rows") == [NUM_ROWS]
    lance.dataset(uri).drop_columns(["name"])
    with pytest.raises(Exception, match="column 'name' of version 3 is missing, and was string"):
        session.sql("SELECT count(*) FROM rows").collect()
    spark.register_views(session, str(Path(uri).parent))
    assert session.sql("SELECT * FROM rows").columns == ["id", "vector", "twice"]
    assert numbers(session, "SELECT sum(twice) FROM rows") == [NUM_ROWS * (NUM_ROWS - 1)]


def test_names_are_quoted_and_a_dataset_that_is_gone_is_named(
    session: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "my `photos` 1.5-final.lance"
    lance_nb.write_dataset(pa.table({"id": [1, 2], "it's": ["a", "b"]}), place)
    assert spark.register_views(session, str(tmp_path)) == ["my `photos` 1_5_final"]
    query = "SELECT count(*), max(id) FROM `my ``photos`` 1_5_final`"
    assert numbers(session, query) == [2, 2]
    assert spark.sql(query, spark=session).collect()[0][0] == 2
    shutil.rmtree(place)
    with pytest.raises(Exception, match=r"my `photos` 1\.5-final\.lance"):
        session.sql(query)


@pytest.mark.usefixtures("view")
def test_an_emptied_dataset_has_no_rows(session: SparkSession, uri: str) -> None:
    lance.dataset(uri).delete("true")
    assert numbers(session, "SELECT count(*) FROM rows") == [0]
