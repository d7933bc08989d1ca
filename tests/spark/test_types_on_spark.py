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
from lance_nb.errors import NotSupportedError
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


def test_what_spark_cannot_hold_is_cut_off_or_refused(
    session: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "times.lance")
    lance_nb.write_dataset(pa.table({"t": pa.array([1_999], pa.timestamp("ns"))}), uri)
    frame = spark.read(uri, spark=session)
    assert frame.collect()[0]["t"].microsecond == 1
    with pytest.raises(NotSupportedError, match="form='broadcast'"):
        spark.upsert(uri, frame, "t", form="shuffle")


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
        assert not made.schema.field("id").nullable
        assert made.schema.field("vector").type == pa.list_(pa.float32(), 2)
        assert made.schema.field("text").metadata == {b"lance-encoding:compression": b"zstd"}
        assert made.to_table(["id", "vector"], filter="text = 'a'").to_pylist() == [
            {"id": 1, "vector": [1.0, 2.0]}
        ]
        found = made.scanner(["id"], filter="id = 1", with_row_address=True).to_table()
        (blob,) = made.take_blobs("picture", addresses=found["_rowaddr"].to_pylist())
        assert blob.readall() == b"png"
