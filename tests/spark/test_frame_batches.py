"""DataFrames that are sent to Python in batches of bounded size, read again by pylance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.spark.dataframes import rows_sent
from lance_nb.spark.spark_engine import RowCounter, SparkJob
from tests.spark.data import MARKS, by_pylance
from tests.support.requirements import require_pylance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lance_nb.spark.frame_batches import FrameBatches

pytestmark = MARKS
lance: Any = require_pylance()
MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


@pytest.fixture
def unset(session: SparkSession) -> Iterator[SparkSession]:
    """The session as somebody else would have started it."""
    before = session.conf.get(MAX_ROWS)
    session.conf.unset(MAX_ROWS)
    yield session
    session.conf.set(MAX_ROWS, str(before))


def sent(frame: DataFrame) -> FrameBatches:
    from lance_nb.spark.frame_batches import FrameBatches

    return FrameBatches.of(frame)


def has_marks(one: FrameBatches) -> bool:
    """Whether a last column tells rows from fillers."""
    return one.frame.columns[-1] == "is_row"


def batches_of(one: FrameBatches) -> list[tuple[int, int, int]]:
    """Return for each batch that arrives: its rows with fillers, without, and its bytes."""

    names = [name for name in one.frame.columns if name != "is_row"]

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (rows,) = rows_sent([batch], names)
            found = [batch.num_rows, rows.num_rows, batch.nbytes]
            yield pa.RecordBatch.from_arrays([pa.array([at]) for at in found], ["a", "b", "c"])

    frame = one.frame
    job = frame.mapInArrow(look, "a long, b long, c long")
    action = SparkJob(frame.sparkSession, "look", job.collect, one.properties)
    found = action.finish(RowCounter(frame.sparkSession), lambda *_: None, lambda: False)
    return [(row["a"], row["b"], row["c"]) for row in found]


def test_rows_of_any_size_come_in_batches_of_bounded_size(
    unset: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of 0 to 300,000 letters, most of them short; the limit is a megabyte."""
    monkeypatch.setattr("lance_nb.spark.frame_batches.BATCH_BYTES", 1 << 20)
    lengths = "CASE WHEN id % 100 = 7 THEN 300000 WHEN id % 3 = 0 THEN 0 ELSE id % 900 END"
    frame = unset.range(0, 3_000, 1, 2).selectExpr(
        "id", f"if(id % 5 = 0, NULL, repeat('x', int({lengths}))) AS text"
    )
    one = sent(frame)
    assert has_marks(one)
    found = batches_of(one)
    assert sum(rows for _, rows, _ in found) == 3_000
    assert any(all_rows > rows for all_rows, rows, _ in found)
    assert max(size for _, _, size in found) < (1 << 20) + 300_000 + 100_000
    assert len(found) < 40  # 9 MB


def test_short_rows_have_no_fillers_and_numbers_no_marks(unset: SparkSession) -> None:
    texts = unset.range(0, 20_000, 1, 2).selectExpr("id", "concat('text ', id) AS text")
    found = batches_of(sent(texts))
    assert [(all_rows, rows) for all_rows, rows, _ in found] == [
        (8_192, 8_192), (1_808, 1_808), (8_192, 8_192), (1_808, 1_808)
    ]  # fmt: skip
    numbers = sent(unset.range(0, 20_000, 1, 2))
    assert not has_marks(numbers)
    assert [rows for _, rows, _ in batches_of(numbers)] == [8_192, 1_808] * 2


def test_wide_rows_come_in_batches_of_fewer(
    unset: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_nb.spark.frame_batches.BATCH_BYTES", 1 << 20)
    columns = [f"id + {at} AS c{at}" for at in range(100)]
    one = sent(unset.range(0, 3_000, 1, 1).selectExpr(*columns))
    assert not has_marks(one)
    found = batches_of(one)
    assert [rows for _, rows, _ in found] == [1_310, 1_310, 380]
    assert max(size for _, _, size in found) <= 1.1 * (1 << 20)  # with bits of validity
    with_text = sent(unset.range(0, 10).selectExpr(*columns, "'x' AS text"))
    assert with_text.properties[MAX_ROWS] == str((1 << 20) // (2 * (100 * 8 + 4)))


def test_many_texts_are_added_up_and_thousands_measured_by_spark(
    unset: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_nb.spark.frame_batches.BATCH_BYTES", 1 << 20)
    frame = unset.range(0, 700, 1, 1)
    texts = [f"concat('text {at} ', repeat('x', int(id))) AS t{at}" for at in range(60)]
    one = sent(frame.selectExpr("id", *texts))
    assert has_marks(one)
    found = batches_of(one)
    assert sum(rows for _, rows, _ in found) == 700
    assert max(size for _, _, size in found) < 1.2 * (1 << 20)  # a row has up to 43 KB
    many = [f"'text' AS t{at}" for at in range(2_000)]
    assert dict(sent(frame.selectExpr(*many)).properties) == {}


@pytest.mark.parametrize(
    "column",
    [
        "map('a', id) AS tags",
        "array('a', string(id)) AS words",
        "struct(id, map(1, id) AS inner) AS place",
        "parse_json('{\"a\": 1}') AS json",
        "void(NULL) AS nothing",
    ],
)
def test_what_has_no_known_size_is_measured_by_spark(unset: SparkSession, column: str) -> None:
    text = column.replace("void(NULL)", "NULL")
    one = sent(unset.range(10).selectExpr("id", text))
    assert (dict(one.properties), has_marks(one)) == ({}, False)


def test_what_the_user_has_set_comes_first(
    unset: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = unset.range(0, 20_000, 1, 1).selectExpr("id", "concat('text ', id) AS text")
    try:
        unset.conf.set(MAX_ROWS, "7000")
        assert [rows for _, rows, _ in batches_of(sent(texts))] == [7_000, 7_000, 6_000]
        unset.conf.set(MAX_ROWS, "0")  # no limit of rows, so that of bytes has to stay
        assert dict(sent(texts).properties) == {}
        unset.conf.set(MAX_ROWS, "5000000")  # a share would be smaller than the numbers of a row
        assert dict(sent(texts).properties) == {}
        unset.conf.set(MAX_ROWS, "10000")
        unset.conf.set(MAX_BYTES, "1m")
        assert dict(sent(texts).properties) == {}
    finally:
        unset.conf.unset(MAX_BYTES)


def test_neither_the_session_nor_other_jobs_see_the_properties(unset: SparkSession) -> None:
    """Rows per batch of a job in this thread, before, while and after a job of ours."""

    def count(frame: DataFrame) -> set[int]:
        def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows])], ["rows"])

        return {row["rows"] for row in frame.mapInArrow(look, "rows long").collect()}

    frame = unset.range(0, 20_000, 1, 1)
    before = count(frame)
    assert before == {10_000}
    settings = {name: unset.conf.get(name) for name in (MAX_ROWS, MAX_BYTES)}
    assert {rows for _, rows, _ in batches_of(sent(frame))} == {8_192, 20_000 - 2 * 8_192}
    assert count(frame) == before
    assert {name: unset.conf.get(name) for name in (MAX_ROWS, MAX_BYTES)} == settings
    assert unset.sparkContext.getLocalProperty(MAX_BYTES) is None


