"""Upserts on a real session, in both forms: the same as done by the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.errors import MergeInsertError, SchemaMismatchError
from tests.spark.data import MARKS, by_pylance, rows, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = MARKS
CHANGED = rows(3_900, 4_100).set_column(1, "name", pa.array([f"new{one}" for one in range(200)]))


def frame_of(session: SparkSession, table: pa.Table) -> DataFrame:
    return session.createDataFrame(table).repartition(3)


@pytest.mark.parametrize("form", ["broadcast", "shuffle"])
def test_an_upsert_on_spark_does_what_it_does_here(
    session: SparkSession, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_nb.spark.plan.TASK_BYTES", 1)
    made = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        uri = written(tmp_path / name, stable=form == "shuffle")
        dataset = lance_nb.dataset(uri)
        dataset.delete("id % 100 = 50")
        builder: Any = dataset.merge_insert("id")
        if name == "there":
            source = frame_of(session, CHANGED)
            builder = spark.merge(dataset, source, "id", form=form)
        builder.when_matched_update_all("target.id < 3990").when_not_matched_insert_all()
        builder.when_not_matched_by_source_delete("id < 1000")
        if name == "here":
            stats = builder.execute(CHANGED)
        else:
            assert builder.execute(engine="spark", spark=session, message="today") == stats
            assert builder.dataset.history(1)[0].message == "today"
        made.append(by_pylance(uri).sort_by("id"))
    assert made[0] == made[1]
    assert stats == {
        "num_inserted_rows": 101, "num_updated_rows": 89, "num_deleted_rows": 990,
    }  # fmt: skip


def test_a_small_upsert_does_not_become_hundreds_of_fragments(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "lance_nb.spark.merge_insert._partitions", lambda _: 200
    )  # Spark's own number
    monkeypatch.setattr("lance_nb.spark.merge_insert._LEAST_ROWS", 1)
    uri = written(tmp_path)
    before = len(lance_nb.dataset(uri).get_fragments())
    parquet.write_table(CHANGED, tmp_path / "changed.parquet")
    source = session.read.parquet(str(tmp_path / "changed.parquet"))
    made = spark.upsert(uri, source, "id", form="shuffle")
    assert made.count_rows("name like 'new%'") == 200
    cores = session.sparkContext.defaultParallelism
    assert len(made.get_fragments()) <= before + cores


def test_what_is_wrong_with_a_frame_changes_nothing(session: SparkSession, tmp_path: Path) -> None:
    uri = written(tmp_path)
    twice = frame_of(session, pa.concat_tables([CHANGED, CHANGED.slice(7, 1)]))
    with pytest.raises(MergeInsertError, match="multiple source rows match"):
        spark.upsert(uri, twice, "id", form="shuffle")
    with pytest.raises(SchemaMismatchError, match="no column 'other'"):
        spark.upsert(uri, session.createDataFrame([(1, 2)], "id long, other long"), "id")
    assert lance_nb.dataset(uri).version == 1


@pytest.mark.parametrize("num_buckets", [1, 50])  # 50: most have rows of one side only
def test_keys_meet_whatever_their_type_is_in_spark(
    session: SparkSession, tmp_path: Path, num_buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_nb.spark.merge_insert.bucket_count", lambda *_: num_buckets)
    uri = str(tmp_path / "keys.lance")
    types = [("a", pa.uint16()), ("b", pa.large_string()), ("c", pa.int32())]
    target = pa.table({"a": [1, 2, None], "b": ["x", "y", "z"], "c": [1, 2, 3]}).cast(
        pa.schema(types)
    )
    lance_nb.write_dataset(target, uri)
    new = [(2, "y", 20), (None, "z", 30), (9, "y", 90)]
    source = session.createDataFrame(new, "a int, b string, c long")
    made = spark.upsert(uri, source, ["a", "b"], form="shuffle")
    found = made.to_table().to_pylist()
    assert sorted((one["c"], one["a"], one["b"]) for one in found) == [
        (1, 1, "x"), (3, None, "z"), (20, 2, "y"), (30, None, "z"), (90, 9, "y"),
    ]  # fmt: skip
