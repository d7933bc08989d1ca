"""``format("lance_nb")``: every option, on datasets of pylance and of ours."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.errors import InvalidInputError, VersionNotFoundError
from tests.spark.data import MARKS, NUM_ROWS, by_pylance, ids_of, rows, written
from tests.support.requirements import require_pylance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = MARKS


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return written(tmp_path)


@pytest.fixture
def old(tmp_path: Path) -> str:
    """A dataset of pylance: two versions, a tag, a branch of 300 rows, an index."""
    uri = str(tmp_path / "old.lance")
    made = require_pylance().write_dataset(rows(0, 200), uri, max_rows_per_file=100)
    made.tags.create("all", 1)
    made.create_scalar_index("id", "BTREE")
    made.delete("id >= 50")
    branch = made.create_branch("dev", "all")
    branch.insert(rows(200, 300))
    return uri


def loaded(session: SparkSession, uri: str, **options: Any) -> DataFrame:
    return session.read.format("lance_nb").options(**options).load(uri)


def test_every_version_is_read_by_its_name(session: SparkSession, old: str) -> None:
    history = lance_nb.dataset(old).history()
    moment = history[-1].timestamp
    assert isinstance(moment, datetime)
    named: list[tuple[dict[str, Any], int]] = [
        ({}, 50),
        ({"version": 1}, 200),
        ({"versionAsOf": 2}, 200),
        ({"tag": "all"}, 200),
        ({"branch": "dev"}, 300),
        ({"timestampAsOf": moment.isoformat()}, 200),
    ]
    frames = [loaded(session, old, columns="id", **options) for options, _ in named]
    counts = [frame.selectExpr(f"{at} AS at") for at, frame in enumerate(frames)]
    together = counts[0]
    for one in counts[1:]:
        together = together.union(one)
    found = {row["at"]: row["count"] for row in together.groupBy("at").count().collect()}
    assert [found[at] for at in range(len(named))] == [count for _, count in named]


def test_columns_filters_and_addresses(session: SparkSession, old: str) -> None:
    options = {"columns": "id", "filter": "id < 7", "withRowId": "true", "withRowAddress": "true"}
    found = loaded(session, old, **options)
    assert found.columns == ["id", "_rowid", "_rowaddr"]
    assert sorted(tuple(row) for row in found.collect()) == [(at, at, at) for at in range(7)]
    narrow = session.read.format("lance_nb").schema("name string").load(old)
    assert {row["name"] for row in narrow.collect()} == {f"n{at}" for at in range(7)}
    plain = {"storageOptions": json.dumps({"auto_mkdir": False}), "allowBases": "/nowhere"}
    assert loaded(session, old, columns="name", **plain).distinct().count() == 7


def test_metadata_is_read_as_tables(session: SparkSession, old: str) -> None:
    dataset = lance_nb.dataset(old)
    names = ("history", "fragments", "files", "columns", "tags", "branches", "indices")
    tables = {name: loaded(session, old, table=name).collect() for name in names}
    assert [row["operation"] for row in tables["history"]] == ["Overwrite", "CreateIndex", "Delete"]
    fragments = dataset.get_fragments()
    assert len(tables["fragments"]) == len(fragments)
    files = [file.path for one in fragments for file in one.data_files()]
    assert all(row["path"].endswith(path) for row, path in zip(tables["files"], files, strict=True))
    assert {row["name"] for row in tables["columns"]} >= {"id", "name", "vector"}
    assert [tuple(row) for row in tables["tags"]] == [("all", None, 1)]
    assert [(row["name"], row["parent_version"]) for row in tables["branches"]] == [("dev", 1)]
    assert [tuple(row) for row in tables["indices"]] == [("id_idx", "BTree", ["id"])]
    done = loaded(session, old, table="transactions", branch="dev").collect()
    assert done[-1]["operation"] == "Append"


def planned(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan())


def test_columns_whose_names_hold_commas_are_read(session: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"a,b": [1], " c": [2], "[d]": [3]})
    made = lance_nb.write_dataset(table, tmp_path / "commas.lance")
    for target in (made, made.uri):
        frame = spark.read(target, spark=session, columns=["[d]", "a,b"])
        assert [tuple(row) for row in frame.collect()] == [(3, 1)]


def test_a_frame_stays_at_its_version_and_spark_count_reads_no_rows(
    session: SparkSession, uri: str
) -> None:
    ours, plain = spark.read(uri, spark=session), loaded(session, uri)
    dataset = lance_nb.dataset(uri)
    dataset.drop_columns(["name"])
    dataset.delete("id >= 10")
    tracker = session.sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup(None)
    assert spark.count(uri) == spark.count(dataset) == 10
    assert tracker.getJobIdsForGroup(None) == before  # no job has run
    assert ours.count() == NUM_ROWS
    assert spark.read(dataset, spark=session).count() == 10
    assert spark.read(uri, spark=session, columns=["id"], withRowId=True).count() == 10
    assert tracker.getJobIdsForGroup(None) == before
    kept = spark.read(dataset, spark=session).cache()
    assert kept.count() == 10  # by a job, which fills the cache
    assert len(tracker.getJobIdsForGroup(None)) > len(before)
    kept.unpersist()
    assert ours.where("id < 3").count() == 3
    assert spark.read(uri, spark=session, filter="id < 3").count() == 3
    assert spark.count(uri, "id < 3", engine="spark", spark=session) == 3
    assert plain.where("name = 'n0'").count() == len(range(0, NUM_ROWS, 7))
    assert loaded(session, uri).count() == 10
    assert "MapInArrow" in planned(ours)  # costs the JVM less than a scan of a data source
    assert "BatchScan" in planned(plain)
    empty = lance_nb.dataset(uri)
    empty.truncate_table()
    assert spark.read(empty, spark=session).where("id < 3").collect() == []
    with pytest.raises(InvalidInputError, match="leave out 'tag'"):
        spark.read(dataset, spark=session, tag="all")
    with pytest.raises(VersionNotFoundError):
        spark.read(uri, spark=session, version=99)


def test_the_format_writes_through_sql_too(session: SparkSession, uri: str) -> None:
    loaded(session, uri).where("id < 5").write.format("lance_nb").mode("append").save(uri)
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING lance_nb OPTIONS (path '{uri}')")
    session.sql("INSERT INTO v SELECT id + 100000, name, vector FROM v WHERE id < 3")
    dataset = lance_nb.dataset(uri)
    assert dataset.version == 3
    assert dataset.count_rows("id >= 100000") == 6
    assert by_pylance(uri).num_rows == NUM_ROWS + 11
    dataset.create_scalar_index("id", "BTREE")
    session.sql("INSERT OVERWRITE v SELECT * FROM v WHERE id < 4")
    overwritten = lance_nb.dataset(uri)
    assert (overwritten.count_rows(), overwritten.list_indices()) == (8, [])
    assert overwritten.transaction().description.endswith("; dropped index 'id_idx' on 'id'")


def test_options_say_how_files_are_written(session: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "new.lance")
    frame = session.range(0, 100, 1, 1)
    writer = frame.write.format("lance_nb").mode("overwrite").option("maxRowsPerFile", 30)
    writer.options(dataStorageVersion="2.1", enableStableRowIds="true").save(uri)
    made = require_pylance().dataset(uri)
    assert [one.count_rows() for one in made.get_fragments()] == [30, 30, 30, 10]
    assert (made.data_storage_version, made.has_stable_row_ids) == ("2.1", True)
    made.create_branch("dev", 1)
    frame.limit(5).write.format("lance_nb").mode("append").option("branch", "dev").save(uri)
    assert lance_nb.dataset(uri).count_rows() == 100
    assert lance_nb.dataset(uri, ("dev", None)).count_rows() == 105
    session.range(3).write.format("lance_nb").mode("overwrite").save(uri)
    assert ids_of(uri) == [0, 1, 2]
    assert lance_nb.dataset(uri).version == 2


def test_what_options_cannot_mean_is_refused(session: SparkSession, uri: str) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"filtr": "id = 1"}, "unknown option 'filtr'"),
        ({"version": "all"}, "tag or branch 'all' does not exist"),
        ({"branch": "main", "version": "v"}, "version of a branch 'v' is not a number"),
        ({"tag": "all", "version": 1}, "set only one of version"),
        ({"table": "nope"}, "table 'nope' is not one of"),
        ({"columns": "nope"}, "nope"),
        ({"storageOptions": "x"}, "storage_options is not JSON"),
    ]
    for options, message in wrong:
        with pytest.raises(Exception, match=message):
            loaded(session, uri, **options)
    with pytest.raises(Exception, match="the path of the dataset is missing"):
        session.read.format("lance_nb").load()


def test_folders_become_views(session: SparkSession, uri: str, tmp_path: Path) -> None:
    assert spark.register_views(session, str(tmp_path)) == ["rows"]
    assert session.sql("SELECT max(id) AS m FROM rows").collect()[0]["m"] == NUM_ROWS - 1