def test_rows_arrive_in_order_and_unchanged(
    unset: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kinds of columns with nulls and large values; names to quote, or told apart by case alone."""
    monkeypatch.setattr("lance_nb.spark.frame_batches.BATCH_BYTES", 1 << 16)
    rng = np.random.default_rng(5)
    count = 2_000
    texts = ["é" * int(one) if one < 9_000 else None for one in rng.integers(0, 9_900, count)]
    vectors = rng.random((count, 64), dtype=np.float32)
    table = pa.table(
        {
            "id": np.arange(count),
            "a b-c": texts,
            "ID": np.arange(count) * 2,
            "bytes": [None if at % 7 == 0 else rng.bytes(at % 50) for at in range(count)],
            "vector": [None if at % 11 == 0 else one.tolist() for at, one in enumerate(vectors)],
            "pair": [
                None if at % 13 == 0 else {"text": texts[at], "at": at} for at in range(count)
            ],
            "flag": rng.integers(0, 2, count).astype(bool),
        }
    )  # fmt: skip
    frame: Any = unset.createDataFrame(table).coalesce(1)
    one = sent(frame)
    assert has_marks(one)
    assert any(all_rows > rows for all_rows, rows, _ in batches_of(one))
    uri = str(tmp_path / "rows.lance")
    spark.write(frame, uri, dimensions={"vector": 64})
    found = by_pylance(uri)
    assert found.column_names == table.column_names
    for name in table.column_names:
        assert found[name].to_pylist() == table[name].to_pylist(), name


def test_values_are_computed_once(unset: SparkSession, tmp_path: Path) -> None:
    """A size that is taken from other random values than those that are written would differ."""
    expression = "CASE WHEN rand() < 0.5 THEN uuid() ELSE repeat(uuid(), 1000) END AS text"
    frame = unset.range(0, 200, 1, 1).selectExpr("id", expression)
    uri = str(tmp_path / "rows.lance")
    spark.write(frame, uri)
    found = by_pylance(uri)
    assert found["id"].to_pylist() == list(range(200))
    assert {len(one) for one in found["text"].to_pylist()} == {36, 36_000}


def test_large_rows_replace_others_and_are_sorted_into_fragments(
    unset: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fillers together with an overwrite by condition, a cast, sorted partitions and blobs."""
    monkeypatch.setattr("lance_nb.spark.frame_batches.BATCH_BYTES", 1 << 16)
    uri = str(tmp_path / "rows.lance")
    blob = {"lance-encoding:blob": "true"}
    fields = [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("text", pa.large_string()),
        pa.field("file", pa.large_binary(), metadata=blob),
    ]
    old = pa.table([range(40), ["old"] * 40, [b"old"] * 40], pa.schema(fields))
    lance_nb.write_dataset(old, uri, enable_stable_row_ids=True, data_storage_version="2.1")
    new = unset.range(20, 60, 1, 4).selectExpr(
        "id",
        "repeat('y', int(id % 7) * 3000) AS text",
        "binary(repeat('z', int(id) * 100)) AS file",
    )
    assert has_marks(sent(new))
    spark.write(new, uri, "overwrite", where="id >= 20", cluster_by="text")
    found = lance.dataset(uri)
    rows = {row["id"]: row["text"] for row in found.to_table(["id", "text"]).to_pylist()}
    after = {at: "y" * (at % 7 * 3_000) for at in range(20, 60)}
    assert rows == {**dict.fromkeys(range(20), "old"), **after}
    assert found.count_rows() == 60
    for fragment in found.get_fragments()[1:]:
        texts = fragment.to_table(["text"])["text"].to_pylist()
        assert texts == sorted(texts)
    ids = found.to_table(["id"], with_row_id=True)
    files = found.take_blobs("file", ids=ids["_rowid"].to_pylist())
    sizes = dict(zip(ids["id"].to_pylist(), (len(one.readall()) for one in files), strict=True))
    assert sizes == {**dict.fromkeys(range(20), 3), **{at: at * 100 for at in range(20, 60)}}
