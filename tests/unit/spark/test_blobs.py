"""Rows with blobs that tasks append: payloads go from file to file, references stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.spark.types import new_schema


def blobs(first: int, *payloads: Any) -> pa.Table:
    fields = [pa.field("id", pa.int64()), lance_nb.blob_field("b", inline_size_threshold=4)]
    ids = pa.array(range(first, first + len(payloads)), pa.int64())
    return pa.table([ids, lance_nb.blob_array(payloads)], schema=pa.schema(fields))


def payloads(dataset: LanceDataset) -> list[bytes | None]:
    return dataset.to_table(["b"], blob_handling="all_binary")["b"].to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_payloads_are_copied_from_another_dataset(tmp_path: Path, version: str) -> None:
    marked = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    wanted = [b"abc", None, b"", b"d" * 100_000]
    columns = [pa.array(range(4), pa.int64()), pa.array(wanted, pa.large_binary())]
    rows = pa.table(columns, schema=pa.schema([("id", pa.int64()), marked]))
    source, target = (
        lance_nb.write_dataset(rows, str(tmp_path / name), data_storage_version=version)
        for name in ("source.lance", "target.lance")
    )
    source.delete("id = 0")
    made = spark.append(target, source.checkout_latest(), engine="local")
    assert payloads(made) == wanted + wanted[1:]
    made.validate()


def test_external_blobs_stay_references(tmp_path: Path) -> None:
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"far away")
    allowed: dict[str, Any] = {"allow_external_blob_outside_bases": True}
    source = lance_nb.write_dataset(
        blobs(0, b"here it is", outside.as_uri()), str(tmp_path / "a.lance"), **allowed
    )
    target = lance_nb.write_dataset(blobs(10, b"x"), str(tmp_path / "b.lance"))
    spark.append(target, source, engine="local")
    made = lance_nb.dataset(target.uri, allow_bases=[tmp_path.as_uri()])
    assert payloads(made) == [b"x", b"here it is", b"far away"]
    assert made.to_table(["b"])["b"].to_pylist()[2]["blob_uri"] == outside.as_uri()


def test_references_that_a_task_of_this_process_wrote_are_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"far away")
    table = blobs(0, outside.as_uri(), b"near")
    with pa.ipc.new_file(str(tmp_path / "rows.arrow"), table.schema) as file:
        file.write_table(table)
    files = {"allow_external_blob_outside_bases": True}
    for number, source in enumerate((table, str(tmp_path / "rows.arrow"))):
        target = str(tmp_path / f"{number}.lance")
        spark.write(source, target, engine="local", files=files)
        assert payloads(lance_nb.dataset(target)) == [b"far away", b"near"]
    rows = str(tmp_path / "rows.arrow")
    with pytest.raises(InvalidInputError, match="allow_external_blob_outside_bases=True"):
        spark.append(target, rows, engine="local")


def test_references_below_a_base_path_of_the_other_dataset_are_refused(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "x.bin").write_bytes(b"far away")
    base = lance_nb.DatasetBasePath(str(tmp_path / "media"), "media", is_dataset_root=False)
    source = lance_nb.write_dataset(
        blobs(0, (tmp_path / "media" / "x.bin").as_uri()), str(tmp_path / "a.lance"),
        initial_bases=[base],
    )  # fmt: skip
    target = lance_nb.write_dataset(blobs(10, b"x"), str(tmp_path / "b.lance"))
    with pytest.raises(NotSupportedError, match=r"below its base path .*media"):
        spark.append(target, source, engine="local")
    assert payloads(spark.append(source, source, engine="local")) == [b"far away"] * 2


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_bytes_of_files_become_blobs(tmp_path: Path, kind: pa.DataType, suffix: str) -> None:
    target = lance_nb.write_dataset(blobs(0, b"x"), str(tmp_path / "b.lance"))
    rows = pa.table({"id": [1, 2, 3], "b": pa.array([b"a", None, b"c" * 100], kind)})
    path = str(tmp_path / f"more.{suffix}")
    if suffix == "parquet":
        parquet.write_table(rows, path)
    else:
        with pa.ipc.new_file(path, rows.schema) as file:
            file.write_table(rows)
    made = spark.append(target, path, engine="local")
    assert payloads(made) == [b"x", b"a", None, b"c" * 100]


def test_a_hint_makes_bytes_of_a_dataframe_blobs_in_every_version(tmp_path: Path) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    hinted = types.StructField("b", types.BinaryType(), True, {"lance-encoding:blob": "true"})
    found = new_schema(types.StructType([hinted])).field("b")
    assert (found.type, found.metadata) == (pa.large_binary(), {b"lance-encoding:blob": b"true"})
