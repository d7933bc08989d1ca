"""Queries of Spark on datasets: the newest version, only what they need, the answers of Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

from lance_nb import spark
from lance_nb.errors import InvalidInputError, VersionNotFoundError
from lance_nb.spark import queries
from tests.spark.data import MARKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS
ROWS = 60


def table(start: int = 0, stop: int = ROWS) -> pa.Table:
    ids = range(start, stop)
    vectors = pa.array([[float(one)] * 8 for one in ids], pa.list_(pa.float32(), 8))
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "Name": pa.array([None if one % 7 == 0 else f"n{one % 5}" for one in ids]),
        "score": pa.array([float("nan") if one % 9 == 0 else one / 3 for one in ids]),
        "flag": pa.array([one % 2 == 0 for one in ids]),
        "emb": vectors,
    })  # fmt: skip


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A dataset of pylance: version 1 has 60 rows, version 2 ten more."""
    path = str(tmp_path / "photos.lance")
    lance.write_dataset(table(), path, max_rows_per_file=20)
    lance.write_dataset(table(ROWS, ROWS + 10), path, mode="append")
    return path


class Seen:
    """The scans that queries made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scans: list[queries.Scan] = []
        frame = queries.Scan.frame

        def noted(scan: queries.Scan, session: Any) -> Any:
            self.scans.append(scan)
            return frame(scan, session)

        monkeypatch.setattr(queries.Scan, "frame", noted)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def test_a_query_follows_the_newest_version_and_travels_in_time(
    session: SparkSession, uri: str, tmp_path: Path
) -> None:
    assert spark.register_views(session, str(tmp_path)) == ["photos"]

    def count(text: str) -> int:
        return int(spark.sql(text, spark=session).collect()[0][0])

    assert count("SELECT count(*) FROM photos") == 70
    lance.write_dataset(table(70, 75), uri, mode="append")
    assert count("SELECT count(*) FROM photos") == 75
    assert count("SELECT count(*) FROM photos VERSION AS OF 1") == 60
    assert count("SELECT count(*) FROM photos FOR VERSION AS OF 2 AS p WHERE p.id >= 0") == 70
    lance.dataset(uri).tags.create("first", 1)
    assert count("SELECT count(*) FROM photos VERSION AS OF 'first'") == 60
    assert count("SELECT count(*) FROM lance.`URI`".replace("URI", uri)) == 75
    assert (
        count(
            "SELECT max(id) FROM lance.`URI` VERSION AS OF 1 t WHERE t.id < 50".replace("URI", uri)
        )
        == 49
    )
    both = "SELECT count(*) FROM photos a LEFT ANTI JOIN photos VERSION AS OF 1 b ON a.id = b.id"
    assert count(both) == 15
    with pytest.raises(VersionNotFoundError):
        spark.sql("SELECT * FROM photos VERSION AS OF 9", spark=session)
    with pytest.raises(InvalidInputError, match="sql\\(\\) runs queries"):
        spark.sql("DELETE FROM photos", spark=session)
    opened = lance_nb_dataset(uri, 1)
    frame = spark.sql("SELECT * FROM p", spark=session, tables={"p": opened})
    assert frame.count() == 60


def lance_nb_dataset(uri: str, version: int) -> Any:
    import lance_nb

    return lance_nb.dataset(uri, version)


READ = {
    "SELECT sum(id) FROM photos": (["id"], None),
    "SELECT count(*) FROM photos": ([], None),
    "SELECT id, name FROM photos WHERE flag AND id > 5": (["id", "Name", "flag"], "(id > 5)"),
    "SELECT count(*) FROM photos WHERE NAME = 'n1'": (["Name"], "(`Name` = 'n1')"),
    "SELECT p.id FROM photos p WHERE 10 > p.id AND p.flag = true": (
        ["id", "flag"], "(id < 10) AND (flag = true)",
    ),
    "SELECT * FROM photos WHERE id IN (1, 2, -3)": (None, "(id IN (1, 2, -3))"),
    "SELECT id FROM photos WHERE score > 5": (["id", "score"], None),  # NaN is the largest to Spark
    "SELECT id FROM photos WHERE id > 2.5": (["id"], None),
    "SELECT id FROM photos WHERE id = '7'": (["id"], None),
    "SELECT id FROM photos WHERE id = 1 OR flag": (["id", "flag"], None),
    "SELECT a.id FROM photos a JOIN photos b ON a.id = b.id WHERE a.id = 1": (["id"], None),
    "SELECT x.id FROM (SELECT id, flag FROM photos WHERE id < 9) x WHERE x.flag": (
        ["id", "flag"], "(id < 9)",
    ),
    "WITH c AS (SELECT id FROM photos WHERE name IS NOT NULL) SELECT max(id) FROM c": (
        ["id", "Name"], "(`Name` IS NOT NULL)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_only_what_a_query_needs_is_read(
    session: SparkSession, uri: str, seen: Seen, text: str
) -> None:
    columns, condition = READ[text]
    found = spark.sql(text, spark=session, tables={"photos": uri})
    (scan,) = seen.scans
    assert scan.columns == columns
    assert (scan.filter or "").replace("`", "") == (condition or "").replace("`", "")
    if scan.filter is None:  # the answers of the others are compared below
        return
    expected = session.read.format("lance_nb").load(uri)
    expected.createOrReplaceTempView("photos_whole")
    other = session.sql(text.replace("photos", "photos_whole"))
    assert sorted(map(repr, found.collect())) == sorted(map(repr, other.collect()))


def test_random_queries_answer_as_spark_does(session: SparkSession, uri: str) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    session.read.format("lance_nb").load(uri).createOrReplaceTempView("photos_whole")
    atoms = (
        "id {op} {n}", "name {op} 'n{d}'", "score {op} {n}", "flag", "NOT flag", "name IS NULL",
        "id BETWEEN {d} AND {n}", "name IN ('n1', 'n{d}')", "id = '{n}'", "{n} {op} id",
        "name LIKE 'n{d}%'", "NOT (id {op} {n})", "name IS NOT NULL", "id % 3 = {d}",
        "id {op} {n}.5",
    )  # fmt: skip
    for _ in range(6):
        chosen = [
            one.format(op=chance.choice(["=", "<", "<=", ">", ">="]), n=chance.randrange(70),
                       d=chance.randrange(5))
            for one in chance.sample(atoms, chance.randint(1, 3))
        ]  # fmt: skip
        where = f" {chance.choice(['AND', 'AND', 'OR'])} ".join(chosen)
        text = "SELECT count(*), sum(id), max(name) FROM photos WHERE " + where  # noqa: S608
        found = spark.sql(text, spark=session, tables={"photos": uri}).collect()
        assert found == session.sql(text.replace("photos", "photos_whole")).collect(), text


def test_names_of_a_dataset_do_not_enter_the_query(session: SparkSession, tmp_path: Path) -> None:
    names = ["a`b", "c, d", "{e}", "x' OR '1'='1", "id"]
    uri = str(tmp_path / "a`b {t}.lance")
    lance.write_dataset(pa.table({name: [1, 2] for name in names}), uri)
    tables = {"a`b {t}": uri}
    found = spark.sql("SELECT * FROM `a``b {t}` WHERE id = 1", spark=session, tables=tables)
    assert found.columns == names
    assert [list(row) for row in found.collect()] == [[1] * 5]
    text = "SELECT `a``b {t}`.id, `{e}`, '{0}' FROM `a``b {t}` WHERE `c, d` = 2"
    assert [list(row) for row in spark.sql(text, spark=session, tables=tables).collect()] == [
        [2, 2, "{0}"]
    ]
