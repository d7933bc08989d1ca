from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from lance_nb.errors import NotSupportedError, SchemaMismatchError
from lance_nb.spark.row_writer import RowWriter, WriteSettings
from lance_nb.spark.types import cast_to_dataset, check_names, from_spark, readable_schema, to_spark

NESTED = [("v", pa.large_list(pa.list_(pa.uint8(), 2))), ("n", pa.uint32())]
TABLE = pa.table(
    {
        "u8": pa.array([1, None], pa.uint8()),
        "u64": pa.array([2**64 - 1, None], pa.uint64()),
        "half": pa.array([1.5, None], pa.float16()),
        "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
        "large": pa.array(["a", None], pa.large_string()),
        "view": pa.array(["a", None], pa.string_view()),
        "fixed": pa.array([b"ab", None], pa.binary(2)),
        "seconds": pa.array([1, None], pa.timestamp("s", "UTC")),
        "time": pa.array([5, None], pa.time32("ms")),
        "day": pa.array([date(2026, 1, 1), None], pa.date64()),
        "code": pa.array(["x", None]).dictionary_encode(),
        "nested": pa.array([{"v": [[1, 2]], "n": 3}, None], pa.struct(NESTED)),
        "plain": pa.array([1, None], pa.int64()),
    }
)  # fmt: skip


def test_every_type_becomes_one_that_spark_has_and_comes_back() -> None:
    schema = readable_schema(TABLE.schema)
    (batch,) = TABLE.combine_chunks().to_batches()
    read = to_spark(batch, schema)
    assert read.schema == schema
    assert read.column("u64").to_pylist() == [Decimal(2**64 - 1), None]
    assert schema.field("vector").type == pa.list_(pa.field("element", pa.float32()))
    assert schema.field("nested").type.field("v").type.value_field.name == "element"
    names = TABLE.column_names
    again = from_spark(read.select(names), pa.schema([TABLE.schema.field(one) for one in names]))
    assert again.to_pylist() == batch.select(names).to_pylist()


def test_what_spark_has_not_is_refused_with_the_column() -> None:
    with pytest.raises(NotSupportedError, match=r"'far'.*leave the column out"):
        readable_schema(pa.schema([("far", pa.decimal256(60, 1))]))


def test_values_that_do_not_fit_name_the_column() -> None:
    batch = pa.record_batch({"v": pa.array([[1.0]], pa.list_(pa.float32()))})
    with pytest.raises(SchemaMismatchError, match="column 'v'"):
        from_spark(batch, pa.schema([("v", pa.list_(pa.float32(), 2))]))
    nulls = pa.record_batch({"v": pa.array([None, 1])})
    strict = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    with pytest.raises(SchemaMismatchError, match="1 null, but"):
        from_spark(nulls, strict)
    with pytest.raises(SchemaMismatchError, match="missing"):
        from_spark(nulls, pa.schema([pa.field("w", pa.int64(), nullable=False)]))


def test_missing_columns_become_null_and_unknown_ones_are_refused() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    made = from_spark(pa.record_batch({"a": [1]}), schema)
    assert made.to_pylist() == [{"a": 1, "b": None}]
    with pytest.raises(SchemaMismatchError, match="no column 'c'"):
        check_names(["c"], schema)


def test_tables_of_spark_get_the_types_of_the_dataset() -> None:
    schema = pa.schema([("id", pa.int32()), ("v", pa.list_(pa.float32(), 2)), ("x", pa.int8())])
    given = pa.table({"v": [[1.0, 2.0]], "id": [7]})
    made = cast_to_dataset(given, schema)
    assert made.schema.types == [pa.list_(pa.float32(), 2), pa.int32()]
    assert made.to_pylist() == given.to_pylist()
    with pytest.raises(SchemaMismatchError, match="no column 'y'"):
        cast_to_dataset(pa.table({"y": [1]}), schema)


def test_bytes_become_blobs_where_the_hint_says_so(tmp_path: Path) -> None:
    hinted = pa.field("b", pa.binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("id", pa.int64()), hinted])
    rows = RowWriter.of(str(tmp_path / "x.lance"), schema, WriteSettings())
    given = pa.record_batch({"id": [1, 2], "b": pa.array([b"bytes", None], pa.binary())})
    made = rows.plan("create", "").commit([rows.write_of_spark([given])])
    assert made.take_blobs("b", indices=[0])[0].readall() == b"bytes"
    assert made.count_rows("b IS NULL") == 1
