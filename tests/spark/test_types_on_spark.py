"""Every type there and back: what Spark has read and written is what pylance saw before."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.errors import InvalidInputError, NotSupportedError, SchemaMismatchError
from tests.spark.data import MARKS, by_pylance
from tests.support.requirements import require_pylance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS

NESTED = pa.struct(
    [("v", pa.large_list(pa.list_(pa.uint8(), 2))), ("n", pa.uint32()), ("t", pa.time32("ms"))]
)
VALUES: dict[str, tuple[object, pa.DataType]] = {
    "bool": (True, pa.bool_()),
    "u8": (255, pa.uint8()),
    "u64": (2**64 - 1, pa.uint64()),
    "i8": (-128, pa.int8()),
    "half": (1.5, pa.float16()),
    "decimal": (Decimal("1.50"), pa.decimal128(10, 2)),
    "vector": ([1.0, None], pa.list_(pa.float32(), 2)),
    "halves": ([1.5, 2.5], pa.list_(pa.float16(), 2)),
    "large": ("a", pa.large_string()),
    "bytes": (b"a", pa.large_binary()),
    "fixed": (b"ab", pa.binary(2)),
    "seconds": (1, pa.timestamp("s")),
    "micros": (1, pa.timestamp("us", "UTC")),
    "nanos": (1_000, pa.timestamp("ns", "Europe/Berlin")),
    "clock": (5, pa.time64("us")),
    "day": (date(2026, 1, 1), pa.date32()),
    "day64": (date(2026, 1, 1), pa.date64()),
    "lasts": (7, pa.duration("us")),
    "code": ("x", pa.dictionary(pa.int32(), pa.string())),
    "nested": ({"v": [[1, 2], None], "n": 3, "t": 4}, NESTED),
    "map": ([("k", 1)], pa.map_(pa.string(), pa.uint16())),
}


def table() -> pa.Table:
    """A row of values, and one of nulls; the first column has none."""
    columns = {name: pa.array([one, None], kind) for name, (one, kind) in VALUES.items()}
    schema = [pa.field("id", pa.int32(), nullable=False), *(
        pa.field(name, column.type) for name, column in columns.items()
    )]  # fmt: skip
    return pa.table([pa.array([1, 2], pa.int32()), *columns.values()], schema=pa.schema(schema))


def test_every_type_comes_back_as_it_was(session: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "types.lance")
    require_pylance().write_dataset(table(), uri, data_storage_version="2.2")
    before = by_pylance(uri)
    zone = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.read(uri, spark=session)
        assert all(one.nullable for one in frame.schema)
        frame.write.format("lance_nb").mode("append").save(uri)
        spark.append(uri, frame)
    finally:
        session.conf.set("spark.sql.session.timeZone", str(zone))
    after = by_pylance(uri)
    assert after.schema == before.schema
    for start in (0, 2, 4):
        assert after.slice(start, 2).sort_by("id").to_pylist() == before.to_pylist()


def test_a_new_dataset_has_the_types_of_the_one_that_was_read(
    session: SparkSession, tmp_path: Path
) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "types.lance")
    key = pa.field("key", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    said = pa.field("said", pa.json_(), metadata={"comment": "as it was sent"})
    rows = (
        table()
        .append_column(key, [[1, 2]])
        .append_column(said, pa.array(['{"a": 1}', None], pa.json_()))
    )
    lance.write_dataset(rows, uri, data_storage_version="2.2")
    wanted = lance.dataset(uri).schema
    read = session.read.format("lance_nb").load(uri)
    ways = {
        "read": spark.read(uri, spark=session),
        "format": read,
        # Spark makes new columns of none of these.
        "query": read.where("id < 9").withColumnRenamed("vector", "v").sort("id")
        .withColumnRenamed("v", "vector"),
        "join": read.join(read.select("id"), "id", "left"),
    }  # fmt: skip
    for name, frame in ways.items():
        to = str(tmp_path / f"{name}.lance")
        spark.write(frame, to)
        after = by_pylance(to)
        for field in wanted:
            found = after.schema.field(field.name)
            assert found.type == field.type, name
            assert (found.metadata or {}) == (field.metadata or {}), name
            assert found.nullable == (field.name != "key"), name
        assert after.sort_by("id").select(wanted.names).to_pylist() == by_pylance(uri).to_pylist()


def test_a_column_that_a_query_made_has_its_own_type(session: SparkSession, tmp_path: Path) -> None:
    uri, to = str(tmp_path / "a.lance"), str(tmp_path / "b.lance")
    require_pylance().write_dataset(table(), uri, data_storage_version="2.2")
    frame = spark.read(uri, spark=session).selectExpr(
        "id", "slice(vector, 1, 1) AS vector", "cast(u8 AS bigint) AS u8"
    )
    spark.write(frame, to)
    found = by_pylance(to)
    assert found.schema.field("vector").type == pa.list_(pa.float32())
    assert found.schema.field("u8").type == pa.int64()


def test_vectors_are_named_by_an_option(session: SparkSession, tmp_path: Path) -> None:
    rows = [(1, [1.0, 2.0], [3.0, 4.0, 5.0])]
    frame = session.createDataFrame(rows, "id int, `a,b` array<float>, v array<double>")
    uri, other = str(tmp_path / "a.lance"), str(tmp_path / "b.lance")
    named = frame.write.format("lance_nb").mode("append")
    named.option("dimensions", '{"a,b": 2, "v": 3}').save(uri)
    found = by_pylance(uri).schema
    assert found.field("a,b").type == pa.list_(pa.float32(), 2)
    assert found.field("v").type == pa.list_(pa.float64(), 3)
    spark.write(frame.select("id", "v"), other, dimensions={"v": 3})
    assert by_pylance(other).schema.field("v").type == pa.list_(pa.float64(), 3)
    with pytest.raises(InvalidInputError, match="no column 'x'"):
        spark.write(frame, str(tmp_path / "c.lance"), dimensions={"x": 2})


def test_values_of_another_kind_are_not_converted(session: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "a.lance")
    require_pylance().write_dataset(pa.table({"id": [1], "t": ["x"]}), uri)
    for rows, ddl, name in (
        ([("7", "y")], "id string, t string", "id"),
        ([(7, 8)], "id long, t long", "t"),
        ([(True, "y")], "id boolean, t string", "id"),
    ):
        frame = session.createDataFrame(rows, ddl)
        with pytest.raises(SchemaMismatchError, match=f"column '{name}'.*cast"):
            spark.append(uri, frame)
        with pytest.raises(Exception, match=f"column '{name}'.*cast"):
            frame.write.format("lance_nb").mode("append").save(uri)
    assert by_pylance(uri).num_rows == 1
    spark.append(uri, session.createDataFrame([(2, "y")], "id int, t string"))
    assert by_pylance(uri)["id"].to_pylist() == [1, 2]


def test_what_spark_cannot_hold_is_cut_off_or_refused(
    session: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "times.lance")
    lance_nb.write_dataset(pa.table({"t": pa.array([1_999], pa.timestamp("ns"))}), uri)
    frame = spark.read(uri, spark=session)
    assert frame.collect()[0]["t"].microsecond == 1
    with pytest.raises(NotSupportedError, match="form='broadcast'"):
        spark.upsert(uri, frame, "t", form="shuffle")


def test_a_frame_of_literals_makes_a_dataset_that_takes_nulls(
    session: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "literals.lance")
    texts = ["1L AS a", "array(1) AS b", "named_struct('c', 'x') AS d", "map('k', 2) AS e"]
    frame = session.range(1).selectExpr(*texts)
    assert not any(field.nullable for field in frame.schema)
    spark.write(frame, uri)
    nulls = ["CAST(NULL AS LONG) AS a", "array(CAST(NULL AS INT)) AS b",
             "named_struct('c', CAST(NULL AS STRING)) AS d",
             "map('k', CAST(NULL AS INT)) AS e"]  # fmt: skip
    session.range(1).selectExpr(*nulls).write.format("lance_nb").mode("append").save(uri)
    assert require_pylance().dataset(uri).to_table().to_pylist() == [
        {"a": 1, "b": [1], "d": {"c": "x"}, "e": [("k", 2)]},
        {"a": None, "b": [None], "d": {"c": None}, "e": [("k", None)]},
    ]


def test_hints_and_nullability_of_a_frame_make_a_new_dataset(
    session: SparkSession, tmp_path: Path
) -> None:
    lance = require_pylance()
    ddl = "id long not null, vector array<float>, picture binary, text string"
    rows = [(1, [1.0, 2.0], b"png", "a"), (2, [3.0, 4.0], None, "b")]
    frame = session.createDataFrame(rows, ddl)
    hints: dict[str, dict[str, object]] = {
        "vector": {"lance_nb.dimension": 2},
        "picture": {"lance-encoding:blob": "true"},
        "text": {"lance-encoding:compression": "zstd", "comment": "not an encoding"},
    }
    for name, hint in hints.items():
        frame = frame.withMetadata(name, hint)
    ways = {
        "function": lambda to: spark.write(frame, to),
        "format": lambda to: frame.write.format("lance_nb").mode("append").save(to),
    }
    for name, write in ways.items():
        uri = str(tmp_path / f"{name}.lance")
        write(uri)
        made = lance.dataset(uri)
        assert made.schema.field("id").nullable  # as in tables that Spark writes
        assert made.schema.field("vector").type == pa.list_(pa.float32(), 2)
        assert made.schema.field("text").metadata == {b"lance-encoding:compression": b"zstd"}
        assert made.to_table(["id", "vector"], filter="text = 'a'").to_pylist() == [
            {"id": 1, "vector": [1.0, 2.0]}
        ]
        found = made.scanner(["id"], filter="id = 1", with_row_address=True).to_table()
        (blob,) = made.take_blobs("picture", addresses=found["_rowaddr"].to_pylist())
        assert blob.readall() == b"png"
